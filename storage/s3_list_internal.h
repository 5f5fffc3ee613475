/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists of a bucket's keys (ListObjectsV2 of S3, which Google's XML API speaks, too): pages of up to
 * 1,000, of which one or a few are in memory, however many keys there are.
 */
#ifndef PRESTO_S3_LIST_INTERNAL_H
#define PRESTO_S3_LIST_INTERNAL_H

#include "remote_internal.h"

/** One entry of a page. */
typedef struct presto__s3_item {
    presto_span key; /* with a 0 behind it that does not count; of a prefix, it ends with '/' */
    bool is_prefix;  /* of the keys that go on behind it */
    uint64_t bytes;
    int64_t mtime_ns;
    presto_span etag;       /* as it stands there */
    presto_span generation; /* of Google's storage; empty: it is not said */
} presto__s3_item;

/** A page. Zero-initialise. */
typedef struct presto__s3_page {
    presto_arena texts;
    presto__s3_item *items;
    size_t count, capacity;
    bool is_truncated;
    presto_span next; /* the token that asks for the next page; empty: there is none */
} presto__s3_page;

/**
 * Take a page from its XML, in the place of what it holds.
 * Returns: PRESTO_OK; PRESTO_ERR_SYNTAX (no such XML, a key with a NUL, a size that is no number);
 *          PRESTO_ERR_LIMIT (a key of more than 4 KiB); as presto__xml_read.
 */
presto_status presto__s3_page_parse(presto_span xml, presto__s3_page *page, presto_error *err);
void presto__s3_page_done(presto__s3_page *page);

/** Decode a key as it stands in a URL, in its place: its bytes are the caller's, with a 0 behind.
 * PRESTO_ERR_SYNTAX: it is not encoded so. */
presto_status presto__s3_key_decode(presto_span *key, presto_error *err);

/** As presto__storage_kind.list. `name` is a folder, with or without a '/' at its end: all keys that
 * begin with it and a '/'. */
presto_status presto__s3_list(const presto__remote_name *name, const presto__list *list,
                              presto_error *err);
/** As presto__storage_kind.find, of "SCHEME://BUCKET/KEY": an object, a dataset, or what other keys
 * begin with, which is a folder. A bucket is a folder, if it has keys. */
presto_status presto__s3_find(const presto__remote_name *name, presto__object_info *info_out,
                              presto_error *err);
/** Is the path a bucket, and no key in it? */
bool presto__s3_is_bucket(const char *path);

/** Finds out whether tokens of pages come again: a server that gives one again would be asked for
 * ever. Zero-initialise. */
typedef struct presto__page_tokens {
    presto_buffer mark;    /* a token of before */
    uint64_t since, until; /* pages */
} presto__page_tokens;

/** The token of the next page: has it come before? One is kept, and another one after twice as many
 * pages: so it is found, whatever the number of pages that come again. PRESTO_ERR_MEMORY. */
presto_status presto__page_token_is_again(presto__page_tokens *tokens, presto_span token,
                                          bool *is_again_out, presto_error *err);
void presto__page_tokens_done(presto__page_tokens *tokens);

#endif
