/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program whose options and results are shorter, or longer, than those of the library that it
 * runs with (tests/house/abi.py makes its headers). Behind each struct stands garbage: the library
 * must not read it as fields, and must not write there.
 *
 * Usage: other_headers DATASET COPY
 */
#include <presto/presto.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NEED(condition, ...)                                                                       \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #condition);                        \
            fprintf(stderr, __VA_ARGS__);                                                          \
            fputc('\n', stderr);                                                                   \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

enum { GARBAGE = 0xa5, GARBAGE_BYTES = 64 };

/* The options, and garbage from their end on. */
static void *fresh(size_t bytes) {
    uint8_t *memory = malloc(bytes + GARBAGE_BYTES);
    NEED(memory != NULL, "out of memory");
    memset(memory, GARBAGE, bytes + GARBAGE_BYTES);
    return memory;
}

static void check_untouched(const void *options, size_t bytes, const char *name) {
    for (size_t i = 0; i < GARBAGE_BYTES; i++)
        NEED(((const uint8_t *)options)[bytes + i] == GARBAGE, "%s: byte %zu behind it", name, i);
    NEED(*(const size_t *)options == bytes, "%s: struct_bytes", name);
}

#define MAKE(type, name)                                                                           \
    type *name = fresh(sizeof(type));                                                              \
    type##_defaults(name);                                                                         \
    check_untouched(name, sizeof(type), #type)

/* A result is garbage before it is filled, then all that the program knows is set. */
#ifdef HAS_MADE_UP
#define CHECK_FILLED(type, name)                                                                   \
    check_untouched(name, sizeof(type), #type);                                                    \
    NEED((name)->made_up == 0, "%s: what the library does not know", #type)
#else
#define CHECK_FILLED(type, name) check_untouched(name, sizeof(type), #type)
#endif

static void need_ok(presto_status status, const presto_error *err) {
    NEED(status == PRESTO_OK, "%s: %s", presto_status_name(status), err->message);
}

static void check_stream(const char *const *paths) {
    presto_error err;
    presto_loader *loader;
    presto_batch *batch;
    uint64_t rows = 0;
    presto_status status;
    MAKE(presto_loader_options, options);
    MAKE(presto_pipeline_options, reading);
    MAKE(presto_stream_options, input);
    options->batch_samples = 8;
    input->pipeline_options = reading;
    input->loader = options;
    need_ok(presto_loader_open_paths(paths, 1, input, &loader, &err), &err);
    for (; (status = presto_loader_next(loader, &batch, &err)) == PRESTO_OK; rows += batch->rows)
        presto_batch_release(batch);
    NEED(status == PRESTO_END && rows == 20, "%d, %ju rows", status, (uintmax_t)rows);
    presto_loader_stats *stats = fresh(sizeof *stats);
    presto_loader_get_stats(loader, stats);
    CHECK_FILLED(presto_loader_stats, stats);
    NEED(stats->samples == 20 && stats->batches == 3, "%ju", (uintmax_t)stats->samples);
    presto_verdict *verdict = fresh(sizeof *verdict);
    presto_loader_verdict(loader, verdict);
    CHECK_FILLED(presto_verdict, verdict);
    NEED(presto_stage_name(verdict->stage)[0] != '?', "%d", verdict->stage);
    presto_step_stats step = presto_loader_step_stats(loader, 0);
    NEED(step.struct_bytes == sizeof step && step.samples == 20, "%ju", (uintmax_t)step.samples);
    presto_loader_free(loader);
    free(stats);
    free(verdict);

    presto_stream *stream = fresh(sizeof *stream);
    need_ok(presto_stream_open(paths, 1, input, stream, &err), &err);
    CHECK_FILLED(presto_stream, stream);
    need_ok(presto_loader_open_stream(stream, options, &loader, &err), &err);
    need_ok(presto_loader_next(loader, &batch, &err), &err);
    NEED(batch->rows == 8, "%zu rows", batch->rows);
    presto_buffer state = {0};
    need_ok(presto_loader_save_state(loader, &state, &err), &err);
    need_ok(presto_loader_load_state(presto_buffer_span(&state), stream->source, options, &err),
            &err);
    NEED(options->range.first_sample == 8, "%ju", (uintmax_t)options->range.first_sample);
    check_untouched(options, sizeof *options, "presto_loader_options");
    presto_buffer_done(&state);
    presto_batch_release(batch);
    presto_loader_free(loader);
#ifdef HAS_MADE_UP
    double *const made_up[] = {&options->made_up,        &options->order.made_up,
                               &options->range.made_up,  &options->cache.made_up,
                               &options->errors.made_up, &options->memory.made_up};
    for (size_t i = 0; i < sizeof made_up / sizeof *made_up; i++) {
        *made_up[i] = 1;
        NEED(presto_loader_open_stream(stream, options, &loader, &err) == PRESTO_ERR_UNSUPPORTED,
             "option %zu that nobody knows", i);
        *made_up[i] = 0;
    }
#endif
    options->struct_bytes = 0;
    NEED(presto_loader_open_stream(stream, options, &loader, &err) == PRESTO_ERR_ARGUMENT,
         "options that nobody has set");
    presto_stream_close(stream);
    CHECK_FILLED(presto_stream, stream);
    NEED(stream->source == NULL, "closed");
    free(stream);
    free(options);
    free(reading);
    free(input);
}

static void check_records(const char *const *paths, const char *copy) {
    presto_error err;
    presto_convert_result *converted = fresh(sizeof *converted);
    presto_verify_result *verified = fresh(sizeof *verified);
    presto_info *info = fresh(sizeof *info);
    presto_dataset *dataset;
    MAKE(presto_convert_options, convert);
    MAKE(presto_verify_options, verify);
    convert->dir = copy;
    MAKE(presto_info_options, looking);
    MAKE(presto_shard_options, shard);
    need_ok(presto_convert(paths, 1, convert, converted, &err), &err);
    CHECK_FILLED(presto_convert_result, converted);
    NEED(converted->samples == 20, "%ju samples", (uintmax_t)converted->samples);
    memset(verified, 0, sizeof *verified);
    need_ok(presto_verify_paths(&copy, 1, verify, verified, &err), &err);
    need_ok(presto_verify_paths(&copy, 1, verify, verified, &err), &err);
    CHECK_FILLED(presto_verify_result, verified);
    NEED(verified->records == 40 && verified->faults == 0, "%ju", (uintmax_t)verified->records);
    need_ok(presto_info_collect(&copy, 1, looking, info, &err), &err);
    CHECK_FILLED(presto_info, info);
    NEED(info->records == 20 && info->file_count > 0, "%ju", (uintmax_t)info->records);
    presto_info_done(info);
    NEED(info->features == NULL && info->feature_count == 0, "done");
    need_ok(presto_dataset_open(&copy, 1, shard, &dataset, &err), &err);

    presto_shard *one;
    presto_repair_result *repaired = fresh(sizeof *repaired);
    char other[4096];
    MAKE(presto_repair_options, repair);
    need_ok(presto_shard_open(presto_dataset_shard_path(dataset, 0), shard, &one, &err), &err);
    presto_shard_free(one);
    snprintf(other, sizeof other, "%s.repaired", copy);
    need_ok(
        presto_repair_file(presto_dataset_shard_path(dataset, 0), other, repair, repaired, &err),
        &err);
    CHECK_FILLED(presto_repair_result, repaired);
    NEED(repaired->records > 0 && repaired->records <= 20, "%ju", (uintmax_t)repaired->records);
    presto_dataset_free(dataset);
    free(converted);
    free(verified);
    free(info);
    free(repaired);
    free(convert);
    free(verify);
    free(looking);
    free(shard);
    free(repair);
}

static void check_strategy(const char *path) {
    presto_error err;
    presto_strategy_file *strategy = fresh(sizeof *strategy);
    FILE *file = fopen(path, "w");
    NEED(file != NULL, "%s", path);
    fputs("schema: 1\npipeline: cv\nsplit: resized\ncodec: none\nthreads: 2\nset: [a, b]\n", file);
    fclose(file);
    need_ok(presto_strategy_load(path, strategy, &err), &err);
    CHECK_FILLED(presto_strategy_file, strategy);
    NEED(strategy->set_count == 2 && strategy->threads == 2, "%zu", strategy->set_count);
    presto_strategy_file_done(strategy);
    CHECK_FILLED(presto_strategy_file, strategy);
    NEED(strategy->set == NULL && strategy->set_count == 0, "done");
    free(strategy);
}

int main(int argc, char **argv) {
    if (argc != 3)
        return 2;
    char path[4096];
    const char *paths[] = {argv[1]};
    check_stream(paths);
    check_records(paths, argv[2]);
    snprintf(path, sizeof path, "%s.yaml", argv[2]);
    check_strategy(path);
    return 0;
}
