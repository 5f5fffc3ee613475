/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room credentials: who asks a cloud's storage. A table of providers for each cloud, one file a
 * provider, in the order of the cloud's own tools: the first one that has keys gives them. One set of
 * keys serves a process, as long as its environment says the same: it is got once, and again before
 * it expires, by one of those who ask.
 * May see: base; of storage: transfers, crypto, signatures, XML. Must not know: kinds of storage.
 * Invariants: secrets go to nobody but the service that a provider asks, never into a message, and
 * in a file to the cache of single sign-on only, which its owner alone may read.
 * Locks: one, of the room (keys.c); none is held while a provider is asked.
 */
#ifndef PRESTO_CREDENTIALS_INTERNAL_H
#define PRESTO_CREDENTIALS_INTERNAL_H

#include <presto/span.h>
#include <presto/status.h>

#define PRESTO__KEYS_FOR_EVER INT64_MAX

/** Whose tools' settings say who asks. */
typedef enum presto__cloud {
    PRESTO__CLOUD_AWS,
    PRESTO__CLOUD_GOOGLE,
} presto__cloud;

/** What a request is signed with. Read-only for all who have it. */
typedef struct presto__keys {
    char *access_key, *secret_key; /* of AWS; NULL: requests are not signed */
    char *token;                   /* of a session (AWS), or a bearer's (Google); NULL: none */
    const char *provider;          /* which one gave them: "environment" */
    int64_t until_s;               /* since 1970; PRESTO__KEYS_FOR_EVER */
    uint64_t number;               /* of the process; no two have one. Above 0 */
    /* Guarded by the room's lock. */
    unsigned users;
    bool is_refused; /* a server has called them expired */
} presto__keys;

/** Who asks, for one cloud and one environment. */
typedef struct presto__credentials presto__credentials;

/**
 * Who asks, as the environment says now. Nothing is asked for it. Release it.
 * Returns: PRESTO_OK; PRESTO_ERR_ARGUMENT: the settings do not hold, the message says which;
 *          PRESTO_ERR_IO: a file of settings cannot be read.
 * Threads: any; others must not change the environment meanwhile.
 */
presto_status presto__credentials_find(presto__cloud cloud, presto__credentials **credentials_out,
                                       presto_error *err);
void presto__credentials_release(presto__credentials *credentials);

/** The settings of AWS's tools that these come from; NULL for another cloud. Borrowed. */
const struct presto__aws_config *presto__credentials_config(const presto__credentials *credentials);

/**
 * Keys that are valid now. One of those who ask gets new ones when the old ones expire soon; others
 * use the old ones meanwhile, or wait, if there are none that are valid. Release them.
 * Returns: PRESTO_OK; PRESTO_ERR_ARGUMENT: nobody has any, the message says what to do; what the
 *          provider failed with; PRESTO_ERR_STOPPED.
 * Threads: any.
 */
presto_status presto__keys_acquire(presto__credentials *credentials, const presto__keys **keys_out,
                                   presto_error *err);
void presto__keys_release(const presto__keys *keys);

/**
 * A server has called the keys of that number expired. True: there are others now, so that it is
 * worth asking again. Any thread.
 */
bool presto__keys_renew(presto__credentials *credentials, uint64_t number);

/** May a secret be sent there: over TLS, or to this machine? PRESTO_ERR_ARGUMENT: no. */
presto_status presto__check_secure(const char *whom, const char *url, presto_error *err);

/** The host of a URL without brackets and port. */
presto_span presto__host_of(const char *url);
/** Is it this machine: "localhost", 127.0.0.0/8 or ::1? */
bool presto__is_loopback(presto_span host);

/* ---- secrets.c ---- */

/** Free memory that holds a secret, and overwrite it before. NULL is fine. */
void presto__forget(char *secret);
void presto__forget_buffer(presto_buffer *secret);

#endif
