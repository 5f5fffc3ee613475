/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rounds: the contenders take turns with cold runs, forwards and backwards, until the choice is
 * decided. Those that are shown to be worse leave. It ends when the time is over, too, and when a
 * run fails: what is measured then counts more than the doubt that remains. What has been run to
 * decide before the rounds is part of that time.
 */
#include "../../base/clock_internal.h"
#include "sure_internal.h"

typedef struct lineup {
    size_t trials[PRESTO__CONTENDERS_MOST];
    size_t count;
} lineup;

/* All that can still be the best, the one that is and those it is compared with. */
static lineup line_up(const presto_sweep *sweep) {
    const presto_sweep_confidence *confidence = &sweep->confidence;
    lineup line = {.count = 0};
    if (confidence->leader != SIZE_MAX)
        line.trials[line.count++] = confidence->leader;
    for (size_t r = 0; r < confidence->rival_count; r++) {
        const presto_sweep_rival *rival = &confidence->rivals[r];
        bool is_known = rival->standing == PRESTO_SWEEP_WORSE ||
                        (confidence->leader == SIZE_MAX && rival->standing == PRESTO_SWEEP_REACHES);
        if (!is_known)
            line.trials[line.count++] = rival->result;
    }
    return line;
}

static size_t fewest_rounds(const presto_sweep *sweep, const lineup *line) {
    size_t fewest = SIZE_MAX;
    for (size_t i = 0; i < line->count; i++)
        if (sweep->trials[line->trials[i]].lap_count < fewest)
            fewest = sweep->trials[line->trials[i]].lap_count;
    return fewest;
}

static presto_status run_lap(presto_sweep *sweep, presto__runner *runner, size_t i,
                             presto_error *err) {
    presto__trial *trial = &sweep->trials[i];
    PRESTO_TRY(presto__runner_report(runner, &trial->result.strategy, NULL, err));
    if (trial->result.strategy.codec != NULL && trial->dir == NULL)
        PRESTO_TRY(presto__trial_prepare(runner, trial, err));
    PRESTO_TRY(presto__trial_lap(runner, trial, sweep->rounds, err));
    presto_error failure;
    if (presto__journal_add_lap(sweep->journal, i, trial, &failure) == PRESTO_OK)
        return PRESTO_OK;
    return presto__journal_give_up(sweep, &failure, err);
}

static presto_status run_round(presto_sweep *sweep, presto__runner *runner, const lineup *line,
                               presto_error *err) {
    sweep->rounds++;
    bool backwards = sweep->rounds % 2 == 0;
    for (size_t k = 0; k < line->count; k++)
        PRESTO_TRY(run_lap(sweep, runner, line->trials[backwards ? line->count - 1 - k : k], err));
    return PRESTO_OK;
}

static double seconds_since(uint64_t start_ns) {
    return presto__seconds(presto__clock_ns() - start_ns);
}

/* Rounds until the next look. */
static presto_status run_until_look(presto_sweep *sweep, presto__runner *runner, uint64_t start_ns,
                                    presto_error *err) {
    lineup line = line_up(sweep);
    do
        PRESTO_TRY(run_round(sweep, runner, &line, err));
    while (!presto__is_look(fewest_rounds(sweep, &line)) &&
           seconds_since(start_ns) < sweep->decide_s);
    return PRESTO_OK;
}

/* Datasets of those that are not measured again make room. */
static void remove_others(presto_sweep *sweep, const lineup *line) {
    for (size_t i = 0; i < sweep->trial_count; i++) {
        bool stays = false;
        for (size_t k = 0; k < line->count; k++)
            stays = stays || line->trials[k] == i;
        if (!stays)
            presto__trial_remove(&sweep->trials[i]);
    }
}

static presto_status note_failure(presto_sweep *sweep, const presto_error *why, presto_error *err) {
    char text[PRESTO_ERROR_FILE_BYTES + PRESTO_ERROR_MESSAGE_BYTES + 96];
    presto_error_format(why, text, sizeof text);
    return presto__add_note(sweep, err, "the runs that decide ended early: %s", text);
}

presto_status presto__race(presto_sweep *sweep, presto__runner *runner, presto_error *err) {
    uint64_t start_ns = presto__clock_ns() - (uint64_t)(sweep->race_s * 1e9);
    presto_status status = PRESTO_OK;
    presto_error why;
    while (status == PRESTO_OK) {
        PRESTO_TRY(presto__decide(sweep, err));
        lineup line = line_up(sweep);
        remove_others(sweep, &line);
        bool is_alone = line.count == (sweep->confidence.leader != SIZE_MAX);
        if (sweep->is_settled || is_alone || sweep->confidence.rival_count == 0 ||
            fewest_rounds(sweep, &line) >= PRESTO__ROUNDS_MOST ||
            seconds_since(start_ns) >= sweep->decide_s)
            break;
        status = run_until_look(sweep, runner, start_ns, &why);
        sweep->race_s = seconds_since(start_ns);
    }
    if (status == PRESTO_OK)
        return PRESTO_OK;
    if (status == PRESTO_ERR_STOPPED) {
        if (err != NULL)
            *err = why;
        return status;
    }
    return note_failure(sweep, &why, err);
}
