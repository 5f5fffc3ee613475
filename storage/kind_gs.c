/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kind `gs`: gs://BUCKET/KEY on Google Cloud Storage, by its XML API with a bearer's token. The
 * key is written as it is, not encoded. An object is known by its generation: that is sent with each
 * range, and an object that was replaced has another one. Keys are listed as those of S3 are.
 *
 * Source: Google, "XML API reference": GET object, request headers, GET bucket (list objects) of
 *         version 2.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "credentials/credentials_internal.h"
#include "gs_put_internal.h"
#include "place_internal.h"
#include "remote_internal.h"
#include "s3_list_internal.h"
#include "sigv4_internal.h"

#define SCHEME "gs://"
#define HOST "https://storage.googleapis.com"
#define MOST_BUCKET_BYTES 222

/* Set once. */
typedef struct gs_address {
    presto__credentials *credentials;
    char *url; /* of the key; or of the bucket, whose keys may be listed */
} gs_address;

static bool gs_owns(const char *path) {
    return strncmp(path, SCHEME, strlen(SCHEME)) == 0;
}

static presto_status fail_name(presto_error *err) {
    return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                       "it is gs://BUCKET/KEY: a bucket of 3 to 222 letters, digits, '-', '.' and "
                       "'_', and a key");
}

/* Where the service is: Google's, or one that plays it, as STORAGE_EMULATOR_HOST says to all of
 * Google's libraries. */
presto_status presto__gs_base(presto_buffer *url, presto_error *err) {
    const char *named = getenv("STORAGE_EMULATOR_HOST");
    if (named == NULL || named[0] == '\0')
        return presto_buffer_append(url, presto_span_of_text(HOST), err);
    bool is_url = strncasecmp(named, "http://", 7) == 0 || strncasecmp(named, "https://", 8) == 0;
    size_t bytes = strlen(named);
    if (strpbrk(named, "@?# \t\r\n") != NULL)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "STORAGE_EMULATOR_HOST is no http://HOST:PORT");
    while (bytes > 0 && named[bytes - 1] == '/')
        bytes--;
    if (!is_url)
        PRESTO_TRY(presto_buffer_append(url, presto_span_of_text("http://"), err));
    return presto_buffer_append(url, presto_span_of(named, bytes), err);
}

static presto_status place(gs_address *self, const char *path, presto_error *err) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789-._";
    const char *bucket = path + strlen(SCHEME);
    size_t bytes = strcspn(bucket, "/");
    const char *key = bucket[bytes] == '/' ? bucket + bytes + 1 : "";
    presto_buffer url = {0};
    if (bytes < 3 || bytes > MOST_BUCKET_BYTES || strspn(bucket, letters) != bytes)
        return fail_name(err);
    presto_status status = presto__credentials_find(PRESTO__CLOUD_GOOGLE, &self->credentials, err);
    if (status == PRESTO_OK)
        status = presto__gs_base(&url, err);
    if (status == PRESTO_OK)
        status = presto_buffer_append(&url, presto_span_of("/", 1), err);
    if (status == PRESTO_OK)
        status = presto_buffer_append(&url, presto_span_of(bucket, bytes), err);
    if (status == PRESTO_OK && key[0] != '\0')
        status = presto_buffer_append(&url, presto_span_of("/", 1), err);
    if (status == PRESTO_OK)
        status = presto__percent_encode(presto_span_of_text(key), true, &url, err);
    if (status == PRESTO_OK) {
        self->url = presto_span_to_text(presto_buffer_span(&url));
        status = self->url == NULL ? presto_fail_memory(err, url.bytes) : PRESTO_OK;
    }
    presto_buffer_done(&url);
    return status;
}

static void gs_free(void *user) {
    gs_address *self = user;
    presto__credentials_release(self->credentials);
    free(self->url);
    free(self);
}

static presto_status gs_make(const char *path, void **self_out, presto_error *err) {
    gs_address *self = calloc(1, sizeof *self);
    if (self == NULL)
        return presto_fail_memory(err, sizeof *self);
    presto_status status = place(self, path, err);
    if (status < 0) {
        presto_error_set_file(err, path);
        gs_free(self);
        return status;
    }
    *self_out = self;
    return PRESTO_OK;
}

static presto_status add_token(const char *token, presto__message *message, presto_error *err) {
    presto_buffer value = {0};
    presto_status status = presto_buffer_append(&value, presto_span_of_text("Bearer "), err);
    if (status == PRESTO_OK)
        status = presto_buffer_append(&value, presto_span_of_text(token), err);
    if (status == PRESTO_OK)
        status = presto__message_add(message, "Authorization", presto_buffer_span(&value), err);
    presto__forget_buffer(&value);
    return status;
}

static presto_status add_url(const gs_address *self, const presto__remote_wish *wish,
                             presto_buffer *out, presto_error *err) {
    const char *url = wish->url != NULL ? wish->url : self->url;
    PRESTO_TRY(presto_buffer_append(out, presto_span_of_text(url), err));
    if (wish->query_count > 0) {
        PRESTO_TRY(presto_buffer_append(out, presto_span_of_text("?"), err));
        PRESTO_TRY(presto__query_encode(wish->query, wish->query_count, out, err));
    }
    return presto_buffer_append(out, presto_span_of("", 1), err);
}

/* Those of the wish itself. libcurl would call a body a form. */
static presto_status add_headers(const presto__remote_wish *wish, presto__message *message,
                                 presto_error *err) {
    bool has_type = wish->body.data == NULL;
    for (size_t i = 0; i < wish->header_count; i++) {
        const presto__named_value *header = &wish->headers[i];
        has_type = has_type || presto_span_is(header->name, "Content-Type");
        PRESTO_TRY(
            presto__message_add(message, (const char *)header->name.data, header->value, err));
    }
    return has_type ? PRESTO_OK
                    : presto__message_add(message, "Content-Type",
                                          presto_span_of_text("application/octet-stream"), err);
}

static presto_status gs_write(void *user, const presto__remote_wish *wish, presto__message *message,
                              presto_error *err) {
    const gs_address *self = user;
    const presto__keys *keys;
    PRESTO_TRY(presto__keys_acquire(self->credentials, &keys, err));
    message->keys = keys->number;
    presto_status status = add_url(self, wish, &message->text, err);
    if (status == PRESTO_OK &&
        (wish->has_range ||
         wish->is_checksum)) { /* as it is stored, whatever it is compressed by */
        status = presto__message_add(message, "Accept-Encoding", presto_span_of_text("gzip"), err);
    }
    if (status == PRESTO_OK)
        status = presto__message_wish(message, wish, err);
    if (status == PRESTO_OK && wish->generation != NULL)
        status = presto__message_add(message, "x-goog-if-generation-match",
                                     presto_span_of_text(wish->generation), err);
    if (status == PRESTO_OK)
        status = add_headers(wish, message, err);
    if (status == PRESTO_OK && keys->token != NULL)
        status = presto__check_secure("Google Cloud Storage (set PRESTO_GS_ANONYMOUS=1 for a "
                                      "server that plays it)",
                                      self->url, err);
    if (status == PRESTO_OK && keys->token != NULL && !wish->has_no_key)
        status = add_token(keys->token, message, err);
    presto__keys_release(keys);
    return status;
}

/* A token that is not taken any more. */
static bool gs_learn(void *user, const presto__http_answer *answer) {
    const gs_address *self = user;
    return answer->code == 401 && presto__keys_renew(self->credentials, answer->keys);
}

const presto__address_type presto__gs_address = {
    .make = gs_make, .free = gs_free, .write = gs_write, .learn = gs_learn};

static presto_status gs_open(const char *path, presto__object *object_out,
                             presto__object_info *info_out, presto_error *err) {
    const presto__remote_name name = {&presto__storage_gs, &presto__gs_address, path};
    if (presto__s3_is_bucket(path))
        return presto_fail_errno(err, EISDIR, path, "cannot read");
    return presto__remote_open(&name, object_out, info_out, err);
}

static presto_status gs_find(const char *path, presto__object_info *info_out, presto_error *err) {
    const presto__remote_name name = {&presto__storage_gs, &presto__gs_address, path};
    return presto__s3_find(&name, info_out, err);
}

static presto_status gs_list(const char *path, const presto__list *list, presto_error *err) {
    const presto__remote_name name = {&presto__storage_gs, &presto__gs_address, path};
    return presto__s3_list(&name, list, err);
}

static presto_status gs_checksum(const char *path, presto__object_checksum *checksum_out,
                                 presto_error *err) {
    const presto__remote_name name = {&presto__storage_gs, &presto__gs_address, path};
    return presto__remote_checksum(&name, checksum_out, err);
}

/* Its whole beginning is requested, whatever the number of bytes. */
static void gs_will_open(const char *path, uint64_t bytes) {
    const presto__remote_name name = {&presto__storage_gs, &presto__gs_address, path};
    (void)bytes;
    presto__remote_will_open(&name);
}

static presto_status gs_describe(const char *path, presto_place_facts *place_io,
                                 presto_error *err) {
    void *made;
    const presto__keys *keys;
    PRESTO_TRY(gs_make(path, &made, err));
    const gs_address *self = made;
    size_t end = (size_t)(strstr(self->url, "://") - self->url) + strlen("://");
    presto__place_text(self->url, place_io->endpoint, sizeof place_io->endpoint);
    end += strcspn(self->url + end, "/");
    if (end < sizeof place_io->endpoint)
        place_io->endpoint[end] = '\0';
    presto_status status = presto__keys_acquire(self->credentials, &keys, err);
    if (status == PRESTO_OK) {
        presto__place_text(keys->provider, place_io->provider, sizeof place_io->provider);
        if (keys->token != NULL)
            presto__place_mask(keys->token, place_io->key);
        place_io->key_until_s = keys->until_s;
        presto__keys_release(keys);
    }
    gs_free(made);
    return status;
}

const presto__storage_kind presto__storage_gs = {
    .name = "gs",
    .is_remote = true,
    .owns = gs_owns,
    .open = gs_open,
    .close = presto__remote_close,
    .read = presto__remote_read,
    .look = presto__remote_look,
    .find = gs_find,
    .list = gs_list,
    .checksum = gs_checksum,
    .number = presto__remote_number,
    .will_read = presto__remote_will_read,
    .will_open = gs_will_open,
    .describe = gs_describe,
};
