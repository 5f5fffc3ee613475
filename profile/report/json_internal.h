/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room report: a sweep's results as files: CSV, JSON, and the page in page/. This header says how
 * results.json is put together from its parts.
 * May see: base, and the headers of profile/.
 */
#ifndef PRESTO_PROFILE_JSON_INTERNAL_H
#define PRESTO_PROFILE_JSON_INTERNAL_H

#include "../profile_internal.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>

#include <presto/text.h>

/* Jansson's _new functions take NULL as a failure of the call that made the value, so one check
 * at the end is enough. */

typedef struct json_builder {
    bool failed;
} json_builder;

static inline void put(json_builder *builder, json_t *object, const char *name, json_t *value) {
    if (json_object_set_new(object, name, value) != 0)
        builder->failed = true;
}

static inline void append(json_builder *builder, json_t *array, json_t *value) {
    if (json_array_append_new(array, value) != 0)
        builder->failed = true;
}

static inline json_t *number(double value) {
    return isfinite(value) ? json_real(value) : json_null();
}

static inline json_t *whole(uint64_t value) {
    return json_integer((json_int_t)value);
}

/* Paths may be any bytes. */
static inline json_t *text_value(const char *text) {
    if (text == NULL)
        return json_null();
    char *encoded = presto_text_encode(presto_span_of_text(text));
    json_t *value = encoded == NULL ? NULL : json_string(encoded);
    free(encoded);
    return value;
}

/* ---- results_sure.c ---- */

/** How sure the recommendation is. */
json_t *presto__confidence_value(json_builder *builder, const presto_sweep *sweep);
/** How the sizes of a strategy's records are distributed; null if it stores none. */
json_t *presto__records_value(json_builder *builder, const presto_sweep *sweep,
                              const presto__trial *trial);
/** What would change it. */
json_t *presto__what_ifs_value(json_builder *builder, const presto_sweep *sweep);

#endif
