/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects that a server holds, whatever the kind: requests are tried again, and an object that is
 * open stays the one that it was, or reading it fails. The kinds only say where it is and who asks
 * (presto__address).
 */
#ifndef PRESTO_REMOTE_INTERNAL_H
#define PRESTO_REMOTE_INTERNAL_H

#include "kinds_internal.h"
#include "sigv4_internal.h"
#include "transfer_internal.h"

/** What is wanted of an object, or of a bucket. */
typedef struct presto__remote_wish {
    bool has_range;
    uint64_t first, last;   /* bytes, the last one included */
    const char *etag;       /* it must be this one; NULL: any */
    const char *generation; /* the same, as Google's storage counts them */
    bool is_checksum;       /* only what the server says of the object, with its CRC */
    const presto__named_value *query;
    size_t query_count;
    const char *what; /* is wanted of `path`, for messages: "its keys"; NULL: bytes of it */
    /* Of what writes: */
    const char *method;                 /* NULL: GET, or HEAD */
    presto_span body;                   /* data NULL: none is sent */
    const presto__named_value *headers; /* more of them, which are signed; in small letters */
    size_t header_count;
    bool has_customer_key; /* the object's bytes go there, or are named */
    bool has_source_key;   /* they are copied, and have the same key */
    const char *url;       /* in the place of the object's own; of gs:// alone. NULL: that one */
    bool has_no_key;       /* its address is the key. Of gs:// alone */
} presto__remote_wish;

/** A request as texts: the URL, then header lines, each with a 0 behind. */
typedef struct presto__message {
    presto_buffer text;
    size_t header_count;
    uint64_t keys; /* the number of those that it is signed with, or of the address that is signed
                    * itself; 0: neither is */
} presto__message;

/** Where objects are, of one kind. `self` is made when an object is opened or looked for, and is its
 * owner's. Any thread, also of one `self`. */
typedef struct presto__address_type {
    /** Everything about `path` that does not change. */
    presto_status (*make)(const char *path, void **self_out, presto_error *err);
    void (*free)(void *self);
    /** The request for a wish: its URL and all headers. */
    presto_status (*write)(void *self, const presto__remote_wish *wish, presto__message *message,
                           presto_error *err);
    /** Is it worth asking again at once, because the answer says where the object is, or there are
     * newer keys? May be NULL. */
    bool (*learn)(void *self, const presto__http_answer *answer);
    /** So often for one request; 0: twice. */
    unsigned most_learned;
    /** An answer that is a success. May be NULL. */
    void (*see)(void *self, const presto__http_answer *answer);
    /** What is known of the object from this answer, a success, where the headers do not say it all.
     * May be NULL. */
    void (*know)(void *self, const char *path, const presto__http_answer *answer,
                 presto__object_info *info_io);
} presto__address_type;

/** Where an answer goes. All is borrowed. */
typedef struct presto__remote_target {
    const presto__address_type *address;
    void *self;       /* of the address */
    const char *path; /* for messages */
    void *data;
    size_t most_bytes;
} presto__remote_target;

/** A name, of the kind that owns it. */
typedef struct presto__remote_name {
    const presto__storage_kind *kind;
    const presto__address_type *address;
    const char *path;
} presto__remote_name;

/** Give its memory back, overwritten: there are tokens in it. */
void presto__message_done(presto__message *message);

/** Append the header "NAME: VALUE". PRESTO_ERR_ARGUMENT: the value would be several lines. */
presto_status presto__message_add(presto__message *message, const char *name, presto_span value,
                                  presto_error *err);

/** Append the headers that say which range of which object is wanted. */
presto_status presto__message_wish(presto__message *message, const presto__remote_wish *wish,
                                   presto_error *err);

/** The texts as a request, which borrows them. */
presto__http_request presto__message_request(const presto__message *message);

/* ---- what came (request.c), for those that ask ---- */

/** Is the answer all of the range that was asked for? */
bool presto__answer_is_range(const presto__remote_wish *wish, const presto__http_answer *answer);
/** May the same request succeed a moment later? */
bool presto__answer_may_pass(const presto__http_answer *answer);
/** All threads share a budget of retries: take one, or do without. */
bool presto__retry_allowed(void);
/** A request has succeeded. */
void presto__retry_note_success(void);
/** How long to wait before the next try, after so many: drawn at random below a bound. */
uint64_t presto__retry_wait_ns(unsigned tries);

/**
 * Send a request until the answer is a success, or one that stays.
 * Returns: PRESTO_OK: `answer` is 200, 206 or 416; PRESTO_ERR_NOT_FOUND; PRESTO_ERR_IO,
 *          PRESTO_ERR_STOPPED, _UNSUPPORTED, _MEMORY: the message says what was asked for.
 */
presto_status presto__remote_ask(const presto__remote_target *to, const presto__remote_wish *wish,
                                 presto__http_answer *answer, presto_error *err);

/**
 * The same, but whatever answer stays is the caller's, as one that could not be tried again is:
 * answer->failed says so. *tries_out is how often it was sent.
 * Returns: PRESTO_OK: look at the answer; PRESTO_ERR_STOPPED, _UNSUPPORTED, _MEMORY, ...: nobody
 *          could be asked.
 */
presto_status presto__remote_send(const presto__remote_target *to, const presto__remote_wish *wish,
                                  presto__http_answer *answer, unsigned *tries_out,
                                  presto_error *err);
/** Wait before the next try, after so many. PRESTO_ERR_STOPPED. */
presto_status presto__remote_wait(unsigned tries, presto_error *err);
/** An answer that is no success, as an error. */
presto_status presto__remote_fail(const char *path, const presto__remote_wish *wish,
                                  const presto__http_answer *answer, unsigned tries,
                                  presto_error *err);
/** The ETag of an open object, as it came. */
const char *presto__remote_etag(presto__object object);
/** Its generation; "": the server gives none. */
const char *presto__remote_generation(presto__object object);
/** The CRC-32C that a server has said: four bytes in base64. False: it is something else. */
bool presto__remote_crc(const char *text, uint32_t *crc_out);

/** What a storage calls the content of an object. Texts; NULL or "": it does not say that. */
typedef struct presto__remote_version {
    const char *etag;       /* with or without quotes */
    const char *generation; /* as Google counts them; it counts more than the ETag */
    int64_t mtime_ns;
} presto__remote_version;

/** What is known of the object at `path` of that version. */
presto__object_info presto__remote_info(const char *path, uint64_t bytes,
                                        const presto__remote_version *version);

/** As presto__object_checksum. */
presto_status presto__remote_checksum(const presto__remote_name *name,
                                      presto__object_checksum *checksum_out, presto_error *err);

/* Hooks of a kind of storage. */
presto_status presto__remote_open(const presto__remote_name *name, presto__object *object_out,
                                  presto__object_info *info_out, presto_error *err);
/** A name without an object, but with one "NAME/dataset.json", is a folder; so is one that ends with
 * a '/'. */
presto_status presto__remote_find(const presto__remote_name *name, presto__object_info *info_out,
                                  presto_error *err);
void presto__remote_close(presto__object object);
presto_status presto__remote_read(const presto__object_place *place, void *data, size_t bytes,
                                  size_t *got_out, presto_error *err);
presto_status presto__remote_look(presto__object object, const char *path,
                                  presto__object_info *info_out, presto_error *err);
int presto__remote_number(presto__object object);
void presto__remote_will_read(presto__object object, uint64_t offset, uint64_t bytes,
                              uint64_t wanted);
void presto__remote_will_open(const presto__remote_name *name);

#endif
