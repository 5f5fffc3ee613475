/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several streams as one: each input is opened by itself; what they hold and the steps that remain
 * must be alike. The mix has the pipeline and the plans of the first one, and owns all of them.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <presto/numbers.h>

#include "../../base/options_internal.h"
#include "../../base/stop_internal.h"
#include "../../records/dataset/dataset_internal.h"
#include "../../steps/pipelines_internal.h"
#include "../engine/engine_internal.h"
#include "../loader_internal.h"
#include "../source/mix/mix_internal.h"
#include "input_internal.h"

#define STEPS_TEXT_BYTES 96

/* The streams of the inputs. */
typedef struct streams {
    presto_stream *items;
    size_t count;
} streams;

void presto_mix_options_init(presto_mix_options *options, size_t struct_bytes) {
    const presto_mix_options defaults = {.epoch = PRESTO_MIX_LONGEST};
    presto__options_give(options, struct_bytes, &defaults, sizeof defaults);
}

static void free_streams(void *owned) {
    streams *inputs = owned;
    for (size_t i = 0; i < inputs->count; i++)
        presto_stream_close(&inputs->items[i]);
    free(inputs->items);
    free(inputs);
}

static presto_status open_inputs(const presto_mix_options *options, streams *inputs,
                                 presto_error *err) {
    size_t count = options->input_count;
    if (count == 0 || count > PRESTO_MIX_MOST_INPUTS)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "a mix has 1 to %d inputs, not %zu", PRESTO_MIX_MOST_INPUTS, count);
    inputs->items = calloc(count, sizeof *inputs->items);
    if (inputs->items == NULL)
        return presto_fail_memory(err, count * sizeof *inputs->items);
    for (; inputs->count < count; inputs->count++) {
        presto_stream *input = &inputs->items[inputs->count];
        PRESTO_TRY(presto_stream_open(&options->inputs[inputs->count].path, 1, options->stream,
                                      input, err));
        if (input->dataset != NULL)
            presto__dataset_share(input->dataset, count);
    }
    return PRESTO_OK;
}

/* ---- the steps that remain ---- */

static presto_status steps_text(const presto_plan *plan, presto_buffer *text, presto_error *err) {
    return plan == NULL ? PRESTO_OK : presto__plan_json(plan, text, err);
}

/* Of both plans; the cut between them is where the first random step is, so it is the same. */
static presto_status steps_of(const presto_stream *stream, presto_buffer *text, presto_error *err) {
    PRESTO_TRY(steps_text(stream->cache_plan, text, err));
    return steps_text(stream->plan, text, err);
}

static bool has_steps(const presto_stream *stream) {
    return (stream->plan != NULL && presto_plan_step_count(stream->plan) > 0) ||
           (stream->cache_plan != NULL && presto_plan_step_count(stream->cache_plan) > 0);
}

/* "decode-image, random-crop", or "none". */
static void list_steps(const presto_stream *stream, char text[STEPS_TEXT_BYTES]) {
    const presto_plan *plans[] = {stream->cache_plan, stream->plan};
    size_t used = (size_t)snprintf(text, STEPS_TEXT_BYTES, "%s", has_steps(stream) ? "" : "none");
    for (size_t p = 0; p < 2; p++)
        for (size_t i = 0; plans[p] != NULL && i < presto_plan_step_count(plans[p]); i++)
            if (used < STEPS_TEXT_BYTES)
                used += (size_t)snprintf(text + used, STEPS_TEXT_BYTES - used, "%s%s",
                                         used > 0 ? ", " : "", presto__plan_step_name(plans[p], i));
}

static presto_status fail_steps(const presto_mix_options *options, const streams *inputs, size_t i,
                                presto_error *err) {
    char first[STEPS_TEXT_BYTES], other[STEPS_TEXT_BYTES];
    list_steps(&inputs->items[0], first);
    list_steps(&inputs->items[i], other);
    if (strcmp(first, other) == 0)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "cannot be mixed: the steps that remain for %s and %s (%s) have "
                           "different options",
                           options->inputs[0].path, options->inputs[i].path, first);
    return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                       "cannot be mixed: the steps that remain for %s are: %s; for %s: %s",
                       options->inputs[0].path, first, options->inputs[i].path, other);
}

static presto_status check_steps(const presto_mix_options *options, const streams *inputs,
                                 presto_error *err) {
    presto_buffer first = {0}, other = {0};
    presto_status status = steps_of(&inputs->items[0], &first, err);
    for (size_t i = 1; status == PRESTO_OK && i < inputs->count; i++) {
        other.bytes = 0;
        status = steps_of(&inputs->items[i], &other, err);
        bool same = presto_span_equal(presto_buffer_span(&first), presto_buffer_span(&other)) ||
                    (!has_steps(&inputs->items[0]) && !has_steps(&inputs->items[i]));
        if (status == PRESTO_OK && !same)
            status = fail_steps(options, inputs, i, err);
    }
    presto_buffer_done(&first);
    presto_buffer_done(&other);
    return status;
}

/* The plan of the first input is for what that one holds; the others may differ in dimensions. */
static presto_status plan_for_all(const presto_mix_options *options, presto_stream *first,
                                  const presto_source *mix, presto_error *err) {
    presto_tensor_spec of_first = presto__source_main_spec(first->source);
    presto_tensor_spec of_all = presto__source_main_spec(mix);
    if (!has_steps(first) || presto_spec_equal(&of_first, &of_all))
        return PRESTO_OK;
    presto_loader_options loader;
    presto_stream_options stream;
    presto_stream_options_defaults(&stream);
    PRESTO_TRY(presto__options_take(&stream, sizeof stream, options->stream, err));
    PRESTO_TRY(presto__loader_take_options(&loader, stream.loader, err));
    stream.loader = &loader;
    return presto__stream_plan_again(first, &stream, &of_all, err);
}

/* ---- the mix ---- */

static presto_status note_part(presto_source *mix, size_t k, uint64_t epoch, presto_error *err) {
    const presto_source_part *part = &mix->parts[k];
    char text[512], count[3][PRESTO_TEXT_BYTES];
    snprintf(text, sizeof text, "mix: of %s in an epoch, %s from %.256s (%.4g of its %s)",
             presto_format_things(epoch, "sample", count[0]),
             presto_format_count(part->epoch_samples, count[1]), part->name,
             (double)part->epoch_samples / (double)part->samples,
             presto_format_count(part->samples, count[2]));
    return presto__source_note_of(mix, PRESTO_NOTE_CONFIRM, text, err);
}

/* What input k has to say; of several, each note of a part of its samples needs its name. */
static presto_status note_input(presto_source *mix, const presto_source *input, size_t k,
                                presto_error *err) {
    size_t count;
    const char *const *notes = presto_source_notes(input, &count);
    for (size_t i = 0; i < count; i++) {
        char text[512];
        snprintf(text, sizeof text, "%.256s: %s", mix->parts[k].name, notes[i]);
        PRESTO_TRY(presto__source_note_of(mix, presto_source_note_kind(input, i),
                                          mix->subset != NULL && i + 1 == count ? text : notes[i],
                                          err));
    }
    return PRESTO_OK;
}

static presto_status note_all(presto_source *mix, const streams *inputs, presto_error *err) {
    uint64_t epoch = 0;
    for (size_t k = 0; k < mix->part_count; k++)
        epoch += mix->parts[k].epoch_samples;
    for (size_t k = 0; k < mix->part_count; k++) {
        PRESTO_TRY(note_input(mix, inputs->items[k].source, k, err));
        PRESTO_TRY(note_part(mix, k, epoch, err));
    }
    return PRESTO_OK;
}

static presto_status make_source(const presto_mix_options *options, const streams *inputs,
                                 presto_source **source_out, presto_error *err) {
    presto__mixed_source items[PRESTO_MIX_MOST_INPUTS];
    presto__mix_request request = {
        .inputs = items, .count = inputs->count, .epoch = options->epoch};
    presto_loader_options loader;
    presto_stream_options stream;
    presto_stream_options_defaults(&stream);
    PRESTO_TRY(presto__options_take(&stream, sizeof stream, options->stream, err));
    PRESTO_TRY(presto__loader_take_options(&loader, stream.loader, err));
    request.features = loader.features;
    request.feature_count = loader.feature_count;
    for (size_t k = 0; k < inputs->count; k++)
        items[k] = (presto__mixed_source){.source = inputs->items[k].source,
                                          .name = options->inputs[k].path,
                                          .weight = options->inputs[k].weight};
    return presto__source_mix(&request, source_out, err);
}

/* On success the source owns the inputs. */
static presto_status mix_inputs(const presto_mix_options *options, streams *inputs,
                                presto_stream *stream_out, presto_error *err) {
    presto_source *source;
    PRESTO_TRY(open_inputs(options, inputs, err));
    PRESTO_TRY(check_steps(options, inputs, err));
    PRESTO_TRY(make_source(options, inputs, &source, err));
    presto_stream *first = &inputs->items[0];
    presto_status status = plan_for_all(options, first, source, err);
    if (status == PRESTO_OK)
        status = note_all(source, inputs, err);
    if (status < 0) {
        presto__source_free(source);
        return status;
    }
    presto__source_mix_own(source, inputs, free_streams);
    stream_out->source = source;
    stream_out->pipeline = first->pipeline;
    stream_out->plan = first->plan;
    stream_out->cache_plan = first->cache_plan;
    first->pipeline = NULL;
    first->plan = NULL;
    first->cache_plan = NULL;
    return PRESTO_OK;
}

presto_status presto_stream_open_mix_sized(const presto_mix_options *options,
                                           presto_stream *stream_out, presto_error *err) {
    presto_mix_options taken;
    presto_stream stream = {0};
    presto_mix_options_defaults(&taken);
    PRESTO_TRY(presto__options_take(&taken, sizeof taken, options, err));
    PRESTO_TRY(presto__result_check(stream_out, err));
    for (size_t i = 0; i < taken.input_count; i++)
        PRESTO__CHECK_ROOM(&taken.inputs[i], err);
    presto_loader_options loader;
    presto_stream_options options_of_all;
    presto_stream_options_defaults(&options_of_all);
    PRESTO_TRY(presto__options_take(&options_of_all, sizeof options_of_all, taken.stream, err));
    PRESTO_TRY(presto__loader_take_options(&loader, options_of_all.loader, err));
    streams *inputs = calloc(1, sizeof *inputs);
    if (inputs == NULL)
        return presto_fail_memory(err, sizeof *inputs);
    presto__stop_hook pass;
    presto__stop_scope before =
        presto__stop_enter(&pass, loader.should_stop, loader.should_stop_user);
    presto_status status = mix_inputs(&taken, inputs, &stream, err);
    status = presto__stop_leave(&pass, before, status, err);
    if (stream.source == NULL)
        free_streams(inputs); /* else they are the source's */
    if (status < 0) {
        presto_stream_close(&stream);
        return status;
    }
    presto__result_move(stream_out, &stream, sizeof stream);
    presto_stream_close(&stream); /* what the program's struct has no field for */
    return PRESTO_OK;
}
