/* SPDX-License-Identifier: Apache-2.0 */
/* Keys that stand in a profile: those of the file of credentials, and those of the configuration. */
#include "provider_internal.h"

static presto_status find_in(const presto__search *search, presto__aws_file file,
                             presto__keys *keys_out, presto_error *err) {
    const presto__aws_config *config = search->config;
    presto_span access, secret, token;
    if (!presto__aws_value(config, file, search->profile, "aws_access_key_id", &access))
        return PRESTO_END;
    if (!presto__aws_value(config, file, search->profile, "aws_secret_access_key", &secret))
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "the profile '%s' has aws_access_key_id and no aws_secret_access_key",
                           search->profile);
    bool has_token =
        presto__aws_value(config, file, search->profile, "aws_security_token", &token) ||
        presto__aws_value(config, file, search->profile, "aws_session_token", &token);
    keys_out->access_key = presto_span_to_text(access);
    keys_out->secret_key = presto_span_to_text(secret);
    keys_out->token = has_token ? presto_span_to_text(token) : NULL;
    return keys_out->access_key == NULL || keys_out->secret_key == NULL ||
                   (has_token && keys_out->token == NULL)
               ? presto_fail_memory(err, secret.bytes)
               : PRESTO_OK;
}

static presto_status find_shared(const presto__search *search, presto__keys *keys_out,
                                 presto_error *err) {
    return find_in(search, PRESTO__AWS_CREDENTIALS, keys_out, err);
}

static presto_status find_config(const presto__search *search, presto__keys *keys_out,
                                 presto_error *err) {
    return find_in(search, PRESTO__AWS_CONFIG, keys_out, err);
}

const presto__provider presto__provider_shared_file = {"shared credentials file", NULL,
                                                       find_shared};
const presto__provider presto__provider_config_file = {"configuration file", NULL, find_config};
