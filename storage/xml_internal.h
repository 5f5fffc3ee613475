/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers in XML, read by libexpat. It is loaded at first use, as libcurl is: only what a server
 * answers in XML needs it.
 */
#ifndef PRESTO_XML_INTERNAL_H
#define PRESTO_XML_INTERNAL_H

#include <presto/span.h>
#include <presto/status.h>

#define PRESTO__XML_MOST_BYTES ((size_t)64 << 20)
#define PRESTO__XML_MOST_DEPTH 32
#define PRESTO__XML_MOST_PATH_BYTES 1024

/** An element that has ended. Borrowed until the function that takes it returns. */
typedef struct presto__xml_element {
    const char
        *path; /* names from the root on, without prefixes: "ListBucketResult/Contents/Key" */
    presto_span text; /* decoded; of an element that has elements: nothing */
} presto__xml_element;

/** Takes an element. What fails ends the reading. */
typedef presto_status (*presto__xml_take)(void *user, const presto__xml_element *element,
                                          presto_error *err);

/**
 * Read a whole document: `take` gets its elements in the order of their ends, so what an element has
 * in it before the element itself. Attributes are passed over.
 *
 * Returns: PRESTO_OK; PRESTO_ERR_SYNTAX: it is no well-formed XML, or has a document type (nobody
 *          defines entities here); PRESTO_ERR_LIMIT: more than 64 MiB, or too deep;
 *          PRESTO_ERR_UNSUPPORTED: no libexpat, the message says so; PRESTO_ERR_MEMORY; what `take`
 *          returned.
 * Threads: any; no shared state.
 */
presto_status presto__xml_read(presto_span text, presto__xml_take take, void *user,
                               presto_error *err);

#endif
