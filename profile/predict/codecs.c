/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Codecs on the records of a split: sizes, and the times of compressing and decompressing, by one
 * thread and by as many as there are processors.
 *
 * Memory and time are bounded: records are tried up to RECORD_BYTES of them, evenly spread, and a
 * codec for about LEAST_NS and MOST_NS. A slow codec sees fewer records than a fast one. Its size
 * is then estimated by the fast one's: ratios vary much from record to record, but those of two
 * codecs vary together.
 */
#include "../../base/clock_internal.h"
#include "predict_internal.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define RECORD_BYTES ((uint64_t)48 << 20)
#define RECORDS_LEAST 4
/* One thread alone, then all together. */
#define ALONE_NS UINT64_C(60000000)
#define LEAST_NS UINT64_C(20000000)
#define MOST_NS UINT64_C(150000000)

/* Records of a split, without their frames. */
typedef struct records {
    presto_buffer bytes;
    size_t *sizes;
    size_t *starts;
    size_t count;
    size_t step; /* from one record to the next to try: so any part of them is from all over */
} records;

/* One codec being tried. */
typedef struct trying {
    const records *of;
    presto_codec_spec spec;
    double *sizes; /* compressed, 0: not tried yet */
    atomic_size_t next;
    uint64_t until_ns, enough_ns; /* no new record after; and stop once all are tried after */
    presto_error failure;         /* the first, by the thread that took it */
    atomic_bool has_failed;
    _Atomic uint64_t compress_ns, decompress_ns, bytes;
} trying;

/* ---- reading ---- */

static void free_records(records *all) {
    presto_buffer_done(&all->bytes);
    free(all->sizes);
    free(all->starts);
}

/* Every n-th record of a shard. */
static presto_status read_shard(presto_shard *shard, uint64_t stride, uint64_t *skip, records *all,
                                presto_error *err) {
    presto_block block = {0};
    presto_status status = PRESTO_OK;
    uint64_t r = *skip;
    for (; r < presto_shard_records(shard) && status == PRESTO_OK; r += stride) {
        status = presto_shard_fetch(shard, r, 1, &block, err);
        if (status != PRESTO_OK)
            break;
        all->starts[all->count] = all->bytes.bytes;
        all->sizes[all->count++] = block.records[0].payload.bytes;
        status = presto_buffer_append(&all->bytes, block.records[0].payload, err);
    }
    *skip = r - presto_shard_records(shard);
    presto_block_done(&block);
    return status;
}

static size_t common_divisor(size_t a, size_t b) {
    while (b > 0) {
        size_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* About the golden section of them, so that any number of steps is spread evenly; it meets all. */
static size_t spreading_step(size_t count) {
    size_t step = (size_t)((double)count * 0.618) + 1;
    while (common_divisor(step, count) > 1)
        step++;
    return step;
}

static presto_status read_records(const char *dir, double mean_bytes, records *all,
                                  presto_error *err) {
    presto_dataset *dataset = NULL;
    presto_shard_options options;
    presto_shard_options_defaults(&options);
    PRESTO_TRY(presto_dataset_open(&dir, 1, &options, &dataset, err));
    uint64_t total = presto_dataset_records(dataset);
    uint64_t wanted = (uint64_t)((double)RECORD_BYTES / fmax(mean_bytes, 1));
    wanted = wanted < RECORDS_LEAST ? RECORDS_LEAST : wanted;
    uint64_t stride = total > wanted ? (total + wanted - 1) / wanted : 1;
    all->sizes = calloc(total / stride + 1, sizeof *all->sizes);
    all->starts = calloc(total / stride + 1, sizeof *all->starts);
    presto_status status = PRESTO_OK;
    if (all->sizes == NULL || all->starts == NULL)
        status = presto_fail_memory(err, total / stride * sizeof *all->sizes);
    uint64_t skip = 0;
    for (size_t i = 0; i < presto_dataset_shard_count(dataset) && status == PRESTO_OK; i++) {
        presto_shard *shard = NULL;
        status = presto_dataset_shard_at(dataset, i, &shard, err);
        if (status == PRESTO_OK)
            status = presto_shard_index(shard, false, NULL, err);
        if (status == PRESTO_OK)
            status = read_shard(shard, stride, &skip, all, err);
    }
    presto_dataset_free(dataset);
    all->step = spreading_step(all->count);
    return status;
}

/* ---- trying ---- */

static void note_failure(trying *job, const presto_error *failure) {
    if (!atomic_exchange(&job->has_failed, true))
        job->failure = *failure;
}

typedef struct scratch {
    presto_codec *codec;
    presto_buffer out;
    presto_arena arena;
} scratch;

typedef struct effort {
    uint64_t compress_ns, decompress_ns, bytes;
    size_t compressed_bytes;
} effort;

static presto_status try_record(const trying *job, scratch *with, size_t i, effort *effort_out,
                                presto_error *err) {
    presto_span in = presto_span_of(job->of->bytes.data + job->of->starts[i], job->of->sizes[i]);
    const presto_codec_room room = {&with->arena, PRESTO_CODEC_MAX_RECORD_BYTES};
    presto_span back;
    with->out.bytes = 0;
    presto_arena_reset(&with->arena);
    uint64_t start = presto__clock_ns();
    PRESTO_TRY(presto_codec_compress(with->codec, in, &with->out, err));
    uint64_t middle = presto__clock_ns();
    PRESTO_TRY(
        presto_codec_decompress(with->codec, presto_buffer_span(&with->out), &room, &back, err));
    *effort_out = (effort){middle - start, presto__clock_ns() - middle, in.bytes, with->out.bytes};
    return PRESTO_OK;
}

/* Records in turn, again and again until the time is over. */
static presto_status try_until(trying *job, scratch *with, presto_error *err) {
    size_t count = job->of->count;
    effort spent;
    PRESTO_TRY(try_record(job, with, 0, &spent, err)); /* grows the buffers, and does not count */
    while (!atomic_load(&job->has_failed)) {
        size_t turn = atomic_fetch_add(&job->next, 1);
        uint64_t now = presto__clock_ns();
        if (turn > 0 && (now >= job->until_ns || (now >= job->enough_ns && turn >= count)))
            break;
        size_t i = turn % count * job->of->step % count;
        PRESTO_TRY(try_record(job, with, i, &spent, err));
        atomic_fetch_add(&job->compress_ns, spent.compress_ns);
        atomic_fetch_add(&job->decompress_ns, spent.decompress_ns);
        atomic_fetch_add(&job->bytes, spent.bytes);
        if (turn < count) /* nobody else has this one */
            job->sizes[i] = (double)spent.compressed_bytes;
    }
    return PRESTO_OK;
}

static void try_records(void *user, unsigned number) {
    trying *job = user;
    (void)number;
    scratch with = {0};
    presto_error failure;
    presto_arena_init(&with.arena, 0);
    presto_status status = presto_codec_new(&job->spec, &with.codec, &failure);
    if (status == PRESTO_OK)
        status = try_until(job, &with, &failure);
    if (status != PRESTO_OK)
        note_failure(job, &failure);
    presto_codec_free(with.codec);
    presto_buffer_done(&with.out);
    presto_arena_done(&with.arena);
}

/* Seconds per record of mean size, of a thread. */
static presto_status time_codec(trying *job, unsigned threads, uint64_t most_ns,
                                presto__model_codec *codec, presto_error *err) {
    uint64_t now = presto__clock_ns();
    atomic_store(&job->compress_ns, 0);
    atomic_store(&job->decompress_ns, 0);
    atomic_store(&job->bytes, 0);
    atomic_store(&job->next, 0);
    job->until_ns = now + most_ns;
    job->enough_ns = now + LEAST_NS;
    PRESTO_TRY(presto__run_together(threads, try_records, job, err));
    double mean = (double)job->of->bytes.bytes / (double)job->of->count;
    double tried = fmax((double)atomic_load(&job->bytes) / fmax(mean, 1), 1e-9);
    double compress = presto__seconds(atomic_load(&job->compress_ns)) / tried;
    double decompress = presto__seconds(atomic_load(&job->decompress_ns)) / tried;
    if (threads == 1) {
        codec->compress_s.one = codec->compress_s.all = compress;
        codec->decompress_s.one = codec->decompress_s.all = decompress;
    } else {
        codec->compress_s.all = compress;
        codec->decompress_s.all = decompress;
    }
    return PRESTO_OK;
}

static presto_status fit_codec(const presto__runner *runner, const char *split, trying *job,
                               presto_buffer *dictionary, presto_error *err) {
    size_t r = presto_pipeline_representation_find(runner->pipeline, split);
    presto_tensor_spec in = presto_source_main_spec(runner->source);
    presto_plan_options options = {.struct_bytes = sizeof options,
                                   .last_step =
                                       presto_pipeline_representation_steps(runner->pipeline, r),
                                   .in = &in};
    presto_plan *plan = NULL;
    PRESTO_TRY(presto_plan_new(runner->pipeline, &options, &plan, err));
    const presto_tensor_spec *out = presto_plan_output(plan);
    presto_status status =
        presto_codec_spec_fit(&job->spec, out->dtype == PRESTO_STRING ? NULL : out, err);
    presto_plan_free(plan);
    if (status != PRESTO_OK || !job->spec.wants_dictionary)
        return status;
    const presto_codec_samples samples = {presto_buffer_span(&job->of->bytes), job->of->sizes,
                                          job->of->count};
    PRESTO_TRY(presto_codec_train(&job->spec, &samples, 0, dictionary, err));
    job->spec.dictionary = presto_buffer_span(dictionary);
    return PRESTO_OK;
}

/* ---- sizes ---- */

/* Mean compressed bytes of all records: those tried, times what `known`, a codec that was tried on
 * all, has for all of them against these. */
static double mean_size(const double *sizes, const double *known, size_t count) {
    double tried = 0, known_tried = 0, known_all = 0;
    size_t trials = 0;
    for (size_t i = 0; i < count; i++) {
        known_all += known[i];
        if (sizes[i] <= 0)
            continue;
        trials++;
        tried += sizes[i];
        known_tried += known[i];
    }
    if (trials == 0 || known_tried <= 0)
        return 0;
    return tried / known_tried * known_all / (double)count;
}

static size_t count_tried(const double *sizes, size_t count) {
    size_t tried = 0;
    for (size_t i = 0; i < count; i++)
        tried += sizes[i] > 0;
    return tried;
}

/* ---- all codecs ---- */

typedef struct rating {
    const presto__model *model;
    presto__runner *runner;
    presto__model_split *split;
    const char *dir; /* of the dataset that stores it without a codec */
    const records *of;
    double *sizes; /* of all codecs, one after the other */
} rating;

/* These records cannot have the codec, or there was no room to try it: its strategies fail, and the
 * others go on. */
static presto_status keep_failure(presto__model_codec *codec, const presto_error *failure,
                                  presto_error *err) {
    if (failure->status == PRESTO_ERR_STOPPED || failure->status == PRESTO_ERR_MEMORY) {
        if (err != NULL)
            *err = *failure;
        return failure->status;
    }
    codec->failure = malloc(sizeof *failure);
    if (codec->failure == NULL)
        return presto_fail_memory(err, sizeof *failure);
    *codec->failure = *failure;
    return PRESTO_OK;
}

static presto_status rate_codec(const rating *all, size_t c, presto_error *err) {
    trying job = {.of = all->of, .sizes = all->sizes + c * all->of->count};
    presto__model_codec *codec = &all->split->codecs[c];
    presto_buffer dictionary = {0};
    presto_error failure;
    *codec = (presto__model_codec){.cold_factor = 1, .cached_factor = 1, .preparation_factor = 1};
    presto_status status = presto_codec_parse(all->model->codecs[c], &job.spec, &failure);
    if (status == PRESTO_OK)
        status = fit_codec(all->runner, all->split->name, &job, &dictionary, &failure);
    if (status == PRESTO_OK)
        status = time_codec(&job, 1, ALONE_NS, codec, &failure);
    if (status == PRESTO_OK)
        status = time_codec(&job, all->model->cores, MOST_NS, codec, &failure);
    presto_buffer_done(&dictionary);
    if (status == PRESTO_OK && strcmp(all->model->codecs[c], "none") != 0) {
        const presto__online online = {.model = all->model,
                                       .runner = all->runner,
                                       .split = all->split,
                                       .codec_name = all->model->codecs[c],
                                       .dir = all->dir};
        status = presto__probe_online(&online, codec, &failure);
    }
    if (status != PRESTO_OK && presto__is_disk_full(&failure)) {
        all->split->lack = failure; /* the codec is known from trying it alone */
        status = PRESTO_OK;
    }
    if (status == PRESTO_OK && atomic_load(&job.has_failed)) {
        failure = job.failure;
        status = failure.status;
    }
    codec->is_known = status == PRESTO_OK;
    codec->records = count_tried(job.sizes, all->of->count);
    return codec->is_known ? PRESTO_OK : keep_failure(codec, &failure, err);
}

/* The codec that was tried on most records, the first of equal ones. SIZE_MAX: none is known. */
static size_t find_reference(const rating *all) {
    size_t found = SIZE_MAX;
    for (size_t c = 0; c < all->model->codec_count; c++)
        if (all->split->codecs[c].is_known && strcmp(all->model->codecs[c], "none") != 0 &&
            (found == SIZE_MAX ||
             all->split->codecs[c].records > all->split->codecs[found].records))
            found = c;
    return found;
}

static void set_sizes(const rating *all) {
    size_t reference = find_reference(all);
    double framing = all->split->plain_bytes - all->split->raw_bytes;
    double mean = (double)all->of->bytes.bytes / (double)all->of->count;
    double *plain = all->sizes + all->model->codec_count * all->of->count;
    for (size_t i = 0; i < all->of->count; i++)
        plain[i] = (double)all->of->sizes[i];
    for (size_t c = 0; c < all->model->codec_count; c++) {
        presto__model_codec *codec = &all->split->codecs[c];
        if (strcmp(all->model->codecs[c], "none") == 0) {
            codec->stored_bytes = all->split->plain_bytes;
            codec->compress_s = codec->decompress_s = (presto__pair){0, 0};
            continue;
        }
        if (!codec->is_known)
            continue;
        const double *sizes = all->sizes + c * all->of->count;
        const double *known = all->sizes + reference * all->of->count;
        bool has_all = all->split->codecs[reference].records == all->of->count;
        double size = mean_size(sizes, has_all ? known : plain, all->of->count);
        /* The records that were read are some of the sample. */
        codec->stored_bytes = size * all->split->raw_bytes / fmax(mean, 1) + framing;
    }
}

presto_status presto__probe_codecs(presto__model *model, presto__runner *runner, size_t s,
                                   const char *dir, presto_error *err) {
    presto__model_split *split = &model->splits[s];
    records all = {0};
    presto_status status = read_records(dir, split->raw_bytes, &all, err);
    rating rate = {model, runner, split, dir, &all, NULL};
    if (status == PRESTO_OK && all.count == 0)
        status = presto_fail(err, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET, "no record was stored");
    if (status == PRESTO_OK) {
        rate.sizes = calloc((model->codec_count + 1) * all.count, sizeof *rate.sizes);
        if (rate.sizes == NULL)
            status = presto_fail_memory(err, model->codec_count * all.count * sizeof *rate.sizes);
    }
    for (size_t c = 0; c < model->codec_count && status == PRESTO_OK; c++)
        status = rate_codec(&rate, c, err);
    if (status == PRESTO_OK)
        set_sizes(&rate);
    free(rate.sizes);
    free_records(&all);
    return status;
}
