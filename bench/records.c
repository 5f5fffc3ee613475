/* SPDX-License-Identifier: Apache-2.0 */
/*
 * records/ against the best that can be written by hand over the same bytes, in one run: verified
 * scan, parsing, writing, codecs, opening and random access.
 *
 * The two sides of a comparison run turn by turn in short slices, for the machine's speed changes
 * by the second. Printed are, by the clock, the median and the best of each side, and the ratio of
 * the two, taken round by round: by the clock and by the processor time of the threads at work,
 * which is what remains comparable while others use the machine.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <isa-l/crc.h>
#include <libdeflate.h>
#if PRESTO_HAVE_LZ4
#include <lz4frame.h>
#endif
#if PRESTO_HAVE_SNAPPY
#include <snappy-c.h>
#endif
#if PRESTO_HAVE_ZSTD
#include <zstd.h>
#endif
#if PRESTO_HAVE_BLOSC
#include <blosc.h>
#endif

#include <presto/codec.h>
#include <presto/crc32c.h>
#include <presto/example.h>
#include <presto/rng.h>
#include <presto/shard.h>

#include "base/clock_internal.h"
#include "harness.h"

static unsigned rounds = 15;
static double file_mib = 64;
static char dir[512];
static presto_error err;

static void die(const char *what) {
    bench_need(err.status < 0 ? err.status : PRESTO_ERR_ARGUMENT, &err, what);
    abort();
}

#define MUST(expr)                                                                                 \
    do {                                                                                           \
        if ((expr) < 0)                                                                            \
            die(#expr);                                                                            \
    } while (0)

static void *must_malloc(size_t bytes) {
    void *memory = malloc(bytes);
    if (memory == NULL)
        die("malloc");
    return memory;
}

/* ---- measuring ---- */

/* Time spent: by the clock, and by the processor in this thread. */
typedef struct spent {
    uint64_t clock_ns;
    uint64_t cpu_ns;
} spent;

static spent now(void) {
    struct timespec cpu;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
    return (spent){presto__clock_ns(), (uint64_t)cpu.tv_sec * 1000000000 + (uint64_t)cpu.tv_nsec};
}

/* Add what has gone by since `start`. */
static void count_since(spent *sum, spent start) {
    spent end = now();
    sum->clock_ns += end.clock_ns - start.clock_ns;
    sum->cpu_ns += end.cpu_ns - start.cpu_ns;
}

/* What one side did, by round: nanoseconds for one unit of work. */
typedef struct series {
    double clock[BENCH_MAX_ROUNDS];
    double cpu[BENCH_MAX_ROUNDS];
    unsigned count;
} series;

static void add(series *s, spent time, double units) {
    s->clock[s->count] = (double)(time.clock_ns > 0 ? time.clock_ns : 1) / units;
    s->cpu[s->count] = (double)(time.cpu_ns > 0 ? time.cpu_ns : 1) / units;
    s->count++;
}

static double median(const double *values, unsigned count) {
    return bench_figure_of(values, count).median;
}

static double least(const double *values, unsigned count) {
    double found = values[0];
    for (unsigned i = 1; i < count; i++)
        found = values[i] < found ? values[i] : found;
    return found;
}

/* How many times as fast ours is, round by round. */
static bench_figure faster(const double *ours, const double *theirs, unsigned count) {
    double ratios[BENCH_MAX_ROUNDS] = {0};
    for (unsigned i = 0; i < count; i++)
        ratios[i] = theirs[i] / ours[i];
    return bench_figure_of(ratios, count);
}

/* The table of docs/bench.md to which print_line() adds a row; NULL: none. */
static const char *table;

/* In units of `scale` a nanosecond, with the spread of the times. */
static bench_figure speed_of(const series *s, double scale) {
    bench_figure time = bench_figure_of(s->clock, s->count);
    return (bench_figure){scale / time.median, time.spread};
}

/* A unit is a byte; `scale` turns bytes a nanosecond, which are GB/s, into `unit`. */
static void print_line(const char *name, const series *ours, const series *theirs, double scale,
                       const char *unit) {
    unsigned count = ours->count;
    bench_figure clock = faster(ours->clock, theirs->clock, count);
    bench_figure cpu = faster(ours->cpu, theirs->cpu, count);
    double best = least(ours->clock, count), their_best = least(theirs->clock, count);
    if (table != NULL) {
        char ours_in[64], theirs_in[64];
        snprintf(ours_in, sizeof ours_in, "Presto, %s", unit);
        snprintf(theirs_in, sizeof theirs_in, "by hand, %s", unit);
        bench_note(table, name, ours_in, speed_of(ours, scale));
        bench_note(table, name, theirs_in, speed_of(theirs, scale));
        bench_note(table, name, "ratio by the clock", clock);
        bench_note(table, name, "by processor time", cpu);
    }
    printf("%-30s %8.2f (%8.2f) %8.2f (%8.2f) %-5s %5.2f +-%3.0f%% %5.2f +-%3.0f%% %5.2f\n", name,
           scale / median(ours->clock, count), scale / best, scale / median(theirs->clock, count),
           scale / their_best, unit, clock.median, 100 * clock.spread, cpu.median, 100 * cpu.spread,
           their_best / best);
    fflush(stdout);
}

/* Begin the lines of the table `into`, which may be NULL. */
static void print_head(const char *into, const char *title, const char *theirs) {
    table = into;
    printf("\n%s\n%-30s %-19s %-19s %-5s %-11s %-11s %5s\n", title, "", "presto median(best)",
           theirs, "", "ratio", "by CPU", "best");
}

/* ---- threads ---- */

typedef uint64_t work_fn(void *argument, unsigned thread);

typedef struct worker {
    pthread_t thread;
    work_fn *work;
    void *argument;
    unsigned number;
    uint64_t result;
    pthread_barrier_t *start;
    uint64_t began_ns;
    spent time;
} worker;

static void *run_worker(void *argument) {
    worker *self = argument;
    pthread_barrier_wait(self->start);
    spent start = now();
    self->result = self->work(self->argument, self->number);
    count_since(&self->time, start);
    self->began_ns = start.clock_ns;
    return NULL;
}

/* What the threads' work took in all; *result_out the sum of what they returned. */
static spent run_threads(work_fn *work, void *argument, unsigned threads, uint64_t *result_out) {
    worker workers[8];
    pthread_barrier_t start;
    pthread_barrier_init(&start, NULL, threads);
    for (unsigned i = 0; i < threads; i++) {
        workers[i] = (worker){.work = work, .argument = argument, .number = i, .start = &start};
        if (pthread_create(&workers[i].thread, NULL, run_worker, &workers[i]) != 0)
            die("pthread_create");
    }
    uint64_t began = UINT64_MAX, ended = 0, result = 0;
    spent all = {0, 0};
    for (unsigned i = 0; i < threads; i++) {
        pthread_join(workers[i].thread, NULL);
        uint64_t end = workers[i].began_ns + workers[i].time.clock_ns;
        if (workers[i].began_ns < began)
            began = workers[i].began_ns;
        if (end > ended)
            ended = end;
        all.cpu_ns += workers[i].time.cpu_ns;
        result += workers[i].result;
    }
    pthread_barrier_destroy(&start);
    *result_out = result;
    all.clock_ns = ended - began;
    return all;
}

/* ---- scan ---- */

typedef struct scan_file {
    char path[600];
    uint64_t bytes;
    uint64_t records;
    size_t record_bytes;
    presto_shard *shard;
    const uint64_t
        *starts; /* where each thread's part of the file begins: first record, threads + 1 */
    const uint8_t *map;
    int fd;
    size_t buffer_bytes;
} scan_file;

static void fill(uint8_t *data, size_t bytes) {
    presto_rng rng;
    presto_rng_init(&rng, &(presto_rng_key){.seed = 3});
    for (size_t i = 0; i + 8 <= bytes; i += 8) {
        uint64_t value = presto_rng_next(&rng);
        memcpy(data + i, &value, 8);
    }
}

static void make_scan_file(scan_file *file, size_t record_bytes) {
    presto_shard_writer *writer;
    presto_shard_summary summary;
    presto_shard_writer_options options;
    uint8_t *data = must_malloc(record_bytes + 8);
    fill(data, record_bytes + 8);
    snprintf(file->path, sizeof file->path, "%s/%zu.tfrecord", dir, record_bytes);
    presto_shard_writer_options_defaults(&options);
    options.sync = false;
    file->record_bytes = record_bytes;
    file->records = (uint64_t)(file_mib * 1048576) / (record_bytes + 16) + 1;
    MUST(presto_shard_writer_open(file->path, &options, &writer, &err));
    for (uint64_t i = 0; i < file->records; i++)
        MUST(presto_shard_writer_append(writer, presto_span_of(data, record_bytes), &err));
    MUST(presto_shard_writer_finish(writer, &summary, &err));
    presto_shard_writer_free(writer);
    file->bytes = summary.stored_bytes;
    free(data);
}

static uint64_t part(uint64_t total, unsigned i, unsigned of) {
    return total / of * i + total % of * i / of;
}

static unsigned scan_threads;

static uint64_t scan_presto(void *argument, unsigned thread) {
    scan_file *file = argument;
    uint64_t first = part(file->records, thread, scan_threads);
    uint64_t end = part(file->records, thread + 1, scan_threads);
    size_t block_records = (size_t)((256 << 10) / (file->record_bytes + 16)) + 1;
    presto_block block = {0};
    uint64_t good = 0;
    while (first < end) {
        size_t count = block_records < end - first ? block_records : (size_t)(end - first);
        MUST(presto_shard_fetch(file->shard, first, count, &block, &err));
        for (size_t i = 0; i < count; i++)
            good += block.records[i].status == PRESTO_OK;
        first += count;
    }
    presto_block_done(&block);
    return good;
}

static uint32_t isal_crc(const uint8_t *data, size_t bytes) {
    return ~crc32_iscsi((unsigned char *)(uintptr_t)data, (int)bytes, ~0U);
}

static uint32_t load_u32(const uint8_t *at) {
    uint32_t value;
    memcpy(&value, at, 4);
    return value;
}

/* The loop one would write: length, its CRC, the payload's CRC. *used_out: bytes of whole records.
 */
static uint64_t check_records(const uint8_t *data, size_t bytes, size_t *used_out) {
    uint64_t good = 0;
    size_t at = 0;
    while (bytes - at >= 16) {
        uint64_t length;
        memcpy(&length, data + at, 8);
        if (load_u32(data + at + 8) != presto_crc32c_mask(isal_crc(data + at, 8)))
            die("hand-written loop: length");
        if (length > bytes - at - 16)
            break;
        if (load_u32(data + at + 12 + length) !=
            presto_crc32c_mask(isal_crc(data + at + 12, length)))
            die("hand-written loop: payload");
        good++;
        at += length + 16;
    }
    *used_out = at;
    return good;
}

static uint64_t scan_map(void *argument, unsigned thread) {
    const scan_file *file = argument;
    uint64_t frame = file->record_bytes + 16;
    uint64_t first = part(file->records, thread, scan_threads) * frame;
    uint64_t end = part(file->records, thread + 1, scan_threads) * frame;
    size_t used;
    return check_records(file->map + first, (size_t)(end - first), &used);
}

static uint64_t scan_read(void *argument, unsigned thread) {
    const scan_file *file = argument;
    uint64_t frame = file->record_bytes + 16;
    uint64_t offset = part(file->records, thread, scan_threads) * frame;
    uint64_t end = part(file->records, thread + 1, scan_threads) * frame;
    size_t capacity = ((size_t)256 << 10) + frame;
    uint8_t *buffer = must_malloc(capacity);
    size_t have = 0;
    uint64_t good = 0;
    while (offset < end) {
        size_t want = end - offset < capacity - have ? (size_t)(end - offset) : capacity - have;
        ssize_t got = pread(file->fd, buffer + have, want, (off_t)offset);
        if (got <= 0)
            die("pread");
        offset += (uint64_t)got;
        have += (size_t)got;
        size_t used;
        good += check_records(buffer, have, &used);
        memmove(buffer, buffer + used, have - used);
        have -= used;
    }
    free(buffer);
    return good;
}

/* One more round of one side. */
static void scan_once(series *s, work_fn *work, scan_file *file, unsigned threads, bool counts) {
    uint64_t good;
    scan_threads = threads;
    spent time = run_threads(work, file, threads, &good);
    if (good != file->records)
        die("scan: not all records are good");
    if (counts)
        add(s, time, (double)file->bytes);
}

static void bench_scan(size_t record_bytes) {
    scan_file file = {.bytes = 0};
    presto_shard_options options;
    presto_shard *mapped;
    make_scan_file(&file, record_bytes);
    presto_shard_options_defaults(&options);
    MUST(presto_shard_open(file.path, &options, &file.shard, &err));
    MUST(presto_shard_index(file.shard, false, NULL, &err));
    presto_shard *plain = file.shard;
    options.map = true;
    MUST(presto_shard_open(file.path, &options, &mapped, &err));
    MUST(presto_shard_index(mapped, false, NULL, &err));
    file.fd = open(file.path, O_RDONLY);
    void *map = mmap(NULL, (size_t)file.bytes, PROT_READ, MAP_SHARED, file.fd, 0);
    if (map == MAP_FAILED)
        die("mmap");
    file.map = map;
    for (unsigned threads = 1; threads <= 2; threads++) {
        series ours = {.count = 0}, ours_map = {.count = 0};
        series by_read = {.count = 0}, by_map = {.count = 0};
        for (unsigned round = 0; round <= rounds; round++) {
            bool counts = round > 0; /* the first warms up */
            file.shard = plain;
            scan_once(&ours, scan_presto, &file, threads, counts);
            scan_once(&by_read, scan_read, &file, threads, counts);
            file.shard = mapped;
            scan_once(&ours_map, scan_presto, &file, threads, counts);
            scan_once(&by_map, scan_map, &file, threads, counts);
        }
        char name[64];
        snprintf(name, sizeof name, "%zu B, %u thread%s, read", record_bytes, threads,
                 threads == 1 ? "" : "s");
        print_line(name, &ours, &by_read, 1, "GB/s");
        snprintf(name, sizeof name, "%zu B, %u thread%s, map", record_bytes, threads,
                 threads == 1 ? "" : "s");
        print_line(name, &ours_map, &by_map, 1, "GB/s");
    }
    munmap(map, (size_t)file.bytes);
    close(file.fd);
    presto_shard_free(plain);
    presto_shard_free(mapped);
    unlink(file.path);
}

/* ---- CRC ---- */

static void bench_crc(size_t bytes) {
    size_t total = (size_t)64 << 20;
    uint8_t *data = must_malloc(total);
    fill(data, total);
    series ours = {.count = 0}, isal = {.count = 0};
    uint32_t sink = 0;
    for (unsigned round = 0; round <= rounds; round++) {
        spent mine = {0, 0}, other = {0, 0}, start = now();
        for (size_t at = 0; at + bytes <= total; at += bytes)
            sink ^= presto_crc32c(0, data + at, bytes);
        count_since(&mine, start);
        start = now();
        for (size_t at = 0; at + bytes <= total; at += bytes)
            sink ^= isal_crc(data + at, bytes);
        count_since(&other, start);
        if (round == 0)
            continue;
        add(&ours, mine, (double)total);
        add(&isal, other, (double)total);
    }
    if (sink != 0)
        die("CRC: the two differ");
    char name[64];
    snprintf(name, sizeof name, "%zu B", bytes);
    print_line(name, &ours, &isal, 1, "GB/s");
    free(data);
}

/* ---- parsing ---- */

static void bench_parse(size_t tensor_bytes) {
    uint8_t *data = must_malloc(tensor_bytes);
    fill(data, tensor_bytes);
    presto_buffer one = {0}, all = {0};
    int64_t label = 7;
    presto_feature features[] = {
        {presto_span_of_text("image"),
         PRESTO_ENCODE_TENSOR,
         {.spec = {PRESTO_UINT8, 3, {1, (int64_t)tensor_bytes / 3, 3}}, .data = data}},
        {presto_span_of_text("label"),
         PRESTO_ENCODE_INT64,
         {.spec = {PRESTO_INT64, 0, {0}}, .data = &label}},
    };
    char image[] = "image", label_name[] = "label";
    presto_feature_spec specs[] = {
        {image, PRESTO_ENCODE_TENSOR, {PRESTO_UINT8, 3, {-1, -1, 3}}},
        {label_name, PRESTO_ENCODE_INT64, {PRESTO_INT64, 0, {0}}},
    };
    /* As many as fit into the cache: parsing follows the CRC, which has just read the block. */
    size_t records = (256U << 10) / (tensor_bytes + 100) + 1;
    presto_sample sample = {features, 2, 0};
    MUST(presto_example_append(&one, &sample, &err));
    for (size_t i = 0; i < records; i++)
        MUST(presto_buffer_append(&all, presto_buffer_span(&one), &err));
    series ours = {.count = 0}, walk = {.count = 0};
    presto_arena arena = {0};
    uint64_t sum = 0;
    const unsigned times = 400;
    for (unsigned round = 0; round <= rounds; round++) {
        spent mine = {0, 0}, other = {0, 0}, start = now();
        for (unsigned again = 0; again < times; again++) {
            presto_arena_reset(&arena);
            for (size_t i = 0; i < records; i++) {
                MUST(presto_example_parse(presto_span_of(all.data + i * one.bytes, one.bytes),
                                          &(presto_example_specs){.list = specs, .count = 2},
                                          &arena, &sample, &err));
                sum += *(const uint8_t *)sample.features[0].tensor.data;
            }
        }
        count_since(&mine, start);
        /* What it costs to touch the first bytes of each record at all. */
        start = now();
        for (unsigned again = 0; again < times; again++)
            for (size_t i = 0; i < records; i++)
                sum += *(volatile uint8_t *)(all.data + i * one.bytes + 40);
        count_since(&other, start);
        if (round == 0)
            continue;
        add(&ours, mine, (double)times * (double)records);
        add(&walk, other, (double)times * (double)records);
    }
    if (sum == 0)
        die("parse");
    bench_figure cpu = bench_figure_of(ours.cpu, ours.count);
    char name[64];
    snprintf(name, sizeof name, "%zu B", tensor_bytes);
    bench_note("records.parse", name, "ns by the clock", bench_figure_of(ours.clock, ours.count));
    bench_note("records.parse", name, "ns of processor time", cpu);
    printf("Example + %6zu B tensor: %5.1f ns by the clock, %5.1f +-%2.0f%% by CPU, best %5.1f "
           "(touching the record: %.1f)\n",
           tensor_bytes, median(ours.clock, ours.count), cpu.median, 100 * cpu.spread,
           least(ours.clock, ours.count), median(walk.cpu, walk.count));
    presto_arena_done(&arena);
    presto_buffer_done(&one);
    presto_buffer_done(&all);
    free(data);
}

/* ---- writing ---- */

static spent write_presto(const uint8_t *data, size_t record_bytes, uint64_t records) {
    char path[600];
    presto_shard_writer *writer;
    presto_shard_writer_options options;
    presto_shard_writer_options_defaults(&options);
    options.sync = false;
    snprintf(path, sizeof path, "%s/presto.tfrecord", dir);
    spent time = {0, 0}, start = now();
    MUST(presto_shard_writer_open(path, &options, &writer, &err));
    for (uint64_t i = 0; i < records; i++)
        MUST(presto_shard_writer_append(writer, presto_span_of(data, record_bytes), &err));
    MUST(presto_shard_writer_finish(writer, NULL, &err));
    presto_shard_writer_free(writer);
    count_since(&time, start);
    unlink(path);
    char index[700];
    snprintf(index, sizeof index, "%s.index", path);
    unlink(index);
    return time;
}

/* Frames into a buffer with one CRC a payload, and write(). */
static spent write_bare(const uint8_t *data, size_t record_bytes, uint64_t records) {
    char path[600];
    size_t capacity = ((size_t)256 << 10) + record_bytes + 16;
    uint8_t *buffer = must_malloc(capacity);
    size_t have = 0;
    snprintf(path, sizeof path, "%s/bare.tfrecord", dir);
    spent time = {0, 0}, start = now();
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    for (uint64_t i = 0; i < records; i++) {
        uint64_t length = record_bytes;
        uint8_t *at = buffer + have;
        memcpy(at, &length, 8);
        uint32_t crc = presto_crc32c_mask(isal_crc(at, 8));
        memcpy(at + 8, &crc, 4);
        memcpy(at + 12, data, record_bytes);
        crc = presto_crc32c_mask(isal_crc(at + 12, record_bytes));
        memcpy(at + 12 + record_bytes, &crc, 4);
        have += record_bytes + 16;
        if (have >= (256U << 10) || i + 1 == records) {
            if (write(fd, buffer, have) != (ssize_t)have)
                die("write");
            have = 0;
        }
    }
    close(fd);
    count_since(&time, start);
    unlink(path);
    free(buffer);
    return time;
}

static void bench_write(size_t record_bytes) {
    uint8_t *data = must_malloc(record_bytes + 8);
    fill(data, record_bytes + 8);
    uint64_t records = (uint64_t)(file_mib * 1048576) / (record_bytes + 16) + 1;
    series ours = {.count = 0}, bare = {.count = 0};
    double bytes = (double)(records * (record_bytes + 16));
    for (unsigned round = 0; round <= rounds; round++) {
        spent a = write_presto(data, record_bytes, records);
        spent b = write_bare(data, record_bytes, records);
        if (round == 0)
            continue;
        add(&ours, a, bytes);
        add(&bare, b, bytes);
    }
    char name[64];
    snprintf(name, sizeof name, "%zu B", record_bytes);
    print_line(name, &ours, &bare, 1, "GB/s");
    free(data);
}

/* ---- codecs ---- */

/*
 * The library's own calls on the same input; contexts are made once, as a careful user would, and
 * the output has the room that the library asks for: some take another path where there is more.
 */
typedef struct direct {
    const char *text;
    size_t (*bound)(size_t bytes);
    size_t (*compress)(void *state, const uint8_t *in, size_t bytes, uint8_t *out, size_t room);
    size_t (*decompress)(void *state, const uint8_t *in, size_t bytes, uint8_t *out, size_t room);
    void *(*open)(void);
} direct;

typedef struct deflaters {
    struct libdeflate_compressor *compressor;
    struct libdeflate_decompressor *decompressor;
} deflaters;

static void *deflate_open(void) {
    deflaters *state = must_malloc(sizeof *state);
    state->compressor = libdeflate_alloc_compressor(6);
    state->decompressor = libdeflate_alloc_decompressor();
    return state;
}
static size_t zlib_bound(size_t bytes) {
    return libdeflate_zlib_compress_bound(NULL, bytes);
}
static size_t gzip_bound(size_t bytes) {
    return libdeflate_gzip_compress_bound(NULL, bytes);
}
static size_t zlib_compress(void *state, const uint8_t *in, size_t bytes, uint8_t *out,
                            size_t room) {
    return libdeflate_zlib_compress(((deflaters *)state)->compressor, in, bytes, out, room);
}
static size_t zlib_decompress(void *state, const uint8_t *in, size_t bytes, uint8_t *out,
                              size_t room) {
    size_t got = 0;
    if (libdeflate_zlib_decompress(((deflaters *)state)->decompressor, in, bytes, out, room,
                                   &got) != LIBDEFLATE_SUCCESS)
        die("libdeflate");
    return got;
}
static size_t gzip_compress(void *state, const uint8_t *in, size_t bytes, uint8_t *out,
                            size_t room) {
    return libdeflate_gzip_compress(((deflaters *)state)->compressor, in, bytes, out, room);
}
static size_t gzip_decompress(void *state, const uint8_t *in, size_t bytes, uint8_t *out,
                              size_t room) {
    size_t got = 0;
    if (libdeflate_gzip_decompress(((deflaters *)state)->decompressor, in, bytes, out, room,
                                   &got) != LIBDEFLATE_SUCCESS)
        die("libdeflate");
    return got;
}
#if PRESTO_HAVE_ZSTD
typedef struct zstds {
    ZSTD_CCtx *compressor;
    ZSTD_DCtx *decompressor;
} zstds;
static void *zstd_open(void) {
    zstds *state = must_malloc(sizeof *state);
    state->compressor = ZSTD_createCCtx();
    state->decompressor = ZSTD_createDCtx();
    return state;
}
static size_t zstd1_compress(void *state, const uint8_t *in, size_t bytes, uint8_t *out,
                             size_t room) {
    return ZSTD_compressCCtx(((zstds *)state)->compressor, out, room, in, bytes, 1);
}
static size_t zstd3_compress(void *state, const uint8_t *in, size_t bytes, uint8_t *out,
                             size_t room) {
    return ZSTD_compressCCtx(((zstds *)state)->compressor, out, room, in, bytes, 3);
}
static size_t zstd_decompress(void *state, const uint8_t *in, size_t bytes, uint8_t *out,
                              size_t room) {
    return ZSTD_decompressDCtx(((zstds *)state)->decompressor, out, room, in, bytes);
}
#endif
#if PRESTO_HAVE_LZ4
static void *lz4_open(void) {
    LZ4F_dctx *state;
    LZ4F_createDecompressionContext(&state, LZ4F_VERSION);
    return state;
}
static size_t lz4_bound(size_t bytes) {
    return LZ4F_compressFrameBound(bytes, NULL);
}
static size_t lz4_compress(void *state, const uint8_t *in, size_t bytes, uint8_t *out,
                           size_t room) {
    LZ4F_preferences_t preferences = {.frameInfo.contentSize = bytes};
    (void)state;
    return LZ4F_compressFrame(out, room, in, bytes, &preferences);
}
static size_t lz4_decompress(void *state, const uint8_t *in, size_t bytes, uint8_t *out,
                             size_t room) {
    size_t used = bytes, got = room;
    if (LZ4F_decompress(state, out, &got, in, &used, NULL) != 0)
        die("LZ4F_decompress");
    return got;
}
#endif
#if PRESTO_HAVE_SNAPPY
static size_t snappy_pack(void *state, const uint8_t *in, size_t bytes, uint8_t *out, size_t room) {
    (void)state;
    snappy_compress((const char *)in, bytes, (char *)out, &room);
    return room;
}
static size_t snappy_unpack(void *state, const uint8_t *in, size_t bytes, uint8_t *out,
                            size_t room) {
    (void)state;
    snappy_uncompress((const char *)in, bytes, (char *)out, &room);
    return room;
}
#endif
#if PRESTO_HAVE_BLOSC
static size_t blosc_bound(size_t bytes) {
    return bytes + BLOSC_MAX_OVERHEAD;
}
static size_t blosc_lz4(void *state, const uint8_t *in, size_t bytes, uint8_t *out, size_t room) {
    (void)state;
    return (size_t)blosc_compress_ctx(5, BLOSC_SHUFFLE, 4, bytes, in, out, room, "lz4", 0, 1);
}
static size_t blosc_zstd(void *state, const uint8_t *in, size_t bytes, uint8_t *out, size_t room) {
    (void)state;
    return (size_t)blosc_compress_ctx(1, BLOSC_SHUFFLE, 4, bytes, in, out, room, "zstd", 0, 1);
}
static size_t blosc_unpack(void *state, const uint8_t *in, size_t bytes, uint8_t *out,
                           size_t room) {
    (void)state;
    (void)bytes;
    return (size_t)blosc_decompress_ctx(in, out, room, 1);
}
#endif

static void *nothing_to_open(void) {
    return NULL;
}

static const direct directs[] = {
    {"zlib", zlib_bound, zlib_compress, zlib_decompress, deflate_open},
    {"gzip", gzip_bound, gzip_compress, gzip_decompress, deflate_open},
#if PRESTO_HAVE_ZSTD
    {"zstd:1", ZSTD_compressBound, zstd1_compress, zstd_decompress, zstd_open},
    {"zstd", ZSTD_compressBound, zstd3_compress, zstd_decompress, zstd_open},
#endif
#if PRESTO_HAVE_LZ4
    {"lz4", lz4_bound, lz4_compress, lz4_decompress, lz4_open},
#endif
#if PRESTO_HAVE_SNAPPY
    {"snappy", snappy_max_compressed_length, snappy_pack, snappy_unpack, nothing_to_open},
#endif
#if PRESTO_HAVE_BLOSC
    {"blosc-lz4", blosc_bound, blosc_lz4, blosc_unpack, nothing_to_open},
    {"blosc-zstd", blosc_bound, blosc_zstd, blosc_unpack, nothing_to_open},
#endif
};

/* An image as a camera makes it, roughly: slopes, edges and noise, three channels. */
static void fill_image(uint8_t *data, size_t width, size_t height) {
    presto_rng rng;
    presto_rng_init(&rng, &(presto_rng_key){.seed = 11});
    for (size_t y = 0; y < height; y++)
        for (size_t x = 0; x < width; x++)
            for (size_t c = 0; c < 3; c++) {
                unsigned edge = (unsigned)((x / 40 + y / 30) % 3 * 40);
                unsigned noise = (unsigned)presto_rng_next(&rng) % 3;
                data[(y * width + x) * 3 + c] = (uint8_t)(x / 3 + y / 5 + c * 30 + edge + noise);
            }
}

/*
 * Both sides of one codec. They work in the same memory, in and out: where a buffer lies can
 * matter by a tenth.
 */
typedef struct codec_case {
    const direct *library;
    void *state;
    presto_codec *codec;
    const uint8_t *data;
    size_t bytes;
    presto_buffer packed;
    presto_arena arena;
    uint8_t *out; /* where the arena puts the record */
} codec_case;

typedef void codec_fn(codec_case *c);

static void our_compress(codec_case *c) {
    c->packed.bytes = 0;
    MUST(presto_codec_compress(c->codec, presto_span_of(c->data, c->bytes), &c->packed, &err));
}

static void their_compress(codec_case *c) {
    size_t room = c->library->bound(c->bytes);
    c->packed.bytes = c->library->compress(c->state, c->data, c->bytes, c->packed.data, room);
    if (c->packed.bytes == 0 || c->packed.bytes > room)
        die(c->library->text);
}

static void our_decompress(codec_case *c) {
    presto_span out;
    MUST(presto_codec_decompress(c->codec, presto_buffer_span(&c->packed),
                                 &(presto_codec_room){&c->arena, c->bytes}, &out, &err));
    presto_arena_reset(&c->arena);
    c->out = (uint8_t *)(uintptr_t)out.data;
}

static void their_decompress(codec_case *c) {
    if (c->library->decompress(c->state, c->packed.data, c->packed.bytes, c->out, c->bytes) !=
        c->bytes)
        die(c->library->text);
}

static spent repeat(codec_fn *work, codec_case *c, unsigned times) {
    spent time = {0, 0}, start = now();
    for (unsigned i = 0; i < times; i++)
        work(c);
    count_since(&time, start);
    return time;
}

/* Slices of about two milliseconds, the sides in changing order. */
static void compare_codec(codec_case *c, codec_fn *mine, codec_fn *other, const char *what) {
    series ours = {.count = 0}, theirs = {.count = 0};
    repeat(mine, c, 1);
    repeat(other, c, 1);
    unsigned times = 1 + (unsigned)(2000000 / (repeat(other, c, 1).cpu_ns + 100));
    double bytes = (double)c->bytes * times;
    for (unsigned round = 0; round < rounds; round++) {
        if (round % 2 == 0)
            add(&ours, repeat(mine, c, times), bytes);
        add(&theirs, repeat(other, c, times), bytes);
        if (round % 2 == 1)
            add(&ours, repeat(mine, c, times), bytes);
    }
    char name[64], column[64];
    snprintf(column, sizeof column, "%s %zu KB", what, c->bytes / 1000);
    bench_note("records.codec", c->library->text, column,
               faster(ours.clock, theirs.clock, ours.count));
    snprintf(name, sizeof name, "%s %zu KB %s", c->library->text, c->bytes / 1000, what);
    print_line(name, &ours, &theirs, 1000, "MB/s");
}

static void bench_codec(const direct *library, const uint8_t *data, size_t bytes) {
    codec_case c = {.library = library, .data = data, .bytes = bytes};
    presto_codec_spec spec;
    c.state = library->open();
    MUST(presto_buffer_reserve(&c.packed, library->bound(bytes), &err));
    MUST(presto_codec_parse(library->text, &spec, &err));
    spec.type_bytes = 4;
    MUST(presto_codec_new(&spec, &c.codec, &err));
    compare_codec(&c, our_compress, their_compress, "compress");
    our_compress(&c);
    compare_codec(&c, our_decompress, their_decompress, "decompress");
    presto_codec_free(c.codec);
    presto_buffer_done(&c.packed);
    presto_arena_done(&c.arena);
}

static void bench_variant(const char *text, const uint8_t *data, size_t bytes) {
    codec_case c = {.data = data, .bytes = bytes};
    presto_codec_spec spec;
    series pack = {.count = 0}, unpack = {.count = 0};
    MUST(presto_codec_parse(text, &spec, &err));
    spec.type_bytes = 1;
    MUST(presto_codec_new(&spec, &c.codec, &err));
    our_compress(&c);
    our_decompress(&c);
    for (unsigned round = 0; round < rounds; round++) {
        add(&pack, repeat(our_compress, &c, 1), (double)bytes);
        add(&unpack, repeat(our_decompress, &c, 8), (double)bytes * 8);
    }
    printf("%-28s %7.3f %7.0f MB/s %7.0f MB/s (best %.0f)\n", text,
           (double)bytes / (double)c.packed.bytes, 1000 / median(pack.cpu, pack.count),
           1000 / median(unpack.cpu, unpack.count), 1000 / least(unpack.cpu, unpack.count));
    bench_note("records.variants", text, "ratio",
               (bench_figure){(double)bytes / (double)c.packed.bytes, 0});
    bench_note("records.variants", text, "compress, MB/s", speed_of(&pack, 1000));
    bench_note("records.variants", text, "decompress, MB/s", speed_of(&unpack, 1000));
    presto_codec_free(c.codec);
    presto_buffer_done(&c.packed);
    presto_arena_done(&c.arena);
}

/* The predictor against blosc's bitshuffle: same samples, ratio and decoding speed. */
static void bench_variants(const uint8_t *data, size_t bytes, const char *what) {
    static const char *const texts[] = {"zstd:1",
                                        "zstd:1+delta3",
                                        "blosc-zstd:1+bitshuffle",
                                        "zstd:3",
                                        "zstd:3+delta3",
                                        "blosc-zstd:2+bitshuffle",
                                        "lz4",
                                        "lz4hc",
                                        "blosc-lz4+bitshuffle",
                                        "blosc-lz4:9+bitshuffle"};
    printf("\nvariants on %s, %zu KB records, by CPU\n%-28s %7s %12s %12s\n", what, bytes / 1000,
           "codec", "ratio", "compress", "decompress");
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        bench_variant(texts[i], data, bytes);
}

/* ---- opening and random access ---- */

/* Single records at random, both CRCs: what is picked, and the two ways to have it. */
typedef struct single_case {
    scan_file file;
    bool map;
    presto_block block;
    uint8_t *buffer;
    presto_rng rng;
} single_case;

static void single_presto(single_case *c) {
    uint64_t i = presto_rng_below(&c->rng, c->file.records);
    MUST(presto_shard_fetch(c->file.shard, i, 1, &c->block, &err));
    MUST(c->block.records[0].status);
}

/* Where the record stands is known without an index: all are of one size. */
static void single_by_hand(single_case *c) {
    size_t frame = c->file.record_bytes + PRESTO_FRAME_OVERHEAD_BYTES, used;
    uint64_t offset = presto_rng_below(&c->rng, c->file.records) * frame;
    const uint8_t *at = c->buffer;
    if (c->map)
        at = c->file.map + offset;
    else if (pread(c->file.fd, c->buffer, frame, (off_t)offset) != (ssize_t)frame)
        die("pread");
    if (check_records(at, frame, &used) != 1)
        die("hand-written loop: record");
}

static spent repeat_single(void (*one)(single_case *c), single_case *c, unsigned times) {
    spent time = {0, 0}, start = now();
    for (unsigned i = 0; i < times; i++)
        one(c);
    count_since(&time, start);
    return time;
}

static void bench_single(void) {
    enum { TIMES = 50000 };
    single_case c = {.block = {0}};
    make_scan_file(&c.file, 1024);
    c.file.fd = open(c.file.path, O_RDONLY | O_CLOEXEC);
    c.file.map = mmap(NULL, c.file.bytes, PROT_READ, MAP_SHARED, c.file.fd, 0);
    if (c.file.fd < 0 || c.file.map == MAP_FAILED)
        die("cannot map");
    c.buffer = must_malloc(c.file.record_bytes + PRESTO_FRAME_OVERHEAD_BYTES);
    presto_rng_init(&c.rng, &(presto_rng_key){.seed = 1});
    print_head("records.access", "random access to single records of 1 KiB", "hand-written");
    for (int map = 0; map < 2; map++) {
        c.map = map == 1;
        presto_shard_options options;
        presto_shard_options_defaults(&options);
        options.map = c.map;
        MUST(presto_shard_open(c.file.path, &options, &c.file.shard, &err));
        MUST(presto_shard_index(c.file.shard, false, NULL, &err));
        series ours = {.count = 0}, theirs = {.count = 0};
        for (unsigned round = 0; round < rounds; round++) {
            if (round % 2 == 0)
                add(&ours, repeat_single(single_presto, &c, TIMES), TIMES);
            add(&theirs, repeat_single(single_by_hand, &c, TIMES), TIMES);
            if (round % 2 == 1)
                add(&ours, repeat_single(single_presto, &c, TIMES), TIMES);
        }
        print_line(c.map ? "map" : "pread", &ours, &theirs, 1000, "M/s");
        presto_shard_free(c.file.shard);
    }
    presto_block_done(&c.block);
    free(c.buffer);
    munmap((void *)(uintptr_t)c.file.map, c.file.bytes);
    close(c.file.fd);
    unlink(c.file.path);
}

static void bench_access(void) {
    enum { RECORDS = 10000000 };
    char path[600];
    presto_shard *shard;
    presto_shard_writer *writer;
    presto_shard_writer_options options;
    presto_shard_writer_options_defaults(&options);
    options.sync = false;
    snprintf(path, sizeof path, "%s/many.tfrecord", dir);
    MUST(presto_shard_writer_open(path, &options, &writer, &err));
    for (int i = 0; i < RECORDS; i++)
        MUST(presto_shard_writer_append(writer, presto_span_of(&i, sizeof i), &err));
    MUST(presto_shard_writer_finish(writer, NULL, &err));
    presto_shard_writer_free(writer);
    series opened = {.count = 0};
    for (unsigned round = 0; round < rounds; round++) {
        spent time = {0, 0}, start = now();
        MUST(presto_shard_open(path, NULL, &shard, &err));
        MUST(presto_shard_index(shard, false, NULL, &err));
        count_since(&time, start);
        add(&opened, time, 1e6);
        presto_shard_free(shard);
    }
    bench_note("records.open", "10 million records", "ms",
               bench_figure_of(opened.clock, opened.count));
    printf("\nopening 10 million indexed records: median %.3f ms, best %.3f ms\n",
           median(opened.clock, opened.count), least(opened.clock, opened.count));
    unlink(path);
    bench_single();
}

static void bench_images(const char *path) {
    size_t width = 341, height = 256, bytes = width * height * 3;
    uint8_t *image = must_malloc(bytes);
    fill_image(image, width, height);
    if (path != NULL) { /* raw bytes, e.g. of a resized photo */
        FILE *in = fopen(path, "rb");
        if (in == NULL)
            die("cannot open the image");
        bytes = fread(image, 1, bytes, in);
        fclose(in);
    }
    print_head(NULL, "codecs, one record at a time", "library itself");
    for (size_t i = 0; i < sizeof directs / sizeof directs[0]; i++) {
        bench_codec(&directs[i], image, 10000);
        bench_codec(&directs[i], image, bytes);
    }
    bench_variants(image, bytes, path != NULL ? path : "a made image");
    free(image);
}

int main(int argc, char **argv) {
    static const size_t sizes[] = {100, 1024, 10240, 102400, 1048576};
    const char *what = "all", *image = NULL, *base = "/tmp";
    int option;
    while ((option = getopt(argc, argv, "r:m:o:w:i:d:")) != -1) {
        if (option == 'r')
            rounds = (unsigned)atoi(optarg);
        else if (option == 'm')
            file_mib = atof(optarg);
        else if (option == 'o')
            bench_figures_to(optarg);
        else if (option == 'w')
            what = optarg;
        else if (option == 'i')
            image = optarg;
        else if (option == 'd')
            base = optarg;
        else
            return fprintf(stderr,
                           "usage: records [-r ROUNDS] [-m FILE_MIB] [-d DIR] [-i RAW_IMAGE] "
                           "[-w scan|crc|parse|write|codec|access|all] [-o FIGURES]\n"),
                   2;
    }
    if (rounds < 1 || rounds > BENCH_MAX_ROUNDS)
        rounds = 15;
    bool all = strcmp(what, "all") == 0;
    bench_make_folder(base);
    snprintf(dir, sizeof dir, "%s/presto-bench-XXXXXX", base);
    if (mkdtemp(dir) == NULL)
        die("mkdtemp");
    if (all || strcmp(what, "scan") == 0) {
        print_head("records.scan", "verified scan of page-cached files", "hand-written");
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
            bench_scan(sizes[i]);
    }
    if (all || strcmp(what, "crc") == 0) {
        print_head("records.crc", "CRC-32C, memory read once", "ISA-L");
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
            bench_crc(sizes[i]);
    }
    if (all || strcmp(what, "parse") == 0) {
        printf("\nparsing to a tensor's view, a record\n");
        bench_parse(99);
        bench_parse(9999);
        bench_parse(99999);
    }
    if (all || strcmp(what, "write") == 0) {
        print_head("records.write", "writing", "buffer, CRC, write()");
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
            bench_write(sizes[i]);
    }
    if (all || strcmp(what, "codec") == 0)
        bench_images(image);
    if (all || strcmp(what, "access") == 0)
        bench_access();
    char command[600];
    snprintf(command, sizeof command, "rm -rf '%s'", dir);
    return system(command) == 0 ? 0 : 1;
}
