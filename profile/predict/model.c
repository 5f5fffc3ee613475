/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the model's parts to a strategy's rate, time and storage.
 *
 * A worker computes for c seconds a sample and waits for storage for q. How far the two overlap is
 * the exponent p of (c^p + q^p)^(1/p): 1 is one after the other, a large one is the longer of both.
 * T workers so deliver T / that. Storage, memory and the thread that hands out batches are shared:
 * each has a rate that no number of workers exceeds. Where two limits are close, chance lets both
 * cost something: the limits are joined by a power mean with a large negative exponent, not by
 * their minimum.
 *
 * The anchors put the formula right: at one thread and at all processors, the rate is the one that
 * was measured without a codec, or in a look at a codec.
 */
#include "predict_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SHARPNESS 12
/* With a processor for each thread, a strategy that needs more than there are is so many times as
 * fast. */
#define ELSEWHERE 1.1
/* What is left at least, relative, where a dataset has fewer files than the anchor. */
#define FEWER_LEAST 0.5
/* What the loader reads at a time; several threads take turns in a shard, so each is a read. */
#define PART_BYTES ((double)(1 << 20))
#define PART_SAMPLES 1024.0

const char *presto_sweep_bound_name(presto_sweep_bound bound) {
    static const char *const names[] = {"unknown", "cores",    "storage", "storage reads",
                                        "memory",  "handover", "consumer"};
    size_t i = (size_t)bound;
    return names[i < sizeof names / sizeof *names ? i : 0];
}

/* ---- finding ---- */

static const presto__model_split *find_split(const presto__model *model, const char *name) {
    for (size_t i = 0; i < model->split_count; i++)
        if (strcmp(model->splits[i].name, name) == 0)
            return model->splits[i].known == PRESTO__SPLIT_MEASURED ? &model->splits[i] : NULL;
    return NULL;
}

static const presto__model_codec *find_codec(const presto__model *model,
                                             const presto__model_split *split, const char *codec) {
    if (split == NULL || (codec == NULL) != split->is_raw)
        return NULL;
    size_t i = 0;
    while (!split->is_raw && i < model->codec_count && strcmp(model->codecs[i], codec) != 0)
        i++;
    if (!split->is_raw && i == model->codec_count)
        return NULL;
    return split->codecs[i].is_known ? &split->codecs[i] : NULL;
}

/* ---- rates ---- */

/* A strategy in figures. */
typedef struct load {
    const presto__model *model;
    const presto__model_split *split;
    const presto__model_codec *codec;
    double threads; /* at least 1 */
    double shards;  /* 0: as many as its anchor has */
    presto__conditions conditions;
} load;

/* Between one thread and all processors; beyond these as with all. */
static double at_threads(const load *what, presto__pair pair) {
    if (what->model->cores <= 1)
        return pair.one;
    double part = (what->threads - 1) / (what->model->cores - 1.0);
    return pair.one + (pair.all - pair.one) * fmin(part, 1);
}

static double share(double amount, double rate) {
    return rate > 0 ? amount / rate : 0;
}

/* Reads from storage: a thread that goes on where it stopped needs no new one. */
static double reads_of(const load *what) {
    if (what->split->is_raw)
        return what->split->reads;
    if (what->threads < 2)
        return 0;
    double bytes = fmax(what->codec->stored_bytes, 1);
    return 1 / fmin(fmax(PART_BYTES / bytes, 1), PART_SAMPLES);
}

/* What a worker waits for a storage that it has to itself, if it reads so many bytes. */
static double alone_seconds(const load *what, const presto_storage *storage, double bytes) {
    double opens = what->split->is_raw ? what->split->reads : 0;
    return share(bytes, storage->bytes_per_s_per_thread) + reads_of(what) * storage->latency_s +
           opens * storage->open_s;
}

/* As it waited here, for another storage. */
static double storage_seconds(const load *what) {
    double stored = what->codec->stored_bytes;
    double before = alone_seconds(what, &what->model->storage, stored);
    double after = alone_seconds(what, &what->conditions.storage, stored);
    double waited = at_threads(what, what->codec->wait_s);
    if (before <= 0)
        return after > 0 ? after : waited;
    return waited * after / before;
}

typedef struct limit {
    double rate; /* infinite: it is none */
    presto_sweep_bound bound;
} limit;

static limit limit_of(double seconds, presto_sweep_bound bound) {
    return (limit){seconds > 0 ? 1 / seconds : INFINITY, bound};
}

static double join(const limit *limits, size_t count, presto_sweep_bound *bound_out) {
    size_t least = 0;
    for (size_t i = 1; i < count; i++)
        if (limits[i].rate < limits[least].rate)
            least = i;
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += pow(limits[least].rate / limits[i].rate, SHARPNESS);
    *bound_out = limits[least].bound;
    return limits[least].rate * pow(sum, -1.0 / SHARPNESS);
}

/* The workers' own rate: threads that compute and wait, on so many processors. */
static limit workers_limit(const load *what, double computing, double waiting) {
    unsigned cores = what->conditions.cores;
    double overlap = what->model->overlap;
    double larger = fmax(computing, waiting);
    double cycle = larger * pow(pow(computing / larger, overlap) + pow(waiting / larger, overlap),
                                1 / overlap);
    limit workers = limit_of(cycle / what->threads,
                             waiting > computing ? PRESTO_BOUND_STORAGE : PRESTO_BOUND_CORES);
    if (cores == 0 || cores >= what->threads)
        return workers;
    limit both[] = {workers, limit_of(computing / cores, PRESTO_BOUND_CORES)};
    /* Waiting threads leave the processors to others; without waiting both limits are one. */
    if (waiting <= 0)
        return both[1];
    limit joined;
    joined.rate = join(both, 2, &joined.bound);
    return joined;
}

/* What is shared limits all threads together. */
static double formula(const load *what, bool is_cold, presto_sweep_bound *bound_out) {
    const presto__model_split *split = what->split;
    const presto_storage *storage = &what->conditions.storage;
    double stored = what->codec->stored_bytes;
    double computing = at_threads(what, what->codec->times.cached_s);
    double waiting = 0;
    if (is_cold) {
        computing += split->cold_cpu_s_per_byte * stored;
        waiting = storage_seconds(what);
    }
    const limit limits[] = {
        workers_limit(what, computing, waiting),
        limit_of(is_cold ? share(stored, storage->bytes_per_s) : 0, PRESTO_BOUND_STORAGE),
        limit_of(is_cold ? share(reads_of(what), storage->reads_per_s) : 0,
                 PRESTO_BOUND_STORAGE_READS),
        limit_of(share(split->touched_bytes, what->model->memory_bytes_per_s.all),
                 PRESTO_BOUND_MEMORY),
        limit_of(split->handover_s, PRESTO_BOUND_HANDOVER),
    };
    return join(limits, sizeof limits / sizeof *limits, bound_out);
}

/* Of the anchor that stands for so many threads. */
static double usual_files(const load *what) {
    return what->model->shards > 0 ? (double)what->model->shards
                                   : fmin(what->threads, what->model->cores);
}

/* Files that it has more than that. Fewer are negative. */
static double more_files(const load *what) {
    return what->shards > 0 && !what->split->is_raw ? what->shards - usual_files(what) : 0;
}

/* Of the whole source where starts are known apart, else of a trial. */
static double epoch_samples(const load *what) {
    return what->split->is_apart ? (double)what->model->source_samples
                                 : (double)what->model->samples;
}

/* What a storage that is played makes the threads of an epoch wait while files are opened. */
static double opening_seconds(const load *what, const presto_storage *storage, double threads,
                              double files, double each_s) {
    double bytes = fmax(what->codec->stored_bytes, 1);
    const presto__waiting epoch = {.storage = storage,
                                   .is_rough = true,
                                   .stored_bytes = what->codec->stored_bytes,
                                   .worker_s = at_threads(what, what->codec->times.cached_s),
                                   .threads = threads,
                                   .files = files,
                                   .samples = epoch_samples(what),
                                   .part_samples =
                                       fmin(fmax(floor(PART_BYTES / bytes), 1), PART_SAMPLES),
                                   .each_s = each_s};
    return presto__files_cost_of(&epoch).seconds;
}

/* Of all its files; those of the anchor are part of its start. */
static double played_files_seconds(const load *what, double each_s) {
    if (what->split->is_raw)
        return 0;
    double usual = usual_files(what), files = what->shards > 0 ? what->shards : usual;
    double threads = fmin(what->threads, what->model->cores);
    double anchor_s = each_s * what->threads / threads;
    return opening_seconds(what, &what->conditions.storage, what->threads, files, each_s) -
           opening_seconds(what, &what->model->storage, threads, usual, anchor_s);
}

/* What they cost an epoch whose samples take so long. The first read of each waits for storage. */
static double files_seconds(const load *what, bool is_cold, double each_s) {
    const presto__model_files *files = &what->split->files;
    if (is_cold && what->model->is_storage_given && what->split->is_apart)
        return played_files_seconds(what, each_s);
    double file_s = at_threads(what, is_cold ? files->cold_s : files->cached_s);
    double longer_s = what->conditions.storage.latency_s - what->model->storage.latency_s;
    if (is_cold)
        file_s = fmax(file_s + longer_s / what->threads, 0);
    return more_files(what) * file_s;
}

static double rate_of(const load *what, bool is_cold, presto_sweep_bound *bound_out) {
    const presto__model_codec *codec = what->codec;
    double rate = formula(what, is_cold, bound_out);
    rate *= at_threads(what, is_cold ? codec->cold_anchor : codec->cached_anchor);
    /* Each cold epoch of a trial is one by itself; cached ones follow one another. */
    double samples = epoch_samples(what);
    if (samples > 0) {
        double epoch_s = samples / rate + files_seconds(what, is_cold, 1 / rate);
        epoch_s += is_cold ? at_threads(what, what->split->start_s) : 0;
        rate = samples / fmax(epoch_s, FEWER_LEAST * samples / rate);
    }
    rate *= is_cold ? codec->cold_factor : codec->cached_factor;
    double most = what->conditions.consumer_samples_per_s;
    if (most <= 0 || rate <= most)
        return rate;
    *bound_out = PRESTO_BOUND_CONSUMER;
    return most;
}

/* Only computing: batching, and the steps from the first random one on. */
static double memory_rate(const load *what) {
    const presto__model_cache *cache = &what->model->cache;
    double worker_s = at_threads(what, cache->worker_s);
    double most = what->conditions.consumer_samples_per_s;
    if (cache->samples == 0 || !(worker_s > 0))
        return NAN;
    unsigned cores = what->conditions.cores;
    double threads = cores > 0 ? fmin(what->threads, cores) : what->threads;
    double rate = threads / worker_s;
    return most > 0 ? fmin(rate, most) : rate;
}

presto__conditions presto__model_conditions(const presto__model *model) {
    return (presto__conditions){.storage = model->storage};
}

static bool find_load(const presto__model *model, const presto_strategy *strategy, load *out) {
    out->model = model;
    out->split = find_split(model, strategy->stored);
    out->codec = find_codec(model, out->split, strategy->codec);
    out->threads = strategy->threads > 0 ? strategy->threads : 1;
    out->shards = (double)strategy->shards;
    return out->codec != NULL;
}

/* Threads that wait for storage leave the processors to others, however many they are. Only those that
 * compute at once need as many. */
static bool choose_cores(load *what) {
    if (what->threads <= what->model->cores)
        return false;
    presto_sweep_bound bound;
    double with_all = rate_of(what, true, &bound);
    what->conditions.cores = what->model->cores;
    if (with_all <= ELSEWHERE * rate_of(what, true, &bound))
        return false;
    what->conditions.cores = 0;
    return true;
}

bool presto__model_rates(const presto__model *model, const presto_strategy *strategy,
                         const presto__conditions *conditions, presto__rates *rates_out) {
    load what;
    if (!find_load(model, strategy, &what))
        return false;
    what.conditions = conditions != NULL ? *conditions : presto__model_conditions(model);
    rates_out->is_elsewhere = false;
    if (what.conditions.cores == 0)
        rates_out->is_elsewhere = choose_cores(&what);
    rates_out->cold_samples_per_s = rate_of(&what, true, &rates_out->cold_bound);
    rates_out->cached_samples_per_s = rate_of(&what, false, &rates_out->cached_bound);
    rates_out->memory_samples_per_s = memory_rate(&what);
    return true;
}

/* ---- offline ---- */

bool presto__model_offline(const presto__model *model, const presto_strategy *strategy,
                           uint64_t samples, presto__offline *offline_out) {
    load what;
    if (!find_load(model, strategy, &what))
        return false;
    const presto__model_split *split = what.split;
    double count = (double)samples * split->records;
    *offline_out = (presto__offline){.stored_bytes = what.codec->stored_bytes * count,
                                     .raw_bytes = split->raw_bytes * count,
                                     .list_s = split->list_s};
    if (split->is_raw)
        return true;
    double computing =
        at_threads(&what, split->prepare_s) + at_threads(&what, what.codec->compress_s);
    double writing = split->prepare_io_s * what.codec->stored_bytes / fmax(split->plain_bytes, 1);
    double writing_s =
        count * (computing / what.threads + writing) * what.codec->preparation_factor;
    double files_s = more_files(&what) * split->files.prepare_s;
    offline_out->preparation_s = split->list_s + fmax(writing_s + files_s, FEWER_LEAST * writing_s);
    return true;
}

/* ---- life ---- */

void presto__model_free(presto__model *model) {
    if (model == NULL)
        return;
    for (size_t i = 0; i < model->split_count; i++) {
        const presto__model_split *split = &model->splits[i];
        for (size_t c = 0; split->codecs != NULL && c < model->codec_count; c++)
            free(split->codecs[c].failure);
        free(model->splits[i].parts);
        free(model->splits[i].codecs);
    }
    free(model->splits);
    free((void *)model->codecs);
    free(model->steps);
    free(model);
}
