/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What S3 answers to who writes (s3_answers.c), and the requests that write (s3_put.c). Uploads of
 * several parts: outlet_s3.c.
 */
#ifndef PRESTO_S3_PUT_INTERNAL_H
#define PRESTO_S3_PUT_INTERNAL_H

#include "remote_internal.h"

/** Where S3 objects are (kind_s3.c). */
extern const presto__address_type presto__s3_address;

/* ---- answers ---- */

#define PRESTO__S3_UPLOAD_ID_BYTES 2048

typedef enum presto__s3_answer_kind {
    PRESTO__S3_OTHER, /* some other XML */
    PRESTO__S3_CREATED,
    PRESTO__S3_COMPLETED,
    PRESTO__S3_COPIED,
    PRESTO__S3_FAILED, /* an answer of 200 may be one */
} presto__s3_answer_kind;

/** Texts are "" if they were not there. */
typedef struct presto__s3_answer {
    presto__s3_answer_kind kind;
    char upload_id[PRESTO__S3_UPLOAD_ID_BYTES];
    char etag[136];
    char crc32c[24];
    char checksum_type[16];
    char code[64], message[192]; /* FAILED */
} presto__s3_answer;

/**
 * Read what CreateMultipartUpload, CompleteMultipartUpload or CopyObject answer.
 * Returns: PRESTO_OK; PRESTO_ERR_SYNTAX: no XML, or a text that is longer than any server's, or has
 *          letters that it cannot have; as presto__xml_read.
 */
presto_status presto__s3_answer_parse(presto_span xml, presto__s3_answer *answer_out,
                                      presto_error *err);

/** An upload that is not complete, of a page. */
typedef struct presto__s3_upload {
    presto_span key, id; /* with a 0 behind them that does not count */
    int64_t begun_s;
} presto__s3_upload;

/** A page of ListMultipartUploads. Zero-initialise. */
typedef struct presto__s3_uploads {
    presto_arena texts;
    presto__s3_upload *items;
    size_t count, capacity;
    bool is_truncated;
    presto_span next_key, next_id; /* the markers of the next page */
} presto__s3_uploads;

/** Take a page from its XML, in the place of what it holds. As presto__s3_page_parse. */
presto_status presto__s3_uploads_parse(presto_span xml, presto__s3_uploads *uploads,
                                       presto_error *err);
void presto__s3_uploads_done(presto__s3_uploads *uploads);

#define PRESTO__S3_UPLOADS_BYTES ((size_t)8 << 20) /* of a page */

/* ---- requests ---- */

/** A name that is written to. */
typedef struct presto__s3_target {
    const char *path;
    void *self; /* of its address */
} presto__s3_target;

/** What an object is to be. */
typedef struct presto__s3_content {
    uint64_t bytes;
    uint32_t crc32c;
    const char *etag; /* as the server makes it of these bytes, without quotes; "": not known */
} presto__s3_content;

/** Four bytes as base64. */
#define PRESTO__S3_CRC_BYTES 9
void presto__s3_crc_text(uint32_t crc32c, char text_out[PRESTO__S3_CRC_BYTES]);

/** Does the server of this bucket know checksums, as far as it was asked? */
bool presto__s3_knows_checksums(const char *path);
void presto__s3_note_no_checksums(const char *path);
/** Does an answer say that a header of ours is not known there? */
bool presto__s3_is_unknown_header(const presto__http_answer *answer);
/** May the same upload succeed, though the answer is one that stays: bytes have changed on their way?
 */
bool presto__s3_came_changed(const presto__http_answer *answer);

/** Count what was sent. */
void presto__s3_note_sent(unsigned tries, uint64_t bytes);
void presto__s3_note_retry(void);
void presto__s3_note_unchecked(void);
void presto__s3_note_lost(void);

/** What the server says of an object. */
typedef struct presto__s3_found {
    bool stands;     /* it has the content; false, too, if that cannot be told */
    bool is_checked; /* by a CRC-32C of all its bytes */
    presto__version version;
} presto__s3_found;

/** Does the object of that name have this content? One request. */
presto_status presto__s3_stands(const presto__s3_target *to, const presto__s3_content *content,
                                presto__s3_found *found_out, presto_error *err);

/**
 * Put an object in one request.
 * Returns: as presto__object_put.
 */
presto_status presto__s3_put(const presto__s3_target *to, presto_span body, uint32_t crc32c,
                             const presto__put_how *how, presto_error *err);

/* As the hooks of presto__outlet_kind. */
presto_status presto__s3_put_pieces(const char *path, const presto_span *pieces, size_t count,
                                    const presto__put_how *how, presto_error *err);
presto_status presto__s3_remove_at(const char *path, presto_error *err);
presto_status presto__s3_rename(const char *from, const char *to, presto_error *err);
presto_status presto__s3_version(const char *path, presto__version *version_out, presto_error *err);
void presto__s3_version_of(presto__object object, presto__version *version_out);
presto_status presto__s3_list_uploads(const char *folder, presto__left_upload_fn tell, void *user,
                                      presto_error *err);
presto_status presto__s3_abort_upload(const char *path, const char *id, presto_error *err);

/** Remove it, or end the upload, if it is not NULL. */
presto_status presto__s3_remove(const presto__s3_target *to, const char *upload_id,
                                presto_error *err);

#endif
