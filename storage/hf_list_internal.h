/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is in a repository of the Hugging Face Hub, by its interface in JSON (`tree`): in pages, of
 * which one is in memory, however many files there are. What is kept of all of them are the names of
 * their folders.
 *
 * Source: Hugging Face, OpenAPI description of the Hub: /api/datasets/.../tree, .../revision; the
 *         next page is a Link of RFC 8288.
 */
#ifndef PRESTO_HF_LIST_INTERNAL_H
#define PRESTO_HF_LIST_INTERNAL_H

#include "remote_internal.h"

/** A file or a folder of a repository. */
typedef struct presto__hf_entry {
    presto_span path; /* from the repository's root on; with a 0 behind it that does not count */
    bool is_folder;
    uint64_t bytes;
    presto_span oid; /* what its content is called; with a 0 behind it, too */
} presto__hf_entry;

/** A page. Zero-initialise. */
typedef struct presto__hf_page {
    presto_arena texts;
    presto__hf_entry *entries;
    size_t count, capacity;
} presto__hf_page;

/**
 * Take a page from its JSON, in the place of what it holds. What is neither file nor folder is passed
 * over.
 * Returns: PRESTO_OK; PRESTO_ERR_SYNTAX (no list of entries; a path that is absolute, or has an empty
 *          name, "." or ".." in it; a size that is none); PRESTO_ERR_LIMIT (a path of more than 4
 *          KiB, more than 4 MiB of JSON, or too many values); PRESTO_ERR_MEMORY.
 */
presto_status presto__hf_page_parse(presto_span json, presto__hf_page *page, presto_error *err);
void presto__hf_page_done(presto__hf_page *page);

/**
 * From a header Link: what asks for the next page, encoded as it stands there. Empty: this is the last
 * page. Borrows from `link`.
 * Returns: PRESTO_OK; PRESTO_ERR_SYNTAX: there is a next page, but it has no such thing.
 */
presto_status presto__hf_cursor(const char *link, presto_span *cursor_out, presto_error *err);

/** What is asked for. All is borrowed. */
typedef struct presto__hf_tree {
    const presto__remote_name *name; /* the path as the user gave it */
    const char *root;   /* "hf://datasets/OWNER/NAME/": a file's name behind it is a path */
    const char *folder; /* in the repository; no '/' at its end; "": all of it */
    const char *url;    /* of the tree at that folder and commit, without a query */
    const char *token;  /* NULL: nobody's */
} presto__hf_tree;

/** As presto__storage_kind.list. */
presto_status presto__hf_list(const presto__hf_tree *tree, const presto__list *list,
                              presto_error *err);
/** Is something in the folder? PRESTO_ERR_NOT_FOUND: no. */
presto_status presto__hf_find_below(const presto__hf_tree *tree, presto_error *err);
/** The commit that a revision is at; malloc'd. `url` is that of the revision. Errors name `path`. */
presto_status presto__hf_commit_of(const char *path, const char *url, const char *token,
                                   char **commit_out, presto_error *err);

#endif
