/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libcurl, loaded when the first URL is opened: no program that reads files pays for it, and the
 * system's certificates and security updates apply. No header of it is needed to build: what stands
 * here is its binary interface, which has not changed since the version below.
 */
#ifndef PRESTO_CURL_INTERNAL_H
#define PRESTO_CURL_INTERNAL_H

#include <stddef.h>

#include <presto/status.h>

/** 7.68.0 of January 2020: older ones are not tried. */
#define PRESTO__CURL_OLDEST 0x074400

/* Options of a transfer: numbers of libcurl's curl.h, in the order of its list. */
enum {
    PRESTO__CURLOPT_WRITEDATA = 10001,
    PRESTO__CURLOPT_URL = 10002,
    PRESTO__CURLOPT_ERRORBUFFER = 10010,
    PRESTO__CURLOPT_POSTFIELDS = 10015,
    PRESTO__CURLOPT_USERAGENT = 10018,
    PRESTO__CURLOPT_NOBODY = 44,
    PRESTO__CURLOPT_LOW_SPEED_LIMIT = 19,
    PRESTO__CURLOPT_LOW_SPEED_TIME = 20,
    PRESTO__CURLOPT_HTTPHEADER = 10023,
    PRESTO__CURLOPT_HEADERDATA = 10029,
    PRESTO__CURLOPT_CUSTOMREQUEST = 10036,
    PRESTO__CURLOPT_CAINFO = 10065,
    PRESTO__CURLOPT_BUFFERSIZE = 98,
    PRESTO__CURLOPT_NOSIGNAL = 99,
    PRESTO__CURLOPT_PRIVATE = 10103,
    PRESTO__CURLOPT_TIMEOUT_MS = 155,
    PRESTO__CURLOPT_CONNECTTIMEOUT_MS = 156,
    PRESTO__CURLOPT_NOPROXY = 10177,
    PRESTO__CURLOPT_POSTFIELDSIZE_LARGE = 30120,
    PRESTO__CURLOPT_PROTOCOLS = 181,
    PRESTO__CURLOPT_WRITEFUNCTION = 20011,
    PRESTO__CURLOPT_HEADERFUNCTION = 20079,
    PRESTO__CURLOPT_TCP_KEEPALIVE = 213,
    PRESTO__CURLOPT_PATH_AS_IS = 234,
    PRESTO__CURLOPT_SUPPRESS_CONNECT_HEADERS = 265,
    PRESTO__CURLOPT_QUICK_EXIT = 322, /* since 7.87 */
};
#define PRESTO__CURLPROTO_HTTP (1L << 0)
#define PRESTO__CURLPROTO_HTTPS (1L << 1)
#define PRESTO__CURLINFO_RESPONSE_CODE 0x200002
#define PRESTO__CURLINFO_PRIVATE 0x100015
#define PRESTO__CURLMOPT_MAXCONNECTS 6
#define PRESTO__CURLMOPT_SOCKETFUNCTION 20001
#define PRESTO__CURLMOPT_TIMERFUNCTION 20004
/* What is waited for at a socket, and what has come: bits. */
#define PRESTO__CURL_IN 1
#define PRESTO__CURL_OUT 2
#define PRESTO__CURL_REMOVE 4     /* not waited for any more */
#define PRESTO__CURL_ERR 4        /* has come */
#define PRESTO__CURL_TIMEOUT (-1) /* in the place of a socket: the time is up */
#define PRESTO__CURL_GLOBAL_DEFAULT 3L
#define PRESTO__CURL_ERROR_BYTES 256

/* Codes of failed transfers. */
enum {
    PRESTO__CURLE_OK = 0,
    PRESTO__CURLE_COULDNT_RESOLVE_HOST = 6,
    PRESTO__CURLE_COULDNT_CONNECT = 7,
    PRESTO__CURLE_HTTP2 = 16,
    PRESTO__CURLE_PARTIAL_FILE = 18,
    PRESTO__CURLE_WRITE_ERROR = 23,
    PRESTO__CURLE_OUT_OF_MEMORY = 27,
    PRESTO__CURLE_OPERATION_TIMEDOUT = 28,
    PRESTO__CURLE_SSL_CONNECT_ERROR = 35,
    PRESTO__CURLE_ABORTED = 42,
    PRESTO__CURLE_GOT_NOTHING = 52,
    PRESTO__CURLE_SEND_ERROR = 55,
    PRESTO__CURLE_RECV_ERROR = 56,
    PRESTO__CURLE_HTTP2_STREAM = 92,
};

/** What curl_multi_info_read returns. */
typedef struct presto__curl_message {
    int kind; /* 1: a transfer is done */
    void *easy;
    union {
        void *whatever;
        int result;
    } data;
} presto__curl_message;

/** The functions, under their names without curl_. */
typedef struct presto__curl_functions {
    int (*global_init)(long flags);
    void *(*version_info)(int now);
    void *(*easy_init)(void);
    void (*easy_cleanup)(void *easy);
    void (*easy_reset)(void *easy);
    int (*easy_setopt)(void *easy, int option, ...);
    int (*easy_getinfo)(void *easy, int info, ...);
    const char *(*easy_strerror)(int code);
    void *(*slist_append)(void *list, const char *text);
    void (*slist_free_all)(void *list);
    void *(*multi_init)(void);
    int (*multi_cleanup)(void *multi);
    int (*multi_setopt)(void *multi, int option, ...);
    int (*multi_add_handle)(void *multi, void *easy);
    int (*multi_remove_handle)(void *multi, void *easy);
    int (*multi_socket_action)(void *multi, int socket, int events, int *running_out);
    presto__curl_message *(*multi_info_read)(void *multi, int *left_out);
} presto__curl_functions;

/**
 * The library, loaded once a process. Borrowed for ever. Any thread.
 * Returns: PRESTO_OK; PRESTO_ERR_UNSUPPORTED: it is not there, or too old; the message says what to
 *          install.
 */
presto_status presto__curl_load(const presto__curl_functions **curl_out, presto_error *err);

#endif
