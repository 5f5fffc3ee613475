/* SPDX-License-Identifier: Apache-2.0 */
/* Does a strategy belong to a dataset? */
#include "profile_internal.h"

#include <string.h>

/* The same form of the same pipeline's samples, as far as names tell. */
static presto_status check_form(const presto_strategy_file *strategy,
                                const presto_dataset_info *info, presto_error *err) {
    const char *split = info->stored != NULL ? info->stored : "nothing known";
    const char *codec = info->codec != NULL ? info->codec : "none";
    const char *wanted = strategy->codec != NULL ? strategy->codec : "none";
    if (strcmp(split, strategy->stored) == 0 && strcmp(codec, wanted) == 0)
        return PRESTO_OK;
    return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                       "the strategy is about %.64s with codec %s, but this dataset holds %.64s "
                       "with codec %s",
                       strategy->stored, wanted, split, codec);
}

/* A pipeline that is not there any more is not compared. Its name alone counts: nothing of it
 * runs. */
static presto_status check_pipeline(const presto_strategy_file *strategy, const presto_pipeline *is,
                                    presto_error *err) {
    presto_pipeline *wanted = NULL;
    presto_pipeline_options reading;
    presto_pipeline_options_defaults(&reading);
    reading.code = PRESTO_CODE_NEVER;
    if (strategy->pipeline == NULL ||
        presto_pipeline_load(strategy->pipeline, &reading, &wanted, NULL) < 0)
        return PRESTO_OK;
    presto_status status = PRESTO_OK;
    if (strcmp(presto_pipeline_name(wanted), presto_pipeline_name(is)) != 0)
        status = presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                             "the strategy is about pipeline %.64s, but this dataset is of %.64s",
                             presto_pipeline_name(wanted), presto_pipeline_name(is));
    presto_pipeline_free(wanted);
    return status;
}

presto_status presto_strategy_check(const presto_strategy_file *strategy,
                                    const presto_stream *stream, presto_error *err) {
    bool is_source = stream->pipeline != NULL &&
                     presto_pipeline_source(stream->pipeline)->takes_records &&
                     strcmp(strategy->stored, PRESTO_UNPROCESSED) == 0;
    if (stream->dataset == NULL || !presto_dataset_is_ours(stream->dataset) || is_source)
        return PRESTO_OK;
    PRESTO_TRY(check_form(strategy, presto_dataset_get_info(stream->dataset), err));
    return stream->pipeline == NULL ? PRESTO_OK : check_pipeline(strategy, stream->pipeline, err);
}
