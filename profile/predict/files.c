/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a file more costs. Several threads take turns in a shard, so no thread waits for a file of
 * its own, and more files than one are not read faster. They only cost: each is opened and made
 * whole when it is written, its first read waits for storage, and blocks of work end where it ends.
 */
#include "../../base/clock_internal.h"
#include "../../base/file_internal.h"
#include "../../base/folder_internal.h"
#include "predict_internal.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS 3
#define LOOK_S 0.07
#define LOAD_S 0.4
#define RECORD_BYTES ((double)(128 << 20))
/* The cost of many files is that of so many times more. */
#define FILES_MOST 64

/* The same records in one file, and in many. */
typedef struct sides {
    const presto__online *what;
    uint64_t samples;
    size_t files[2];
    char *dirs[2];
    double stored_s[2];
    double cold_s[2][2][ROUNDS], cached_s[2][2][ROUNDS]; /* [side][threads][round], of an epoch */
} sides;

static uint64_t samples_to_load(const presto__online *what, size_t files) {
    double loaded = LOAD_S / fmax(what->split->times.cached_s.one, 1e-9);
    double held = RECORD_BYTES / fmax(what->split->raw_bytes, 1);
    double wanted = fmax(fmin(loaded, held), 2.0 * (double)files);
    return (uint64_t)fmin(wanted, (double)what->model->samples);
}

static presto_status store(sides *both, size_t side, presto_error *err) {
    presto_convert_options options;
    presto_convert_options_defaults(&options);
    options.dir = both->dirs[side];
    options.codec = "none";
    options.shards = both->files[side];
    options.threads = both->what->model->cores;
    options.limit_samples = both->samples;
    presto_convert_result result;
    uint64_t start = presto__clock_ns();
    PRESTO_TRY(presto_convert(&both->what->dir, 1, &options, &result, err));
    both->stored_s[side] = presto__seconds(presto__clock_ns() - start);
    return presto__settle(both->dirs[side], err);
}

static presto_status look(sides *both, size_t side, size_t round, presto_error *err) {
    const presto__online *what = both->what;
    double run_s = fmin(LOOK_S, what->runner->options->run_s);
    for (size_t t = 0; t < 2; t++) {
        presto__look seen = {.samples = both->samples, .cold_run_s = run_s, .cached_run_s = run_s};
        presto__trial trial = {.result.strategy = {.stored = what->split->name,
                                                   .codec = "none",
                                                   .threads = t == 0 ? 1 : what->model->cores,
                                                   .shards = both->files[side]},
                               .dir = both->dirs[side]};
        PRESTO_TRY(presto__runner_report(what->runner, &trial.result.strategy, NULL, err));
        PRESTO_TRY(presto__trial_look(what->runner, &trial, &seen, err));
        both->cold_s[side][t][round] = seen.cold_s * (double)both->samples;
        both->cached_s[side][t][round] = seen.cached_s * (double)both->samples;
    }
    return PRESTO_OK;
}

/* The seconds in the middle of many files over those of one, for each of the others. */
static double each(const sides *both, double seconds[2][2][ROUNDS], size_t t) {
    double one = seconds[0][t][presto__median_index(seconds[0][t], ROUNDS)];
    double many = seconds[1][t][presto__median_index(seconds[1][t], ROUNDS)];
    return fmax(many - one, 0) / (double)(both->files[1] - both->files[0]);
}

static presto_status compare(sides *both, presto__model_files *files_out, presto_error *err) {
    for (size_t side = 0; side < 2; side++)
        PRESTO_TRY(store(both, side, err));
    for (size_t round = 0; round < ROUNDS; round++)
        for (size_t side = 0; side < 2; side++)
            PRESTO_TRY(look(both, side, round, err));
    *files_out = (presto__model_files){
        .tried = both->files[1],
        .cold_s = {each(both, both->cold_s, 0), each(both, both->cold_s, 1)},
        .cached_s = {each(both, both->cached_s, 0), each(both, both->cached_s, 1)},
        .prepare_s = fmax(both->stored_s[1] - both->stored_s[0], 0) /
                     (double)(both->files[1] - both->files[0])};
    return PRESTO_OK;
}

presto_status presto__probe_files(const presto__online *what, size_t most,
                                  presto__model_files *files_out, presto_error *err) {
    size_t many = most < FILES_MOST ? most : FILES_MOST;
    if (many > what->model->samples)
        many = (size_t)what->model->samples;
    if (many < 2)
        return PRESTO_OK;
    const char *work_dir = what->runner->work_dir;
    sides both = {
        .what = what,
        .samples = samples_to_load(what, many),
        .files = {1, many},
        .dirs = {presto__join_path(work_dir, "one-file"), presto__join_path(work_dir, "files")}};
    presto_status status = both.dirs[0] != NULL && both.dirs[1] != NULL
                               ? compare(&both, files_out, err)
                               : presto_fail_memory(err, strlen(work_dir) + 16);
    for (size_t side = 0; side < 2; side++) {
        if (both.dirs[side] != NULL)
            (void)presto__folder_remove(both.dirs[side], NULL);
        free(both.dirs[side]);
    }
    return status;
}

/* The cost at this offset of presto__model_files, over the splits that were tried. */
static void join_cost(presto__model *model, size_t offset, double *room) {
    size_t count = 0;
    for (size_t s = 0; s < model->split_count; s++)
        if (model->splits[s].files.tried > 0)
            memcpy(&room[count++], (const char *)&model->splits[s].files + offset, sizeof *room);
    if (count == 0)
        return;
    double middle = room[presto__median_index(room, count)];
    for (size_t s = 0; s < model->split_count; s++)
        if (model->splits[s].files.tried > 0)
            memcpy((char *)&model->splits[s].files + offset, &middle, sizeof middle);
}

void presto__join_files(presto__model *model) {
    static const size_t offsets[] = {
        offsetof(presto__model_files, cold_s.one), offsetof(presto__model_files, cold_s.all),
        offsetof(presto__model_files, cached_s.one), offsetof(presto__model_files, cached_s.all),
        offsetof(presto__model_files, prepare_s)};
    double *room = calloc(model->split_count + 1, sizeof *room);
    for (size_t i = 0; i < sizeof offsets / sizeof *offsets && room != NULL; i++)
        join_cost(model, offsets[i], room);
    free(room); /* without memory each keeps its own */
}
