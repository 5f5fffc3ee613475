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
static void array_release(struct ArrowArray *self) {
    owned *own = self->private_data;
    for (int64_t i = 0; i < self->n_children; i++) {
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
static bool array_init(struct ArrowArray *self, native_batch *batch, const shape *is) {
    owned *own = calloc(1, sizeof *own);
    *self =
        (struct ArrowArray){.length = is->length,
                            .n_buffers = is->buffers,
                            .children = calloc((size_t)is->children + 1, sizeof *self->children),
                            .release = array_release,
                            .private_data = own};
    if (own == NULL || self->children == NULL) {
        free(own);
        self->private_data = NULL;
        return false;
    }
    own->batch = Py_NewRef((PyObject *)batch);
    size_t next = 1;
    if (is->offsets != NULL)
        own->buffers[next++] = is->offsets;
    if (is->data != NULL)
        own->buffers[next] = is->data;
    self->buffers = own->buffers;
    for (; self->n_children < is->children; self->n_children++) {
        self->children[self->n_children] = calloc(1, sizeof **self->children);
        if (self->children[self->n_children] == NULL)
            return false;
    }
    return true;
}

static bool numbers(struct ArrowArray *self, native_batch *batch,
                    const presto_batch_feature *feature) {
    int64_t items = (int64_t)presto_spec_elements(&feature->tensor.spec);
    const shape is = {
        .length = items, .buffers = 2, .data = items == 0 ? nothing : feature->tensor.data};
    return array_init(self, batch, &is);
}

static bool strings(struct ArrowArray *self, native_batch *batch,
                    const presto_batch_feature *feature, int64_t count) {
    const shape is = {.length = count,
                      .buffers = 3,
                      .offsets = feature->offsets,
                      .data = feature->offsets[count] == 0 ? nothing : feature->tensor.data};
    return array_init(self, batch, &is);
}

static bool feature_array(struct ArrowArray *self, native_batch *batch,
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

bool arrow_array_of(native_batch *batch, struct ArrowArray *array_out) {
    const presto_batch *shown = batch->batch;
    struct ArrowArray array;
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

/* ---- capsules ---- */

static void drop_schema(PyObject *capsule) {
    struct ArrowSchema *schema = PyCapsule_GetPointer(capsule, "arrow_schema");
    if (schema != NULL && schema->release != NULL)
        schema->release(schema);
    free(schema);
}

static void drop_array(PyObject *capsule) {
    struct ArrowArray *array = PyCapsule_GetPointer(capsule, "arrow_array");
    if (array != NULL && array->release != NULL)
        array->release(array);
    free(array);
}

PyObject *native_batch_arrow(PyObject *object, PyObject *unused) {
    (void)unused;
    native_batch *batch = (native_batch *)(void *)object;
    const char *why = NULL;
    struct ArrowSchema *schema = calloc(1, sizeof *schema);
    struct ArrowArray *array = calloc(1, sizeof *array);
    bool is_made = schema != NULL && array != NULL && arrow_schema_of(batch->batch, schema, &why) &&
                   arrow_array_of(batch, array);
    PyObject *schema_capsule = is_made ? PyCapsule_New(schema, "arrow_schema", drop_schema) : NULL;
    PyObject *array_capsule =
        schema_capsule != NULL ? PyCapsule_New(array, "arrow_array", drop_array) : NULL;
    if (array_capsule != NULL)
        return Py_BuildValue("(NN)", schema_capsule, array_capsule);
    if (array != NULL && array->release != NULL)
        array->release(array);
    free(array);
    if (schema_capsule != NULL)
        Py_DECREF(schema_capsule); /* with the schema */
    else if (schema != NULL && schema->release != NULL)
        schema->release(schema);
    if (schema_capsule == NULL)
        free(schema);
    if (why != NULL)
        return native_fail(PRESTO_ERR_TYPE, why);
    return PyErr_Occurred() ? NULL : PyErr_NoMemory();
}
