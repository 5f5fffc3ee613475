/* SPDX-License-Identifier: Apache-2.0 */
#include "s3_settings_internal.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "../base/file_internal.h"

#define MOST_FILE_BYTES ((uint64_t)1 << 20)
#define DEFAULT_REGION "us-east-1"

/* ---- INI ---- */

static bool is_blank(uint8_t c) {
    return c == ' ' || c == '\t' || c == '\r';
}

static presto_span trimmed(presto_span text) {
    while (text.bytes > 0 && is_blank(text.data[0])) {
        text.data++;
        text.bytes--;
    }
    while (text.bytes > 0 && is_blank(text.data[text.bytes - 1]))
        text.bytes--;
    return text;
}

/* Is the line's section, without its brackets, the one that is wanted? */
static bool is_section(presto_span line, const char *name) {
    static const char prefix[] = "profile";
    const size_t bytes = sizeof prefix - 1;
    if (line.bytes < 2 || line.data[line.bytes - 1] != ']')
        return false;
    presto_span inside = trimmed(presto_span_of(line.data + 1, line.bytes - 2));
    if (presto_span_is(inside, name))
        return true;
    return inside.bytes > bytes && memcmp(inside.data, prefix, bytes) == 0 &&
           is_blank(inside.data[bytes]) &&
           presto_span_is(trimmed(presto_span_of(inside.data + bytes, inside.bytes - bytes)), name);
}

bool presto__ini_find(presto_span text, const char *name, const char *key, presto_span *value_out,
                      bool *has_section_out) {
    bool is_inside = false, is_found = false;
    *has_section_out = false;
    while (text.bytes > 0) {
        const uint8_t *end = memchr(text.data, '\n', text.bytes);
        size_t bytes = end == NULL ? text.bytes : (size_t)(end - text.data);
        bool is_nested = is_blank(text.data[0]);
        presto_span line = trimmed(presto_span_of(text.data, bytes));
        text = presto_span_of(text.data + bytes, text.bytes - bytes);
        if (text.bytes > 0) {
            text.data++;
            text.bytes--;
        }
        if (line.bytes == 0 || is_nested || line.data[0] == '#' || line.data[0] == ';')
            continue;
        if (line.data[0] == '[') {
            is_inside = is_section(line, name);
            *has_section_out |= is_inside;
            continue;
        }
        const uint8_t *equals = memchr(line.data, '=', line.bytes);
        if (!is_inside || equals == NULL)
            continue;
        presto_span left = trimmed(presto_span_of(line.data, (size_t)(equals - line.data)));
        if (left.bytes != strlen(key) || strncasecmp((const char *)left.data, key, left.bytes) != 0)
            continue;
        *value_out =
            trimmed(presto_span_of(equals + 1, line.bytes - (size_t)(equals + 1 - line.data)));
        is_found = true; /* the last one counts */
    }
    return is_found;
}

/* ---- the environment and the files ---- */

/* NULL: not set, or empty. */
static const char *variable(const char *name) {
    const char *value = getenv(name);
    return value == NULL || value[0] == '\0' ? NULL : value;
}

/* The text of a small file of this machine; empty if there is none. */
static presto_status read_text(const char *path, presto_buffer *out, presto_error *err) {
    struct stat info;
    int fd;
    presto_error why;
    presto_status status = presto__open_regular(path, &fd, &info, &why);
    if (status == PRESTO_ERR_NOT_FOUND)
        return PRESTO_OK;
    if (status < 0) {
        if (err != NULL)
            *err = why;
        return status;
    }
    size_t got = 0;
    if ((uint64_t)info.st_size > MOST_FILE_BYTES)
        status = presto_fail(err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET, "is larger than 1 MiB");
    else
        status = presto_buffer_reserve(out, (size_t)info.st_size + 1, err);
    if (status == PRESTO_OK)
        status = presto__pread((presto__file_place){fd, path, 0}, out->data, (size_t)info.st_size,
                               &got, err);
    close(fd);
    out->bytes = got;
    presto_error_set_file(status < 0 ? err : NULL, path);
    return status;
}

/* The text of FILE, which a variable names, or which stands in ~/.aws; empty if there is none. */
static presto_status read_shared(const char *variable_name, const char *file, presto_buffer *out,
                                 presto_error *err) {
    const char *named = variable(variable_name), *home = variable("HOME");
    if (named != NULL)
        return read_text(named, out, err);
    if (home == NULL)
        return PRESTO_OK;
    char *path = presto__join_path(home, file);
    if (path == NULL)
        return presto_fail_memory(err, strlen(home));
    presto_status status = read_text(path, out, err);
    free(path);
    return status;
}

/* Set *text_io to a copy, unless it is set. */
static presto_status take(char **text_io, presto_span value, presto_error *err) {
    if (*text_io != NULL || value.bytes == 0)
        return PRESTO_OK;
    char *text = malloc(value.bytes + 1); /* no strndup: nothing ends the file's text */
    if (text == NULL)
        return presto_fail_memory(err, value.bytes);
    memcpy(text, value.data, value.bytes);
    text[value.bytes] = '\0';
    *text_io = text;
    return PRESTO_OK;
}

static presto_status take_variables(presto__s3_settings *settings, presto_error *err) {
    const struct {
        char **text;
        const char *name;
    } wanted[] = {
        {&settings->region, "AWS_REGION"},
        {&settings->region, "AWS_DEFAULT_REGION"},
        {&settings->endpoint, "AWS_ENDPOINT_URL_S3"},
        {&settings->endpoint, "AWS_ENDPOINT_URL"},
    };
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        const char *value = variable(wanted[i].name);
        if (value != NULL)
            PRESTO_TRY(take(wanted[i].text, presto_span_of_text(value), err));
    }
    const char *anonymous = variable("PRESTO_S3_ANONYMOUS");
    settings->is_anonymous = anonymous != NULL && strcmp(anonymous, "0") != 0;
    return PRESTO_OK;
}

/* Keys that the environment gives go before those of a profile, also of one that it names: so do AWS's
 * own programs. */
static presto_status take_keys(presto__s3_settings *settings, presto_error *err) {
    const char *access = variable("AWS_ACCESS_KEY_ID");
    const char *secret = variable("AWS_SECRET_ACCESS_KEY");
    const char *token = variable("AWS_SESSION_TOKEN");
    if (access == NULL && secret == NULL)
        return PRESTO_OK;
    if (access == NULL || secret == NULL)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "%s is set, and %s is not: set both, or none",
                           access == NULL ? "AWS_SECRET_ACCESS_KEY" : "AWS_ACCESS_KEY_ID",
                           access == NULL ? "AWS_ACCESS_KEY_ID" : "AWS_SECRET_ACCESS_KEY");
    PRESTO_TRY(take(&settings->access_key, presto_span_of_text(access), err));
    PRESTO_TRY(take(&settings->secret_key, presto_span_of_text(secret), err));
    return token == NULL ? PRESTO_OK : take(&settings->token, presto_span_of_text(token), err);
}

/* What the profile says in the text of one file. */
static presto_status take_profile(presto__s3_settings *settings, presto_span text,
                                  const char *profile, bool *has_profile_io, presto_error *err) {
    const struct {
        char **value;
        const char *key;
    } wanted[] = {
        {&settings->region, "region"},
        {&settings->endpoint, "endpoint_url"},
    };
    presto_span value, secret, token = {0};
    bool is_there;
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        if (presto__ini_find(text, profile, wanted[i].key, &value, &is_there))
            PRESTO_TRY(take(wanted[i].value, value, err));
        *has_profile_io |= is_there;
    }
    if (settings->access_key != NULL ||
        !presto__ini_find(text, profile, "aws_access_key_id", &value, &is_there) ||
        value.bytes == 0)
        return PRESTO_OK;
    if (!presto__ini_find(text, profile, "aws_secret_access_key", &secret, &is_there) ||
        secret.bytes == 0)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "the profile '%s' has aws_access_key_id and no aws_secret_access_key",
                           profile);
    PRESTO_TRY(take(&settings->access_key, value, err));
    PRESTO_TRY(take(&settings->secret_key, secret, err));
    (void)presto__ini_find(text, profile, "aws_session_token", &token, &is_there);
    return take(&settings->token, token, err);
}

static presto_status take_files(presto__s3_settings *settings, presto_error *err) {
    const char *named = variable("AWS_PROFILE");
    const char *profile = named != NULL ? named : "default";
    presto_buffer credentials = {0}, config = {0};
    bool has_profile = false;
    presto_status status =
        read_shared("AWS_SHARED_CREDENTIALS_FILE", ".aws/credentials", &credentials, err);
    if (status == PRESTO_OK)
        status = read_shared("AWS_CONFIG_FILE", ".aws/config", &config, err);
    if (status == PRESTO_OK)
        status =
            take_profile(settings, presto_buffer_span(&credentials), profile, &has_profile, err);
    if (status == PRESTO_OK)
        status = take_profile(settings, presto_buffer_span(&config), profile, &has_profile, err);
    if (status == PRESTO_OK && named != NULL && !has_profile)
        status =
            presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                        "AWS_PROFILE is '%s', and neither ~/.aws/credentials nor ~/.aws/config "
                        "has that profile",
                        profile);
    presto_buffer_done(&credentials);
    presto_buffer_done(&config);
    return status;
}

static presto_status check_endpoint(const char *endpoint, presto_error *err) {
    if (strncasecmp(endpoint, "http://", 7) != 0 && strncasecmp(endpoint, "https://", 8) != 0)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "the endpoint '%s' is no URL: it begins with https:// or http://",
                           endpoint);
    const char *host = strstr(endpoint, "://") + strlen("://");
    if (strchr(host, '@') != NULL) /* not shown: it may be a password */
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "the endpoint has a user's name or an '@': requests are signed with "
                           "the keys of AWS_ACCESS_KEY_ID or of a profile");
    if (host[0] == '\0' || host[0] == '/' || host[0] == ':' || strpbrk(host, "?# \t\r\n") != NULL)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "the endpoint '%s' is no https://HOST, https://HOST:PORT or "
                           "https://HOST/PATH",
                           endpoint);
    return PRESTO_OK;
}

static presto_status check(presto__s3_settings *settings, presto_error *err) {
    char *endpoint = settings->endpoint;
    if (settings->region == NULL)
        PRESTO_TRY(take(&settings->region, presto_span_of_text(DEFAULT_REGION), err));
    for (size_t i = 0; settings->region[i] != '\0'; i++) /* it becomes part of a host's name */
        if (strchr("abcdefghijklmnopqrstuvwxyz0123456789-", settings->region[i]) == NULL)
            return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                               "'%s' is no region: us-east-1, eu-central-1, ...", settings->region);
    if (endpoint != NULL)
        PRESTO_TRY(check_endpoint(endpoint, err));
    for (size_t bytes = endpoint == NULL ? 0 : strlen(endpoint);
         bytes > 0 && endpoint[bytes - 1] == '/'; bytes--)
        endpoint[bytes - 1] = '\0';
    if (settings->access_key != NULL || settings->is_anonymous)
        return PRESTO_OK;
    return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                       "no keys for S3: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or "
                       "AWS_PROFILE to a profile of ~/.aws/credentials that has them, or "
                       "PRESTO_S3_ANONYMOUS=1 for a public bucket");
}

presto_status presto__s3_settings_find(presto__s3_settings *settings_out, presto_error *err) {
    presto__s3_settings settings = {.is_anonymous = false};
    presto_status status = take_variables(&settings, err);
    if (status == PRESTO_OK)
        status = take_keys(&settings, err);
    if (status == PRESTO_OK)
        status = take_files(&settings, err);
    if (status == PRESTO_OK)
        status = check(&settings, err);
    if (status < 0)
        presto__s3_settings_done(&settings);
    else
        *settings_out = settings;
    return status;
}

void presto__s3_settings_done(presto__s3_settings *settings) {
    free(settings->access_key);
    free(settings->secret_key);
    free(settings->token);
    free(settings->region);
    free(settings->endpoint);
    *settings = (presto__s3_settings){.is_anonymous = false};
}
