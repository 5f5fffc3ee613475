/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests that write, each of one object in one piece.
 *
 * An answer may be lost on its way, after the server has done what it was asked. What is sent again
 * then meets its own work: a condition does not hold any more, an upload is not there. So what stands
 * there is looked at before that is an error.
 */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <presto/crc32c.h>

#include "crypto_internal.h"
#include "kept_internal.h"
#include "s3_put_internal.h"
#include "texts_internal.h"

#define MOST_CHANGED 5 /* tries with bytes that came as others */
#define ANSWER_BYTES ((size_t)64 << 10)
#define SCHEME "s3://"

/* ---- what was sent ---- */

static struct { atomic_uint_fast64_t requests, retries, bytes, unchecked, lost; } sent;

void presto__s3_note_sent(unsigned tries, uint64_t bytes) {
    atomic_fetch_add_explicit(&sent.requests, tries, memory_order_relaxed);
    atomic_fetch_add_explicit(&sent.retries, tries > 0 ? tries - 1 : 0, memory_order_relaxed);
    atomic_fetch_add_explicit(&sent.bytes, bytes, memory_order_relaxed);
}

void presto__s3_note_retry(void) {
    atomic_fetch_add_explicit(&sent.retries, 1, memory_order_relaxed);
}

void presto__s3_note_unchecked(void) {
    atomic_fetch_add_explicit(&sent.unchecked, 1, memory_order_relaxed);
}

void presto__s3_note_lost(void) {
    atomic_fetch_add_explicit(&sent.lost, 1, memory_order_relaxed);
}

presto__sent presto__sent_count(void) {
    const presto__sent count = {
        .requests = atomic_load_explicit(&sent.requests, memory_order_relaxed),
        .retries = atomic_load_explicit(&sent.retries, memory_order_relaxed),
        .bytes = atomic_load_explicit(&sent.bytes, memory_order_relaxed),
        .unchecked = atomic_load_explicit(&sent.unchecked, memory_order_relaxed),
        .lost = atomic_load_explicit(&sent.lost, memory_order_relaxed),
    };
    return count;
}

/* ---- checksums ---- */

void presto__s3_crc_text(uint32_t crc32c, char text_out[PRESTO__S3_CRC_BYTES]) {
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint64_t bits = (uint64_t)crc32c << 4;
    for (int i = 5; i >= 0; i--, bits >>= 6)
        text_out[i] = letters[bits & 63];
    memcpy(text_out + 6, "==", 3);
}

/* Buckets whose server does not know checksums. */
static presto__kept without;

static char *bucket_of(const char *path) {
    const char *name = path + strlen(SCHEME);
    return strndup(name, strcspn(name, "/"));
}

bool presto__s3_knows_checksums(const char *path) {
    char *bucket = bucket_of(path);
    char *found = bucket == NULL ? NULL : presto__kept_find(&without, bucket);
    free(bucket);
    free(found);
    return found == NULL;
}

void presto__s3_note_no_checksums(const char *path) {
    char *bucket = bucket_of(path);
    if (bucket != NULL)
        presto__kept_set(&without, bucket, "", false);
    free(bucket);
}

static bool has_code(const presto__http_answer *answer, const char *code) {
    char element[64];
    snprintf(element, sizeof element, "<Code>%s</Code>", code);
    return strstr(answer->text, element) != NULL;
}

bool presto__s3_is_unknown_header(const presto__http_answer *answer) {
    return answer->failed == 0 &&
           (answer->code == 501 || (answer->code == 400 && (has_code(answer, "NotImplemented") ||
                                                            has_code(answer, "InvalidArgument") ||
                                                            has_code(answer, "InvalidRequest"))));
}

bool presto__s3_came_changed(const presto__http_answer *answer) {
    return answer->failed == 0 && answer->code == 400 &&
           (has_code(answer, "BadDigest") || has_code(answer, "XAmzContentSHA256Mismatch") ||
            has_code(answer, "XAmzContentChecksumMismatch") || has_code(answer, "IncompleteBody"));
}

/* ---- what stands there ---- */

/* Without the quotes. */
static bool is_etag(const char *etag, const char *wanted) {
    size_t bytes = strlen(wanted);
    return bytes > 0 && etag[0] == '"' && strncmp(etag + 1, wanted, bytes) == 0 &&
           strcmp(etag + 1 + bytes, "\"") == 0;
}

static presto_status head(const presto__s3_target *to, presto__http_answer *answer,
                          presto_error *err) {
    unsigned tries;
    const presto__remote_target target = {&presto__s3_address, to->self, to->path, NULL, 0};
    const presto__remote_wish wish = {.is_checksum = true};
    presto_status status = presto__remote_send(&target, &wish, answer, &tries, err);
    presto__s3_note_sent(tries, 0);
    PRESTO_TRY(status);
    if (answer->failed != 0 || (answer->code != 200 && answer->code != 404))
        return presto__remote_fail(to->path, &wish, answer, tries, err);
    return PRESTO_OK;
}

presto_status presto__s3_stands(const presto__s3_target *to, const presto__s3_content *content,
                                presto__s3_found *found_out, presto_error *err) {
    presto__http_answer answer;
    uint32_t crc;
    PRESTO_TRY(head(to, &answer, err));
    *found_out = (presto__s3_found){.stands = false};
    if (answer.code != 200 || answer.length != content->bytes)
        return PRESTO_OK;
    snprintf(found_out->version.text, sizeof found_out->version.text, "%s", answer.etag);
    bool is_whole =
        answer.checksum_type[0] == '\0' || strcmp(answer.checksum_type, "FULL_OBJECT") == 0;
    found_out->is_checked = is_whole && presto__remote_crc(answer.crc32c, &crc);
    found_out->stands =
        found_out->is_checked ? crc == content->crc32c : is_etag(answer.etag, content->etag);
    return PRESTO_OK;
}

presto_status presto__s3_version(const char *path, presto__version *version_out,
                                 presto_error *err) {
    presto__http_answer answer;
    presto__s3_target to = {.path = path};
    PRESTO_TRY(presto__s3_address.make(path, &to.self, err));
    presto_status status = head(&to, &answer, err);
    presto__s3_address.free(to.self);
    PRESTO_TRY(status);
    if (answer.code == 404) {
        status = presto_fail(err, PRESTO_ERR_NOT_FOUND, PRESTO_NO_OFFSET, "no such object");
        presto_error_set_file(err, path);
        return status;
    }
    snprintf(version_out->text, sizeof version_out->text, "%s", answer.etag);
    return PRESTO_OK;
}

void presto__s3_version_of(presto__object object, presto__version *version_out) {
    snprintf(version_out->text, sizeof version_out->text, "%s", presto__remote_etag(object));
}

/* ---- put ---- */

static presto_status fail_condition(const char *path, const presto__put_how *how,
                                    presto_error *err) {
    presto_status status = presto_fail(err, PRESTO_ERR_BUSY, PRESTO_NO_OFFSET,
                                       how->condition == PRESTO__PUT_NEW
                                           ? "stands there already: somebody else has written it"
                                           : "has been replaced or removed by somebody else");
    presto_error_set_file(err, path);
    return status;
}

/* Is what stands there what we have sent, in a request whose answer was lost? */
static presto_status is_ours(const presto__s3_target *to, presto_span body, uint32_t crc32c,
                             bool *is_ours_out, presto__version *version_out, presto_error *err) {
    uint8_t digest[PRESTO__MD5_BYTES];
    char etag[PRESTO__MD5_HEX_BYTES];
    presto__s3_found found;
    PRESTO_TRY(presto__crypto_load(err));
    PRESTO_TRY(presto__md5(body, digest, err));
    presto__md5_hex(digest, etag);
    const presto__s3_content content = {body.bytes, crc32c, etag};
    PRESTO_TRY(presto__s3_stands(to, &content, &found, err));
    *is_ours_out = found.stands;
    if (found.stands && version_out != NULL) /* of this answer: the next one may be of another's */
        *version_out = found.version;
    return PRESTO_OK;
}

presto_status presto__s3_put(const presto__s3_target *to, presto_span body, uint32_t crc32c,
                             const presto__put_how *how, presto_error *err) {
    char crc[PRESTO__S3_CRC_BYTES];
    bool is_mine = false, leaves_out = false;
    unsigned changed = 0;
    presto__s3_crc_text(crc32c, crc);
    for (;;) {
        presto__named_value headers[2];
        size_t count = 0;
        presto__http_answer answer;
        unsigned tries;
        bool has_checksum = !leaves_out && presto__s3_knows_checksums(to->path);
        if (has_checksum)
            headers[count++] = (presto__named_value){presto_span_of_text("x-amz-checksum-crc32c"),
                                                     presto_span_of_text(crc)};
        if (how->condition == PRESTO__PUT_NEW)
            headers[count++] = (presto__named_value){presto_span_of_text("if-none-match"),
                                                     presto_span_of_text("*")};
        const presto__remote_wish wish = {
            .method = "PUT",
            .what = "an upload",
            .body = body.data == NULL ? presto_span_of("", 0) : body,
            .headers = headers,
            .header_count = count,
            .etag = how->condition == PRESTO__PUT_SAME ? how->version->text : NULL,
            .has_customer_key = true};
        const presto__remote_target target = {&presto__s3_address, to->self, to->path, NULL, 0};
        presto_status status = presto__remote_send(&target, &wish, &answer, &tries, err);
        presto__s3_note_sent(tries, body.bytes * tries);
        PRESTO_TRY(status);
        bool is_refused = answer.failed == 0 && (answer.code == 412 || answer.code == 404);
        if (answer.failed == 0 && answer.code == 200) {
            if (leaves_out)
                presto__s3_note_no_checksums(to->path);
            if (how->version_out != NULL)
                snprintf(how->version_out->text, sizeof how->version_out->text, "%s", answer.etag);
            return PRESTO_OK;
        }
        /* libcurl, too, sends again when a connection that it had kept turns out to be closed. */
        if (is_refused && how->condition != PRESTO__PUT_ANY)
            PRESTO_TRY(is_ours(to, body, crc32c, &is_mine, how->version_out, err));
        if (is_mine)
            return PRESTO_OK;
        if (is_refused && how->condition != PRESTO__PUT_ANY && !has_code(&answer, "NoSuchBucket"))
            return fail_condition(to->path, how, err);
        if (has_checksum && presto__s3_is_unknown_header(&answer)) {
            leaves_out = true; /* or it does not like something else: then it says so again */
            continue;
        }
        bool is_conflict = answer.failed == 0 && answer.code == 409; /* two at the same time */
        if ((is_conflict || presto__s3_came_changed(&answer)) && changed < MOST_CHANGED) {
            PRESTO_TRY(presto__remote_wait(changed++, err));
            continue;
        }
        return presto__remote_fail(to->path, &wish, &answer, tries, err);
    }
}

/* Pieces as one. */
static presto_status join(const presto_span *pieces, size_t count, presto_buffer *out,
                          uint32_t *crc_out, presto_error *err) {
    *crc_out = 0;
    for (size_t i = 0; i < count; i++) {
        PRESTO_TRY(presto_buffer_append(out, pieces[i], err));
        *crc_out = presto_crc32c(*crc_out, pieces[i].data, pieces[i].bytes);
    }
    return PRESTO_OK;
}

presto_status presto__s3_put_pieces(const char *path, const presto_span *pieces, size_t count,
                                    const presto__put_how *how, presto_error *err) {
    presto__s3_target to = {.path = path};
    presto_buffer body = {0};
    uint32_t crc32c = 0;
    PRESTO_TRY(presto__s3_address.make(path, &to.self, err));
    presto_status status = join(pieces, count, &body, &crc32c, err);
    if (status == PRESTO_OK)
        status = presto__s3_put(&to, presto_buffer_span(&body), crc32c, how, err);
    presto_buffer_done(&body);
    presto__s3_address.free(to.self);
    return status;
}

/* ---- remove, rename ---- */

presto_status presto__s3_remove(const presto__s3_target *to, const char *upload_id,
                                presto_error *err) {
    presto__http_answer answer;
    unsigned tries;
    const presto__named_value query = {presto_span_of_text("uploadId"),
                                       presto_span_of_text(upload_id == NULL ? "" : upload_id)};
    const presto__remote_wish wish = {.method = "DELETE",
                                      .what = upload_id == NULL ? "its removal"
                                                                : "the end of an upload",
                                      .query = &query,
                                      .query_count = upload_id != NULL};
    const presto__remote_target target = {&presto__s3_address, to->self, to->path, NULL, 0};
    presto_status status = presto__remote_send(&target, &wish, &answer, &tries, err);
    presto__s3_note_sent(tries, 0);
    PRESTO_TRY(status);
    bool is_gone =
        answer.failed == 0 && (answer.code == 200 || answer.code == 204 ||
                               (answer.code == 404 && !has_code(&answer, "NoSuchBucket")));
    return is_gone ? PRESTO_OK : presto__remote_fail(to->path, &wish, &answer, tries, err);
}

presto_status presto__s3_remove_at(const char *path, presto_error *err) {
    presto__s3_target to = {.path = path};
    PRESTO_TRY(presto__s3_address.make(path, &to.self, err));
    presto_status status = presto__s3_remove(&to, NULL, err);
    presto__s3_address.free(to.self);
    return status;
}

presto_status presto__s3_abort_upload(const char *path, const char *id, presto_error *err) {
    presto__s3_target to = {.path = path};
    PRESTO_TRY(presto__s3_address.make(path, &to.self, err));
    presto_status status = presto__s3_remove(&to, id, err);
    presto__s3_address.free(to.self);
    return status;
}

/* An answer of 200 may be a failure: it was begun before that was known. */
static presto_status fail_copy(const char *path, const presto__s3_answer *answer,
                               presto_error *err) {
    presto_status status =
        presto_fail(err, PRESTO_ERR_IO, PRESTO_NO_OFFSET, "the storage does not copy to it: %s%s%s",
                    answer->code[0] == '\0' ? "its answer is no result of a copy" : answer->code,
                    answer->message[0] == '\0' ? "" : ": ", answer->message);
    presto_error_set_file(err, path);
    return status;
}

static presto_status copy(const presto__s3_target *to, const char *from, presto_error *err) {
    presto_buffer source = {0};
    char *body = malloc(ANSWER_BYTES);
    unsigned tries;
    presto__http_answer answer;
    presto__s3_answer said;
    presto_status status = body == NULL ? presto_fail_memory(err, ANSWER_BYTES) : PRESTO_OK;
    if (status == PRESTO_OK) /* "/BUCKET/KEY" */
        status = presto__percent_encode(presto_span_of_text(from + strlen(SCHEME) - 1), true,
                                        &source, err);
    for (unsigned again = 0; status == PRESTO_OK; again++) {
        const presto__named_value headers[] = {
            {presto_span_of_text("x-amz-copy-source"), presto_buffer_span(&source)},
            {presto_span_of_text("x-amz-checksum-algorithm"), presto_span_of_text("CRC32C")}};
        const presto__remote_wish wish = {.method = "PUT",
                                          .what = "a copy to it",
                                          .body = presto_span_of("", 0),
                                          .headers = headers,
                                          .header_count =
                                              presto__s3_knows_checksums(to->path) ? 2 : 1,
                                          .has_customer_key = true,
                                          .has_source_key = true};
        const presto__remote_target target = {&presto__s3_address, to->self, to->path, body,
                                              ANSWER_BYTES};
        status = presto__remote_send(&target, &wish, &answer, &tries, err);
        presto__s3_note_sent(tries, 0);
        if (status < 0)
            break;
        if (answer.failed != 0 || answer.code != 200) {
            status = presto__remote_fail(to->path, &wish, &answer, tries, err);
            break;
        }
        if (presto__s3_answer_parse(presto_span_of(body, answer.bytes), &said, NULL) == PRESTO_OK &&
            said.kind == PRESTO__S3_COPIED)
            break;
        if (again == 4)
            status = fail_copy(to->path, &said, err);
    }
    free(body);
    presto_buffer_done(&source);
    return status;
}

presto_status presto__s3_rename(const char *from, const char *to, presto_error *err) {
    presto__s3_target target = {.path = to};
    PRESTO_TRY(presto__s3_address.make(to, &target.self, err));
    presto_status status = copy(&target, from, err);
    presto__s3_address.free(target.self);
    return status == PRESTO_OK ? presto__s3_remove_at(from, err) : status;
}

/* ---- uploads that are left ---- */

typedef struct uploads_pages {
    const char *folder;
    void *self;   /* the bucket's address */
    char *bucket; /* "s3://BUCKET/" */
    char *prefix; /* of the keys */
    uint8_t *body;
    presto__s3_uploads page;
    presto_buffer key, id; /* markers of the page to come */
} uploads_pages;

static presto_status request_page(uploads_pages *pages, presto_error *err) {
    const presto__named_value query[] = {
        {presto_span_of_text("uploads"), presto_span_of_text("")},
        {presto_span_of_text("prefix"), presto_span_of_text(pages->prefix)},
        {presto_span_of_text("key-marker"), presto_buffer_span(&pages->key)},
        {presto_span_of_text("upload-id-marker"), presto_buffer_span(&pages->id)}};
    presto__http_answer answer;
    presto_error why;
    unsigned tries;
    const presto__remote_wish wish = {.what = "the list of its uploads",
                                      .query = query,
                                      .query_count = pages->key.bytes > 0 ? 4 : 2};
    const presto__remote_target target = {&presto__s3_address, pages->self, pages->folder,
                                          pages->body, PRESTO__S3_UPLOADS_BYTES};
    presto_status status = presto__remote_send(&target, &wish, &answer, &tries, err);
    presto__s3_note_sent(tries, 0);
    PRESTO_TRY(status);
    if (answer.failed != 0 || answer.code != 200)
        return presto__remote_fail(pages->folder, &wish, &answer, tries, err);
    status =
        presto__s3_uploads_parse(presto_span_of(pages->body, answer.bytes), &pages->page, &why);
    if (status < 0)
        status =
            presto_fail(err, status == PRESTO_ERR_SYNTAX ? PRESTO_ERR_IO : status, PRESTO_NO_OFFSET,
                        "the list of its uploads cannot be read: %.300s", why.message);
    if (status < 0)
        presto_error_set_file(err, pages->folder);
    return status;
}

static presto_status tell_page(const uploads_pages *pages, presto__left_upload_fn tell, void *user,
                               presto_error *err) {
    size_t bytes = strlen(pages->prefix);
    for (size_t i = 0; i < pages->page.count; i++) {
        const presto__s3_upload *item = &pages->page.items[i];
        const char *key = (const char *)item->key.data;
        if (strncmp(key, pages->prefix, bytes) != 0)
            continue; /* a server that does not know prefixes */
        char *path = PRESTO__JOINED(pages->bucket, key);
        if (path == NULL)
            return presto_fail_memory(err, item->key.bytes);
        const presto__left_upload upload = {path, (const char *)item->id.data, item->begun_s};
        presto_status status = tell(user, &upload, err);
        free(path);
        if (status < 0)
            return status;
    }
    return PRESTO_OK;
}

/* The markers of the next page; PRESTO_END: that was the last one. */
static presto_status go_on(uploads_pages *pages, presto_error *err) {
    const presto__s3_uploads *page = &pages->page;
    if (!page->is_truncated)
        return PRESTO_END;
    bool goes_on = page->next_key.bytes > 0 &&
                   (!presto_span_equal(page->next_key, presto_buffer_span(&pages->key)) ||
                    !presto_span_equal(page->next_id, presto_buffer_span(&pages->id)));
    if (!goes_on) {
        presto_status status = presto_fail(err, PRESTO_ERR_IO, PRESTO_NO_OFFSET,
                                           "the list of its uploads is cut, and the server does "
                                           "not say how it goes on");
        presto_error_set_file(err, pages->folder);
        return status;
    }
    pages->key.bytes = pages->id.bytes = 0;
    PRESTO_TRY(presto_buffer_append(&pages->key, page->next_key, err));
    return presto_buffer_append(&pages->id, page->next_id, err);
}

presto_status presto__s3_list_uploads(const char *folder, presto__left_upload_fn tell, void *user,
                                      presto_error *err) {
    const char *name = folder + strlen(SCHEME);
    size_t bucket_bytes = strcspn(name, "/");
    const char *key = name[bucket_bytes] == '/' ? name + bucket_bytes + 1 : "";
    size_t key_bytes = strlen(key);
    uploads_pages pages = {.folder = folder};
    bool lacks_slash = key_bytes > 0 && key[key_bytes - 1] != '/';
    char *bucket = strndup(folder, strlen(SCHEME) + bucket_bytes);
    pages.bucket = bucket == NULL ? NULL : PRESTO__JOINED(bucket, "/");
    pages.prefix = PRESTO__JOINED(key, lacks_slash ? "/" : "");
    pages.body = malloc(PRESTO__S3_UPLOADS_BYTES);
    free(bucket);
    presto_status status = pages.bucket == NULL || pages.prefix == NULL || pages.body == NULL
                               ? presto_fail_memory(err, PRESTO__S3_UPLOADS_BYTES)
                               : presto__s3_address.make(pages.bucket, &pages.self, err);
    while (status == PRESTO_OK) {
        status = request_page(&pages, err);
        if (status == PRESTO_OK)
            status = tell_page(&pages, tell, user, err);
        if (status == PRESTO_OK)
            status = go_on(&pages, err);
    }
    if (pages.self != NULL)
        presto__s3_address.free(pages.self);
    presto__s3_uploads_done(&pages.page);
    presto_buffer_done(&pages.key);
    presto_buffer_done(&pages.id);
    free(pages.bucket);
    free(pages.prefix);
    free(pages.body);
    return status == PRESTO_END ? PRESTO_OK : status;
}
