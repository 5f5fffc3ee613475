/* SPDX-License-Identifier: Apache-2.0 */
/* What Google Cloud Storage answers to who writes. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gs_put_internal.h"

#define DIGITS "0123456789"

static presto_status read_json(presto_span json, json_t **root_out, presto_error *err) {
    *root_out = json.bytes > PRESTO__GS_ANSWER_BYTES
                    ? NULL
                    : json_loadb((const char *)json.data, json.bytes, JSON_REJECT_DUPLICATES, NULL);
    if (json_is_object(*root_out))
        return PRESTO_OK;
    json_decref(*root_out);
    return presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET, "it is no object of JSON");
}

/* A number as a text, as this interface has them. */
static bool is_number(const char *text, size_t most_digits) {
    size_t bytes = text == NULL ? 0 : strlen(text);
    return bytes > 0 && bytes <= most_digits && strspn(text, DIGITS) == bytes;
}

presto_status presto__gs_object_parse(presto_span json, presto__gs_object *object_out,
                                      presto_error *err) {
    json_t *root;
    *object_out = (presto__gs_object){.bytes = 0};
    PRESTO_TRY(read_json(json, &root, err));
    const char *generation = json_string_value(json_object_get(root, "generation"));
    const char *size = json_string_value(json_object_get(root, "size"));
    const char *crc = json_string_value(json_object_get(root, "crc32c"));
    bool is_one = is_number(generation, sizeof object_out->generation - 1) && is_number(size, 19);
    if (is_one) {
        snprintf(object_out->generation, sizeof object_out->generation, "%s", generation);
        object_out->bytes = strtoull(size, NULL, 10);
        object_out->has_crc = crc != NULL && presto__remote_crc(crc, &object_out->crc32c);
    }
    json_decref(root);
    return is_one ? PRESTO_OK
                  : presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                                "it does not say an object's generation and size");
}

presto_status presto__gs_copied_parse(presto_span json, presto__gs_copied *copied_out,
                                      presto_error *err) {
    json_t *root;
    *copied_out = (presto__gs_copied){.token = NULL};
    PRESTO_TRY(read_json(json, &root, err));
    const char *token = json_string_value(json_object_get(root, "rewriteToken"));
    copied_out->is_done = json_is_true(json_object_get(root, "done"));
    presto_status status = PRESTO_OK;
    if (!copied_out->is_done && token == NULL)
        status = presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                             "it does not say whether the copy is done");
    else if (!copied_out->is_done && (copied_out->token = strdup(token)) == NULL)
        status = presto_fail_memory(err, strlen(token) + 1);
    json_decref(root);
    return status;
}
