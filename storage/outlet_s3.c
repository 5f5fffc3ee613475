/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An object of S3 that is written piece by piece: as an upload of several parts, or, if all fits into
 * one, in one request. It is there when the upload is complete, and not before.
 *
 * Several parts are under way at a time. The thread that writes begins them and, when it needs room
 * or the end, looks at what has come and sends again what failed; the thread of transfers only says
 * that a part is done. Each part has its CRC-32C in its request, the whole object in the last one, so
 * that a server which knows them refuses bytes that are others.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <presto/crc32c.h>

#include "../base/clock_internal.h"
#include "../base/stop_internal.h"
#include "../base/thread_internal.h"
#include "crypto_internal.h"
#include "curl_internal.h"
#include "s3_put_internal.h"

#define PART_BYTES ((size_t)8 << 20) /* S3 has no part of less than 5 MiB but the last one */
#define PARTS_EACH 1000              /* parts of one size; the next ones are twice as large */
#define MOST_PARTS 10000             /* S3's: 8 TiB */
#define UNDER_WAY_BYTES ((size_t)32 << 20)
#define SLOTS (UNDER_WAY_BYTES / PART_BYTES + 1) /* one of them is being filled */
#define FIRST_ROOM_BYTES ((size_t)1 << 20)
#define MOST_TRIES 10
#define MOST_LEARNED 2
#define ANSWER_BYTES ((size_t)64 << 10)
#define WAIT_NS UINT64_C(100000000) /* a stop is asked for so often */
#define ETAG_BYTES 136

typedef enum slot_state {
    SLOT_EMPTY, /* nothing, or being filled */
    SLOT_UNDER_WAY,
    SLOT_CAME, /* its answer is there */
} slot_state;

struct s3_outlet;

/* A part. The writer's, but while it is under way. */
typedef struct part_slot {
    struct s3_outlet *outlet; /* waits for its slots before it is freed */
    presto__http_call call;
    presto__message message; /* what the call has borrowed */
    uint8_t *data;
    size_t bytes, capacity;
    unsigned number; /* from 1 */
    uint32_t crc32c;
    unsigned tries, learned;
    char crc[PRESTO__S3_CRC_BYTES], number_text[16];
    slot_state state; /* guarded by the outlet's lock */
} part_slot;

typedef struct whole_part {
    uint32_t crc32c;
    char etag[ETAG_BYTES]; /* as it came */
} whole_part;

/* Of one thread, but for what the lock guards. */
typedef struct s3_outlet {
    presto__s3_target to;
    char *path;
    char upload_id[PRESTO__S3_UPLOAD_ID_BYTES]; /* "": not begun */
    bool has_checksums;                         /* the upload is one with CRC-32C */
    bool is_sealed;
    uint64_t bytes;    /* that have come */
    unsigned begun;    /* parts */
    whole_part *whole; /* part i + 1: [i] */
    size_t whole_capacity;
    part_slot *filling;
    unsigned generation; /* of the process that began the parts (fork) */
    pthread_mutex_t lock;
    pthread_cond_t came;
    part_slot slots[SLOTS];
} s3_outlet;

/* ---- slots ---- */

/* How large is part number `number`? */
static size_t bytes_of_part(unsigned number) {
    return PART_BYTES << ((number - 1) / PARTS_EACH);
}

/* A presto__http_call.done: by the thread of transfers. */
static void part_came(presto__http_call *call) {
    part_slot *slot = call->user;
    s3_outlet *outlet = slot->outlet;
    pthread_mutex_lock(&outlet->lock);
    slot->state = SLOT_CAME;
    pthread_cond_signal(&outlet->came);
    pthread_mutex_unlock(&outlet->lock);
}

static presto__remote_wish wish_of_part(const part_slot *slot, presto__named_value query[2],
                                        presto__named_value header[1]) {
    const s3_outlet *outlet = slot->outlet;
    query[0] = (presto__named_value){presto_span_of_text("partNumber"),
                                     presto_span_of_text(slot->number_text)};
    query[1] = (presto__named_value){presto_span_of_text("uploadId"),
                                     presto_span_of_text(outlet->upload_id)};
    header[0] = (presto__named_value){presto_span_of_text("x-amz-checksum-crc32c"),
                                      presto_span_of_text(slot->crc)};
    const presto__remote_wish wish = {.method = "PUT",
                                      .what = "a part of it",
                                      .body = presto_span_of(slot->data, slot->bytes),
                                      .query = query,
                                      .query_count = 2,
                                      .headers = header,
                                      .header_count = outlet->has_checksums,
                                      .has_customer_key = true};
    return wish;
}

/* Send it, or send it again, after a while. */
static presto_status begin_part(part_slot *slot, uint64_t delay_ns, presto_error *err) {
    s3_outlet *outlet = slot->outlet;
    presto__named_value query[2], header[1];
    const presto__remote_wish wish = wish_of_part(slot, query, header);
    presto__message_done(&slot->message);
    slot->message = (presto__message){.header_count = 0};
    PRESTO_TRY(presto__s3_address.write(outlet->to.self, &wish, &slot->message, err));
    slot->call = (presto__http_call){
        .request = presto__message_request(&slot->message), .done = part_came, .user = slot};
    slot->call.request.method = "PUT";
    slot->call.request.body = wish.body;
    slot->tries++;
    slot->state = SLOT_UNDER_WAY;
    presto_status status = presto__http_begin(&slot->call, delay_ns, err);
    if (status < 0)
        slot->state = SLOT_EMPTY;
    return status;
}

static presto_status keep_part(s3_outlet *outlet, const part_slot *slot, presto_error *err) {
    const presto__http_answer *answer = &slot->call.answer;
    if (answer->etag[0] == '\0') {
        presto_status status = presto_fail(err, PRESTO_ERR_IO, PRESTO_NO_OFFSET,
                                           "the server gives no ETag for a part that it has taken: "
                                           "an upload cannot be completed there");
        presto_error_set_file(err, outlet->path);
        return status;
    }
    whole_part *part = &outlet->whole[slot->number - 1];
    part->crc32c = slot->crc32c;
    memcpy(part->etag, answer->etag, sizeof part->etag);
    return PRESTO_OK;
}

/* Its answer is there: it is whole, or is sent again, or fails. */
static presto_status take_part(part_slot *slot, presto_error *err) {
    s3_outlet *outlet = slot->outlet;
    presto__http_answer *answer = &slot->call.answer;
    slot->state = SLOT_EMPTY;
    answer->keys = slot->message.keys;
    presto__s3_note_sent(1, slot->bytes);
    if (answer->failed == 0 && answer->code == 200) {
        presto__retry_note_success();
        slot->bytes = 0;
        return keep_part(outlet, slot, err);
    }
    presto__named_value query[2], header[1];
    const presto__remote_wish wish = wish_of_part(slot, query, header);
    bool is_newer =
        slot->learned < MOST_LEARNED && presto__s3_address.learn(outlet->to.self, answer);
    slot->learned += is_newer;
    bool may_pass = presto__answer_may_pass(answer) || presto__s3_came_changed(answer);
    if (!is_newer && (!may_pass || slot->tries >= MOST_TRIES || !presto__retry_allowed()))
        return presto__remote_fail(outlet->path, &wish, answer, slot->tries, err);
    presto__s3_note_retry();
    return begin_part(slot, is_newer ? 0 : presto__retry_wait_ns(slot->tries - 1), err);
}

/* How many are not done? What has come is looked at. */
static presto_status take_parts(s3_outlet *outlet, size_t *left_out, size_t *left_bytes_out,
                                presto_error *err) {
    *left_out = *left_bytes_out = 0;
    for (size_t i = 0; i < SLOTS; i++) {
        part_slot *slot = &outlet->slots[i];
        pthread_mutex_lock(&outlet->lock);
        slot_state state = slot->state;
        pthread_mutex_unlock(&outlet->lock);
        if (state == SLOT_CAME)
            PRESTO_TRY(take_part(slot, err));
        pthread_mutex_lock(&outlet->lock);
        bool is_left = slot->state != SLOT_EMPTY;
        pthread_mutex_unlock(&outlet->lock);
        *left_out += is_left;
        *left_bytes_out += is_left ? slot->bytes : 0;
    }
    return PRESTO_OK;
}

static bool has_come(const s3_outlet *outlet) {
    bool is_any = false;
    for (size_t i = 0; i < SLOTS; i++)
        is_any = is_any || outlet->slots[i].state == SLOT_CAME;
    return is_any;
}

/* Until one has come, or a while is over. */
static presto_status wait_for_part(s3_outlet *outlet, presto_error *err) {
    uint64_t until_ns = presto__clock_ns() + WAIT_NS;
    const struct timespec until = {.tv_sec = (time_t)(until_ns / 1000000000),
                                   .tv_nsec = (long)(until_ns % 1000000000)};
    int failed = 0;
    pthread_mutex_lock(&outlet->lock);
    while (!has_come(outlet) && failed == 0)
        failed = pthread_cond_timedwait(&outlet->came, &outlet->lock, &until);
    pthread_mutex_unlock(&outlet->lock);
    return presto__stop_check(err);
}

/* Until at most `most_bytes` are under way, and a slot is free; 0: until nothing is. */
static presto_status wait_for_room(s3_outlet *outlet, size_t most_bytes, presto_error *err) {
    for (;;) {
        size_t left, bytes;
        PRESTO_TRY(take_parts(outlet, &left, &bytes, err));
        if (left == 0 || (left < SLOTS && bytes <= most_bytes))
            return PRESTO_OK;
        PRESTO_TRY(wait_for_part(outlet, err));
    }
}

/* ---- the upload ---- */

static presto_status fail_words(const s3_outlet *outlet, const char *what,
                                const presto__s3_answer *answer, presto_error *err) {
    presto_status status =
        presto_fail(err, PRESTO_ERR_IO, PRESTO_NO_OFFSET, "%s: %s%s%s", what,
                    answer->code[0] == '\0' ? "its answer is no result" : answer->code,
                    answer->message[0] == '\0' ? "" : ": ", answer->message);
    presto_error_set_file(err, outlet->path);
    return status;
}

static presto_status begin_upload(s3_outlet *outlet, presto_error *err) {
    static const presto__named_value headers[] = {
        {{(const uint8_t *)"x-amz-checksum-algorithm", 24}, {(const uint8_t *)"CRC32C", 6}},
        {{(const uint8_t *)"x-amz-checksum-type", 19}, {(const uint8_t *)"FULL_OBJECT", 11}}};
    const presto__named_value query = {presto_span_of_text("uploads"), presto_span_of_text("")};
    uint8_t *body = malloc(ANSWER_BYTES);
    if (body == NULL)
        return presto_fail_memory(err, ANSWER_BYTES);
    presto_status status = PRESTO_OK;
    bool leaves_out = false;
    while (status == PRESTO_OK && outlet->upload_id[0] == '\0') {
        presto__http_answer answer;
        presto__s3_answer said;
        unsigned tries;
        outlet->has_checksums = !leaves_out && presto__s3_knows_checksums(outlet->path);
        const presto__remote_wish wish = {.method = "POST",
                                          .what = "the beginning of an upload",
                                          .body = presto_span_of("", 0),
                                          .query = &query,
                                          .query_count = 1,
                                          .headers = headers,
                                          .header_count = outlet->has_checksums ? 2 : 0,
                                          .has_customer_key = true};
        const presto__remote_target target = {&presto__s3_address, outlet->to.self, outlet->path,
                                              body, ANSWER_BYTES};
        status = presto__remote_send(&target, &wish, &answer, &tries, err);
        presto__s3_note_sent(tries, 0);
        if (tries > 1) /* one whose answer was lost may have begun */
            presto__s3_note_lost();
        if (status < 0)
            break;
        if (outlet->has_checksums && presto__s3_is_unknown_header(&answer)) {
            leaves_out = true; /* or it does not like something else: then it says so again */
            continue;
        }
        if (answer.failed != 0 || answer.code != 200) {
            status = presto__remote_fail(outlet->path, &wish, &answer, tries, err);
            break;
        }
        status = presto__s3_answer_parse(presto_span_of(body, answer.bytes), &said, err);
        if (status == PRESTO_OK && said.kind == PRESTO__S3_CREATED && said.upload_id[0] != '\0')
            memcpy(outlet->upload_id, said.upload_id, sizeof outlet->upload_id);
        else if (status == PRESTO_OK)
            status = fail_words(outlet, "an upload cannot be begun", &said, err);
        else
            status = presto_fail(err, PRESTO_ERR_IO, PRESTO_NO_OFFSET,
                                 "an upload cannot be begun: the answer cannot be read");
        if (status < 0)
            presto_error_set_file(err, outlet->path);
        else if (leaves_out)
            presto__s3_note_no_checksums(outlet->path);
    }
    free(body);
    return status;
}

static presto_status fail_parts(const s3_outlet *outlet, presto_error *err) {
    presto_status status =
        presto_fail(err, PRESTO_ERR_LIMIT, outlet->bytes,
                    "it needs more than the %d parts that an object can have", MOST_PARTS);
    presto_error_set_file(err, outlet->path);
    return status;
}

/* Hand over the part that is being filled. */
static presto_status submit(s3_outlet *outlet, presto_error *err) {
    part_slot *slot = outlet->filling;
    if (outlet->begun == MOST_PARTS)
        return fail_parts(outlet, err);
    if (outlet->upload_id[0] == '\0')
        PRESTO_TRY(begin_upload(outlet, err));
    if (outlet->begun == outlet->whole_capacity) {
        size_t capacity = outlet->whole_capacity * 2 + 16;
        whole_part *longer = realloc(outlet->whole, capacity * sizeof *longer);
        if (longer == NULL)
            return presto_fail_memory(err, capacity * sizeof *longer);
        outlet->whole = longer;
        outlet->whole_capacity = capacity;
    }
    slot->number = ++outlet->begun;
    snprintf(slot->number_text, sizeof slot->number_text, "%u", slot->number);
    slot->crc32c = presto_crc32c(0, slot->data, slot->bytes);
    presto__s3_crc_text(slot->crc32c, slot->crc);
    slot->tries = slot->learned = 0;
    outlet->filling = NULL;
    outlet->generation = presto__http_generation();
    return begin_part(slot, 0, err);
}

static presto_status find_slot(s3_outlet *outlet, presto_error *err) {
    size_t next = bytes_of_part(outlet->begun + 1);
    size_t most = next < UNDER_WAY_BYTES ? UNDER_WAY_BYTES - next : 0;
    if (outlet->filling != NULL)
        return PRESTO_OK;
    PRESTO_TRY(wait_for_room(outlet, most, err));
    pthread_mutex_lock(&outlet->lock);
    for (size_t i = 0; i < SLOTS && outlet->filling == NULL; i++)
        if (outlet->slots[i].state == SLOT_EMPTY)
            outlet->filling = &outlet->slots[i];
    pthread_mutex_unlock(&outlet->lock);
    outlet->filling->bytes = 0;
    return PRESTO_OK;
}

/* Room for one more byte at least, and for all of the part in the end. */
static presto_status grow(part_slot *slot, size_t part_bytes, size_t wanted, presto_error *err) {
    if (slot->bytes + wanted <= slot->capacity)
        return PRESTO_OK;
    size_t capacity = slot->capacity < FIRST_ROOM_BYTES ? FIRST_ROOM_BYTES : slot->capacity;
    while (capacity < slot->bytes + wanted)
        capacity *= 2;
    if (capacity > part_bytes)
        capacity = part_bytes;
    if (capacity <= slot->capacity)
        return PRESTO_OK;
    uint8_t *longer = realloc(slot->data, capacity);
    if (longer == NULL)
        return presto_fail_memory(err, capacity);
    slot->data = longer;
    slot->capacity = capacity;
    return PRESTO_OK;
}

static presto_status s3_append(void *user, presto_span bytes, presto_error *err) {
    s3_outlet *outlet = user;
    while (bytes.bytes > 0) {
        PRESTO_TRY(find_slot(outlet, err));
        part_slot *slot = outlet->filling;
        size_t whole = bytes_of_part(outlet->begun + 1), taken = whole - slot->bytes;
        if (taken > bytes.bytes)
            taken = bytes.bytes;
        PRESTO_TRY(grow(slot, whole, taken, err));
        memcpy(slot->data + slot->bytes, bytes.data, taken);
        slot->bytes += taken;
        outlet->bytes += taken;
        bytes.data += taken;
        bytes.bytes -= taken;
        /* The last part may be short, but must not be empty: so one is sent when there is more. */
        if (slot->bytes == whole)
            PRESTO_TRY(submit(outlet, err));
    }
    return PRESTO_OK;
}

/* ---- the end ---- */

static presto_status add_text(presto_buffer *out, const char *text, presto_error *err) {
    return presto_buffer_append(out, presto_span_of_text(text), err);
}

static presto_status add_escaped(presto_buffer *out, const char *text, presto_error *err) {
    for (; *text != '\0'; text++) {
        const char *as = *text == '"'   ? "&quot;"
                         : *text == '&' ? "&amp;"
                         : *text == '<' ? "&lt;"
                         : *text == '>' ? "&gt;"
                                        : NULL;
        if (as != NULL)
            PRESTO_TRY(add_text(out, as, err));
        else
            PRESTO_TRY(presto_buffer_append(out, presto_span_of(text, 1), err));
    }
    return PRESTO_OK;
}

static presto_status list_parts(const s3_outlet *outlet, presto_buffer *out, presto_error *err) {
    char text[64], crc[PRESTO__S3_CRC_BYTES];
    PRESTO_TRY(add_text(out,
                        "<CompleteMultipartUpload "
                        "xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">",
                        err));
    for (unsigned i = 0; i < outlet->begun; i++) {
        PRESTO_TRY(add_text(out, "<Part>", err));
        if (outlet->has_checksums) {
            presto__s3_crc_text(outlet->whole[i].crc32c, crc);
            snprintf(text, sizeof text, "<ChecksumCRC32C>%s</ChecksumCRC32C>", crc);
            PRESTO_TRY(add_text(out, text, err));
        }
        PRESTO_TRY(add_text(out, "<ETag>", err));
        PRESTO_TRY(add_escaped(out, outlet->whole[i].etag, err));
        snprintf(text, sizeof text, "</ETag><PartNumber>%u</PartNumber></Part>", i + 1);
        PRESTO_TRY(add_text(out, text, err));
    }
    return add_text(out, "</CompleteMultipartUpload>", err);
}

/* A digit of a number in hexadecimal; -1: it is none. */
static int digit_of(char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The ETag that S3 makes of the parts': the MD5 of their MD5s, and how many there are. "": theirs
 * are no MD5s. */
static presto_status etag_of_parts(const s3_outlet *outlet, char etag_out[64], presto_error *err) {
    presto_buffer sums = {0};
    uint8_t digest[PRESTO__MD5_BYTES];
    char text[PRESTO__MD5_HEX_BYTES];
    presto_status status = presto__crypto_load(err);
    bool is_md5 = true;
    etag_out[0] = '\0';
    for (unsigned i = 0; i < outlet->begun && status == PRESTO_OK && is_md5; i++) {
        const char *etag = outlet->whole[i].etag;
        is_md5 = strlen(etag) == 34;
        for (size_t at = 0; at < PRESTO__MD5_BYTES && is_md5; at++) {
            int high = digit_of(etag[1 + 2 * at]), low = digit_of(etag[2 + 2 * at]);
            is_md5 = high >= 0 && low >= 0;
            if (is_md5)
                digest[at] = (uint8_t)((unsigned)high << 4 | (unsigned)low);
        }
        if (is_md5)
            status = presto_buffer_append(&sums, presto_span_of(digest, sizeof digest), err);
    }
    if (status == PRESTO_OK && is_md5)
        status = presto__md5(presto_buffer_span(&sums), digest, err);
    presto_buffer_done(&sums);
    PRESTO_TRY(status);
    if (is_md5) {
        presto__md5_hex(digest, text);
        snprintf(etag_out, 64, "%s-%u", text, outlet->begun);
    }
    return PRESTO_OK;
}

/* Is the object there, as it was sent? */
static presto_status look_for_it(const s3_outlet *outlet, uint32_t crc32c, bool *stands_out,
                                 bool *is_checked_out, presto_error *err) {
    char etag[64];
    PRESTO_TRY(etag_of_parts(outlet, etag, err));
    const presto__s3_content content = {outlet->bytes, crc32c, etag};
    presto__s3_found found;
    PRESTO_TRY(presto__s3_stands(&outlet->to, &content, &found, err));
    *stands_out = found.stands;
    *is_checked_out = found.is_checked;
    return PRESTO_OK;
}

static presto_status fail_other(const s3_outlet *outlet, presto_error *err) {
    presto_status status =
        presto_fail(err, PRESTO_ERR_BUSY, PRESTO_NO_OFFSET,
                    "stands there already, with other bytes: somebody else writes there, too");
    presto_error_set_file(err, outlet->path);
    return status;
}

/* Does the server have a CRC of all bytes, and is it ours? */
static presto_status check_sum(const s3_outlet *outlet, const presto__s3_answer *said,
                               uint32_t crc32c, bool *is_checked_out, presto_error *err) {
    uint32_t theirs;
    bool is_whole =
        said->checksum_type[0] == '\0' ? false : strcmp(said->checksum_type, "FULL_OBJECT") == 0;
    *is_checked_out = is_whole && presto__remote_crc(said->crc32c, &theirs);
    if (!*is_checked_out || theirs == crc32c)
        return PRESTO_OK;
    presto_status status = presto_fail(err, PRESTO_ERR_IO, PRESTO_NO_OFFSET,
                                       "the server has made the CRC-32C %08" PRIx32
                                       " of it, and %08" PRIx32 " was sent",
                                       theirs, crc32c);
    presto_error_set_file(err, outlet->path);
    return status;
}

/* Before a request that would replace what stands there: nothing must, but what was sent. */
static presto_status look_before(const s3_outlet *outlet, uint32_t crc32c, bool *is_done_out,
                                 presto_error *err) {
    presto__version version;
    presto_error why;
    bool is_checked;
    presto_status status = presto__s3_version(outlet->path, &version, &why);
    if (status == PRESTO_ERR_NOT_FOUND)
        return PRESTO_OK;
    if (status < 0) {
        if (err != NULL)
            *err = why;
        return status;
    }
    PRESTO_TRY(look_for_it(outlet, crc32c, is_done_out, &is_checked, err));
    if (!*is_done_out)
        return fail_other(outlet, err);
    if (!is_checked)
        presto__s3_note_unchecked();
    return PRESTO_OK;
}

/* One request. *is_done_out: the object is there. PRESTO_OK and not done: again. */
static presto_status complete_once(s3_outlet *outlet, presto_span parts, uint32_t crc32c,
                                   bool *is_new_io, bool *is_done_out, presto_error *err) {
    char crc[PRESTO__S3_CRC_BYTES];
    presto__s3_crc_text(crc32c, crc);
    presto__named_value headers[3];
    size_t count = 0;
    if (outlet->has_checksums) {
        headers[count++] = (presto__named_value){presto_span_of_text("x-amz-checksum-crc32c"),
                                                 presto_span_of_text(crc)};
        headers[count++] = (presto__named_value){presto_span_of_text("x-amz-checksum-type"),
                                                 presto_span_of_text("FULL_OBJECT")};
    }
    if (*is_new_io)
        headers[count++] =
            (presto__named_value){presto_span_of_text("if-none-match"), presto_span_of_text("*")};
    const presto__named_value query = {presto_span_of_text("uploadId"),
                                       presto_span_of_text(outlet->upload_id)};
    const presto__remote_wish wish = {.method = "POST",
                                      .what = "the end of an upload",
                                      .body = parts,
                                      .query = &query,
                                      .query_count = 1,
                                      .headers = headers,
                                      .header_count = count,
                                      .has_customer_key = true};
    uint8_t *body = malloc(ANSWER_BYTES);
    if (body == NULL)
        return presto_fail_memory(err, ANSWER_BYTES);
    const presto__remote_target target = {&presto__s3_address, outlet->to.self, outlet->path, body,
                                          ANSWER_BYTES};
    presto__http_answer answer;
    presto__s3_answer said = {.kind = PRESTO__S3_OTHER};
    unsigned tries;
    bool is_checked = false;
    presto_status status = presto__remote_send(&target, &wish, &answer, &tries, err);
    presto__s3_note_sent(tries, 0);
    bool came = status == PRESTO_OK && answer.failed == 0;
    if (came && answer.code == 200 &&
        presto__s3_answer_parse(presto_span_of(body, answer.bytes), &said, NULL) < 0)
        said.kind = PRESTO__S3_OTHER;
    free(body);
    PRESTO_TRY(status);
    if (came && answer.code == 200 && said.kind == PRESTO__S3_COMPLETED) {
        *is_done_out = true;
        status = check_sum(outlet, &said, crc32c, &is_checked, err);
        if (status < 0) { /* it is ours, for none was there, and it is wrong */
            (void)presto__s3_remove(&outlet->to, NULL, NULL);
            return status;
        }
        if (!is_checked)
            presto__s3_note_unchecked();
        return PRESTO_OK;
    }
    if (came && answer.code == 501 && *is_new_io) {
        *is_new_io = false; /* what stands there is looked at before, instead */
        return PRESTO_OK;
    }
    /* It may have been done, and the answer was lost. */
    PRESTO_TRY(look_for_it(outlet, crc32c, is_done_out, &is_checked, err));
    if (*is_done_out) {
        if (!is_checked)
            presto__s3_note_unchecked();
        return presto__s3_remove(&outlet->to, outlet->upload_id, err); /* if it is there still */
    }
    if (came && answer.code == 412)
        return fail_other(outlet, err);
    bool is_again = came && (answer.code == 200 || answer.code == 409);
    return is_again ? PRESTO_OK : presto__remote_fail(outlet->path, &wish, &answer, tries, err);
}

static presto_status complete(s3_outlet *outlet, uint32_t crc32c, presto_error *err) {
    presto_buffer parts = {0};
    bool is_new = true, is_done = false;
    presto_status status = list_parts(outlet, &parts, err);
    for (unsigned i = 0; status == PRESTO_OK && !is_done && i < MOST_TRIES; i++) {
        if (i > 0)
            status = presto__remote_wait(i - 1, err);
        if (status == PRESTO_OK && !is_new)
            status = look_before(outlet, crc32c, &is_done, err);
        if (status == PRESTO_OK && !is_done)
            status =
                complete_once(outlet, presto_buffer_span(&parts), crc32c, &is_new, &is_done, err);
    }
    presto_buffer_done(&parts);
    if (status == PRESTO_OK && !is_done) {
        status = presto_fail(err, PRESTO_ERR_IO, PRESTO_NO_OFFSET,
                             "the server does not complete the upload, asked %d times", MOST_TRIES);
        presto_error_set_file(err, outlet->path);
    }
    return status;
}

/* All of it in one request. */
static presto_status put_at_once(s3_outlet *outlet, uint32_t crc32c, presto_error *err) {
    const presto__put_how how = {.condition = PRESTO__PUT_NEW};
    presto_span body = outlet->filling == NULL
                           ? presto_span_of("", 0)
                           : presto_span_of(outlet->filling->data, outlet->filling->bytes);
    presto_error why;
    presto_status status = presto__s3_put(&outlet->to, body, crc32c, &how, &why);
    if (status == PRESTO_ERR_BUSY) {
        presto__s3_found found;
        uint8_t digest[PRESTO__MD5_BYTES];
        char etag[PRESTO__MD5_HEX_BYTES];
        PRESTO_TRY(presto__crypto_load(err));
        PRESTO_TRY(presto__md5(body, digest, err));
        presto__md5_hex(digest, etag);
        const presto__s3_content content = {outlet->bytes, crc32c, etag};
        PRESTO_TRY(presto__s3_stands(&outlet->to, &content, &found, err));
        if (found.stands && !found.is_checked)
            presto__s3_note_unchecked();
        return found.stands ? PRESTO_OK : fail_other(outlet, err);
    }
    if (status < 0 && err != NULL)
        *err = why;
    if (status == PRESTO_OK && !presto__s3_knows_checksums(outlet->path))
        presto__s3_note_unchecked();
    return status;
}

static presto_status s3_seal(void *user, uint32_t crc32c, presto_error *err) {
    s3_outlet *outlet = user;
    if (outlet->upload_id[0] == '\0') {
        PRESTO_TRY(put_at_once(outlet, crc32c, err));
    } else {
        if (outlet->filling != NULL && outlet->filling->bytes > 0)
            PRESTO_TRY(submit(outlet, err));
        PRESTO_TRY(wait_for_room(outlet, 0, err));
        PRESTO_TRY(complete(outlet, crc32c, err));
    }
    outlet->is_sealed = true;
    return PRESTO_OK;
}

static presto_status s3_look(void *user, presto__object *object_out, presto_error *err) {
    const s3_outlet *outlet = user;
    presto__object_info info;
    return presto__object_open(outlet->path, object_out, &info, err);
}

static presto_status s3_finish(void *user, presto_error *err) {
    (void)user, (void)err;
    return PRESTO_OK;
}

/* ---- its life ---- */

/* What is under way is not wanted any more. In a child of fork, nobody would say that it is done. */
static void end_parts(s3_outlet *outlet) {
    if (outlet->begun == 0 || outlet->generation != presto__http_generation())
        return;
    for (size_t i = 0; i < SLOTS; i++) {
        part_slot *slot = &outlet->slots[i];
        pthread_mutex_lock(&outlet->lock);
        bool is_under_way = slot->state == SLOT_UNDER_WAY;
        pthread_mutex_unlock(&outlet->lock);
        if (is_under_way)
            presto__http_cancel(&slot->call);
        pthread_mutex_lock(&outlet->lock);
        while (slot->state == SLOT_UNDER_WAY)
            pthread_cond_wait(&outlet->came, &outlet->lock);
        pthread_mutex_unlock(&outlet->lock);
    }
}

static void s3_free(void *user) {
    s3_outlet *outlet = user;
    end_parts(outlet);
    /* It is removed, though the thread's pass may be one that was stopped. */
    presto__stop_scope before = presto__stop_bind((presto__stop_scope){NULL, false});
    if (outlet->upload_id[0] != '\0' && !outlet->is_sealed)
        (void)presto__s3_remove(&outlet->to, outlet->upload_id, NULL);
    (void)presto__stop_bind(before);
    for (size_t i = 0; i < SLOTS; i++) {
        presto__message_done(&outlet->slots[i].message);
        free(outlet->slots[i].data);
    }
    if (outlet->to.self != NULL)
        presto__s3_address.free(outlet->to.self);
    pthread_cond_destroy(&outlet->came);
    pthread_mutex_destroy(&outlet->lock);
    free(outlet->whole);
    free(outlet->path);
    free(outlet);
}

static int make_locks(s3_outlet *outlet) {
    int failed = presto__timed_condition_init(&outlet->came);
    if (failed != 0)
        return failed;
    failed = pthread_mutex_init(&outlet->lock, NULL);
    if (failed != 0)
        pthread_cond_destroy(&outlet->came);
    return failed;
}

static presto_status s3_open(const char *path, bool sync, void **state_out, presto_error *err) {
    s3_outlet *outlet = calloc(1, sizeof *outlet);
    (void)sync; /* what is there is stored */
    if (outlet == NULL)
        return presto_fail_memory(err, sizeof *outlet);
    int failed = make_locks(outlet);
    if (failed != 0) {
        free(outlet);
        return presto_fail_errno(err, failed, NULL, "cannot make a lock");
    }
    for (size_t i = 0; i < SLOTS; i++)
        outlet->slots[i].outlet = outlet;
    outlet->path = strdup(path);
    presto_status status = outlet->path == NULL
                               ? presto_fail_memory(err, strlen(path))
                               : presto__s3_address.make(path, &outlet->to.self, err);
    if (status < 0) {
        s3_free(outlet);
        return status;
    }
    outlet->to.path = outlet->path;
    *state_out = outlet;
    return PRESTO_OK;
}

const presto__outlet_kind presto__outlet_s3 = {
    .open = s3_open,
    .append = s3_append,
    .seal = s3_seal,
    .look = s3_look,
    .finish = s3_finish,
    .free = s3_free,
    .put = presto__s3_put_pieces,
    .remove = presto__s3_remove_at,
    .rename = presto__s3_rename,
    .version = presto__s3_version,
    .version_of = presto__s3_version_of,
    .list_uploads = presto__s3_list_uploads,
    .abort_upload = presto__s3_abort_upload,
};
