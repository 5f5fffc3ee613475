/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transfers over HTTP: any thread asks, one thread of the process serves all of them and keeps their
 * connections open. A transfer is tried once here; what is worth another try is for the caller to
 * know (remote.c, ahead.c).
 */
#ifndef PRESTO_TRANSFER_INTERNAL_H
#define PRESTO_TRANSFER_INTERNAL_H

#include <pthread.h>
#include <stdbool.h>

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
    uint64_t keys;   /* presto__message.keys of the request; who asks sets it */
    int failed;      /* a code of libcurl; 0: the transfer is whole */
    size_t bytes;    /* of the body, that are in `data`; of an answer that is no success none are */
    bool is_longer;  /* the body has more than most_bytes */
    uint64_t length; /* the header Content-Length */
    char etag[136];
    char crc32c[24];        /* of the object, in base64, if the server says it */
    char checksum_type[16]; /* of S3: what that is the CRC of */
    char content_range[72]; /* or the header Range, by which Google says what it has */
    char last_modified[40];
    char request_id[128];  /* of AWS or its likes, Google, the Hub */
    char region[40];       /* in which the bucket is, says S3 */
    char generation[24];   /* of an object, counts Google's storage */
    char commit[64];       /* of a repository, says the Hub */
    char linked_etag[136]; /* of the file that the Hub points to */
    /* Where a redirection, or what a POST has made, is: signed addresses are long. Of a success, its
     * header Link. */
    char location[4096];
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

/**
 * A transfer that nobody waits for. It stays where it is, with all that its request borrows, from
 * presto__http_begin until `done` is called.
 */
typedef struct presto__http_call {
    presto__http_request request;
    presto__http_answer answer;
    /** The thread of transfers calls it, once a begin, and holds no lock. It does not wait, but may
     * begin the call anew, or free it. */
    void (*done)(struct presto__http_call *call);
    void *user;
    /* The rest is the client's. */
    void *easy;    /* NULL: not begun. The thread's */
    void *headers; /* libcurl's list. The thread's */
    size_t at;     /* among those that run. The thread's */
    char why[256]; /* libcurl writes here. The thread's */
    /* Guarded by the client's lock: */
    struct presto__http_call *next; /* in the list that it is in */
    uint64_t due_ns;                /* not sent before */
    pthread_cond_t *waits;          /* who waits for it; NULL: `done` is called */
    bool is_done;
    bool is_unwanted; /* end it */
} presto__http_call;

/**
 * Send a request, after `delay_ns`. `request`, `done` and `user` are set, the rest is zeroed or was
 * done before.
 * Returns: PRESTO_OK: `done` will be called; fails as presto__http_transfer: it will not.
 */
presto_status presto__http_begin(presto__http_call *call, uint64_t delay_ns, presto_error *err);
/** Its answer is not wanted any more: `done` is called soon, unless it is being called already. Who
 * asks sees to it that the call has begun, and is not freed meanwhile. */
void presto__http_cancel(presto__http_call *call);
/** How often this process is a child that was forked: what its parent has begun is never done. */
unsigned presto__http_generation(void);

#endif
