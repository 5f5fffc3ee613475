/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that hold no TFRecords: when one that does not start with a record is called by its format
 * (base/content_internal.h) instead of damaged.
 */
#include "../../base/content_internal.h"
#include "../frame/frame_internal.h"
#include "../records_internal.h"
#include "shard_internal.h"

/* Enough for tar's signature, and more than is looked at to tell text. */
#define HEAD_BYTES 1024
/* Less is too little to tell text from the start of a length. */
#define LEAST_TEXT_BYTES 4
/* A whole record would stand within so many bytes: a large text is not read to its end. */
#define SEARCH_BYTES ((uint64_t)64 << 20)

#define WRITE "\"presto-write -p PIPELINE\" makes TFRecords of files, one a sample"
#define TAR "\"presto-write -p PIPELINE --set source.type=tar\" takes its files as samples"
#define ROWS(type, what)                                                                           \
    "\"presto-write -p PIPELINE --set source.type=" type "\" takes each of its " what " as a "     \
    "sample"
#define LIST ", with source.type=manifest the files that it lists"

static const presto__content gzip_content = {"gzip", "a gzip file of something else",
                                             PRESTO__CONTENT_COMPRESSED,
                                             "decompress it, then " WRITE, true};

/* How to make TFRecords of it. */
static const char *advice_of(const presto__content *content) {
    if (strcmp(content->name, "tar") == 0)
        return TAR;
    if (content == &gzip_content || content->group == PRESTO__CONTENT_POINTER ||
        strcmp(content->name, "index") == 0)
        return content->advice;
    presto__content_group group = content->group;
    if (group == PRESTO__CONTENT_LINES || group == PRESTO__CONTENT_JSON)
        return ROWS("jsonl", "lines") LIST;
    if (group == PRESTO__CONTENT_TABLE)
        return ROWS("csv", "rows") LIST;
    if (group == PRESTO__CONTENT_TEXT)
        return WRITE ", with --set source.type=lines each line";
    if (group == PRESTO__CONTENT_ARCHIVE)
        return "unpack it, then " WRITE;
    return group == PRESTO__CONTENT_COMPRESSED ? "decompress it first" : WRITE;
}

/*
 * Is the whole stream something else than records, as far as it is searched? What has no sign of
 * its own is taken for damaged, unless gzip's checksum says that it is as it was written.
 */
static presto_status search(presto__byte_stream *stream, uint64_t max_payload_bytes, bool is_gzip,
                            const presto__content **content, presto_error *err) {
    uint64_t found;
    presto_span none;
    const presto__frame_search wanted = {
        .from = 1, .max_payload_bytes = max_payload_bytes, .end = SEARCH_BYTES};
    presto_status status = presto__byte_stream_find_frame(stream, &wanted, &found, err);
    if (status < 0)
        return status;
    if (status == PRESTO_OK) {
        *content = NULL;
    } else if (*content == NULL && is_gzip) {
        status = presto__byte_stream_view(stream, found, 1, &none, err);
        if (status == PRESTO_ERR_MEMORY || status == PRESTO_ERR_STOPPED)
            return status;
        *content = status == PRESTO_OK ? &gzip_content : NULL;
    }
    return PRESTO_OK;
}

static presto_status look_at(presto__byte_stream *stream, uint64_t max_payload_bytes, bool is_gzip,
                             const presto__content **content_out, presto_error *err) {
    presto_span head;
    uint64_t bytes;
    *content_out = NULL;
    presto_status status = presto__byte_stream_view(stream, 0, HEAD_BYTES, &head, err);
    if (status == PRESTO_ERR_MEMORY || status == PRESTO_ERR_STOPPED)
        return status;
    if (head.bytes == 0 ||
        presto__frame_parse_header(head, 0, &(presto__frame_rules){UINT64_MAX, PRESTO_CHECK_HEADER},
                                   &bytes, NULL) == PRESTO_OK)
        return PRESTO_OK;
    const presto__content *content = presto__content_of(head);
    if (content != NULL && content->group == PRESTO__CONTENT_TEXT && head.bytes < LEAST_TEXT_BYTES)
        return PRESTO_OK;
    if (content == NULL ? is_gzip : !content->is_sure)
        PRESTO_TRY(search(stream, max_payload_bytes, is_gzip, &content, err));
    *content_out = content;
    return PRESTO_OK;
}

presto_status presto__refuse_foreign(presto__object object, const char *path,
                                     presto_file_compression compression,
                                     uint64_t max_payload_bytes, presto_error *err) {
    presto__byte_stream *stream;
    const presto__content *content = NULL;
    bool is_gzip = compression == PRESTO_FILE_GZIP;
    PRESTO_TRY(presto__byte_stream_new(object, path, compression, &stream, err));
    presto_status status = look_at(stream, max_payload_bytes, is_gzip, &content, err);
    presto__byte_stream_free(stream);
    if (status == PRESTO_OK && content != NULL)
        status = presto_fail(
            err, PRESTO_ERR_FOREIGN, PRESTO_NO_OFFSET, "%s%s, not TFRecords: %s", content->shown,
            is_gzip && content != &gzip_content ? " compressed by gzip" : "", advice_of(content));
    if (status < 0)
        presto_error_set_file(err, path);
    return status;
}
