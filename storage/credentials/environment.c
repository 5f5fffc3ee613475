/* SPDX-License-Identifier: Apache-2.0 */
/* Keys in AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN. */
#include "../calendar_internal.h"
#include "provider_internal.h"

static presto_status find(const presto__search *search, presto__keys *keys_out, presto_error *err) {
    const char *access = presto__variable("AWS_ACCESS_KEY_ID");
    const char *secret = presto__variable("AWS_SECRET_ACCESS_KEY");
    const char *token = presto__variable("AWS_SECURITY_TOKEN"); /* the older name goes first */
    const char *until = presto__variable("AWS_CREDENTIAL_EXPIRATION");
    (void)search;
    if (access == NULL && secret == NULL)
        return PRESTO_END;
    if (access == NULL || secret == NULL)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "%s is set, and %s is not: set both, or none",
                           access == NULL ? "AWS_SECRET_ACCESS_KEY" : "AWS_ACCESS_KEY_ID",
                           access == NULL ? "AWS_ACCESS_KEY_ID" : "AWS_SECRET_ACCESS_KEY");
    if (token == NULL)
        token = presto__variable("AWS_SESSION_TOKEN");
    if (until != NULL && !presto__calendar_parse(presto_span_of_text(until), &keys_out->until_s))
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "AWS_CREDENTIAL_EXPIRATION is '%s', which is no time", until);
    keys_out->access_key = strdup(access);
    keys_out->secret_key = strdup(secret);
    keys_out->token = token == NULL ? NULL : strdup(token);
    return keys_out->access_key == NULL || keys_out->secret_key == NULL ||
                   (token != NULL && keys_out->token == NULL)
               ? presto_fail_memory(err, strlen(secret))
               : PRESTO_OK;
}

const presto__provider presto__provider_environment = {"environment", "Environment", find};
