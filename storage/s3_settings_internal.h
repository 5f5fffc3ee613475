/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where S3 is and how it is asked: from the environment, and from the profile in the files that the
 * AWS tools share. Who asks: credentials/.
 */
#ifndef PRESTO_S3_SETTINGS_INTERNAL_H
#define PRESTO_S3_SETTINGS_INTERNAL_H

#include <presto/span.h>
#include <presto/status.h>

#include "credentials/credentials_internal.h"

/** Where a bucket's name stands. */
typedef enum presto__s3_addressing {
    PRESTO__S3_AUTO,    /* in the host's name at AWS, in the path elsewhere */
    PRESTO__S3_PATH,    /* in the path */
    PRESTO__S3_VIRTUAL, /* in the host's name */
} presto__s3_addressing;

#define PRESTO__S3_CUSTOMER_KEY_BYTES 45 /* 32 bytes as base64, with the 0 */
#define PRESTO__S3_CUSTOMER_MD5_BYTES 25 /* 16 bytes as base64, with the 0 */

/** Texts are owned. NULL: not set. */
typedef struct presto__s3_settings {
    char *region;   /* "us-east-1" if nothing says another one */
    char *endpoint; /* "http://127.0.0.1:9000", without a '/' at its end; NULL: that of AWS */
    presto__s3_addressing addressing;
    bool pays; /* the requester */
    char
        customer_key[PRESTO__S3_CUSTOMER_KEY_BYTES]; /* what objects are encrypted with; "": none */
    char customer_md5[PRESTO__S3_CUSTOMER_MD5_BYTES];
} presto__s3_settings;

/**
 * Look at the environment, and the files that `credentials` come from. Any thread; others must not
 * change the environment.
 * Returns: PRESTO_OK; PRESTO_ERR_ARGUMENT: a setting that cannot be; the message says which.
 */
presto_status presto__s3_settings_find(const presto__credentials *credentials,
                                       presto__s3_settings *settings_out, presto_error *err);
void presto__s3_settings_done(presto__s3_settings *settings);

#endif
