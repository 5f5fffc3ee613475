/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The step interface as a user's own steps see it: features by name, models, outputs of unknown
 * length, dropped samples, serial steps, cancelling; and --set, which changes any step's options.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "steps_check.h"

/* ---- the steps ---- */

static presto_status infer_any(const void *state, const presto_tensor_spec *in,
                               presto_tensor_spec *out_out, presto_error *err) {
    (void)state, (void)in, (void)err;
    *out_out = (presto_tensor_spec){.dtype = PRESTO_DTYPE_UNKNOWN, .rank = -1};
    return PRESTO_OK;
}

/* "split-words": a text -> as many numbers as it has words, their lengths. */
static presto_status split_words(const void *state, presto_step_context *context,
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
static presto_status first_word(const void *state, presto_step_context *context,
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

static presto_status create_scale(const presto_option *options, void **state_out,
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

static presto_status load_scale(const void *state, presto_tensor_spec *out_io, void **model_out,
                                presto_error *err) {
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

static void unload_scale(void *model) {
    unloads++;
    free(model);
}

static atomic_int inside, most_inside;

static presto_status run_scale(const void *state, presto_step_context *context,
                               const presto_tensor *in, presto_tensor *out_out, presto_error *err) {
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

static presto_status open_wait(const void *state, const void *model, void **worker_out,
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

static void close_wait(void *worker) {
    int *pipes = worker;
    close(pipes[0]);
    close(pipes[1]);
    free(pipes);
}

static void cancel_wait(void *worker) {
    ssize_t written = write(((int *)worker)[1], "x", 1);
    (void)written;
}

static presto_status run_wait(const void *state, presto_step_context *context,
                              const presto_tensor *in, presto_tensor *out_out, presto_error *err) {
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

static presto_status parse_set(const char *steps, const char *const *set, size_t set_count,
                               presto_pipeline **out, presto_error *err) {
    char yaml[512];
    snprintf(yaml, sizeof yaml, "name: t\nsource: {type: files}\nsteps:\n  - {step: read-file}\n%s",
             steps);
    presto_pipeline_options options = {.struct_bytes = sizeof options,
                                       .set = set,
                                       .set_count = set_count,
                                       .steps = own,
                                       .step_count = sizeof own / sizeof own[0]};
    return presto_pipeline_parse(presto_span_of_text(yaml), "/some/folder/t.yaml", &options, out,
                                 err);
}

static void open_own(rig *r, const char *steps) {
    presto_error err;
    *r = (rig){0};
    ck_assert_ok(parse_set(steps, NULL, 0, &r->pipeline, &err), &err);
    ck_assert_ok(plan_of(r->pipeline, 1, presto_pipeline_step_count(r->pipeline), &string_spec,
                         &r->plan, &err),
                 &err);
    presto_plan_worker_options worker = {.struct_bytes = sizeof worker, .arena = &r->arena};
    ck_assert_ok(presto_plan_worker_new(r->plan, &worker, &r->worker, &err), &err);
}

typedef struct words {
    presto_span main, note;
    int64_t numbers[3];
    presto_feature features[3];
    presto_sample sample;
} words;

/* A sample of "main", "note" (texts) and "numbers"; the main one is the second. */
static void make_words(words *w, const char *main_text, const char *note) {
    *w = (words){.main = presto_span_of_text(main_text),
                 .note = presto_span_of_text(note),
                 .numbers = {1, 2, 3}};
    w->features[0] = (presto_feature){.name = presto_span_of_text("note"),
                                      .tensor = {.spec = string_spec, .strings = &w->note}};
    w->features[1] = (presto_feature){.name = presto_span_of_text("main"),
                                      .tensor = {.spec = string_spec, .strings = &w->main}};
    w->features[2] =
        (presto_feature){.name = presto_span_of_text("numbers"),
                         .encoding = PRESTO_ENCODE_INT64,
                         .tensor = {.spec = {PRESTO_INT64, 1, {3}}, .data = w->numbers}};
    w->sample = (presto_sample){w->features, 3, 7};
}

static presto_status run_words(rig *r, words *w, presto_error *err) {
    presto_plan_run_options options = {.struct_bytes = sizeof options, .main = 1};
    presto_arena_reset(&r->arena);
    return presto_plan_run(r->worker, &options, &w->sample, err);
}

START_TEST(outputs_of_unknown_length_keep_their_memory) {
    rig r;
    presto_error err;
    words w;
    open_own(&r, "  - {step: split-words}\n");
    make_words(&w, "a bb  ccc", "");
    ck_assert_ok(run_words(&r, &w, &err), &err);
    const presto_tensor *out = &w.sample.features[1].tensor;
    ck_assert_int_eq(out->spec.dims[0], 3);
    ck_assert_int_eq(memcmp(out->data, (int32_t[]){1, 2, 3}, 12), 0);
    ck_assert_int_eq(w.sample.features[1].encoding, PRESTO_ENCODE_TENSOR);
    const void *memory = out->data;
    ck_assert_uint_gt(presto_plan_worker_memory(r.worker), 0);
    make_words(&w, "four", "");
    ck_assert_ok(run_words(&r, &w, &err), &err);
    ck_assert_ptr_eq(w.sample.features[1].tensor.data, memory);
    ck_assert_int_eq(w.sample.features[1].tensor.spec.dims[0], 1);
    rig_close(&r);
}
END_TEST

START_TEST(a_step_reads_and_writes_the_features_that_the_pipeline_names) {
    rig r;
    presto_error err;
    words w;
    open_own(&r, "  - {step: split-words, reads: note, writes: lengths}\n"
                 "  - {step: scale, reads: numbers}\n");
    make_words(&w, "main text", "x yy");
    ck_assert_ok(run_words(&r, &w, &err), &err);
    ck_assert_uint_eq(w.sample.feature_count, 4);
    ck_assert(presto_span_is(w.sample.features[3].name, "lengths"));
    ck_assert_int_eq(w.sample.features[3].tensor.spec.dims[0], 2);
    ck_assert(presto_span_is(*w.sample.features[1].tensor.strings, "main text"));
    ck_assert_int_eq(((const int64_t *)w.sample.features[2].tensor.data)[2], 6);
    ck_assert_int_eq(w.numbers[2], 3);
    const char *text = presto_plan_explain(r.plan);
    ck_assert_ptr_nonnull(strstr(text, "reads note, writes lengths"));
    ck_assert_ptr_nonnull(strstr(text, "one thread at a time"));
    rig_close(&r);
    open_own(&r, "  - {step: scale, reads: nothing}\n");
    make_words(&w, "main text", "x yy");
    ck_assert_status(run_words(&r, &w, &err), PRESTO_ERR_TYPE, &err);
    ck_assert_str_eq(err.message, "scale: the sample has no feature \"nothing\"");
    ck_assert_ptr_eq(w.sample.features, w.features);
    rig_close(&r);
}
END_TEST

START_TEST(a_step_may_drop_a_sample_and_set_other_features) {
    rig r;
    presto_error err;
    words w;
    open_own(&r, "  - {step: first-word}\n");
    make_words(&w, "one two", "");
    ck_assert_ok(run_words(&r, &w, &err), &err);
    ck_assert(presto_span_is(*w.sample.features[1].tensor.strings, "one"));
    ck_assert(presto_span_is(w.sample.features[3].name, "rest"));
    ck_assert(presto_span_is(*w.sample.features[3].tensor.strings, " two"));
    make_words(&w, "", "");
    ck_assert_int_eq(run_words(&r, &w, &err), PRESTO_DROP);
    ck_assert_uint_eq(w.sample.feature_count, 3);
    presto_step_stats stats = presto_plan_worker_stats(r.worker, 0);
    ck_assert_uint_eq(stats.samples, 2);
    ck_assert_uint_eq(stats.dropped, 1);
    ck_assert_uint_eq(presto_plan_flags(r.plan), PRESTO_STEP_DROPS | PRESTO_STEP_SETS_FEATURES);
    rig_close(&r);
}
END_TEST

START_TEST(models_are_loaded_once_a_plan_and_freed_with_it) {
    rig r;
    presto_error err;
    loads = unloads = creates = 0;
    open_own(&r, "  - {step: scale, reads: numbers, table: tables/a.bin}\n");
    ck_assert_int_eq(creates, 1);
    ck_assert_int_eq(loads, 1);
    ck_assert_ptr_nonnull(strstr(presto_plan_explain(r.plan), "int64[3]"));
    presto_plan_worker_options options = {.struct_bytes = sizeof options, .arena = &r.arena};
    presto_plan_worker *second;
    ck_assert_ok(presto_plan_worker_new(r.plan, &options, &second, &err), &err);
    ck_assert_int_eq(loads, 1);
    presto_plan_worker_free(second);
    ck_assert_ptr_nonnull(
        strstr(presto_pipeline_json(r.pipeline), "\"table\": \"/some/folder/tables/a.bin\""));
    rig_close(&r);
    ck_assert_int_eq(unloads, 1);
    presto_plan *plan = NULL;
    ck_assert_ok(parse_set("  - {step: scale}\n  - {step: scale, table: /missing}\n", NULL, 0,
                           &r.pipeline, &err),
                 &err);
    ck_assert_status(plan_of(r.pipeline, 1, 3, &string_spec, &plan, &err), PRESTO_ERR_IO, &err);
    ck_assert_ptr_nonnull(strstr(err.message, "line 6: step scale: cannot open"));
    ck_assert_int_eq(loads, unloads);
    presto_pipeline_free(r.pipeline);
}
END_TEST

static void *scale_much(void *user) {
    rig *r = user;
    presto_arena arena = {0};
    presto_plan_worker_options options = {.struct_bytes = sizeof options, .arena = &arena};
    presto_plan_worker *worker;
    presto_error err;
    ck_assert_ok(presto_plan_worker_new(r->plan, &options, &worker, &err), &err);
    for (int i = 0; i < 2000; i++) {
        words w;
        make_words(&w, "", "");
        presto_plan_run_options run = {.struct_bytes = sizeof run, .main = 1};
        presto_arena_reset(&arena);
        ck_assert_ok(presto_plan_run(worker, &run, &w.sample, &err), &err);
    }
    presto_plan_worker_free(worker);
    presto_arena_done(&arena);
    return NULL;
}

START_TEST(threads_take_turns_in_a_serial_step) {
    rig r;
    pthread_t threads[4];
    open_own(&r, "  - {step: scale, reads: numbers}\n");
    most_inside = 0;
    for (size_t i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, scale_much, &r), 0);
    for (size_t i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    ck_assert_int_eq(most_inside, 1);
    rig_close(&r);
}
END_TEST

static void *cancel_when_waiting(void *user) {
    while (!waiting)
        sched_yield();
    presto_plan_worker_cancel(user);
    return NULL;
}

START_TEST(a_step_that_waits_can_be_cancelled) {
    rig r;
    presto_error err;
    words w;
    pthread_t thread;
    open_own(&r, "  - {step: wait}\n");
    make_words(&w, "", "");
    waiting = 0;
    ck_assert_int_eq(pthread_create(&thread, NULL, cancel_when_waiting, r.worker), 0);
    ck_assert_status(run_words(&r, &w, &err), PRESTO_ERR_STOPPED, &err);
    pthread_join(thread, NULL);
    rig_close(&r);
}
END_TEST

START_TEST(own_steps_of_another_version_or_with_a_taken_name_are_refused) {
    presto_error err;
    presto_pipeline *pipeline = NULL;
    presto_step_type old = step_split;
    old.abi = 1;
    const presto_step_type *types[] = {&old};
    presto_pipeline_options options = {
        .struct_bytes = sizeof options, .steps = types, .step_count = 1};
    ck_assert_status(presto_pipeline_load("cv", &options, &pipeline, &err), PRESTO_ERR_ARGUMENT,
                     &err);
    old.abi = PRESTO_STEP_ABI;
    old.name = "greyscale";
    ck_assert_status(presto_pipeline_load("cv", &options, &pipeline, &err), PRESTO_ERR_ARGUMENT,
                     &err);
    ck_assert_ptr_nonnull(strstr(err.message, "greyscale"));
    ck_assert_ptr_null(pipeline);
}
END_TEST

/* ---- --set ---- */

static void check_set(const char *set, presto_status want, const char *part) {
    presto_error err;
    presto_pipeline *pipeline = NULL;
    presto_status status = parse_set("  - {step: scale}\n  - {step: scale, factor: 3}\n"
                                     "  - {step: split-words}\n",
                                     &set, 1, &pipeline, &err);
    ck_assert_msg(status == want, "%s: %s", set, status < 0 ? err.message : "ok");
    const char *text = status < 0 ? err.message : presto_pipeline_json(pipeline);
    ck_assert_msg(strstr(text, part) != NULL, "%s: %s", set, text);
    presto_pipeline_free(pipeline);
}

START_TEST(set_changes_options_with_the_checks_of_the_text) {
    check_set("scale[1].factor=7", PRESTO_OK, "\"step\": \"scale\", \"factor\": 7}");
    check_set("scale[2].factor=7", PRESTO_OK, "{\"step\": \"scale\", \"factor\": 2}");
    check_set("scale[2].table=/a/b", PRESTO_OK, "\"table\": \"/a/b\"");
    check_set("scale[2].table=a/b", PRESTO_OK, "\"table\": \"/"); /* of the working folder */
    check_set("scale[2].table=a/b", PRESTO_OK, "/a/b\"");
    check_set("source.match=['*.a', '*.b']", PRESTO_OK, "\"match\": [\"*.a\", \"*.b\"]");
    check_set("source.feature=page", PRESTO_OK, "\"feature\": \"page\"");
    check_set("split-words.reads=note", PRESTO_OK, "\"reads\": \"note\"");
    check_set("scale.factor=7", PRESTO_ERR_SYNTAX, "has 2 steps scale");
    check_set("scale[3].factor=7", PRESTO_ERR_SYNTAX, "no such step");
    check_set("scale[0].factor=7", PRESTO_ERR_SYNTAX, "must be STEP.OPTION=VALUE");
    check_set("scales.factor=7", PRESTO_ERR_SYNTAX, "no such step");
    check_set("scale[1].factor=seven", PRESTO_ERR_SYNTAX,
              "--set scale[1].factor=seven: step scale: option 'factor' needs a whole number");
    check_set("scale[1].factor=101", PRESTO_ERR_SYNTAX, "must be from 1 to 100");
    check_set("scale[1].faktor=1", PRESTO_ERR_SYNTAX, "did you mean 'factor'?");
    check_set("scale[1].factor=", PRESTO_ERR_SYNTAX, "--set scale[1].factor=");
    check_set("scale[1].factor=[1", PRESTO_ERR_SYNTAX, "cannot be read as YAML");
    check_set("scale[1].factor", PRESTO_ERR_SYNTAX, "must be STEP.OPTION=VALUE");
    check_set("factor=1", PRESTO_ERR_SYNTAX, "must be STEP.OPTION=VALUE");
    check_set("scale[1].step=greyscale", PRESTO_ERR_SYNTAX, "only options can be set");
    check_set("scale[1].type=tar", PRESTO_ERR_SYNTAX, "only options can be set");
    check_set("source.type=tars", PRESTO_ERR_SYNTAX, "did you mean 'tar'?");
}
END_TEST

/* The source of cv, with some --set. */
static void check_source(const char *const *set, size_t count, const char *wanted) {
    presto_error err;
    presto_pipeline *pipeline;
    presto_pipeline_options options;
    presto_pipeline_options_defaults(&options);
    options.set = set;
    options.set_count = count;
    ck_assert_ok(presto_pipeline_load("cv", &options, &pipeline, &err), &err);
    const char *text = presto_pipeline_json(pipeline);
    ck_assert_msg(strstr(text, wanted) != NULL, "%s lacks %s", text, wanted);
    presto_pipeline_free(pipeline);
}

START_TEST(set_puts_another_source_in_front_of_the_same_steps) {
    static const char *const same[] = {"source.type=files"};
    static const char *const tar[] = {"source.label=top-folder", "source.type=tar"};
    static const char *const later[] = {"source.type=tar", "source.label=none"};
    static const char *const values[] = {"source.type=hdf5"};
    const char *match = "{\"type\": \"tar\", \"match\": [\"*.jpg\", \"*.jpeg\", \"*.png\"], ";
    char wanted[200];
    presto_error err;
    presto_pipeline *pipeline;
    presto_pipeline_options options;
    check_source(same, 1, "\"label\": \"parent-folder\"");
    /* match is kept; label is that of the new type, unless it is set */
    snprintf(wanted, sizeof wanted, "%s\"label\": \"cls\"", match);
    check_source(tar + 1, 1, wanted);
    snprintf(wanted, sizeof wanted, "%s\"label\": \"top-folder\"", match);
    check_source(tar, 2, wanted);
    snprintf(wanted, sizeof wanted, "%s\"label\": \"none\"", match);
    check_source(later, 2, wanted);
    presto_pipeline_options_defaults(&options);
    options.set = values;
    options.set_count = 1;
    ck_assert_status(presto_pipeline_load("cv", &options, &pipeline, &err), PRESTO_ERR_SYNTAX,
                     &err);
}
END_TEST

START_TEST(pipelines_are_compared_as_far_as_they_are_stored) {
    presto_error err;
    presto_pipeline *cv, *later, *earlier;
    const char *crop = "random-crop.height=200";
    const char *resize = "resize-image.min-side=200";
    presto_pipeline_options with_crop = {
        .struct_bytes = sizeof with_crop, .set = &crop, .set_count = 1};
    presto_pipeline_options with_resize = {
        .struct_bytes = sizeof with_resize, .set = &resize, .set_count = 1};
    ck_assert_ok(presto_pipeline_load("cv", NULL, &cv, &err), &err);
    ck_assert_ok(presto_pipeline_load("cv", &with_crop, &later, &err), &err);
    ck_assert_ok(presto_pipeline_load("cv", &with_resize, &earlier, &err), &err);
    const char *json = presto_pipeline_json(cv);
    bool truth = false;
    ck_assert_ok(presto_pipeline_same(cv, json, &truth, &err), &err);
    ck_assert(truth);
    ck_assert_ok(presto_pipeline_same(later, json, &truth, &err), &err);
    ck_assert(!truth);
    ck_assert_ok(presto_pipeline_continues(later, json, "resized", &truth, &err), &err);
    ck_assert(truth);
    ck_assert_ok(presto_pipeline_continues(earlier, json, "resized", &truth, &err), &err);
    ck_assert(!truth);
    ck_assert_ok(presto_pipeline_continues(earlier, json, "decoded", &truth, &err), &err);
    ck_assert(truth);
    ck_assert_ok(presto_pipeline_continues(cv, json, "nowhere", &truth, &err), &err);
    ck_assert(!truth);
    presto_pipeline_free(cv);
    presto_pipeline_free(later);
    presto_pipeline_free(earlier);
}
END_TEST

START_TEST(steps_that_could_not_be_fused_are_counted) {
    static uint8_t pixels[300 * 200 * 3];
    presto_tensor_spec unknown = {PRESTO_UINT8, 3, {-1, -1, 3}};
    presto_tensor_spec large = {PRESTO_UINT8, 3, {300, 200, 3}};
    presto_tensor_spec small = {PRESTO_UINT8, 3, {30, 20, 3}};
    rig r;
    presto_error err;
    rig_options options = {0};
    ck_assert_ok(rig_open(&r, "{step: center-pixels}, {step: random-crop, height: 50, width: 50}",
                          &unknown, false, &err),
                 &err);
    ck_assert_ptr_nonnull(strstr(presto_plan_explain(r.plan), "unfused"));
    presto_tensor tensor = {.spec = large, .data = pixels};
    ck_assert_ok(rig_run(&r, &options, &tensor, &err), &err);
    ck_assert_uint_eq(presto_plan_worker_stats(r.worker, 0).unfused, 0);
    tensor = (presto_tensor){.spec = small, .data = pixels};
    ck_assert_status(rig_run(&r, &options, &tensor, &err), PRESTO_ERR_TYPE, &err);
    ck_assert_uint_eq(presto_plan_worker_stats(r.worker, 0).unfused, 1);
    rig_close(&r);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        outputs_of_unknown_length_keep_their_memory,
        a_step_reads_and_writes_the_features_that_the_pipeline_names,
        a_step_may_drop_a_sample_and_set_other_features,
        models_are_loaded_once_a_plan_and_freed_with_it,
        threads_take_turns_in_a_serial_step,
        a_step_that_waits_can_be_cancelled,
        own_steps_of_another_version_or_with_a_taken_name_are_refused,
        set_changes_options_with_the_checks_of_the_text,
        set_puts_another_source_in_front_of_the_same_steps,
        pipelines_are_compared_as_far_as_they_are_stored,
        steps_that_could_not_be_fused_are_counted,
    };
    return presto_check_main("own-steps", tests, sizeof tests / sizeof tests[0], 60);
}
