/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A profile with role_arn: its keys are those of the role, which STS gives for the keys of
 * source_profile, maybe a role itself, or for those of credential_source.
 */
#include <stdlib.h>

#include "provider_internal.h"

/* Texts of the profile; NULL: there are none. */
typedef struct role_settings {
    char *role, *source_profile, *credential_source, *external_id, *session, *duration, *mfa;
} role_settings;

static void settings_done(role_settings *settings) {
    free(settings->role);
    free(settings->source_profile);
    free(settings->credential_source);
    free(settings->external_id);
    free(settings->session);
    free(settings->duration);
    free(settings->mfa);
}

static presto_status read_settings(const presto__search *search, role_settings *settings,
                                   presto_error *err) {
    const struct {
        const char *key;
        char **text;
    } wanted[] = {
        {"role_arn", &settings->role},
        {"source_profile", &settings->source_profile},
        {"credential_source", &settings->credential_source},
        {"external_id", &settings->external_id},
        {"role_session_name", &settings->session},
        {"duration_seconds", &settings->duration},
        {"mfa_serial", &settings->mfa},
    };
    presto_span value;
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
        if (presto__aws_value(search->config, PRESTO__AWS_BOTH, search->profile, wanted[i].key,
                              &value)) {
            *wanted[i].text = presto_span_to_text(value);
            if (*wanted[i].text == NULL)
                return presto_fail_memory(err, value.bytes);
        }
    return PRESTO_OK;
}

static presto_status check(const presto__search *search, const role_settings *settings,
                           presto_error *err) {
    const char *profile = search->profile;
    if (settings->source_profile != NULL && settings->credential_source != NULL)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "the profile '%s' has both source_profile and credential_source: one of "
                           "them says whose keys ask for the role",
                           profile);
    if (settings->source_profile == NULL && settings->credential_source == NULL)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "the profile '%s' has a role_arn, and neither source_profile nor "
                           "credential_source: whose keys ask for the role?",
                           profile);
    if (settings->mfa != NULL)
        return presto_fail(err, PRESTO_ERR_UNSUPPORTED, PRESTO_NO_OFFSET,
                           "the profile '%s' has mfa_serial, and nobody is there to give a code: "
                           "use keys of 'aws sts get-session-token', or single sign-on",
                           profile);
    if (settings->duration != NULL &&
        settings->duration[strspn(settings->duration, "0123456789")] != '\0')
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "duration_seconds of the profile '%s' is '%s', which is no number",
                           profile, settings->duration);
    return PRESTO_OK;
}

/* The search for the keys of `profile`, which this one names. */
static presto_status find_source(const presto__search *search, const char *profile,
                                 presto__keys *keys_out, presto_error *err) {
    unsigned depth = 0;
    presto_span value;
    bool is_static =
        presto__aws_value(search->config, PRESTO__AWS_BOTH, profile, "aws_access_key_id", &value);
    if (!presto__aws_has_profile(search->config, profile))
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "the profile '%s' names the source_profile '%s', which is not there",
                           search->profile, profile);
    for (const presto__search *at = search; at != NULL; at = at->outer, depth++)
        if (strcmp(at->profile, profile) == 0 && !(at == search && is_static))
            return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                               "the profiles '%s' and '%s' name each other as source_profile",
                               search->profile, profile);
    if (depth >= PRESTO__MOST_ROLES)
        return presto_fail(err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET,
                           "more than %d profiles name each other as source_profile",
                           PRESTO__MOST_ROLES);
    presto__search inner = *search;
    inner.profile = profile;
    inner.is_source = true;
    inner.outer = search;
    presto_status status = search->find_other(&inner, NULL, keys_out, err);
    return status != PRESTO_END
               ? status
               : presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                             "the source_profile '%s' of the profile '%s' has no keys", profile,
                             search->profile);
}

static presto_status find_with(const presto__search *search, const role_settings *settings,
                               presto__keys *keys_out, presto_error *err) {
    presto__keys with = {.until_s = PRESTO__KEYS_FOR_EVER};
    char session[PRESTO__SESSION_NAME_BYTES];
    PRESTO_TRY(check(search, settings, err));
    if (settings->source_profile != NULL) {
        PRESTO_TRY(find_source(search, settings->source_profile, &with, err));
    } else {
        presto_status status = search->find_other(search, settings->credential_source, &with, err);
        if (status == PRESTO_END)
            return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                               "the credential_source '%s' of the profile '%s' has no keys; it is "
                               "Environment, EcsContainer or Ec2InstanceMetadata",
                               settings->credential_source, search->profile);
        PRESTO_TRY(status);
    }
    presto__sts_session_name(session);
    const presto__sts_parameter parameters[] = {
        {"Action", "AssumeRole"},
        {"RoleArn", settings->role},
        {"RoleSessionName", settings->session != NULL ? settings->session : session},
        {"ExternalId", settings->external_id},
        {"DurationSeconds", settings->duration},
        {NULL, NULL},
    };
    presto_status status = presto__sts_ask(search, parameters, &with, keys_out, err);
    presto__keys_done(&with);
    return status;
}

static presto_status find(const presto__search *search, presto__keys *keys_out, presto_error *err) {
    role_settings settings = {.role = NULL};
    presto_span value;
    if (!presto__aws_value(search->config, PRESTO__AWS_BOTH, search->profile, "role_arn", &value) ||
        presto__aws_value(search->config, PRESTO__AWS_BOTH, search->profile,
                          "web_identity_token_file", &value))
        return PRESTO_END;
    presto_status status = read_settings(search, &settings, err);
    if (status == PRESTO_OK)
        status = find_with(search, &settings, keys_out, err);
    settings_done(&settings);
    return status;
}

const presto__provider presto__provider_role = {"role of a profile", NULL, find};
