/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What limits a stream. If the consumer spends more time between pulls than waiting for data, it is
 * the consumer. (If all data fits the prefetch memory, workers never wait.) Otherwise it is the
 * stage that takes most of the workers' time.
 */
#include <stdio.h>
#include <string.h>

#include "../../base/options_internal.h"
#include "../../steps/pipelines_internal.h"
#include "workers_internal.h"

static const struct {
    const char *name, *text;
} stages[] = {
    [PRESTO_STAGE_READ] = {"read", "reading"},
    [PRESTO_STAGE_DECOMPRESS] = {"decompress", "decompressing records"},
    [PRESTO_STAGE_PARSE] = {"parse", "parsing records"},
    [PRESTO_STAGE_STEP] = {"step", "step"},
    [PRESTO_STAGE_ENCODE] = {"encode", "encoding records"},
    [PRESTO_STAGE_BATCH] = {"batch", "assembling batches"},
    [PRESTO_STAGE_CONSUMER] = {"consumer", "the consumer"},
    [PRESTO_STAGE_CACHE] = {"cache", "writing the cache"},
};

const char *presto_stage_name(presto_stage stage) {
    return (size_t)stage < sizeof stages / sizeof stages[0] ? stages[stage].name : "?";
}

size_t presto_loader_step_count(const presto_loader *loader) {
    return loader->step_count;
}

const char *presto_loader_step_name(const presto_loader *loader, size_t step) {
    size_t cached = loader->cache_step_count;
    if (step >= loader->step_count)
        return NULL;
    return step < cached ? presto__plan_step_name(loader->cache_plan, step)
                         : presto__plan_step_name(loader->plan, step - cached);
}

void presto_loader_step_stats_sized(const presto_loader *loader, size_t step,
                                    presto_step_stats *stats_out) {
    presto_step_stats sum = {0};
    pthread_mutex_lock(&loader->pool->lock);
    for (size_t i = 0; step < loader->step_count && i < loader->worker_count; i++) {
        const presto_step_stats *worker = &loader->workers[i].step_stats[step];
        sum.samples += worker->samples;
        sum.busy_ns += worker->busy_ns;
        sum.out_bytes += worker->out_bytes;
        sum.dropped += worker->dropped;
        sum.unfused += worker->unfused;
    }
    pthread_mutex_unlock(&loader->pool->lock);
    presto__result_give(stats_out, &sum, sizeof sum);
}

static unsigned step_flags(const presto_loader *loader, size_t step) {
    size_t cached = loader->cache_step_count;
    return step < cached ? presto_plan_step_flags(loader->cache_plan, step)
                         : presto_plan_step_flags(loader->plan, step - cached);
}

/* Most of the reading was waiting for the storage that is played. */
static bool is_storage(const presto_verdict *verdict, const presto_loader_stats *stats) {
    return verdict->stage == PRESTO_STAGE_READ && stats->storage_wait_ns > stats->read_ns / 2;
}

/* Reading, while the server does not answer as it should: 1 of 20 requests was sent again. */
static bool is_refused(const presto_verdict *verdict, const presto_loader_stats *stats) {
    return verdict->stage == PRESTO_STAGE_READ && stats->request_retries * 20 > stats->requests;
}

/* A step's own time. The time that read-file reads is counted as reading. */
static uint64_t step_ns(const presto_loader *loader, size_t step, uint64_t read_ns) {
    uint64_t busy = presto_loader_step_stats(loader, step).busy_ns;
    if (loader->source->ops->read_file == NULL ||
        (step_flags(loader, step) & PRESTO_STEP_READS_FILE) == 0)
        return busy;
    return busy > read_ns ? busy - read_ns : 0;
}

static void weigh(presto_verdict *verdict, double *largest, presto_stage stage, size_t step,
                  uint64_t ns) {
    if ((double)ns <= *largest)
        return;
    *largest = (double)ns;
    verdict->stage = stage;
    verdict->step = step;
}

/* The stage that the workers spent most time in. */
static void find_stage(const presto_loader *loader, const presto_loader_stats *stats,
                       presto_verdict *verdict) {
    const uint64_t busy_ns[] = {
        [PRESTO_STAGE_READ] = stats->read_ns,
        [PRESTO_STAGE_DECOMPRESS] = stats->decompress_ns,
        [PRESTO_STAGE_PARSE] = stats->parse_ns,
        [PRESTO_STAGE_STEP] = 0,
        [PRESTO_STAGE_ENCODE] = stats->encode_ns,
        [PRESTO_STAGE_BATCH] = stats->batch_ns,
        [PRESTO_STAGE_CONSUMER] = 0,
        [PRESTO_STAGE_CACHE] = stats->cache_ns,
    };
    double largest = 0;
    double total = 0;
    for (size_t i = 0; i < sizeof busy_ns / sizeof busy_ns[0]; i++) {
        total += (double)busy_ns[i];
        weigh(verdict, &largest, (presto_stage)i, SIZE_MAX, busy_ns[i]);
    }
    for (size_t i = 0; i < loader->step_count; i++) {
        uint64_t ns = step_ns(loader, i, stats->read_ns);
        total += (double)ns;
        weigh(verdict, &largest, PRESTO_STAGE_STEP, i, ns);
    }
    verdict->share = total > 0 ? largest / total : 0;
}

void presto_loader_verdict_sized(const presto_loader *loader, presto_verdict *verdict_out) {
    presto_loader_stats stats;
    presto_loader_get_stats(loader, &stats);
    presto_verdict verdict = {.stage = PRESTO_STAGE_READ, .step = SIZE_MAX};
    double waited = (double)stats.consumer_wait_ns;
    double busy = (double)stats.consumer_busy_ns;
    if (busy > waited) {
        verdict.stage = PRESTO_STAGE_CONSUMER;
        verdict.share = busy / (busy + waited);
        snprintf(verdict.text, sizeof verdict.text, "the consumer (busy %.0f %% of the time)",
                 verdict.share * 100);
    } else {
        find_stage(loader, &stats, &verdict);
        bool is_slow = is_storage(&verdict, &stats) || is_refused(&verdict, &stats);
        if (verdict.stage == PRESTO_STAGE_STEP)
            verdict.step_name = presto_loader_step_name(loader, verdict.step);
        snprintf(verdict.text, sizeof verdict.text, "%s%s%s (%.0f %% of the work)",
                 is_slow ? "storage" : stages[verdict.stage].text,
                 verdict.step_name != NULL ? " " : "",
                 verdict.step_name != NULL ? verdict.step_name : "", verdict.share * 100);
        size_t used = strlen(verdict.text);
        if (is_refused(&verdict, &stats))
            snprintf(verdict.text + used, sizeof verdict.text - used,
                     ": %ju of %ju requests were sent again", (uintmax_t)stats.request_retries,
                     (uintmax_t)stats.requests);
    }
    presto__result_give(verdict_out, &verdict, sizeof verdict);
}
