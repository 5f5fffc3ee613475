/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The image pipeline against bare loops, on the demo corpus and in one run:
 *
 *   - a verified record scan against plain read() of the same file;
 *   - the loader at each representation, once with samples only counted and once with batches delivered,
 *     against a loop written by hand on the same threads: pread of each payload, libjpeg-turbo, the
 *     same resize kernel, center, crop; no CRC, no parsing, no order, no batches.
 *
 * There are three such loops: in the pipeline's order; fused by hand (crop before centering); and,
 * where records are read, the same job as the loader's: fused, with each record's CRC, into two
 * batches in turn.
 *
 * Usage: bench_images [-n PHOTOS=300] [-t THREADS=2] [-r ROUNDS=7] [-s STORED] [-w WORK_DIR]
 *                     [-o FIGURES] [PHOTO_DIR]
 */
#include "images.h"
#include "base/tensor_internal.h"
#include "loader/loader_internal.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <presto/convert.h>
#include <presto/example.h>

static const char *const level_names[] = {PRESTO_UNPROCESSED, "concatenated", "decoded", "resized",
                                          "pixel-centered"};

/* ---- presto ---- */

static double run_presto(void *user) {
    const images_work *w = user;
    presto_error err;
    presto_stream stream;
    presto_stream_options how;
    presto_stream_options_defaults(&how);
    if (w->level == IMAGES_FILES)
        how.pipeline = "cv";
    bench_need(presto_stream_open(&w->dir, 1, &how, &stream, &err), &err, "open");
    presto_loader_options options;
    presto_loader_options_defaults(&options);
    options.threads = w->threads;
    options.batch_samples = IMAGES_BATCH;
    options.output = w->output;
    options.range.limit_samples = w->settings->photos * w->passes;
    options.range.epochs = w->passes;
    presto_loader *loader;
    bench_need(presto__loader_open(stream.source, stream.plan, &options, &loader, &err), &err,
               "load");
    presto_batch *batch;
    uint64_t samples = 0;
    presto_status status;
    while ((status = presto_loader_next(loader, &batch, &err)) == PRESTO_OK) {
        samples += batch->rows;
        presto_batch_release(batch);
    }
    bench_need(status, &err, "next batch");
    presto_loader_free(loader);
    presto_stream_close(&stream);
    return (double)samples;
}

/* ---- preparation ---- */

static void prepare_dataset(const images_settings *set, const char *stored, const char *dir) {
    presto_error err;
    presto_pipeline *pipeline;
    bench_need(presto_pipeline_load("cv", NULL, &pipeline, &err), &err, "pipeline");
    presto_convert_options options;
    presto_convert_options_defaults(&options);
    options.up_to = stored;
    options.threads = set->threads;
    options.shards = 1;
    options.limit_samples = set->photos;
    options.sync = false;
    options.pipeline = pipeline;
    options.dir = dir;
    presto_convert_result result;
    bench_need(presto_convert(&set->source, 1, &options, &result, &err), &err, dir);
    presto_pipeline_free(pipeline);
}

/* Where the JPEG or the tensor's content stands in each record, found once with the library. */
static void list_items(images_work *w) {
    presto_error err;
    presto_dataset *dataset;
    bench_need(presto_dataset_open(&w->dir, 1, NULL, &dataset, &err), &err, w->dir);
    const presto_dataset_info *info = presto_dataset_get_info(dataset);
    presto_shard *shard;
    bench_need(presto_dataset_shard_at(dataset, 0, &shard, &err), &err, w->dir);
    w->item_count = presto_dataset_records(dataset);
    w->items = calloc(w->item_count, sizeof *w->items);
    int fd = open(presto_shard_path(shard), O_RDONLY | O_CLOEXEC);
    if (w->items == NULL || fd < 0)
        bench_die("%s: cannot list", w->dir);
    presto_block block = {0};
    presto_arena arena = {0};
    for (size_t i = 0; i < w->item_count; i++) {
        presto_sample sample;
        bench_need(presto_shard_fetch(shard, i, 1, &block, &err), &err, "fetch");
        presto_span payload = block.records[0].payload;
        bench_need(presto_example_parse(payload,
                                        &(presto_example_specs){.list = info->features,
                                                                .count = info->feature_count},
                                        &arena, &sample, &err),
                   &err, "parse");
        size_t at = presto__sample_find(&sample, presto_span_of_text(info->main_feature));
        const presto_tensor *tensor = &sample.features[at].tensor;
        bool is_text = tensor->spec.dtype == PRESTO_STRING;
        presto_span content = is_text ? tensor->strings[0]
                                      : presto_span_of(tensor->data, presto_tensor_bytes(tensor));
        w->items[i] = (images_item){
            .fd = fd,
            .offset = block.records[0].offset + PRESTO_FRAME_HEADER_BYTES +
                      (uint64_t)(content.data - payload.data),
            .bytes = content.bytes,
            .before = (size_t)(content.data - payload.data),
            .after = payload.bytes - (size_t)(content.data - payload.data) - content.bytes,
            .dims = {is_text ? 0 : tensor->spec.dims[0], is_text ? 0 : tensor->spec.dims[1]},
        };
        presto_arena_reset(&arena);
    }
    presto_arena_done(&arena);
    presto_block_done(&block);
    presto_dataset_free(dataset);
}

/* The files in the order of the source: the keys of the concatenated dataset. */
static void list_files(images_work *w, const char *concatenated, const char *photos) {
    presto_error err;
    presto_dataset *dataset;
    bench_need(presto_dataset_open(&concatenated, 1, NULL, &dataset, &err), &err, concatenated);
    presto_shard *shard;
    bench_need(presto_dataset_shard_at(dataset, 0, &shard, &err), &err, concatenated);
    w->item_count = presto_dataset_records(dataset);
    w->items = calloc(w->item_count, sizeof *w->items);
    if (w->items == NULL)
        bench_die("no memory");
    presto_block block = {0};
    presto_arena arena = {0};
    for (size_t i = 0; i < w->item_count; i++) {
        presto_sample sample;
        bench_need(presto_shard_fetch(shard, i, 1, &block, &err), &err, "fetch");
        bench_need(presto_example_parse(block.records[0].payload, NULL, &arena, &sample, &err),
                   &err, "parse");
        size_t at = presto__sample_find(&sample, presto_span_of_text("key"));
        presto_span key = sample.features[at].tensor.strings[0];
        size_t bytes = strlen(photos) + key.bytes + 2;
        w->items[i] = (images_item){.path = malloc(bytes), .fd = -1};
        if (w->items[i].path == NULL)
            bench_die("no memory");
        snprintf(w->items[i].path, bytes, "%s/%.*s", photos, (int)key.bytes,
                 (const char *)key.data);
    }
    presto_arena_done(&arena);
    presto_block_done(&block);
    presto_dataset_free(dataset);
}

/* `cases`: those of bench_level(); `has_same_job`: its last one was run, too. */
static void note_level(const char *stored, unsigned threads, const bench_case *cases,
                       bool has_same_job) {
    static const struct {
        const char *name;
        int over, under;
    } ratios[] = {{"counting / bare", 2, 0},
                  {"batches / bare", 3, 0},
                  {"batches / fused", 3, 1},
                  {"batches / same job", 3, 4}};
    for (size_t i = 0; i < sizeof ratios / sizeof *ratios; i++) {
        if (ratios[i].under == 4 && !has_same_job)
            continue;
        const bench_case *over = &cases[ratios[i].over], *under = &cases[ratios[i].under];
        char column[64];
        snprintf(column, sizeof column, "%s, %u thread%s", ratios[i].name, threads,
                 threads == 1 ? "" : "s");
        bench_note("images.clock", stored, column, bench_compare(over, under));
        bench_note("images.cpu", stored, column, bench_compare_cpu(over, under));
    }
}

static void bench_level(const images_settings *set, images_level at, const char *dir,
                        const char *concatenated, unsigned threads) {
    if (set->stored != NULL && strcmp(set->stored, level_names[at]) != 0)
        return;
    static images_work bare, fused, same, ours, batches;
    static const unsigned passes[] = {10, 10, 20, 20, 20};
    bare = (images_work){
        .settings = set, .level = at, .threads = threads, .dir = dir, .passes = passes[at]};
    if (at == IMAGES_FILES)
        list_files(&bare, concatenated, dir);
    else
        list_items(&bare);
    fused = bare;
    fused.fused = true;
    same = fused;
    same.same_job = true;
    ours = bare;
    ours.output = PRESTO_OUTPUT_COUNT;
    batches = bare;
    batches.output = PRESTO_OUTPUT_BATCHES;
    bench_case cases[] = {
        {.name = "bare loop, the pipeline's order", .run = images_run_bare, .user = &bare},
        {.name = "bare loop, crop before centering", .run = images_run_bare, .user = &fused},
        {.name = "presto, counting", .run = run_presto, .user = &ours},
        {.name = "presto, batches of 32", .run = run_presto, .user = &batches},
        {.name = "bare loop, the same job", .run = images_run_bare, .user = &same},
    };
    size_t count = at == IMAGES_FILES ? 4 : 5; /* files have no CRC */
    bench_run(cases, count, set->rounds);
    char title[128];
    snprintf(title, sizeof title, "%s, %u thread%s", level_names[at], threads,
             threads == 1 ? "" : "s");
    bench_print(title, cases, count, 1, "samples/s");
    note_level(level_names[at], threads, cases, at != IMAGES_FILES);
    if (at != IMAGES_FILES) {
        bench_figure clock = bench_compare(&cases[3], &cases[4]);
        bench_figure cpu = bench_compare_cpu(&cases[3], &cases[4]);
        printf("  batches / same job: %.2f +-%.0f%%, by CPU %.2f +-%.0f%%\n", clock.median,
               clock.spread * 100, cpu.median, cpu.spread * 100);
    }
    for (size_t i = 0; i < bare.item_count; i++)
        free(bare.items[i].path);
    if (at != IMAGES_FILES)
        close(bare.items[0].fd);
    free(bare.items);
}

/* ---- the scan ---- */

typedef struct scan {
    presto_shard *shard;
    presto_block block;
    uint8_t *buffer;
} scan;

static double run_read(void *user) {
    scan *s = user;
    int fd = open(presto_shard_path(s->shard), O_RDONLY | O_CLOEXEC);
    double bytes = 0;
    for (ssize_t got; (got = read(fd, s->buffer, (size_t)256 << 10)) > 0;)
        bytes += (double)got;
    close(fd);
    return bytes;
}

static double run_scan(void *user) {
    scan *s = user;
    uint64_t records = presto_shard_records(s->shard);
    presto_error err;
    for (uint64_t first = 0; first < records; first += 4) {
        size_t count = records - first < 4 ? (size_t)(records - first) : 4;
        bench_need(presto_shard_fetch(s->shard, first, count, &s->block, &err), &err, "fetch");
        for (size_t i = 0; i < count; i++)
            bench_need(s->block.records[i].status, &err, "record");
    }
    return (double)presto_shard_file_bytes(s->shard);
}

static void bench_scan(const images_settings *set, const char *dir) {
    presto_error err;
    presto_dataset *dataset;
    bench_need(presto_dataset_open(&dir, 1, NULL, &dataset, &err), &err, dir);
    scan s = {.buffer = malloc((size_t)256 << 10)};
    bench_need(presto_dataset_shard_at(dataset, 0, &s.shard, &err), &err, dir);
    bench_case cases[] = {{.name = "read(), 256 KiB", .run = run_read, .user = &s},
                          {.name = "presto_shard_fetch, both CRCs", .run = run_scan, .user = &s}};
    bench_run(cases, 2, set->rounds);
    bench_print("verified scan of the concatenated photos, page cache, 1 thread", cases, 2, 1e9,
                "GB/s");
    bench_note("images.scan", cases[1].name, cases[0].name, bench_compare(&cases[1], &cases[0]));
    presto_block_done(&s.block);
    free(s.buffer);
    presto_dataset_free(dataset);
}

static void parse_arguments(int argc, char **argv, images_settings *set) {
    for (int option; (option = getopt(argc, argv, "n:o:t:r:s:w:")) != -1;) {
        if (option == 'n')
            set->photos = strtoull(optarg, NULL, 10);
        else if (option == 'o')
            bench_figures_to(optarg);
        else if (option == 't')
            set->threads = (unsigned)strtoul(optarg, NULL, 10);
        else if (option == 'r')
            set->rounds = (unsigned)strtoul(optarg, NULL, 10);
        else if (option == 's')
            set->stored = optarg;
        else if (option == 'w')
            set->work = optarg;
        else
            bench_die("usage: bench_images [-n PHOTOS] [-t THREADS] [-r ROUNDS] [-s STORED] "
                      "[-w WORK_DIR] [-o FIGURES] [PHOTO_DIR]");
    }
    if (set->threads < 1 || set->threads > IMAGES_MAX_THREADS || set->photos < 1)
        bench_die("threads 1 to %d, at least one photo", IMAGES_MAX_THREADS);
    set->source = optind < argc ? argv[optind] : NULL;
}

static void shell(const char *command) {
    if (system(command) != 0)
        bench_die("failed: %s", command);
}

int main(int argc, char **argv) {
    images_settings set = {.photos = 300, .threads = 2, .rounds = 7};
    parse_arguments(argc, argv, &set);
    char work_dir[] = "/tmp/presto-bench-XXXXXX";
    if (set.work == NULL && mkdtemp(work_dir) == NULL)
        bench_die("cannot make %s", work_dir);
    const char *base = set.work != NULL ? set.work : work_dir;
    bench_make_folder(base);
    char photos[1024], dirs[IMAGES_CENTERED + 1][1024];
    snprintf(photos, sizeof photos, "%s/photos", base);
    if (set.source == NULL) {
        char command[2200];
        snprintf(command, sizeof command, "\"%s\" -q -n %ju -o \"%s\"", PRESTO_CORPUS_PROGRAM,
                 (uintmax_t)set.photos, photos);
        shell(command);
        set.source = photos;
    }
    for (int at = IMAGES_CONCATENATED; at <= IMAGES_CENTERED; at++) {
        snprintf(dirs[at], sizeof dirs[at], "%s/%s", base, level_names[at]);
        prepare_dataset(&set, level_names[at], dirs[at]);
    }
    printf("%ju photos of the demo corpus, %u rounds, interleaved\n\n", (uintmax_t)set.photos,
           set.rounds);
    bench_scan(&set, dirs[IMAGES_CONCATENATED]);
    for (unsigned threads = 1; threads <= set.threads; threads++) {
        bench_level(&set, IMAGES_FILES, set.source, dirs[IMAGES_CONCATENATED], threads);
        for (int at = IMAGES_CONCATENATED; at <= IMAGES_CENTERED; at++)
            bench_level(&set, (images_level)at, dirs[at], NULL, threads);
    }
    if (set.work == NULL) {
        char command[1100];
        snprintf(command, sizeof command, "rm -rf \"%s\"", base);
        shell(command);
    }
    return 0;
}
