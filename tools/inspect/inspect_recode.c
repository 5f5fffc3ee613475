/* SPDX-License-Identifier: Apache-2.0 */
/* presto-inspect recode: the conversion without a pipeline, which stores records as they are. */
#include "inspect_recode.h"

#include "../cli/cli.h"

static bool on_progress(void *user, const presto_progress *progress) {
    cli_progress_state state = {
        "records", progress->samples_done, progress->samples_total, progress->bytes_written, "",
        false};
    cli_catch_signals(); /* nothing to clean up until here */
    cli_progress_show(user, &state);
    return !cli_interrupted();
}

static void print_result(const char *output, const presto_convert_result *result) {
    char records[PRESTO_TEXT_BYTES], shards[PRESTO_TEXT_BYTES], stored[PRESTO_TEXT_BYTES];
    char raw[PRESTO_TEXT_BYTES], time[PRESTO_TEXT_BYTES];
    cli_message("%s: %s, %s, %s stored of %s in %s", output,
                presto_format_things(result->samples, "record", records),
                presto_format_things(result->shards, "shard", shards),
                presto_format_bytes((double)result->stored_bytes, stored),
                presto_format_bytes((double)result->raw_bytes, raw),
                presto_format_seconds((double)result->wall_ns / 1e9, time));
}

static int print_json(const char *output, const presto_convert_result *result) {
    json_t *object = cli_json_new();
    cli_json_set(object, "dataset", cli_json_text(output));
    cli_json_set(object, "records", json_integer((json_int_t)result->samples));
    cli_json_set(object, "shards", json_integer((json_int_t)result->shards));
    cli_json_set(object, "stored_bytes", json_integer((json_int_t)result->stored_bytes));
    cli_json_set(object, "raw_bytes", json_integer((json_int_t)result->raw_bytes));
    cli_json_set(object, "wall_s", cli_json_real((double)result->wall_ns / 1e9));
    cli_json_set(object, "cpu_s", cli_json_real((double)result->cpu_ns / 1e9));
    return cli_print_json(object);
}

int inspect_recode(recode_options *options, const char *output, const char *const *paths,
                   size_t path_count) {
    presto_error err;
    presto_convert_result result;
    cli_progress progress;
    cli_progress_start(&progress, options->quiet);
    options->convert.dir = output;
    options->convert.errors.on_warning = cli_warning;
    options->convert.on_progress = on_progress;
    options->convert.on_progress_user = &progress;
    cli_on_late_end(&(cli_late_end){cli_stop_conversion_late, (void *)(uintptr_t)output,
                                    CLI_CONVERSION_ENDS_S});
    presto_status status = presto_convert(paths, path_count, &options->convert, &result, &err);
    cli_on_late_end(&(cli_late_end){NULL, NULL, 0});
    cli_progress_end(&progress);
    if (status == PRESTO_ERR_STOPPED)
        return cli_stopped_conversion(output);
    if (status < 0)
        return cli_error(&err);
    if (!options->quiet)
        print_result(output, &result);
    return options->json ? print_json(output, &result) : CLI_DONE;
}
