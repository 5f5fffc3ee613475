/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening an object reads its beginning: that says how large it is and which one, and what is read
 * first needs no request of its own. Each further range asks for that one object by its ETag.
 */
#include "ahead_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
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
#define KEPT_HEAD_BYTES ((size_t)4 << 10)
#define MOST_TRIES 10
#define MOST_LEARNED 2              /* where the object is, and newer keys */
#define SLICE_NS UINT64_C(50000000) /* a stop is asked for so often while waiting */
#define DATASET "dataset.json"

typedef struct remote_object {
    const presto__address_type *address;
    void *self; /* of the address */
    char *path;
    presto__object_info info;
    char etag[sizeof((presto__http_answer){0}.etag)]; /* "": the server gives none */
    char last_modified[sizeof((presto__http_answer){0}.last_modified)];
    char generation[sizeof((presto__http_answer){0}.generation)];
    uint8_t *head; /* its first bytes */
    size_t head_bytes;
    presto__flights flights; /* what has been requested of it ahead */
} remote_object;

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

/* Google's message in a text that was cut, or is nested in another way. */
static void find_cut(const char *text, const char *found, char *out, size_t room) {
    static const char mark[] = "\"message\": \"";
    const char *from = found != NULL || text[0] != '{' ? NULL : strstr(text, mark);
    if (from != NULL)
        snprintf(out, room, "%.*s", (int)strcspn(from + strlen(mark), "\"\n"), from + strlen(mark));
}

/* The text of a member of an object in JSON, as the Hub says what is wrong; "" if it is something
 * else, or was cut. */
static void find_member(const char *text, const char *name, char *out, size_t room) {
    json_t *all = text[0] == '{' ? json_loads(text, 0, NULL) : NULL;
    json_t *member = json_object_get(all, name);
    if (json_is_object(member)) /* Google's: {"error": {"code": 403, "message": "..."}} */
        member = json_object_get(member, "message");
    const char *value = json_string_value(member);
    snprintf(out, room, "%s", value == NULL ? "" : value);
    json_decref(all);
    find_cut(text, value, out, room);
}

/* " of bytes 0-99", " of its keys"; "" if all of it was wanted. */
static void range_text(const presto__remote_wish *wish, char *out, size_t room) {
    out[0] = '\0';
    if (wish->what != NULL)
        snprintf(out, room, " of %s", wish->what);
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
    char range[64], code[64], words[192], id[160] = "", again[48] = "";
    range_text(wish, range, sizeof range);
    find_element(answer->text, "Code", code, sizeof code);
    find_element(answer->text, "Message", words, sizeof words);
    if (words[0] == '\0')
        find_member(answer->text, "error", words, sizeof words);
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
    size_t shown = strcspn(answer->location, "?#"); /* a signature may stand behind that */
    if (answer->code >= 300 && answer->code < 400)
        return fail_with(
            path,
            presto_fail(err, PRESTO_ERR_IO, PRESTO_NO_OFFSET,
                        "the server answered %d and points to '%.*s'%s: give that URL%s",
                        answer->code, (int)shown, answer->location,
                        answer->location[shown] == '\0' ? "" : " (and a query)", id),
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

presto_status presto__remote_wait(unsigned tries, presto_error *err) {
    uint64_t left_ns = presto__retry_wait_ns(tries);
    while (left_ns > 0) {
        uint64_t slice_ns = left_ns < SLICE_NS ? left_ns : SLICE_NS;
        const struct timespec pause = {.tv_nsec = (long)slice_ns};
        PRESTO_TRY(presto__stop_check(err));
        (void)nanosleep(&pause, NULL);
        left_ns -= slice_ns;
    }
    return presto__stop_check(err);
}

typedef presto__remote_target remote_target;

static presto_status send_once(const remote_target *to, const presto__remote_wish *wish,
                               presto__http_answer *answer, presto_error *err) {
    presto__message message = {.header_count = 0};
    presto_status status = to->address->write(to->self, wish, &message, err);
    if (status == PRESTO_OK) {
        presto__http_request request = presto__message_request(&message);
        request.method = wish->is_checksum ? "HEAD" : wish->method;
        request.body = wish->body;
        request.data = to->data;
        request.most_bytes = to->most_bytes;
        status = presto__http_transfer(&request, answer, err);
        answer->keys = message.keys;
    }
    presto__message_done(&message);
    return status;
}

/* Is it cut? A server that does not know ranges sends everything; others look at that, and at what
 * has failed. */
static bool is_cut(const presto__remote_wish *wish, const presto__http_answer *answer) {
    bool is_range = (answer->failed == 0 || answer->is_longer) && answer->code == 206;
    return is_range && !presto__answer_is_range(wish, answer);
}

static bool is_success(const presto__remote_wish *wish, const presto__http_answer *answer) {
    return answer->code == 200 || answer->code == 206 || answer->code == 416 ||
           (answer->code == 204 && wish->method != NULL);
}

presto_status presto__remote_send(const presto__remote_target *to, const presto__remote_wish *wish,
                                  presto__http_answer *answer, unsigned *tries_out,
                                  presto_error *err) {
    unsigned learned = 0;
    const unsigned most_learned =
        to->address->most_learned > 0 ? to->address->most_learned : MOST_LEARNED;
    for (unsigned tries = 1;; tries++) {
        *tries_out = tries;
        PRESTO_TRY(presto__stop_check(err));
        *answer = (presto__http_answer){.code = 0};
        PRESTO_TRY(send_once(to, wish, answer, err));
        bool came_cut = is_cut(wish, answer);
        if (!came_cut && (answer->failed == 0 || answer->is_longer) && is_success(wish, answer)) {
            presto__retry_note_success();
            presto__ahead_note_success();
            if (to->address->see != NULL)
                to->address->see(to->self, answer);
            return PRESTO_OK;
        }
        if (learned < most_learned && to->address->learn != NULL &&
            to->address->learn(to->self, answer)) {
            learned++;
            continue;
        }
        if (came_cut) {
            answer->failed = PRESTO__CURLE_PARTIAL_FILE;
            snprintf(answer->why, sizeof answer->why, "%s%zu byte%s came, of the range '%s'",
                     answer->is_longer ? "more than " : "", answer->bytes,
                     presto_plural(answer->bytes), answer->content_range);
        }
        if (tries == MOST_TRIES || !presto__answer_may_pass(answer) || !presto__retry_allowed())
            return PRESTO_OK;
        PRESTO_TRY(presto__remote_wait(tries - 1, err));
    }
}

presto_status presto__remote_fail(const char *path, const presto__remote_wish *wish,
                                  const presto__http_answer *answer, unsigned tries,
                                  presto_error *err) {
    return fail_answer(path, wish, answer, tries, err);
}

/*
 * Until the answer is a success, or one that stays: 404, 412 and 416 are the caller's.
 * Returns: PRESTO_OK: `answer` is 200, 204, 206 or 416; an error otherwise.
 */
static presto_status ask(const remote_target *to, const presto__remote_wish *wish,
                         presto__http_answer *answer, presto_error *err) {
    unsigned tries;
    PRESTO_TRY(presto__remote_send(to, wish, answer, &tries, err));
    if ((answer->failed == 0 || answer->is_longer) && is_success(wish, answer))
        return PRESTO_OK;
    return fail_answer(to->path, wish, answer, tries, err);
}

presto_status presto__remote_ask(const presto__remote_target *to, const presto__remote_wish *wish,
                                 presto__http_answer *answer, presto_error *err) {
    return ask(to, wish, answer, err);
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

/* Lists and objects may differ in whether the ETag has its quotes. */
presto__object_info presto__remote_info(const char *path, uint64_t bytes,
                                        const presto__remote_version *version) {
    const char *text = version->generation;
    size_t text_bytes = text == NULL ? 0 : strlen(text);
    if (text_bytes == 0) {
        text = version->etag == NULL ? "" : version->etag;
        text_bytes = strlen(text);
        if (text_bytes >= 2 && text[0] == '"' && text[text_bytes - 1] == '"') {
            text++;
            text_bytes -= 2;
        }
    }
    uint64_t which = presto__fnv_add(PRESTO__FNV_START, text, text_bytes);
    const presto__object_info info = {
        .type = PRESTO__OBJECT_FILE,
        .bytes = bytes,
        .mtime_ns = version->mtime_ns,
        .ctime_ns = (int64_t)(which >> 1),
        .identity = {presto__fnv_add(PRESTO__FNV_START, path, strlen(path)), which},
    };
    return info;
}

/* `self`: of the address; NULL: its beginning was requested, which no kind does that has `know`. */
static presto__object_info info_of(const presto__address_type *address, void *self,
                                   const char *path, uint64_t bytes,
                                   const presto__http_answer *answer) {
    const presto__remote_version version = {answer->etag, answer->generation,
                                            time_of(answer->last_modified)};
    presto__object_info info = presto__remote_info(path, bytes, &version);
    if (address->know != NULL && self != NULL)
        address->know(self, path, answer, &info);
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
    presto__flights_done(&object->flights);
    free(object->path);
    free(object->head);
    free(object);
}

/* Keep what its beginning says. */
static presto_status keep_beginning(remote_object *object, const presto__http_answer *answer,
                                    presto_error *err) {
    const presto__remote_wish wish = {.has_range = true, .first = 0, .last = HEAD_BYTES - 1};
    uint64_t bytes;
    if (answer->code == 404)
        return fail_answer(object->path, &wish, answer, 1, err);
    /* All of a small one may come as it is; an end that the server does not announce may be a cut. */
    if (answer->code == 200 && (answer->is_longer || answer->length != answer->bytes))
        return fail_ranges(object->path, err);
    if (answer->code == 200) /* all of it; or, of an empty one, nothing */
        bytes = answer->bytes;
    else if (answer->code == 416 && answer->content_range[0] == '\0')
        bytes = 0; /* it has no first byte */
    else if (!size_of(answer, &bytes) || (answer->code == 416 && bytes != 0) ||
             (answer->code == 206 &&
              answer->bytes != (bytes < HEAD_BYTES ? (size_t)bytes : HEAD_BYTES)))
        return fail_ranges(object->path, err);
    object->head_bytes = answer->code == 416 ? 0 : answer->bytes;
    object->info = info_of(object->address, object->self, object->path, bytes, answer);
    memcpy(object->etag, answer->etag, sizeof object->etag);
    memcpy(object->last_modified, answer->last_modified, sizeof object->last_modified);
    memcpy(object->generation, answer->generation, sizeof object->generation);
    return PRESTO_OK;
}

/* Of a large object, so much is kept: many may be open. */
static void shrink_head(remote_object *object) {
    if (object->info.bytes <= HEAD_BYTES)
        return;
    uint8_t *head = realloc(object->head, KEPT_HEAD_BYTES);
    if (head != NULL) {
        object->head = head;
        object->head_bytes = KEPT_HEAD_BYTES;
    }
}

static presto_status look_first(remote_object *object, presto_error *err) {
    presto__http_answer answer;
    const presto__remote_wish wish = {.has_range = true, .first = 0, .last = HEAD_BYTES - 1};
    object->head = malloc(HEAD_BYTES);
    if (object->head == NULL)
        return presto_fail_memory(err, HEAD_BYTES);
    const remote_target to = {object->address, object->self, object->path, object->head,
                              HEAD_BYTES};
    PRESTO_TRY(ask(&to, &wish, &answer, err));
    return keep_beginning(object, &answer, err);
}

/* Its beginning may have been requested before. */
static presto_status look_at(remote_object *object, presto_error *err) {
    presto__beginning beginning;
    presto_status status;
    if (presto__beginning_take(object->path, &beginning, &status, err)) {
        object->self = beginning.self;
        object->head = beginning.head;
        return keep_beginning(object, &beginning.answer, err);
    }
    PRESTO_TRY(status);
    PRESTO_TRY(object->address->make(object->path, &object->self, err));
    return look_first(object, err);
}

/* May the ETag be sent as it came? Weak ones may not, and one that was cut is another one. */
static bool is_strong(const char *etag) {
    size_t bytes = strlen(etag);
    return bytes >= 2 && etag[0] == '"' && etag[bytes - 1] == '"';
}

/* What an answer must be of; NULL: that cannot be asked for. */
static const char *etag_of(const remote_object *object) {
    return is_strong(object->etag) ? object->etag : NULL;
}

static const char *generation_of(const remote_object *object) {
    return object->generation[0] != '\0' ? object->generation : NULL;
}

/* Is it an answer about the object that was opened? */
static bool is_same(const remote_object *object, const presto__http_answer *answer) {
    uint64_t bytes;
    return strcmp(object->etag, answer->etag) == 0 &&
           strcmp(object->generation, answer->generation) == 0 &&
           strcmp(object->last_modified, answer->last_modified) == 0 && size_of(answer, &bytes) &&
           bytes == object->info.bytes;
}

static presto_status write_range(const void *user, const presto__remote_wish *wish,
                                 presto__message *message, presto_error *err) {
    const remote_object *object = user;
    presto__remote_wish all = *wish;
    all.etag = etag_of(object);
    all.generation = generation_of(object);
    return object->address->write(object->self, &all, message, err);
}

static bool fits(const void *user, const presto__http_answer *answer) {
    return answer->code == 206 && is_same(user, answer);
}

static const presto__ahead_object ahead_object = {.write = write_range, .fits = fits};

presto_status presto__remote_open(const presto__remote_name *name, presto__object *object_out,
                                  presto__object_info *info_out, presto_error *err) {
    remote_object *object = calloc(1, sizeof *object);
    if (object == NULL)
        return presto_fail_memory(err, sizeof *object);
    object->address = name->address;
    object->path = strdup(name->path);
    presto_status status =
        object->path == NULL ? presto_fail_memory(err, strlen(name->path)) : look_at(object, err);
    if (status < 0) {
        presto_error_set_file(err, name->path);
        free_object(object);
        return status;
    }
    shrink_head(object);
    object->flights.type = &ahead_object;
    object->flights.object = object;
    *object_out = (presto__object){.kind = name->kind, .state = object};
    *info_out = object->info;
    return PRESTO_OK;
}

void presto__remote_will_open(const presto__remote_name *name) {
    presto__beginning_request(name, HEAD_BYTES);
}

void presto__remote_close(presto__object object) {
    free_object(object.state);
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

presto_status presto__remote_read(const presto__object_place *place, void *data, size_t bytes,
                                  size_t *got_out, presto_error *err) {
    remote_object *object = place->object.state;
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
        if (end > object->head_bytes) /* else nothing is requested of it */
            presto__flights_note(&object->flights, place->offset, place->offset + bytes);
        return PRESTO_OK;
    }
    for (size_t done = 0; done < bytes;) {
        size_t got = 0, gap = bytes - done;
        if (!place->object.is_again) {
            const presto__ahead_read wanted = {&object->flights, place->offset + done,
                                               (uint8_t *)data + done, bytes - done};
            PRESTO_TRY(presto__flights_read(&wanted, &got, &gap, err));
        }
        const presto__remote_wish wish = {.has_range = true,
                                          .first = place->offset + done,
                                          .last = place->offset + done + gap - 1,
                                          .etag = etag_of(object),
                                          .generation = generation_of(object)};
        if (got == 0 && read_range(object, &wish, (uint8_t *)data + done, &why) < 0)
            return fail_open(&why, err);
        done += got == 0 ? gap : got;
    }
    *got_out = bytes;
    return PRESTO_OK;
}

void presto__remote_will_read(presto__object object, uint64_t offset, uint64_t bytes,
                              uint64_t wanted) {
    remote_object *state = object.state;
    uint64_t size = state->info.bytes;
    if (offset >= size || size <= state->head_bytes)
        return;
    if (offset < state->head_bytes && bytes <= state->head_bytes - offset)
        return; /* they are there */
    const presto__ahead_wish wish = {.flights = &state->flights,
                                     .first = offset,
                                     .end = bytes < size - offset ? offset + bytes : size,
                                     .wanted = wanted};
    presto__flights_request(&wish);
}

presto_status presto__remote_look(presto__object object, const char *path,
                                  presto__object_info *info_out, presto_error *err) {
    (void)path, (void)err; /* each range was checked */
    *info_out = ((const remote_object *)object.state)->info;
    return PRESTO_OK;
}

const char *presto__remote_etag(presto__object object) {
    return ((const remote_object *)object.state)->etag;
}

const char *presto__remote_generation(presto__object object) {
    return ((const remote_object *)object.state)->generation;
}

int presto__remote_number(presto__object object) {
    return (int)(((uintptr_t)object.state >> 4) & INT32_MAX);
}

static bool is_dataset(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash != NULL && strcmp(slash + 1, DATASET) == 0;
}

/* What is said of one object, and its first byte: an answer without a body would not say why it is no
 * success. */
static presto_status find_one(const presto__remote_name *name, presto__object_info *info_out,
                              presto_error *err) {
    void *self = NULL;
    uint8_t byte;
    uint64_t bytes = 0;
    presto__http_answer answer;
    const presto__remote_wish wish = {.has_range = true, .first = 0, .last = 0};
    presto_status status;
    if (is_dataset(name->path) && name->kind->will_open != NULL) /* it will be opened next */
        presto__beginning_request(name, HEAD_BYTES);
    if (!presto__beginning_look(name->path, &answer, &status, err)) {
        PRESTO_TRY(status);
        PRESTO_TRY(name->address->make(name->path, &self, err));
        const remote_target to = {name->address, self, name->path, &byte, sizeof byte};
        status = ask(&to, &wish, &answer, err);
    }
    if (status == PRESTO_OK && answer.code == 404) {
        status = fail_answer(name->path, &wish, &answer, 1, err);
    } else if (status == PRESTO_OK) {
        if (answer.code == 200) /* a server without ranges: who opens it is told */
            bytes = answer.length;
        else if (answer.code == 416 && answer.content_range[0] == '\0')
            bytes = 0;
        else if (!size_of(&answer, &bytes))
            status = fail_ranges(name->path, err);
    }
    if (status == PRESTO_OK)
        *info_out = info_of(name->address, self, name->path, bytes, &answer);
    if (self != NULL)
        name->address->free(self);
    return status;
}

/* Four bytes, big-endian, in base64. False: it is something else, as the CRC of the parts' CRCs. */
bool presto__remote_crc(const char *text, uint32_t *crc_out) {
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint64_t bits = 0;
    if (strlen(text) != 8 || strcmp(text + 6, "==") != 0)
        return false;
    for (size_t i = 0; i < 6; i++) {
        const char *letter = strchr(letters, text[i]);
        if (letter == NULL)
            return false;
        bits = bits << 6 | (uint64_t)(letter - letters);
    }
    *crc_out = (uint32_t)(bits >> 4);
    return true;
}

presto_status presto__remote_checksum(const presto__remote_name *name,
                                      presto__object_checksum *checksum_out, presto_error *err) {
    void *self;
    presto__http_answer answer;
    const presto__remote_wish wish = {.is_checksum = true};
    PRESTO_TRY(name->address->make(name->path, &self, err));
    const remote_target to = {name->address, self, name->path, NULL, 0};
    presto_status status = ask(&to, &wish, &answer, err);
    name->address->free(self);
    PRESTO_TRY(status);
    presto__object_checksum checksum = {.bytes = answer.length};
    checksum.is_known =
        presto__remote_crc(answer.crc32c, &checksum.crc32c) &&
        (answer.checksum_type[0] == '\0' || strcmp(answer.checksum_type, "FULL_OBJECT") == 0);
    *checksum_out = checksum;
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
