/* SPDX-License-Identifier: Apache-2.0 */
/* Heads of frames, and the Examples that come back. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include <presto/numbers.h>
#include <presto/text.h>

#include "../../base/bytes_internal.h"
#include "../../base/tensor_internal.h"
#include "own_internal.h"

/* More than an Example can have. */
#define ABSURD_BYTES ((uint64_t)1 << 32)

void presto__own_error(presto_error *err, const char *format, ...) {
    char text[PRESTO_ERROR_MESSAGE_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    presto_error_set(err, PRESTO_ERR_IO, PRESTO_NO_OFFSET, "%s", text);
    if (err != NULL)
        err->sys_errno = EPROTO;
}

void presto__head_put(uint8_t *head, uint64_t bytes, uint64_t number) {
    presto__store_u64(head, bytes);
    presto__store_u64(head + 8, number);
}

presto_status presto__head_check(const uint8_t *head, uint64_t number, uint64_t most,
                                 uint64_t *bytes_out, presto_error *err) {
    uint64_t bytes = presto__load_u64(head), repeated = presto__load_u64(head + 8);
    char shown[5 * PRESTO__HEAD_BYTES + 1], text[PRESTO_TEXT_BYTES];
    if (bytes >= ABSURD_BYTES) {
        presto_text_show(presto_span_of(head, PRESTO__HEAD_BYTES), shown, sizeof shown);
        return presto__own_fail(err,
                                "its reply begins with \"%s\", which is no head of a frame: only "
                                "frames may go to stdout",
                                shown);
    }
    if (repeated != number)
        return presto__own_fail(err,
                                "its reply has the number %" PRIu64 ", the request had %" PRIu64,
                                repeated, number);
    if (bytes > most)
        return presto__own_fail(err, "its reply has %" PRIu64 " byte%s, max-reply is %s", bytes,
                                presto_plural(bytes), presto_format_size(most, text));
    *bytes_out = bytes;
    return PRESTO_OK;
}

static presto_status fail_parse(const presto_error *why, presto_error *err) {
    if (why->offset == PRESTO_NO_OFFSET)
        return presto__own_fail(err, "its reply is no tf.train.Example: %s", why->message);
    return presto__own_fail(err, "its reply is no tf.train.Example: %s (at byte %" PRIu64 ")",
                            why->message, why->offset);
}

/* The worker says that the sample is bad. */
static presto_status fail_bad(const presto_feature *error, presto_error *err) {
    const presto_tensor *text = &error->tensor;
    if (text->spec.dtype != PRESTO_STRING || text->spec.rank != 0)
        return presto__own_fail(err, "its reply's feature " PRESTO__ERROR_NAME " is not one text");
    size_t bytes = text->strings->bytes < 400 ? text->strings->bytes : 400;
    return presto_fail(err, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET, "bad sample: %.*s", (int)bytes,
                       bytes == 0 ? "" : (const char *)text->strings->data);
}

static presto_status check_feature(const presto__reply_form *form, const presto_feature *feature,
                                   presto_error *err) {
    char wanted[PRESTO_SPEC_TEXT_BYTES], got[PRESTO_SPEC_TEXT_BYTES];
    const presto_feature_spec *spec = NULL;
    for (size_t i = 0; i < form->count && spec == NULL; i++)
        if (presto_span_is(feature->name, form->specs[i].name))
            spec = &form->specs[i];
    if (spec == NULL)
        return presto__own_fail(err, "its reply has the feature \"%.*s\", which `sets` lacks",
                                (int)(feature->name.bytes < 64 ? feature->name.bytes : 64),
                                feature->name.bytes == 0 ? "" : (const char *)feature->name.data);
    if (feature->encoding != PRESTO_ENCODE_NONE &&
        presto__spec_could_fit(&feature->tensor.spec, &spec->spec))
        return PRESTO_OK;
    return presto__own_fail(err, "its reply's feature \"%s\" is %s, must be %s", spec->name,
                            feature->encoding == PRESTO_ENCODE_NONE
                                ? "empty"
                                : presto_spec_format(&feature->tensor.spec, got, sizeof got),
                            presto_spec_format(&spec->spec, wanted, sizeof wanted));
}

presto_status presto__reply_parse(const presto__reply_form *form, presto_span payload,
                                  presto_arena *arena, presto_sample *reply_out,
                                  presto_error *err) {
    presto_error inner;
    presto_sample reply;
    const presto_example_specs specs = {.list = form->specs, .count = form->count};
    presto_status status = presto_example_parse(payload, &specs, arena, &reply, &inner);
    if (status == PRESTO_ERR_MEMORY)
        return presto_fail_memory(err, payload.bytes);
    if (status < 0)
        return fail_parse(&inner, err);
    if (reply.feature_count == 0)
        return PRESTO_DROP;
    size_t error = presto__sample_find(&reply, presto_span_of_text(PRESTO__ERROR_NAME));
    if (error != SIZE_MAX && reply.feature_count > 1)
        return presto__own_fail(err, "its reply has the feature " PRESTO__ERROR_NAME
                                     ", which comes alone, and others");
    if (error != SIZE_MAX)
        return fail_bad(&reply.features[error], err);
    for (size_t i = 0; i < reply.feature_count; i++)
        PRESTO_TRY(check_feature(form, &reply.features[i], err));
    if (presto__sample_find(&reply, presto_span_of_text(PRESTO__VALUE_NAME)) == SIZE_MAX)
        return presto__own_fail(err, "its reply lacks the feature " PRESTO__VALUE_NAME);
    *reply_out = reply;
    return PRESTO_OK;
}
