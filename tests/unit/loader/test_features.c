/* SPDX-License-Identifier: Apache-2.0 */
/* Which features are parsed: those asked for and those that steps read. In files of another
 * program, every record has a feature that cannot be parsed. */
#define _GNU_SOURCE /* memmem */
#include <ctype.h>

#include "../../../records/records_internal.h"
#include "loader_check.h"

enum { SAMPLES = 40 };

static char *dir;
static char records[600], pipeline[600];

/* ---- the steps ---- */

static presto_status infer_text(const void *state, const presto_tensor_spec *in,
                                presto_tensor_spec *out_out, presto_error *err) {
    (void)state, (void)in, (void)err;
    *out_out = (presto_tensor_spec){.dtype = PRESTO_STRING};
    return PRESTO_OK;
}

/* "shout": its input in capital letters. */
static presto_status shout(const void *state, presto_step_context *context, const presto_tensor *in,
                           presto_tensor *out_out, presto_error *err) {
    (void)state;
    presto_span text = in->strings[0];
    uint8_t *loud = presto_step_scratch(context, text.bytes + 1);
    if (loud == NULL)
        return presto_fail_memory(err, text.bytes);
    for (size_t i = 0; i < text.bytes; i++)
        loud[i] = (uint8_t)toupper(text.data[i]);
    return presto_step_text(context, presto_span_of(loud, text.bytes), out_out, err);
}

/* "look": the feature "other", or "none" if it is not seen. */
static presto_status look(const void *state, presto_step_context *context, const presto_tensor *in,
                          presto_tensor *out_out, presto_error *err) {
    (void)state, (void)in;
    const presto_feature *other = presto_step_feature(context, "other");
    presto_span text = other == NULL ? presto_span_of_text("none") : other->tensor.strings[0];
    return presto_step_text(context, text, out_out, err);
}

static const presto_step_type step_shout = {.abi = PRESTO_STEP_ABI,
                                            .name = "shout",
                                            .summary = "Capital letters.",
                                            .infer = infer_text,
                                            .run = shout};
static const presto_step_type step_look = {.abi = PRESTO_STEP_ABI,
                                           .name = "look",
                                           .summary = "Another feature.",
                                           .flags = PRESTO_STEP_READS_FEATURES,
                                           .infer = infer_text,
                                           .run = look};
static const presto_step_type step_blind = {.abi = PRESTO_STEP_ABI,
                                            .name = "blind",
                                            .summary = "As look, without its flag.",
                                            .infer = infer_text,
                                            .run = look};
static const presto_step_type *const own[] = {&step_shout, &step_look, &step_blind};
static const presto_pipeline_options reading = {
    .struct_bytes = sizeof(presto_pipeline_options), .steps = own, .step_count = 3};

/* ---- the records ---- */

static presto_feature text_feature(const char *name, const presto_span *text) {
    presto_feature feature = {.name = presto_span_of_text(name), .encoding = PRESTO_ENCODE_BYTES};
    feature.tensor.spec = (presto_tensor_spec){.dtype = PRESTO_STRING};
    feature.tensor.strings = text;
    return feature;
}

/* "extra", "label", "other" and "text"; the list in "extra" is longer than the feature. */
static void append_record(presto__shard_writer *writer, int64_t number) {
    char text[2][32];
    snprintf(text[0], sizeof text[0], "text-%d", (int)number);
    snprintf(text[1], sizeof text[1], "other-%d", (int)number);
    const presto_span spans[] = {presto_span_of_text("broken"), presto_span_of_text(text[0]),
                                 presto_span_of_text(text[1])};
    presto_feature features[4] = {
        text_feature("extra", &spans[0]),
        {.name = presto_span_of_text("label"), .encoding = PRESTO_ENCODE_INT64},
        text_feature("other", &spans[2]),
        text_feature("text", &spans[1])};
    features[1].tensor = (presto_tensor){.spec = {.dtype = PRESTO_INT64}, .data = &number};
    presto_sample sample = {.features = features, .feature_count = 4};
    presto_buffer raw = {0};
    presto_error err;
    ck_assert_ok(presto_example_append(&raw, &sample, &err), &err);
    uint8_t *list = memmem(raw.data, raw.bytes, "extra\x12", 6);
    ck_assert_ptr_nonnull(list);
    list[8] = 0x7f; /* behind key, tag, size and the list's tag: its size */
    ck_assert_ok(presto__shard_writer_append(writer, presto_buffer_span(&raw), &err), &err);
    presto_buffer_done(&raw);
}

static void set_up(const char *steps) {
    dir = presto_check_temp_dir();
    snprintf(records, sizeof records, "%s/records.tfrecord", dir);
    snprintf(pipeline, sizeof pipeline, "%s/p.yaml", dir);
    presto_error err;
    presto__shard_writer *writer;
    presto__shard_writer_options options;
    presto__shard_writer_options_defaults(&options);
    options.sync = false;
    ck_assert_ok(presto__shard_writer_open(records, &options, &writer, &err), &err);
    for (int64_t i = 0; i < SAMPLES; i++)
        append_record(writer, i);
    presto__shard_summary summary;
    ck_assert_ok(presto__shard_writer_finish(writer, &summary, &err), &err);
    presto__shard_writer_free(writer);
    FILE *file = fopen(pipeline, "wb");
    fprintf(file,
            "name: p\nsource: {type: files, match: ['*'], feature: text}\n"
            "steps:\n  - {step: read-file, yields: read}\n%s",
            steps);
    ck_assert_int_eq(fclose(file), 0);
}

static void tear_down(void) {
    presto_check_remove_tree(dir);
    free(dir);
}

/* ---- streams ---- */

typedef struct run {
    const char *names[2]; /* features asked for; none: all */
    unsigned threads;
    size_t cache_bytes;
    presto_output_kind output;
} run;

static presto_loader_options options_of(const run *how) {
    presto_loader_options options;
    presto_loader_options_defaults(&options);
    options.threads = how->threads;
    options.batch_samples = 7;
    options.output = how->output;
    options.range.epochs = 2;
    options.cache.bytes = how->cache_bytes;
    options.features = how->names;
    options.feature_count = (size_t)(how->names[0] != NULL) + (how->names[1] != NULL);
    return options;
}

/* Runs the stream. The texts of both epochs start with `prefix`, if "text" is asked for. Returns
 * how the stream ended, with the bytes delivered. */
static presto_status stream(const run *how, const char *prefix, uint64_t *bytes_out) {
    presto_loader_options options = options_of(how);
    presto_stream_options opening;
    presto_stream_options_defaults(&opening);
    opening.pipeline = pipeline;
    opening.pipeline_options = &reading;
    opening.from = "read";
    opening.loader = &options;
    const char *paths[] = {records};
    presto_error err;
    presto_loader *loader;
    presto_batch *batch;
    presto_status status;
    ck_assert_ok(presto_loader_open_paths(paths, 1, &opening, &loader, &err), &err);
    uint64_t rows = 0;
    while ((status = presto_loader_next(loader, &batch, &err)) == PRESTO_OK) {
        if (how->output == PRESTO_OUTPUT_BATCHES && options.feature_count > 0)
            ck_assert_uint_eq(batch->feature_count, options.feature_count);
        for (size_t i = 0; i < batch->rows && batch->main_feature < batch->feature_count; i++) {
            char wanted[32];
            presto_span text = presto_batch_string(&batch->features[batch->main_feature], i);
            bool is_numbered = prefix[strlen(prefix) - 1] == '-';
            snprintf(wanted, sizeof wanted, is_numbered ? "%s%d" : "%s", prefix,
                     (int)batch->sample_numbers[i]);
            ck_assert(presto_span_is(text, wanted));
        }
        rows += batch->rows;
        presto_batch_release(batch);
    }
    presto_loader_stats stats;
    presto_loader_get_stats(loader, &stats);
    *bytes_out = stats.delivered_bytes;
    ck_assert_uint_eq(rows, status == PRESTO_END ? 2 * SAMPLES : 0);
    if (status < 0)
        ck_assert_ptr_nonnull(strstr(err.message, "bad Example"));
    presto_loader_free(loader);
    return status;
}

static const size_t cache_sizes[] = {0, (size_t)1 << 20};

/* With threads and caches: how the stream ends that is asked for `names`. */
static void check(const char *const names[2], const char *prefix, presto_status wanted) {
    for (size_t cache = 0; cache < 2; cache++)
        for (unsigned threads = 0; threads < 3; threads++) {
            uint64_t bytes, counted;
            run how = {.names = {names[0], names[1]},
                       .threads = threads,
                       .cache_bytes = cache_sizes[cache]};
            ck_assert_int_eq(stream(&how, prefix, &bytes), wanted);
            how.output = PRESTO_OUTPUT_COUNT;
            ck_assert_int_eq(stream(&how, prefix, &counted), wanted);
            if (wanted == PRESTO_END)
                ck_assert_uint_eq(counted, bytes);
        }
}

static const char *const nothing[2];
static const char *const both[2] = {"text", "label"};
static const char *const label[2] = {"label"};

START_TEST(what_no_step_reads_is_not_parsed) {
    set_up("  - {step: shout}\n");
    check(both, "TEXT-", PRESTO_END);
    check(label, "TEXT-", PRESTO_END);
    check(nothing, "TEXT-", PRESTO_ERR_CORRUPT);
    tear_down();
}
END_TEST

START_TEST(what_a_step_is_told_to_read_is_parsed_and_not_shown) {
    set_up("  - {step: shout, reads: other, writes: text}\n");
    check(both, "OTHER-", PRESTO_END);
    tear_down();
    set_up("  - {step: shout, reads: extra, writes: text}\n");
    check(both, "BROKEN", PRESTO_ERR_CORRUPT);
    tear_down();
}
END_TEST

START_TEST(a_step_that_may_read_any_feature_gets_all) {
    set_up("  - {step: look}\n");
    check(both, "other-", PRESTO_ERR_CORRUPT);
    tear_down();
    set_up("  - {step: blind}\n");
    check(both, "none", PRESTO_END);
    tear_down();
}
END_TEST

START_TEST(a_feature_that_is_asked_for_twice_is_refused) {
    set_up("  - {step: shout}\n");
    const char *const names[] = {"text", "label", "text"};
    presto_loader_options options;
    presto_loader_options_defaults(&options);
    options.features = names;
    options.feature_count = 3;
    presto_stream_options opening;
    presto_stream_options_defaults(&opening);
    opening.pipeline = pipeline;
    opening.pipeline_options = &reading;
    opening.from = "read";
    opening.loader = &options;
    const char *paths[] = {records};
    presto_error err;
    presto_loader *loader = NULL;
    ck_assert_int_eq(presto_loader_open_paths(paths, 1, &opening, &loader, &err),
                     PRESTO_ERR_ARGUMENT);
    ck_assert_str_eq(err.message, "feature 'text' is asked for twice");
    ck_assert_ptr_null(loader);
    tear_down();
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        what_no_step_reads_is_not_parsed,
        what_a_step_is_told_to_read_is_parsed_and_not_shown,
        a_step_that_may_read_any_feature_gets_all,
        a_feature_that_is_asked_for_twice_is_refused,
    };
    return presto_check_main("features", tests, sizeof tests / sizeof tests[0], 120);
}
