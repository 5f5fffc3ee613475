/* SPDX-License-Identifier: Apache-2.0 */
/* Keys and tokens in JSON, as services and programs give them. */
#include <time.h>

#include "../../base/json_limit_internal.h"
#include "../calendar_internal.h"
#include "provider_internal.h"

#define MOST_WEIGHT 4096

json_t *presto__token_json(presto_span text, const char *whose, presto_error *err) {
    json_error_t where;
    if (presto__json_check(text, PRESTO__MOST_ANSWER_BYTES, MOST_WEIGHT, err) < 0)
        return NULL;
    json_t *object = json_loadb((const char *)text.data, text.bytes, 0, &where);
    if (!json_is_object(object)) { /* what it is instead is not shown: it may be a secret */
        (void)presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET, "%s gives no object in JSON",
                          whose);
        json_decref(object);
        return NULL;
    }
    return object;
}

const char *presto__token_member(const json_t *object, const char *name) {
    const char *text = json_string_value(json_object_get(object, name));
    return text == NULL || text[0] == '\0' ? NULL : text;
}

/* A time as text, or in milliseconds since 1970. */
static bool time_of(const json_t *value, int64_t *seconds_out) {
    if (json_is_number(value)) {
        *seconds_out = (int64_t)(json_number_value(value) / 1000);
        return json_number_value(value) > 0 && json_number_value(value) < 1e15;
    }
    const char *text = json_string_value(value);
    return text != NULL && presto__calendar_parse(presto_span_of_text(text), seconds_out);
}

bool presto__is_plain(const char *text) {
    for (; *text != '\0'; text++)
        if ((unsigned char)*text <= ' ' || (unsigned char)*text >= 0x7f)
            return false;
    return true;
}

presto_status presto__keys_from_json(const json_t *object, const presto__key_names *names,
                                     const char *whose, presto__keys *keys_out, presto_error *err) {
    const char *access = presto__token_member(object, names->access_key);
    const char *secret = presto__token_member(object, names->secret_key);
    const char *token = presto__token_member(object, names->token);
    const json_t *until = json_object_get(object, names->until);
    if (access == NULL || secret == NULL)
        return presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET, "%s gives no %s", whose,
                           access == NULL ? names->access_key : names->secret_key);
    if (!presto__is_plain(access) || !presto__is_plain(secret) ||
        (token != NULL && !presto__is_plain(token)))
        return presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                           "%s gives keys with spaces or control characters", whose);
    int64_t until_s = PRESTO__KEYS_FOR_EVER;
    if (until != NULL && !json_is_null(until) && !time_of(until, &until_s))
        return presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                           "%s gives a %s that is no time", whose, names->until);
    keys_out->access_key = strdup(access);
    keys_out->secret_key = strdup(secret);
    keys_out->token = token == NULL ? NULL : strdup(token);
    keys_out->until_s = until_s;
    return keys_out->access_key == NULL || keys_out->secret_key == NULL ||
                   (token != NULL && keys_out->token == NULL)
               ? presto_fail_memory(err, strlen(secret))
               : PRESTO_OK;
}

presto_status presto__keys_from_text(presto_span text, const presto__key_names *names,
                                     const char *whose, presto__keys *keys_out, presto_error *err) {
    presto_error why = {.status = PRESTO_OK};
    json_t *object = presto__token_json(text, whose, &why);
    if (object == NULL) {
        if (err != NULL)
            *err = why;
        return why.status;
    }
    presto_status status = presto__keys_from_json(object, names, whose, keys_out, err);
    json_decref(object);
    return status;
}
