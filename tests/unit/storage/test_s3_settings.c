/* SPDX-License-Identifier: Apache-2.0 */
/* Where S3 is and how it is asked: the environment, and files of the AWS tools. */
#define _DEFAULT_SOURCE /* setenv */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "presto_check.h"
#include "s3_settings_internal.h"

static char *dir;
static char credentials[512], config[512];
static presto_error err;

static const char *const names[] = {
    "AWS_ACCESS_KEY_ID",       "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",       "AWS_PROFILE",
    "AWS_DEFAULT_PROFILE",     "AWS_REGION",
    "AWS_DEFAULT_REGION",      "AWS_ENDPOINT_URL",
    "AWS_ENDPOINT_URL_S3",     "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS",
    "PRESTO_S3_ANONYMOUS",     "PRESTO_S3_ADDRESSING_STYLE",
    "PRESTO_S3_REQUEST_PAYER", "PRESTO_S3_SSE_CUSTOMER_KEY",
};

static void set_up(void) {
    dir = presto_check_temp_dir();
    snprintf(credentials, sizeof credentials, "%s/credentials", dir);
    snprintf(config, sizeof config, "%s/config", dir);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        unsetenv(names[i]);
    setenv("AWS_SHARED_CREDENTIALS_FILE", credentials, 1);
    setenv("AWS_CONFIG_FILE", config, 1);
    setenv("AWS_EC2_METADATA_DISABLED", "true", 1);
    setenv("HOME", dir, 1); /* so that each test has an environment of its own */
}

static void tear_down(void) {
    presto_check_remove_tree(dir);
    free(dir);
}

static void write_text(const char *path, const char *text) {
    presto_check_write_file(path, presto_span_of_text(text));
}

/* As an object that is opened does it. */
static presto_status find(presto__s3_settings *settings_out) {
    presto__credentials *who;
    PRESTO_TRY(presto__credentials_find(PRESTO__CLOUD_AWS, &who, &err));
    presto_status status = presto__s3_settings_find(who, settings_out, &err);
    presto__credentials_release(who);
    return status;
}

START_TEST(the_environment_goes_before_the_profile) {
    set_up();
    presto__s3_settings found;
    write_text(credentials, "[p]\nregion = eu-west-2\n");
    write_text(config, "[default]\nregion=eu-west-1\n"
                       "[profile p]\nregion = eu-west-3\nendpoint_url=http://h:9///\n"
                       "s3 =\n  addressing_style = virtual\n"
                       "[profile q]\nservices = mine\nendpoint_url = http://all\n"
                       "[services mine]\nsts =\n  endpoint_url = http://sts\n"
                       "s3 =\n  endpoint_url = http://s3\n");
    ck_assert_ok(find(&found), &err);
    ck_assert_str_eq(found.region, "eu-west-1");
    ck_assert_ptr_null(found.endpoint);
    ck_assert_int_eq(found.addressing, PRESTO__S3_AUTO);
    ck_assert(!found.pays && found.customer_key[0] == '\0');
    presto__s3_settings_done(&found);
    setenv("AWS_PROFILE", "p", 1);
    ck_assert_ok(find(&found), &err);
    ck_assert_str_eq(found.region, "eu-west-2"); /* the file of credentials goes first */
    ck_assert_str_eq(found.endpoint, "http://h:9");
    ck_assert_int_eq(found.addressing, PRESTO__S3_VIRTUAL);
    presto__s3_settings_done(&found);
    setenv("PRESTO_S3_ADDRESSING_STYLE", "path", 1);
    setenv("AWS_ENDPOINT_URL", "http://e", 1);
    setenv("AWS_REGION", "us-west-2", 1);
    ck_assert_ok(find(&found), &err);
    ck_assert_str_eq(found.region, "us-west-2");
    ck_assert_str_eq(found.endpoint, "http://e");
    ck_assert_int_eq(found.addressing, PRESTO__S3_PATH);
    presto__s3_settings_done(&found);
    setenv("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "true", 1);
    ck_assert_ok(find(&found), &err);
    ck_assert_ptr_null(found.endpoint);
    presto__s3_settings_done(&found);
    unsetenv("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS");
    unsetenv("AWS_ENDPOINT_URL");
    setenv("AWS_PROFILE", "q", 1);
    ck_assert_ok(find(&found), &err);
    ck_assert_str_eq(found.endpoint, "http://s3");
    presto__s3_settings_done(&found);
    tear_down();
}
END_TEST

START_TEST(who_pays_and_what_objects_are_encrypted_with) {
    set_up();
    presto__s3_settings found;
    setenv("PRESTO_S3_REQUEST_PAYER", "requester", 1);
    /* 32 bytes 0, and their MD5 as coreutils have it: 70bc8f4b72a86921468bf8e8441dce51. */
    setenv("PRESTO_S3_SSE_CUSTOMER_KEY", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", 1);
    ck_assert_ok(find(&found), &err);
    ck_assert(found.pays);
    ck_assert_str_eq(found.customer_key, "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=");
    ck_assert_str_eq(found.customer_md5, "cLyPS3KoaSFGi/joRB3OUQ==");
    presto__s3_settings_done(&found);
    setenv("AWS_ENDPOINT_URL", "http://far.example", 1); /* the key would be read on the way */
    ck_assert_status(find(&found), PRESTO_ERR_ARGUMENT, &err);
    ck_assert_ptr_null(strstr(err.message, "AAAA"));
    unsetenv("AWS_ENDPOINT_URL");
    setenv("PRESTO_S3_SSE_CUSTOMER_KEY", "secret-that-is-not-shown", 1);
    ck_assert_status(find(&found), PRESTO_ERR_ARGUMENT, &err);
    ck_assert_ptr_null(strstr(err.message, "not-shown"));
    unsetenv("PRESTO_S3_SSE_CUSTOMER_KEY");
    setenv("PRESTO_S3_REQUEST_PAYER", "me", 1);
    ck_assert_status(find(&found), PRESTO_ERR_ARGUMENT, &err);
    tear_down();
}
END_TEST

START_TEST(what_is_wrong_is_said) {
    set_up();
    presto__s3_settings found;
    ck_assert_ok(find(&found), &err);
    ck_assert_str_eq(found.region, "us-east-1");
    presto__s3_settings_done(&found);
    setenv("AWS_REGION", "evil.example/", 1);
    ck_assert_status(find(&found), PRESTO_ERR_ARGUMENT, &err);
    unsetenv("AWS_REGION");
    setenv("AWS_ENDPOINT_URL", "file:///etc", 1);
    ck_assert_status(find(&found), PRESTO_ERR_ARGUMENT, &err);
    unsetenv("AWS_ENDPOINT_URL");
    setenv("PRESTO_S3_ADDRESSING_STYLE", "maybe", 1);
    ck_assert_status(find(&found), PRESTO_ERR_ARGUMENT, &err);
    unsetenv("PRESTO_S3_ADDRESSING_STYLE");
    setenv("AWS_PROFILE", "none", 1);
    ck_assert_status(find(&found), PRESTO_ERR_ARGUMENT, &err);
    ck_assert_ptr_nonnull(strstr(err.message, "'none'"));
    tear_down();
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        the_environment_goes_before_the_profile,
        who_pays_and_what_objects_are_encrypted_with,
        what_is_wrong_is_said,
    };
    return presto_check_main("s3_settings", tests, sizeof tests / sizeof tests[0], 30);
}
