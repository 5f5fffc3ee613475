/* SPDX-License-Identifier: Apache-2.0 */
/* How much a conversion will write, from a few of its samples: said before, if it is far more than the
 * source. */
#include <stdio.h>

#include <presto/numbers.h>
#include <presto/step.h>

#include "../../steps/pipelines_internal.h"
#include "convert_internal.h"

#define SAMPLES 8
#define NOTED_RATIO 2

/* Bytes of some records, as they would be written. */
static presto_status measure(presto__conversion *job, uint64_t *bytes_out, uint64_t *count_out,
                             presto_error *err) {
    presto_loader_options options;
    presto_loader_options_defaults(&options);
    options.output = PRESTO_OUTPUT_RECORDS;
    options.threads = 0;
    options.batch_samples = SAMPLES;
    options.range.limit_samples = job->sample_count < SAMPLES ? job->sample_count : SAMPLES;
    options.errors.policy = PRESTO_ON_ERROR_SKIP; /* the conversion itself reports them */
    options.should_stop = job->options->should_stop;
    options.should_stop_user = job->options->should_stop_user;
    if (!job->codec.wants_dictionary)
        options.codec = &job->codec;
    if (presto__conversion_picks(job))
        options.order.shuffle = PRESTO_SHUFFLE_FULL;
    presto_loader *loader;
    const presto__loader_input input = {.source = job->source, .plan = job->plan, .regroups = true};
    PRESTO_TRY(presto__loader_open_input(&input, &options, &loader, err));
    presto_status status = PRESTO_OK;
    while (status == PRESTO_OK) {
        presto_batch *batch;
        status = presto_loader_next(loader, &batch, err);
        if (status != PRESTO_OK)
            break;
        *bytes_out += batch->frames.bytes;
        *count_out += batch->rows;
        presto_batch_release(batch);
    }
    presto_loader_free(loader);
    return status < 0 ? status : PRESTO_OK;
}

void presto__conversion_note_size(presto__conversion *job) {
    const presto_convert_options *options = job->options;
    uint64_t bytes = 0, count = 0, source = presto_source_bytes(job->source);
    char text[320], much[PRESTO_TEXT_BYTES], little[PRESTO_TEXT_BYTES];
    /* Programs of the user's are not run for a guess; packed rows are other samples. */
    const unsigned unknown = PRESTO_STEP_RUNS_PROGRAM | PRESTO_STEP_REGROUPS;
    if (options->on_note == NULL || options->resume || job->plan == NULL || source == 0 ||
        job->sample_count == 0 || options->file_compression != PRESTO_FILE_PLAIN ||
        presto_plan_step_count(job->plan) == 0 || (presto__plan_flags(job->plan) & unknown) != 0)
        return;
    for (size_t i = 0; i < presto_plan_step_count(job->plan); i++)
        if (presto__step_find(presto__plan_step_name(job->plan, i)) == NULL)
            return; /* a plugin's: it may take as long as it likes */
    if (measure(job, &bytes, &count, NULL) < 0 || count == 0)
        return; /* whatever is wrong, the conversion will say */
    double expected = (double)bytes / (double)count * (double)job->sample_count;
    if (expected <= NOTED_RATIO * (double)source)
        return;
    snprintf(text, sizeof text, "'%.64s' will take about %s, %.1f times the source (%s)%s",
             job->stored, presto_format_bytes(expected, much), expected / (double)source,
             presto_format_bytes((double)source, little),
             strcmp(job->codec_text, "none") == 0
                 ? "; an earlier representation, or a codec such as zstd:1, takes less"
                 : "; an earlier representation may take less");
    options->on_note(options->on_note_user, text);
}
