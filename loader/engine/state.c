/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of a stream as a line of JSON: what is streamed, in which order, and the next position
 * of the global order. Orders depend only on source, seed and epoch, so nothing else is needed to
 * resume exactly. Positions count samples that were left out, too. As long as the samples are not
 * counted, `samples` is null, and `source` stands for the files alone.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <jansson.h>

#include "../../base/options_internal.h"
#include "workers_internal.h"

#define STATE_FORMAT 1

static const char *const shuffle_names[] = {
    [PRESTO_SHUFFLE_NONE] = "none",
    [PRESTO_SHUFFLE_BUFFER] = "buffer",
    [PRESTO_SHUFFLE_FULL] = "full",
    [PRESTO_SHUFFLE_BLOCKS] = "blocks",
};

/* Only these two shuffles depend on the window. */
static uint64_t window_of(const presto_loader_options *options) {
    return options->order.shuffle == PRESTO_SHUFFLE_BUFFER ||
                   options->order.shuffle == PRESTO_SHUFFLE_BLOCKS
               ? options->order.shuffle_window
               : 0;
}

static uint64_t digest_of(const presto_source *source, bool is_counted) {
    return is_counted ? presto__source_digest(source) : source->ops->walk->digest(source);
}

presto_status presto_loader_save_state(const presto_loader *loader, presto_buffer *json_out,
                                       presto_error *err) {
    const presto_loader_options *options = &loader->options;
    if (options->order.completion)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "a stream in order of completion has no position to come back to");
    uint64_t epoch = loader->state_epoch;
    uint64_t next = loader->state_next;
    if (next == presto__loader_whole_epoch(loader)) {
        epoch++;
        next = 0;
    }
    char text[512], samples[24];
    uint64_t count = presto_source_count(loader->source);
    bool is_counted = count != PRESTO_COUNT_UNKNOWN;
    snprintf(samples, sizeof samples, "%" PRIu64, count);
    int bytes =
        snprintf(text, sizeof text,
                 "{\"presto_state\": %d, \"source\": \"%016" PRIx64 "\", \"samples\": %s"
                 ", \"seed\": \"%" PRIu64 "\", \"shuffle\": \"%s\", \"window\": \"%" PRIu64
                 "\", \"epoch\": %" PRIu64 ", \"next\": %" PRIu64,
                 STATE_FORMAT, digest_of(loader->source, is_counted), is_counted ? samples : "null",
                 options->order.seed, shuffle_names[options->order.shuffle], window_of(options),
                 epoch, next * options->range.world);
    PRESTO_TRY(presto_buffer_append(json_out, presto_span_of(text, (size_t)bytes), err));
    PRESTO_TRY(presto__state_append_mix(loader, epoch, next * options->range.world, json_out, err));
    return presto_buffer_append(json_out, presto_span_of_text("}\n"), err);
}

typedef struct state {
    const char *source, *seed, *shuffle;
    char window[24];
    json_int_t format, epoch, next;
    bool is_counted;
    json_int_t samples; /* if it is */
} state;

static presto_status fail_other(const char *what, presto_error *err) {
    return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                       "the state belongs to a stream with another %s", what);
}

static presto_status check_state(const state *saved, const presto_source *source,
                                 const presto_loader_options *options, presto_error *err) {
    char digest[24], seed[24], window[24];
    const bool is_counted = saved->is_counted;
    if (is_counted)
        PRESTO_TRY(presto__source_settle(source, err));
    if (!is_counted && source->ops->walk == NULL)
        return fail_other("input", err);
    snprintf(digest, sizeof digest, "%016" PRIx64, digest_of(source, is_counted));
    snprintf(seed, sizeof seed, "%" PRIu64, options->order.seed);
    snprintf(window, sizeof window, "%" PRIu64, window_of(options));
    if ((is_counted && saved->samples != (json_int_t)presto_source_count(source)) ||
        strcmp(saved->source, digest) != 0)
        return fail_other("input", err);
    if (strcmp(saved->seed, seed) != 0)
        return fail_other("seed", err);
    if (strcmp(saved->shuffle, shuffle_names[options->order.shuffle]) != 0 ||
        strcmp(saved->window, window) != 0)
        return fail_other("shuffle", err);
    return PRESTO_OK;
}

static presto_status apply_state(const state *saved, const presto_source *source,
                                 presto_loader_options *options, presto_error *err) {
    uint64_t positions = presto__source_positions(source);
    uint64_t epoch = (uint64_t)saved->epoch;
    uint64_t next = (uint64_t)saved->next;
    /* The end of an epoch is saved as the start of the next one. */
    if (next > 0 && saved->is_counted && next >= positions)
        return presto_fail(err, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET,
                           "the state is at position %" PRIu64 " of an epoch of %" PRIu64, next,
                           positions);
    if (epoch < options->range.first_epoch)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "the state is in epoch %" PRIu64
                           ", before the first one to run, %" PRIu64,
                           epoch, options->range.first_epoch);
    if (next % options->range.world != 0)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "the state is at position %" PRIu64 " of its epoch, which %" PRIu64
                           " ranks cannot share: change their number between epochs, or to a "
                           "divisor",
                           next, options->range.world);
    uint64_t done = epoch - options->range.first_epoch;
    bool has_ended = done >= options->range.epochs;
    options->range.first_epoch = epoch;
    options->range.first_sample = next / options->range.world;
    if (has_ended)
        options->range.skip_samples = UINT64_MAX;
    else
        options->range.epochs -= done;
    return has_ended ? PRESTO_END : PRESTO_OK;
}

/* A text, as JSON's integers are too narrow. A number will do, too: some states have one. */
static bool parse_window(const json_t *window, state *saved) {
    if (json_is_integer(window))
        snprintf(saved->window, sizeof saved->window, "%" JSON_INTEGER_FORMAT,
                 json_integer_value(window));
    else if (json_is_string(window))
        snprintf(saved->window, sizeof saved->window, "%s", json_string_value(window));
    return json_is_integer(window) || json_is_string(window);
}

/* False: it is no state. */
static bool parse_state(json_t *root, state *saved) {
    json_t *samples = NULL, *window = NULL;
    if (json_unpack(root, "{s:I, s:s, s:o, s:s, s:s, s:o, s:I, s:I}", "presto_state",
                    &saved->format, "source", &saved->source, "samples", &samples, "seed",
                    &saved->seed, "shuffle", &saved->shuffle, "window", &window, "epoch",
                    &saved->epoch, "next", &saved->next) != 0)
        return false;
    saved->is_counted = json_is_integer(samples);
    saved->samples = json_integer_value(samples);
    return (saved->is_counted || json_is_null(samples)) && parse_window(window, saved) &&
           saved->format == STATE_FORMAT && saved->epoch >= 0 && saved->next >= 0;
}

presto_status presto_loader_load_state(presto_span json, const presto_source *source,
                                       presto_loader_options *options, presto_error *err) {
    state saved;
    json_error_t where;
    presto_loader_options taken;
    PRESTO_TRY(presto__loader_take_options(&taken, options, err));
    json_t *root = json_loadb((const char *)json.data, json.bytes, 0, &where);
    if (root == NULL)
        return presto_fail(err, PRESTO_ERR_CORRUPT,
                           where.position < 0 ? PRESTO_NO_OFFSET : (uint64_t)where.position,
                           "no state of a stream: %s", where.text);
    presto_status status = PRESTO_OK;
    if (!parse_state(root, &saved))
        status = presto_fail(err, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET,
                             "no state of a stream, or of another version");
    if (status == PRESTO_OK)
        status = presto__state_check_mix(root, source, &taken, err);
    if (status == PRESTO_OK)
        status = check_state(&saved, source, &taken, err);
    if (status == PRESTO_OK)
        status = apply_state(&saved, source, &taken, err);
    if (status >= 0)
        presto__options_give(options, options->struct_bytes, &taken, sizeof taken);
    json_decref(root);
    return status;
}
