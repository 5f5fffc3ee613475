/* SPDX-License-Identifier: Apache-2.0 */
#include "crypto_internal.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>

/* What is declared here is the same in all versions that are tried. */
static struct {
    unsigned char *(*sha256)(const unsigned char *data, size_t bytes, unsigned char *digest);
    const void *(*evp_sha256)(void);
    unsigned char *(*hmac)(const void *kind, const void *key, int key_bytes,
                           const unsigned char *data, size_t bytes, unsigned char *digest,
                           unsigned *digest_bytes);
} library;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static presto_error failure;

static bool find(void *handle, const char *symbol, void *function) {
    void *found = dlsym(handle, symbol);
    memcpy(function, &found, sizeof found);
    return found != NULL;
}

static void load(void) {
    static const char *const names[] = {"libcrypto.so.3", "libcrypto.so.1.1"};
    void *handle = NULL;
    for (size_t i = 0; handle == NULL && i < sizeof names / sizeof names[0]; i++)
        handle = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (handle != NULL && find(handle, "SHA256", &library.sha256) &&
        find(handle, "EVP_sha256", &library.evp_sha256) && find(handle, "HMAC", &library.hmac))
        return;
    const char *why = dlerror();
    (void)presto_fail(&failure, PRESTO_ERR_UNSUPPORTED, PRESTO_NO_OFFSET,
                      "signed requests need libcrypto.so.3 of OpenSSL, which cannot be loaded: %s",
                      why != NULL ? why : "no reason is given");
}

presto_status presto__crypto_load(presto_error *err) {
    (void)pthread_once(&once, load);
    if (failure.status < 0 && err != NULL)
        *err = failure;
    return failure.status;
}

presto_status presto__sha256(presto_span bytes, uint8_t digest[PRESTO__SHA256_BYTES],
                             presto_error *err) {
    return library.sha256(bytes.data, bytes.bytes, digest) != NULL
               ? PRESTO_OK
               : presto_fail_memory(err, bytes.bytes);
}

presto_status presto__hmac_sha256(presto_span key, presto_span bytes,
                                  uint8_t digest[PRESTO__SHA256_BYTES], presto_error *err) {
    unsigned got = 0;
    const unsigned char *made = library.hmac(library.evp_sha256(), key.data, (int)key.bytes,
                                             bytes.data, bytes.bytes, digest, &got);
    return made != NULL && got == PRESTO__SHA256_BYTES ? PRESTO_OK
                                                       : presto_fail_memory(err, bytes.bytes);
}

void presto__hex(const uint8_t digest[PRESTO__SHA256_BYTES], char text[PRESTO__SHA256_HEX_BYTES]) {
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < PRESTO__SHA256_BYTES; i++) {
        text[2 * i] = digits[digest[i] >> 4];
        text[2 * i + 1] = digits[digest[i] & 15];
    }
    text[PRESTO__SHA256_HEX_BYTES - 1] = '\0';
}
