/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Codecs on the records of a split: sizes, and the times of compressing and decompressing, by one
 * thread and by as many as there are processors.
 *
 * Time is bounded: a codec is tried for about LEAST_NS and MOST_NS. A slow codec sees fewer records
 * than a fast one.
 */
#include "../../base/clock_internal.h"
#include "../../loader/loader_internal.h"
#include "../../records/records_internal.h"
#include "../../steps/pipelines_internal.h"
#include "predict_internal.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* One thread alone, then all together. */
#define ALONE_NS UINT64_C(60000000)
#define LEAST_NS UINT64_C(20000000)
#define MOST_NS UINT64_C(150000000)
/* All together, on parts of many records. */
#define LOOK_NS UINT64_C(250000000)

/* One codec being tried. */
typedef struct trying {
    const presto__records *of;
    presto_codec_spec spec;
    double *sizes; /* compressed, 0: not tried yet */
    double *looks; /* what records take, from their parts */
    atomic_size_t next, looked;
    uint64_t until_ns, enough_ns; /* no new record after; and stop once all are tried after */
    presto_error failure;         /* the first, by the thread that took it */
    atomic_bool has_failed;
    _Atomic uint64_t compress_ns, decompress_ns, bytes;
} trying;

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
    PRESTO_TRY(presto__codec_compress(with->codec, in, &with->out, err));
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

/* Parts of a record that nobody else has looked at, as long as there is time. */
static presto_status look_until(trying *job, scratch *with, presto_error *err) {
    const presto__records *of = job->of;
    for (;;) {
        size_t i = atomic_fetch_add(&job->next, 1);
        if (i >= of->look_count || presto__clock_ns() >= job->until_ns)
            return PRESTO_OK;
        size_t start = i > 0 ? of->part_ends[i - 1] : 0;
        presto_span parts = presto_span_of(of->parts.data + start, of->part_ends[i] - start);
        with->out.bytes = 0;
        PRESTO_TRY(presto__codec_compress(with->codec, parts, &with->out, err));
        job->looks[i] = (double)with->out.bytes * of->weights[i];
        atomic_fetch_add(&job->looked, 1);
    }
}

static void run_job(trying *job, presto_status (*work)(trying *, scratch *, presto_error *)) {
    scratch with = {0};
    presto_error failure;
    presto_arena_init(&with.arena, 0);
    presto_status status = presto_codec_new(&job->spec, &with.codec, &failure);
    if (status == PRESTO_OK)
        status = work(job, &with, &failure);
    if (status != PRESTO_OK)
        note_failure(job, &failure);
    presto_codec_free(with.codec);
    presto_buffer_done(&with.out);
    presto_arena_done(&with.arena);
}

static void try_records(void *user, unsigned number) {
    (void)number;
    run_job(user, try_until);
}

static void look_at_parts(void *user, unsigned number) {
    (void)number;
    run_job(user, look_until);
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

static presto_status look_at_all(trying *job, unsigned threads, presto_error *err) {
    atomic_store(&job->next, 0);
    job->until_ns = presto__clock_ns() + LOOK_NS;
    return presto__run_together(threads, look_at_parts, job, err);
}

static presto_status fit_codec(const presto__runner *runner, const char *split, trying *job,
                               presto_buffer *dictionary, presto_error *err) {
    size_t r = presto_pipeline_representation_find(runner->pipeline, split);
    presto_tensor_spec in = presto__source_main_spec(runner->source);
    presto__plan_options options = {.struct_bytes = sizeof options,
                                    .last_step =
                                        presto_pipeline_representation_steps(runner->pipeline, r),
                                    .in = &in};
    presto_plan *plan = NULL;
    PRESTO_TRY(presto__plan_new(runner->pipeline, &options, &plan, err));
    const presto_tensor_spec *out = presto__plan_output(plan);
    presto_status status =
        presto__codec_spec_fit(&job->spec, out->dtype == PRESTO_STRING ? NULL : out, err);
    presto__plan_free(plan);
    if (status != PRESTO_OK || !job->spec.wants_dictionary)
        return status;
    const presto__codec_samples samples = {presto_buffer_span(&job->of->bytes), job->of->sizes,
                                           job->of->count};
    PRESTO_TRY(presto__codec_train(&job->spec, &samples, 0, dictionary, err));
    job->spec.dictionary = presto_buffer_span(dictionary);
    return PRESTO_OK;
}

/* ---- all codecs ---- */

typedef struct rating {
    const presto__model *model;
    presto__runner *runner;
    presto__model_split *split;
    const char *dir; /* of the dataset that stores it without a codec */
    const presto__records *of;
    presto__sizes sizes;
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

/* 1 if no record was tried. */
static double ratio_of(const trying *job) {
    double stored = 0, raw = 0;
    for (size_t i = 0; i < job->of->count; i++) {
        stored += job->sizes[i];
        raw += job->sizes[i] > 0 ? (double)job->of->sizes[i] : 0;
    }
    return raw > 0 ? stored / raw : 1;
}

static presto_status rate_codec(const rating *all, size_t c, presto_error *err) {
    const presto__sizes *sizes = &all->sizes;
    trying job = {.of = all->of,
                  .sizes = sizes->tried + c * all->of->count,
                  .looks = sizes->looks + c * sizes->look_count};
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
    if (status == PRESTO_OK)
        status = look_at_all(&job, all->model->cores, &failure);
    sizes->has_looks[c] = atomic_load(&job.looked) == sizes->look_count;
    presto_buffer_done(&dictionary);
    if (status == PRESTO_OK && strcmp(all->model->codecs[c], "none") != 0) {
        const presto__online online = {.model = all->model,
                                       .runner = all->runner,
                                       .split = all->split,
                                       .codec_name = all->model->codecs[c],
                                       .dir = all->dir,
                                       .ratio = ratio_of(&job)};
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
    for (size_t i = 0; i < all->of->count; i++)
        codec->records += job.sizes[i] > 0;
    return codec->is_known ? PRESTO_OK : keep_failure(codec, &failure, err);
}

static presto_status make_room(rating *all, presto_error *err) {
    size_t codecs = all->model->codec_count, each = all->of->count, looks = all->of->look_count;
    presto__sizes *sizes = &all->sizes;
    sizes->look_count = looks;
    sizes->tried = calloc(codecs * each, sizeof *sizes->tried);
    sizes->looks = calloc(codecs * looks + 1, sizeof *sizes->looks);
    sizes->has_looks = calloc(codecs, sizeof *sizes->has_looks);
    if (sizes->tried == NULL || sizes->looks == NULL || sizes->has_looks == NULL)
        return presto_fail_memory(err, codecs * (each + looks) * sizeof *sizes->looks);
    return PRESTO_OK;
}

presto_status presto__probe_codecs(presto__model *model, presto__runner *runner, size_t s,
                                   const char *dir, presto_error *err) {
    presto__model_split *split = &model->splits[s];
    presto__records all;
    presto_status status = presto__records_read(dir, split->raw_bytes, &all, err);
    rating rate = {model, runner, split, dir, &all, {.tried = NULL}};
    if (status == PRESTO_OK && all.count == 0)
        status = presto_fail(err, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET, "no record was stored");
    if (status == PRESTO_OK)
        status = make_room(&rate, err);
    for (size_t c = 0; c < model->codec_count && status == PRESTO_OK; c++)
        status = rate_codec(&rate, c, err);
    if (status == PRESTO_OK)
        status = presto__set_sizes(model, split, &all, &rate.sizes, err);
    free(rate.sizes.tried);
    free(rate.sizes.looks);
    free(rate.sizes.has_looks);
    presto__records_done(&all);
    return status;
}
