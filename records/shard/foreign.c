/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a file is that holds no TFRecords: formats by their first bytes, and when a file that does
 * not start with a record is called one of them instead of damaged.
 */
#include "../frame/frame_internal.h"
#include "shard_internal.h"

/* Enough for tar's signature, and more than is looked at to tell text. */
#define HEAD_BYTES 1024
#define TEXT_BYTES 512
/* Less is too little to tell text from the start of a length. */
#define LEAST_TEXT_BYTES 4
/* A whole record would stand within so many bytes: a large text is not read to its end. */
#define SEARCH_BYTES ((uint64_t)64 << 20)

#define WRITE "\"presto-write -p PIPELINE\" makes TFRecords of files, one a sample"
#define PACK "unpack it, then " WRITE
#define TAR "\"presto-write -p PIPELINE --set source.type=tar\" takes its files as samples"
#define LIST "\"presto-write -p PIPELINE --set source.type=manifest\" takes the files that it lists"
#define DECOMPRESS "decompress it first"

typedef struct signature {
    presto__content content;
    size_t at;
    const char *bytes;
    size_t count;
    size_t second_at; /* a second one, if second is not NULL */
    const char *second;
} signature;

/* The first that fits counts. One of two bytes only is no proof. */
static const signature signatures[] = {
    {{"index", "the index of a TFRecord file", "name that file instead", true},
     0,
     "PRESTOIX",
     8,
     0,
     NULL},
    {{"jpeg", "a JPEG file", WRITE, true}, 0, "\xff\xd8\xff", 3, 0, NULL},
    {{"png", "a PNG file", WRITE, true}, 0, "\x89PNG\r\n\x1a\n", 8, 0, NULL},
    {{"gif", "a GIF file", WRITE, true}, 0, "GIF8", 4, 0, NULL},
    {{"webp", "a WebP file", WRITE, true}, 0, "RIFF", 4, 8, "WEBP"},
    {{"tiff", "a TIFF file", WRITE, true}, 0, "II*\0", 4, 0, NULL},
    {{"tiff", "a TIFF file", WRITE, true}, 0, "MM\0*", 4, 0, NULL},
    {{"wav", "a WAV file", WRITE, true}, 0, "RIFF", 4, 8, "WAVE"},
    {{"avi", "an AVI file", WRITE, true}, 0, "RIFF", 4, 8, "AVI "},
    {{"flac", "a FLAC file", WRITE, true}, 0, "fLaC", 4, 0, NULL},
    {{"ogg", "an Ogg file", WRITE, true}, 0, "OggS", 4, 0, NULL},
    {{"mp3", "an MP3 file", WRITE, true}, 0, "ID3", 3, 0, NULL},
    {{"mp4", "an MP4 file", WRITE, true}, 4, "ftyp", 4, 0, NULL},
    {{"hdf5", "an HDF5 file", WRITE, true}, 0, "\x89HDF\r\n", 6, 0, NULL},
    {{"npy", "an npy file", WRITE, true}, 0, "\x93NUMPY", 6, 0, NULL},
    {{"parquet", "a Parquet file", WRITE, true}, 0, "PAR1", 4, 0, NULL},
    {{"arrow", "an Arrow (Feather) file", WRITE, true}, 0, "ARROW1", 6, 0, NULL},
    {{"arrow", "an Arrow (Feather) file", WRITE, true}, 0, "FEA1", 4, 0, NULL},
    {{"orc", "an ORC file", WRITE, true}, 0, "ORC", 3, 0, NULL},
    {{"avro", "an Avro file", WRITE, true}, 0, "Obj\x01", 4, 0, NULL},
    {{"sqlite", "an SQLite file", WRITE, true}, 0, "SQLite format 3", 16, 0, NULL},
    {{"pdf", "a PDF file", WRITE, true}, 0, "%PDF-", 5, 0, NULL},
    {{"html", "an HTML file", WRITE, true}, 0, "<!DOCTYPE html", 14, 0, NULL},
    {{"html", "an HTML file", WRITE, true}, 0, "<!doctype html", 14, 0, NULL},
    {{"html", "an HTML file", WRITE, true}, 0, "<html", 5, 0, NULL},
    {{"xml", "an XML file", WRITE, true}, 0, "<?xml", 5, 0, NULL},
    {{"zip", "a zip file", PACK, true}, 0, "PK\x03\x04", 4, 0, NULL},
    {{"tar", "a tar file", TAR, true}, 257, "ustar", 5, 0, NULL},
    {{"7z", "a 7z file", PACK, true}, 0, "7z\xbc\xaf\x27\x1c", 6, 0, NULL},
    {{"zstd", "a zstd file", DECOMPRESS, true}, 0, "\x28\xb5\x2f\xfd", 4, 0, NULL},
    {{"xz", "an xz file", DECOMPRESS, true}, 0, "\xfd\x37zXZ", 6, 0, NULL},
    {{"bzip2", "a bzip2 file", DECOMPRESS, true}, 0, "BZh", 3, 4, "1AY&SY"},
    {{"lz4", "an lz4 file", DECOMPRESS, true}, 0, "\x04\x22\x4d\x18", 4, 0, NULL},
};
static const presto__content npz_content = {"npz", "an npz file", PACK, true};
static const presto__content gzip_content = {"gzip", "a gzip file of something else",
                                             "decompress it, then " WRITE, true};
static const presto__content mpeg_content = {"mp3", "an MP3 file", WRITE, false};
static const presto__content text_content = {"text", "a text file", WRITE, false};
static const presto__content json_content = {"text", "a JSON file", LIST, false};
static const presto__content csv_content = {"text", "a CSV file", LIST, false};

static bool stands_at(presto_span bytes, size_t at, const char *want, size_t count) {
    return bytes.bytes >= at + count && memcmp(bytes.data + at, want, count) == 0;
}

/* Text of any language: no control characters but white space, and UTF-8 as far as it is looked at.
 */
static bool looks_like_text(presto_span bytes) {
    size_t most = bytes.bytes < TEXT_BYTES ? bytes.bytes : TEXT_BYTES;
    size_t follow = 0;
    for (size_t i = 0; i < most; i++) {
        uint8_t byte = bytes.data[i];
        if (follow > 0) {
            if ((byte & 0xc0) != 0x80)
                return false;
            follow--;
        } else if (byte >= 0x80) {
            follow = (byte & 0xe0) == 0xc0 ? 1 : (byte & 0xf0) == 0xe0 ? 2 : 3;
            if (byte < 0xc2 || byte > 0xf4)
                return false;
        } else if (byte < 0x20 && byte != '\n' && byte != '\r' && byte != '\t' && byte != '\f') {
            return false;
        } else if (byte == 0x7f) {
            return false;
        }
    }
    return bytes.bytes > 0 && (follow == 0 || most < bytes.bytes);
}

/* ---- which kind of text: named only if there is little doubt ---- */

static size_t skip_space(presto_span text, size_t at) {
    while (at < text.bytes && memchr(" \t\r\n", text.data[at], 4) != NULL)
        at++;
    return at;
}

static size_t skip_number(presto_span text, size_t at) {
    while (at < text.bytes && memchr("+-.0123456789eE", text.data[at], 15) != NULL)
        at++;
    return at;
}

/* An object with a name, or an array whose first item is no bare word: "[INFO] ..." is a log. */
static bool looks_like_json(presto_span text) {
    size_t at = skip_space(text, 0);
    if (at == text.bytes || (text.data[at] != '{' && text.data[at] != '['))
        return false;
    bool is_object = text.data[at] == '{';
    at = skip_space(text, at + 1);
    if (at == text.bytes)
        return false;
    if (is_object)
        return text.data[at] == '"';
    if (memchr("{[\"", text.data[at], 3) != NULL)
        return true;
    size_t end = skip_number(text, at);
    bool is_number = end > at;
    at = skip_space(text, end);
    return is_number && at < text.bytes && memchr(",]", text.data[at], 2) != NULL;
}

/*
 * At least two lines, each with the same number of the same separator. In prose, a space follows a
 * comma. A line that is cut off does not count.
 */
static bool has_columns(presto_span text, uint8_t separator) {
    size_t columns = 0, first_columns = 0, lines = 0;
    bool is_quoted = false;
    for (size_t i = 0; i < text.bytes; i++) {
        uint8_t byte = text.data[i];
        if (byte == '"')
            is_quoted = !is_quoted;
        if (is_quoted)
            continue;
        if (byte == separator) {
            columns++;
            if (lines == 0 && i + 1 < text.bytes && text.data[i + 1] == ' ')
                return false;
        } else if (byte == '\n') {
            if (lines++ == 0)
                first_columns = columns;
            if (columns == 0 || columns != first_columns)
                return false;
            columns = 0;
        }
    }
    return lines >= 2;
}

static const presto__content *kind_of_text(presto_span text) {
    const presto_span start =
        presto_span_of(text.data, text.bytes < TEXT_BYTES ? text.bytes : TEXT_BYTES);
    if (looks_like_json(start))
        return &json_content;
    bool is_csv = has_columns(start, ',') || has_columns(start, ';') || has_columns(start, '\t');
    return is_csv ? &csv_content : &text_content;
}

/* A zip file whose first entry is an array. */
static bool is_npz(presto_span bytes) {
    if (!stands_at(bytes, 0, "PK\x03\x04", 4) || bytes.bytes < 30)
        return false;
    size_t name_bytes = bytes.data[26] | (size_t)bytes.data[27] << 8;
    return name_bytes >= 4 && stands_at(bytes, 30 + name_bytes - 4, ".npy", 4);
}

const presto__content *presto__content_of(presto_span bytes) {
    if (is_npz(bytes))
        return &npz_content;
    for (size_t i = 0; i < sizeof signatures / sizeof signatures[0]; i++) {
        const signature *known = &signatures[i];
        if (stands_at(bytes, known->at, known->bytes, known->count) &&
            (known->second == NULL ||
             stands_at(bytes, known->second_at, known->second, strlen(known->second))))
            return &known->content;
    }
    /* An MPEG audio frame: eleven set bits, layer III, a valid bit rate and sampling rate. */
    if (bytes.bytes >= 4 && bytes.data[0] == 0xff && (bytes.data[1] & 0xe6) == 0xe2 &&
        (bytes.data[2] & 0xf0) != 0xf0 && (bytes.data[2] & 0x0c) != 0x0c)
        return &mpeg_content;
    return looks_like_text(bytes) ? kind_of_text(bytes) : NULL;
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
        presto_frame_parse_header(head, 0, &(presto_frame_rules){UINT64_MAX, PRESTO_CHECK_HEADER},
                                  &bytes, NULL) == PRESTO_OK)
        return PRESTO_OK;
    const presto__content *content = presto__content_of(head);
    if (content == &text_content && head.bytes < LEAST_TEXT_BYTES)
        return PRESTO_OK;
    if (content == NULL ? is_gzip : !content->is_sure)
        PRESTO_TRY(search(stream, max_payload_bytes, is_gzip, &content, err));
    *content_out = content;
    return PRESTO_OK;
}

presto_status presto__refuse_foreign(int fd, const char *path, presto_file_compression compression,
                                     uint64_t max_payload_bytes, presto_error *err) {
    presto__byte_stream *stream;
    const presto__content *content = NULL;
    bool is_gzip = compression == PRESTO_FILE_GZIP;
    PRESTO_TRY(presto__byte_stream_new(fd, path, compression, &stream, err));
    presto_status status = look_at(stream, max_payload_bytes, is_gzip, &content, err);
    presto__byte_stream_free(stream);
    if (status == PRESTO_OK && content != NULL)
        status = presto_fail(
            err, PRESTO_ERR_FOREIGN, PRESTO_NO_OFFSET, "%s%s, not TFRecords: %s", content->shown,
            is_gzip && content != &gzip_content ? " compressed by gzip" : "", content->advice);
    if (status < 0)
        presto_error_set_file(err, path);
    return status;
}
