/* SPDX-License-Identifier: Apache-2.0 */
/* Which provider is asked before which: the order is that of botocore, and of Google's libraries. */
#include "chain_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

/* Those of a profile are asked for a source profile as well. */
static const struct {
    const presto__provider *provider;
    bool is_of_profile;
} aws_providers[] = {
    {&presto__provider_environment, false}, {&presto__provider_role, false},
    {&presto__provider_web_identity, true}, {&presto__provider_sso, true},
    {&presto__provider_shared_file, true},  {&presto__provider_process, true},
    {&presto__provider_config_file, true},  {&presto__provider_container, false},
    {&presto__provider_instance, false},
};

static const presto__provider *const google_providers[] = {
    &presto__provider_google_file,
    &presto__provider_google_instance,
};

static presto_status ask_provider(const presto__provider *provider, const presto__search *search,
                                  presto__keys *keys_out, presto_error *err) {
    *keys_out = (presto__keys){.provider = provider->name, .until_s = PRESTO__KEYS_FOR_EVER};
    presto_status status = provider->find(search, keys_out, err);
    if (status != PRESTO_OK)
        presto__keys_done(keys_out);
    return status;
}

/* Is it a profile whose keys stand in it, or come from a role? Then a chain of roles goes on. */
static bool is_role(const presto__search *search) {
    presto_span value;
    const char *profile = search->profile;
    const presto__aws_config *config = search->config;
    return presto__aws_value(config, PRESTO__AWS_BOTH, profile, "role_arn", &value) &&
           !presto__aws_value(config, PRESTO__AWS_BOTH, profile, "web_identity_token_file",
                              &value) &&
           !presto__aws_value(config, PRESTO__AWS_BOTH, profile, "aws_access_key_id", &value) &&
           !presto__aws_value(config, PRESTO__AWS_BOTH, profile, "aws_secret_access_key", &value);
}

static presto_status find_other(const presto__search *search, const char *source,
                                presto__keys *keys_out, presto_error *err) {
    size_t count = sizeof aws_providers / sizeof aws_providers[0];
    if (source == NULL && is_role(search))
        return ask_provider(&presto__provider_role, search, keys_out, err);
    for (size_t i = 0; i < count; i++) {
        const presto__provider *provider = aws_providers[i].provider;
        bool is_asked = source == NULL
                            ? aws_providers[i].is_of_profile
                            : provider->source != NULL && strcasecmp(provider->source, source) == 0;
        presto_status status =
            is_asked ? ask_provider(provider, search, keys_out, err) : PRESTO_END;
        if (status != PRESTO_END)
            return status;
    }
    return PRESTO_END;
}

static bool is_set(const char *name) {
    const char *value = presto__variable(name);
    return value != NULL && strcmp(value, "0") != 0;
}

static presto_status find_aws(const presto__aws_config *config, presto__keys *keys_out,
                              presto_error *err) {
    char note[256] = "";
    const presto__search search = {
        .config = config,
        .profile = config->profile,
        .find_other = find_other,
        .note = note,
        .note_bytes = sizeof note,
    };
    for (size_t i = 0; i < sizeof aws_providers / sizeof aws_providers[0]; i++) {
        presto_status status = ask_provider(aws_providers[i].provider, &search, keys_out, err);
        if (status != PRESTO_END)
            return status;
    }
    return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                       "no keys for S3: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or "
                       "AWS_PROFILE to a profile of ~/.aws that has them, or "
                       "PRESTO_S3_ANONYMOUS=1 for a public bucket%s%s",
                       note[0] == '\0' ? "" : "; ", note);
}

static presto_status find_google(presto__keys *keys_out, presto_error *err) {
    char note[256] = "";
    const presto__search search = {.note = note, .note_bytes = sizeof note};
    for (size_t i = 0; i < sizeof google_providers / sizeof google_providers[0]; i++) {
        presto_status status = ask_provider(google_providers[i], &search, keys_out, err);
        if (status != PRESTO_END)
            return status;
    }
    return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                       "no credentials for Google Cloud: run 'gcloud auth application-default "
                       "login', or set GOOGLE_APPLICATION_CREDENTIALS to a file of them, or "
                       "PRESTO_GS_ANONYMOUS=1 for a public bucket%s%s",
                       note[0] == '\0' ? "" : "; ", note);
}

presto_status presto__chain_find(presto__cloud cloud, const presto__aws_config *config,
                                 presto__keys *keys_out, presto_error *err) {
    bool is_aws = cloud == PRESTO__CLOUD_AWS;
    if (is_set(is_aws ? "PRESTO_S3_ANONYMOUS" : "PRESTO_GS_ANONYMOUS")) {
        *keys_out = (presto__keys){.provider = "anonymous", .until_s = PRESTO__KEYS_FOR_EVER};
        return PRESTO_OK;
    }
    return is_aws ? find_aws(config, keys_out, err) : find_google(keys_out, err);
}
