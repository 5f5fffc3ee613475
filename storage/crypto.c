/* SPDX-License-Identifier: Apache-2.0 */
#include "crypto_internal.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>

/* What is declared here is the same in all versions that are tried. */
static struct {
    unsigned char *(*sha256)(const unsigned char *data, size_t bytes, unsigned char *digest);
    unsigned char *(*sha1)(const unsigned char *data, size_t bytes, unsigned char *digest);
    unsigned char *(*md5)(const unsigned char *data, size_t bytes, unsigned char *digest);
    int (*encode)(unsigned char *out, const unsigned char *in, int bytes);
    int (*decode)(unsigned char *out, const unsigned char *in, int bytes);
    void *(*bio_new)(const void *memory, int bytes);
    int (*bio_free)(void *bio);
    void *(*read_key)(void *bio, void **key, void *ask, void *password);
    void (*key_free)(void *key);
    void *(*context_new)(void);
    void (*context_free)(void *context);
    int (*sign_begin)(void *context, void **more, const void *kind, void *engine, void *key);
    int (*sign)(void *context, unsigned char *out, size_t *bytes_io, const unsigned char *data,
                size_t bytes);
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
    const struct {
        const char *symbol;
        void *function;
    } wanted[] = {
        {"SHA256", &library.sha256},
        {"SHA1", &library.sha1},
        {"MD5", &library.md5},
        {"EVP_EncodeBlock", &library.encode},
        {"EVP_DecodeBlock", &library.decode},
        {"BIO_new_mem_buf", &library.bio_new},
        {"BIO_free", &library.bio_free},
        {"PEM_read_bio_PrivateKey", &library.read_key},
        {"EVP_PKEY_free", &library.key_free},
        {"EVP_MD_CTX_new", &library.context_new},
        {"EVP_MD_CTX_free", &library.context_free},
        {"EVP_DigestSignInit", &library.sign_begin},
        {"EVP_DigestSign", &library.sign},
        {"EVP_sha256", &library.evp_sha256},
        {"HMAC", &library.hmac},
    };
    bool is_whole = handle != NULL;
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0] && is_whole; i++)
        is_whole = find(handle, wanted[i].symbol, wanted[i].function);
    if (is_whole)
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

static void write_hex(const uint8_t *digest, size_t bytes, char *text) {
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < bytes; i++) {
        text[2 * i] = digits[digest[i] >> 4];
        text[2 * i + 1] = digits[digest[i] & 15];
    }
    text[2 * bytes] = '\0';
}

void presto__hex(const uint8_t digest[PRESTO__SHA256_BYTES], char text[PRESTO__SHA256_HEX_BYTES]) {
    write_hex(digest, PRESTO__SHA256_BYTES, text);
}

presto_status presto__sha1_hex(presto_span bytes, char text[PRESTO__SHA1_HEX_BYTES],
                               presto_error *err) {
    uint8_t digest[PRESTO__SHA1_HEX_BYTES / 2];
    if (library.sha1(bytes.data, bytes.bytes, digest) == NULL)
        return presto_fail_memory(err, bytes.bytes);
    write_hex(digest, sizeof digest, text);
    return PRESTO_OK;
}

/* ---- base64 ---- */

presto_status presto__base64_encode(presto_span bytes, presto_buffer *out, presto_error *err) {
    if (bytes.bytes > (size_t)1 << 28)
        return presto_fail(err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET, "too many bytes as base64");
    PRESTO_TRY(presto_buffer_reserve(out, (bytes.bytes + 2) / 3 * 4 + 1, err));
    out->bytes += (size_t)library.encode(out->data + out->bytes, bytes.data, (int)bytes.bytes);
    return PRESTO_OK;
}

bool presto__base64_decode(const char *text, uint8_t *out, size_t room, size_t *bytes_out) {
    size_t bytes = strlen(text);
    if (bytes == 0 || bytes % 4 != 0 || bytes / 4 * 3 > room)
        return false;
    int got = library.decode(out, (const unsigned char *)text, (int)bytes);
    if (got < 0)
        return false;
    size_t padding = text[bytes - 2] == '=' ? 2 : text[bytes - 1] == '=';
    *bytes_out = (size_t)got - padding; /* the library counts zeros for it */
    return true;
}

presto_status presto__md5(presto_span bytes, uint8_t digest[PRESTO__MD5_BYTES], presto_error *err) {
    return library.md5(bytes.data, bytes.bytes, digest) == NULL
               ? presto_fail_memory(err, bytes.bytes)
               : PRESTO_OK;
}

void presto__md5_hex(const uint8_t digest[PRESTO__MD5_BYTES], char text[PRESTO__MD5_HEX_BYTES]) {
    write_hex(digest, PRESTO__MD5_BYTES, text);
}

presto_status presto__md5_base64(presto_span bytes, char text[PRESTO__MD5_BASE64_BYTES],
                                 presto_error *err) {
    uint8_t digest[16];
    if (library.md5(bytes.data, bytes.bytes, digest) == NULL)
        return presto_fail_memory(err, bytes.bytes);
    (void)library.encode((unsigned char *)text, digest, sizeof digest);
    return PRESTO_OK;
}

/* ---- RSA ---- */

presto_status presto__rs256_sign(const char *pem, presto_span bytes, presto_buffer *out,
                                 presto_error *err) {
    static char no_password[1]; /* with one, nobody is asked on the terminal */
    void *bio = library.bio_new(pem, (int)strlen(pem));
    void *key = bio == NULL ? NULL : library.read_key(bio, NULL, NULL, no_password);
    void *context = key == NULL ? NULL : library.context_new();
    size_t room = 0;
    bool is_made =
        context != NULL &&
        library.sign_begin(context, NULL, library.evp_sha256(), NULL, key) == 1 &&
        library.sign(context, NULL, &room, bytes.data, bytes.bytes) == 1 &&
        presto_buffer_reserve(out, room, NULL) == PRESTO_OK &&
        library.sign(context, out->data + out->bytes, &room, bytes.data, bytes.bytes) == 1;
    if (is_made)
        out->bytes += room;
    if (context != NULL)
        library.context_free(context);
    if (key != NULL)
        library.key_free(key);
    if (bio != NULL)
        (void)library.bio_free(bio);
    return is_made ? PRESTO_OK
                   : presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                                 "the private key is none that can sign (PEM, without a password)");
}
