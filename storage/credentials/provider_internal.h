/* SPDX-License-Identifier: Apache-2.0 */
/* What a provider of keys is, and what providers share. Of the room credentials alone. */
#ifndef PRESTO_CREDENTIALS_PROVIDER_INTERNAL_H
#define PRESTO_CREDENTIALS_PROVIDER_INTERNAL_H

#include <jansson.h>

#include "aws_config_internal.h"
#include "credentials_internal.h"

#define PRESTO__MOST_ANSWER_BYTES ((size_t)256 << 10)
#define PRESTO__MOST_ROLES 16 /* in a chain of profiles */

typedef struct presto__search presto__search;

/** A provider. Any thread. */
typedef struct presto__provider {
    const char *name;   /* as it is shown */
    const char *source; /* as `credential_source` of a profile has it; NULL: it cannot be named */
    /**
     * Fill *keys_out, whose texts are owned and whose provider is set already. PRESTO_END: there are
     * none here, the next provider is asked.
     */
    presto_status (*find)(const presto__search *search, presto__keys *keys_out, presto_error *err);
} presto__provider;

/** Who is asked for what. */
struct presto__search {
    const presto__aws_config *config; /* NULL for another cloud */
    const char *profile;
    bool is_source; /* keys of a profile that another one names: variables do not count */
    const presto__search *outer; /* of the profile that names this one; NULL: none does */
    /** The keys of another profile, or, if `source` is not NULL, of the provider of that name. Of
     * the chain, so that a provider need not know it. */
    presto_status (*find_other)(const presto__search *search, const char *source,
                                presto__keys *keys_out, presto_error *err);
    char *note; /* why a provider that was asked has none, for the error when nobody has */
    size_t note_bytes;
};

extern const presto__provider presto__provider_environment, presto__provider_role,
    presto__provider_web_identity, presto__provider_sso, presto__provider_shared_file,
    presto__provider_process, presto__provider_config_file, presto__provider_container,
    presto__provider_instance;
extern const presto__provider presto__provider_google_file, presto__provider_google_instance;

/* ---- secrets.c ---- */

/** Free its texts, and overwrite them before. */
void presto__keys_done(presto__keys *keys);

/* ---- ask.c ---- */

/** A request for keys. All is borrowed. */
typedef struct presto__question {
    const char *whom; /* is asked, for messages: "STS" */
    const char *url;
    const char *method; /* NULL: GET, or POST with a body */
    const char *headers[8];
    size_t header_count;
    presto_span body; /* NULL: none */
    long most_ms;     /* for each try */
    bool is_direct;   /* not by way of a proxy */
    unsigned tries;   /* if there is no answer, or one that may pass */
} presto__question;

/**
 * Ask, and append the body of a success to `answer`. *code_out: of HTTP; 0: no answer came.
 * Returns: PRESTO_OK: a success; PRESTO_ERR_IO: the message says who answered what;
 *          PRESTO_ERR_STOPPED, PRESTO_ERR_UNSUPPORTED, PRESTO_ERR_MEMORY.
 */
presto_status presto__ask(const presto__question *question, presto_buffer *answer, int *code_out,
                          presto_error *err);

/** Append the texts, which end with NULL. */
presto_status presto__append_texts(presto_buffer *out, presto_error *err, ...);

/* ---- token_json.c ---- */

/** Names of members, in the order of presto__keys: of the key, the secret, the token, the time. */
typedef struct presto__key_names {
    const char *access_key, *secret_key, *token, *until;
} presto__key_names;

/** An object in JSON; NULL: it is none. `whose` is for the message. Free with json_decref. */
json_t *presto__token_json(presto_span text, const char *whose, presto_error *err);
/** A member that is a text; NULL: there is none, or it is empty. Borrowed. */
const char *presto__token_member(const json_t *object, const char *name);
/** May it be part of a header's line: no space, no control character? */
bool presto__is_plain(const char *text);
/** Keys from members of an object. Without a time they are for ever; a token may be missing. */
presto_status presto__keys_from_json(const json_t *object, const presto__key_names *names,
                                     const char *whose, presto__keys *keys_out, presto_error *err);
/** The same from the text of an object. */
presto_status presto__keys_from_text(presto_span text, const presto__key_names *names,
                                     const char *whose, presto__keys *keys_out, presto_error *err);

/* ---- sts.c ---- */

/** A question to STS: parameters of one of its actions, not encoded. */
typedef struct presto__sts_parameter {
    const char *name, *value; /* NULL: left out */
} presto__sts_parameter;

/** Ask STS for the keys of a role. `with` NULL: not signed. The endpoint is the profile's. */
presto_status presto__sts_ask(const presto__search *search, const presto__sts_parameter *parameters,
                              const presto__keys *with, presto__keys *keys_out, presto_error *err);
/** "presto-session-1764230400" */
#define PRESTO__SESSION_NAME_BYTES 40
void presto__sts_session_name(char name_out[PRESTO__SESSION_NAME_BYTES]);

#endif
