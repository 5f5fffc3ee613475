/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Digests, HMAC, base64 and signatures by RSA, from OpenSSL's libcrypto. It is loaded at first use, as libcurl is, which brings
 * it along: only requests that are signed need it.
 */
#ifndef PRESTO_CRYPTO_INTERNAL_H
#define PRESTO_CRYPTO_INTERNAL_H

#include <presto/span.h>
#include <presto/status.h>

#define PRESTO__SHA256_BYTES 32
#define PRESTO__SHA256_HEX_BYTES (2 * PRESTO__SHA256_BYTES + 1) /* with the 0 */
#define PRESTO__SHA1_HEX_BYTES 41
#define PRESTO__MD5_BYTES 16
#define PRESTO__MD5_HEX_BYTES 33
#define PRESTO__MD5_BASE64_BYTES 25 /* with the 0 */

/** Load the library. PRESTO_ERR_UNSUPPORTED: it is not there; the message says which one, and why.
 * Any thread. */
presto_status presto__crypto_load(presto_error *err);

/* After presto__crypto_load. Any thread. PRESTO_ERR_MEMORY. */
presto_status presto__sha256(presto_span bytes, uint8_t digest[PRESTO__SHA256_BYTES],
                             presto_error *err);
presto_status presto__hmac_sha256(presto_span key, presto_span bytes,
                                  uint8_t digest[PRESTO__SHA256_BYTES], presto_error *err);

/** SHA-1 as text: a name of a file, no protection. */
presto_status presto__sha1_hex(presto_span bytes, char text[PRESTO__SHA1_HEX_BYTES],
                               presto_error *err);

/** MD5 as base64: S3 has it beside a customer's key. */
presto_status presto__md5_base64(presto_span bytes, char text[PRESTO__MD5_BASE64_BYTES],
                                 presto_error *err);

/** MD5 as it is, and as text: S3's ETags are made of it. */
presto_status presto__md5(presto_span bytes, uint8_t digest[PRESTO__MD5_BYTES], presto_error *err);
void presto__md5_hex(const uint8_t digest[PRESTO__MD5_BYTES], char text[PRESTO__MD5_HEX_BYTES]);

/** Append bytes as base64. PRESTO_ERR_LIMIT: more than 256 MiB. */
presto_status presto__base64_encode(presto_span bytes, presto_buffer *out, presto_error *err);
/** The bytes of a text in base64. False: it is none, or needs more room (3 bytes for 4 letters). */
bool presto__base64_decode(const char *text, uint8_t *out, size_t room, size_t *bytes_out);

/** Append the signature of `bytes` by RSA with SHA-256 (RS256 of RFC 7518), with a private key as
 * PEM. PRESTO_ERR_ARGUMENT: it is no such key. */
presto_status presto__rs256_sign(const char *pem, presto_span bytes, presto_buffer *out,
                                 presto_error *err);

/** A digest as text. */
void presto__hex(const uint8_t digest[PRESTO__SHA256_BYTES], char text[PRESTO__SHA256_HEX_BYTES]);

#endif
