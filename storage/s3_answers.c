/* SPDX-License-Identifier: Apache-2.0 */
/* What S3 answers to who writes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calendar_internal.h"
#include "s3_list_internal.h"
#include "s3_put_internal.h"
#include "xml_internal.h"

#define MOST_KEY_BYTES ((size_t)4 << 10)

/* ---- one answer ---- */

/* A text into its place. It goes into requests again, so it has no line's end and no NUL. */
static presto_status take_text(presto_span text, char *out, size_t room, presto_error *err) {
    if (text.bytes >= room)
        return presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                           "a text of %zu bytes, more than any such has", text.bytes);
    for (size_t i = 0; i < text.bytes; i++)
        if (text.data[i] < ' ' || text.data[i] == 0x7f)
            return presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                               "a text with a letter that it cannot have");
    if (text.bytes > 0)
        memcpy(out, text.data, text.bytes);
    out[text.bytes] = '\0';
    return PRESTO_OK;
}

/* What is shown, cut to fit. */
static void take_words(presto_span text, char *out, size_t room) {
    size_t bytes = text.bytes < room - 1 ? text.bytes : room - 1;
    for (size_t i = 0; i < bytes; i++)
        out[i] = text.data[i] < ' ' ? ' ' : (char)text.data[i];
    out[bytes] = '\0';
}

static presto__s3_answer_kind kind_of(const char *root) {
    static const struct {
        const char *name;
        presto__s3_answer_kind kind;
    } kinds[] = {{"InitiateMultipartUploadResult", PRESTO__S3_CREATED},
                 {"CompleteMultipartUploadResult", PRESTO__S3_COMPLETED},
                 {"CopyObjectResult", PRESTO__S3_COPIED},
                 {"Error", PRESTO__S3_FAILED}};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(root, kinds[i].name) == 0)
            return kinds[i].kind;
    return PRESTO__S3_OTHER;
}

static presto_status take_answer(void *user, const presto__xml_element *element,
                                 presto_error *err) {
    presto__s3_answer *answer = user;
    const char *name = strchr(element->path, '/');
    if (name == NULL) {
        answer->kind = kind_of(element->path);
        return PRESTO_OK;
    }
    if (strcmp(name, "/UploadId") == 0)
        return take_text(element->text, answer->upload_id, sizeof answer->upload_id, err);
    if (strcmp(name, "/ETag") == 0)
        return take_text(element->text, answer->etag, sizeof answer->etag, err);
    if (strcmp(name, "/ChecksumCRC32C") == 0)
        return take_text(element->text, answer->crc32c, sizeof answer->crc32c, err);
    if (strcmp(name, "/ChecksumType") == 0)
        return take_text(element->text, answer->checksum_type, sizeof answer->checksum_type, err);
    if (strcmp(name, "/Code") == 0)
        take_words(element->text, answer->code, sizeof answer->code);
    if (strcmp(name, "/Message") == 0)
        take_words(element->text, answer->message, sizeof answer->message);
    return PRESTO_OK;
}

presto_status presto__s3_answer_parse(presto_span xml, presto__s3_answer *answer_out,
                                      presto_error *err) {
    *answer_out = (presto__s3_answer){.kind = PRESTO__S3_OTHER};
    return presto__xml_read(xml, take_answer, answer_out, err);
}

/* ---- uploads ---- */

typedef struct uploads_reading {
    presto__s3_uploads *uploads;
    presto__s3_upload item; /* being read */
    bool is_encoded;        /* keys are as in a URL */
    bool is_list;
} uploads_reading;

static presto_status keep(presto__s3_uploads *uploads, presto_span text, presto_span *copy_out,
                          presto_error *err) {
    if (text.bytes > MOST_KEY_BYTES)
        return presto_fail(err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET,
                           "a text of %zu bytes, more than %zu", text.bytes, MOST_KEY_BYTES);
    char *copy = presto_arena_alloc(&uploads->texts, text.bytes + 1, 1);
    if (copy == NULL)
        return presto_fail_memory(err, text.bytes + 1);
    if (text.bytes > 0)
        memcpy(copy, text.data, text.bytes);
    copy[text.bytes] = '\0';
    if (strlen(copy) != text.bytes)
        return presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET, "a text with a NUL in it");
    *copy_out = presto_span_of(copy, text.bytes);
    return PRESTO_OK;
}

static presto_status add_upload(uploads_reading *r, presto_error *err) {
    presto__s3_uploads *uploads = r->uploads;
    if (r->item.key.bytes == 0 || r->item.id.bytes == 0)
        return presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                           "an upload without a key or an id");
    if (uploads->count == uploads->capacity) {
        size_t capacity = uploads->capacity * 2 + 16;
        presto__s3_upload *items = realloc(uploads->items, capacity * sizeof *items);
        if (items == NULL)
            return presto_fail_memory(err, capacity * sizeof *items);
        uploads->items = items;
        uploads->capacity = capacity;
    }
    uploads->items[uploads->count++] = r->item;
    r->item = (presto__s3_upload){.begun_s = 0};
    return PRESTO_OK;
}

static presto_status take_upload(void *user, const presto__xml_element *element,
                                 presto_error *err) {
    static const char root[] = "ListMultipartUploadsResult";
    uploads_reading *r = user;
    if (strncmp(element->path, root, strlen(root)) != 0)
        return PRESTO_OK;
    const char *name = element->path + strlen(root);
    r->is_list |= name[0] == '\0';
    if (strcmp(name, "/Upload/Key") == 0)
        return keep(r->uploads, element->text, &r->item.key, err);
    if (strcmp(name, "/Upload/UploadId") == 0)
        return keep(r->uploads, element->text, &r->item.id, err);
    if (strcmp(name, "/Upload/Initiated") == 0)
        (void)presto__calendar_parse(element->text, &r->item.begun_s);
    if (strcmp(name, "/Upload") == 0)
        return add_upload(r, err);
    if (strcmp(name, "/IsTruncated") == 0)
        r->uploads->is_truncated = presto_span_is(element->text, "true");
    if (strcmp(name, "/EncodingType") == 0)
        r->is_encoded = presto_span_is(element->text, "url");
    if (strcmp(name, "/NextKeyMarker") == 0)
        return keep(r->uploads, element->text, &r->uploads->next_key, err);
    if (strcmp(name, "/NextUploadIdMarker") == 0)
        return keep(r->uploads, element->text, &r->uploads->next_id, err);
    return PRESTO_OK;
}

presto_status presto__s3_uploads_parse(presto_span xml, presto__s3_uploads *uploads,
                                       presto_error *err) {
    uploads_reading r = {.uploads = uploads};
    presto_arena_reset(&uploads->texts);
    uploads->count = 0;
    uploads->is_truncated = false;
    uploads->next_key = uploads->next_id = presto_span_of(NULL, 0);
    PRESTO_TRY(presto__xml_read(xml, take_upload, &r, err));
    if (!r.is_list)
        return presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                           "it is no ListMultipartUploadsResult");
    for (size_t i = 0; r.is_encoded && i < uploads->count; i++) {
        presto_span *key = &uploads->items[i].key;
        PRESTO_TRY(presto__s3_key_decode(key, err));
        if (key->bytes == 0 || memchr(key->data, '\0', key->bytes) != NULL)
            return presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                               "a key is empty, or has a NUL in it");
    }
    if (r.is_encoded && uploads->next_key.bytes > 0)
        PRESTO_TRY(presto__s3_key_decode(&uploads->next_key, err));
    return PRESTO_OK;
}

void presto__s3_uploads_done(presto__s3_uploads *uploads) {
    presto_arena_done(&uploads->texts);
    free(uploads->items);
    *uploads = (presto__s3_uploads){.count = 0};
}
