/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kind `s3`: s3://BUCKET/KEY, on AWS or on any server that speaks like it. The key is written as
 * it is, not encoded. A server with an endpoint of its own has the bucket in its paths, AWS in the
 * name of its host, unless the settings say otherwise.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "crypto_internal.h"
#include "kept_internal.h"
#include "place_internal.h"
#include "remote_internal.h"
#include "s3_list_internal.h"
#include "s3_put_internal.h"
#include "s3_settings_internal.h"
#include "sigv4_internal.h"
#include "texts_internal.h"

#define SCHEME "s3://"
#define MOST_BUCKET_BYTES 63
#define MOST_SIGNED 16 /* headers */

typedef struct s3_address {
    presto__credentials *credentials;
    presto__s3_settings settings;
    char *host; /* as the request names it, with a port that is not the scheme's own */
    char *base; /* what stands before the path in the URL: "https://HOST" */
    char *path; /* not encoded: "/KEY" or "/BUCKET/KEY", behind the endpoint's own */
    char *bucket;
    pthread_mutex_t lock; /* of what an answer changes: settings.region, host, base */
} s3_address;

/* Regions that answers have named, by bucket, so that not every object is asked for in the wrong
 * one first. */
static presto__kept regions;

static bool s3_owns(const char *path) {
    return strncmp(path, SCHEME, strlen(SCHEME)) == 0;
}

/* May the bucket stand before a host's name, also under its certificate? */
static bool is_host_name(const char *bucket) {
    return bucket[strspn(bucket, "abcdefghijklmnopqrstuvwxyz0123456789-")] == '\0';
}

/* Does the bucket stand there? With an endpoint of its own, only if that is wished: most such servers
 * have no names for it. */
static bool is_in_host(const s3_address *self) {
    switch (self->settings.addressing) {
    case PRESTO__S3_PATH:
        return false;
    case PRESTO__S3_VIRTUAL:
        return true;
    case PRESTO__S3_AUTO:
    default:
        return self->settings.endpoint == NULL && is_host_name(self->bucket);
    }
}

/* Where AWS has the bucket, in the settings' region. */
static presto_status place_at_aws(s3_address *self, const char *key, presto_error *err) {
    const char *region = self->settings.region;
    const char *domain = strncmp(region, "cn-", 3) == 0 ? ".amazonaws.com.cn" : ".amazonaws.com";
    bool in_host = is_in_host(self);
    char *host = in_host ? PRESTO__JOINED(self->bucket, ".s3.", region, domain)
                         : PRESTO__JOINED("s3.", region, domain);
    char *base = host == NULL ? NULL : PRESTO__JOINED("https://", host);
    char *path = in_host ? PRESTO__JOINED("/", key) : PRESTO__JOINED("/", self->bucket, "/", key);
    free(self->host);
    free(self->base);
    free(self->path);
    self->host = host;
    self->base = base;
    self->path = path;
    return host == NULL || base == NULL || path == NULL ? presto_fail_memory(err, strlen(key))
                                                        : PRESTO_OK;
}

static presto_status place_at_endpoint(s3_address *self, const char *key, presto_error *err) {
    const char *endpoint = self->settings.endpoint;
    const char *host = strstr(endpoint, "://") + strlen("://");
    size_t bytes = strcspn(host, "/");
    bool is_tls = strncasecmp(endpoint, "https", 5) == 0;
    const char *own_port = is_tls ? ":443" : ":80";
    size_t port = strlen(own_port);
    bool in_host = is_in_host(self);
    char *scheme = strndup(endpoint, (size_t)(host - endpoint));
    char *whole = strndup(host, bytes);
    if (bytes > port && memcmp(host + bytes - port, own_port, port) == 0)
        bytes -= port;
    char *named = strndup(host, bytes);
    if (scheme != NULL && whole != NULL && named != NULL) {
        self->base = in_host ? PRESTO__JOINED(scheme, self->bucket, ".", whole)
                             : PRESTO__JOINED(scheme, whole);
        self->host = in_host ? PRESTO__JOINED(self->bucket, ".", named) : PRESTO__JOINED(named);
        self->path = in_host ? PRESTO__JOINED(host + strcspn(host, "/"), "/", key)
                             : PRESTO__JOINED(host + strcspn(host, "/"), "/", self->bucket,
                                              key[0] == '\0' ? "" : "/", key);
    }
    free(scheme);
    free(whole);
    free(named);
    return self->base == NULL || self->path == NULL || self->host == NULL
               ? presto_fail_memory(err, strlen(key))
               : PRESTO_OK;
}

static void s3_free(void *user) {
    s3_address *self = user;
    presto__s3_settings_done(&self->settings);
    presto__credentials_release(self->credentials);
    free(self->host);
    free(self->base);
    free(self->path);
    free(self->bucket);
    pthread_mutex_destroy(&self->lock);
    free(self);
}

static presto_status fail_name(presto_error *err) {
    return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                       "it is s3://BUCKET/KEY: a bucket of 3 to 63 letters, digits, '-', '.' and "
                       "'_', and a key");
}

static presto_status place(s3_address *self, const char *path, presto_error *err) {
    const char *bucket = path + strlen(SCHEME);
    size_t bytes = strcspn(bucket, "/");
    const char *key = bucket[bytes] == '/' ? bucket + bytes + 1 : "";
    if (bytes < 3 || bytes > MOST_BUCKET_BYTES)
        return fail_name(err);
    self->bucket = strndup(bucket, bytes);
    if (self->bucket == NULL)
        return presto_fail_memory(err, bytes);
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._";
    if (self->bucket[strspn(self->bucket, letters)] != '\0')
        return fail_name(err);
    PRESTO_TRY(presto__credentials_find(PRESTO__CLOUD_AWS, &self->credentials, err));
    PRESTO_TRY(presto__s3_settings_find(self->credentials, &self->settings, err));
    char *region = NULL;
    if (self->settings.endpoint == NULL) /* a name is that of one bucket there */
        region = presto__kept_find(&regions, self->bucket);
    if (region != NULL) {
        free(self->settings.region);
        self->settings.region = region;
    }
    return self->settings.endpoint != NULL ? place_at_endpoint(self, key, err)
                                           : place_at_aws(self, key, err);
}

static presto_status s3_make(const char *path, void **self_out, presto_error *err) {
    s3_address *self = calloc(1, sizeof *self);
    if (self == NULL)
        return presto_fail_memory(err, sizeof *self);
    int failed = pthread_mutex_init(&self->lock, NULL);
    if (failed != 0) {
        free(self);
        return presto_fail_errno(err, failed, NULL, "cannot make a lock");
    }
    presto_status status = place(self, path, err);
    if (status < 0) {
        presto_error_set_file(err, path);
        s3_free(self);
        return status;
    }
    *self_out = self;
    return PRESTO_OK;
}

/* All headers that are signed, and the signature. */
static presto_status add_signature(const s3_address *self, const presto__keys *keys,
                                   const presto__remote_wish *wish, presto__message *message,
                                   presto_error *err) {
    char time_text[32], range[64], hash[PRESTO__SHA256_HEX_BYTES];
    const char *payload_hash = PRESTO__NO_PAYLOAD;
    struct tm parts;
    time_t now = time(NULL);
    presto__named_value headers[MOST_SIGNED];
    presto_buffer authorization = {0};
    size_t count = 0;
    (void)gmtime_r(&now, &parts);
    strftime(time_text, sizeof time_text, "%Y%m%dT%H%M%SZ", &parts);
    if (wish->body.bytes > 0 && strncmp(self->base, "https", 5) == 0) {
        payload_hash = PRESTO__UNSIGNED_PAYLOAD; /* TLS protects it */
    } else if (wish->body.bytes > 0) {
        uint8_t digest[PRESTO__SHA256_BYTES];
        PRESTO_TRY(presto__crypto_load(err));
        PRESTO_TRY(presto__sha256(wish->body, digest, err));
        presto__hex(digest, hash);
        payload_hash = hash;
    }
#define ADD(header, text)                                                                          \
    headers[count++] = (presto__named_value){presto_span_of_text(header), presto_span_of_text(text)}
    ADD("host", self->host);
    ADD("x-amz-content-sha256", payload_hash);
    ADD("x-amz-date", time_text);
    if (keys->token != NULL)
        ADD("x-amz-security-token", keys->token);
    if (self->settings.pays)
        ADD("x-amz-request-payer", "requester");
    if (self->settings.customer_key[0] != '\0' &&
        (wish->has_customer_key || (wish->method == NULL && wish->query_count == 0))) {
        ADD("x-amz-server-side-encryption-customer-algorithm", "AES256");
        ADD("x-amz-server-side-encryption-customer-key", self->settings.customer_key);
        ADD("x-amz-server-side-encryption-customer-key-MD5", self->settings.customer_md5);
        if (wish->has_source_key) {
            ADD("x-amz-copy-source-server-side-encryption-customer-algorithm", "AES256");
            ADD("x-amz-copy-source-server-side-encryption-customer-key",
                self->settings.customer_key);
            ADD("x-amz-copy-source-server-side-encryption-customer-key-MD5",
                self->settings.customer_md5);
        }
    }
    if (wish->is_checksum)
        ADD("x-amz-checksum-mode", "ENABLED");
    if (wish->has_range) {
        snprintf(range, sizeof range, "bytes=%ju-%ju", (uintmax_t)wish->first,
                 (uintmax_t)wish->last);
        ADD("range", range);
    }
#undef ADD
    for (size_t i = 0; i < wish->header_count && count < MOST_SIGNED; i++)
        headers[count++] = wish->headers[i];
    const presto__sigv4_request request = {
        .method = wish->is_checksum      ? "HEAD"
                  : wish->method != NULL ? wish->method
                                         : "GET",
        .path = presto_span_of_text(self->path),
        .query = wish->query,
        .query_count = wish->query_count,
        .headers = headers,
        .header_count = count,
        .payload_hash = payload_hash,
        .time = time_text,
    };
    const presto__sigv4_signer signer = {keys->access_key, keys->secret_key, self->settings.region,
                                         "s3"};
    presto_status status = presto__sigv4_sign(&signer, &request, &authorization, err);
    if (status == PRESTO_OK)
        status =
            presto__message_add(message, "Authorization", presto_buffer_span(&authorization), err);
    presto_buffer_done(&authorization);
    PRESTO_TRY(status);
    for (size_t i = 1; i < count; i++) /* libcurl writes Host; the range is there */
        if (!presto_span_is(headers[i].name, "range"))
            PRESTO_TRY(presto__message_add(message, (const char *)headers[i].name.data,
                                           headers[i].value, err));
    return PRESTO_OK;
}

static presto_status write_all(const s3_address *self, const presto__keys *keys,
                               const presto__remote_wish *wish, presto__message *message,
                               presto_error *err) {
    if (self->base == NULL || self->path == NULL || self->host == NULL)
        return presto_fail_memory(err, 1); /* when another region was learned */
    PRESTO_TRY(presto_buffer_append(&message->text, presto_span_of_text(self->base), err));
    PRESTO_TRY(presto__percent_encode(presto_span_of_text(self->path), true, &message->text, err));
    if (wish->query_count > 0) {
        PRESTO_TRY(presto_buffer_append(&message->text, presto_span_of_text("?"), err));
        PRESTO_TRY(presto__query_encode(wish->query, wish->query_count, &message->text, err));
    }
    PRESTO_TRY(presto_buffer_append(&message->text, presto_span_of("", 1), err));
    PRESTO_TRY(presto__message_wish(message, wish, err));
    if (wish->body.data != NULL) /* libcurl would call it a form */
        PRESTO_TRY(presto__message_add(message, "Content-Type",
                                       presto_span_of_text("application/octet-stream"), err));
    if (keys->access_key != NULL)
        return add_signature(self, keys, wish, message, err);
    for (size_t i = 0; i < wish->header_count; i++)
        PRESTO_TRY(presto__message_add(message, (const char *)wish->headers[i].name.data,
                                       wish->headers[i].value, err));
    return wish->is_checksum ? presto__message_add(message, "x-amz-checksum-mode",
                                                   presto_span_of_text("ENABLED"), err)
                             : PRESTO_OK;
}

static presto_status s3_write(void *user, const presto__remote_wish *wish, presto__message *message,
                              presto_error *err) {
    s3_address *self = user;
    const presto__keys *keys;
    PRESTO_TRY(presto__keys_acquire(self->credentials, &keys, err));
    message->keys = keys->number;
    pthread_mutex_lock(&self->lock);
    presto_status status = write_all(self, keys, wish, message, err);
    pthread_mutex_unlock(&self->lock);
    presto__keys_release(keys);
    return status;
}

/* Does the answer say that the keys have expired? */
static bool is_expired(const presto__http_answer *answer) {
    static const char *const codes[] = {"<Code>ExpiredToken</Code>",
                                        "<Code>ExpiredTokenException</Code>",
                                        "<Code>TokenRefreshRequired</Code>"};
    bool is_it = false;
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        is_it = is_it || strstr(answer->text, codes[i]) != NULL;
    return answer->code >= 400 && answer->code < 500 && is_it;
}

/* The bucket is in another region, and the answer says in which. */
static bool s3_learn(void *user, const presto__http_answer *answer) {
    s3_address *self = user;
    bool is_new = false;
    if (is_expired(answer))
        return presto__keys_renew(self->credentials, answer->keys);
    pthread_mutex_lock(&self->lock);
    const char *letters = "abcdefghijklmnopqrstuvwxyz0123456789-";
    if ((answer->code == 301 || answer->code == 307 || answer->code == 400) &&
        answer->region[0] != '\0' && answer->region[strspn(answer->region, letters)] == '\0' &&
        strcmp(answer->region, self->settings.region) != 0) {
        char *region = strdup(answer->region);
        char *key = region == NULL ? NULL
                    : self->settings.endpoint != NULL
                        ? strdup("")
                        : strdup(self->path + (is_in_host(self) ? 1 : strlen(self->bucket) + 2));
        if (key != NULL) {
            if (self->settings.endpoint == NULL)
                presto__kept_set(&regions, self->bucket, region, true);
            free(self->settings.region);
            self->settings.region = region;
            region = NULL;
            is_new = self->settings.endpoint != NULL || place_at_aws(self, key, NULL) == PRESTO_OK;
        }
        free(region);
        free(key);
    }
    pthread_mutex_unlock(&self->lock);
    return is_new;
}

const presto__address_type presto__s3_address = {
    .make = s3_make, .free = s3_free, .write = s3_write, .learn = s3_learn};

static presto_status s3_open(const char *path, presto__object *object_out,
                             presto__object_info *info_out, presto_error *err) {
    const presto__remote_name name = {&presto__storage_s3, &presto__s3_address, path};
    if (presto__s3_is_bucket(path))
        return presto_fail_errno(err, EISDIR, path, "cannot read");
    return presto__remote_open(&name, object_out, info_out, err);
}

static presto_status s3_find(const char *path, presto__object_info *info_out, presto_error *err) {
    const presto__remote_name name = {&presto__storage_s3, &presto__s3_address, path};
    return presto__s3_find(&name, info_out, err);
}

static presto_status s3_checksum(const char *path, presto__object_checksum *checksum_out,
                                 presto_error *err) {
    const presto__remote_name name = {&presto__storage_s3, &presto__s3_address, path};
    return presto__remote_checksum(&name, checksum_out, err);
}

static presto_status s3_list(const char *path, const presto__list *list, presto_error *err) {
    const presto__remote_name name = {&presto__storage_s3, &presto__s3_address, path};
    return presto__s3_list(&name, list, err);
}

/* Its whole beginning is requested, whatever the number of bytes. */
static void s3_will_open(const char *path, uint64_t bytes) {
    const presto__remote_name name = {&presto__storage_s3, &presto__s3_address, path};
    (void)bytes;
    presto__remote_will_open(&name);
}

/* The keys, and what the settings and earlier answers say of the place. */
static presto_status s3_describe(const char *path, presto_place_facts *place_io,
                                 presto_error *err) {
    void *made;
    const presto__keys *keys;
    PRESTO_TRY(s3_make(path, &made, err));
    const s3_address *self = made;
    presto__place_text(self->settings.region, place_io->region, sizeof place_io->region);
    presto__place_text(self->base, place_io->endpoint, sizeof place_io->endpoint);
    presto_status status = presto__keys_acquire(self->credentials, &keys, err);
    if (status == PRESTO_OK) {
        presto__place_text(keys->provider, place_io->provider, sizeof place_io->provider);
        if (keys->access_key != NULL)
            presto__place_mask(keys->access_key, place_io->key);
        place_io->key_until_s = keys->until_s;
        presto__keys_release(keys);
    }
    s3_free(made);
    return status;
}

const presto__storage_kind presto__storage_s3 = {
    .name = "s3",
    .is_remote = true,
    .owns = s3_owns,
    .open = s3_open,
    .close = presto__remote_close,
    .read = presto__remote_read,
    .look = presto__remote_look,
    .find = s3_find,
    .list = s3_list,
    .checksum = s3_checksum,
    .number = presto__remote_number,
    .will_read = presto__remote_will_read,
    .will_open = s3_will_open,
    .describe = s3_describe,
};
