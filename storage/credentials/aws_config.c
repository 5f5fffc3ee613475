/* SPDX-License-Identifier: Apache-2.0 */
#include "aws_config_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <unistd.h>

#include "../../base/file_internal.h"
#include "credentials_internal.h"
#include "ini_internal.h"

const char *presto__variable(const char *name) {
    const char *value = getenv(name);
    return value == NULL || value[0] == '\0' ? NULL : value;
}

bool presto__variable_is_true(const char *name) {
    const char *value = getenv(name);
    return value != NULL && strcasecmp(value, "true") == 0;
}

char *presto__in_home(const char *name) {
    const char *home = presto__variable("HOME");
    return home == NULL ? NULL : presto__join_path(home, name);
}

/* Is it a place where nothing can be: /dev/null, or in a folder that this user may not look into, as
 * the home of root? The tools of AWS pass over both. */
static bool is_nowhere(const char *path) {
    struct stat info;
    return strcmp(path, "/dev/null") == 0 || (stat(path, &info) != 0 && errno == EACCES);
}

static presto_status read_text(const char *path, presto_buffer *out, presto_error *err) {
    struct stat info;
    int fd;
    presto_error why;
    if (is_nowhere(path))
        return PRESTO_END;
    presto_status status = presto__open_regular(path, &fd, &info, &why);
    if (status == PRESTO_ERR_NOT_FOUND)
        return PRESTO_END;
    if (status < 0) {
        if (err != NULL)
            *err = why;
        return status;
    }
    size_t got = 0;
    if ((uint64_t)info.st_size > PRESTO__AWS_FILE_MOST_BYTES)
        status = presto_fail(err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET, "is larger than 1 MiB");
    else
        status = presto_buffer_reserve(out, (size_t)info.st_size + 1, err);
    if (status == PRESTO_OK)
        status = presto__pread((presto__file_place){fd, path, 0}, out->data + out->bytes,
                               (size_t)info.st_size, &got, err);
    close(fd);
    out->bytes += got;
    presto_error_set_file(status < 0 ? err : NULL, path);
    return status;
}

presto_status presto__small_file(const char *path, presto_buffer *out, presto_error *err) {
    if (strncmp(path, "~/", 2) != 0)
        return read_text(path, out, err);
    char *whole = presto__in_home(path + 2);
    if (whole == NULL)
        return PRESTO_END;
    presto_status status = read_text(whole, out, err);
    free(whole);
    return status;
}

presto_status presto__aws_config_read(presto__aws_config *config_out, presto_error *err) {
    presto__aws_config config = {.profile = NULL};
    const struct {
        const char *variable, *usual;
        presto_buffer *text;
    } files[] = {
        {"AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials", &config.credentials},
        {"AWS_CONFIG_FILE", "~/.aws/config", &config.config},
    };
    presto_status status = PRESTO_OK;
    for (size_t i = 0; i < sizeof files / sizeof files[0] && status >= 0; i++) {
        const char *named = presto__variable(files[i].variable);
        status = presto__small_file(named != NULL ? named : files[i].usual, files[i].text, err);
    }
    const char *variable = "AWS_DEFAULT_PROFILE", *named = presto__variable(variable);
    if (named == NULL)
        named = presto__variable(variable = "AWS_PROFILE");
    if (status >= 0)
        config.profile = strdup(named != NULL ? named : "default");
    if (status >= 0 && config.profile == NULL)
        status = presto_fail_memory(err, 1);
    if (status >= 0 && named != NULL && !presto__aws_has_profile(&config, named))
        status = presto_fail(
            err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
            "%s is '%s', and neither ~/.aws/credentials ([%s]) nor ~/.aws/config ([profile %s]) "
            "has that profile",
            variable, named, named, named);
    if (status < 0) {
        presto__aws_config_done(&config);
        return status;
    }
    *config_out = config;
    return PRESTO_OK;
}

void presto__aws_config_done(presto__aws_config *config) {
    presto__forget_buffer(&config->credentials);
    presto__forget_buffer(&config->config);
    free(config->profile);
    config->profile = NULL;
}

/* [NAME] of the one file; of the other one [profile NAME], and [default]. */
static bool find_value(const presto__aws_config *config, presto__aws_file file,
                       const presto__ini_place *place, presto_span *value_out, bool *has_out) {
    const presto__ini_place profile = {"profile", place->name, place->key, place->inner};
    bool has[3] = {false}, is_found = false;
    if (file != PRESTO__AWS_CONFIG)
        is_found =
            presto__ini_find(presto_buffer_span(&config->credentials), place, value_out, &has[0]);
    if (!is_found && file != PRESTO__AWS_CREDENTIALS)
        is_found =
            presto__ini_find(presto_buffer_span(&config->config), &profile, value_out, &has[1]);
    if (!is_found && file != PRESTO__AWS_CREDENTIALS && strcmp(place->name, "default") == 0)
        is_found = presto__ini_find(presto_buffer_span(&config->config), place, value_out, &has[2]);
    *has_out = has[0] || has[1] || has[2];
    return is_found && value_out->bytes > 0;
}

bool presto__aws_has_profile(const presto__aws_config *config, const char *profile) {
    const presto__ini_place place = {NULL, profile, "", NULL};
    presto_span value;
    bool has_profile;
    (void)find_value(config, PRESTO__AWS_BOTH, &place, &value, &has_profile);
    return has_profile;
}

bool presto__aws_value(const presto__aws_config *config, presto__aws_file file, const char *profile,
                       const char *key, presto_span *value_out) {
    const presto__ini_place place = {NULL, profile, key, NULL};
    bool has_profile;
    return find_value(config, file, &place, value_out, &has_profile);
}

bool presto__aws_inner_value(const presto__aws_config *config, const char *profile, const char *key,
                             const char *inner, presto_span *value_out) {
    const presto__ini_place place = {NULL, profile, key, inner};
    bool has_profile;
    return find_value(config, PRESTO__AWS_BOTH, &place, value_out, &has_profile);
}

bool presto__aws_sso_value(const presto__aws_config *config, const char *name, const char *key,
                           presto_span *value_out) {
    const presto__ini_place place = {"sso-session", name, key, NULL};
    bool has_section;
    return presto__ini_find(presto_buffer_span(&config->config), &place, value_out, &has_section) &&
           value_out->bytes > 0;
}

/* ---- endpoint, region ---- */

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

/* That of the environment; false: none. */
static bool endpoint_variable(const char *service, presto_span *value_out) {
    char name[64];
    int at = snprintf(name, sizeof name, "AWS_ENDPOINT_URL_%s", service);
    for (int i = 0; i < at; i++)
        if (name[i] >= 'a' && name[i] <= 'z')
            name[i] = (char)(name[i] - 'a' + 'A');
    const char *value = presto__variable(name);
    if (value == NULL)
        value = presto__variable("AWS_ENDPOINT_URL");
    if (value != NULL)
        *value_out = presto_span_of_text(value);
    return value != NULL;
}

/* That of the profile; false: none. */
static bool endpoint_of(const presto__aws_config *config, const char *profile, const char *service,
                        presto_span *value_out) {
    presto_span services;
    bool has_section, is_found = false;
    if (presto__aws_value(config, PRESTO__AWS_BOTH, profile, "services", &services)) {
        char *name = presto_span_to_text(services);
        const presto__ini_place place = {"services", name, service, "endpoint_url"};
        is_found = name != NULL &&
                   presto__ini_find(presto_buffer_span(&config->config), &place, value_out,
                                    &has_section) &&
                   value_out->bytes > 0;
        free(name);
    }
    return is_found ||
           presto__aws_value(config, PRESTO__AWS_BOTH, profile, "endpoint_url", value_out);
}

presto_status presto__aws_endpoint(const presto__aws_config *config, const char *profile,
                                   const char *service, char **endpoint_out, presto_error *err) {
    presto_span value, ignored;
    bool is_ignored = presto__variable_is_true("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS") ||
                      (presto__aws_value(config, PRESTO__AWS_BOTH, profile,
                                         "ignore_configured_endpoint_urls", &ignored) &&
                       presto_span_is(ignored, "true"));
    *endpoint_out = NULL;
    if (is_ignored ||
        (!endpoint_variable(service, &value) && !endpoint_of(config, profile, service, &value)))
        return PRESTO_OK;
    char *endpoint = presto_span_to_text(value);
    if (endpoint == NULL)
        return presto_fail_memory(err, value.bytes);
    presto_status status = check_endpoint(endpoint, err);
    if (status < 0) {
        free(endpoint);
        return status;
    }
    for (size_t bytes = strlen(endpoint); bytes > 0 && endpoint[bytes - 1] == '/'; bytes--)
        endpoint[bytes - 1] = '\0';
    *endpoint_out = endpoint;
    return PRESTO_OK;
}

bool presto__is_region(presto_span text) {
    for (size_t i = 0; i < text.bytes; i++) /* it becomes part of a host's name */
        if (memchr("abcdefghijklmnopqrstuvwxyz0123456789-", text.data[i], 37) == NULL)
            return false;
    return text.bytes > 0 && text.bytes < 64;
}

presto_status presto__aws_region(const presto__aws_config *config, const char *profile,
                                 char **region_out, presto_error *err) {
    const char *named = presto__variable("AWS_REGION");
    presto_span value;
    if (named == NULL)
        named = presto__variable("AWS_DEFAULT_REGION");
    if (named != NULL) {
        value = presto_span_of_text(named);
    } else if (!presto__aws_value(config, PRESTO__AWS_BOTH, profile, "region", &value)) {
        *region_out = NULL;
        return PRESTO_OK;
    }
    if (!presto__is_region(value))
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "'%.*s' is no region: us-east-1, eu-central-1, ...", (int)value.bytes,
                           (const char *)value.data);
    *region_out = presto_span_to_text(value);
    return *region_out == NULL ? presto_fail_memory(err, value.bytes) : PRESTO_OK;
}
