/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the environment and its files give, for tests/live/keys.py: a line each of key, secret, token,
 * region and endpoint, in hexadecimal digits; or "error: " and why not.
 */
#include <stdio.h>
#include <stdlib.h>

#include "s3_settings_internal.h"

static void print(const char *text) {
    for (; text != NULL && *text != '\0'; text++)
        printf("%02x", (unsigned)(unsigned char)*text);
    printf("\n");
}

static presto_status resolve(presto_error *err) {
    presto__credentials *credentials;
    const presto__keys *keys;
    presto__s3_settings settings = {.region = NULL};
    PRESTO_TRY(presto__credentials_find(PRESTO__CLOUD_AWS, &credentials, err));
    presto_status status = presto__s3_settings_find(credentials, &settings, err);
    if (status == PRESTO_OK)
        status = presto__keys_acquire(credentials, &keys, err);
    if (status == PRESTO_OK) {
        print(keys->access_key);
        print(keys->secret_key);
        print(keys->token);
        print(settings.region);
        print(settings.endpoint);
        presto__keys_release(keys);
    }
    presto__s3_settings_done(&settings);
    presto__credentials_release(credentials);
    return status;
}

int main(void) {
    presto_error err;
    if (resolve(&err) < 0)
        printf("error: %s\n", err.message);
    return 0;
}
