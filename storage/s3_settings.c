/* SPDX-License-Identifier: Apache-2.0 */
#include "s3_settings_internal.h"

#include <stdlib.h>
#include <strings.h>

#include "credentials/aws_config_internal.h"
#include "crypto_internal.h"

#define DEFAULT_REGION "us-east-1"

static presto_status find_addressing(const presto__aws_config *config,
                                     presto__s3_settings *settings, presto_error *err) {
    static const char *const names[] = {"auto", "path", "virtual"};
    presto_span value;
    const char *named = presto__variable("PRESTO_S3_ADDRESSING_STYLE");
    if (named != NULL)
        value = presto_span_of_text(named);
    else if (!presto__aws_inner_value(config, config->profile, "s3", "addressing_style", &value))
        return PRESTO_OK;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (value.bytes == strlen(names[i]) &&
            strncasecmp((const char *)value.data, names[i], value.bytes) == 0) {
            settings->addressing = (presto__s3_addressing)i;
            return PRESTO_OK;
        }
    return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                       "the addressing style '%.*s' is none of auto, path, virtual",
                       (int)value.bytes, (const char *)value.data);
}

/* PRESTO_S3_SSE_CUSTOMER_KEY is not shown, whatever it is. */
static presto_status find_customer_key(presto__s3_settings *settings, presto_error *err) {
    const char *key = presto__variable("PRESTO_S3_SSE_CUSTOMER_KEY");
    if (key == NULL)
        return PRESTO_OK;
    PRESTO_TRY(presto__crypto_load(err));
    uint8_t bytes[PRESTO__S3_CUSTOMER_KEY_BYTES];
    size_t count = 0;
    if (strlen(key) != PRESTO__S3_CUSTOMER_KEY_BYTES - 1 ||
        !presto__base64_decode(key, bytes, sizeof bytes, &count) || count != 32)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "PRESTO_S3_SSE_CUSTOMER_KEY is no key of 32 bytes as base64 (44 "
                           "characters)");
    if (settings->endpoint != NULL)
        PRESTO_TRY(presto__check_secure("S3, with a customer's key,", settings->endpoint, err));
    memcpy(settings->customer_key, key, sizeof settings->customer_key);
    return presto__md5_base64(presto_span_of(bytes, count), settings->customer_md5, err);
}

presto_status presto__s3_settings_find(const presto__credentials *credentials,
                                       presto__s3_settings *settings_out, presto_error *err) {
    const presto__aws_config *config = presto__credentials_config(credentials);
    presto__s3_settings settings = {.region = NULL};
    const char *payer = presto__variable("PRESTO_S3_REQUEST_PAYER");
    presto_status status = presto__aws_region(config, config->profile, &settings.region, err);
    if (status == PRESTO_OK && settings.region == NULL &&
        (settings.region = strdup(DEFAULT_REGION)) == NULL)
        status = presto_fail_memory(err, sizeof DEFAULT_REGION);
    if (status == PRESTO_OK)
        status = presto__aws_endpoint(config, config->profile, "s3", &settings.endpoint, err);
    if (status == PRESTO_OK)
        status = find_addressing(config, &settings, err);
    if (status == PRESTO_OK)
        status = find_customer_key(&settings, err);
    if (status == PRESTO_OK && payer != NULL && strcasecmp(payer, "requester") != 0)
        status = presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                             "PRESTO_S3_REQUEST_PAYER is '%s': it can be 'requester'", payer);
    settings.pays = payer != NULL;
    if (status < 0)
        presto__s3_settings_done(&settings);
    else
        *settings_out = settings;
    return status;
}

void presto__s3_settings_done(presto__s3_settings *settings) {
    free(settings->region);
    free(settings->endpoint);
    *settings = (presto__s3_settings){.region = NULL};
}
