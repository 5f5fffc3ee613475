/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys of a container: from the agent of ECS, or of EKS Pod Identity, at an address that the
 * environment names. It is one of theirs, or this machine's own: a token is sent there.
 */
#include <stdlib.h>
#include <strings.h>

#include "provider_internal.h"

#define ECS "http://169.254.170.2"
#define MOST_MS 2000
#define TRIES 3

static presto_status check_address(const char *url, presto_error *err) {
    static const char *const known[] = {"169.254.170.2", "169.254.170.23", "fd00:ec2::23"};
    presto_span host = presto__host_of(url);
    bool is_url = (strncasecmp(url, "http://", 7) == 0 || strncasecmp(url, "https://", 8) == 0) &&
                  strpbrk(url, " \t\r\n") == NULL && memchr(url, '@', strlen(url)) == NULL;
    bool is_known = presto__is_loopback(host);
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        is_known = is_known || presto_span_is(host, known[i]);
    if (is_url && is_known)
        return PRESTO_OK;
    return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                       "AWS_CONTAINER_CREDENTIALS_FULL_URI names the host '%.*s': only this "
                       "machine, 169.254.170.2, 169.254.170.23 and fd00:ec2::23 are asked for keys",
                       (int)host.bytes, (const char *)host.data);
}

/* "Authorization: TOKEN", with a 0 behind; empty: there is none. */
static presto_status write_header(presto_buffer *header, presto_error *err) {
    const char *file = presto__variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
    const char *token = presto__variable("AWS_CONTAINER_AUTHORIZATION_TOKEN");
    if (file == NULL && token == NULL)
        return PRESTO_OK;
    PRESTO_TRY(
        presto__append_texts(header, err, "Authorization: ", file == NULL ? token : NULL, NULL));
    if (file != NULL) { /* anew each time: it is replaced before it expires */
        presto_status status = presto__small_file(file, header, err);
        PRESTO_TRY(status);
        if (status == PRESTO_END)
            return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                               "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE is '%s', which is not there",
                               file);
    }
    for (size_t i = 0; i < header->bytes; i++)
        if (header->data[i] < ' ' || header->data[i] >= 0x7f)
            return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                               "the container's authorization token has a line's end or a control "
                               "character in it");
    return presto_buffer_append(header, presto_span_of("", 1), err);
}

static presto_status ask(const char *url, presto__keys *keys_out, presto_error *err) {
    static const presto__key_names names = {"AccessKeyId", "SecretAccessKey", "Token",
                                            "Expiration"};
    presto_buffer header = {0}, answer = {0};
    int code;
    presto_status status = write_header(&header, err);
    if (status == PRESTO_OK) {
        const presto__question question = {
            .whom = "the container's agent",
            .url = url,
            .headers = {"Accept: application/json", (const char *)header.data},
            .header_count = header.bytes > 0 ? 2 : 1,
            .most_ms = MOST_MS,
            .is_direct = true,
            .tries = TRIES,
        };
        status = presto__ask(&question, &answer, &code, err);
    }
    if (status == PRESTO_OK)
        status = presto__keys_from_text(presto_buffer_span(&answer), &names,
                                        "the container's agent", keys_out, err);
    presto__forget_buffer(&header);
    presto__forget_buffer(&answer);
    return status;
}

static presto_status find(const presto__search *search, presto__keys *keys_out, presto_error *err) {
    const char *relative = presto__variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
    const char *full = presto__variable("AWS_CONTAINER_CREDENTIALS_FULL_URI");
    presto_buffer url = {0};
    (void)search;
    if (relative == NULL && full == NULL)
        return PRESTO_END;
    if (relative != NULL && relative[0] != '/')
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI is '%s', which does not begin "
                           "with a '/'",
                           relative);
    presto_status status = relative != NULL ? presto__append_texts(&url, err, ECS, relative, NULL)
                                            : presto__append_texts(&url, err, full, NULL);
    if (status == PRESTO_OK)
        status = presto_buffer_append(&url, presto_span_of("", 1), err);
    if (status == PRESTO_OK)
        status = check_address((const char *)url.data, err);
    if (status == PRESTO_OK)
        status = ask((const char *)url.data, keys_out, err);
    presto_buffer_done(&url);
    return status;
}

const presto__provider presto__provider_container = {"container", "EcsContainer", find};
