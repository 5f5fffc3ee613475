/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys of an EC2 instance's role, from its metadata service, version 2: a token is got first, and
 * sent with each request. Version 1 is asked only where a server knows no tokens at all (404, 405).
 *
 * A service that is not there, or has no role, is no failure: most machines are no instances.
 */
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "provider_internal.h"

#define USUAL "http://169.254.169.254"
#define USUAL_IPV6 "http://[fd00:ec2::254]"
#define ROLES "/latest/meta-data/iam/security-credentials/"
#define USUAL_MS 1000

/* How it is asked. */
typedef struct instance_service {
    char *base;   /* the URL, without a '/' at its end */
    long most_ms; /* for each try */
    unsigned tries;
    presto_buffer header; /* with the token, and a 0 behind; empty: version 1 */
} instance_service;

/* A variable, or what the profile says; NULL: nothing, or no memory. */
static char *setting(const presto__search *search, const char *variable, const char *key) {
    const char *named = presto__variable(variable);
    presto_span value;
    if (named != NULL)
        return strdup(named);
    return presto__aws_value(search->config, PRESTO__AWS_BOTH, search->config->profile, key, &value)
               ? presto_span_to_text(value)
               : NULL;
}

static long number_setting(const presto__search *search, const char *variable, const char *key,
                           long usual) {
    char *text = setting(search, variable, key);
    long value = text == NULL ? usual : strtol(text, NULL, 10);
    free(text);
    return value < 1 || value > 600 ? usual : value;
}

static presto_status find_service(const presto__search *search, instance_service *service,
                                  presto_error *err) {
    char *named =
        setting(search, "AWS_EC2_METADATA_SERVICE_ENDPOINT", "ec2_metadata_service_endpoint");
    char *mode = setting(search, "AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE",
                         "ec2_metadata_service_endpoint_mode");
    bool is_ipv6 = mode != NULL && strcasecmp(mode, "ipv6") == 0;
    free(mode);
    service->base = named != NULL ? named : strdup(is_ipv6 ? USUAL_IPV6 : USUAL);
    service->most_ms = USUAL_MS * number_setting(search, "AWS_METADATA_SERVICE_TIMEOUT",
                                                 "metadata_service_timeout", 1);
    service->tries = (unsigned)number_setting(search, "AWS_METADATA_SERVICE_NUM_ATTEMPTS",
                                              "metadata_service_num_attempts", 1);
    if (service->base == NULL)
        return presto_fail_memory(err, 1);
    if ((strncasecmp(service->base, "http://", 7) != 0 &&
         strncasecmp(service->base, "https://", 8) != 0) ||
        strpbrk(service->base, "@?# \t\r\n") != NULL)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "AWS_EC2_METADATA_SERVICE_ENDPOINT is no http:// URL of a host");
    for (size_t bytes = strlen(service->base); bytes > 0 && service->base[bytes - 1] == '/';
         bytes--)
        service->base[bytes - 1] = '\0';
    return PRESTO_OK;
}

static presto_status get(const instance_service *service, const char *method, const char *path,
                         const char *header, presto_buffer *answer, int *code_out,
                         presto_error *err) {
    presto_buffer url = {0};
    presto_status status = presto__append_texts(&url, err, service->base, path, NULL);
    if (status == PRESTO_OK)
        status = presto_buffer_append(&url, presto_span_of("", 1), err);
    if (status == PRESTO_OK) {
        const presto__question question = {
            .whom = "the instance's metadata service",
            .url = (const char *)url.data,
            .method = method,
            .headers = {header},
            .header_count = header == NULL ? 0 : 1,
            .most_ms = service->most_ms,
            .is_direct = true,
            .tries = service->tries,
        };
        status = presto__ask(&question, answer, code_out, err);
    }
    presto_buffer_done(&url);
    return status;
}

/* There are no keys here; who finds none elsewhere is told why. */
static presto_status pass_over(const presto__search *search, const presto_error *why,
                               const char *more) {
    snprintf(search->note, search->note_bytes, "%s%s", why->message, more);
    return PRESTO_END;
}

static bool is_passed_over(presto_status status) {
    return status == PRESTO_ERR_IO;
}

static presto_status get_token(const presto__search *search, instance_service *service,
                               presto_error *err) {
    presto_error why;
    presto_buffer token = {0};
    int code = 0;
    presto_status status = get(service, "PUT", "/latest/api/token",
                               "x-aws-ec2-metadata-token-ttl-seconds: 21600", &token, &code, &why);
    bool is_old = code == 404 || code == 405;
    if (is_passed_over(status) && is_old &&
        !presto__variable_is_true("AWS_EC2_METADATA_V1_DISABLED"))
        status = PRESTO_OK;
    else if (is_passed_over(status))
        status =
            pass_over(search, &why,
                      code == 0 ? " (in a container on an instance, its hop limit must be 2)" : "");
    else if (status < 0 && err != NULL)
        *err = why;
    for (size_t i = 0; i < token.bytes; i++)
        if (token.data[i] <= ' ' || token.data[i] >= 0x7f)
            token.bytes = i;
    if (status == PRESTO_OK && !is_old)
        status = presto__append_texts(&service->header, err, "x-aws-ec2-metadata-token: ", NULL);
    if (status == PRESTO_OK && !is_old)
        status = presto_buffer_append(&service->header, presto_buffer_span(&token), err);
    if (status == PRESTO_OK && !is_old)
        status = presto_buffer_append(&service->header, presto_span_of("", 1), err);
    presto__forget_buffer(&token);
    return status;
}

/* The path of the role's keys. */
static presto_status get_role(const instance_service *service, presto_buffer *path, int *code_out,
                              presto_error *err) {
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+=,.@_-";
    PRESTO_TRY(presto__append_texts(path, err, ROLES, NULL));
    size_t before = path->bytes;
    PRESTO_TRY(get(service, NULL, ROLES, (const char *)service->header.data, path, code_out, err));
    size_t end = before;
    while (end < path->bytes && path->data[end] != '\0' && strchr(letters, path->data[end]) != NULL)
        end++;
    path->bytes = end;
    if (end == before)
        return presto_fail(err, PRESTO_ERR_IO, PRESTO_NO_OFFSET,
                           "the instance's metadata service names no role");
    return presto_buffer_append(path, presto_span_of("", 1), err);
}

static presto_status get_keys(const presto__search *search, const instance_service *service,
                              presto__keys *keys_out, presto_error *err) {
    static const presto__key_names names = {"AccessKeyId", "SecretAccessKey", "Token",
                                            "Expiration"};
    presto_buffer path = {0}, answer = {0};
    presto_error why = {.status = PRESTO_OK};
    int code = 0;
    presto_status status = get_role(service, &path, &code, &why);
    if (status == PRESTO_OK)
        status = get(service, NULL, (const char *)path.data, (const char *)service->header.data,
                     &answer, &code, &why);
    if (status == PRESTO_OK)
        status = presto__keys_from_text(presto_buffer_span(&answer), &names,
                                        "the instance's metadata service", keys_out, &why);
    presto_buffer_done(&path);
    presto__forget_buffer(&answer);
    /* It may say in words why it has none, instead of keys. */
    if (is_passed_over(status) || status == PRESTO_ERR_SYNTAX)
        return pass_over(search, &why, code == 404 ? " (the instance has no role)" : "");
    if (status < 0 && err != NULL)
        *err = why;
    return status;
}

static presto_status find(const presto__search *search, presto__keys *keys_out, presto_error *err) {
    instance_service service = {.base = NULL};
    if (presto__variable_is_true("AWS_EC2_METADATA_DISABLED"))
        return PRESTO_END;
    presto_status status = find_service(search, &service, err);
    if (status == PRESTO_OK)
        status = get_token(search, &service, err);
    if (status == PRESTO_OK)
        status = get_keys(search, &service, keys_out, err);
    free(service.base);
    presto__forget_buffer(&service.header);
    return status;
}

const presto__provider presto__provider_instance = {"instance metadata", "Ec2InstanceMetadata",
                                                    find};
