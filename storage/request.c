/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request as texts, what its answer means, and when it is sent again.
 *
 * A request that failed in a way that may pass is sent again, after a wait that is drawn at random
 * below a bound which doubles ("full jitter"), so that many clients do not come back at once. All
 * threads share a budget of retries, which successes fill: a server that fails for long is not
 * asked many times as often as one that works.
 */
#include "remote_internal.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "../base/file_internal.h"
#include "credentials/credentials_internal.h"
#include "curl_internal.h"

#define FIRST_WAIT_NS UINT64_C(50000000) /* the bound of the first wait */
#define MOST_WAIT_NS UINT64_C(10000000000)
#define BUDGET 1000    /* retries, if nothing succeeds */
#define REFILL_EVERY 2 /* successes are worth a retry */

/* ---- messages ---- */

static presto_status add_piece(presto_buffer *out, const char *text, presto_error *err) {
    return presto_buffer_append(out, presto_span_of_text(text), err);
}

void presto__message_done(presto__message *message) {
    presto__forget_buffer(&message->text);
}

presto_status presto__message_add(presto__message *message, const char *name, presto_span value,
                                  presto_error *err) {
    for (size_t i = 0; i < value.bytes; i++) /* it would be a line of its own */
        if (value.data[i] == '\r' || value.data[i] == '\n' || value.data[i] == '\0')
            return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                               "the header %s would have a line's end in its value: look at what "
                               "the keys and their token are set to",
                               name);
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

presto__http_request presto__message_request(const presto__message *message) {
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

void presto__retry_note_success(void) {
    if (atomic_load_explicit(&budget, memory_order_relaxed) < BUDGET * REFILL_EVERY)
        atomic_fetch_add_explicit(&budget, 1, memory_order_relaxed);
}

bool presto__retry_allowed(void) {
    if (atomic_fetch_sub_explicit(&budget, REFILL_EVERY, memory_order_relaxed) >= REFILL_EVERY)
        return true;
    atomic_fetch_add_explicit(&budget, REFILL_EVERY, memory_order_relaxed);
    return false;
}

uint64_t presto__retry_wait_ns(unsigned tries) {
    uint64_t bound_ns = FIRST_WAIT_NS << (tries < 10 ? tries : 10);
    if (bound_ns > MOST_WAIT_NS)
        bound_ns = MOST_WAIT_NS;
    return presto__random_name() % bound_ns;
}

bool presto__answer_may_pass(const presto__http_answer *answer) {
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

bool presto__answer_is_range(const presto__remote_wish *wish, const presto__http_answer *answer) {
    uint64_t first, last;
    if (answer->failed != 0 || answer->is_longer || answer->code != 206)
        return false;
    return sscanf(answer->content_range, "bytes %" SCNu64 "-%" SCNu64, &first, &last) == 2 &&
           first == wish->first && last >= first && last - first + 1 == answer->bytes;
}
