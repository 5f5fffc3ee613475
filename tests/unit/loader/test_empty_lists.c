/* SPDX-License-Identifier: Apache-2.0 */
/* A list without values is nothing in a record; batches have it nevertheless, and know it. */
#include "../../../loader/loader_internal.h"
#include "dataset_check.h"

#include <presto/writer.h>

#define ROWS 8

static presto_error err;

/* Of four samples two have no tokens, and their records lack the feature. */
static int64_t token_count(int64_t sample) {
    return sample % 4 < 2 ? 0 : sample % 4 - 1;
}

static opened write_tokens(void) {
    dir = presto_check_temp_dir();
    presto_writer_options options;
    presto_writer_options_defaults(&options);
    options.dir = dir;
    options.sync = false;
    options.main_feature = "tokens";
    presto_writer *writer;
    ck_assert_ok(presto_writer_open(&options, &writer, &err), &err);
    for (int64_t i = 0; i < ROWS; i++) {
        int64_t tokens[2] = {i, i};
        presto_feature features[2] = {
            {.name = presto_span_of_text("count"), .encoding = PRESTO_ENCODE_INT64},
            {.name = presto_span_of_text("tokens"), .encoding = PRESTO_ENCODE_INT64}};
        features[0].tensor = (presto_tensor){.spec = {.dtype = PRESTO_INT64}, .data = &i};
        features[1].tensor = (presto_tensor){
            .spec = {.dtype = PRESTO_INT64, .rank = 1, .dims = {token_count(i)}}, .data = tokens};
        if (token_count(i) == 0)
            features[1].encoding = PRESTO_ENCODE_NONE;
        const presto_sample sample = {.features = features, .feature_count = 2};
        ck_assert_ok(presto_writer_add(writer, &sample, &err), &err);
    }
    ck_assert_ok(presto_writer_finish(writer, NULL, &err), &err);
    presto_writer_free(writer);
    return open_made(dir, false);
}

START_TEST(a_main_feature_that_all_rows_lack_is_known) {
    opened data = write_tokens();
    for (size_t batch_rows = 1; batch_rows <= ROWS; batch_rows *= 2)
        for (unsigned threads = 0; threads < 3; threads++) {
            presto_loader_options options = defaults(threads, batch_rows);
            presto_loader *loader;
            presto_batch *batch;
            size_t rows = 0;
            ck_assert_ok(presto__loader_open(data.source, NULL, &options, &loader, &err), &err);
            while (presto_loader_next(loader, &batch, &err) == PRESTO_OK) {
                ck_assert_uint_eq(batch->feature_count, 2);
                ck_assert_uint_eq(batch->main_feature, 1);
                const presto_batch_feature *tokens = &batch->features[1];
                ck_assert_str_eq(tokens->name, "tokens");
                for (size_t i = 0; i < batch->rows; i++) {
                    int64_t wanted = token_count((int64_t)batch->sample_numbers[i]);
                    ck_assert_int_eq(batch_rows == 1 ? tokens->tensor.spec.dims[1]
                                                     : tokens->offsets[i + 1] - tokens->offsets[i],
                                     wanted);
                }
                rows += batch->rows;
                presto_batch_release(batch);
            }
            ck_assert_uint_eq(rows, ROWS);
            presto_loader_free(loader);
        }
    tear_down(&data);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {a_main_feature_that_all_rows_lack_is_known};
    return presto_check_main("empty_lists", tests, sizeof tests / sizeof tests[0], 60);
}
