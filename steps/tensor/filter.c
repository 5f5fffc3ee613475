/* SPDX-License-Identifier: Apache-2.0 */
/*
 * filter: keeps the samples for which all of its conditions hold, and drops the others. The
 * conditions are about one feature; the step's input passes unchanged.
 *
 * Nothing is guessed: a condition that cannot be asked of a value (a bound on a text, say) is an
 * error of that sample, not a drop.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "../../base/decimal_internal.h"
#include "../steps_internal.h"

enum {
    OPTION_FEATURE,
    OPTION_IN,
    OPTION_NOT_IN,
    OPTION_MIN,
    OPTION_MAX,
    OPTION_MIN_BYTES,
    OPTION_MAX_BYTES,
    OPTION_MIN_LENGTH,
    OPTION_MAX_LENGTH,
    OPTION_MIN_SHAPE,
    OPTION_MAX_SHAPE,
    OPTION_MISSING,
    OPTION_COUNT
};

typedef enum missing_policy { MISSING_FAILS, MISSING_DROPS, MISSING_PASSES } missing_policy;
static const char *const missing_names[] = {"fail", "drop", "keep", NULL};

#define MOST_DIM 1e12 /* whole numbers up to here are exact in a double */

static const presto_option_type options[] = {
    [OPTION_FEATURE] = {.name = "feature",
                        .kind = PRESTO_OPTION_TEXT,
                        .help = "the feature that is looked at; without it the step's input"},
    [OPTION_IN] = {.name = "in",
                   .kind = PRESTO_OPTION_VALUE_LIST,
                   .help = "keep these values: one number or one text"},
    [OPTION_NOT_IN] = {.name = "not-in",
                       .kind = PRESTO_OPTION_VALUE_LIST,
                       .help = "drop these values"},
    [OPTION_MIN] = {.name = "min",
                    .kind = PRESTO_OPTION_FLOAT,
                    .help = "the smallest number that is kept"},
    [OPTION_MAX] = {.name = "max",
                    .kind = PRESTO_OPTION_FLOAT,
                    .help = "the largest number that is kept"},
    [OPTION_MIN_BYTES] = {.name = "min-bytes",
                          .kind = PRESTO_OPTION_SIZE,
                          .help = "fewest bytes: of an encoded image or a text, or of a tensor's "
                                  "values"},
    [OPTION_MAX_BYTES] = {.name = "max-bytes", .kind = PRESTO_OPTION_SIZE, .help = "most bytes"},
    [OPTION_MIN_LENGTH] = {.name = "min-length",
                           .kind = PRESTO_OPTION_INT,
                           .minimum = 0,
                           .maximum = MOST_DIM,
                           .help = "smallest first dimension of a tensor; of a text, its bytes"},
    [OPTION_MAX_LENGTH] = {.name = "max-length",
                           .kind = PRESTO_OPTION_INT,
                           .minimum = 0,
                           .maximum = MOST_DIM,
                           .help = "largest first dimension of a tensor; of a text, its bytes"},
    [OPTION_MIN_SHAPE] = {.name = "min-shape",
                          .kind = PRESTO_OPTION_FLOAT_LIST,
                          .minimum = 0,
                          .maximum = MOST_DIM,
                          .help = "the smallest first dimensions, e.g. [256, 256] for height and "
                                  "width"},
    [OPTION_MAX_SHAPE] = {.name = "max-shape",
                          .kind = PRESTO_OPTION_FLOAT_LIST,
                          .minimum = 0,
                          .maximum = MOST_DIM,
                          .help = "the largest first dimensions"},
    [OPTION_MISSING] = {.name = "missing",
                        .kind = PRESTO_OPTION_CHOICE,
                        .choices = missing_names,
                        .default_text = "fail",
                        .help = "a sample without the feature is an error, is dropped, or is "
                                "kept"},
};

/* A value of a list: its text, and the number that it means. */
typedef struct listed_value {
    presto_span text;
    bool is_integer, is_number;
    int64_t integer;
    double number;
} listed_value;

typedef struct value_list {
    listed_value *values; /* NULL: no such condition */
    size_t count;
} value_list;

/* Bounds of a whole number, inclusive. */
typedef struct size_bounds {
    bool is_set;
    uint64_t least, most;
} size_bounds;

typedef struct filter {
    char *feature; /* NULL: the step's input */
    missing_policy missing;
    value_list in, not_in;
    bool has_range; /* min or max is set */
    double min, max;
    size_bounds bytes, length;
    int shape_rank; /* 0: no such condition */
    size_bounds shape[PRESTO_MAX_RANK];
} filter;

/* ---- options ---- */

static void destroy(void *state) {
    filter *self = state;
    if (self == NULL)
        return;
    for (size_t i = 0; i < self->in.count; i++)
        free((void *)(uintptr_t)self->in.values[i].text.data);
    for (size_t i = 0; i < self->not_in.count; i++)
        free((void *)(uintptr_t)self->not_in.values[i].text.data);
    free(self->in.values);
    free(self->not_in.values);
    free(self->feature);
    free(self);
}

static presto_status read_value(const char *text, listed_value *value_out, presto_error *err) {
    char *copy = strdup(text), *end;
    if (copy == NULL)
        return presto_fail_memory(err, strlen(text) + 1);
    listed_value value = {.text = presto_span_of_text(copy)};
    errno = 0;
    value.integer = strtoll(text, &end, 10);
    value.is_integer = end != text && *end == '\0' && errno == 0;
    value.number = presto__decimal_parse(text, &end);
    value.is_number = end != text && *end == '\0' && isfinite(value.number);
    *value_out = value;
    return PRESTO_OK;
}

static presto_status read_list(const presto_option *option, value_list *list, presto_error *err) {
    if (!option->is_set)
        return PRESTO_OK;
    list->values = calloc(option->text_count, sizeof *list->values);
    if (list->values == NULL)
        return presto_fail_memory(err, option->text_count * sizeof *list->values);
    for (; list->count < option->text_count; list->count++)
        PRESTO_TRY(read_value(option->texts[list->count], &list->values[list->count], err));
    return PRESTO_OK;
}

static presto_status check_bounds(bool holds, const char *name, presto_error *err) {
    return holds ? PRESTO_OK
                 : presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                               "min%s is larger than max%s: nothing would be kept", name, name);
}

static presto_status read_sizes(const presto_option *min, const presto_option *max,
                                const char *name, size_bounds *bounds, presto_error *err) {
    bounds->is_set = min->is_set || max->is_set;
    bounds->least = min->is_set ? (uint64_t)min->integer : 0;
    bounds->most = max->is_set ? (uint64_t)max->integer : UINT64_MAX;
    return check_bounds(bounds->least <= bounds->most, name, err);
}

/* Sets one side of the bounds of the first dimensions. */
static presto_status read_shape(const presto_option *option, const char *name, bool is_least,
                                filter *self, presto_error *err) {
    size_t count = option->is_set ? option->number_count : 0;
    if (count > PRESTO_MAX_RANK)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "%s has %zu dimensions, more than %d", name, count, PRESTO_MAX_RANK);
    for (size_t i = 0; i < count; i++) {
        size_bounds *bounds = &self->shape[i];
        if (option->numbers[i] != floor(option->numbers[i]))
            return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                               "%s: %g is no whole number", name, option->numbers[i]);
        if (is_least)
            bounds->least = (uint64_t)option->numbers[i];
        else
            bounds->most = (uint64_t)option->numbers[i];
        PRESTO_TRY(check_bounds(bounds->least <= bounds->most, "-shape", err));
    }
    if ((int)count > self->shape_rank)
        self->shape_rank = (int)count;
    return PRESTO_OK;
}

static presto_status fill(filter *self, const presto_option *values, presto_error *err) {
    const presto_option *min = &values[OPTION_MIN], *max = &values[OPTION_MAX];
    self->missing = (missing_policy)values[OPTION_MISSING].choice;
    PRESTO_TRY(presto__option_copy(&values[OPTION_FEATURE], &self->feature, err));
    PRESTO_TRY(read_list(&values[OPTION_IN], &self->in, err));
    PRESTO_TRY(read_list(&values[OPTION_NOT_IN], &self->not_in, err));
    self->has_range = min->is_set || max->is_set;
    self->min = min->is_set ? min->number : -INFINITY;
    self->max = max->is_set ? max->number : INFINITY;
    PRESTO_TRY(check_bounds(self->min <= self->max, "", err));
    PRESTO_TRY(read_sizes(&values[OPTION_MIN_BYTES], &values[OPTION_MAX_BYTES], "-bytes",
                          &self->bytes, err));
    PRESTO_TRY(read_sizes(&values[OPTION_MIN_LENGTH], &values[OPTION_MAX_LENGTH], "-length",
                          &self->length, err));
    for (int i = 0; i < PRESTO_MAX_RANK; i++)
        self->shape[i].most = UINT64_MAX;
    PRESTO_TRY(read_shape(&values[OPTION_MIN_SHAPE], "min-shape", true, self, err));
    PRESTO_TRY(read_shape(&values[OPTION_MAX_SHAPE], "max-shape", false, self, err));
    bool is_any = self->in.count > 0 || self->not_in.count > 0 || self->has_range ||
                  self->bytes.is_set || self->length.is_set || self->shape_rank > 0;
    return is_any ? PRESTO_OK
                  : presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                                "needs a condition, e.g. min-length: 100");
}

static presto_status create(const presto_option *values, void **state_out, presto_error *err) {
    filter *self = calloc(1, sizeof *self);
    if (self == NULL)
        return presto_fail_memory(err, sizeof *self);
    presto_status status = fill(self, values, err);
    if (status < 0) {
        destroy(self);
        return status;
    }
    *state_out = self;
    return PRESTO_OK;
}

#define NEEDS_SHAPE "a tensor of as many dimensions as min-shape and max-shape have"

static presto_status fail_value(const presto_tensor *value, const char *needs, presto_error *err) {
    char text[PRESTO_SPEC_TEXT_BYTES];
    return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET, "needs %s, gets %s", needs,
                       presto_spec_format(&value->spec, text, sizeof text));
}

static presto_status infer(const void *state, const presto_tensor_spec *in,
                           presto_tensor_spec *out_out, presto_error *err) {
    const filter *self = state;
    const presto_tensor given = {.spec = *in};
    bool is_known = self->feature == NULL && in->dtype != PRESTO_DTYPE_UNKNOWN;
    if (is_known && self->has_range && in->dtype == PRESTO_STRING)
        return fail_value(&given, "one number", err);
    if (is_known && in->rank >= 0 && self->shape_rank > in->rank)
        return fail_value(&given, NEEDS_SHAPE, err);
    *out_out = *in;
    return PRESTO_OK;
}

/* ---- values ---- */

/* One number of a tensor. A float32 is compared as such: 0.7 of an option means the float32 that is
 * nearest to it. */
typedef struct number {
    bool is_integer, is_float32;
    int64_t integer;
    double real;
} number;

#define INTEGER_CASE(dtype, type)                                                                  \
    case dtype: {                                                                                  \
        type value;                                                                                \
        memcpy(&value, data, sizeof value);                                                        \
        *number_out = (number){.is_integer = true, .integer = (int64_t)value};                     \
        return true;                                                                               \
    }

/* False: it is no number that can be compared. */
static bool read_number(const presto_tensor *tensor, number *number_out) {
    const void *data = tensor->data;
    float single;
    double real;
    uint64_t natural;
    switch (tensor->spec.dtype) {
        INTEGER_CASE(PRESTO_BOOL, uint8_t)
        INTEGER_CASE(PRESTO_UINT8, uint8_t)
        INTEGER_CASE(PRESTO_INT8, int8_t)
        INTEGER_CASE(PRESTO_UINT16, uint16_t)
        INTEGER_CASE(PRESTO_INT16, int16_t)
        INTEGER_CASE(PRESTO_INT32, int32_t)
        INTEGER_CASE(PRESTO_UINT32, uint32_t)
        INTEGER_CASE(PRESTO_INT64, int64_t)
    case PRESTO_UINT64:
        memcpy(&natural, data, sizeof natural);
        *number_out = (number){.is_integer = natural <= INT64_MAX,
                               .integer = (int64_t)natural,
                               .real = (double)natural};
        return true;
    case PRESTO_FLOAT32:
        memcpy(&single, data, sizeof single);
        *number_out = (number){.is_float32 = true, .real = (double)single};
        return true;
    case PRESTO_FLOAT64:
        memcpy(&real, data, sizeof real);
        *number_out = (number){.real = real};
        return true;
    case PRESTO_DTYPE_UNKNOWN:
    case PRESTO_STRING:
    case PRESTO_FLOAT16:
    case PRESTO_BFLOAT16:
    case PRESTO_COMPLEX64:
    case PRESTO_COMPLEX128:
        break;
    }
    return false;
}

/* Below 0, 0 or above 0 as the whole number is below, equal to or above the other one. Exact, also
 * where a double is not. */
static int compare_integer(int64_t integer, double other) {
    if (other >= 0x1p63)
        return -1;
    if (other < -0x1p63)
        return 1;
    int64_t floored = (int64_t)floor(other);
    if (integer != floored)
        return integer < floored ? -1 : 1;
    return other > (double)floored ? -1 : 0;
}

static double as_compared(const number *value, double bound) {
    return value->is_float32 ? (double)(float)bound : bound;
}

static bool in_range(const filter *self, const number *value) {
    if (value->is_integer)
        return compare_integer(value->integer, self->min) >= 0 &&
               compare_integer(value->integer, self->max) <= 0;
    return value->real >= as_compared(value, self->min) &&
           value->real <= as_compared(value, self->max); /* a NaN is in no range */
}

static bool equals(const number *value, const listed_value *listed) {
    if (!value->is_integer)
        return value->real == as_compared(value, listed->number);
    return listed->is_integer ? value->integer == listed->integer
                              : compare_integer(value->integer, listed->number) == 0;
}

static bool has_number(const value_list *list, const number *value) {
    for (size_t i = 0; i < list->count; i++)
        if (equals(value, &list->values[i]))
            return true;
    return false;
}

static bool has_text(const value_list *list, presto_span text) {
    for (size_t i = 0; i < list->count; i++)
        if (presto_span_equal(text, list->values[i].text))
            return true;
    return false;
}

/* ---- conditions: PRESTO_OK, PRESTO_DROP, or a failure ---- */

static presto_status keep_if(bool holds) {
    return holds ? PRESTO_OK : PRESTO_DROP;
}

static presto_status check_listed_numbers(const value_list *list, presto_error *err) {
    for (size_t i = 0; i < list->count; i++)
        if (!list->values[i].is_number)
            return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET,
                               "compares a number with the text '%.64s'",
                               (const char *)list->values[i].text.data);
    return PRESTO_OK;
}

/* in, not-in, min, max: of one number or one text. */
static presto_status check_value(const filter *self, const presto_tensor *value,
                                 presto_error *err) {
    bool has_lists = self->in.count > 0 || self->not_in.count > 0;
    if (!has_lists && !self->has_range)
        return PRESTO_OK;
    bool is_one = presto_spec_elements(&value->spec) == 1;
    if (is_one && value->spec.dtype == PRESTO_STRING && !self->has_range)
        return keep_if((self->in.count == 0 || has_text(&self->in, value->strings[0])) &&
                       !has_text(&self->not_in, value->strings[0]));
    number given;
    if (!is_one || !read_number(value, &given))
        return fail_value(value, self->has_range ? "one number" : "one number or text", err);
    PRESTO_TRY(check_listed_numbers(&self->in, err));
    PRESTO_TRY(check_listed_numbers(&self->not_in, err));
    return keep_if((self->in.count == 0 || has_number(&self->in, &given)) &&
                   !has_number(&self->not_in, &given) &&
                   (!self->has_range || in_range(self, &given)));
}

static uint64_t bytes_of(const presto_tensor *value) {
    if (value->spec.dtype != PRESTO_STRING)
        return presto_tensor_bytes(value);
    uint64_t bytes = 0;
    for (uint64_t i = 0; i < presto_spec_elements(&value->spec); i++)
        bytes += value->strings[i].bytes;
    return bytes;
}

static bool within(const size_bounds *bounds, uint64_t value) {
    return value >= bounds->least && value <= bounds->most;
}

static presto_status check_length(const filter *self, const presto_tensor *value,
                                  presto_error *err) {
    if (!self->length.is_set)
        return PRESTO_OK;
    if (value->spec.rank > 0)
        return keep_if(within(&self->length, (uint64_t)value->spec.dims[0]));
    if (value->spec.dtype == PRESTO_STRING)
        return keep_if(within(&self->length, value->strings[0].bytes));
    return fail_value(value, "a text, or a tensor with a length", err);
}

static presto_status check_shape(const filter *self, const presto_tensor *value,
                                 presto_error *err) {
    if (self->shape_rank > value->spec.rank)
        return fail_value(value, NEEDS_SHAPE, err);
    for (int i = 0; i < self->shape_rank; i++)
        if (!within(&self->shape[i], (uint64_t)value->spec.dims[i]))
            return PRESTO_DROP;
    return PRESTO_OK;
}

static presto_status check(const filter *self, const presto_tensor *value, presto_error *err) {
    presto_status status = check_value(self, value, err);
    if (status == PRESTO_OK && self->bytes.is_set)
        status = keep_if(within(&self->bytes, bytes_of(value)));
    if (status == PRESTO_OK)
        status = check_length(self, value, err);
    return status == PRESTO_OK ? check_shape(self, value, err) : status;
}

/* The conditions, on another feature than the step's input. */
static presto_status check_feature(const filter *self, presto_step_context *context,
                                   presto_error *err) {
    const presto_feature *feature = presto_step_feature(context, self->feature);
    if (feature != NULL && feature->encoding != PRESTO_ENCODE_NONE)
        return check(self, &feature->tensor, err);
    if (self->missing == MISSING_FAILS)
        return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET,
                           "the sample has no feature \"%s\"", self->feature);
    return keep_if(self->missing == MISSING_PASSES);
}

static presto_status run(const void *state, presto_step_context *context, const presto_tensor *in,
                         presto_tensor *out_out, presto_error *err) {
    const filter *self = state;
    presto_status status =
        self->feature == NULL ? check(self, in, err) : check_feature(self, context, err);
    if (status == PRESTO_OK)
        *out_out = *in;
    return status;
}

const presto_step_type presto__step_filter = {
    .abi = PRESTO_STEP_ABI,
    .name = "filter",
    .summary = "Keeps the samples for which all conditions hold; the others are left out.",
    .flags = PRESTO_STEP_DROPS | PRESTO_STEP_READS_FEATURES,
    .options = options,
    .option_count = OPTION_COUNT,
    .create = create,
    .destroy = destroy,
    .infer = infer,
    .run = run,
};
