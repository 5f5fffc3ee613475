/* SPDX-License-Identifier: Apache-2.0 */
#define _XOPEN_SOURCE 700 /* O_NOFOLLOW */
#include "journal_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <presto/file.h>
#include <presto/storage.h>

#include "../../base/file_internal.h"
#include "../../base/json_limit_internal.h"

#define SCHEMA 2
#define MOST_BYTES ((uint64_t)256 << 20)
#define MOST_COSTS 64 /* parts of the work of one run */
/* Of a line: a run of MOST_COSTS parts weighs less than 2000. */
#define MOST_LINE_WEIGHT ((size_t)64 << 10)

struct presto__journal {
    int fd;
    char *path;
    bool has_trials; /* it tells more than whose it is */
};

/* ---- the numbers of a run, declared once for both directions ---- */

typedef struct number_field {
    const char *name;
    size_t offset; /* of a double in presto__epochs */
    bool may_lack; /* the system may not tell it: NaN, null */
} number_field;

#define FIELD(member, may_lack)                                                                    \
    { #member, offsetof(presto__epochs, measure.member), may_lack }
static const number_field numbers[] = {
    FIELD(wall_s, false),
    FIELD(cpu_user_s, false),
    FIELD(cpu_system_s, false),
    FIELD(context_switches, false),
    FIELD(disk_read_bytes, true),
    FIELD(machine_iowait_s, true),
    FIELD(machine_steal_s, true),
    FIELD(machine_busy_s, true),
    FIELD(peak_rss_bytes, true),
    {"epoch_s", offsetof(presto__epochs, epoch_s), true},
    {"second_samples", offsetof(presto__epochs, second_samples), true},
    {"second_s", offsetof(presto__epochs, second_s), true},
    {"less_samples", offsetof(presto__epochs, less_samples), true},
    {"less_s", offsetof(presto__epochs, less_s), true},
    {"files_s", offsetof(presto__epochs, files_s), true},
    {"files_error_s", offsetof(presto__epochs, files_error_s), true},
    {"worker_wait_s", offsetof(presto__epochs, worker_wait_s), false},
    {"consumer_wait_s", offsetof(presto__epochs, consumer_wait_s), false},
};

/* What was said of it before it was run; null: nothing was. */
#define FORETOLD(name, member)                                                                     \
    { name, offsetof(presto_sweep_prediction, member), true }
static const number_field foretold[] = {
    FORETOLD("foretold_samples_per_s", cold_samples_per_s),
    FORETOLD("foretold_cached_samples_per_s", cached_samples_per_s),
    FORETOLD("foretold_uncertainty", uncertainty),
    FORETOLD("foretold_preparation_s", preparation_s),
    FORETOLD("foretold_stored_bytes", stored_bytes),
};

typedef struct count_field {
    const char *name;
    size_t offset; /* of an uint64_t in presto__epochs */
    uint64_t least;
} count_field;

static const count_field counts[] = {
    {"epochs", offsetof(presto__epochs, epochs), 1},
    {"samples", offsetof(presto__epochs, samples), 1},
    {"read_bytes", offsetof(presto__epochs, read_bytes), 0},
    {"delivered_bytes", offsetof(presto__epochs, delivered_bytes), 0},
};

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

static double number_at(const void *base, size_t offset) {
    double value;
    memcpy(&value, (const char *)base + offset, sizeof value);
    return value;
}

/* ---- writing ---- */
/* Jansson's _new functions take NULL as a failure of the call that made the value; dumping an
 * object that lacks a value is prevented by `failed`. */

static void put(bool *failed, json_t *object, const char *name, json_t *value) {
    if (json_object_set_new(object, name, value) != 0)
        *failed = true;
}

static json_t *number_value(double value) {
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *count_value(uint64_t value) {
    return json_integer((json_int_t)value);
}

static json_t *costs_value(bool *failed, const presto__epochs *epochs) {
    json_t *array = json_array();
    for (size_t i = 0; i < epochs->cost_count; i++) {
        const presto__cost *cost = &epochs->costs[i];
        json_t *object = json_object();
        put(failed, object, cost->is_step ? "step" : "stage", json_string(cost->name));
        put(failed, object, "busy_s_per_sample", number_value(cost->busy_s_per_sample));
        if (json_array_append_new(array, object) != 0)
            *failed = true;
    }
    return array;
}

static json_t *epochs_value(bool *failed, const presto__epochs *epochs) {
    json_t *object = json_object();
    for (size_t i = 0; i < COUNT_OF(counts); i++) {
        uint64_t count;
        memcpy(&count, (const char *)epochs + counts[i].offset, sizeof count);
        put(failed, object, counts[i].name, count_value(count));
    }
    for (size_t i = 0; i < COUNT_OF(numbers); i++)
        put(failed, object, numbers[i].name, number_value(number_at(epochs, numbers[i].offset)));
    put(failed, object, "work", costs_value(failed, epochs));
    return object;
}

/* Appends one line. Takes over `object`. */
static presto_status write_line(presto__journal *journal, json_t *object, bool failed,
                                presto_error *err) {
    char *text = object == NULL || failed
                     ? NULL
                     : json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(17));
    json_decref(object);
    presto_buffer line = {0};
    presto_status status = text == NULL ? presto_fail_memory(err, 1) : PRESTO_OK;
    if (status == PRESTO_OK)
        status = presto_buffer_append(&line, presto_span_of_text(text), err);
    if (status == PRESTO_OK)
        status = presto_buffer_append(&line, presto_span_of_text("\n"), err);
    if (status == PRESTO_OK)
        status = presto__write_all(journal->fd, journal->path, presto_buffer_span(&line), err);
    presto_buffer_done(&line);
    free(text);
    journal->has_trials = true;
    return status;
}

presto_status presto__journal_add_preparation(presto__journal *journal, size_t i,
                                              const presto__trial *trial, presto_error *err) {
    if (journal == NULL)
        return PRESTO_OK;
    const presto__preparation *last = &trial->preparations[trial->preparation_count - 1];
    bool failed = false;
    json_t *object = json_object();
    put(&failed, object, "strategy", count_value(i));
    put(&failed, object, "preparation_s", number_value(last->wall_s));
    put(&failed, object, "cpu_s", number_value(last->cpu_s));
    put(&failed, object, "list_s", number_value(last->list_s));
    put(&failed, object, "error_s_per_sample", number_value(last->error_s_per_sample));
    put(&failed, object, "samples", count_value(trial->result.samples));
    put(&failed, object, "stored_bytes", count_value(trial->result.stored_bytes));
    put(&failed, object, "raw_bytes", count_value(trial->result.raw_bytes));
    put(&failed, object, "records", count_value(trial->record_bytes.count));
    put(&failed, object, "record_bytes_mean", number_value(trial->record_bytes.mean));
    put(&failed, object, "record_bytes_squares", number_value(trial->record_bytes.squares));
    put(&failed, object, "record_bytes_cubes", number_value(trial->record_bytes.cubes));
    put(&failed, object, "record_half", count_value(trial->record_half));
    return write_line(journal, object, failed, err);
}

presto_status presto__journal_add_run(presto__journal *journal, size_t i,
                                      const presto__trial *trial, presto_error *err) {
    if (journal == NULL)
        return PRESTO_OK;
    bool failed = false;
    json_t *object = json_object();
    put(&failed, object, "strategy", count_value(i));
    put(&failed, object, "cold", epochs_value(&failed, &trial->cold[trial->cold_count - 1]));
    put(&failed, object, "cached", epochs_value(&failed, &trial->cached[trial->cached_count - 1]));
    for (size_t k = 0; k < COUNT_OF(foretold); k++)
        put(&failed, object, foretold[k].name,
            number_value(number_at(&trial->result.prediction, foretold[k].offset)));
    return write_line(journal, object, failed, err);
}

presto_status presto__journal_add_lap(presto__journal *journal, size_t i,
                                      const presto__trial *trial, presto_error *err) {
    if (journal == NULL)
        return PRESTO_OK;
    const presto__lap *last = &trial->laps[trial->lap_count - 1];
    bool failed = false;
    json_t *object = json_object();
    put(&failed, object, "strategy", count_value(i));
    put(&failed, object, "round", count_value(last->round));
    put(&failed, object, "samples_per_s", number_value(last->samples_per_s));
    return write_line(journal, object, failed, err);
}

presto_status presto__journal_add_probe(presto__journal *journal, size_t number, json_t *found,
                                        presto_error *err) {
    bool failed = found == NULL;
    json_t *object = journal != NULL ? json_object() : NULL;
    put(&failed, object, "probe", count_value(number));
    put(&failed, object, "found", found);
    return journal != NULL ? write_line(journal, object, failed, err) : PRESTO_OK;
}

/* ---- reading: whoever wrote the file, nothing in it does more harm than wrong figures ---- */

/* Where a value is read, for messages. */
typedef struct reader {
    const presto__journal_request *request;
    uint64_t line;
    presto_error *err;
} reader;

#define fail_line(in, ...) fail_line_text(in, (const char *[]){__VA_ARGS__})

static presto_status fail_line_text(const reader *in, const char *const words[2]) {
    presto_status status = presto_fail(in->err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                                       "line %ju: %s %s", (uintmax_t)in->line, words[0], words[1]);
    presto_error_set_file(in->err, in->request->path);
    return status;
}

static presto_status read_number(const reader *in, const json_t *object, const number_field *field,
                                 double *value_out) {
    const json_t *value = json_object_get(object, field->name);
    *value_out = NAN;
    if (field->may_lack && (value == NULL || json_is_null(value)))
        return PRESTO_OK;
    if (!json_is_number(value) || !(json_number_value(value) >= 0))
        return fail_line(in, field->name, "is no number of 0 or more");
    *value_out = json_number_value(value);
    return PRESTO_OK;
}

static presto_status read_count(const reader *in, const json_t *object, const char *name,
                                uint64_t *value_out) {
    const json_t *value = json_object_get(object, name);
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return fail_line(in, name, "is no whole number of 0 or more");
    *value_out = (uint64_t)json_integer_value(value);
    return PRESTO_OK;
}

static presto_status read_cost(const reader *in, const json_t *object, presto__cost *cost_out) {
    static const number_field busy = {"busy_s_per_sample", 0, false};
    cost_out->is_step = json_object_get(object, "step") != NULL;
    const char *name =
        json_string_value(json_object_get(object, cost_out->is_step ? "step" : "stage"));
    if (name == NULL || strlen(name) >= sizeof cost_out->name)
        return fail_line(in, "work", "has a part without a name");
    memcpy(cost_out->name, name, strlen(name) + 1);
    return read_number(in, object, &busy, &cost_out->busy_s_per_sample);
}

static presto_status read_costs(const reader *in, const json_t *array, presto__epochs *epochs) {
    size_t count = json_array_size(array);
    if (!json_is_array(array) || count > MOST_COSTS)
        return fail_line(in, "work", "is no list of a run's parts");
    epochs->costs = calloc(count + 1, sizeof *epochs->costs);
    if (epochs->costs == NULL)
        return presto_fail_memory(in->err, (count + 1) * sizeof *epochs->costs);
    for (; epochs->cost_count < count; epochs->cost_count++)
        PRESTO_TRY(read_cost(in, json_array_get(array, epochs->cost_count),
                             &epochs->costs[epochs->cost_count]));
    return PRESTO_OK;
}

/* What *epochs_out holds is the caller's, also on failure. */
static presto_status read_epochs(const reader *in, const json_t *object,
                                 presto__epochs *epochs_out) {
    if (!json_is_object(object))
        return fail_line(in, "a run", "lacks its cold or cached epochs");
    for (size_t i = 0; i < COUNT_OF(counts); i++) {
        uint64_t value;
        PRESTO_TRY(read_count(in, object, counts[i].name, &value));
        if (value < counts[i].least)
            return fail_line(in, counts[i].name, "is 0");
        memcpy((char *)epochs_out + counts[i].offset, &value, sizeof value);
    }
    for (size_t i = 0; i < COUNT_OF(numbers); i++) {
        double value;
        PRESTO_TRY(read_number(in, object, &numbers[i], &value));
        memcpy((char *)epochs_out + numbers[i].offset, &value, sizeof value);
    }
    return read_costs(in, json_object_get(object, "work"), epochs_out);
}

static presto_status read_run(const reader *in, const json_t *object, presto__trial *trial) {
    presto__epochs cold = {0}, cached = {0};
    presto_status status = PRESTO_OK;
    if (trial->cold_count >= in->request->runs)
        status = fail_line(in, "a strategy", "had more runs: ask for as many (--runs), or more");
    if (status == PRESTO_OK)
        status = read_epochs(in, json_object_get(object, "cold"), &cold);
    if (status == PRESTO_OK)
        status = read_epochs(in, json_object_get(object, "cached"), &cached);
    if (status != PRESTO_OK) {
        free(cold.costs);
        free(cached.costs);
        return status;
    }
    trial->cold[trial->cold_count++] = cold;
    trial->cached[trial->cached_count++] = cached;
    for (size_t k = 0; k < COUNT_OF(foretold); k++) {
        double value;
        PRESTO_TRY(read_number(in, object, &foretold[k], &value));
        memcpy((char *)&trial->result.prediction + foretold[k].offset, &value, sizeof value);
    }
    return PRESTO_OK;
}

static presto_status read_preparation(const reader *in, const json_t *object,
                                      presto__trial *trial) {
    presto__preparation made;
    const struct {
        number_field field;
        double *at;
    } values[] = {
        {{"preparation_s", 0, false}, &made.wall_s},
        {{"cpu_s", 0, false}, &made.cpu_s},
        {{"list_s", 0, false}, &made.list_s},
        {{"error_s_per_sample", 0, true}, &made.error_s_per_sample},
        {{"record_bytes_mean", 0, false}, &trial->record_bytes.mean},
        {{"record_bytes_squares", 0, false}, &trial->record_bytes.squares},
    };
    if (trial->result.strategy.codec == NULL ||
        trial->preparation_count >= in->request->preparation_runs)
        return fail_line(in, "a strategy", "has more conversions than the sweep");
    for (size_t i = 0; i < COUNT_OF(values); i++)
        PRESTO_TRY(read_number(in, object, &values[i].field, values[i].at));
    const json_t *cubes = json_object_get(object, "record_bytes_cubes"); /* of either sign */
    if (!json_is_number(cubes))
        return fail_line(in, "record_bytes_cubes", "is no number");
    trial->record_bytes.cubes = json_number_value(cubes);
    PRESTO_TRY(read_count(in, object, "samples", &trial->result.samples));
    PRESTO_TRY(read_count(in, object, "stored_bytes", &trial->result.stored_bytes));
    PRESTO_TRY(read_count(in, object, "raw_bytes", &trial->result.raw_bytes));
    PRESTO_TRY(read_count(in, object, "records", &trial->record_bytes.count));
    PRESTO_TRY(read_count(in, object, "record_half", &trial->record_half));
    trial->preparations[trial->preparation_count++] = made;
    return PRESTO_OK;
}

static presto_status read_lap(const reader *in, const json_t *object, presto__trial *trial) {
    static const number_field rate = {"samples_per_s", 0, false};
    presto__lap lap;
    PRESTO_TRY(read_count(in, object, "round", &lap.round));
    PRESTO_TRY(read_number(in, object, &rate, &lap.samples_per_s));
    if (trial->lap_count > 0 && trial->laps[trial->lap_count - 1].round >= lap.round)
        return fail_line(in, "round", "is not behind the one before it");
    return presto__trial_add_lap(trial, lap, in->err);
}

/* What it holds is checked when the model takes it over. */
static presto_status read_probe(const reader *in, const json_t *object) {
    uint64_t number;
    json_t *found = json_object_get(object, "found");
    PRESTO_TRY(read_count(in, object, "probe", &number));
    if (number >= in->request->probe_count)
        return fail_line(in, "probe", "is none of the sweep's");
    if (!json_is_object(found))
        return fail_line(in, "probe", "has found nothing");
    json_decref(in->request->probes[number]);
    in->request->probes[number] = json_incref(found);
    return PRESTO_OK;
}

static presto_status read_of_strategy(const reader *in, const json_t *object) {
    uint64_t i;
    PRESTO_TRY(read_count(in, object, "strategy", &i));
    if (i >= in->request->trial_count)
        return fail_line(in, "strategy", "is none of the sweep's");
    presto__trial *trial = &in->request->trials[i];
    if (json_object_get(object, "cold") != NULL)
        return read_run(in, object, trial);
    if (json_object_get(object, "round") != NULL)
        return read_lap(in, object, trial);
    return read_preparation(in, object, trial);
}

static presto_status read_head(const reader *in, const json_t *object) {
    const char *sweep = json_string_value(json_object_get(object, "sweep"));
    uint64_t schema;
    PRESTO_TRY(read_count(in, object, "journal", &schema));
    if (schema == SCHEMA && sweep != NULL && strcmp(sweep, in->request->sweep) == 0)
        return PRESTO_OK;
    presto_status status = presto_fail(in->err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                                       "is of a sweep with other options, of another source, of "
                                       "files that have changed since, on another number of "
                                       "processors, or by another version, and cannot be resumed");
    presto_error_set_file(in->err, in->request->path);
    return status;
}

static presto_status read_line(const reader *in, presto_span line) {
    json_error_t where;
    presto_error why;
    if (presto__json_check(line, MOST_BYTES, MOST_LINE_WEIGHT, &why) < 0)
        return fail_line(in, "too much:", why.message);
    json_t *object =
        json_loadb((const char *)line.data, line.bytes, JSON_REJECT_DUPLICATES, &where);
    presto_status status;
    if (object == NULL)
        status = fail_line(in, "no JSON:", where.text);
    else if (in->line == 1)
        status = read_head(in, object);
    else if (json_object_get(object, "probe") != NULL)
        status = read_probe(in, object);
    else
        status = read_of_strategy(in, object);
    json_decref(object);
    return status;
}

presto_status presto__journal_read(const presto__journal_request *request, presto_span text,
                                   size_t *whole_out, presto_error *err) {
    reader in = {request, 0, err};
    size_t at = 0;
    for (const uint8_t *end; at < text.bytes; at = (size_t)(end - text.data) + 1) {
        end = memchr(text.data + at, '\n', text.bytes - at);
        if (end == NULL)
            break;
        in.line++;
        PRESTO_TRY(read_line(&in, presto_span_of(text.data + at, (size_t)(end - text.data) - at)));
    }
    *whole_out = at;
    return PRESTO_OK;
}

/* ---- opening ---- */

/* Bytes of the whole lines of an earlier sweep; 0: there are none. */
static presto_status read_earlier(const presto__journal_request *request, size_t *whole_out,
                                  presto_error *err) {
    presto_buffer text = {0};
    presto_status status = presto_file_read(request->path, MOST_BYTES, &text, err);
    if (status == PRESTO_ERR_NOT_FOUND)
        return PRESTO_OK;
    if (status == PRESTO_OK)
        status = presto__journal_read(request, presto_buffer_span(&text), whole_out, err);
    presto_buffer_done(&text);
    return status;
}

/* To go on behind the whole lines. Cutting off what is behind them needs no room on the disk. */
static presto_status open_file(presto__journal *journal, const char *path, size_t whole,
                               presto_error *err) {
    journal->path = strdup(path);
    if (journal->path == NULL)
        return presto_fail_memory(err, strlen(path) + 1);
    journal->fd = open(path, O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC);
    if (journal->fd < 0)
        return presto_fail_errno(err, errno, path, "cannot open");
    if (whole > 0 && ftruncate(journal->fd, (off_t)whole) != 0)
        return presto_fail_errno(err, errno, path, "cannot cut off a line without its end");
    return PRESTO_OK;
}

presto_status presto__journal_open(const presto__journal_request *request,
                                   presto__journal **journal_out, presto_error *err) {
    size_t whole = 0;
    char head[96];
    snprintf(head, sizeof head, "{\"journal\":%d,\"sweep\":\"%s\"}\n", SCHEMA, request->sweep);
    const presto_span first = presto_span_of_text(head);
    if (request->resume)
        PRESTO_TRY(read_earlier(request, &whole, err));
    if (whole == 0)
        PRESTO_TRY(presto_file_replace(request->path, &first, 1, true, err));
    presto__journal *journal = calloc(1, sizeof *journal);
    if (journal == NULL)
        return presto_fail_memory(err, sizeof *journal);
    journal->has_trials = whole > first.bytes;
    journal->fd = -1;
    presto_status status = open_file(journal, request->path, whole, err);
    if (status != PRESTO_OK) {
        presto__journal_close(journal);
        return status;
    }
    *journal_out = journal;
    return PRESTO_OK;
}

void presto__journal_close(presto__journal *journal) {
    if (journal == NULL)
        return;
    if (journal->fd >= 0)
        (void)close(journal->fd);
    if (journal->path != NULL && journal->fd >= 0 && !journal->has_trials)
        (void)unlink(journal->path);
    free(journal->path);
    free(journal);
}
