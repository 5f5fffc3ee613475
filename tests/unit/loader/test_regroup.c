/* SPDX-License-Identifier: Apache-2.0 */
/* Conversions that end with pack: rows are those of all documents in a row, whatever the threads
 * and shards. */
#define _XOPEN_SOURCE 700
#include "../../../loader/loader_internal.h"
#include "../../../records/records_internal.h"
#include "../../../steps/pipelines_internal.h"
#include "regroup_check.h"

/* Row `row` has these tokens and these documents. */
static void check_row(const setting *s, size_t row, const int32_t *tokens, const int64_t *offsets,
                      size_t offset_count) {
    const expected *all = &s->all;
    size_t first = row * s->length, end = first + s->length, at = 0;
    for (size_t i = first; i < end; i++)
        ck_assert_int_eq(tokens[i - first], i < all->count ? all->tokens[i] : -1);
    end = end < all->count ? end : all->count;
    ck_assert_int_eq(offsets[at++], 0);
    for (size_t d = 0; d < all->with_tokens; d++)
        if (all->begins[d] > first && all->begins[d] < end)
            ck_assert_int_eq(offsets[at++], (int64_t)(all->begins[d] - first));
    ck_assert_int_eq(offsets[at++], (int64_t)(end - first));
    ck_assert_uint_eq(at, offset_count);
}

static void check_rows(const setting *s, const char *name) {
    const char *path = path_in(base, name);
    presto_loader *loader;
    presto_batch *batch;
    presto_stream_options options;
    presto_pipeline_options reading = {
        .struct_bytes = sizeof reading, .steps = own, .step_count = 1};
    presto_stream_options_defaults(&options);
    options.pipeline_options = &reading;
    ck_assert_ok(presto_loader_open_paths(&path, 1, &options, &loader, &err), &err);
    size_t rows = 0;
    presto_status status;
    while ((status = presto_loader_next(loader, &batch, &err)) == PRESTO_OK) {
        ck_assert_uint_eq(batch->feature_count, 2);
        const presto_batch_feature *offsets = &batch->features[0], *tokens = &batch->features[1];
        ck_assert_str_eq(offsets->name, "document-offsets");
        ck_assert_int_eq(tokens->tensor.spec.dtype, PRESTO_INT32);
        ck_assert_int_eq(tokens->tensor.spec.dims[1], (int64_t)s->length);
        check_row(s, rows++, tokens->tensor.data, offsets->tensor.data,
                  (size_t)presto_spec_elements(&offsets->tensor.spec));
        presto_batch_release(batch);
    }
    ck_assert_status(status, PRESTO_END, &err);
    presto_loader_free(loader);
    size_t whole = s->all.count / s->length, rest = s->all.count % s->length;
    ck_assert_uint_eq(rows, whole + (s->pads && rest > 0));
}

/* By number, a row is in the shard of the document that it begins in. */
static void check_shards(const setting *s, const char *name, size_t shards) {
    presto_dataset_info info = {0};
    ck_assert_ok(presto__dataset_info_read(path_in(base, name), &info, &err), &err);
    ck_assert_uint_eq(info.shard_count, shards);
    size_t samples = s->documents + 1, document = 0, row = 0;
    size_t rows = (s->all.count + (s->pads ? s->length - 1 : 0)) / s->length;
    for (size_t i = 0; i < shards; i++) {
        uint64_t wanted = 0;
        for (; row < rows; row++, wanted++) {
            while (s->all.begins[document + 1] <= row * s->length)
                document++;
            if (s->all.samples[document] >= samples * (i + 1) / shards)
                break;
        }
        ck_assert_uint_eq(info.shards[i].records, wanted);
    }
    presto__dataset_info_free(&info);
}

START_TEST(rows_are_all_documents_in_a_row) {
    start_random();
    for (size_t round = 0; round < ROUNDS; round++) {
        setting s = make_setting();
        for (size_t i = 0; i < 3; i++) {
            way how = random_way();
            presto_convert_result result;
            ck_assert_ok(convert(&s, "out", &how, &result), &err);
            check_rows(&s, "out");
            if (how.shards > 0)
                check_shards(&s, "out", how.shards);
            size_t rest = s.all.count % s.length;
            ck_assert_uint_eq(result.packed_documents, s.all.documents);
            ck_assert_uint_eq(result.packed_tokens, s.all.count);
            ck_assert_uint_eq(result.skipped, s.documents + 1 - s.all.documents);
            ck_assert_uint_eq(result.dropped_tokens, s.pads ? 0 : rest);
            ck_assert_uint_eq(result.padded_tokens, s.pads && rest > 0 ? s.length - rest : 0);
            uint32_t first = digest_of_folder(path_in(base, "out"));
            presto_check_remove_tree(path_in(base, "out"));
            how.threads = (unsigned)pick(0, 8);
            ck_assert_ok(convert(&s, "out", &how, &result), &err);
            ck_assert_uint_eq(digest_of_folder(path_in(base, "out")), first);
            how.resume = true; /* there is nothing left to do */
            ck_assert_ok(convert(&s, "out", &how, &result), &err);
            ck_assert_uint_eq(digest_of_folder(path_in(base, "out")), first);
            presto_check_remove_tree(path_in(base, "out"));
        }
        drop_setting(&s);
    }
}
END_TEST

/* The documents of a part have other numbers in the source than positions in the part. */
START_TEST(a_part_of_a_source_is_packed_into_its_shards) {
    static const char *const parts[] = {"1", "2"};
    start_random();
    for (size_t round = 0; round < ROUNDS; round++) {
        setting s = make_setting();
        uint64_t documents = 0;
        for (size_t part = 0; part < 2 && s.documents > 20; part++) {
            way how = random_way();
            how.part = parts[part];
            how.resume = true;
            presto_convert_result result;
            ck_assert_ok(convert(&s, "whole", &how, &result), &err);
            ck_assert(how.shards == 0 || result.shards == how.shards);
            documents += result.packed_documents;
            for (int at = 0; at < (int)s.documents; at += (int)pick(1, 15)) {
                atomic_store(&failing, at);
                (void)convert(&s, "out", &how, &result);
            }
            atomic_store(&failing, -1);
            ck_assert_ok(convert(&s, "out", &how, &result), &err);
            ck_assert_uint_eq(digest_of_folder(path_in(base, "out")),
                              digest_of_folder(path_in(base, "whole")));
            presto_check_remove_tree(path_in(base, "out"));
            presto_check_remove_tree(path_in(base, "whole"));
        }
        ck_assert(s.documents <= 20 || documents == s.all.documents);
        drop_setting(&s);
    }
}
END_TEST

/* The progress of a job that packs, whose places were taken away or moved. */
START_TEST(progress_of_an_enemy_is_refused) {
    static const char *const changes[][2] = {
        {"\"next\"", "\"nope\""},
        {"\"documents\": ", "\"documents\": 9"},
        {"\"sample\": ", "\"sample\": 9"},
        {"\"token\": ", "\"token\": -1"},
    };
    start_random();
    size_t tried = 0;
    while (tried < 3) {
        setting s = make_setting();
        way how = {.shards = 6, .threads = 1, .resume = true};
        presto_convert_result result;
        atomic_store(&failing, (int)s.documents - 1);
        presto_status status = convert(&s, "out", &how, &result);
        char path[700];
        size_t bytes;
        snprintf(path, sizeof path, "%s/out/.progress.json", base);
        bool is_left = status < 0 && access(path, F_OK) == 0;
        for (size_t i = 0; is_left && i < sizeof changes / sizeof changes[0]; i++) {
            uint8_t *content = presto_check_read_file(path, &bytes);
            char *text = presto_span_to_text(presto_span_of(content, bytes));
            char *at = strstr(text, changes[i][0]), *changed = malloc(bytes + 32);
            ck_assert_ptr_nonnull(at);
            snprintf(changed, bytes + 32, "%.*s%s%s", (int)(at - text), text, changes[i][1],
                     at + strlen(changes[i][0]));
            presto_check_write_file(path, presto_span_of_text(changed));
            ck_assert_status(convert(&s, "out", &how, &result), PRESTO_ERR_CORRUPT, &err);
            presto_check_write_file(path, presto_span_of(content, bytes));
            free(changed);
            free(text);
            free(content);
        }
        tried += is_left;
        drop_setting(&s);
    }
}
END_TEST

START_TEST(skipped_documents_are_left_out_and_counted) {
    start_random();
    setting s = make_setting();
    const char *path = path_in(base, "in");
    presto_convert_options options;
    presto_convert_result result;
    presto_convert_options_defaults(&options);
    options.pipeline = s.pipeline;
    options.dir = path_in(base, "out");
    options.errors.policy = PRESTO_ON_ERROR_SKIP;
    options.sync = false;
    atomic_store(&failing, 599); /* no document; then one that is there */
    ck_assert_ok(presto_convert(&path, 1, &options, &result, &err), &err);
    check_rows(&s, "out");
    drop_setting(&s);
}
END_TEST

START_TEST(streams_do_not_pack) {
    start_random();
    setting s = make_setting();
    const char *path = path_in(base, "in");
    presto_source *source;
    presto_plan *plan;
    presto_loader *loader;
    ck_assert_ok(presto__source_open_raw(s.pipeline, &path, 1, &source, &err), &err);
    ck_assert_ok(presto__plan_new(s.pipeline, NULL, &plan, &err), &err);
    ck_assert_status(presto__loader_open(source, plan, NULL, &loader, &err), PRESTO_ERR_ARGUMENT,
                     &err);
    ck_assert_ptr_nonnull(strstr(err.message, "step pack"));
    presto__plan_free(plan);
    presto__source_free(source);
    drop_setting(&s);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        rows_are_all_documents_in_a_row,
        a_part_of_a_source_is_packed_into_its_shards,
        progress_of_an_enemy_is_refused,
        skipped_documents_are_left_out_and_counted,
        streams_do_not_pack,
    };
    return presto_check_main("regroup", tests, sizeof tests / sizeof tests[0], 240);
}
