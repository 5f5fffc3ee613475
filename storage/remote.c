/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening an object reads its beginning: that says how large it is and which one, and what is read
 * first needs no request of its own. Each further range asks for that one object by its ETag.
 *
 * A request that failed in a way that may pass is sent again, after a wait that is drawn at random
 * below a bound which doubles ("full jitter"), so that many clients do not come back at once. All
 * threads share a budget of retries, which successes fill: a server that fails for long is not
 * asked many times as often as one that works.
 */
#include "remote_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../base/clock_internal.h"
#include "../base/file_internal.h"
#include "../base/retry_internal.h"
#include "../base/stop_internal.h"
#include "calendar_internal.h"
#include "curl_internal.h"

#include <presto/numbers.h>

#define HEAD_BYTES ((size_t)16 << 10) /* of an object, that opening it reads */
#define MOST_TRIES 10
#define MOST_LEARNED 2                   /* where the object is, and newer keys */
#define FIRST_WAIT_NS UINT64_C(50000000) /* the bound of the first wait */
#define MOST_WAIT_NS UINT64_C(10000000000)
#define SLICE_NS UINT64_C(50000000) /* a stop is asked for so often while waiting */
#define BUDGET 1000                 /* retries, if nothing succeeds */
#define REFILL_EVERY 2              /* successes are worth a retry */
#define DATASET "dataset.json"

typedef struct remote_object {
    const presto__address_type *address;
    void *self; /* of the address */
    char *path;
    presto__object_info info;
    char etag[sizeof((presto__http_answer){0}.etag)]; /* "": the server gives none */
    char last_modified[sizeof((presto__http_answer){0}.last_modified)];
    uint8_t *head; /* its first bytes */
    size_t head_bytes;
} remote_object;

/* ---- messages ---- */

static presto_status add_piece(presto_buffer *out, const char *text, presto_error *err) {
    return presto_buffer_append(out, presto_span_of_text(text), err);
}

presto_status presto__message_add(presto__message *message, const char *name, presto_span value,
                                  presto_error *err) {
    if (message->header_count == PRESTO__MOST_HEADERS)
        return presto_fail(err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET,
                           "a request has too many headers");
    PRESTO_TRY(add_piece(&message->text, name, err));
    PRESTO_TRY(add_piece(&message->text, ": ", err));
    PRESTO_TRY(presto_buffer_append(&message->text, value, err));
    PRESTO_TRY(presto_buffer_append(&message->text, presto_span_of("", 1), err));
    message->header_count++;
    return PRESTO_OK;
}

presto_status presto__message_wish(presto__message *message, const presto__remote_wish *wish,
                                   presto_error *err) {
    if (wish->has_range) {
        char range[64];
        snprintf(range, sizeof range, "bytes=%" PRIu64 "-%" PRIu64, wish->first, wish->last);
        PRESTO_TRY(presto__message_add(message, "Range", presto_span_of_text(range), err));
    }
    return wish->etag == NULL
               ? PRESTO_OK
               : presto__message_add(message, "If-Match", presto_span_of_text(wish->etag), err);
}

/* The texts as a request. */
static presto__http_request request_of(const presto__message *message) {
    presto__http_request request = {.header_count = message->header_count};
    const char *at = (const char *)message->text.data;
    request.url = at;
    for (size_t i = 0; i < message->header_count; i++) {
        at += strlen(at) + 1;
        request.headers[i] = at;
    }
    return request;
}

/* ---- retries ---- */

/* In halves of a retry. Below 0 for a moment at most. */
static atomic_int budget = BUDGET * REFILL_EVERY;

static void note_success(void) {
    if (atomic_load_explicit(&budget, memory_order_relaxed) < BUDGET * REFILL_EVERY)
        atomic_fetch_add_explicit(&budget, 1, memory_order_relaxed);
}

static bool may_retry(void) {
    if (atomic_fetch_sub_explicit(&budget, REFILL_EVERY, memory_order_relaxed) >= REFILL_EVERY)
        return true;
    atomic_fetch_add_explicit(&budget, REFILL_EVERY, memory_order_relaxed);
    return false;
}

static presto_status wait_before(unsigned tries, presto_error *err) {
    uint64_t bound_ns = FIRST_WAIT_NS << (tries < 10 ? tries : 10);
    if (bound_ns > MOST_WAIT_NS)
        bound_ns = MOST_WAIT_NS;
    uint64_t left_ns = presto__random_name() % bound_ns;
    while (left_ns > 0) {
        uint64_t slice_ns = left_ns < SLICE_NS ? left_ns : SLICE_NS;
        const struct timespec pause = {.tv_nsec = (long)slice_ns};
        PRESTO_TRY(presto__stop_check(err));
        (void)nanosleep(&pause, NULL);
        left_ns -= slice_ns;
    }
    return presto__stop_check(err);
}

/* May the same request succeed a moment later? */
static bool may_pass(const presto__http_answer *answer) {
    if (answer->failed != 0)
        switch (answer->failed) {
        case PRESTO__CURLE_COULDNT_RESOLVE_HOST:
        case PRESTO__CURLE_COULDNT_CONNECT:
        case PRESTO__CURLE_HTTP2:
        case PRESTO__CURLE_PARTIAL_FILE:
        case PRESTO__CURLE_OPERATION_TIMEDOUT:
        case PRESTO__CURLE_SSL_CONNECT_ERROR:
        case PRESTO__CURLE_GOT_NOTHING:
        case PRESTO__CURLE_SEND_ERROR:
        case PRESTO__CURLE_RECV_ERROR:
        case PRESTO__CURLE_HTTP2_STREAM:
            return true;
        default:
            return false;
        }
    switch (answer->code) {
    case 408:
    case 429:
    case 500:
    case 502:
    case 503:
    case 504:
        return true;
    case 400: /* S3's word for a connection that was too slow */
        return strstr(answer->text, "<Code>RequestTimeout</Code>") != NULL;
    default:
        return false;
    }
}

/* ---- what went wrong, in words ---- */

/* What stands between <name> and </name>; "" if nothing does. */
static void find_element(const char *text, const char *name, char *out, size_t room) {
    char tag[40];
    snprintf(tag, sizeof tag, "<%s>", name);
    const char *from = strstr(text, tag);
    const char *to = from == NULL ? NULL : strchr(from + strlen(tag), '<');
    out[0] = '\0';
    if (to != NULL)
        snprintf(out, room, "%.*s", (int)(to - from - (ptrdiff_t)strlen(tag)), from + strlen(tag));
}

/* " of bytes 0-99"; "" if all was wanted. */
static void range_text(const presto__remote_wish *wish, char *out, size_t room) {
    out[0] = '\0';
    if (wish->has_range)
        snprintf(out, room, " of bytes %" PRIu64 "-%" PRIu64, wish->first, wish->last);
}

static presto_status fail_with(const char *path, presto_status status, int sys_errno,
                               presto_error *err) {
    presto_error_set_file(err, path);
    if (err != NULL)
        err->sys_errno = sys_errno;
    return status;
}

static presto_status fail_changed(const char *path, presto_error *err) {
    presto_status status = presto_fail(err, PRESTO_ERR_IO, PRESTO_NO_OFFSET,
                                       "the object has been replaced or changed while in use");
    return fail_with(path, status, EIO, err);
}

static presto_status fail_answer(const char *path, const presto__remote_wish *wish,
                                 const presto__http_answer *answer, unsigned tries,
                                 presto_error *err) {
    char range[64], code[64], words[192], id[128] = "", again[48] = "";
    range_text(wish, range, sizeof range);
    find_element(answer->text, "Code", code, sizeof code);
    find_element(answer->text, "Message", words, sizeof words);
    if (answer->request_id[0] != '\0')
        snprintf(id, sizeof id, ", request id %s", answer->request_id);
    if (tries > 1)
        snprintf(again, sizeof again, " after %u tries", tries);
    if (answer->failed != 0)
        return fail_with(path,
                         presto_fail(err, PRESTO_ERR_IO, PRESTO_NO_OFFSET,
                                     "the request%s failed%s: %s%s", range, again, answer->why, id),
                         EIO, err);
    if (answer->code == 404)
        return fail_with(path,
                         presto_fail(err, PRESTO_ERR_NOT_FOUND, PRESTO_NO_OFFSET,
                                     "no such object%s%s%s", code[0] == '\0' ? "" : ": ", code, id),
                         ENOENT, err);
    if (answer->code == 412)
        return fail_changed(path, err);
    if (answer->code >= 300 && answer->code < 400)
        return fail_with(path,
                         presto_fail(err, PRESTO_ERR_IO, PRESTO_NO_OFFSET,
                                     "the server answered %d and points to '%s': give that URL%s",
                                     answer->code, answer->location, id),
                         EIO, err);
    bool is_denied = answer->code == 401 || answer->code == 403;
    return fail_with(path,
                     presto_fail(err, PRESTO_ERR_IO, PRESTO_NO_OFFSET,
                                 "the request%s was answered with %d%s%s%s%s%s%s", range,
                                 answer->code, code[0] == '\0' ? "" : " ", code,
                                 words[0] == '\0' ? "" : ": ", words, again, id),
                     is_denied ? EACCES : EIO, err);
}

/* ---- requests ---- */

/* Where an answer goes. */
typedef struct remote_target {
    const presto__address_type *address;
    void *self;
    const char *path;
    void *data;
    size_t most_bytes;
} remote_target;

static presto_status send_once(const remote_target *to, const presto__remote_wish *wish,
                               presto__http_answer *answer, presto_error *err) {
    presto__message message = {.header_count = 0};
    presto_status status = to->address->write(to->self, wish, &message, err);
    if (status == PRESTO_OK) {
        presto__http_request request = request_of(&message);
        request.data = to->data;
        request.most_bytes = to->most_bytes;
        status = presto__http_transfer(&request, answer, err);
        answer->keys = message.keys;
    }
    presto_buffer_done(&message.text);
    return status;
}

/* Is the answer all of what was asked for? A server that does not know ranges sends everything. */
static bool is_whole(const presto__remote_wish *wish, const presto__http_answer *answer) {
    if ((answer->failed != 0 && !answer->is_longer) || answer->code != 206)
        return true; /* others look at that */
    uint64_t first, last;
    if (answer->is_longer)
        return false;
    return sscanf(answer->content_range, "bytes %" SCNu64 "-%" SCNu64, &first, &last) == 2 &&
           first == wish->first && last >= first && last - first + 1 == answer->bytes;
}

/*
 * Until the answer is a success, or one that stays: 404, 412 and 416 are the caller's.
 * Returns: PRESTO_OK: `answer` is 200, 206 or 416; an error otherwise.
 */
static presto_status ask(const remote_target *to, const presto__remote_wish *wish,
                         presto__http_answer *answer, presto_error *err) {
    unsigned learned = 0;
    for (unsigned tries = 1;; tries++) {
        PRESTO_TRY(presto__stop_check(err));
        *answer = (presto__http_answer){.code = 0};
        PRESTO_TRY(send_once(to, wish, answer, err));
        bool is_cut = !is_whole(wish, answer);
        if (!is_cut && (answer->failed == 0 || answer->is_longer) &&
            (answer->code == 200 || answer->code == 206 || answer->code == 416)) {
            note_success();
            return PRESTO_OK;
        }
        if (learned < MOST_LEARNED && to->address->learn != NULL &&
            to->address->learn(to->self, answer)) {
            learned++;
            continue;
        }
        if (is_cut) {
            answer->failed = PRESTO__CURLE_PARTIAL_FILE;
            snprintf(answer->why, sizeof answer->why, "%s%zu byte%s came, of the range '%s'",
                     answer->is_longer ? "more than " : "", answer->bytes,
                     presto_plural(answer->bytes), answer->content_range);
        }
        if (tries == MOST_TRIES || !may_pass(answer) || !may_retry())
            return fail_answer(to->path, wish, answer, tries, err);
        PRESTO_TRY(wait_before(tries - 1, err));
    }
}

/* ---- what an object is ---- */

/* "Wed, 21 Oct 2015 07:28:00 GMT"; 0 if it is no time. */
static int64_t time_of(const char *text) {
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    char name[4] = "";
    int day, year, hour, minute, second;
    if (sscanf(text, "%*3s, %d %3s %d %d:%d:%d", &day, name, &year, &hour, &minute, &second) != 6 ||
        strlen(name) != 3 || year < 1970 || year > 2200 || day < 1 || day > 31 || hour < 0 ||
        hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 60)
        return 0;
    const char *found = strstr(months, name);
    if (found == NULL || (found - months) % 3 != 0)
        return 0;
    int64_t days = presto__calendar_days(year, (found - months) / 3 + 1, day);
    return (((days * 24 + hour) * 60 + minute) * 60 + second) * 1000000000;
}

static presto__object_info info_of(const char *path, uint64_t bytes,
                                   const presto__http_answer *answer) {
    uint64_t which = presto__fnv_add(PRESTO__FNV_START, answer->etag, strlen(answer->etag));
    const presto__object_info info = {
        .type = PRESTO__OBJECT_FILE,
        .bytes = bytes,
        .mtime_ns = time_of(answer->last_modified),
        .ctime_ns = (int64_t)(which >> 1),
        .identity = {presto__fnv_add(PRESTO__FNV_START, path, strlen(path)), which},
    };
    return info;
}

/* The size of an object of which a range came, or of which none is there. */
static bool size_of(const presto__http_answer *answer, uint64_t *bytes_out) {
    const char *slash = strchr(answer->content_range, '/');
    if (slash == NULL || slash[1] < '0' || slash[1] > '9')
        return false;
    *bytes_out = strtoull(slash + 1, NULL, 10);
    return true;
}

static presto_status fail_ranges(const char *path, presto_error *err) {
    presto_status status = presto_fail(
        err, PRESTO_ERR_UNSUPPORTED, PRESTO_NO_OFFSET,
        "the server does not send ranges of it: use one that does, or download the files");
    return fail_with(path, status, 0, err);
}

/* ---- the hooks ---- */

static void free_object(remote_object *object) {
    if (object == NULL)
        return;
    if (object->self != NULL)
        object->address->free(object->self);
    free(object->path);
    free(object->head);
    free(object);
}

/* Read its beginning, and keep what it is. */
static presto_status look_first(remote_object *object, presto_error *err) {
    presto__http_answer answer;
    const presto__remote_wish wish = {.has_range = true, .first = 0, .last = HEAD_BYTES - 1};
    const remote_target to = {object->address, object->self, object->path, object->head,
                              HEAD_BYTES};
    uint64_t bytes;
    PRESTO_TRY(ask(&to, &wish, &answer, err));
    /* All of a small one may come as it is; an end that the server does not announce may be a cut. */
    if (answer.code == 200 && (answer.is_longer || answer.length != answer.bytes))
        return fail_ranges(object->path, err);
    if (answer.code == 200) /* all of it; or, of an empty one, nothing */
        bytes = answer.bytes;
    else if (!size_of(&answer, &bytes) || (answer.code == 416 && bytes != 0) ||
             (answer.code == 206 &&
              answer.bytes != (bytes < HEAD_BYTES ? (size_t)bytes : HEAD_BYTES)))
        return fail_ranges(object->path, err);
    object->head_bytes = answer.code == 416 ? 0 : answer.bytes;
    object->info = info_of(object->path, bytes, &answer);
    memcpy(object->etag, answer.etag, sizeof object->etag);
    memcpy(object->last_modified, answer.last_modified, sizeof object->last_modified);
    return PRESTO_OK;
}

presto_status presto__remote_open(const presto__remote_name *name, presto__object *object_out,
                                  presto__object_info *info_out, presto_error *err) {
    remote_object *object = calloc(1, sizeof *object);
    if (object == NULL)
        return presto_fail_memory(err, sizeof *object);
    object->address = name->address;
    object->path = strdup(name->path);
    object->head = malloc(HEAD_BYTES);
    presto_status status = object->path == NULL || object->head == NULL
                               ? presto_fail_memory(err, HEAD_BYTES)
                               : name->address->make(name->path, &object->self, err);
    if (status == PRESTO_OK)
        status = look_first(object, err);
    if (status < 0) {
        presto_error_set_file(err, name->path);
        free_object(object);
        return status;
    }
    *object_out = (presto__object){.kind = name->kind, .state = object};
    *info_out = object->info;
    return PRESTO_OK;
}

void presto__remote_close(presto__object object) {
    free_object(object.state);
}

/* Is it an answer about the object that was opened? */
static bool is_same(const remote_object *object, const presto__http_answer *answer) {
    uint64_t bytes;
    return strcmp(object->etag, answer->etag) == 0 &&
           strcmp(object->last_modified, answer->last_modified) == 0 && size_of(answer, &bytes) &&
           bytes == object->info.bytes;
}

/* What was open cannot be read any more: its keys have expired, it was deleted, another server
 * answers. That is no fault of one record, so leaving the record out would not help. */
static presto_status fail_open(const presto_error *why, presto_error *err) {
    presto_error failure = *why;
    if (!presto__is_machine_failure(why)) {
        failure.status = PRESTO_ERR_IO;
        failure.sys_errno = EIO;
    }
    if (err != NULL)
        *err = failure;
    return failure.status;
}

/* The bytes are not in the head. */
static presto_status read_range(const remote_object *object, const presto__remote_wish *wish,
                                void *data, presto_error *err) {
    size_t bytes = (size_t)(wish->last - wish->first) + 1;
    presto__http_answer answer;
    const remote_target to = {object->address, object->self, object->path, data, bytes};
    PRESTO_TRY(ask(&to, wish, &answer, err));
    if (answer.code == 200)
        return fail_ranges(object->path, err);
    if (answer.code != 206 || answer.bytes != bytes || !is_same(object, &answer))
        return fail_changed(object->path, err);
    return PRESTO_OK;
}

/* May the ETag be sent as it came? Weak ones may not, and one that was cut is another one. */
static bool is_strong(const char *etag) {
    size_t bytes = strlen(etag);
    return bytes >= 2 && etag[0] == '"' && etag[bytes - 1] == '"';
}

presto_status presto__remote_read(const presto__object_place *place, void *data, size_t bytes,
                                  size_t *got_out, presto_error *err) {
    const remote_object *object = place->object.state;
    uint64_t end = object->info.bytes;
    presto_error why;
    if (place->offset >= end || bytes == 0) {
        *got_out = 0;
        return PRESTO_OK;
    }
    if (bytes > end - place->offset)
        bytes = (size_t)(end - place->offset);
    if (place->offset + bytes <= object->head_bytes && !place->object.is_again) {
        memcpy(data, object->head + place->offset, bytes);
        *got_out = bytes;
        return PRESTO_OK;
    }
    const presto__remote_wish wish = {.has_range = true,
                                      .first = place->offset,
                                      .last = place->offset + bytes - 1,
                                      .etag = is_strong(object->etag) ? object->etag : NULL};
    if (read_range(object, &wish, data, &why) < 0)
        return fail_open(&why, err);
    *got_out = bytes;
    return PRESTO_OK;
}

presto_status presto__remote_look(presto__object object, const char *path,
                                  presto__object_info *info_out, presto_error *err) {
    (void)path, (void)err; /* each range was checked */
    *info_out = ((const remote_object *)object.state)->info;
    return PRESTO_OK;
}

int presto__remote_number(presto__object object) {
    return (int)(((uintptr_t)object.state >> 4) & INT32_MAX);
}

/* What is said of one object, and its first byte: an answer without a body would not say why it is no
 * success. */
static presto_status find_one(const presto__remote_name *name, presto__object_info *info_out,
                              presto_error *err) {
    void *self;
    uint8_t byte;
    uint64_t bytes = 0;
    presto__http_answer answer;
    const presto__remote_wish wish = {.has_range = true, .first = 0, .last = 0};
    PRESTO_TRY(name->address->make(name->path, &self, err));
    const remote_target to = {name->address, self, name->path, &byte, sizeof byte};
    presto_status status = ask(&to, &wish, &answer, err);
    name->address->free(self);
    PRESTO_TRY(status);
    if (answer.code == 200) /* a server without ranges: who opens it is told */
        bytes = answer.length;
    else if (!size_of(&answer, &bytes))
        return fail_ranges(name->path, err);
    *info_out = info_of(name->path, bytes, &answer);
    return PRESTO_OK;
}

/* Is there a dataset below the name? */
static presto_status find_below(const presto__remote_name *name, presto__object_info *info_out,
                                presto_error *err) {
    char *inside = presto__join_path(name->path, DATASET);
    if (inside == NULL)
        return presto_fail_memory(err, strlen(name->path));
    const presto__remote_name below = {name->kind, name->address, inside};
    presto_status status = find_one(&below, info_out, err);
    free(inside);
    if (status == PRESTO_OK)
        *info_out = (presto__object_info){.type = PRESTO__OBJECT_FOLDER};
    return status;
}

/* What is more likely is asked for first: files have a dot in their names, folders of datasets have
 * none. */
presto_status presto__remote_find(const presto__remote_name *name, presto__object_info *info_out,
                                  presto_error *err) {
    const char *slash = strrchr(name->path, '/');
    const char *last = slash == NULL ? name->path : slash + 1;
    bool is_folder = last[0] == '\0', has_dot = strchr(last, '.') != NULL;
    if (is_folder || strcmp(last, DATASET) == 0)
        return is_folder ? find_below(name, info_out, err) : find_one(name, info_out, err);
    presto_status status =
        has_dot ? find_one(name, info_out, err) : find_below(name, info_out, err);
    if (status != PRESTO_ERR_NOT_FOUND)
        return status;
    return has_dot ? find_below(name, info_out, err) : find_one(name, info_out, err);
}
