/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signatures of requests to S3 (AWS Signature Version 4, in a header).
 *
 * Source: AWS, "Authenticating Requests: Using the Authorization Header (AWS Signature Version 4)"
 *         of the S3 API reference. The path is encoded once and not normalized, as S3 wants it.
 */
#ifndef PRESTO_SIGV4_INTERNAL_H
#define PRESTO_SIGV4_INTERNAL_H

#include <presto/span.h>
#include <presto/status.h>

/** In the place of a payload's hash: over TLS, nothing else need protect it. */
#define PRESTO__UNSIGNED_PAYLOAD "UNSIGNED-PAYLOAD"
/** The hash of no payload. */
#define PRESTO__NO_PAYLOAD "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

/** A name with a value: of a query, or of a header. */
typedef struct presto__named_value {
    presto_span name, value;
} presto__named_value;

/** Who signs. Texts are borrowed. */
typedef struct presto__sigv4_signer {
    const char *access_key, *secret_key, *region, *service;
} presto__sigv4_signer;

/** What is signed. Nothing in it is encoded; all is borrowed. */
typedef struct presto__sigv4_request {
    const char *method;
    presto_span path;                 /* with the '/' that it begins with */
    const presto__named_value *query; /* in any order */
    size_t query_count;
    const presto__named_value *headers; /* all that are signed, "host" and "x-amz-date" among them;
                                           names in any case, in any order, each once */
    size_t header_count;
    const char *payload_hash; /* as the header x-amz-content-sha256 has it */
    const char *time;         /* as the header x-amz-date has it: "20260131T235959Z" */
} presto__sigv4_request;

/** Append `text` with all but letters, digits and "-_.~" as %XX; '/' stays if `keeps_slash`. */
presto_status presto__percent_encode(presto_span text, bool keeps_slash, presto_buffer *out,
                                     presto_error *err);

/** Append the query as it stands in the URL and is signed: encoded, sorted, without a '?'. */
presto_status presto__query_encode(const presto__named_value *query, size_t count,
                                   presto_buffer *out, presto_error *err);

/**
 * Append the value of the header Authorization.
 * Returns: PRESTO_OK; PRESTO_ERR_UNSUPPORTED (no libcrypto); PRESTO_ERR_MEMORY.
 */
presto_status presto__sigv4_sign(const presto__sigv4_signer *signer,
                                 const presto__sigv4_request *request, presto_buffer *out,
                                 presto_error *err);

#endif
