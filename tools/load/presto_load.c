/* SPDX-License-Identifier: Apache-2.0 */
/*
 * presto-load: the online part of a strategy. Shards, or the raw source, go through the remaining
 * steps to stdout. The loader (presto/loader.h) and the formats (presto/out.h) do the work; here are
 * the loop and the closing lines. load.h has the options.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <getopt.h>

#include <presto/file.h>

#include "load.h"
#include "report.h"
#include "state_file.h"
#include "to_stdout.h"

/* Names that do not exist are refused before any data is looked at. */
static void check_names(load *l) {
    if (l->input.pipeline == NULL)
        return;
    if (l->pipeline == NULL)
        l->pipeline = cli_load_pipeline(l->input.pipeline, &l->settings);
    if (l->input.to != NULL)
        cli_check_representation(l->pipeline, "--to", l->input.to, false);
    l->input.read = l->pipeline;
}

/* The number of samples to deliver; 0: unknown, or not known yet. */
static uint64_t total_samples(const load *l, const presto_loader *loader) {
    uint64_t epoch = presto_loader_epoch_samples(loader);
    uint64_t limit = l->loader.range.limit_samples;
    if (epoch == PRESTO_COUNT_UNKNOWN)
        return limit;
    uint64_t total =
        epoch > UINT64_MAX / l->loader.range.epochs ? 0 : epoch * l->loader.range.epochs;
    uint64_t passed = l->loader.range.first_sample + l->loader.range.skip_samples;
    total = total > passed ? total - passed : 0;
    return limit != 0 && (total == 0 || limit < total) ? limit : total;
}

static void show_progress(const load *l, cli_progress *progress, load_report *report) {
    char note[(size_t)2 * PRESTO_TEXT_BYTES + sizeof((presto_verdict *)0)->text],
        rate[PRESTO_TEXT_BYTES];
    presto_loader_stats stats;
    presto_verdict verdict;
    if (!cli_progress_is_due(progress))
        return;
    presto_loader_get_stats(report->loader, &stats);
    presto_loader_verdict(report->loader, &verdict);
    if (report->total_samples == 0)
        report->total_samples = total_samples(l, report->loader);
    double seconds = (double)stats.wall_ns / 1e9;
    presto_format_bytes((double)stats.delivered_bytes / (seconds > 0 ? seconds : 1), rate);
    bool is_consumer = verdict.stage == PRESTO_STAGE_CONSUMER;
    snprintf(note, sizeof note, "%s/s, queue %.0f %%, %s for %s", rate, stats.queue_fill * 100,
             is_consumer ? "workers wait" : "consumer waits", verdict.text);
    cli_progress_state state = {"samples", stats.samples, report->total_samples, 0, note, false};
    cli_progress_show(progress, &state);
}

/*
 * Deliver until the end or a signal. A batch that is only partly in the pipe does not count: the
 * state is then the one before it.
 * Returns: PRESTO_END: all delivered; PRESTO_OK: the reader closed the pipe.
 */
static presto_status pump(const load *l, presto_out *out, cli_progress *progress,
                          load_report *report, presto_error *err) {
    presto_loader *loader = report->loader;
    for (;;) {
        presto_batch *batch = NULL;
        presto_status status = presto_loader_next(loader, &batch, err);
        if (status != PRESTO_OK)
            return status;
        if (report->first_ns == 0)
            report->first_ns = cli_now_ns();
        status = presto_out_put(out, batch, err);
        if (status != PRESTO_OK) {
            presto_loader_give_back(loader, batch);
            report->reader_closed = status == PRESTO_END;
            return report->reader_closed ? PRESTO_OK : status;
        }
        report_count(report, batch);
        presto_batch_release(batch);
        state_file_keep(&report->state, loader);
        show_progress(l, progress, report);
    }
}

/* The closing lines of a run that has not failed. */
static void print_end(const load *l, const load_report *report, presto_status status) {
    if (l->loader.range.skip_samples == UINT64_MAX && l->state_file != NULL)
        cli_message("%s: nothing remains", l->state_file);
    else
        report_print(report);
    if (status == PRESTO_ERR_STOPPED && l->state_file != NULL)
        cli_message("%s: the same command goes on from here", l->state_file);
}

static int finish(const load *l, load_report *report, presto_status status,
                  const presto_error *err) {
    int code = CLI_DONE;
    report->complete = status == PRESTO_END;
    if (status < 0 && status != PRESTO_ERR_STOPPED)
        code = cli_error(err);
    else if (!l->quiet && !report->reader_closed)
        print_end(l, report, status);
    if (l->state_file != NULL) {
        int state_code = state_file_write(report->loader, l->state_file);
        code = code == CLI_DONE ? state_code : code;
    }
    if (l->stats_file != NULL) {
        int write_code = report_write(report_json(report), l->stats_file);
        code = code == CLI_DONE ? write_code : code;
    }
    if (l->json) {
        int print_code = cli_print_json(report_json(report));
        code = code == CLI_DONE ? print_code : code;
    }
    return code;
}

/* All is delivered: write the end of the stream. */
static presto_status end_stream(presto_out *out, load_report *report, presto_error *err) {
    presto_status status = presto_out_end(out, err);
    if (status == PRESTO_OK)
        return PRESTO_END;
    report->reader_closed = status == PRESTO_END;
    return status == PRESTO_END ? PRESTO_OK : status;
}

/* Set where the stream starts. PRESTO_OK, or what is wrong with --state. */
static presto_status find_start(load *l, const presto_source *source, presto_error *err) {
    if (l->state_file == NULL)
        return PRESTO_OK;
    if (l->has_skip)
        return state_file_check(l->state_file, source, &l->loader, err);
    presto_status status = state_file_read(l->state_file, source, &l->loader, err);
    return status < 0 ? status : PRESTO_OK;
}

/* Check that the files written at the end of the run can be written: better now than after
 * hours. */
static int check_outputs(const load *l) {
    presto_error err;
    if (l->explain)
        return CLI_DONE;
    int code = l->stats_file == NULL ? CLI_DONE : report_check(l->stats_file);
    if (code == CLI_DONE && l->state_file != NULL &&
        presto_file_check_replace(l->state_file, &err) < 0)
        code = cli_error(&err);
    return code;
}

static int stream_all(load *l, const presto_source *source, presto_loader *loader,
                      presto_out *out) {
    presto_error err;
    cli_progress progress;
    load_report report = {.loader = loader,
                          .source = source,
                          .warnings = l->warnings,
                          .started_ns = l->started_ns,
                          .total_samples = total_samples(l, loader),
                          .format = l->format->name,
                          .most_threads = l->loader.auto_threads ? l->loader.threads : 0,
                          .state = {.path = l->state_file,
                                    .runs_steps = l->loader.threads == 0,
                                    .interval_ns = (uint64_t)(l->state_interval_s * 1e9),
                                    .written_ns = cli_now_ns()}};
    cli_catch_signals();
    /* From here on the state is written, however the run ends. */
    int code = l->state_file == NULL ? CLI_DONE : state_file_write(loader, l->state_file);
    if (code != CLI_DONE)
        return code;
    if (l->state_file != NULL)
        cli_on_late_end(&(cli_late_end){state_file_end_late, &report.state, 0});
    cli_progress_start(&progress, l->quiet);
    presto_status status = pump(l, out, &progress, &report, &err);
    if (status == PRESTO_END)
        status = end_stream(out, &report, &err);
    if (status < 0)
        presto_out_fail(out, &err);
    cli_hold_end();
    report.ended_ns = cli_now_ns();
    cli_progress_end(&progress);
    error_report_flush(&l->errors);
    report.written_bytes = presto_out_bytes(out);
    code = finish(l, &report, status, &err);
    cli_release_end();
    cli_on_late_end(&(cli_late_end){NULL, NULL, 0}); /* all is written */
    presto_buffer_done(&report.state.kept);
    return code;
}

static void tell_notes(const presto_source *source) {
    size_t count;
    const char *const *notes = presto_source_notes(source, &count);
    for (size_t i = 0; i < count; i++)
        cli_message("note: %s", notes[i]);
}

static int run(load *l, const presto_stream *stream) {
    presto_error err;
    presto_loader *loader = NULL;
    presto_out *out = NULL;
    presto_batch *schema = NULL;
    presto_out_options to;
    presto_out_options_defaults(&to);
    to.format = l->format;
    to.write = to_stdout_write;
    to.features = (const char *const *)l->features.names;
    to.feature_count = l->features.name_count;
    to.skip = l->has_skip ? l->loader.range.skip_samples : 0;
    to.arrow_types = l->features.types;
    to.arrow_type_count = l->features.type_count;
    to.ring = &l->ring;
    if (!l->quiet)
        tell_notes(stream->source);
    presto_status status =
        feature_options_apply(&l->features, stream, l->format->takes_main_only, &l->loader, &err);
    if (status >= 0 && l->format->wants_schema)
        status = presto_loader_schema(stream, &l->loader, &schema, &err);
    to.schema = schema;
    if (status >= 0)
        status = find_start(l, stream->source, &err);
    if (status >= 0)
        status = presto_loader_open_stream(stream, &l->loader, &loader, &err);
    if (status == PRESTO_ERR_UNSUPPORTED)
        cli_usage("%s", err.message);
    l->ring.should_stop = cli_should_stop;
    if (l->format->way == PRESTO_OUT_BYTES)
        to_stdout_open();
    if (status >= 0 && l->format->way == PRESTO_OUT_RING && l->ring.path == NULL)
        l->ring.fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
    if (status >= 0)
        status = presto_out_open(&to, &out, &err);
    int code = status < 0 ? cli_error(&err) : stream_all(l, stream->source, loader, out);
    presto_out_free(out);
    presto_loader_schema_free(schema);
    presto_loader_free(loader);
    return code;
}

/* The features chosen are the only ones in which inputs that are mixed must agree. */
static presto_status open_mix(load *l, presto_stream *stream, presto_error *err) {
    presto_mix_options options;
    presto_mix_options_defaults(&options);
    options.inputs = l->mix;
    options.input_count = l->mix_count;
    options.epoch = l->mix_epoch;
    options.stream = &l->input;
    l->loader.features = (const char *const *)l->features.names;
    l->loader.feature_count = l->features.name_count;
    return presto_stream_open_mix(&options, stream, err);
}

/* Is the failure that of an input which is there, and no missing file that one of them names? */
static bool is_of_input(const presto_error *err, const char *const *paths, size_t path_count) {
    for (size_t i = 0; i < path_count; i++)
        if (strcmp(err->file, paths[i]) == 0 && access(paths[i], F_OK) == 0)
            return true;
    return false;
}

static int open_and_run(load *l, const char *const *paths, size_t path_count) {
    presto_error err;
    presto_stream stream = {0};
    int code = CLI_DONE;
    presto_status status = load_apply_strategy(l, &err);
    load_settle_defaults(l);
    check_names(l);
    if (status >= 0)
        status = l->mix_count > 0 ? open_mix(l, &stream, &err)
                                  : presto_stream_open(paths, path_count, &l->input, &stream, &err);
    if (status >= 0 && l->strategy_file != NULL)
        load_check_strategy(l, &stream);
    if (status < 0) {
        code = cli_error(&err);
        if (status == PRESTO_ERR_NOT_FOUND && l->input.pipeline == NULL &&
            is_of_input(&err, paths, path_count))
            cli_message("to read a raw source, name its pipeline with --pipeline");
    } else if (l->explain) {
        code = load_explain(l, &stream);
    } else {
        code = run(l, &stream);
    }
    presto_stream_close(&stream);
    presto_strategy_file_done(&l->strategy);
    return code;
}

int main(int argc, char **argv) {
    load l = {.started_ns = cli_now_ns(), .warnings = json_array()};
    load_parse(&l, argc, argv);
    const char *const *paths = (const char *const *)argv + optind;
    size_t path_count = (size_t)(argc - optind);
    /* While no file of the program's own can be taken for a descriptor that the user names. */
    int code = check_outputs(&l);
    if (code == CLI_DONE)
        code = error_report_open(&l.errors, l.error_file);
    if (code == CLI_DONE)
        code = error_report_close(&l.errors, open_and_run(&l, paths, path_count));
    feature_options_done(&l.features);
    presto_pipeline_free(l.pipeline);
    for (size_t i = 0; i < l.mix_count; i++)
        free(l.mix_paths[i]);
    free(l.cache_dir);
    json_decref(l.warnings);
    code = cli_close_stdout(code);
    cli_reraise();
    return code;
}
