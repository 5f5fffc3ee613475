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
#define NULLABLE                                                                                   \
    ARROW_FLAG_NULLABLE /* nothing is missing, but types are equal to what libraries make by default */

static void schema_release(struct ArrowSchema *self) {
    for (int64_t i = 0; i < self->n_children; i++) {
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
static bool schema_init(struct ArrowSchema *self, const char *format, const char *name,
                        size_t children) {
    *self = (struct ArrowSchema){.format = strdup(format),
                                 .name = strdup(name),
                                 .flags = NULLABLE,
                                 .children = calloc(children + 1, sizeof *self->children),
                                 .release = schema_release};
    if (self->format == NULL || self->name == NULL || self->children == NULL)
        return false;
    for (; self->n_children < (int64_t)children; self->n_children++) {
        self->children[self->n_children] = calloc(1, sizeof **self->children);
        if (self->children[self->n_children] == NULL)
            return false;
    }
    return true;
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

static bool tensor_schema(struct ArrowSchema *self, const presto_batch_feature *feature) {
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
           schema_init(self->children[0], presto_dtype_arrow(spec->dtype), "item", 0);
}

static bool feature_schema(struct ArrowSchema *self, const presto_batch_feature *feature) {
    bool is_bytes = feature->layout == PRESTO_LAYOUT_BYTES;
    const char *item = is_bytes ? "Z" : presto_dtype_arrow(feature->tensor.spec.dtype);
    if (feature->layout == PRESTO_LAYOUT_DENSE && feature->tensor.spec.rank > 1)
        return tensor_schema(self, feature);
    if (feature->layout == PRESTO_LAYOUT_RAGGED || feature->row_offsets != NULL)
        return schema_init(self, "+L", feature->name, 1) &&
               schema_init(self->children[0], item, "item", 0);
    return schema_init(self, item, feature->name, 0);
}

bool arrow_schema_of(const presto_batch *batch, struct ArrowSchema *schema_out,
                     const char **why_out) {
    *why_out = NULL;
    for (size_t i = 0; i < batch->feature_count; i++)
        if (presto_dtype_arrow(batch->features[i].tensor.spec.dtype) == NULL) {
            *why_out = "Arrow has no complex numbers: choose other features";
            return false;
        }
    struct ArrowSchema schema;
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

bool arrow_schema_same(const struct ArrowSchema *a, const struct ArrowSchema *b) {
    size_t bytes = metadata_bytes(a->metadata);
    if (strcmp(a->format, b->format) != 0 || strcmp(a->name, b->name) != 0 ||
        a->n_children != b->n_children || bytes != metadata_bytes(b->metadata) ||
        (bytes > 0 && memcmp(a->metadata, b->metadata, bytes) != 0))
        return false;
    for (int64_t i = 0; i < a->n_children; i++)
        if (!arrow_schema_same(a->children[i], b->children[i]))
            return false;
    return true;
}

static bool copy_into(const struct ArrowSchema *from, struct ArrowSchema *to) {
    size_t bytes = metadata_bytes(from->metadata);
    if (!schema_init(to, from->format, from->name, (size_t)from->n_children))
        return false;
    if (bytes > 0) {
        char *metadata = malloc(bytes);
        if (metadata == NULL)
            return false;
        to->metadata = memcpy(metadata, from->metadata, bytes);
    }
    for (int64_t i = 0; i < from->n_children; i++)
        if (!copy_into(from->children[i], to->children[i]))
            return false;
    return true;
}

bool arrow_schema_copy(const struct ArrowSchema *schema, struct ArrowSchema *copy_out) {
    struct ArrowSchema copy;
    bool is_done = copy_into(schema, &copy);
    if (is_done)
        *copy_out = copy;
    else
        schema_release(&copy);
    return is_done;
}
