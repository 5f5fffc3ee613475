/* SPDX-License-Identifier: Apache-2.0 */
/* Steps as users write them: texts, models, outputs of unknown length, serial ones, cancelling. */
#ifndef OWN_STEPS_H
#define OWN_STEPS_H

#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "../../../steps/pipelines_internal.h"
#include "steps_check.h"

/* ---- the steps ---- */

static inline presto_status infer_any(const void *state, const presto_tensor_spec *in,
                                      presto_tensor_spec *out_out, presto_error *err) {
    (void)state, (void)in, (void)err;
    *out_out = (presto_tensor_spec){.dtype = PRESTO_DTYPE_UNKNOWN, .rank = -1};
    return PRESTO_OK;
}

/* "split-words": a text -> as many numbers as it has words, their lengths. */
static inline presto_status split_words(const void *state, presto_step_context *context,
                                        const presto_tensor *in, presto_tensor *out_out,
                                        presto_error *err) {
    (void)state;
    presto_buffer *lengths = presto_step_buffer(context);
    presto_span text = in->strings[0];
    int32_t length = 0;
    for (size_t i = 0; i <= text.bytes; i++) {
        if (i < text.bytes && text.data[i] != ' ') {
            length++;
            continue;
        }
        if (length > 0)
            PRESTO_TRY(presto_buffer_append(lengths, presto_span_of(&length, sizeof length), err));
        length = 0;
    }
    out_out->spec =
        (presto_tensor_spec){PRESTO_INT32, 1, {(int64_t)(lengths->bytes / sizeof length)}};
    out_out->data = lengths->data;
    return PRESTO_OK;
}

static const presto_step_type step_split = {.abi = PRESTO_STEP_ABI,
                                            .name = "split-words",
                                            .summary = "Lengths of words.",
                                            .infer = infer_any,
                                            .run = split_words};

/* "first-word": a text -> its first word; texts without one are dropped. Sets "rest". */
static inline presto_status first_word(const void *state, presto_step_context *context,
                                       const presto_tensor *in, presto_tensor *out_out,
                                       presto_error *err) {
    (void)state;
    presto_span text = in->strings[0];
    size_t end = 0;
    while (end < text.bytes && text.data[end] != ' ')
        end++;
    if (end == 0)
        return PRESTO_DROP;
    presto_tensor rest;
    PRESTO_TRY(
        presto_step_text(context, presto_span_of(text.data + end, text.bytes - end), &rest, err));
    PRESTO_TRY(presto_step_set_feature(context, "rest", &rest, err));
    return presto_step_text(context, presto_span_of(text.data, end), out_out, err);
}

static const presto_step_type step_first = {.abi = PRESTO_STEP_ABI,
                                            .name = "first-word",
                                            .summary = "The first word.",
                                            .flags = PRESTO_STEP_DROPS | PRESTO_STEP_SETS_FEATURES,
                                            .infer = infer_any,
                                            .run = first_word};

/* "scale": multiplies by what its table file says; counts how often it was loaded. */
static atomic_int loads, unloads, creates;
enum { SCALE_TABLE, SCALE_FACTOR, SCALE_OPTION_COUNT };
static const presto_option_type scale_options[] = {
    [SCALE_TABLE] = {.name = "table", .kind = PRESTO_OPTION_FILE, .help = "a file"},
    [SCALE_FACTOR] = {.name = "factor",
                      .kind = PRESTO_OPTION_INT,
                      .default_text = "2",
                      .minimum = 1,
                      .maximum = 100,
                      .help = "a factor"},
};
typedef struct scale_state {
    int64_t factor;
    char table[512];
} scale_state;

static inline presto_status create_scale(const presto_option *options, void **state_out,
                                         presto_error *err) {
    scale_state *state = calloc(1, sizeof *state);
    if (state == NULL)
        return presto_fail_memory(err, sizeof *state);
    creates++;
    state->factor = options[SCALE_FACTOR].integer;
    if (options[SCALE_TABLE].is_set)
        snprintf(state->table, sizeof state->table, "%s", options[SCALE_TABLE].text);
    *state_out = state;
    return PRESTO_OK;
}

static inline presto_status load_scale(const void *state, presto_tensor_spec *out_io,
                                       void **model_out, presto_error *err) {
    const scale_state *scale = state;
    if (strcmp(scale->table, "/missing") == 0)
        return presto_fail_errno(err, ENOENT, scale->table, "cannot open");
    int64_t *factor = malloc(sizeof *factor);
    if (factor == NULL)
        return presto_fail_memory(err, sizeof *factor);
    loads++;
    *factor = scale->factor;
    *out_io = (presto_tensor_spec){PRESTO_INT64, 1, {3}};
    *model_out = factor;
    return PRESTO_OK;
}

static inline void unload_scale(void *model) {
    unloads++;
    free(model);
}

static atomic_int inside, most_inside;

static inline presto_status run_scale(const void *state, presto_step_context *context,
                                      const presto_tensor *in, presto_tensor *out_out,
                                      presto_error *err) {
    (void)state;
    int now = atomic_fetch_add(&inside, 1) + 1;
    if (now > atomic_load(&most_inside))
        atomic_store(&most_inside, now);
    int64_t factor = *(const int64_t *)presto_step_model(context);
    void *data;
    PRESTO_TRY(presto_step_output(context, &in->spec, &data, err));
    int64_t *out = data;
    for (uint64_t i = 0; i < presto_spec_elements(&in->spec); i++)
        out[i] = factor * ((const int64_t *)in->data)[i];
    *out_out = (presto_tensor){.spec = in->spec, .data = data};
    atomic_fetch_sub(&inside, 1);
    return PRESTO_OK;
}

static const presto_step_type step_scale = {.abi = PRESTO_STEP_ABI,
                                            .name = "scale",
                                            .summary = "A multiple.",
                                            .flags = PRESTO_STEP_SERIAL,
                                            .options = scale_options,
                                            .option_count = SCALE_OPTION_COUNT,
                                            .create = create_scale,
                                            .destroy = free,
                                            .infer = infer_any,
                                            .load = load_scale,
                                            .unload = unload_scale,
                                            .run = run_scale};

/* "wait": until it is cancelled. */
static atomic_int waiting;

static inline presto_status open_wait(const void *state, const void *model, void **worker_out,
                                      presto_error *err) {
    (void)state, (void)model;
    int *pipes = malloc(2 * sizeof *pipes);
    if (pipes == NULL || pipe(pipes) != 0) {
        free(pipes);
        return presto_fail_memory(err, sizeof *pipes);
    }
    *worker_out = pipes;
    return PRESTO_OK;
}

static inline void close_wait(void *worker) {
    int *pipes = worker;
    close(pipes[0]);
    close(pipes[1]);
    free(pipes);
}

static inline void cancel_wait(void *worker) {
    ssize_t written = write(((int *)worker)[1], "x", 1);
    (void)written;
}

static inline presto_status run_wait(const void *state, presto_step_context *context,
                                     const presto_tensor *in, presto_tensor *out_out,
                                     presto_error *err) {
    (void)state, (void)in, (void)out_out;
    const int *pipes = presto_step_worker(context);
    char byte;
    waiting = 1;
    while (!presto_step_is_cancelled(context))
        if (read(pipes[0], &byte, 1) < 0)
            break;
    return presto_fail(err, PRESTO_ERR_STOPPED, PRESTO_NO_OFFSET, "cancelled");
}

static const presto_step_type step_wait = {.abi = PRESTO_STEP_ABI,
                                           .name = "wait",
                                           .summary = "Waits.",
                                           .infer = infer_any,
                                           .open_worker = open_wait,
                                           .close_worker = close_wait,
                                           .cancel = cancel_wait,
                                           .run = run_wait};

static const presto_step_type *const own[] = {&step_split, &step_first, &step_scale, &step_wait};

/* ---- running them ---- */

static inline presto_status parse_set(const char *steps, const char *const *set, size_t set_count,
                                      presto_pipeline **out, presto_error *err) {
    char yaml[512];
    snprintf(yaml, sizeof yaml, "name: t\nsource: {type: files}\nsteps:\n  - {step: read-file}\n%s",
             steps);
    presto_pipeline_options options = {.struct_bytes = sizeof options,
                                       .set = set,
                                       .set_count = set_count,
                                       .steps = own,
                                       .step_count = sizeof own / sizeof own[0]};
    return presto__pipeline_parse(presto_span_of_text(yaml), "/some/folder/t.yaml", &options, out,
                                  err);
}

#endif
