/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arrays of a batch, row by row. A batch is checked as far as the interface allows when it is
 * begun: that arrays are there, with the buffers and children of their types, and long enough for
 * their parents. Offsets of lists are checked when their row is read.
 *
 * A struct's child has row i where the struct has it, plus the child's own offset; so one number a
 * column says where row 0 is, however deep it lies. The same holds for bitmaps on the way.
 */
#include <inttypes.h>

#include "arrow_internal.h"

static presto_status fail_lying(const presto__arrow_column *column, const char *what,
                                presto_error *err) {
    return presto_fail(err, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET, "column '%s': %s", column->name,
                       what);
}

/* ---- a batch ---- */

static void add_mask(presto__arrow_column *column, const struct ArrowArray *array, int64_t base) {
    const uint8_t *bits = array->n_buffers == 0 ? NULL : presto__arrow_validity(array);
    if (bits != NULL)
        column->masks[column->mask_count++] = (presto__arrow_mask){bits, base};
}

/* One level of lists. *child_out: the array of what is in them. */
static presto_status bind_list(presto__arrow_column *column, int level,
                               const struct ArrowArray *array, const struct ArrowArray **child_out,
                               presto_error *err) {
    presto__arrow_list *list = &column->lists[level];
    int64_t least;
    PRESTO_TRY(presto__arrow_array_check(column, array, list->offset_bytes == 0 ? 1 : 2, err));
    if (array->n_children != 1 || array->children == NULL || array->children[0] == NULL)
        return fail_lying(column, "a list has not one child", err);
    const struct ArrowArray *child = array->children[0];
    if (child->length < 0 || child->offset < 0)
        return fail_lying(column, "the array's length or offset is impossible", err);
    list->validity = presto__arrow_validity(array);
    list->offsets = list->offset_bytes == 0 ? NULL : array->buffers[1];
    list->child_length = child->length;
    list->child_offset = child->offset;
    if (list->offset_bytes != 0 && array->length > 0 && list->offsets == NULL)
        return fail_lying(column, "the array has values, but no buffer", err);
    if (list->offset_bytes == 0 &&
        (__builtin_mul_overflow(array->offset + array->length, list->items, &least) ||
         least > child->length))
        return fail_lying(column, "a child is shorter than its lists", err);
    *child_out = child;
    return PRESTO_OK;
}

static presto_status bind_column(presto__arrow_column *column, const struct ArrowArray *root,
                                 presto_error *err) {
    const struct ArrowArray *array = root;
    int64_t base = root->offset;
    column->mask_count = 0;
    add_mask(column, root, base);
    for (size_t i = 0; i < column->depth; i++) {
        const presto__arrow_step *step = &column->path[i];
        if (array->n_children != (int64_t)step->children || array->children == NULL)
            return fail_lying(column, "a struct has not as many fields as its schema", err);
        array = array->children[step->child];
        if (array == NULL || array->release == NULL || array->offset < 0 || array->length < 0 ||
            array->length - root->length < base ||
            __builtin_add_overflow(base, array->offset, &base))
            return fail_lying(column, "a field is shorter than its struct", err);
        if (i + 1 == column->depth)
            break;
        PRESTO_TRY(presto__arrow_array_check(column, array, 1, err));
        add_mask(column, array, base);
    }
    column->base = base;
    const struct ArrowArray *values = array;
    for (int level = 0; level < column->list_count; level++)
        PRESTO_TRY(bind_list(column, level, values, &values, err));
    PRESTO_TRY(presto__arrow_values_bind(column, values, err));
    add_mask(column, array, base);
    return PRESTO_OK;
}

presto_status presto__arrow_begin(presto_arrow *arrow, const struct ArrowArray *array,
                                  presto_error *err) {
    int64_t end;
    if (array == NULL || array->release == NULL)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "the batch is released already");
    if (array->n_children != (int64_t)arrow->children || array->n_buffers != 1 ||
        array->buffers == NULL)
        return presto_fail(err, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET,
                           "the batch has %" PRId64 " columns, its schema %zu", array->n_children,
                           arrow->children);
    if (array->length < 0 || array->offset < 0 || array->null_count < -1 ||
        __builtin_add_overflow(array->length, array->offset, &end) ||
        (array->null_count > 0 && array->buffers[0] == NULL))
        return presto_fail(err, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET,
                           "the batch's length or offset is impossible");
    arrow->rows = array->length;
    for (size_t i = 0; i < arrow->count; i++) {
        presto__arrow_column *column = &arrow->columns[i];
        column->has_value = column->has_null = false;
        column->row = -1;
        column->varied = 0;
        PRESTO_TRY(bind_column(column, array, err));
    }
    return PRESTO_OK;
}

/* ---- a row ---- */

static presto_status fail_row(const presto__arrow_column *column, int64_t row, presto_status status,
                              const char *what, presto_error *err) {
    return presto_fail(err, status, PRESTO_NO_OFFSET,
                       "column '%s', row %" PRId64 " of its batch: %s", column->name, row, what);
}

static int64_t load_offset(const presto__arrow_list *list, int64_t at) {
    int32_t narrow;
    int64_t wide;
    if (list->offset_bytes == 8)
        return memcpy(&wide, list->offsets + 8 * at, sizeof wide), wide;
    return memcpy(&narrow, list->offsets + 4 * at, sizeof narrow), narrow;
}

/* Are the lists [first, end), of which there are any, as long as each other? */
static bool are_even(const presto__arrow_list *list, int64_t first, int64_t end, int64_t length) {
    int64_t before = load_offset(list, first);
    for (int64_t at = first + 1; at <= end; at++) {
        int64_t next = load_offset(list, at);
        if ((uint64_t)next - (uint64_t)before != (uint64_t)length)
            return false;
        before = next;
    }
    return true;
}

/* Lists [*first_io, *end_io) become what is in them. *length_out: how long each is. */
static presto_status open_lists(const presto__arrow_column *column, int level, int64_t row,
                                int64_t *first_io, int64_t *end_io, int64_t *length_out,
                                presto_error *err) {
    const presto__arrow_list *list = &column->lists[level];
    int64_t first = *first_io, end = *end_io, lists = end - first;
    int64_t from = 0, to = 0, length = list->offset_bytes == 0 ? list->items : 0;
    for (int64_t at = first; level > 0 && list->validity != NULL && at < end; at++)
        if (!presto__arrow_bit(list->validity, at))
            return fail_row(column, row, PRESTO_ERR_TYPE,
                            "a list in the list is missing, which cannot be stored", err);
    if (list->offset_bytes == 0) {
        from = first * list->items; /* bound: it fits */
        to = end * list->items;
    } else if (lists > 0) {
        from = load_offset(list, first);
        to = load_offset(list, end);
        if (from < 0 || to < from || to > list->child_length)
            return fail_row(column, row, PRESTO_ERR_CORRUPT,
                            "offsets lie beyond what they point to", err);
        length = (to - from) / lists;
        if (level > 0 && !are_even(list, first, end, length))
            return fail_row(column, row, PRESTO_ERR_RAGGED,
                            "the lists in the list differ in length, so that they are no tensor",
                            err);
    }
    *first_io = from + list->child_offset;
    *end_io = to + list->child_offset;
    *length_out = length;
    return PRESTO_OK;
}

/* Does `count`, of lists or of values in them, end at a dimension of the tensor that they are? */
static bool ends_dimension(const presto_tensor_spec *spec, int64_t count) {
    int64_t product = 1; /* fits: the tensor's bytes do, and a dimension of 0 makes all 0 */
    for (int i = 0; i < spec->rank && product != count; i++)
        product *= spec->dims[i];
    return product == count;
}

static presto_status check_tensor(const presto__arrow_column *column, int64_t row, int level,
                                  int64_t count, presto_error *err) {
    char text[PRESTO_SPEC_TEXT_BYTES];
    bool is_last = level + 1 == column->list_count;
    bool fits = is_last ? count == (int64_t)presto_spec_elements(&column->tensor)
                        : ends_dimension(&column->tensor, count);
    return fits ? PRESTO_OK
                : presto_fail(err, PRESTO_ERR_RAGGED, PRESTO_NO_OFFSET,
                              "column '%s', row %" PRId64 " of its batch: %" PRId64 " %s are no %s",
                              column->name, row, count, is_last ? "values" : "lists",
                              presto_spec_format(&column->tensor, text, sizeof text));
}

static presto_status read_lists(presto__arrow_column *column, int64_t row, presto_tensor *tensor,
                                presto_error *err) {
    int64_t first = row + column->base, end = first + 1;
    presto_tensor_spec *spec = &tensor->spec;
    for (int level = 0; level < column->list_count; level++) {
        int64_t length;
        PRESTO_TRY(open_lists(column, level, row, &first, &end, &length, err));
        if (column->is_tensor)
            PRESTO_TRY(check_tensor(column, row, level, end - first, err));
        else
            spec->dims[level] = length;
    }
    PRESTO_TRY(presto__arrow_values_read(column, first, end, tensor, err));
    return column->missing == end
               ? PRESTO_OK
               : fail_row(column, row, PRESTO_ERR_TYPE,
                          "a value in the list is missing, which cannot be stored", err);
}

static bool is_masked(const presto__arrow_column *column, int64_t row) {
    for (size_t i = 0; i < column->mask_count; i++)
        if (!presto__arrow_bit(column->masks[i].bits, row + column->masks[i].base))
            return true;
    return false;
}

/* The row has no value: a missing one is told once. */
static presto_status take_null(presto_arrow *arrow, presto__arrow_column *column, int64_t row,
                               presto_error *err) {
    if (arrow->refuses_nulls)
        return fail_row(column, row, PRESTO_ERR_TYPE, "the value is missing", err);
    if (!column->is_told && arrow->on_note != NULL)
        arrow->on_note(arrow->on_note_user, PRESTO_ARROW_NULLS, column->name,
                       "has missing values: such rows are stored without a value");
    column->is_told = true;
    return PRESTO_OK;
}

/* Has no row before had a value of these dims, or none? */
static bool is_news(presto__arrow_column *column, const presto_feature *feature) {
    const presto_tensor_spec *spec = &feature->tensor.spec;
    if (feature->encoding == PRESTO_ENCODE_NONE) {
        bool is_first = !column->has_null;
        column->has_null = true;
        return is_first;
    }
    bool is_new = !column->has_value;
    if (is_new)
        memcpy(column->dims, spec->dims, sizeof column->dims);
    column->has_value = true;
    for (int i = 0; i < column->list_count && i < spec->rank; i++)
        if (column->dims[i] != spec->dims[i] && (column->varied >> i & 1) == 0) {
            column->varied |= 1U << i;
            is_new = true;
        }
    return is_new;
}

static presto_status read_value(presto__arrow_column *column, int64_t row, presto_feature *feature,
                                bool *is_null_out, presto_error *err) {
    int64_t at = row + column->base;
    *is_null_out = column->mask_count > 0 && is_masked(column, row);
    if (*is_null_out)
        return PRESTO_OK;
    if (column->list_count > 0)
        return read_lists(column, row, &feature->tensor, err);
    PRESTO_TRY(presto__arrow_values_read(column, at, at + 1, &feature->tensor, err));
    *is_null_out = column->missing == at; /* of a dictionary */
    return PRESTO_OK;
}

presto_status presto__arrow_row(presto_arrow *arrow, int64_t row, bool *news_out,
                                presto_error *err) {
    *news_out = false;
    for (size_t i = 0; i < arrow->count; i++) {
        presto__arrow_column *column = &arrow->columns[i];
        presto_feature *feature = &arrow->features[i];
        bool is_null;
        column->row = row;
        if (feature->encoding != column->encoding)
            *feature = (presto_feature){
                feature->name, column->encoding, {.spec = column->tensor, {.data = NULL}}};
        PRESTO_TRY(read_value(column, row, feature, &is_null, err));
        if (is_null) {
            PRESTO_TRY(take_null(arrow, column, row, err));
            *feature = (presto_feature){.name = feature->name, .encoding = PRESTO_ENCODE_NONE};
        }
        if (is_news(column, feature))
            *news_out = true;
    }
    return PRESTO_OK;
}
