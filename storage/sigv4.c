/* SPDX-License-Identifier: Apache-2.0 */
#include "sigv4_internal.h"

#include <stdlib.h>
#include <string.h>

#include "crypto_internal.h"

#define ALGORITHM "AWS4-HMAC-SHA256"
#define DAY_BYTES 8 /* of a time: "20260131" */

static presto_status add(presto_buffer *out, presto_span bytes, presto_error *err) {
    return presto_buffer_append(out, bytes, err);
}

static presto_status add_text(presto_buffer *out, const char *text, presto_error *err) {
    return presto_buffer_append(out, presto_span_of_text(text), err);
}

presto_status presto__percent_encode(presto_span text, bool keeps_slash, presto_buffer *out,
                                     presto_error *err) {
    static const char digits[] = "0123456789ABCDEF";
    PRESTO_TRY(presto_buffer_reserve(out, 3 * text.bytes, err));
    for (size_t i = 0; i < text.bytes; i++) {
        uint8_t c = text.data[i];
        bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                        (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.' || c == '~' ||
                        (c == '/' && keeps_slash);
        if (is_plain) {
            out->data[out->bytes++] = c;
        } else {
            out->data[out->bytes++] = '%';
            out->data[out->bytes++] = (uint8_t)digits[c >> 4];
            out->data[out->bytes++] = (uint8_t)digits[c & 15];
        }
    }
    return PRESTO_OK;
}

static int compare_spans(presto_span a, presto_span b) {
    size_t shared = a.bytes < b.bytes ? a.bytes : b.bytes;
    int order = shared == 0 ? 0 : memcmp(a.data, b.data, shared);
    return order != 0 ? order : (a.bytes > b.bytes) - (a.bytes < b.bytes);
}

static int compare_named(const void *a, const void *b) {
    const presto__named_value *x = a, *y = b;
    int order = compare_spans(x->name, y->name);
    return order != 0 ? order : compare_spans(x->value, y->value);
}

/* ---- the query ---- */

/* Sorting is by what is encoded: 'a=' stands before 'a%2F=', and 'a%2F=' before 'ab='. */
presto_status presto__query_encode(const presto__named_value *query, size_t count,
                                   presto_buffer *out, presto_error *err) {
    presto_buffer text = {0};
    presto__named_value *encoded = calloc(count + 1, sizeof *encoded);
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += 3 * (query[i].name.bytes + query[i].value.bytes);
    /* Reserved at once, so that what points into it stays. */
    presto_status status = encoded == NULL ? presto_fail_memory(err, count * sizeof *encoded)
                                           : presto_buffer_reserve(&text, bytes, err);
    for (size_t i = 0; i < count && status == PRESTO_OK; i++) {
        size_t at = text.bytes;
        (void)presto__percent_encode(query[i].name, false, &text, NULL);
        encoded[i].name = presto_span_of(text.data + at, text.bytes - at);
        at = text.bytes;
        (void)presto__percent_encode(query[i].value, false, &text, NULL);
        encoded[i].value = presto_span_of(text.data + at, text.bytes - at);
    }
    if (status == PRESTO_OK && count > 0)
        qsort(encoded, count, sizeof *encoded, compare_named);
    for (size_t i = 0; i < count && status == PRESTO_OK; i++) {
        if (i > 0)
            status = add_text(out, "&", err);
        if (status == PRESTO_OK)
            status = add(out, encoded[i].name, err);
        if (status == PRESTO_OK)
            status = add_text(out, "=", err);
        if (status == PRESTO_OK)
            status = add(out, encoded[i].value, err);
    }
    free(encoded);
    presto_buffer_done(&text);
    return status;
}

/* ---- headers ---- */

static bool is_space(uint8_t c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Spaces at the ends go, and each run of them within becomes one. */
static presto_status add_value(presto_buffer *out, presto_span value, presto_error *err) {
    PRESTO_TRY(presto_buffer_reserve(out, value.bytes, err));
    bool is_behind_space = false, is_first = true;
    for (size_t i = 0; i < value.bytes; i++) {
        if (is_space(value.data[i])) {
            is_behind_space = true;
            continue;
        }
        if (is_behind_space && !is_first)
            out->data[out->bytes++] = ' ';
        out->data[out->bytes++] = value.data[i];
        is_behind_space = is_first = false;
    }
    return PRESTO_OK;
}

static uint8_t small(uint8_t c) {
    return c >= 'A' && c <= 'Z' ? (uint8_t)(c - 'A' + 'a') : c;
}

/* Copies of the headers with names in small letters, sorted. One block of memory: free() it. */
static presto__named_value *sorted_headers(const presto__sigv4_request *request) {
    size_t count = request->header_count, bytes = 1;
    for (size_t i = 0; i < count; i++)
        bytes += request->headers[i].name.bytes;
    presto__named_value *headers = malloc(count * sizeof *headers + bytes);
    if (headers == NULL)
        return NULL;
    uint8_t *names = (uint8_t *)(headers + count);
    for (size_t i = 0; i < count; i++) {
        presto_span name = request->headers[i].name;
        for (size_t k = 0; k < name.bytes; k++)
            names[k] = small(name.data[k]);
        headers[i] =
            (presto__named_value){presto_span_of(names, name.bytes), request->headers[i].value};
        names += name.bytes;
    }
    qsort(headers, count, sizeof *headers, compare_named);
    return headers;
}

/* "host;x-amz-date" */
static presto_status add_names(presto_buffer *out, const presto__named_value *headers, size_t count,
                               presto_error *err) {
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            PRESTO_TRY(add_text(out, ";", err));
        PRESTO_TRY(add(out, headers[i].name, err));
    }
    return PRESTO_OK;
}

/* ---- the signature ---- */

static presto_status add_canonical(presto_buffer *out, const presto__sigv4_request *request,
                                   const presto__named_value *headers, presto_error *err) {
    PRESTO_TRY(add_text(out, request->method, err));
    PRESTO_TRY(add_text(out, "\n", err));
    PRESTO_TRY(presto__percent_encode(request->path, true, out, err));
    PRESTO_TRY(add_text(out, "\n", err));
    PRESTO_TRY(presto__query_encode(request->query, request->query_count, out, err));
    PRESTO_TRY(add_text(out, "\n", err));
    for (size_t i = 0; i < request->header_count; i++) {
        PRESTO_TRY(add(out, headers[i].name, err));
        PRESTO_TRY(add_text(out, ":", err));
        PRESTO_TRY(add_value(out, headers[i].value, err));
        PRESTO_TRY(add_text(out, "\n", err));
    }
    PRESTO_TRY(add_text(out, "\n", err));
    PRESTO_TRY(add_names(out, headers, request->header_count, err));
    PRESTO_TRY(add_text(out, "\n", err));
    return add_text(out, request->payload_hash, err);
}

/* "20260131/us-east-1/s3/aws4_request" */
static presto_status add_scope(presto_buffer *out, const presto__sigv4_signer *signer,
                               const presto__sigv4_request *request, presto_error *err) {
    PRESTO_TRY(add(out, presto_span_of(request->time, DAY_BYTES), err));
    const char *const parts[] = {"/", signer->region, "/", signer->service, "/aws4_request"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        PRESTO_TRY(add_text(out, parts[i], err));
    return PRESTO_OK;
}

/* A key for this day, region and service. */
static presto_status derive_key(const presto__sigv4_signer *signer,
                                const presto__sigv4_request *request,
                                uint8_t key[PRESTO__SHA256_BYTES], presto_error *err) {
    presto_buffer first = {0};
    presto_status status = add_text(&first, "AWS4", err);
    if (status == PRESTO_OK)
        status = add_text(&first, signer->secret_key, err);
    if (status == PRESTO_OK)
        status = presto__hmac_sha256(presto_buffer_span(&first),
                                     presto_span_of(request->time, DAY_BYTES), key, err);
    const char *const parts[] = {signer->region, signer->service, "aws4_request"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0] && status == PRESTO_OK; i++) {
        uint8_t before[PRESTO__SHA256_BYTES];
        memcpy(before, key, sizeof before);
        status = presto__hmac_sha256(presto_span_of(before, sizeof before),
                                     presto_span_of_text(parts[i]), key, err);
    }
    presto_buffer_done(&first);
    return status;
}

/* Of the canonical request, which stands in `work`; `work` is used up. */
static presto_status make_signature(const presto__sigv4_signer *signer,
                                    const presto__sigv4_request *request, presto_buffer *work,
                                    char signature[PRESTO__SHA256_HEX_BYTES], presto_error *err) {
    uint8_t digest[PRESTO__SHA256_BYTES], key[PRESTO__SHA256_BYTES];
    char hash[PRESTO__SHA256_HEX_BYTES];
    PRESTO_TRY(presto__sha256(presto_buffer_span(work), digest, err));
    presto__hex(digest, hash);
    work->bytes = 0;
    PRESTO_TRY(add_text(work, ALGORITHM "\n", err));
    PRESTO_TRY(add_text(work, request->time, err));
    PRESTO_TRY(add_text(work, "\n", err));
    PRESTO_TRY(add_scope(work, signer, request, err));
    PRESTO_TRY(add_text(work, "\n", err));
    PRESTO_TRY(add_text(work, hash, err));
    PRESTO_TRY(derive_key(signer, request, key, err));
    PRESTO_TRY(presto__hmac_sha256(presto_span_of(key, sizeof key), presto_buffer_span(work),
                                   digest, err));
    presto__hex(digest, signature);
    return PRESTO_OK;
}

static presto_status add_authorization(const presto__sigv4_signer *signer,
                                       const presto__sigv4_request *request,
                                       const presto__named_value *headers, presto_buffer *out,
                                       presto_error *err) {
    presto_buffer work = {0};
    char signature[PRESTO__SHA256_HEX_BYTES];
    presto_status status = add_canonical(&work, request, headers, err);
    if (status == PRESTO_OK)
        status = make_signature(signer, request, &work, signature, err);
    presto_buffer_done(&work);
    PRESTO_TRY(status);
    PRESTO_TRY(add_text(out, ALGORITHM " Credential=", err));
    PRESTO_TRY(add_text(out, signer->access_key, err));
    PRESTO_TRY(add_text(out, "/", err));
    PRESTO_TRY(add_scope(out, signer, request, err));
    PRESTO_TRY(add_text(out, ", SignedHeaders=", err));
    PRESTO_TRY(add_names(out, headers, request->header_count, err));
    PRESTO_TRY(add_text(out, ", Signature=", err));
    return add_text(out, signature, err);
}

presto_status presto__sigv4_sign(const presto__sigv4_signer *signer,
                                 const presto__sigv4_request *request, presto_buffer *out,
                                 presto_error *err) {
    PRESTO_TRY(presto__crypto_load(err));
    presto__named_value *headers = sorted_headers(request);
    if (headers == NULL)
        return presto_fail_memory(err, request->header_count * sizeof *headers);
    size_t before = out->bytes;
    presto_status status = add_authorization(signer, request, headers, out, err);
    if (status < 0)
        out->bytes = before;
    free(headers);
    return status;
}
