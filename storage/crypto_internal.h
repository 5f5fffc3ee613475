/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SHA-256 and HMAC, from OpenSSL's libcrypto. It is loaded at first use, as libcurl is, which brings
 * it along: only requests that are signed need it.
 */
#ifndef PRESTO_CRYPTO_INTERNAL_H
#define PRESTO_CRYPTO_INTERNAL_H

#include <presto/span.h>
#include <presto/status.h>

#define PRESTO__SHA256_BYTES 32
#define PRESTO__SHA256_HEX_BYTES (2 * PRESTO__SHA256_BYTES + 1) /* with the 0 */

/** Load the library. PRESTO_ERR_UNSUPPORTED: it is not there; the message says which one, and why.
 * Any thread. */
presto_status presto__crypto_load(presto_error *err);

/* After presto__crypto_load. Any thread. PRESTO_ERR_MEMORY. */
presto_status presto__sha256(presto_span bytes, uint8_t digest[PRESTO__SHA256_BYTES],
                             presto_error *err);
presto_status presto__hmac_sha256(presto_span key, presto_span bytes,
                                  uint8_t digest[PRESTO__SHA256_BYTES], presto_error *err);

/** A digest as text. */
void presto__hex(const uint8_t digest[PRESTO__SHA256_BYTES], char text[PRESTO__SHA256_HEX_BYTES]);

#endif
