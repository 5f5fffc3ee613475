/* SPDX-License-Identifier: Apache-2.0 */
/* presto-write --join: the parts that many runs have written become one dataset. */
#include <stdint.h>
#include <stdio.h>

#include "write.h"

static int print_json(const write_job *w, const presto_convert_result *result) {
    const cli_count counts[] = {
        {"samples", result->samples},           {"skipped", result->skipped},
        {"dropped", result->dropped},           {"shards", result->shards},
        {"stored_bytes", result->stored_bytes}, {"raw_bytes", result->raw_bytes},
    };
    json_t *object = cli_json_new();
    cli_json_set(object, "dataset", cli_json_text(w->output));
    cli_json_set_counts(object, counts, sizeof counts / sizeof counts[0]);
    cli_json_set(object, "wall_s", cli_json_real((double)result->wall_ns / 1e9));
    cli_json_set(object, "cpu_s", cli_json_real((double)result->cpu_ns / 1e9));
    cli_json_set(object, "notes", json_incref(w->notes));
    return cli_print_json(object);
}

static void print_result(const write_job *w, const presto_convert_result *result) {
    char samples[PRESTO_TEXT_BYTES], shards[PRESTO_TEXT_BYTES], bytes[PRESTO_TEXT_BYTES];
    cli_message("%s: %s, %s, %s", w->output,
                presto_format_things(result->samples, "sample", samples),
                presto_format_things(result->shards, "shard", shards),
                presto_format_bytes((double)result->stored_bytes, bytes));
    if (result->skipped > result->dropped)
        cli_message("%s skipped",
                    presto_format_things(result->skipped - result->dropped, "sample", samples));
    if (result->dropped > 0)
        cli_message("%s left out by steps",
                    presto_format_things(result->dropped, "sample", samples));
}

int write_join(write_job *w) {
    presto_error err;
    presto_convert_result result;
    presto_join_options options;
    presto_join_options_defaults(&options);
    options.on_note = write_note;
    options.on_note_user = w;
    options.should_stop = cli_should_stop;
    w->notes = json_array();
    cli_catch_signals();
    presto_status status = presto_dataset_join(w->output, &options, &result, &err);
    int code = CLI_DONE;
    if (status == PRESTO_ERR_STOPPED) {
        cli_message("%s: stopped; nothing is joined", w->output);
        code = CLI_FAILED;
    } else if (status < 0) {
        code = cli_error(&err);
    } else if (w->json) {
        code = print_json(w, &result);
    }
    if (status >= 0 && !w->quiet)
        print_result(w, &result);
    json_decref(w->notes);
    return code;
}
