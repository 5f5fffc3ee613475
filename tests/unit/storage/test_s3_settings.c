/* SPDX-License-Identifier: Apache-2.0 */
/* Who asks S3: values in files of the AWS tools, and the environment before or behind them. */
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
    "AWS_ACCESS_KEY_ID",   "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE",
    "AWS_REGION",          "AWS_DEFAULT_REGION",    "AWS_ENDPOINT_URL",  "AWS_ENDPOINT_URL_S3",
    "PRESTO_S3_ANONYMOUS",
};

static void set_up(void) {
    dir = presto_check_temp_dir();
    snprintf(credentials, sizeof credentials, "%s/credentials", dir);
    snprintf(config, sizeof config, "%s/config", dir);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        unsetenv(names[i]);
    setenv("AWS_SHARED_CREDENTIALS_FILE", credentials, 1);
    setenv("AWS_CONFIG_FILE", config, 1);
}

static void tear_down(void) {
    presto_check_remove_tree(dir);
    free(dir);
}

static void write_text(const char *path, const char *text) {
    presto_check_write_file(path, presto_span_of_text(text));
}

static void check_value(const char *text, const char *section, const char *key,
                        const char *wanted) {
    presto_span copy = presto_span_of_text(text), value = {0};
    uint8_t *exact = presto_check_copy(copy); /* nothing behind its end is read */
    bool has_section;
    bool found =
        presto__ini_find(presto_span_of(exact, copy.bytes), section, key, &value, &has_section);
    ck_assert_int_eq(found, wanted != NULL);
    if (found)
        ck_assert(presto_span_is(value, wanted));
    free(exact);
}

START_TEST(values_are_found_as_the_aws_tools_find_them) {
    static const char text[] = "region = before any section\n"
                               "# [default]\n"
                               "[default]\r\n"
                               "region=eu-central-1\r\n"
                               "; region = no\n"
                               "key = a = b ; c\n"
                               "empty =\n"
                               "twice = 1\n"
                               "no value\n"
                               "[profile  other ]\n"
                               "REGION\t=\tus-west-2\n"
                               "s3 =\n"
                               "  region = nested\n"
                               "[profiled]\n"
                               "region = x\n"
                               "[default]\n"
                               "twice = 2";
    check_value(text, "default", "region", "eu-central-1");
    check_value(text, "default", "key", "a = b ; c");
    check_value(text, "default", "empty", "");
    check_value(text, "default", "twice", "2");
    check_value(text, "default", "no value", NULL);
    check_value(text, "other", "region", "us-west-2");
    check_value(text, "other", "s3", "");
    check_value(text, "d", "region", NULL);
    check_value(text, "nobody", "region", NULL);
    check_value("", "default", "region", NULL);
    check_value("[default]\nregion", "default", "region", NULL);
    check_value("[default\nregion=1", "default", "region", NULL);
    check_value("[", "", "region", NULL);
}
END_TEST

START_TEST(every_cut_of_a_file_is_read_within_its_bounds) {
    static const char text[] = "[default]\nregion = eu\n[profile x]\n a = b\nregion=\n";
    for (size_t bytes = 0; bytes <= sizeof text - 1; bytes++) {
        uint8_t *exact = presto_check_copy(presto_span_of(text, bytes));
        presto_span value;
        bool has_section;
        (void)presto__ini_find(presto_span_of(exact, bytes), "x", "region", &value, &has_section);
        free(exact);
    }
}
END_TEST

START_TEST(keys_of_the_environment_go_before_those_of_a_profile) {
    set_up();
    presto__s3_settings found;
    write_text(credentials, "[default]\naws_access_key_id=file\naws_secret_access_key=fs\n"
                            "aws_session_token=ft\n[p]\naws_access_key_id=pk\n"
                            "aws_secret_access_key=ps\n");
    write_text(config, "[default]\nregion=eu-west-1\n[profile p]\nendpoint_url=http://h:9///\n");
    ck_assert_ok(presto__s3_settings_find(&found, &err), &err);
    ck_assert_str_eq(found.access_key, "file");
    ck_assert_str_eq(found.secret_key, "fs");
    ck_assert_str_eq(found.token, "ft");
    ck_assert_str_eq(found.region, "eu-west-1");
    ck_assert_ptr_null(found.endpoint);
    presto__s3_settings_done(&found);
    setenv("AWS_ACCESS_KEY_ID", "ek", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "es", 1);
    setenv("AWS_REGION", "us-west-2", 1);
    ck_assert_ok(presto__s3_settings_find(&found, &err), &err);
    ck_assert_str_eq(found.access_key, "ek");
    ck_assert_str_eq(found.secret_key, "es");
    ck_assert_ptr_null(found.token); /* that of the file belongs to other keys */
    ck_assert_str_eq(found.region, "us-west-2");
    presto__s3_settings_done(&found);
    setenv("AWS_PROFILE", "p", 1);
    ck_assert_ok(presto__s3_settings_find(&found, &err), &err);
    ck_assert_str_eq(found.access_key, "ek"); /* as botocore */
    ck_assert_str_eq(found.endpoint, "http://h:9");
    presto__s3_settings_done(&found);
    unsetenv("AWS_ACCESS_KEY_ID");
    unsetenv("AWS_SECRET_ACCESS_KEY");
    ck_assert_ok(presto__s3_settings_find(&found, &err), &err);
    ck_assert_str_eq(found.access_key, "pk");
    ck_assert_str_eq(found.secret_key, "ps");
    presto__s3_settings_done(&found);
    tear_down();
}
END_TEST

START_TEST(what_is_missing_or_wrong_is_said) {
    set_up();
    presto__s3_settings found;
    ck_assert_status(presto__s3_settings_find(&found, &err), PRESTO_ERR_ARGUMENT, &err);
    ck_assert_ptr_nonnull(strstr(err.message, "PRESTO_S3_ANONYMOUS"));
    setenv("PRESTO_S3_ANONYMOUS", "1", 1);
    ck_assert_ok(presto__s3_settings_find(&found, &err), &err);
    ck_assert(found.is_anonymous);
    ck_assert_str_eq(found.region, "us-east-1");
    presto__s3_settings_done(&found);
    setenv("AWS_REGION", "evil.example/", 1);
    ck_assert_status(presto__s3_settings_find(&found, &err), PRESTO_ERR_ARGUMENT, &err);
    unsetenv("AWS_REGION");
    setenv("AWS_ENDPOINT_URL", "file:///etc", 1);
    ck_assert_status(presto__s3_settings_find(&found, &err), PRESTO_ERR_ARGUMENT, &err);
    unsetenv("AWS_ENDPOINT_URL");
    write_text(credentials, "[default]\naws_access_key_id=half\n");
    ck_assert_status(presto__s3_settings_find(&found, &err), PRESTO_ERR_ARGUMENT, &err);
    ck_assert_ptr_nonnull(strstr(err.message, "no aws_secret_access_key"));
    setenv("AWS_PROFILE", "none", 1);
    ck_assert_status(presto__s3_settings_find(&found, &err), PRESTO_ERR_ARGUMENT, &err);
    ck_assert_ptr_nonnull(strstr(err.message, "'none'"));
    tear_down();
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        values_are_found_as_the_aws_tools_find_them,
        every_cut_of_a_file_is_read_within_its_bounds,
        keys_of_the_environment_go_before_those_of_a_profile,
        what_is_missing_or_wrong_is_said,
    };
    return presto_check_main("s3_settings", tests, sizeof tests / sizeof tests[0], 30);
}
