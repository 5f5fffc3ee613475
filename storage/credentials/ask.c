/* SPDX-License-Identifier: Apache-2.0 */
/* Questions for keys. What was sent is never in a message. */
#define _GNU_SOURCE /* memmem */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <time.h>

#include "../../base/stop_internal.h"
#include "../curl_internal.h"
#include "../transfer_internal.h"
#include "provider_internal.h"

#define FIRST_PAUSE_NS 100000000L
#define LEAST_TOKEN_BYTES 32

presto_status presto__append_texts(presto_buffer *out, presto_error *err, ...) {
    va_list texts;
    presto_status status = PRESTO_OK;
    va_start(texts, err);
    for (const char *text = va_arg(texts, const char *); text != NULL && status == PRESTO_OK;
         text = va_arg(texts, const char *))
        status = presto_buffer_append(out, presto_span_of_text(text), err);
    va_end(texts);
    return status;
}

presto_span presto__host_of(const char *url) {
    const char *host = strstr(url, "://");
    host = host == NULL ? url : host + strlen("://");
    if (host[0] == '[')
        return presto_span_of(host + 1, strcspn(host + 1, "]/?#"));
    return presto_span_of(host, strcspn(host, ":/?#"));
}

bool presto__is_loopback(presto_span host) {
    char text[32] = "";
    if (host.bytes >= sizeof text)
        return false;
    memcpy(text, host.data, host.bytes);
    return strcasecmp(text, "localhost") == 0 || strcmp(text, "::1") == 0 ||
           (strncmp(text, "127.", 4) == 0 && text[strspn(text, "0123456789.")] == '\0');
}

presto_status presto__check_secure(const char *whom, const char *url, presto_error *err) {
    bool is_plain = strncasecmp(url, "http://", 7) == 0;
    const char *host = strstr(url, "://");
    if (strpbrk(url, " \t\r\n") == NULL && host != NULL &&
        memchr(host + 3, '@', strcspn(host + 3, "/?#")) == NULL &&
        (strncasecmp(url, "https://", 8) == 0 ||
         (is_plain && presto__is_loopback(presto__host_of(url)))))
        return PRESTO_OK;
    return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                       "%s is to be asked at '%s', which is no https:// URL: no secret is sent "
                       "there",
                       whom, url);
}

/* May the same question be answered a moment later? */
static bool may_pass(const presto__http_answer *answer) {
    return (answer->failed != 0 && !answer->is_longer &&
            answer->failed != PRESTO__CURLE_OUT_OF_MEMORY) ||
           answer->code == 408 || answer->code == 429 || answer->code >= 500;
}

/* What the answer says, as one line. */
static void say(const presto__http_answer *answer, char *text, size_t room) {
    size_t at = 0;
    for (const char *c = answer->text; *c != '\0' && at + 1 < room; c++)
        if ((unsigned char)*c > ' ')
            text[at++] = *c;
        else if (at > 0 && text[at - 1] != ' ')
            text[at++] = ' ';
    text[at] = '\0';
}

static bool was_sent(const presto__question *question, const char *text, size_t bytes) {
    presto_span body = question->body;
    bool was = body.bytes > 0 && memmem(body.data, body.bytes, text, bytes) != NULL;
    for (size_t i = 0; i < question->header_count && !was; i++) {
        const char *header = question->headers[i];
        was = memmem(header, strlen(header), text, bytes) != NULL;
    }
    return was;
}

/* An answer may repeat what was asked, with the token in it: what is as long as one is not shown. */
static void hide_sent(const presto__question *question, char *text) {
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._~-";
    char *to = text;
    while (*text != '\0') {
        size_t bytes = strspn(text, letters);
        if (bytes >= LEAST_TOKEN_BYTES && was_sent(question, text, bytes)) {
            memcpy(to, "...", 3);
            to += 3;
            text += bytes;
            continue;
        }
        bytes = bytes == 0 ? 1 : bytes;
        memmove(to, text, bytes);
        to += bytes;
        text += bytes;
    }
    *to = '\0';
}

static presto_status fail(const presto__question *question, const presto__http_answer *answer,
                          presto_error *err) {
    char words[200];
    presto_span host = presto__host_of(question->url);
    say(answer, words, sizeof words);
    hide_sent(question, words);
    if (answer->is_longer)
        return presto_fail(err, PRESTO_ERR_IO, PRESTO_NO_OFFSET, "%s (%.*s) answers with too much",
                           question->whom, (int)host.bytes, (const char *)host.data);
    if (answer->failed != 0)
        return presto_fail(err, PRESTO_ERR_IO, PRESTO_NO_OFFSET, "%s (%.*s) cannot be asked: %s",
                           question->whom, (int)host.bytes, (const char *)host.data, answer->why);
    return presto_fail(err, PRESTO_ERR_IO, PRESTO_NO_OFFSET, "%s (%.*s) answered %d%s%s",
                       question->whom, (int)host.bytes, (const char *)host.data, answer->code,
                       words[0] == '\0' ? "" : ": ", words);
}

presto_status presto__ask(const presto__question *question, presto_buffer *answer, int *code_out,
                          presto_error *err) {
    presto__http_answer came = {.code = 0};
    presto__http_request request = {
        .url = question->url,
        .method = question->method,
        .body = question->body,
        .most_ms = question->most_ms,
        .is_direct = question->is_direct,
        .most_bytes = PRESTO__MOST_ANSWER_BYTES,
    };
    for (size_t i = 0; i < question->header_count; i++)
        request.headers[request.header_count++] = question->headers[i];
    PRESTO_TRY(presto_buffer_reserve(answer, PRESTO__MOST_ANSWER_BYTES, err));
    request.data = answer->data + answer->bytes;
    for (unsigned tries = 1;; tries++) {
        PRESTO_TRY(presto__http_transfer(&request, &came, err));
        *code_out = came.code;
        if (came.failed == 0 && came.code >= 200 && came.code < 300) {
            answer->bytes += came.bytes;
            return PRESTO_OK;
        }
        if (tries >= question->tries || !may_pass(&came))
            return fail(question, &came, err);
        const struct timespec pause = {.tv_nsec = FIRST_PAUSE_NS << (tries < 3 ? tries - 1 : 3)};
        PRESTO_TRY(presto__stop_check(err));
        (void)nanosleep(&pause, NULL);
    }
}
