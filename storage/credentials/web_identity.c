/* SPDX-License-Identifier: Apache-2.0 */
/* A token in a file, for which STS gives the keys of a role: as pods of Kubernetes have it. */
#include <stdlib.h>

#include "provider_internal.h"

/* The variable, unless this is a source profile; else the profile's. malloc'd; NULL: none, or no
 * memory. */
static char *setting(const presto__search *search, const char *variable, const char *key) {
    const char *named = search->is_source ? NULL : presto__variable(variable);
    presto_span value;
    if (named != NULL)
        return strdup(named);
    return presto__aws_value(search->config, PRESTO__AWS_BOTH, search->profile, key, &value)
               ? presto_span_to_text(value)
               : NULL;
}

/* The file is read anew each time: whoever made it replaces it before the token expires. */
static presto_status find_with(const presto__search *search, const char *file, const char *role,
                               const char *session, presto__keys *keys_out, presto_error *err) {
    char usual[PRESTO__SESSION_NAME_BYTES];
    presto_buffer token = {0};
    presto_status status = presto__small_file(file, &token, err);
    if (status == PRESTO_END) {
        status = presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                             "the file of the web identity's token '%s' is not there", file);
    } else if (status == PRESTO_OK) {
        while (token.bytes > 0 && token.data[token.bytes - 1] <= ' ')
            token.bytes--;
        status = presto_buffer_append(&token, presto_span_of("", 1), err);
    }
    presto__sts_session_name(usual);
    if (status == PRESTO_OK) {
        const presto__sts_parameter parameters[] = {
            {"Action", "AssumeRoleWithWebIdentity"},
            {"RoleArn", role},
            {"RoleSessionName", session != NULL ? session : usual},
            {"WebIdentityToken", (const char *)token.data},
            {NULL, NULL},
        };
        status = presto__sts_ask(search, parameters, NULL, keys_out, err);
    }
    presto__forget_buffer(&token);
    return status;
}

static presto_status find(const presto__search *search, presto__keys *keys_out, presto_error *err) {
    char *file = setting(search, "AWS_WEB_IDENTITY_TOKEN_FILE", "web_identity_token_file");
    if (file == NULL)
        return PRESTO_END;
    char *role = setting(search, "AWS_ROLE_ARN", "role_arn");
    char *session = setting(search, "AWS_ROLE_SESSION_NAME", "role_session_name");
    presto_status status =
        role == NULL ? presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                                   "a web identity's token file is named, and no role: set "
                                   "AWS_ROLE_ARN, or role_arn of the profile")
                     : find_with(search, file, role, session, keys_out, err);
    free(file);
    free(role);
    free(session);
    return status;
}

const presto__provider presto__provider_web_identity = {"web identity", NULL, find};
