/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AWS's Security Token Service: keys of a role, for other keys or for a token.
 *
 * Source: AWS, "AWS Security Token Service API Reference", AssumeRole and AssumeRoleWithWebIdentity.
 */
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <time.h>

#include "../calendar_internal.h"
#include "../crypto_internal.h"
#include "../sigv4_internal.h"
#include "../xml_internal.h"
#include "provider_internal.h"

#define VERSION "2011-06-15"
#define MOST_MS 60000
#define TRIES 4
#define FORM "application/x-www-form-urlencoded; charset=utf-8"

void presto__sts_session_name(char name_out[PRESTO__SESSION_NAME_BYTES]) {
    snprintf(name_out, PRESTO__SESSION_NAME_BYTES, "presto-session-%lld", (long long)time(NULL));
}

/* What an answer says. */
typedef struct sts_answer {
    presto__keys *keys;
    bool has_until;
} sts_answer;

static presto_status take(void *user, const presto__xml_element *element, presto_error *err) {
    sts_answer *answer = user;
    const char *name = strrchr(element->path, '/');
    const struct {
        const char *name;
        char **text;
    } wanted[] = {
        {"/AccessKeyId", &answer->keys->access_key},
        {"/SecretAccessKey", &answer->keys->secret_key},
        {"/SessionToken", &answer->keys->token},
    };
    if (name == NULL || strstr(element->path, "/Credentials/") == NULL)
        return PRESTO_OK;
    if (strcmp(name, "/Expiration") == 0)
        answer->has_until = presto__calendar_parse(element->text, &answer->keys->until_s);
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
        if (strcmp(name, wanted[i].name) == 0 && *wanted[i].text == NULL) {
            *wanted[i].text = presto_span_to_text(element->text);
            if (*wanted[i].text == NULL)
                return presto_fail_memory(err, element->text.bytes);
        }
    return PRESTO_OK;
}

static presto_status read_answer(presto_span text, presto__keys *keys_out, presto_error *err) {
    sts_answer answer = {.keys = keys_out};
    PRESTO_TRY(presto__xml_read(text, take, &answer, err));
    if (keys_out->access_key == NULL || keys_out->secret_key == NULL || keys_out->token == NULL ||
        !answer.has_until)
        return presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                           "STS answers without keys, or without a time when they expire");
    if (!presto__is_plain(keys_out->access_key) || !presto__is_plain(keys_out->secret_key) ||
        !presto__is_plain(keys_out->token))
        return presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                           "STS gives keys with spaces or control characters");
    return PRESTO_OK;
}

/* Where STS is, and the region that requests are signed for. */
static presto_status find_place(const presto__search *search, char **url_out, char **region_out,
                                presto_error *err) {
    char *endpoint = NULL, *region = NULL;
    presto_buffer url = {0};
    /* Those of the profile that was begun with, as for AWS's tools. */
    presto_status status =
        presto__aws_region(search->config, search->config->profile, &region, err);
    if (status == PRESTO_OK)
        status =
            presto__aws_endpoint(search->config, search->config->profile, "sts", &endpoint, err);
    if (status == PRESTO_OK && endpoint != NULL)
        status = presto__append_texts(&url, err, endpoint, "/", NULL);
    else if (status == PRESTO_OK && region == NULL)
        status = presto__append_texts(&url, err, "https://sts.amazonaws.com/", NULL);
    else if (status == PRESTO_OK)
        status = presto__append_texts(
            &url, err, "https://sts.", region,
            strncmp(region, "cn-", 3) == 0 ? ".amazonaws.com.cn/" : ".amazonaws.com/", NULL);
    if (status == PRESTO_OK && region == NULL && (region = strdup("us-east-1")) == NULL)
        status = presto_fail_memory(err, 1);
    *url_out = status == PRESTO_OK ? presto_span_to_text(presto_buffer_span(&url)) : NULL;
    if (status == PRESTO_OK && *url_out == NULL)
        status = presto_fail_memory(err, url.bytes);
    presto_buffer_done(&url);
    free(endpoint);
    if (status < 0) {
        free(region);
        region = NULL;
    }
    *region_out = region;
    return status;
}

/* "Host: " as libcurl writes it: without the port that is the scheme's own. */
static void write_host(const char *url, char *host, size_t room) {
    const char *from = strstr(url, "://");
    from = from == NULL ? url : from + strlen("://");
    size_t bytes = strcspn(from, "/");
    const char *own = strncasecmp(url, "https", 5) == 0 ? ":443" : ":80";
    size_t port = strlen(own);
    if (bytes > port && memcmp(from + bytes - port, own, port) == 0)
        bytes -= port;
    snprintf(host, room, "%.*s", (int)bytes, from);
}

/* The header Authorization, and what it signs. */
static presto_status sign(const char *url, const char *region, presto_span body,
                          const presto__keys *with, const char *time_text, presto_buffer *out,
                          presto_error *err) {
    uint8_t digest[PRESTO__SHA256_BYTES];
    char hash[PRESTO__SHA256_HEX_BYTES], host[300];
    const char *path = strstr(url, "://");
    path = path == NULL ? NULL : strchr(path + strlen("://"), '/');
    presto__named_value headers[4];
    size_t count = 0;
    PRESTO_TRY(presto__crypto_load(err));
    PRESTO_TRY(presto__sha256(body, digest, err));
    presto__hex(digest, hash);
    write_host(url, host, sizeof host);
#define ADD(header, text)                                                                          \
    headers[count++] = (presto__named_value){presto_span_of_text(header), presto_span_of_text(text)}
    ADD("content-type", FORM);
    ADD("host", host);
    ADD("x-amz-date", time_text);
    if (with->token != NULL)
        ADD("x-amz-security-token", with->token);
#undef ADD
    const presto__sigv4_request request = {
        .method = "POST",
        .path = presto_span_of_text(path == NULL ? "/" : path),
        .headers = headers,
        .header_count = count,
        .payload_hash = hash,
        .time = time_text,
    };
    const presto__sigv4_signer signer = {with->access_key, with->secret_key, region, "sts"};
    PRESTO_TRY(presto__append_texts(out, err, "Authorization: ", NULL));
    PRESTO_TRY(presto__sigv4_sign(&signer, &request, out, err));
    return presto_buffer_append(out, presto_span_of("", 1), err);
}

static presto_status write_body(const presto__sts_parameter *parameters, presto_buffer *out,
                                presto_error *err) {
    PRESTO_TRY(presto__append_texts(out, err, "Version=" VERSION, NULL));
    for (; parameters->name != NULL; parameters++)
        if (parameters->value != NULL) {
            PRESTO_TRY(presto__append_texts(out, err, "&", parameters->name, "=", NULL));
            PRESTO_TRY(
                presto__percent_encode(presto_span_of_text(parameters->value), false, out, err));
        }
    return PRESTO_OK;
}

static presto_status ask(const char *url, const char *region, presto_span body,
                         const presto__keys *with, presto__keys *keys_out, presto_error *err) {
    char date[40] = "x-amz-date: ";
    presto_buffer authorization = {0}, token = {0}, answer = {0};
    presto__question question = {
        .whom = "STS",
        .url = url,
        .headers = {"Content-Type: " FORM},
        .header_count = 1,
        .body = body,
        .most_ms = MOST_MS,
        .tries = TRIES,
    };
    presto_status status = PRESTO_OK;
    int code;
    if (with != NULL) {
        struct tm parts;
        time_t now = time(NULL);
        (void)gmtime_r(&now, &parts);
        strftime(date + strlen("x-amz-date: "), 20, "%Y%m%dT%H%M%SZ", &parts);
        status = sign(url, region, body, with, date + strlen("x-amz-date: "), &authorization, err);
        if (status == PRESTO_OK && with->token != NULL)
            status = presto__append_texts(&token, err, "x-amz-security-token: ", with->token, NULL);
        if (status == PRESTO_OK && with->token != NULL)
            status = presto_buffer_append(&token, presto_span_of("", 1), err);
        question.headers[question.header_count++] = date;
        question.headers[question.header_count++] = (const char *)authorization.data;
        if (with->token != NULL)
            question.headers[question.header_count++] = (const char *)token.data;
    }
    if (status == PRESTO_OK)
        status = presto__ask(&question, &answer, &code, err);
    if (status == PRESTO_OK)
        status = read_answer(presto_buffer_span(&answer), keys_out, err);
    presto__forget_buffer(&authorization);
    presto__forget_buffer(&token);
    presto__forget_buffer(&answer);
    return status;
}

presto_status presto__sts_ask(const presto__search *search, const presto__sts_parameter *parameters,
                              const presto__keys *with, presto__keys *keys_out, presto_error *err) {
    char *url, *region;
    presto_buffer body = {0};
    presto_status status = find_place(search, &url, &region, err);
    if (status != PRESTO_OK)
        return status;
    status = write_body(parameters, &body, err);
    if (status == PRESTO_OK)
        status = ask(url, region, presto_buffer_span(&body), with, keys_out, err);
    presto__forget_buffer(&body);
    free(url);
    free(region);
    return status;
}
