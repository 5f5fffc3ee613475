/* SPDX-License-Identifier: Apache-2.0 */
/* What all sources have in common: counts, declared features, label names, truncation. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../loader_internal.h"
#include "source_internal.h"

void presto__source_done(presto_source *source) {
    for (size_t i = 0; i < source->feature_count; i++)
        free(source->features[i].name);
    free(source->features);
    for (size_t i = 0; i < source->seen_count; i++)
        free(source->seen[i].name);
    free(source->seen);
    for (size_t i = 0; i < source->label_count; i++)
        free(source->label_names[i]);
    free(source->label_names);
    for (size_t i = 0; i < source->note_count; i++)
        free(source->notes[i]);
    free(source->notes);
    free(source->note_kinds);
    free(source->main_feature);
    presto__subset_free(source->subset);
}

void presto__source_free(presto_source *source) {
    if (source != NULL)
        source->ops->free(source);
}

uint64_t presto__source_all(const presto_source *source) {
    return source->count == PRESTO_COUNT_UNKNOWN && source->ops->walk != NULL
               ? source->ops->walk->count(source)
               : source->count;
}

uint64_t presto_source_count(const presto_source *source) {
    return source->subset != NULL ? presto__subset_count(source->subset)
                                  : presto__source_all(source);
}

presto_status presto__source_settle(const presto_source *source, presto_error *err) {
    return presto_source_count(source) == PRESTO_COUNT_UNKNOWN && source->ops->walk != NULL
               ? source->ops->walk->settle(source, err)
               : PRESTO_OK;
}

uint64_t presto_source_bytes(const presto_source *source) {
    uint64_t count = source->subset != NULL ? presto__subset_count(source->subset) : source->count;
    if (count == source->full_count)
        return source->full_bytes;
    return (uint64_t)((double)source->full_bytes * (double)count / (double)source->full_count);
}

const presto_source_part *presto_source_parts(const presto_source *source, size_t *count_out) {
    *count_out = source->part_count;
    return source->parts;
}

uint64_t presto__source_positions(const presto_source *source) {
    uint64_t positions = source->part_count == 0 ? presto_source_count(source) : 0;
    for (size_t k = 0; k < source->part_count; k++)
        positions += source->parts[k].epoch_samples;
    return positions;
}

void presto__source_truncate(presto_source *source, uint64_t count) {
    if (source->part_count > 0)
        return;
    if (source->subset != NULL) {
        presto__subset_truncate(source->subset, count);
        return;
    }
    (void)presto__source_settle(source, NULL); /* what is wrong is told when it is read */
    if (count < presto_source_count(source))
        source->count = count;
}

const presto_feature_spec *presto_source_features(const presto_source *source, size_t *count_out) {
    *count_out = source->feature_count;
    return source->features;
}

const char *presto_source_main_feature(const presto_source *source) {
    return source->main_feature;
}

presto_tensor_spec presto__source_main_spec(const presto_source *source) {
    for (size_t i = 0; source->main_feature != NULL && i < source->feature_count; i++)
        if (strcmp(source->features[i].name, source->main_feature) == 0)
            return source->features[i].spec;
    return (presto_tensor_spec){.dtype = PRESTO_DTYPE_UNKNOWN, .rank = -1};
}

const char *const *presto_source_label_names(const presto_source *source, size_t *count_out) {
    *count_out = source->label_count;
    return (const char *const *)source->label_names;
}

const char *const *presto_source_notes(const presto_source *source, size_t *count_out) {
    *count_out = source->note_count;
    return (const char *const *)source->notes;
}

presto_note_kind presto_source_note_kind(const presto_source *source, size_t i) {
    return source->note_kinds[i];
}

presto_status presto__source_note(presto_source *source, const char *text, presto_error *err) {
    return presto__source_note_of(source, PRESTO_NOTE_CAUTION, text, err);
}

presto_status presto__source_note_of(presto_source *source, presto_note_kind kind, const char *text,
                                     presto_error *err) {
    size_t count = source->note_count;
    char **notes = realloc(source->notes, (count + 1) * sizeof *notes);
    if (notes == NULL)
        return presto_fail_memory(err, (count + 1) * sizeof *notes);
    source->notes = notes;
    presto_note_kind *kinds = realloc(source->note_kinds, (count + 1) * sizeof *kinds);
    if (kinds == NULL)
        return presto_fail_memory(err, (count + 1) * sizeof *kinds);
    source->note_kinds = kinds;
    kinds[count] = kind;
    notes[count] = strdup(text);
    if (notes[count] == NULL)
        return presto_fail_memory(err, strlen(text) + 1);
    source->note_count++;
    return PRESTO_OK;
}

presto_status presto__source_drop_cache(presto_source *source, presto_error *err) {
    return source->ops->drop_cache(source, err);
}

presto_status presto__source_declare(presto_source *source, const char *name,
                                     presto_encoding encoding, const presto_tensor_spec *spec,
                                     presto_error *err) {
    size_t count = source->feature_count;
    if ((count & (count - 1)) == 0) { /* there is room up to the next power of two */
        size_t room = count == 0 ? 1 : 2 * count;
        presto_feature_spec *grown = realloc(source->features, room * sizeof *grown);
        if (grown == NULL)
            return presto_fail_memory(err, room * sizeof *grown);
        source->features = grown;
    }
    char *copy = strdup(name);
    if (copy == NULL)
        return presto_fail_memory(err, strlen(name) + 1);
    source->features[count] =
        (presto_feature_spec){.name = copy, .encoding = encoding, .spec = *spec};
    source->feature_count++;
    return PRESTO_OK;
}

presto_status presto__source_saw(presto_source *source, const char *name,
                                 const presto_tensor_spec *spec, presto_error *err) {
    size_t bytes = (source->seen_count + 1) * sizeof *source->seen;
    presto_feature_spec *grown = realloc(source->seen, bytes);
    if (grown == NULL)
        return presto_fail_memory(err, bytes);
    source->seen = grown;
    char *copy = strdup(name);
    if (copy == NULL)
        return presto_fail_memory(err, strlen(name) + 1);
    source->seen[source->seen_count++] = (presto_feature_spec){.name = copy, .spec = *spec};
    return PRESTO_OK;
}

presto_status presto__source_set_main(presto_source *source, const char *name,
                                      const presto_tensor_spec *spec, presto_error *err) {
    char *copy = strdup(name);
    if (copy == NULL)
        return presto_fail_memory(err, strlen(name) + 1);
    free(source->main_feature);
    source->main_feature = copy;
    presto_encoding encoding = spec->dtype == PRESTO_STRING || spec->dtype == PRESTO_DTYPE_UNKNOWN
                                   ? PRESTO_ENCODE_BYTES
                                   : PRESTO_ENCODE_TENSOR;
    return presto__source_declare(source, name, encoding, spec, err);
}

void presto__source_keep_bytes(presto_source *source, bool has_steps) {
    size_t kept = 0;
    for (size_t i = 0; i < source->feature_count; i++) {
        presto_feature_spec *feature = &source->features[i];
        bool is_main = has_steps && source->main_feature != NULL &&
                       strcmp(feature->name, source->main_feature) == 0;
        if (feature->encoding != PRESTO_ENCODE_TENSOR || is_main) {
            source->features[kept++] = *feature;
        } else if (source->declares_all) {
            feature->encoding = PRESTO_ENCODE_BYTES;
            feature->spec = (presto_tensor_spec){.dtype = PRESTO_STRING};
            source->features[kept++] = *feature;
        } else { /* as each record shows it: a feature list is none of bytes */
            free(feature->name);
        }
    }
    source->feature_count = kept;
}

uint64_t presto__source_digest(const presto_source *source) {
    uint64_t digest = source->ops->digest(source);
    return source->subset == NULL ? digest : presto__fnv_mix(digest, source->subset_digest);
}

presto_status presto__source_identify(const presto_source *source,
                                      char text_out[PRESTO_SOURCE_IDENTITY_BYTES],
                                      presto_error *err) {
    presto__digest digest = {{0}};
    presto__digest_add(&digest, &source->full_count, sizeof source->full_count);
    PRESTO_TRY(source->ops->identify(source, false, &digest, err));
    snprintf(text_out, PRESTO_SOURCE_IDENTITY_BYTES, "%016" PRIx64 "%016" PRIx64, digest.state[0],
             digest.state[1]);
    return PRESTO_OK;
}

void presto__blocks_done(presto__blocks *blocks) {
    for (size_t i = 0; i < blocks->capacity; i++)
        presto_block_done(&blocks->items[i]);
    free(blocks->items);
    *blocks = (presto__blocks){0};
}

presto_status presto__blocks_reserve(presto__blocks *blocks, size_t count, presto_error *err) {
    if (count <= blocks->capacity)
        return PRESTO_OK;
    size_t capacity = blocks->capacity * 2 > count ? blocks->capacity * 2 : count;
    presto_block *items = realloc(blocks->items, capacity * sizeof *items);
    if (items == NULL)
        return presto_fail_memory(err, capacity * sizeof *items);
    memset(items + blocks->capacity, 0, (capacity - blocks->capacity) * sizeof *items);
    blocks->items = items;
    blocks->capacity = capacity;
    return PRESTO_OK;
}

size_t presto__blocks_memory(const presto__blocks *blocks) {
    size_t bytes = 0;
    for (size_t i = 0; i < blocks->capacity; i++)
        bytes += blocks->items[i].bytes_.capacity +
                 blocks->items[i].record_capacity_ * sizeof(presto_record);
    return bytes;
}

size_t presto__part_of(const uint64_t *first, size_t stride, size_t count, uint64_t number) {
    size_t low = 0, high = count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        uint64_t begin;
        memcpy(&begin, (const char *)(const void *)first + middle * stride, sizeof begin);
        if (begin <= number)
            low = middle;
        else
            high = middle;
    }
    return low;
}
