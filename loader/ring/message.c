/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks what a writer says of a batch. The writer may be hostile: no place or size is used before
 * it is known to be inside of the memory, and what values are found by is copied before it is
 * checked, as the memory may change at any time.
 */
#include "ring_internal.h"

#include <stdlib.h>
#include <string.h>

#include <presto/text.h>

/* A batch while it is parsed. */
typedef struct parsing {
    presto__ring_batch said;
    const uint8_t *memory; /* of the batch */
    presto_span names;     /* that follow */
    presto__ring_item *item;
    uint64_t copied; /* bytes; no more than the batch has, whatever is said */
    presto_error *err;
} parsing;

static presto_status fail(const parsing *self, const char *what) {
    return presto_fail(self->err, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET,
                       "the writer of the ring says what cannot be: %s", what);
}

/* So many bytes at a place of the batch; NULL: they are not within it, or not aligned. */
static const void *inside(const parsing *self, uint64_t at, uint64_t bytes) {
    bool fits = at % PRESTO__RING_ALIGNMENT == 0 && at <= self->said.bytes &&
                bytes <= self->said.bytes - at;
    return fits ? self->memory + at : NULL;
}

/* A copy of `count` numbers; `count` is at most what the memory could hold. */
static presto_status copy_numbers(parsing *self, uint64_t at, uint64_t count,
                                  const int64_t **copy_out) {
    if (count > (self->said.bytes - self->copied) / sizeof(int64_t))
        return fail(self, "more rows than fit");
    self->copied += count * sizeof(int64_t);
    const void *from = inside(self, at, count * sizeof(int64_t));
    if (from == NULL)
        return fail(self, "offsets outside of the batch");
    int64_t *copy = presto_arena_alloc(&self->item->arena, count * sizeof *copy, sizeof *copy);
    if (copy == NULL)
        return presto_fail_memory(self->err, count * sizeof *copy);
    memcpy(copy, from, count * sizeof *copy);
    *copy_out = copy;
    return PRESTO_OK;
}

/* From 0 on, never down. */
static presto_status copy_offsets(parsing *self, uint64_t at, uint64_t count,
                                  const int64_t **copy_out) {
    const int64_t *copy;
    PRESTO_TRY(copy_numbers(self, at, count, &copy));
    for (uint64_t i = 0; i < count; i++)
        if (copy[i] < (i == 0 ? 0 : copy[i - 1]) || (i == 0 && copy[i] != 0))
            return fail(self, "offsets that do not grow");
    *copy_out = copy;
    return PRESTO_OK;
}

/* Values of a row with these dims, up to the first -1; -1: more than `most`, or no shape. */
static int64_t shape_items(const int64_t *dims, uint64_t rank, int64_t most) {
    const int64_t limit = INT64_MAX / 16; /* in bytes, of any dtype */
    int64_t items = 1;
    bool is_empty = false;
    for (uint64_t i = 0; i < rank && dims[i] != -1; i++) {
        if (dims[i] < 0 || (dims[i] > 0 && items > limit / dims[i]))
            return -1;
        is_empty = is_empty || dims[i] == 0;
        items *= dims[i] > 0 ? dims[i] : 1;
    }
    if (is_empty)
        return 0;
    return items <= most ? items : -1;
}

static presto_status check_shapes(const parsing *self, const presto_batch_feature *feature) {
    const int64_t *offsets = feature->offsets;
    for (size_t row = 0; row < self->said.rows; row++) {
        int64_t items = offsets[row + 1] - offsets[row];
        const int64_t *dims = feature->shapes + row * feature->shape_rank;
        if (shape_items(dims, feature->shape_rank, INT64_MAX) != items)
            return fail(self, "a row's shape is not that of its values");
    }
    return PRESTO_OK;
}

/* Offsets, rows and shapes, as its layout has them. */
static presto_status take_lists(parsing *self, const presto__ring_feature *said,
                                presto_batch_feature *feature) {
    uint64_t rows = self->said.rows, strings = rows;
    if (feature->layout == PRESTO_LAYOUT_DENSE)
        return PRESTO_OK;
    if (feature->layout == PRESTO_LAYOUT_BYTES && said->rows_at != PRESTO__RING_NOTHING) {
        PRESTO_TRY(copy_offsets(self, said->rows_at, rows + 1, &feature->row_offsets));
        strings = (uint64_t)feature->row_offsets[rows];
        if (strings >= self->said.bytes)
            return fail(self, "more strings than fit");
    }
    PRESTO_TRY(copy_offsets(self, said->offsets_at, strings + 1, &feature->offsets));
    if (feature->offsets[strings] != feature->tensor.spec.dims[0])
        return fail(self, "offsets that do not end with the values");
    if (feature->layout == PRESTO_LAYOUT_BYTES || said->shapes_at == PRESTO__RING_NOTHING)
        return PRESTO_OK;
    if (said->shape_rank == 0 || said->shape_rank > PRESTO_MAX_RANK)
        return fail(self, "the rank of shapes");
    feature->shape_rank = (size_t)said->shape_rank;
    PRESTO_TRY(copy_numbers(self, said->shapes_at, rows * said->shape_rank, &feature->shapes));
    return check_shapes(self, feature);
}

static presto_status take_values(const parsing *self, const presto__ring_feature *said,
                                 presto_batch_feature *feature) {
    presto_tensor_spec spec = {.dtype = (presto_dtype)said->dtype, .rank = (int)said->rank};
    if (said->layout > PRESTO_LAYOUT_BYTES || said->encoding > PRESTO_ENCODE_NONE ||
        said->dtype > PRESTO_UINT64 || presto_dtype_bytes(spec.dtype) == 0)
        return fail(self, "a feature of no known kind");
    feature->layout = (presto_layout)said->layout;
    feature->encoding = (presto_encoding)said->encoding;
    bool is_dense = feature->layout == PRESTO_LAYOUT_DENSE;
    if (said->rank < 1 || said->rank > PRESTO_MAX_RANK || (!is_dense && said->rank != 1) ||
        (feature->layout == PRESTO_LAYOUT_BYTES && spec.dtype != PRESTO_UINT8))
        return fail(self, "a feature whose values do not fit its layout");
    memcpy(spec.dims, said->dims, (size_t)said->rank * sizeof *spec.dims);
    int64_t most = (int64_t)(self->said.bytes / presto_dtype_bytes(spec.dtype));
    for (int i = 0; i < spec.rank; i++)
        if (spec.dims[i] < 0)
            return fail(self, "a negative dimension");
    int64_t items = shape_items(spec.dims, said->rank, most);
    if (items < 0 || items > most || (is_dense && (uint64_t)spec.dims[0] != self->said.rows))
        return fail(self, "a shape that does not fit");
    feature->tensor.spec = spec;
    feature->tensor.data =
        inside(self, said->values_at, (uint64_t)items * presto_dtype_bytes(spec.dtype));
    return feature->tensor.data != NULL ? PRESTO_OK : fail(self, "values outside of the batch");
}

static presto_status take_feature(parsing *self, const presto__ring_feature *said,
                                  presto_batch_feature *feature) {
    if (said->name_bytes > self->names.bytes)
        return fail(self, "a name longer than the message");
    size_t bytes = (size_t)said->name_bytes;
    char *name = presto_arena_alloc(&self->item->arena, bytes + 1, 1);
    if (name == NULL)
        return presto_fail_memory(self->err, bytes + 1);
    memcpy(name, self->names.data, bytes);
    name[bytes] = '\0';
    if (memchr(name, '\0', bytes) != NULL)
        return fail(self, "a name with a NUL");
    self->names = presto_span_of(self->names.data + bytes, self->names.bytes - bytes);
    *feature = (presto_batch_feature){.name = name};
    PRESTO_TRY(take_values(self, said, feature));
    return take_lists(self, said, feature);
}

static presto_status take_features(parsing *self, const uint8_t *from) {
    size_t count = (size_t)self->said.feature_count;
    presto_batch_feature *features =
        presto_arena_alloc(&self->item->arena, (count + 1) * sizeof *features, sizeof(uint64_t));
    if (features == NULL)
        return presto_fail_memory(self->err, count * sizeof *features);
    for (size_t i = 0; i < count; i++) {
        presto__ring_feature said;
        memcpy(&said, from + i * sizeof said, sizeof said);
        PRESTO_TRY(take_feature(self, &said, &features[i]));
    }
    const presto__ring_batch *said = &self->said;
    presto_batch *batch = &self->item->shown;
    batch->features = features;
    batch->feature_count = count;
    batch->main_feature = said->main_feature < count ? (size_t)said->main_feature : SIZE_MAX;
    return PRESTO_OK;
}

static presto_status take_batch(parsing *self, const uint8_t *features) {
    const presto__ring_batch *said = &self->said;
    const void *numbers = NULL;
    if (said->rows <= said->bytes / sizeof(uint64_t))
        numbers = inside(self, said->numbers_at, said->rows * sizeof(uint64_t));
    if (numbers == NULL)
        return fail(self, "more rows than fit");
    self->item->id = said->id;
    self->item->shown = (presto_batch){.epoch = said->epoch,
                                       .first = said->first,
                                       .rows = (size_t)said->rows,
                                       .skipped = (size_t)said->skipped,
                                       .sample_numbers = numbers};
    return take_features(self, features);
}

presto_status presto__ring_parse(presto_span message, const uint8_t *memory, uint64_t bytes,
                                 presto__ring_item **item_out, presto_error *err) {
    parsing self = {.err = err};
    presto__ring_batch *said = &self.said;
    if (message.bytes < sizeof *said)
        return fail(&self, "a batch without a head");
    memcpy(said, message.data, sizeof *said);
    size_t rest = message.bytes - sizeof *said;
    if (said->feature_count > PRESTO__RING_MOST_FEATURES ||
        said->feature_count > rest / sizeof(presto__ring_feature))
        return fail(&self, "more features than the message has");
    if (said->place % PRESTO__RING_ALIGNMENT != 0 || said->place > bytes ||
        said->bytes > bytes - said->place)
        return fail(&self, "a batch outside of the memory");
    size_t used = (size_t)said->feature_count * sizeof(presto__ring_feature);
    const uint8_t *features = message.data + sizeof *said;
    self.memory = memory + said->place;
    self.names = presto_span_of(features + used, rest - used);
    self.item = calloc(1, sizeof *self.item);
    if (self.item == NULL)
        return presto_fail_memory(err, sizeof *self.item);
    presto_arena_init(&self.item->arena, 2048);
    presto_status status = take_batch(&self, features);
    if (status >= 0)
        *item_out = self.item;
    else
        presto__ring_item_free(self.item);
    return status;
}

void presto__ring_item_free(presto__ring_item *item) {
    presto_arena_done(&item->arena);
    free(item);
}

/* Text of the writer's, as much as there is room for. */
static void take_text(presto_span *rest, uint64_t bytes, char *out, size_t room) {
    size_t most = bytes < rest->bytes ? (size_t)bytes : rest->bytes;
    size_t kept = most < room ? most : room - 1;
    memcpy(out, rest->data, kept);
    out[kept] = '\0';
    *rest = presto_span_of(rest->data + most, rest->bytes - most);
}

presto_status presto__ring_parse_error(presto_span message, presto_error *err) {
    presto__ring_error said;
    presto_error told;
    char message_text[sizeof told.message];
    if (message.bytes < sizeof said)
        return presto_fail(err, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET,
                           "the writer of the ring failed without a reason");
    memcpy(&said, message.data, sizeof said);
    presto_span rest = presto_span_of(message.data + sizeof said, message.bytes - sizeof said);
    bool is_known = said.status < 0 && said.status >= PRESTO_ERR_FOREIGN;
    presto_error_set(&told, is_known ? (presto_status)said.status : PRESTO_ERR_CORRUPT, said.offset,
                     "%s", "");
    take_text(&rest, said.file_bytes, told.file, sizeof told.file);
    take_text(&rest, said.message_bytes, message_text, sizeof message_text);
    presto_text_show(presto_span_of_text(message_text), told.message, sizeof told.message);
    told.sys_errno = said.sys_errno > 0 && said.sys_errno < 4096 ? (int)said.sys_errno : 0;
    told.record = said.record;
    if (err != NULL)
        *err = told;
    return told.status;
}
