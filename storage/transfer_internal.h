/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transfers over HTTP: any thread asks, one thread of the process serves all of them and keeps their
 * connections open. A transfer is tried once here; what is worth another try is for the caller to
 * know (remote.c).
 */
#ifndef PRESTO_TRANSFER_INTERNAL_H
#define PRESTO_TRANSFER_INTERNAL_H

#include <presto/span.h>
#include <presto/status.h>

#define PRESTO__MOST_HEADERS 16

/** What is asked for. All is borrowed until the transfer is done. */
typedef struct presto__http_request {
    const char *url;
    const char *method;                        /* NULL: GET, or POST if there is a body */
    presto_span body;                          /* NULL: none is sent */
    long most_ms;                              /* for all of it; 0: as long as bytes come */
    bool is_direct;                            /* not by way of a proxy */
    const char *headers[PRESTO__MOST_HEADERS]; /* "Name: value" */
    size_t header_count;
    void *data;        /* where the body goes */
    size_t most_bytes; /* of it; the transfer ends when there are more */
} presto__http_request;

/** What came. Texts are "" if there were none, and cut to fit. */
typedef struct presto__http_answer {
    int code;        /* of HTTP; 0: no answer */
    uint64_t keys;   /* the number of those that the request was signed with; who asks sets it */
    int failed;      /* a code of libcurl; 0: the transfer is whole */
    size_t bytes;    /* of the body, that are in `data`; of an answer that is no success none are */
    bool is_longer;  /* the body has more than most_bytes */
    uint64_t length; /* the header Content-Length */
    char etag[136];
    char content_range[72];
    char last_modified[40];
    char request_id[96]; /* of AWS or its likes */
    char region[40];     /* in which the bucket is, says S3 */
    char location[256];
    char text[768]; /* the beginning of the body of an answer that is no success */
    char why[256];  /* in libcurl's words, if it failed */
} presto__http_answer;

/**
 * Send a request and wait for its answer. The caller's pass may stop it (stop_internal.h).
 * Returns: PRESTO_OK: the answer says how it went; PRESTO_ERR_UNSUPPORTED: no libcurl;
 *          PRESTO_ERR_STOPPED; PRESTO_ERR_MEMORY, PRESTO_ERR_IO: nothing was sent.
 */
presto_status presto__http_transfer(const presto__http_request *request,
                                    presto__http_answer *answer_out, presto_error *err);

#endif
