/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Schemas: dense numbers are primitive, or tensors of fixed shape (the canonical extension type);
 * ragged ones are lists; bytes are binary. Offsets are 64 bits wide, as in batches.
 */
#include "native_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXTENSION_NAME "ARROW:extension:name"
#define EXTENSION_METADATA "ARROW:extension:metadata"
#define TENSOR_NAME "arrow.fixed_shape_tensor"
#define NULLABLE 2 /* nothing is missing, but types are equal to what libraries make by default */

static void schema_release(arrow_schema *self) {
    for (int64_t i = 0; i < self->child_count; i++) {
        if (self->children[i]->release != NULL)
            self->children[i]->release(self->children[i]);
        free(self->children[i]);
    }
    free(self->children);
    free((void *)(uintptr_t)self->format);
    free((void *)(uintptr_t)self->name);
    free((void *)(uintptr_t)self->metadata);
    self->release = NULL;
}

/* With `children` empty schemas below it. False: no memory; what there is can be released. */
static bool schema_init(arrow_schema *self, const char *format, const char *name, size_t children) {
    *self = (arrow_schema){.format = strdup(format),
                           .name = strdup(name),
                           .flags = NULLABLE,
                           .children = calloc(children + 1, sizeof *self->children),
                           .release = schema_release};
    if (self->format == NULL || self->name == NULL || self->children == NULL)
        return false;
    for (; self->child_count < (int64_t)children; self->child_count++) {
        self->children[self->child_count] = calloc(1, sizeof **self->children);
        if (self->children[self->child_count] == NULL)
            return false;
    }
    return true;
}

/* NULL: Arrow has no such type. Booleans are bits there, and bytes here; bfloat16 is shown as its
 * bits. */
static const char *format_of(presto_dtype dtype) {
    static const char *const formats[] = {
        [PRESTO_FLOAT32] = "f",  [PRESTO_FLOAT64] = "g", [PRESTO_INT32] = "i",
        [PRESTO_UINT8] = "C",    [PRESTO_INT16] = "s",   [PRESTO_INT8] = "c",
        [PRESTO_INT64] = "l",    [PRESTO_BOOL] = "C",    [PRESTO_UINT16] = "S",
        [PRESTO_BFLOAT16] = "S", [PRESTO_FLOAT16] = "e", [PRESTO_UINT32] = "I",
        [PRESTO_UINT64] = "L"};
    return (size_t)dtype < sizeof formats / sizeof *formats ? formats[dtype] : NULL;
}

static size_t put_text(char *to, const char *text) {
    int32_t bytes = (int32_t)strlen(text);
    memcpy(to, &bytes, sizeof bytes);
    memcpy(to + sizeof bytes, text, (size_t)bytes);
    return sizeof bytes + (size_t)bytes;
}

/* {"shape":[224,224,3]} of one row. */
static char *tensor_metadata(const presto_tensor_spec *spec) {
    char shape[32 * PRESTO_MAX_RANK + 16] = "{\"shape\":[";
    size_t used = strlen(shape);
    for (int i = 1; i < spec->rank; i++)
        used += (size_t)snprintf(shape + used, sizeof shape - used, "%s%lld", i > 1 ? "," : "",
                                 (long long)spec->dims[i]);
    snprintf(shape + used, sizeof shape - used, "]}");
    char *metadata = calloc(1, sizeof shape + 128);
    if (metadata == NULL)
        return NULL;
    int32_t pairs = 2;
    memcpy(metadata, &pairs, sizeof pairs);
    size_t at = sizeof pairs;
    at += put_text(metadata + at, EXTENSION_NAME);
    at += put_text(metadata + at, TENSOR_NAME);
    at += put_text(metadata + at, EXTENSION_METADATA);
    (void)put_text(metadata + at, shape);
    return metadata;
}

static bool tensor_schema(arrow_schema *self, const presto_batch_feature *feature) {
    const presto_tensor_spec *spec = &feature->tensor.spec;
    char list[48];
    int64_t items = 1;
    for (int i = 1; i < spec->rank; i++)
        items *= spec->dims[i];
    snprintf(list, sizeof list, "+w:%lld", (long long)items);
    if (!schema_init(self, list, feature->name, 1))
        return false;
    self->metadata = tensor_metadata(spec);
    return self->metadata != NULL &&
           schema_init(self->children[0], format_of(spec->dtype), "item", 0);
}

static bool feature_schema(arrow_schema *self, const presto_batch_feature *feature) {
    bool is_bytes = feature->layout == PRESTO_LAYOUT_BYTES;
    const char *item = is_bytes ? "Z" : format_of(feature->tensor.spec.dtype);
    if (feature->layout == PRESTO_LAYOUT_DENSE && feature->tensor.spec.rank > 1)
        return tensor_schema(self, feature);
    if (feature->layout == PRESTO_LAYOUT_RAGGED || feature->row_offsets != NULL)
        return schema_init(self, "+L", feature->name, 1) &&
               schema_init(self->children[0], item, "item", 0);
    return schema_init(self, item, feature->name, 0);
}

bool arrow_schema_of(const presto_batch *batch, arrow_schema *schema_out, const char **why_out) {
    *why_out = NULL;
    for (size_t i = 0; i < batch->feature_count; i++)
        if (format_of(batch->features[i].tensor.spec.dtype) == NULL) {
            *why_out = "Arrow has no complex numbers: choose other features";
            return false;
        }
    arrow_schema schema;
    bool is_done = schema_init(&schema, "+s", "", batch->feature_count);
    for (size_t i = 0; i < batch->feature_count && is_done; i++)
        is_done = feature_schema(schema.children[i], &batch->features[i]);
    if (is_done)
        *schema_out = schema;
    else
        schema_release(&schema);
    return is_done;
}

/* ---- copies, comparison ---- */

/* A number of pairs, then texts, each behind its length. */
static size_t metadata_bytes(const char *metadata) {
    int32_t pairs, bytes;
    if (metadata == NULL)
        return 0;
    memcpy(&pairs, metadata, sizeof pairs);
    size_t at = sizeof pairs;
    for (int32_t i = 0; i < 2 * pairs; i++) {
        memcpy(&bytes, metadata + at, sizeof bytes);
        at += sizeof bytes + (size_t)bytes;
    }
    return at;
}

bool arrow_schema_same(const arrow_schema *a, const arrow_schema *b) {
    size_t bytes = metadata_bytes(a->metadata);
    if (strcmp(a->format, b->format) != 0 || strcmp(a->name, b->name) != 0 ||
        a->child_count != b->child_count || bytes != metadata_bytes(b->metadata) ||
        (bytes > 0 && memcmp(a->metadata, b->metadata, bytes) != 0))
        return false;
    for (int64_t i = 0; i < a->child_count; i++)
        if (!arrow_schema_same(a->children[i], b->children[i]))
            return false;
    return true;
}

static bool copy_into(const arrow_schema *from, arrow_schema *to) {
    size_t bytes = metadata_bytes(from->metadata);
    if (!schema_init(to, from->format, from->name, (size_t)from->child_count))
        return false;
    if (bytes > 0) {
        char *metadata = malloc(bytes);
        if (metadata == NULL)
            return false;
        to->metadata = memcpy(metadata, from->metadata, bytes);
    }
    for (int64_t i = 0; i < from->child_count; i++)
        if (!copy_into(from->children[i], to->children[i]))
            return false;
    return true;
}

bool arrow_schema_copy(const arrow_schema *schema, arrow_schema *copy_out) {
    arrow_schema copy;
    bool is_done = copy_into(schema, &copy);
    if (is_done)
        *copy_out = copy;
    else
        schema_release(&copy);
    return is_done;
}
