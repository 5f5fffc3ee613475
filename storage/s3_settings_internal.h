/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who asks S3, and where it is: from the environment, and from the profile in the files that the
 * AWS tools share.
 */
#ifndef PRESTO_S3_SETTINGS_INTERNAL_H
#define PRESTO_S3_SETTINGS_INTERNAL_H

#include <presto/span.h>
#include <presto/status.h>

/** Texts are owned. NULL: not set. */
typedef struct presto__s3_settings {
    char *access_key, *secret_key, *token;
    char *region;      /* "us-east-1" if nothing says another one */
    char *endpoint;    /* "http://127.0.0.1:9000", without a '/' at its end; NULL: that of AWS */
    bool is_anonymous; /* requests are not signed */
} presto__s3_settings;

/**
 * Look at the environment and the files. Any thread; others must not change the environment.
 * Returns: PRESTO_OK; PRESTO_ERR_ARGUMENT: there are no keys, half of them, a profile that is not
 *          there, or an endpoint that is no URL; the message says what to do. PRESTO_ERR_IO: a file
 *          cannot be read.
 */
presto_status presto__s3_settings_find(presto__s3_settings *settings_out, presto_error *err);
void presto__s3_settings_done(presto__s3_settings *settings);

/**
 * The value of `key` in the section [NAME] of an INI file; [profile NAME] is taken for it, too.
 * Lines that begin with a space belong to another value. *has_section_out: there is such a section.
 * False: there is no such key.
 */
bool presto__ini_find(presto_span text, const char *name, const char *key, presto_span *value_out,
                      bool *has_section_out);

#endif
