/* SPDX-License-Identifier: Apache-2.0 */
/* From what was measured to the model: splits from their anchors, how far reading and computing
 * overlap, and what runs of other strategies teach. */
#include "predict_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* An anchor that differs more from the formula is taken as one that was disturbed. */
#define ANCHOR_MOST 20
/* Weights of what one strategy's runs say of another: with the same split and codec on other
 * threads, the same codec, the same split, any; and of the belief that the model is right. */
#define SAME_BOTH 1
#define SAME_CODEC 0.25
#define SAME_SPLIT 0.25
#define ANY 0.1
#define BELIEF 1
#define LEAST_UNCERTAINTY 0.05
/* How reading and computing overlap: the kernel reads ahead; a storage that is played does not. */
#define OVERLAP_HERE 2.5
#define OVERLAP_PLAYED 1
/* Memory traffic: bytes are read and written when they are fetched, decoded, put into a batch. */
#define TOUCHES 2
/* In the loader, a codec costs at least so much of what it costs alone. */
#define ALONE_PART 0.8
/* Where an epoch reads as many bytes, what storage makes a worker wait grows with them: opening a
 * file, and starting to read ahead, hardly show. */
#define LONG_READ_BYTES 100e6
/* What is shared gives at least so many times what all processors were seen to take. */
#define ROOM 1.5

static double clamp(double value, double least, double most) {
    return value >= least ? fmin(value, most) : least; /* NaN: least */
}

bool presto__is_anchor(const presto_sweep *sweep, size_t i) {
    for (size_t s = 0; s < sweep->space.split_count; s++)
        if (sweep->anchors[s].at[0] == i || sweep->anchors[s].at[1] == i)
            return true;
    return false;
}

/* ---- a split ---- */

static const presto__cost *find_cost(const presto__epochs *epochs, const char *name) {
    for (size_t i = 0; i < epochs->cost_count; i++)
        if (!epochs->costs[i].is_step && strcmp(epochs->costs[i].name, name) == 0)
            return &epochs->costs[i];
    return NULL;
}

static presto_status take_parts(presto__model_split *split, const presto__epochs *run,
                                presto_error *err) {
    split->parts = calloc(run->cost_count + 1, sizeof *split->parts);
    if (split->parts == NULL)
        return presto_fail_memory(err, (run->cost_count + 1) * sizeof *split->parts);
    for (; split->part_count < run->cost_count; split->part_count++) {
        const presto__cost *cost = &run->costs[split->part_count];
        presto__model_part *part = &split->parts[split->part_count];
        memcpy(part->name, cost->name, sizeof part->name);
        part->is_step = cost->is_step;
        part->busy_s = cost->busy_s_per_sample;
    }
    return PRESTO_OK;
}

/* Seconds of a sample in a cold epoch of the sweep's sample, which the looks at codecs are compared
 * with. */
static double cold_seconds(const presto__model *model, const presto_epoch_result *cold) {
    return cold->steady_samples_per_s > 0
               ? 1 / cold->steady_samples_per_s + cold->start_s / fmax((double)model->samples, 1)
               : 1 / cold->samples_per_s.median;
}

static void take_starts(presto__model_split *split, const presto_epoch_result *one,
                        const presto_epoch_result *all) {
    split->is_apart = one->steady_samples_per_s > 0 && all->steady_samples_per_s > 0;
    if (split->is_apart) {
        split->start_s = (presto__pair){one->start_s, all->start_s};
        return;
    }
    /* A start was timed with one sample. */
    split->start_s.one = fmax(split->start_s.one - split->times.cached_s.one, 0);
    split->start_s.all = fmax(split->start_s.all - split->times.cached_s.all, 0);
}

static void take_rates(presto__model_split *split, const presto__model *model,
                       const presto__trial *one, const presto__trial *all) {
    double cores = model->cores;
    presto__worker_times *times = &split->times;
    times->cached_s.one = 1 / one->result.cached.samples_per_s.median;
    times->cached_s.all = cores / all->result.cached.samples_per_s.median;
    times->cold_s.one = cold_seconds(model, &one->result.cold);
    times->cold_s.all = cores * cold_seconds(model, &all->result.cold);
    take_starts(split, &one->result.cold, &all->result.cold);
    const presto__epochs *cached = &one->cached[0], *parallel = &all->cached[0];
    double samples = (double)cached->samples;
    split->delivered_bytes = (double)cached->delivered_bytes / samples;
    const presto__cost *reading = find_cost(cached, "reading");
    if (reading != NULL && split->plain_bytes > 0)
        split->read_s_per_byte = reading->busy_s_per_sample / split->plain_bytes;
    double cold_cpu = one->result.cold.cpu_s_per_sample - one->result.cached.cpu_s_per_sample;
    double longer_s = times->cold_s.one - times->cached_s.one;
    if (split->plain_bytes > 0)
        split->cold_cpu_s_per_byte = fmax(fmin(cold_cpu, longer_s), 0) / split->plain_bytes;
    /* Processor caches spare memory much of its traffic, and a thread that hands out batches may
     * have been interrupted: the anchor shows what is possible. */
    double most_s = times->cached_s.all / cores / ROOM;
    double inside_s = parallel->measure.wall_s - parallel->consumer_wait_s;
    split->handover_s = fmin(fmax(inside_s, 0) / (double)parallel->samples, most_s);
    split->touched_bytes =
        fmin(TOUCHES * (split->plain_bytes + split->raw_bytes + split->delivered_bytes),
             model->memory_bytes_per_s.all * most_s);
}

/* The part of a conversion that more threads do not shorten waits for storage. */
static void take_preparation(presto__model_split *split, const presto__model *model,
                             const presto__trial *one, const presto__trial *all) {
    if (split->is_raw)
        return;
    double samples = (double)one->record_bytes.count, cores = model->cores;
    const presto__preparation *by_one = &one->preparations[0], *by_all = &all->preparations[0];
    double wall_one = fmax(by_one->wall_s - by_one->list_s, 0) / samples;
    double wall_all = fmax(by_all->wall_s - by_all->list_s, 0) / samples;
    double io = fmax(wall_all - by_all->cpu_s / samples / cores, 0);
    split->list_s = fmin(by_one->list_s, by_all->list_s);
    split->prepare_io_s = fmin(io, fmin(wall_one, wall_all) * 0.9);
    split->prepare_s.one = wall_one - split->prepare_io_s;
    split->prepare_s.all = (wall_all - split->prepare_io_s) * cores;
}

static void take_sizes(presto__model_split *split, const presto__model *model,
                       const presto__trial *one) {
    const presto_strategy_result *result = &one->result;
    double samples = (double)(split->is_raw ? result->samples : one->record_bytes.count);
    split->records = samples / fmax((double)model->samples, 1);
    split->delivered = (double)result->samples / fmax((double)model->samples, 1);
    split->plain_bytes = (double)result->stored_bytes / samples;
    split->raw_bytes = (double)result->raw_bytes / samples;
    split->reads = split->is_raw ? 1 : 0;
    uint64_t all =
        presto__population_of(one->record_bytes.count, model->samples, model->source_samples);
    presto__estimate records = presto__estimate_sum(&one->record_bytes, all);
    split->record_error = records.error / records.total;
}

presto_status presto__model_take_split(presto__model *model, const presto_sweep *sweep, size_t s,
                                       presto_error *err) {
    presto__model_split *split = &model->splits[s];
    const presto__trial *one = &sweep->trials[sweep->anchors[s].at[0]];
    const presto__trial *all = &sweep->trials[sweep->anchors[s].at[1]];
    if (split->known == PRESTO__SPLIT_UNKNOWN)
        return PRESTO_OK;
    bool is_measured = presto__trial_is_alive(one) && presto__trial_is_alive(all) &&
                       one->cached_count > 0 && all->cached_count > 0;
    split->known = is_measured ? PRESTO__SPLIT_MEASURED : PRESTO__SPLIT_LOOKED_AT;
    if (!is_measured)
        return PRESTO_OK;
    take_sizes(split, model, one);
    take_rates(split, model, one, all);
    take_preparation(split, model, one, all);
    if (split->is_raw)
        split->codecs[0] = (presto__model_codec){.is_known = true,
                                                 .stored_bytes = split->plain_bytes,
                                                 .cold_factor = 1,
                                                 .cached_factor = 1,
                                                 .preparation_factor = 1};
    return split->part_count == 0 ? take_parts(split, &one->cached[0], err) : PRESTO_OK;
}

/* ---- the anchors ---- */

/* Which codec of a split, and its figures. */
typedef struct coded {
    presto__model *model;
    presto__model_split *split;
    presto__model_codec *codec;
    const char *name; /* NULL: the split is raw */
} coded;

static bool is_plain(const coded *what) {
    return what->name == NULL || strcmp(what->name, "none") == 0;
}

typedef struct figures {
    double coded_cold_s, coded_cached_s, plain_cached_s; /* of the records that were loaded */
    double anchor_cached_s, start_s, decompress_s;
    double threads;
} figures;

/* A cold epoch does all that a cached one does: a cached look that took longer was disturbed. */
static presto__worker_times without_disturbed(presto__worker_times looks) {
    looks.cached_s.one = fmin(looks.cached_s.one, looks.cold_s.one);
    looks.cached_s.all = fmin(looks.cached_s.all, looks.cold_s.all);
    return looks;
}

/* What some records say of all: what the codec costs, and what storage makes them wait, grows with
 * their sizes; what else is done is as in the anchor. Each epoch has one start. Where the looks
 * were disturbed, the codec costs at least about as much as it does alone. */
static void scale_up(const coded *what, const figures *seen, double *cold_s, double *cached_s) {
    const presto__model_trial *tried = &what->codec->tried;
    double larger = what->split->raw_bytes / fmax(tried->raw_bytes, 1);
    double start_s = seen->start_s * seen->threads;
    double codec_s = (seen->coded_cached_s - seen->plain_cached_s) * larger;
    double wait_s = seen->coded_cold_s - seen->coded_cached_s - start_s / (double)tried->samples;
    *cached_s = seen->anchor_cached_s + fmax(codec_s, ALONE_PART * seen->decompress_s);
    *cold_s = *cached_s + wait_s * larger + start_s / (double)what->model->samples;
    *cold_s = fmax(*cold_s, *cached_s);
}

static void take_looks(const coded *what) {
    const presto__model_trial *tried = &what->codec->tried;
    const presto__worker_times looks = without_disturbed(tried->coded);
    const presto__pair cold_s = looks.cold_s, cached_s = looks.cached_s;
    const presto__pair anchor_s = what->split->times.cached_s, start_s = what->split->start_s;
    const presto__pair alone_s = what->codec->decompress_s;
    presto__worker_times *times = &what->codec->times;
    *times = looks;
    if (tried->samples >= what->model->samples)
        return;
    const figures one = {
        cold_s.one, cached_s.one, tried->plain_cached_s.one, anchor_s.one, start_s.one, alone_s.one,
        1};
    const figures all = {cold_s.all,  cached_s.all, tried->plain_cached_s.all, anchor_s.all,
                         start_s.all, alone_s.all,  what->model->cores};
    scale_up(what, &one, &times->cold_s.one, &times->cached_s.one);
    scale_up(what, &all, &times->cold_s.all, &times->cached_s.all);
}

/* The loader did not try it, as it makes little difference: that of decompressing, and of reading
 * fewer bytes. */
static double estimate(const coded *what, double anchor_s, double decompress_s) {
    double fewer = what->split->plain_bytes - what->codec->stored_bytes;
    return fmax(anchor_s - what->split->read_s_per_byte * fewer, anchor_s / 2) + decompress_s;
}

static void estimate_times(const coded *what) {
    const presto__worker_times *anchor = &what->split->times;
    presto__pair decompress = what->codec->decompress_s;
    what->codec->times =
        (presto__worker_times){.cold_s = {estimate(what, anchor->cold_s.one, decompress.one),
                                          estimate(what, anchor->cold_s.all, decompress.all)},
                               .cached_s = {estimate(what, anchor->cached_s.one, decompress.one),
                                            estimate(what, anchor->cached_s.all, decompress.all)}};
}

/* The rate of an epoch without its start. */
static double without_start(const presto__model *model, double seconds, double threads,
                            double start_s) {
    double wall = seconds / threads;
    double start = model->samples > 0 ? start_s / (double)model->samples : 0;
    return 1 / fmax(wall - start, wall / 4);
}

/* What a worker must have waited for, so that computing and waiting come to what was measured. */
static double waiting_of(const presto__model *model, double measured_s, double computing_s) {
    double p = model->overlap;
    if (!(measured_s > computing_s))
        return 0;
    return measured_s * pow(1 - pow(computing_s / measured_s, p), 1 / p);
}

static double computing_and_waiting(const presto__model *model, double computing_s,
                                    double waiting_s) {
    double p = model->overlap;
    return pow(pow(computing_s, p) + pow(waiting_s, p), 1 / p);
}

/* Of a worker alone, or of each of all. */
typedef struct beside_anchor {
    double threads, start_s;
    double anchor_cold_s, anchor_cached_s, cached_s; /* the last one in the codec */
} beside_anchor;

/* What a worker takes for a cold sample in the codec, if it waits as the anchor did for its bytes. */
static double as_the_anchor_waited(const coded *what, const beside_anchor *with) {
    const presto__model *model = what->model;
    double plain = what->split->plain_bytes, stored = what->codec->stored_bytes;
    double cpu_s = what->split->cold_cpu_s_per_byte;
    double anchor_s =
        with->threads / without_start(model, with->anchor_cold_s, with->threads, with->start_s);
    double wait_s = waiting_of(model, anchor_s, with->anchor_cached_s + cpu_s * plain);
    wait_s *= stored / fmax(plain, 1);
    return computing_and_waiting(model, with->cached_s + cpu_s * stored, wait_s) +
           with->start_s * with->threads / (double)model->samples;
}

/* Of long epochs, a look has one or two that are cold, and these last up to a third longer or
 * shorter on a disk that others use, too. Of some of all records, epochs are so short that much of
 * a cold one is its start and its end. What the anchor waited for its bytes tells as much then:
 * both count alike. A storage that is played is always the same. */
static void weigh_with_anchor(const coded *what) {
    const presto__worker_times *anchor = &what->split->times;
    presto__worker_times *times = &what->codec->times;
    presto__pair start_s = what->split->start_s;
    double samples = (double)what->codec->tried.samples;
    bool is_part = samples < (double)what->model->samples;
    bool is_long = samples * what->codec->stored_bytes >= LONG_READ_BYTES;
    if (what->model->is_storage_given || (!is_part && !is_long))
        return;
    const beside_anchor one = {1, start_s.one, anchor->cold_s.one, anchor->cached_s.one,
                               times->cached_s.one};
    const beside_anchor all = {what->model->cores, start_s.all, anchor->cold_s.all,
                               anchor->cached_s.all, times->cached_s.all};
    times->cold_s.one = sqrt(times->cold_s.one * as_the_anchor_waited(what, &one));
    times->cold_s.all = sqrt(times->cold_s.all * as_the_anchor_waited(what, &all));
}

static void set_times(const coded *what) {
    if (is_plain(what))
        what->codec->times = what->split->times;
    else if (what->codec->tried.samples > 0) {
        take_looks(what);
        weigh_with_anchor(what);
    } else
        estimate_times(what);
}

static void set_waits(const coded *what) {
    const presto__model *model = what->model;
    const presto__worker_times *times = &what->codec->times;
    presto__pair starts = what->split->start_s;
    double cores = model->cores;
    double cpu_s = what->split->cold_cpu_s_per_byte * what->codec->stored_bytes;
    double one = 1 / without_start(model, times->cold_s.one, 1, starts.one);
    double all = cores / without_start(model, times->cold_s.all, cores, starts.all);
    what->codec->wait_s.one = waiting_of(model, one, times->cached_s.one + cpu_s);
    what->codec->wait_s.all = waiting_of(model, all, times->cached_s.all + cpu_s);
}

/* The rates that the formula gives without anchors and starts. */
static bool formula_rates(const coded *what, unsigned threads, presto__rates *rates_out) {
    presto__pair starts = what->split->start_s;
    presto_strategy strategy = {
        .stored = what->split->name, .codec = what->name, .threads = threads};
    what->codec->cold_anchor = what->codec->cached_anchor = (presto__pair){1, 1};
    what->split->start_s = (presto__pair){0, 0};
    bool is_known = presto__model_rates(what->model, &strategy, NULL, rates_out);
    what->split->start_s = starts;
    return is_known;
}

static void set_anchors(const coded *what) {
    const presto__model *model = what->model;
    const presto__worker_times *times = &what->codec->times;
    presto__pair starts = what->split->start_s;
    presto__rates one, all;
    if (!formula_rates(what, 1, &one) || !formula_rates(what, model->cores, &all))
        return;
    double cores = model->cores;
    const double ratios[] = {
        without_start(model, times->cold_s.one, 1, starts.one) / one.cold_samples_per_s,
        without_start(model, times->cold_s.all, cores, starts.all) / all.cold_samples_per_s,
        1 / times->cached_s.one / one.cached_samples_per_s,
        cores / times->cached_s.all / all.cached_samples_per_s};
    double *const anchors[] = {&what->codec->cold_anchor.one, &what->codec->cold_anchor.all,
                               &what->codec->cached_anchor.one, &what->codec->cached_anchor.all};
    for (size_t i = 0; i < 4; i++)
        *anchors[i] = clamp(ratios[i], 1.0 / ANCHOR_MOST, ANCHOR_MOST);
}

void presto__model_fit(presto__model *model) {
    model->overlap = model->is_storage_given ? OVERLAP_PLAYED : OVERLAP_HERE;
    for (size_t s = 0; s < model->split_count; s++) {
        presto__model_split *split = &model->splits[s];
        size_t count = split->is_raw ? 1 : model->codec_count;
        for (size_t c = 0; c < count && split->known == PRESTO__SPLIT_MEASURED; c++) {
            const coded what = {model, split, &split->codecs[c],
                                split->is_raw ? NULL : model->codecs[c]};
            if (!what.codec->is_known)
                continue;
            set_times(&what);
            set_waits(&what);
            set_anchors(&what);
        }
    }
}

/* ---- calibration ---- */

typedef struct misses {
    double squares; /* of the logarithms of measured / formula */
    size_t count;
} misses;

static void add_miss(misses *all, double measured, double predicted) {
    double miss = log(measured / predicted);
    if (!isfinite(miss))
        return;
    all->squares += miss * miss;
    all->count++;
}

/* What a run of one strategy says: logarithms of measured / predicted. */
typedef struct lesson {
    const presto_strategy *strategy;
    double cold, cached, preparation;
} lesson;

static void set_factors(presto__model *model, double factor) {
    for (size_t s = 0; s < model->split_count; s++)
        for (size_t c = 0; c < model->codec_count && !model->splits[s].is_raw; c++) {
            presto__model_codec *codec = &model->splits[s].codecs[c];
            codec->cold_factor = codec->cached_factor = codec->preparation_factor = factor;
        }
}

static double finite_or_0(double value) {
    return isfinite(value) ? clamp(value, -1, 1) : 0;
}

static size_t take_lessons(const presto__model *model, const presto_sweep *sweep, lesson *lessons) {
    size_t count = 0;
    for (size_t i = 0; i < sweep->trial_count; i++) {
        const presto__trial *trial = &sweep->trials[i];
        const presto_strategy_result *result = &trial->result;
        presto__rates rates;
        presto__offline offline;
        if (trial->cold_count == 0 || result->failed || result->is_predicted ||
            result->strategy.codec == NULL || presto__is_anchor(sweep, i) ||
            !presto__model_rates(model, &result->strategy, NULL, &rates) ||
            !presto__model_offline(model, &result->strategy, model->samples, &offline))
            continue;
        double took = result->preparation_s.median - trial->preparations[0].list_s;
        double predicted = offline.preparation_s - offline.list_s;
        lessons[count++] = (lesson){
            &result->strategy,
            finite_or_0(log(result->cold.samples_per_s.median / rates.cold_samples_per_s)),
            finite_or_0(log(result->cached.samples_per_s.median / rates.cached_samples_per_s)),
            finite_or_0(log(took / predicted))};
    }
    return count;
}

static void apply_lessons(presto__model_codec *codec, const presto_strategy *whose,
                          const lesson *lessons, size_t count) {
    double weights = BELIEF, cold = 0, cached = 0, preparation = 0;
    for (size_t i = 0; i < count; i++) {
        const presto_strategy *from = lessons[i].strategy;
        bool same_split = strcmp(from->stored, whose->stored) == 0;
        bool same_codec = strcmp(from->codec, whose->codec) == 0;
        double weight = same_split && same_codec ? SAME_BOTH
                        : same_codec             ? SAME_CODEC
                        : same_split             ? SAME_SPLIT
                                                 : ANY;
        weights += weight;
        cold += weight * lessons[i].cold;
        cached += weight * lessons[i].cached;
        preparation += weight * lessons[i].preparation;
    }
    codec->cold_factor = exp(cold / weights);
    codec->cached_factor = exp(cached / weights);
    codec->preparation_factor = exp(preparation / weights);
}

/* The root mean square of what predictions were off before their strategies were run. */
static double measure_uncertainty(const presto_sweep *sweep) {
    misses all = {0, 0};
    for (size_t i = 0; i < sweep->trial_count; i++) {
        const presto_sweep_prediction *said = &sweep->trials[i].result.prediction;
        if (!isfinite(said->cold_error) || !isfinite(said->cached_error))
            continue;
        add_miss(&all, 1, 1 + said->cold_error);
        add_miss(&all, 1, 1 + said->cached_error);
    }
    return all.count > 0 ? fmax(sqrt(all.squares / (double)all.count), LEAST_UNCERTAINTY) : NAN;
}

void presto__model_calibrate(presto__model *model, const presto_sweep *sweep) {
    lesson *lessons = calloc(sweep->trial_count + 1, sizeof *lessons);
    if (lessons == NULL)
        return; /* it stays as it was */
    set_factors(model, 1);
    size_t count = take_lessons(model, sweep, lessons);
    for (size_t s = 0; s < model->split_count && count > 0; s++)
        for (size_t c = 0; c < model->codec_count && !model->splits[s].is_raw; c++) {
            presto_strategy whose = {.stored = model->splits[s].name, .codec = model->codecs[c]};
            if (strcmp(whose.codec, "none") != 0)
                apply_lessons(&model->splits[s].codecs[c], &whose, lessons, count);
        }
    free(lessons);
    double uncertainty = measure_uncertainty(sweep);
    if (isfinite(uncertainty))
        model->uncertainty = uncertainty;
}
