/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack: token sequences, one behind the other, cut into rows of one length.
 *
 * Several samples become others, so this is no step of a stream: a conversion runs it. What is done
 * to each sample alone is done here, by the workers: its tokens as int32, between a first and a
 * last one. Cutting them into rows is the conversion's (loader/convert/).
 */
#include <stdlib.h>

#include "../steps_internal.h"

enum { OPTION_LENGTH, OPTION_BOS, OPTION_EOS, OPTION_LAST, OPTION_PAD, OPTION_COUNT };

static const char *const last_names[] = {"drop", "pad", NULL};

#define TOKEN_OPTION .kind = PRESTO_OPTION_INT, .minimum = INT32_MIN, .maximum = INT32_MAX

static const presto_option_type options[] = {
    [OPTION_LENGTH] = {.name = "length",
                       .kind = PRESTO_OPTION_INT,
                       .required = true,
                       .minimum = 1,
                       .maximum = 1 << 24,
                       .unit = "tokens",
                       .help = "of each row"},
    [OPTION_BOS] = {.name = "bos",
                    TOKEN_OPTION,
                    .help = "a token in front of each document; without it none"},
    [OPTION_EOS] = {.name = "eos",
                    TOKEN_OPTION,
                    .help = "a token behind each document; without it none"},
    [OPTION_LAST] = {.name = "last",
                     .kind = PRESTO_OPTION_CHOICE,
                     .choices = last_names,
                     .default_text = "drop",
                     .help = "what becomes of the last row if the tokens do not fill it"},
    [OPTION_PAD] = {.name = "pad",
                    TOKEN_OPTION,
                    .default_text = "0",
                    .help = "the token that a last row is padded with"},
};

typedef struct pack {
    bool has_bos, has_eos;
    int32_t bos, eos;
} pack;

static presto_status create(const presto_option *values, void **state_out, presto_error *err) {
    pack *self = calloc(1, sizeof *self);
    if (self == NULL)
        return presto_fail_memory(err, sizeof *self);
    self->has_bos = values[OPTION_BOS].is_set;
    self->has_eos = values[OPTION_EOS].is_set;
    self->bos = (int32_t)values[OPTION_BOS].integer;
    self->eos = (int32_t)values[OPTION_EOS].integer;
    *state_out = self;
    return PRESTO_OK;
}

static bool is_integer(presto_dtype dtype) {
    return dtype == PRESTO_UINT8 || dtype == PRESTO_INT8 || dtype == PRESTO_UINT16 ||
           dtype == PRESTO_INT16 || dtype == PRESTO_INT32 || dtype == PRESTO_UINT32 ||
           dtype == PRESTO_INT64;
}

/* One token, or none at all, of foreign records is a scalar or has no dtype of its own. */
static presto_status check_input(const presto_tensor_spec *in, presto_error *err) {
    char text[PRESTO_SPEC_TEXT_BYTES];
    if ((in->dtype == PRESTO_DTYPE_UNKNOWN || is_integer(in->dtype)) && in->rank <= 1)
        return PRESTO_OK;
    return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET,
                       "needs tokens, whole numbers in one dimension, gets %s",
                       presto_spec_format(in, text, sizeof text));
}

static presto_status infer(const void *state, const presto_tensor_spec *in,
                           presto_tensor_spec *out_out, presto_error *err) {
    (void)state;
    PRESTO_TRY(check_input(in, err));
    *out_out = (presto_tensor_spec){PRESTO_INT32, 1, {-1}};
    return PRESTO_OK;
}

/* ---- tokens ---- */

#define COPY_CASE(dtype, type)                                                                     \
    case dtype:                                                                                    \
        for (size_t i = 0; i < count; i++) {                                                       \
            type value;                                                                            \
            memcpy(&value, (const uint8_t *)data + i * sizeof value, sizeof value);                \
            out[i] = (int32_t)value;                                                               \
        }                                                                                          \
        return count;

#define CHECKED_CASE(dtype, type, fits)                                                            \
    case dtype:                                                                                    \
        for (size_t i = 0; i < count; i++) {                                                       \
            type value;                                                                            \
            memcpy(&value, (const uint8_t *)data + i * sizeof value, sizeof value);                \
            if (!(fits))                                                                           \
                return i;                                                                          \
            out[i] = (int32_t)value;                                                               \
        }                                                                                          \
        return count;

/* How many tokens were copied: all, up to the first that is no int32. */
static size_t copy_tokens(const presto_tensor *in, size_t count, int32_t *out) {
    const void *data = in->data;
    if (in->spec.dtype == PRESTO_INT32) {
        if (count > 0)
            memcpy(out, data, count * sizeof *out);
        return count;
    }
    switch ((int)in->spec.dtype) {
        COPY_CASE(PRESTO_UINT8, uint8_t)
        COPY_CASE(PRESTO_INT8, int8_t)
        COPY_CASE(PRESTO_UINT16, uint16_t)
        COPY_CASE(PRESTO_INT16, int16_t)
        CHECKED_CASE(PRESTO_UINT32, uint32_t, value <= INT32_MAX)
        CHECKED_CASE(PRESTO_INT64, int64_t, value >= INT32_MIN && value <= INT32_MAX)
    default:
        return 0;
    }
}

static presto_status run(const void *state, presto_step_context *context, const presto_tensor *in,
                         presto_tensor *out_out, presto_error *err) {
    const pack *self = state;
    PRESTO_TRY(check_input(&in->spec, err));
    size_t count = (size_t)presto_spec_elements(&in->spec);
    presto_tensor_spec spec = {PRESTO_INT32, 1, {0}};
    void *data;
    spec.dims[0] = (int64_t)(count + self->has_bos + self->has_eos);
    PRESTO_TRY(presto_step_output(context, &spec, &data, err));
    int32_t *out = data;
    if (self->has_bos)
        *out++ = self->bos;
    size_t copied = copy_tokens(in, count, out);
    if (copied < count)
        return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET, "token %zu is no int32", copied);
    if (self->has_eos)
        out[count] = self->eos;
    *out_out = (presto_tensor){.spec = spec, .data = data};
    return PRESTO_OK;
}

const presto_step_type presto__step_pack = {
    .abi = PRESTO_STEP_ABI,
    .name = "pack",
    .summary = "Documents of tokens, one behind the other in the order of the records, cut into "
               "rows of one length: int32, with `document-offsets`, where each document, or the "
               "rest of one, begins in the row, and where the last one ends.",
    .flags = PRESTO_STEP_REGROUPS,
    .options = options,
    .option_count = OPTION_COUNT,
    .create = create,
    .destroy = free,
    .infer = infer,
    .run = run,
};
