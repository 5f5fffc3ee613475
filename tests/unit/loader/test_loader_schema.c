/* SPDX-License-Identifier: Apache-2.0 */
/* What batches will look like, said before there is one, is what the first batch looks like. */
#include <presto/stream.h>

#include <stdio.h>
#include <string.h>

#include "presto_check.h"

static char *dir;
static char path[700];
static presto_error err;

/* A pipeline over made samples, with these steps. */
static void open_made(const char *steps, const presto_loader_options *loader,
                      presto_stream *stream) {
    char text[600];
    snprintf(text, sizeof text,
             "name: made\nsource: {type: synthetic, count: 6, size: 4000, dtype: float32}\n"
             "steps: [%s]\n",
             steps);
    presto_check_write_file(path, presto_span_of_text(text));
    presto_stream_options options;
    presto_stream_options_defaults(&options);
    options.pipeline = path;
    options.loader = loader;
    ck_assert_ok(presto_stream_open(NULL, 0, &options, stream, &err), &err);
}

static void set_up(void) {
    dir = presto_check_temp_dir();
    snprintf(path, sizeof path, "%s/made.yaml", dir);
}

static void tear_down(void) {
    presto_check_remove_tree(dir);
    free(dir);
}

static void check_against_the_first(const char *steps, presto_loader_options *options) {
    presto_stream stream;
    presto_batch *schema = NULL, *batch = NULL;
    presto_loader *loader = NULL;
    options->batch_samples = 1;
    open_made(steps, options, &stream);
    ck_assert_ok(presto_loader_schema(&stream, options, &schema, &err), &err);
    ck_assert_ok(presto_loader_open_stream(&stream, options, &loader, &err), &err);
    ck_assert_ok(presto_loader_next(loader, &batch, &err), &err);
    ck_assert_uint_eq(schema->feature_count, batch->feature_count);
    ck_assert_uint_eq(schema->main_feature, batch->main_feature);
    for (size_t i = 0; i < batch->feature_count; i++) {
        const presto_batch_feature *said = &schema->features[i], *is = &batch->features[i];
        ck_assert_str_eq(said->name, is->name);
        ck_assert_int_eq(said->layout, is->layout);
        ck_assert_int_eq(said->tensor.spec.dtype, is->tensor.spec.dtype);
        if (is->layout == PRESTO_LAYOUT_DENSE)
            ck_assert(presto_spec_equal(&said->tensor.spec, &is->tensor.spec));
        ck_assert_ptr_null(said->tensor.data);
    }
    presto_batch_release(batch);
    presto_loader_free(loader);
    presto_loader_schema_free(schema);
    presto_stream_close(&stream);
}

START_TEST(it_is_that_of_the_first_batch) {
    presto_loader_options options;
    presto_loader_options_defaults(&options);
    set_up();
    check_against_the_first("", &options);
    check_against_the_first("{step: cast, dtype: float64, yields: wide}", &options);
    options.cache.bytes = 1 << 20; /* the steps are in the other plan then */
    check_against_the_first("{step: cast, dtype: float64, yields: wide}", &options);
    tear_down();
}
END_TEST

START_TEST(padded_rows_have_their_length) {
    presto_loader_options options;
    presto_stream stream;
    presto_batch *schema = NULL;
    presto_loader_options_defaults(&options);
    set_up();
    open_made("", &options, &stream);
    presto_pad pads[1] = {
        {.feature = presto_source_main_feature(stream.source), .value = 0, .length = 1200}};
    options.pads = pads;
    options.pad_count = 1;
    ck_assert_ok(presto_loader_schema(&stream, &options, &schema, &err), &err);
    const presto_batch_feature *main = &schema->features[schema->main_feature];
    ck_assert_int_eq(main->layout, PRESTO_LAYOUT_DENSE);
    ck_assert_int_eq(main->tensor.spec.dims[1], 1200);
    presto_loader_schema_free(schema);
    pads[0].length = 0; /* that of the longest */
    ck_assert_ok(presto_loader_schema(&stream, &options, &schema, &err), &err);
    main = &schema->features[schema->main_feature];
    ck_assert_int_eq(main->layout, PRESTO_LAYOUT_RAGGED); /* as far as is known before */
    presto_loader_schema_free(schema);
    presto_stream_close(&stream);
    tear_down();
}
END_TEST

START_TEST(what_the_steps_make_is_that_of_the_last_plan) {
    presto_loader_options options;
    presto_stream stream;
    presto_loader_options_defaults(&options);
    set_up();
    open_made("", &options, &stream);
    ck_assert_ptr_null(presto_stream_output(&stream));
    presto_stream_close(&stream);
    open_made("{step: cast, dtype: float64, yields: wide}", &options, &stream);
    ck_assert_int_eq(presto_stream_output(&stream)->dtype, PRESTO_FLOAT64);
    presto_stream_close(&stream);
    tear_down();
}
END_TEST

int main(void) {
    const TTest *const tests[] = {it_is_that_of_the_first_batch, padded_rows_have_their_length,
                                  what_the_steps_make_is_that_of_the_last_plan};
    return presto_check_main("loader/loader_schema", tests, sizeof tests / sizeof *tests, 30);
}
