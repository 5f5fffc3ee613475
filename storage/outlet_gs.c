/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects that are written to Google Cloud Storage, by its JSON API: small ones in one request, with
 * their CRC-32C, and larger ones as a resumable upload, chunk after chunk, of which one is under way
 * while the next one is filled. An object is there when its upload is over, and not before; an upload
 * that is not is nowhere to be seen, costs nothing, and ends by itself after a week.
 *
 * What is sent again is ignored by the service, as far as it has it. An answer may be lost all the
 * same: so what stands there is looked at before a condition that does not hold is an error.
 *
 * Source: Google, "JSON API: Objects: insert, rewrite", "Performing resumable uploads", "Request
 *         preconditions".
 */
#include <inttypes.h>
#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include <presto/crc32c.h>

#include "../base/clock_internal.h"
#include "../base/file_internal.h"
#include "../base/stop_internal.h"
#include "../base/thread_internal.h"
#include "gs_put_internal.h"
#include "s3_put_internal.h"
#include "sigv4_internal.h"
#include "texts_internal.h"

#define SCHEME "gs://"
#define CHUNK_BYTES ((size_t)16 << 20) /* must be a multiple of 256 KiB */
#define FIRST_ROOM_BYTES ((size_t)1 << 20)
#define MOST_ROUNDS 10 /* requests for one chunk of which the service keeps nothing */
#define MOST_COPIES 10000
#define WAIT_NS UINT64_C(100000000) /* a stop is asked for so often */
#define SESSION_BYTES 4096
#define BOUNDARY_BYTES 48

/* Where an object is written. */
typedef struct gs_target {
    const char *path;
    void *self;   /* of its address */
    char *base;   /* "https://HOST" */
    char *bucket; /* encoded */
    const char *key;
} gs_target;

/* Bytes of the object that follow each other. */
typedef struct gs_chunk {
    uint8_t *data;
    size_t bytes, capacity;
    uint64_t offset;
} gs_chunk;

struct gs_outlet;

typedef struct gs_sending {
    struct gs_outlet *outlet;
    presto__http_call call;
    presto__message message; /* what the call has borrowed */
    char range[80];
    bool is_begun; /* and not looked at */
    bool has_come; /* guarded by the outlet's lock */
} gs_sending;

/* Of one thread, but for what the lock guards. */
typedef struct gs_outlet {
    gs_target to;
    char *path;
    char session[SESSION_BYTES]; /* where chunks go; "": there is none yet */
    gs_chunk filling, sent;      /* sent: is under way, or was */
    gs_sending sending;
    bool is_sealed;
    unsigned generation; /* of the process that has begun to send (fork) */
    pthread_mutex_t lock;
    pthread_cond_t came;
} gs_outlet;

/* ---- where ---- */

static void target_done(gs_target *to) {
    if (to->self != NULL)
        presto__gs_address.free(to->self);
    free(to->base);
    free(to->bucket);
}

/* The caller calls target_done, also on failure. */
static presto_status target_init(const char *path, gs_target *to_out, presto_error *err) {
    const char *bucket = path + strlen(SCHEME);
    size_t bytes = strcspn(bucket, "/");
    presto_buffer base = {0};
    *to_out = (gs_target){.path = path, .key = bucket[bytes] == '/' ? bucket + bytes + 1 : ""};
    PRESTO_TRY(presto__gs_address.make(path, &to_out->self, err)); /* checks the names */
    presto_status status = presto__gs_base(&base, err);
    if (status == PRESTO_OK) {
        to_out->base = presto_span_to_text(presto_buffer_span(&base));
        to_out->bucket = strndup(bucket, bytes);
        if (to_out->base == NULL || to_out->bucket == NULL)
            status = presto_fail_memory(err, base.bytes);
    }
    if (status == PRESTO_OK && to_out->key[0] == '\0')
        status = presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                             "it is a bucket: an object has a key behind it");
    presto_buffer_done(&base);
    if (status < 0)
        presto_error_set_file(err, path);
    return status;
}

static presto_status add_text(presto_buffer *out, const char *text, presto_error *err) {
    return presto_buffer_append(out, presto_span_of_text(text), err);
}

/* "ifGenerationMatch=N" of a condition; "": none. What is no generation is none that an object has. */
static void condition_text(const presto__put_how *how, char out[64]) {
    out[0] = '\0';
    if (how->condition == PRESTO__PUT_NEW) {
        snprintf(out, 64, "0");
    } else if (how->condition == PRESTO__PUT_SAME) {
        const char *text = how->version->text;
        bool is_number = text[0] != '\0' && strlen(text) < 20 &&
                         text[strspn(text, "0123456789")] == '\0' && strcmp(text, "0") != 0;
        snprintf(out, 64, "%.19s", is_number ? text : "1");
    }
}

/* BASE/upload/storage/v1/b/BUCKET/o?uploadType=TYPE[&ifGenerationMatch=N], with a 0 behind. */
static presto_status upload_url(const gs_target *to, const char *type, const presto__put_how *how,
                                presto_buffer *url, presto_error *err) {
    char condition[64];
    condition_text(how, condition);
    PRESTO_TRY(add_text(url, to->base, err));
    PRESTO_TRY(add_text(url, "/upload/storage/v1/b/", err));
    PRESTO_TRY(add_text(url, to->bucket, err));
    PRESTO_TRY(add_text(url, "/o?uploadType=", err));
    PRESTO_TRY(add_text(url, type, err));
    if (condition[0] != '\0') {
        PRESTO_TRY(add_text(url, "&ifGenerationMatch=", err));
        PRESTO_TRY(add_text(url, condition, err));
    }
    return presto_buffer_append(url, presto_span_of("", 1), err);
}

/* What is to be known of the object, as JSON. The caller frees it. crc: NULL: not known yet. */
static presto_status metadata_text(const gs_target *to, const char *crc, char **text_out,
                                   presto_error *err) {
    json_t *all = json_pack("{s:s, s:s, s:s*}", "name", to->key, "contentType",
                            "application/octet-stream", "crc32c", crc);
    *text_out = all == NULL ? NULL : json_dumps(all, JSON_COMPACT);
    json_decref(all);
    if (*text_out != NULL)
        return PRESTO_OK;
    presto_status status = presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                                       "a key of Google Cloud Storage is text in UTF-8");
    presto_error_set_file(err, to->path);
    return status;
}

/* ---- what stands there ---- */

/* PRESTO_ERR_NOT_FOUND: nothing. */
static presto_status look(const gs_target *to, presto__gs_object *object_out, presto_error *err) {
    presto__http_answer answer;
    unsigned tries;
    const presto__remote_target target = {&presto__gs_address, to->self, to->path, NULL, 0};
    const presto__remote_wish wish = {.is_checksum = true};
    *object_out = (presto__gs_object){.bytes = 0};
    presto_status status = presto__remote_send(&target, &wish, &answer, &tries, err);
    presto__s3_note_sent(tries, 0);
    PRESTO_TRY(status);
    if (answer.failed != 0 || answer.code != 200)
        return presto__remote_fail(to->path, &wish, &answer, tries, err);
    *object_out = (presto__gs_object){.bytes = answer.length};
    snprintf(object_out->generation, sizeof object_out->generation, "%s", answer.generation);
    object_out->has_crc = presto__remote_crc(answer.crc32c, &object_out->crc32c);
    return PRESTO_OK;
}

/* Do these bytes stand there already, as they do when an answer was lost? */
static presto_status stands(const gs_target *to, uint64_t bytes, uint32_t crc32c, bool *stands_out,
                            presto__gs_object *object_out, presto_error *err) {
    presto_error why;
    presto_status status = look(to, object_out, &why);
    *stands_out = status == PRESTO_OK && object_out->bytes == bytes && object_out->has_crc &&
                  object_out->crc32c == crc32c;
    if (status == PRESTO_OK || status == PRESTO_ERR_NOT_FOUND)
        return PRESTO_OK;
    if (err != NULL)
        *err = why;
    return status;
}

static presto_status fail_at(const gs_target *to, presto_status status, presto_error *err) {
    presto_error_set_file(err, to->path);
    return status;
}

static presto_status remove_object(const gs_target *to, const char *generation, presto_error *err) {
    presto__http_answer answer;
    unsigned tries;
    const presto__remote_target target = {&presto__gs_address, to->self, to->path, NULL, 0};
    const presto__remote_wish wish = {
        .method = "DELETE", .what = "its removal", .generation = generation};
    presto_status status = presto__remote_send(&target, &wish, &answer, &tries, err);
    presto__s3_note_sent(tries, 0);
    PRESTO_TRY(status);
    bool came = answer.failed == 0 || answer.is_longer; /* nobody wants its body */
    bool is_missing = answer.code == 404 && strstr(answer.text, "NoSuchBucket") == NULL;
    bool is_gone = came && (answer.code == 200 || answer.code == 204 || is_missing);
    return is_gone ? PRESTO_OK : presto__remote_fail(to->path, &wish, &answer, tries, err);
}

/* The service says what it has taken: is it what was sent? A wrong object is removed. */
static presto_status check_taken(const gs_target *to, presto_span json, uint64_t bytes,
                                 uint32_t crc32c, presto__gs_object *object_out,
                                 presto_error *err) {
    presto_status status = presto__gs_object_parse(json, object_out, NULL);
    if (status < 0)
        status = look(to, object_out, err); /* what stands there says it, too */
    PRESTO_TRY(status);
    bool is_right =
        object_out->bytes == bytes && object_out->has_crc && object_out->crc32c == crc32c;
    if (is_right)
        return PRESTO_OK;
    if (object_out->generation[0] != '\0') /* else it may be somebody else's by now */
        (void)remove_object(to, object_out->generation, NULL);
    if (!object_out->has_crc)
        return fail_at(to,
                       presto_fail(err, PRESTO_ERR_IO, PRESTO_NO_OFFSET,
                                   "the service does not say the CRC-32C of what it has taken"),
                       err);
    return fail_at(to,
                   presto_fail(err, PRESTO_ERR_IO, PRESTO_NO_OFFSET,
                               "the service has taken %" PRIu64 " bytes with the CRC-32C %08" PRIx32
                               ", and %" PRIu64 " with %08" PRIx32 " were sent",
                               object_out->bytes, object_out->crc32c, bytes, crc32c),
                   err);
}

/* ---- all in one request ---- */

static presto_status fail_condition(const gs_target *to, const presto__put_how *how,
                                    presto_error *err) {
    return fail_at(to,
                   presto_fail(err, PRESTO_ERR_BUSY, PRESTO_NO_OFFSET,
                               how->condition == PRESTO__PUT_NEW
                                   ? "stands there already: somebody else has written it"
                                   : "has been replaced or removed by somebody else"),
                   err);
}

/* The metadata, and the bytes, as the parts of a message. */
static presto_status add_parts(const gs_target *to, const presto_span *pieces, size_t count,
                               uint32_t crc32c, const char *boundary, presto_buffer *out,
                               presto_error *err) {
    char crc[PRESTO__S3_CRC_BYTES], *metadata = NULL;
    presto__s3_crc_text(crc32c, crc);
    PRESTO_TRY(metadata_text(to, crc, &metadata, err));
    const char *const before[] = {
        "--",     boundary, "\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n", metadata,
        "\r\n--", boundary, "\r\nContent-Type: application/octet-stream\r\n\r\n"};
    const char *const behind[] = {"\r\n--", boundary, "--\r\n"};
    presto_status status = PRESTO_OK;
    for (size_t i = 0; i < sizeof before / sizeof before[0] && status == PRESTO_OK; i++)
        status = add_text(out, before[i], err);
    for (size_t i = 0; i < count && status == PRESTO_OK; i++)
        status = presto_buffer_append(out, pieces[i], err);
    for (size_t i = 0; i < sizeof behind / sizeof behind[0] && status == PRESTO_OK; i++)
        status = add_text(out, behind[i], err);
    free(metadata);
    return status;
}

/* A message of several parts, and what it holds of the object. */
typedef struct gs_body {
    presto_buffer all;
    char boundary[BOUNDARY_BYTES];
    uint64_t bytes;
    uint32_t crc32c;
} gs_body;

static presto_status put_once(const gs_target *to, const gs_body *body, const presto__put_how *how,
                              presto_error *err) {
    char type[BOUNDARY_BYTES + 48];
    presto_buffer url = {0};
    presto__http_answer answer = {.code = 0};
    presto__gs_object object = {.bytes = 0};
    unsigned tries = 0;
    uint8_t *said = malloc(PRESTO__GS_ANSWER_BYTES);
    presto_status status =
        said == NULL ? presto_fail_memory(err, PRESTO__GS_ANSWER_BYTES) : PRESTO_OK;
    if (status == PRESTO_OK)
        status = upload_url(to, "multipart", how, &url, err);
    snprintf(type, sizeof type, "multipart/related; boundary=%s", body->boundary);
    const presto__named_value header = {presto_span_of_text("Content-Type"),
                                        presto_span_of_text(type)};
    const presto__remote_wish wish = {.method = "POST",
                                      .what = "an upload",
                                      .url = (const char *)url.data,
                                      .body = presto_buffer_span(&body->all),
                                      .headers = &header,
                                      .header_count = 1};
    const presto__remote_target target = {&presto__gs_address, to->self, to->path, said,
                                          PRESTO__GS_ANSWER_BYTES};
    if (status == PRESTO_OK) {
        status = presto__remote_send(&target, &wish, &answer, &tries, err);
        presto__s3_note_sent(tries, body->bytes * tries);
    }
    if (status == PRESTO_OK && answer.failed == 0 && answer.code == 200) {
        status = check_taken(to, presto_span_of(said, answer.bytes), body->bytes, body->crc32c,
                             &object, err);
    } else if (status == PRESTO_OK) {
        bool is_refused =
            answer.failed == 0 && answer.code == 412 && how->condition != PRESTO__PUT_ANY;
        bool is_ours = false;
        if (is_refused)
            status = stands(to, body->bytes, body->crc32c, &is_ours, &object, err);
        if (status == PRESTO_OK && is_refused && !is_ours)
            status = fail_condition(to, how, err);
        else if (status == PRESTO_OK && !is_ours)
            status = presto__remote_fail(to->path, &wish, &answer, tries, err);
    }
    if (status == PRESTO_OK && how->version_out != NULL)
        snprintf(how->version_out->text, sizeof how->version_out->text, "%s", object.generation);
    presto_buffer_done(&url);
    free(said);
    return status;
}

static presto_status put(const gs_target *to, const presto_span *pieces, size_t count,
                         const presto__put_how *how, presto_error *err) {
    gs_body body = {.bytes = 0};
    /* Nobody who makes the bytes knows it. */
    snprintf(body.boundary, sizeof body.boundary, "presto-%016" PRIx64 "%016" PRIx64,
             presto__random_name(), presto__random_name());
    for (size_t i = 0; i < count; i++) {
        body.crc32c = presto_crc32c(body.crc32c, pieces[i].data, pieces[i].bytes);
        body.bytes += pieces[i].bytes;
    }
    presto_status status = add_parts(to, pieces, count, body.crc32c, body.boundary, &body.all, err);
    if (status == PRESTO_OK)
        status = put_once(to, &body, how, err);
    presto_buffer_done(&body.all);
    return status;
}

static presto_status gs_put(const char *path, const presto_span *pieces, size_t count,
                            const presto__put_how *how, presto_error *err) {
    gs_target to;
    presto_status status = target_init(path, &to, err);
    if (status == PRESTO_OK)
        status = put(&to, pieces, count, how, err);
    target_done(&to);
    return status;
}

/* ---- chunk after chunk ---- */

static presto_status begin_session(gs_outlet *outlet, presto_error *err) {
    const presto__put_how how = {.condition = PRESTO__PUT_NEW};
    const gs_target *to = &outlet->to;
    presto_buffer url = {0};
    char *metadata = NULL;
    presto__http_answer answer = {.code = 0};
    unsigned tries = 0;
    uint8_t *said = malloc(PRESTO__GS_ANSWER_BYTES);
    presto_status status =
        said == NULL ? presto_fail_memory(err, PRESTO__GS_ANSWER_BYTES) : PRESTO_OK;
    if (status == PRESTO_OK)
        status = metadata_text(to, NULL, &metadata, err);
    if (status == PRESTO_OK)
        status = upload_url(to, "resumable", &how, &url, err);
    const presto__named_value header = {presto_span_of_text("Content-Type"),
                                        presto_span_of_text("application/json; charset=UTF-8")};
    const presto__remote_wish wish = {.method = "POST",
                                      .what = "the beginning of an upload",
                                      .url = (const char *)url.data,
                                      .body = presto_span_of_text(metadata == NULL ? "" : metadata),
                                      .headers = &header,
                                      .header_count = 1};
    const presto__remote_target target = {&presto__gs_address, to->self, to->path, said,
                                          PRESTO__GS_ANSWER_BYTES};
    if (status == PRESTO_OK) {
        status = presto__remote_send(&target, &wish, &answer, &tries, err);
        presto__s3_note_sent(tries, 0);
    }
    bool is_begun = status == PRESTO_OK && answer.failed == 0 && answer.code == 200;
    size_t base = strlen(to->base);
    if (status == PRESTO_OK && !is_begun)
        status = answer.failed == 0 && answer.code == 412
                     ? fail_condition(to, &how, err)
                     : presto__remote_fail(to->path, &wish, &answer, tries, err);
    else if (is_begun &&
             (strncmp(answer.location, to->base, base) != 0 || answer.location[base] != '/' ||
              strlen(answer.location) >= sizeof outlet->session - 1))
        status = fail_at(to,
                         presto_fail(err, PRESTO_ERR_IO, PRESTO_NO_OFFSET,
                                     "an upload cannot be begun: the service does not say where on "
                                     "its own host the bytes go"),
                         err);
    else if (is_begun)
        snprintf(outlet->session, sizeof outlet->session, "%s", answer.location);
    presto_buffer_done(&url);
    free(metadata);
    free(said);
    return status;
}

/* The wish for `chunk`, behind its first `skipped` bytes. `total`: of the object; UINT64_MAX: it goes
 * on. `range` is the wish's. */
static presto__remote_wish wish_of_chunk(const gs_outlet *outlet, const gs_chunk *chunk,
                                         size_t skipped, uint64_t total, char range[80],
                                         presto__named_value *header) {
    uint64_t first = chunk->offset + skipped, last = chunk->offset + chunk->bytes - 1;
    if (total == UINT64_MAX)
        snprintf(range, 80, "bytes %" PRIu64 "-%" PRIu64 "/*", first, last);
    else
        snprintf(range, 80, "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64, first, last, total);
    *header =
        (presto__named_value){presto_span_of_text("Content-Range"), presto_span_of_text(range)};
    const presto__remote_wish wish = {
        .method = "PUT",
        .what = "a part of it",
        .url = outlet->session,
        .has_no_key = true, /* who knows the address may send */
        .body = presto_span_of(chunk->data + skipped, chunk->bytes - skipped),
        .headers = header,
        .header_count = 1};
    return wish;
}

/* How many bytes of the object the service has; false: the answer does not say it. */
static bool kept_bytes(const presto__http_answer *answer, uint64_t *bytes_out) {
    uint64_t last;
    if (answer->failed != 0 || answer->code != 308)
        return false;
    *bytes_out = 0; /* without the header, it has none */
    if (answer->content_range[0] == '\0')
        return true;
    if (sscanf(answer->content_range, "bytes=0-%" SCNu64, &last) != 1 || last > INT64_MAX)
        return false;
    *bytes_out = last + 1;
    return true;
}

static presto_status fail_kept(const gs_target *to, const gs_chunk *chunk, uint64_t kept,
                               presto_error *err) {
    return fail_at(to,
                   presto_fail(err, PRESTO_ERR_IO, kept,
                               "the service says that it has %" PRIu64 " bytes of it, when bytes "
                               "%" PRIu64 " to %" PRIu64 " were sent",
                               kept, chunk->offset, chunk->offset + chunk->bytes),
                   err);
}

/* An answer to a chunk that is none of those that go on. */
static presto_status fail_chunk(const gs_outlet *outlet, const presto__remote_wish *wish,
                                const presto__http_answer *answer, unsigned tries,
                                presto_error *err) {
    if (answer->failed != 0 || (answer->code != 404 && answer->code != 410))
        return presto__remote_fail(outlet->path, wish, answer, tries, err);
    return fail_at(&outlet->to,
                   presto_fail(err, PRESTO_ERR_IO, PRESTO_NO_OFFSET,
                               "the service has lost the upload, and answers %d: run it again with "
                               "--resume",
                               answer->code),
                   err);
}

/* Send what the service does not have of the chunk, until it has all of it. */
static presto_status send_rest(gs_outlet *outlet, const gs_chunk *chunk, size_t skipped,
                               presto_error *err) {
    const gs_target *to = &outlet->to;
    unsigned rounds = 0;
    while (skipped < chunk->bytes) {
        char range[80];
        presto__named_value header;
        presto__http_answer answer;
        unsigned tries;
        uint64_t kept;
        const presto__remote_wish wish =
            wish_of_chunk(outlet, chunk, skipped, UINT64_MAX, range, &header);
        const presto__remote_target target = {&presto__gs_address, to->self, to->path, NULL, 0};
        presto_status status = presto__remote_send(&target, &wish, &answer, &tries, err);
        presto__s3_note_sent(tries, (chunk->bytes - skipped) * tries);
        presto__s3_note_retry();
        PRESTO_TRY(status);
        if (!kept_bytes(&answer, &kept))
            return fail_chunk(outlet, &wish, &answer, tries, err);
        if (kept < chunk->offset + skipped || kept > chunk->offset + chunk->bytes)
            return fail_kept(to, chunk, kept, err);
        if (kept > chunk->offset + skipped)
            presto__retry_note_success();
        rounds = kept == chunk->offset + skipped ? rounds + 1 : 0;
        skipped = (size_t)(kept - chunk->offset);
        if (rounds == MOST_ROUNDS)
            return fail_kept(to, chunk, kept, err);
        if (rounds > 0)
            PRESTO_TRY(presto__remote_wait(rounds, err));
    }
    return PRESTO_OK;
}

/* A presto__http_call.done: by the thread of transfers. */
static void chunk_came(presto__http_call *call) {
    gs_outlet *outlet = ((gs_sending *)call->user)->outlet;
    pthread_mutex_lock(&outlet->lock);
    outlet->sending.has_come = true;
    pthread_cond_signal(&outlet->came);
    pthread_mutex_unlock(&outlet->lock);
}

/* Until the chunk that is under way is done. */
static presto_status wait_for_chunk(gs_outlet *outlet, presto_error *err) {
    for (;;) {
        uint64_t until_ns = presto__clock_ns() + WAIT_NS;
        const struct timespec until = {.tv_sec = (time_t)(until_ns / 1000000000),
                                       .tv_nsec = (long)(until_ns % 1000000000)};
        int failed = 0;
        pthread_mutex_lock(&outlet->lock);
        while (!outlet->sending.has_come && failed == 0)
            failed = pthread_cond_timedwait(&outlet->came, &outlet->lock, &until);
        bool has_come = outlet->sending.has_come;
        pthread_mutex_unlock(&outlet->lock);
        PRESTO_TRY(presto__stop_check(err));
        if (has_come)
            return PRESTO_OK;
    }
}

/* The service has what was under way, or gets it now. */
static presto_status settle_chunk(gs_outlet *outlet, presto_error *err) {
    gs_sending *sending = &outlet->sending;
    const gs_chunk *chunk = &outlet->sent;
    uint64_t kept;
    if (!sending->is_begun)
        return PRESTO_OK;
    PRESTO_TRY(wait_for_chunk(outlet, err));
    sending->is_begun = false;
    presto__s3_note_sent(1, chunk->bytes);
    const presto__http_answer *answer = &sending->call.answer;
    if (!kept_bytes(answer, &kept)) {
        if (!presto__answer_may_pass(answer)) {
            char range[80];
            presto__named_value header;
            const presto__remote_wish wish =
                wish_of_chunk(outlet, chunk, 0, UINT64_MAX, range, &header);
            return fail_chunk(outlet, &wish, answer, 1, err);
        }
        kept = chunk->offset; /* that is not known; what it has, it ignores */
    } else if (kept > chunk->offset) {
        presto__retry_note_success();
    }
    if (kept < chunk->offset || kept > chunk->offset + chunk->bytes)
        return fail_kept(&outlet->to, chunk, kept, err);
    return send_rest(outlet, chunk, (size_t)(kept - chunk->offset), err);
}

/* Hand over the chunk that is full, and begin the next one. There will be more of it. */
static presto_status send_chunk(gs_outlet *outlet, presto_error *err) {
    gs_sending *sending = &outlet->sending;
    presto__named_value header;
    if (outlet->session[0] == '\0')
        PRESTO_TRY(begin_session(outlet, err));
    PRESTO_TRY(settle_chunk(outlet, err));
    const gs_chunk full = outlet->filling;
    outlet->filling = outlet->sent;
    outlet->filling.bytes = 0;
    outlet->filling.offset = full.offset + full.bytes;
    outlet->sent = full;
    const presto__remote_wish wish =
        wish_of_chunk(outlet, &outlet->sent, 0, UINT64_MAX, sending->range, &header);
    presto__message_done(&sending->message);
    sending->message = (presto__message){.header_count = 0};
    PRESTO_TRY(presto__gs_address.write(outlet->to.self, &wish, &sending->message, err));
    sending->call = (presto__http_call){
        .request = presto__message_request(&sending->message), .done = chunk_came, .user = sending};
    sending->call.request.method = "PUT";
    sending->call.request.body = wish.body;
    sending->has_come = false;
    outlet->generation = presto__http_generation();
    PRESTO_TRY(presto__http_begin(&sending->call, 0, err));
    sending->is_begun = true;
    return PRESTO_OK;
}

/* Room for more bytes, and for all of a chunk in the end. */
static presto_status grow(gs_chunk *chunk, size_t wanted, presto_error *err) {
    if (chunk->bytes + wanted <= chunk->capacity)
        return PRESTO_OK;
    size_t capacity = chunk->capacity < FIRST_ROOM_BYTES ? FIRST_ROOM_BYTES : chunk->capacity;
    while (capacity < chunk->bytes + wanted)
        capacity *= 2;
    uint8_t *longer = realloc(chunk->data, capacity);
    if (longer == NULL)
        return presto_fail_memory(err, capacity);
    chunk->data = longer;
    chunk->capacity = capacity;
    return PRESTO_OK;
}

/* A full chunk is sent when there is more: the last one must not be empty. */
static presto_status gs_append(void *user, presto_span bytes, presto_error *err) {
    gs_outlet *outlet = user;
    while (bytes.bytes > 0) {
        if (outlet->filling.bytes == CHUNK_BYTES)
            PRESTO_TRY(send_chunk(outlet, err));
        size_t taken = CHUNK_BYTES - outlet->filling.bytes;
        if (taken > bytes.bytes)
            taken = bytes.bytes;
        PRESTO_TRY(grow(&outlet->filling, taken, err));
        memcpy(outlet->filling.data + outlet->filling.bytes, bytes.data, taken);
        outlet->filling.bytes += taken;
        bytes.data += taken;
        bytes.bytes -= taken;
    }
    return PRESTO_OK;
}

/* ---- the end ---- */

static presto_status fail_other(const gs_target *to, presto_error *err) {
    return fail_at(
        to,
        presto_fail(err, PRESTO_ERR_BUSY, PRESTO_NO_OFFSET,
                    "stands there already, with other bytes: somebody else writes there, "
                    "too"),
        err);
}

/* The last chunk, after which the object is there. */
static presto_status send_last(gs_outlet *outlet, uint32_t crc32c, presto_error *err) {
    const gs_target *to = &outlet->to;
    const gs_chunk *chunk = &outlet->filling;
    const uint64_t total = chunk->offset + chunk->bytes;
    presto__gs_object object;
    size_t skipped = 0;
    char crc[PRESTO__S3_CRC_BYTES], hash[32];
    uint8_t *said = malloc(PRESTO__GS_ANSWER_BYTES);
    presto_status status =
        said == NULL ? presto_fail_memory(err, PRESTO__GS_ANSWER_BYTES) : PRESTO_OK;
    presto__s3_crc_text(crc32c, crc);
    snprintf(hash, sizeof hash, "crc32c=%s", crc);
    for (unsigned round = 0; status == PRESTO_OK; round++) {
        char range[80];
        presto__named_value headers[2];
        presto__http_answer answer;
        unsigned tries;
        uint64_t kept;
        bool is_there = false;
        presto__remote_wish wish = wish_of_chunk(outlet, chunk, skipped, total, range, headers);
        headers[1] =
            (presto__named_value){presto_span_of_text("X-Goog-Hash"), presto_span_of_text(hash)};
        wish.headers = headers;
        wish.header_count = 2;
        wish.what = "the end of an upload";
        const presto__remote_target target = {&presto__gs_address, to->self, to->path, said,
                                              PRESTO__GS_ANSWER_BYTES};
        status = presto__remote_send(&target, &wish, &answer, &tries, err);
        presto__s3_note_sent(tries, (chunk->bytes - skipped) * tries);
        if (status < 0)
            break;
        if (answer.failed == 0 && (answer.code == 200 || answer.code == 201)) {
            status =
                check_taken(to, presto_span_of(said, answer.bytes), total, crc32c, &object, err);
            break;
        }
        if (kept_bytes(&answer, &kept) && kept >= chunk->offset && kept < total &&
            round < MOST_ROUNDS) {
            skipped = (size_t)(kept - chunk->offset);
            status = presto__remote_wait(round, err);
            continue;
        }
        /* It may have been done, and the answer was lost. */
        status = stands(to, total, crc32c, &is_there, &object, err);
        if (status == PRESTO_OK && !is_there)
            status = answer.failed == 0 && answer.code == 412
                         ? fail_other(to, err)
                         : fail_chunk(outlet, &wish, &answer, tries, err);
        break;
    }
    free(said);
    return status;
}

static presto_status gs_seal(void *user, uint32_t crc32c, presto_error *err) {
    gs_outlet *outlet = user;
    if (outlet->session[0] == '\0') {
        const presto__put_how how = {.condition = PRESTO__PUT_NEW};
        const presto_span all = presto_span_of(outlet->filling.data, outlet->filling.bytes);
        presto_error why;
        presto_status status = put(&outlet->to, &all, 1, &how, &why);
        if (status == PRESTO_ERR_BUSY)
            return fail_other(&outlet->to, err);
        if (status < 0) {
            if (err != NULL)
                *err = why;
            return status;
        }
    } else {
        PRESTO_TRY(settle_chunk(outlet, err));
        PRESTO_TRY(send_last(outlet, crc32c, err));
    }
    outlet->is_sealed = true;
    return PRESTO_OK;
}

static presto_status gs_look(void *user, presto__object *object_out, presto_error *err) {
    const gs_outlet *outlet = user;
    presto__object_info info;
    return presto__object_open(outlet->path, object_out, &info, err);
}

static presto_status gs_finish(void *user, presto_error *err) {
    (void)user, (void)err;
    return PRESTO_OK;
}

/* ---- its life ---- */

/* What is under way is not wanted any more. In a child of fork, nobody would say that it is done. */
static void end_chunk(gs_outlet *outlet) {
    if (!outlet->sending.is_begun || outlet->generation != presto__http_generation())
        return;
    presto__http_cancel(&outlet->sending.call);
    pthread_mutex_lock(&outlet->lock);
    while (!outlet->sending.has_come)
        pthread_cond_wait(&outlet->came, &outlet->lock);
    pthread_mutex_unlock(&outlet->lock);
}

/* An upload that is not over is ended, so that it does not wait for a week. */
static void end_session(gs_outlet *outlet) {
    presto__http_answer answer;
    unsigned tries;
    if (outlet->session[0] == '\0' || outlet->is_sealed)
        return;
    /* Though the thread's pass may be one that was stopped. */
    presto__stop_scope before = presto__stop_bind((presto__stop_scope){NULL, false});
    const presto__remote_target target = {&presto__gs_address, outlet->to.self, outlet->path, NULL,
                                          0};
    const presto__remote_wish wish = {.method = "DELETE",
                                      .what = "the end of an upload",
                                      .url = outlet->session,
                                      .has_no_key = true};
    if (presto__remote_send(&target, &wish, &answer, &tries, NULL) == PRESTO_OK)
        presto__s3_note_sent(tries, 0);
    (void)presto__stop_bind(before);
}

static void gs_free(void *user) {
    gs_outlet *outlet = user;
    end_chunk(outlet);
    end_session(outlet);
    presto__message_done(&outlet->sending.message);
    free(outlet->filling.data);
    free(outlet->sent.data);
    target_done(&outlet->to);
    pthread_cond_destroy(&outlet->came);
    pthread_mutex_destroy(&outlet->lock);
    free(outlet->path);
    free(outlet);
}

static presto_status gs_open(const char *path, bool sync, void **state_out, presto_error *err) {
    gs_outlet *outlet = calloc(1, sizeof *outlet);
    (void)sync; /* what is there is stored */
    if (outlet == NULL)
        return presto_fail_memory(err, sizeof *outlet);
    int failed = presto__timed_condition_init(&outlet->came);
    if (failed == 0) {
        failed = pthread_mutex_init(&outlet->lock, NULL);
        if (failed != 0)
            pthread_cond_destroy(&outlet->came);
    }
    if (failed != 0) {
        free(outlet);
        return presto_fail_errno(err, failed, NULL, "cannot make a lock");
    }
    outlet->sending.outlet = outlet;
    outlet->path = strdup(path);
    presto_status status = outlet->path == NULL ? presto_fail_memory(err, strlen(path))
                                                : target_init(outlet->path, &outlet->to, err);
    if (status < 0) {
        gs_free(outlet);
        return status;
    }
    *state_out = outlet;
    return PRESTO_OK;
}

/* ---- names ---- */

static presto_status gs_remove(const char *path, presto_error *err) {
    gs_target to;
    presto_status status = target_init(path, &to, err);
    if (status == PRESTO_OK)
        status = remove_object(&to, NULL, err);
    target_done(&to);
    return status;
}

/* BASE/storage/v1/b/BUCKET/o/KEY/rewriteTo/b/BUCKET/o/KEY[?rewriteToken=TOKEN], with a 0 behind. */
static presto_status copy_url(const gs_target *from, const gs_target *to, const char *token,
                              presto_buffer *url, presto_error *err) {
    const struct {
        const char *before;
        const gs_target *of;
    } names[] = {{"/storage/v1/b/", from}, {"/rewriteTo/b/", to}};
    PRESTO_TRY(add_text(url, to->base, err));
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        PRESTO_TRY(add_text(url, names[i].before, err));
        PRESTO_TRY(add_text(url, names[i].of->bucket, err));
        PRESTO_TRY(add_text(url, "/o/", err));
        PRESTO_TRY(presto__percent_encode(presto_span_of_text(names[i].of->key), false, url, err));
    }
    if (token != NULL) {
        PRESTO_TRY(add_text(url, "?rewriteToken=", err));
        PRESTO_TRY(presto__percent_encode(presto_span_of_text(token), false, url, err));
    }
    return presto_buffer_append(url, presto_span_of("", 1), err);
}

/* A part of the copy. *token_io: of the part; then of the next one, NULL if it is done. */
static presto_status copy_part(const gs_target *from, const gs_target *to, char **token_io,
                               presto_error *err) {
    presto_buffer url = {0};
    presto__http_answer answer = {.code = 0};
    presto__gs_copied copied = {.token = NULL};
    unsigned tries = 0;
    uint8_t *said = malloc(PRESTO__GS_ANSWER_BYTES);
    presto_status status =
        said == NULL ? presto_fail_memory(err, PRESTO__GS_ANSWER_BYTES) : PRESTO_OK;
    if (status == PRESTO_OK)
        status = copy_url(from, to, *token_io, &url, err);
    const presto__remote_wish wish = {.method = "POST",
                                      .what = "a copy to it",
                                      .url = (const char *)url.data,
                                      .body = presto_span_of("", 0)};
    const presto__remote_target target = {&presto__gs_address, to->self, to->path, said,
                                          PRESTO__GS_ANSWER_BYTES};
    if (status == PRESTO_OK) {
        status = presto__remote_send(&target, &wish, &answer, &tries, err);
        presto__s3_note_sent(tries, 0);
    }
    if (status == PRESTO_OK && (answer.failed != 0 || answer.code != 200))
        status = presto__remote_fail(to->path, &wish, &answer, tries, err);
    else if (status == PRESTO_OK &&
             presto__gs_copied_parse(presto_span_of(said, answer.bytes), &copied, NULL) < 0)
        status =
            fail_at(to,
                    presto_fail(err, PRESTO_ERR_IO, PRESTO_NO_OFFSET,
                                "the storage does not copy to it: its answer is no result of a "
                                "copy"),
                    err);
    free(*token_io);
    *token_io = copied.token;
    presto_buffer_done(&url);
    free(said);
    return status;
}

static presto_status gs_rename(const char *from, const char *to, presto_error *err) {
    gs_target old = {.path = from}, made = {.path = to};
    char *token = NULL;
    presto_status status = target_init(from, &old, err);
    if (status == PRESTO_OK)
        status = target_init(to, &made, err);
    size_t parts = 0;
    while (status == PRESTO_OK) {
        status = copy_part(&old, &made, &token, err);
        if (status == PRESTO_OK && token == NULL)
            break;
        if (status == PRESTO_OK && ++parts == MOST_COPIES)
            status = fail_at(&made,
                             presto_fail(err, PRESTO_ERR_IO, PRESTO_NO_OFFSET,
                                         "the storage does not end its copy, asked %d times",
                                         MOST_COPIES),
                             err);
    }
    if (status == PRESTO_OK)
        status = remove_object(&old, NULL, err);
    free(token);
    target_done(&old);
    target_done(&made);
    return status;
}

static presto_status gs_version(const char *path, presto__version *version_out, presto_error *err) {
    gs_target to;
    presto__gs_object object;
    presto_status status = target_init(path, &to, err);
    if (status == PRESTO_OK)
        status = look(&to, &object, err);
    if (status == PRESTO_OK)
        snprintf(version_out->text, sizeof version_out->text, "%s", object.generation);
    target_done(&to);
    return status;
}

static void gs_version_of(presto__object object, presto__version *version_out) {
    snprintf(version_out->text, sizeof version_out->text, "%s", presto__remote_generation(object));
}

const presto__outlet_kind presto__outlet_gs = {
    .open = gs_open,
    .append = gs_append,
    .seal = gs_seal,
    .look = gs_look,
    .finish = gs_finish,
    .free = gs_free,
    .put = gs_put,
    .remove = gs_remove,
    .rename = gs_rename,
    .version = gs_version,
    .version_of = gs_version_of,
};
