/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays on a batch's memory. Each of them keeps the batch by itself, as a consumer may take it out
 * of its struct. */
#include "native_internal.h"

#include <stdlib.h>

static const _Alignas(64) uint8_t nothing[64];

typedef struct owned {
    PyObject *batch;
    const void *buffers[3];
} owned;

/* Called by the consumer, on any thread. */
static void array_release(arrow_array *self) {
    owned *own = self->owned;
    for (int64_t i = 0; i < self->child_count; i++) {
        if (self->children[i]->release != NULL)
            self->children[i]->release(self->children[i]);
        free(self->children[i]);
    }
    free(self->children);
    native_visit visit;
    if (own != NULL && native_enter(&visit)) { /* else the process ends, and its memory with it */
        Py_DECREF(own->batch);
        native_exit(&visit);
    }
    free(own);
    self->release = NULL;
}

/* What an array is, beside its children. */
typedef struct shape {
    int64_t length, buffers, children;
    const void *offsets,
        *data; /* in this order behind the validity, which is NULL: all are valid */
} shape;

/* False: no memory; what there is can be released. */
static bool array_init(arrow_array *self, native_batch *batch, const shape *is) {
    owned *own = calloc(1, sizeof *own);
    *self = (arrow_array){.length = is->length,
                          .buffer_count = is->buffers,
                          .children = calloc((size_t)is->children + 1, sizeof *self->children),
                          .release = array_release,
                          .owned = own};
    if (own == NULL || self->children == NULL) {
        free(own);
        self->owned = NULL;
        return false;
    }
    own->batch = Py_NewRef((PyObject *)batch);
    size_t next = 1;
    if (is->offsets != NULL)
        own->buffers[next++] = is->offsets;
    if (is->data != NULL)
        own->buffers[next] = is->data;
    self->buffers = own->buffers;
    for (; self->child_count < is->children; self->child_count++) {
        self->children[self->child_count] = calloc(1, sizeof **self->children);
        if (self->children[self->child_count] == NULL)
            return false;
    }
    return true;
}

static bool numbers(arrow_array *self, native_batch *batch, const presto_batch_feature *feature) {
    int64_t items = (int64_t)presto_spec_elements(&feature->tensor.spec);
    const shape is = {
        .length = items, .buffers = 2, .data = items == 0 ? nothing : feature->tensor.data};
    return array_init(self, batch, &is);
}

static bool strings(arrow_array *self, native_batch *batch, const presto_batch_feature *feature,
                    int64_t count) {
    const shape is = {.length = count,
                      .buffers = 3,
                      .offsets = feature->offsets,
                      .data = feature->offsets[count] == 0 ? nothing : feature->tensor.data};
    return array_init(self, batch, &is);
}

static bool feature_array(arrow_array *self, native_batch *batch,
                          const presto_batch_feature *feature) {
    int64_t rows = (int64_t)batch->batch->rows;
    shape list = {.length = rows, .buffers = 2, .children = 1};
    if (feature->layout == PRESTO_LAYOUT_DENSE) {
        if (feature->tensor.spec.rank < 2)
            return numbers(self, batch, feature);
        list.buffers = 1; /* all lists have one length */
        return array_init(self, batch, &list) && numbers(self->children[0], batch, feature);
    }
    if (feature->layout == PRESTO_LAYOUT_RAGGED) {
        list.offsets = feature->offsets;
        return array_init(self, batch, &list) && numbers(self->children[0], batch, feature);
    }
    if (feature->row_offsets == NULL)
        return strings(self, batch, feature, rows);
    list.offsets = feature->row_offsets;
    return array_init(self, batch, &list) &&
           strings(self->children[0], batch, feature, feature->row_offsets[rows]);
}

bool arrow_array_of(native_batch *batch, arrow_array *array_out) {
    const presto_batch *shown = batch->batch;
    arrow_array array;
    const shape is = {
        .length = (int64_t)shown->rows, .buffers = 1, .children = (int64_t)shown->feature_count};
    bool is_done = array_init(&array, batch, &is);
    for (size_t i = 0; i < shown->feature_count && is_done; i++)
        is_done = feature_array(array.children[i], batch, &shown->features[i]);
    if (is_done)
        *array_out = array;
    else
        array_release(&array);
    return is_done;
}
