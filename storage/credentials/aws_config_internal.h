/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the environment and the files that AWS's tools share say: which profile, and its values. A
 * value in the file of credentials goes before one in that of the configuration, as for AWS's tools.
 */
#ifndef PRESTO_CREDENTIALS_AWS_CONFIG_INTERNAL_H
#define PRESTO_CREDENTIALS_AWS_CONFIG_INTERNAL_H

#include <presto/span.h>

#define PRESTO__AWS_FILE_MOST_BYTES ((uint64_t)1 << 20)

/** Read once, then read-only. */
typedef struct presto__aws_config {
    presto_buffer credentials, config; /* the texts of the files; empty: there is none */
    char *profile;
} presto__aws_config;

/** Which of the files. */
typedef enum presto__aws_file {
    PRESTO__AWS_BOTH,
    PRESTO__AWS_CREDENTIALS,
    PRESTO__AWS_CONFIG,
} presto__aws_file;

/**
 * Read the files. Any thread; others must not change the environment.
 * Returns: PRESTO_OK; PRESTO_ERR_ARGUMENT: AWS_PROFILE names a profile that is not there;
 *          PRESTO_ERR_IO, PRESTO_ERR_LIMIT (1 MiB): a file cannot be read.
 */
presto_status presto__aws_config_read(presto__aws_config *config_out, presto_error *err);
void presto__aws_config_done(presto__aws_config *config);

/** A variable of the environment; NULL: not set, or empty. */
const char *presto__variable(const char *name);
/** Is it "true", in any case? */
bool presto__variable_is_true(const char *name);

/** Is there such a profile in one of the files? */
bool presto__aws_has_profile(const presto__aws_config *config, const char *profile);
/** The value of `key` of a profile. False: there is none, or it is empty. */
bool presto__aws_value(const presto__aws_config *config, presto__aws_file file, const char *profile,
                       const char *key, presto_span *value_out);
/** The same of a line below `key`, such as `addressing_style` below `s3`. */
bool presto__aws_inner_value(const presto__aws_config *config, const char *profile, const char *key,
                             const char *inner, presto_span *value_out);
/** The value of `key` of [sso-session NAME] in the configuration. */
bool presto__aws_sso_value(const presto__aws_config *config, const char *name, const char *key,
                           presto_span *value_out);

/**
 * Where a service of AWS is for this profile, if another place than AWS's own is named: by
 * AWS_ENDPOINT_URL_<SERVICE>, AWS_ENDPOINT_URL, the profile's `services` section, its endpoint_url.
 * `service` is as there, in small letters: "s3", "sts", "sso", "sso_oidc". *endpoint_out: malloc'd,
 * without a '/' at its end; NULL: none is named.
 * Returns: PRESTO_ERR_ARGUMENT: it is no URL.
 */
presto_status presto__aws_endpoint(const presto__aws_config *config, const char *profile,
                                   const char *service, char **endpoint_out, presto_error *err);

/** AWS_REGION, AWS_DEFAULT_REGION or that of the profile: malloc'd, NULL: none is named.
 * PRESTO_ERR_ARGUMENT: it cannot be one. */
presto_status presto__aws_region(const presto__aws_config *config, const char *profile,
                                 char **region_out, presto_error *err);

/** May it be the name of a region, and part of a host's? */
bool presto__is_region(presto_span text);

/** The text of a small file of this machine, appended; '~/' is the user's home. Nothing, if there is
 * none; then PRESTO_END. PRESTO_ERR_IO, PRESTO_ERR_LIMIT. */
presto_status presto__small_file(const char *path, presto_buffer *out, presto_error *err);

/** "HOME/NAME"; malloc'd. NULL: no home, or no memory. */
char *presto__in_home(const char *name);

#endif
