/* SPDX-License-Identifier: Apache-2.0 */
/* How sure the recommendation is, in a sentence: by how much it is better than the next, or what it
 * cannot be told from, and what was decided by then. */
#include "../choice/sure_internal.h"

#include <math.h>
#include <stdio.h>

#define TEXT_BYTES 96

/* What is compared, in words for more and for less of it. */
typedef struct words {
    const char *more, *less;
} words;

/* Is the score that of the rate alone? */
static bool is_only_rate(const presto_sweep *sweep) {
    return !(sweep->weights.preparation > 0) && !(sweep->weights.storage > 0);
}

static words words_of(const presto_sweep *sweep) {
    switch (sweep->matter) {
    case PRESTO__BY_COST:
        return (words){"cheaper", "costlier"};
    case PRESTO__BY_TARGET:
        return (words){"above", "below"};
    case PRESTO__BY_RATE:
    case PRESTO__BY_SCORE:
        break;
    }
    return is_only_rate(sweep) || sweep->matter == PRESTO__BY_RATE ? (words){"faster", "slower"}
                                                                   : (words){"better", "worse"};
}

/* By how many percent a ratio of rates, or of the other's cost to this one's, is more. */
static double percent_more(const presto_sweep *sweep, double ratio) {
    return 100 * (sweep->matter == PRESTO__BY_COST ? 1 - 1 / ratio : ratio - 1);
}

/* "5.1 to 7.9 % faster", "0.5 % slower to 4.1 % faster". */
static char *format_range(const presto_sweep *sweep, double least, double most,
                          char text_out[TEXT_BYTES]) {
    double low = percent_more(sweep, least), high = percent_more(sweep, most);
    words in = words_of(sweep);
    if (low >= 0)
        snprintf(text_out, TEXT_BYTES, "%.1f to %.1f %% %s", low, high, in.more);
    else if (high <= 0)
        snprintf(text_out, TEXT_BYTES, "%.1f to %.1f %% %s", -high, -low, in.less);
    else
        snprintf(text_out, TEXT_BYTES, "%.1f %% %s to %.1f %% %s", -low, in.less, high, in.more);
    return text_out;
}

static const char *name_of(const presto_sweep *sweep, size_t i, char *text_out) {
    return presto__strategy_format(&sweep->trials[i].result.strategy, text_out,
                                   PRESTO__STRATEGY_TEXT_BYTES);
}

char *presto__saving_format(const presto__merit *mine, const presto__merit *others,
                            char text_out[PRESTO__SAVING_BYTES]) {
    if (mine->is_source)
        snprintf(text_out, PRESTO__SAVING_BYTES, "stores nothing");
    else
        snprintf(text_out, PRESTO__SAVING_BYTES, "stores %.0f %% less",
                 100 * (1 - mine->stored_bytes / others->stored_bytes));
    return text_out;
}

/* "this one is recommended because it stores 45 % less", or what it costs at most to take any:
 * `least` is the worst ratio of this one to the other, NAN if that is not known. */
static presto_status add_tie(const presto_sweep *sweep, size_t other, double least,
                             presto_buffer *text, presto_error *err) {
    presto__merit mine = presto__merit_of(&sweep->trials[sweep->best].result);
    presto__merit others = presto__merit_of(&sweep->trials[other].result);
    const char *need_less = "needs less storage, threads or preparation";
    char saving[PRESTO__SAVING_BYTES];
    switch (presto__merit_saving(&mine, &others)) {
    case PRESTO__SAVES_STORAGE:
        return presto__text_add(text, err, "this one is recommended because it %s",
                                presto__saving_format(&mine, &others, saving));
    case PRESTO__SAVES_THREADS:
        return presto__text_add(text, err,
                                "this one is recommended because it needs fewer threads");
    case PRESTO__SAVES_PREPARATION:
        return presto__text_add(text, err, "this one is recommended because it is prepared sooner");
    case PRESTO__SAVES_NOTHING:
        break;
    }
    if (!isfinite(least))
        return presto__text_add(text, err, "neither %s", need_less);
    if (least < 1 - PRESTO__SAME)
        return presto__text_add(text, err, "neither %s; this one is %.0f %% %s at worst", need_less,
                                -percent_more(sweep, least), words_of(sweep).less);
    return presto__text_add(text, err, "neither %s: either will do", need_less);
}

/* The one that casts most doubt on the best: the leader, or the rival that may be most ahead. */
static size_t find_nearest(const presto_sweep *sweep) {
    const presto_sweep_confidence *confidence = &sweep->confidence;
    const presto_sweep_rival *nearest = NULL;
    if (confidence->leader != sweep->best)
        return confidence->leader;
    for (size_t r = 0; r < confidence->rival_count; r++) {
        const presto_sweep_rival *rival = &confidence->rivals[r];
        bool is_known = isfinite(rival->ratio_most);
        if (nearest == NULL || (isfinite(nearest->ratio_most) &&
                                (!is_known || rival->ratio_most > nearest->ratio_most)))
            nearest = rival;
    }
    return nearest->result;
}

static const char *head_of(const presto_sweep *sweep) {
    if (!sweep->is_settled)
        return " Undecided:"; /* others near it were not measured again */
    return sweep->confidence.is_decided        ? " Decided:"
           : sweep->confidence.start_part != 0 ? " In these epochs:"
                                               : " Of those that were run:";
}

static presto_status add_between(const presto_sweep *sweep, presto_buffer *text,
                                 presto_error *err) {
    size_t other = find_nearest(sweep);
    presto__interval over = presto__compare(sweep, sweep->best, other);
    double least = exp(over.least), most = exp(over.most);
    char name[PRESTO__STRATEGY_TEXT_BYTES], range[TEXT_BYTES], rounds[PRESTO_TEXT_BYTES];
    name_of(sweep, other, name);
    presto_format_things(over.count, "run", rounds);
    if (!isfinite(over.least)) {
        PRESTO_TRY(presto__text_add(text, err,
                                    " Undecided between it and %s: %s of each %s too few; ", name,
                                    rounds, over.count == 1 ? "is" : "are"));
        if (sweep->trials[other].result.is_equal)
            return add_tie(sweep, other, NAN, text, err);
        return presto__text_add(text, err,
                                "this one is recommended because it was %s in the runs so far",
                                words_of(sweep).more);
    }
    format_range(sweep, least, most, range);
    if (least > 1 / (1 - PRESTO__SAME))
        return presto__text_add(text, err, "%s in %s of each it was %s than the next, %s",
                                head_of(sweep), rounds, range, name);
    if (sweep->is_settled)
        PRESTO_TRY(presto__text_add(
            text, err, "%s %s is %sas good within 2 %% (in %s of each this one was %s), and ",
            head_of(sweep), name, most > 1 / (1 - PRESTO__SAME) ? "at best " : "", rounds, range));
    else
        PRESTO_TRY(presto__text_add(text, err,
                                    " Undecided between it and %s: in %s of each this one was %s; ",
                                    name, rounds, range));
    return add_tie(sweep, other, least, text, err);
}

static const char *need_of(const presto_sweep *sweep) {
    return presto__prices_given(&sweep->prices) ? "costs" : "needs";
}

static presto_status add_reach(const presto_sweep *sweep, const presto_sweep_rival *rival,
                               presto_buffer *text, presto_error *err) {
    char name[PRESTO__STRATEGY_TEXT_BYTES], range[TEXT_BYTES], rounds[PRESTO_TEXT_BYTES];
    char whose[PRESTO__STRATEGY_TEXT_BYTES + 32] = "it";
    if (rival->result != sweep->best)
        snprintf(whose, sizeof whose, "%s%s, which %s less,",
                 sweep->trials[rival->result].result.strategy.codec == NULL ? "reading " : "",
                 name_of(sweep, rival->result, name), need_of(sweep));
    double headroom = 100 * sweep->limits.headroom;
    presto_format_things(rival->rounds, "run", rounds);
    if (isnan(rival->ratio_least))
        return presto__text_add(text, err, " Undecided whether %s reaches it: %s %s too few.",
                                whose, rounds, rival->rounds == 1 ? "is" : "are");
    format_range(sweep, rival->ratio_least, rival->ratio_most, range);
    if (rival->standing == PRESTO_SWEEP_UNKNOWN)
        return presto__text_add(text, err,
                                " Undecided whether %s reaches it: in %s it was %s "
                                "the target with %.0f %% headroom.",
                                whose, rounds, range, headroom);
    return presto__text_add(text, err, "%s in %s it was %s the target with %.0f %% headroom.",
                            head_of(sweep), rounds, range, headroom);
}

/* Of the contenders: the best itself, or one that needs less and may reach the target. */
static presto_status add_target(const presto_sweep *sweep, presto_buffer *text, presto_error *err) {
    const presto_sweep_confidence *confidence = &sweep->confidence;
    for (size_t r = 0; r < confidence->rival_count; r++) {
        const presto_sweep_rival *rival = &confidence->rivals[r];
        bool is_open = rival->standing == PRESTO_SWEEP_UNKNOWN;
        if (rival->rounds > 0 && sweep->is_settled ? rival->result == sweep->best : is_open)
            return add_reach(sweep, rival, text, err);
    }
    return confidence->is_decided
               ? presto__text_add(text, err, " Decided: nothing that %s less reaches it.",
                                  need_of(sweep))
               : PRESTO_OK;
}

bool presto__has_rounds(const presto_sweep *sweep) {
    for (size_t r = 0; r < sweep->confidence.rival_count; r++)
        if (sweep->confidence.rivals[r].rounds > 0)
            return true;
    return false;
}

/* Has the target the best itself among its contenders? */
static bool best_contends(const presto_sweep *sweep) {
    for (size_t r = 0; r < sweep->confidence.rival_count; r++)
        if (sweep->matter == PRESTO__BY_TARGET && sweep->rivals[r].result == sweep->best)
            return true;
    return false;
}

/* "3 others near it were not measured again" */
static presto_status add_left(size_t left, presto_buffer *text, presto_error *err) {
    return presto__text_add(text, err, "%zu other%s near it %s not measured again", left,
                            presto_plural(left), left == 1 ? "was" : "were");
}

/* ---- what was not run ---- */

static presto_status add_best_not_run(const presto_sweep *sweep, presto_buffer *text,
                                      presto_error *err) {
    const presto_strategy_result *best = &sweep->trials[sweep->best].result;
    char threads[PRESTO_TEXT_BYTES], cpus[PRESTO_TEXT_BYTES], why[128] = "";
    if (best->prediction.is_elsewhere)
        snprintf(why, sizeof why, ", as it has %s and this machine has %s",
                 presto_format_things(best->strategy.threads, "thread", threads),
                 presto_format_things(sweep->facts.cpus, "processor", cpus));
    return presto__text_add(
        text, err, "%s it was not run%s; its speed is predicted, to about +-%.0f %%.",
        sweep->is_settled ? " Undecided:" : " Besides,", why, 100 * best->prediction.uncertainty);
}

/* "may be up to 6 % faster" */
static presto_status add_chance(const presto_sweep *sweep, size_t i, presto_buffer *text,
                                presto_error *err) {
    double goal = presto__goal(&sweep->limits);
    if (sweep->verdict != PRESTO_SWEEP_MISSES && goal > 0)
        return presto__text_add(text, err, "%s less and may reach the target", need_of(sweep));
    if (goal > 0 && sweep->trials[i].result.cold.samples_per_s.most >= goal)
        return presto__text_add(text, err, "may reach the target");
    double ahead = presto__most_ahead(sweep, i);
    if (ahead <= -log(1 - PRESTO__SAME))
        return presto__text_add(text, err, "may be as good and needs less");
    return presto__text_add(text, err, "may be up to %.0f %% %s", percent_more(sweep, exp(ahead)),
                            words_of(sweep).more);
}

static presto_status add_why_not(const presto_sweep *sweep, size_t i, presto_buffer *text,
                                 presto_error *err) {
    presto__merit mine = presto__merit_of(&sweep->trials[sweep->best].result);
    presto__merit other = presto__merit_of(&sweep->trials[i].result);
    PRESTO_TRY(presto__text_add(text, err, "; "));
    if (presto__needs_less(&mine, &other))
        return add_tie(sweep, i, NAN, text, err);
    return presto__text_add(text, err, "this one is recommended because it was run");
}

/* Strategies that could change the choice if they were run. */
static presto_status add_not_run(const presto_sweep *sweep, presto_buffer *text,
                                 presto_error *err) {
    size_t i = sweep->confidence.not_run, others = sweep->confidence.not_run_count - 1;
    char name[PRESTO__STRATEGY_TEXT_BYTES];
    if (i == sweep->best)
        return add_best_not_run(sweep, text, err);
    bool is_elsewhere = sweep->trials[i].result.prediction.is_elsewhere;
    PRESTO_TRY(presto__text_add(
        text, err, "%s %s, which was not run%s and ",
        sweep->is_settled ? " Undecided between it and" : " Nor is anything known for sure of",
        name_of(sweep, i, name), is_elsewhere ? ", for lack of processors," : ""));
    PRESTO_TRY(add_chance(sweep, i, text, err));
    if (others > 0)
        PRESTO_TRY(
            presto__text_add(text, err, " (as may %zu other%s)", others, presto_plural(others)));
    if (sweep->is_settled)
        PRESTO_TRY(add_why_not(sweep, i, text, err));
    return presto__text_add(text, err, ".");
}

/* ---- what was run ---- */

/* " Decided; the next is decoded on 2 threads with 1,234 samples/s." The sentences about targets and
 * costs name the next themselves. */
static presto_status add_unrivalled(const presto_sweep *sweep, presto_buffer *text,
                                    presto_error *err) {
    size_t next = presto_sweep_runner_up(sweep, 0);
    char name[PRESTO__STRATEGY_TEXT_BYTES], rate[PRESTO_TEXT_BYTES];
    if (sweep->matter != PRESTO__BY_SCORE || !sweep->confidence.is_decided || next == SIZE_MAX)
        return PRESTO_OK;
    const presto_strategy_result *result = &sweep->trials[next].result;
    PRESTO_TRY(
        presto__text_add(text, err, " Decided; the next is %s with ", name_of(sweep, next, name)));
    if (is_only_rate(sweep))
        return presto__text_add(text, err, "%s samples/s%s.",
                                presto_format_number(result->cold.samples_per_s.median, rate),
                                result->is_predicted ? " (predicted)" : "");
    return presto__text_add(text, err, "a score of %.3f.", result->score);
}

static presto_status add_run(const presto_sweep *sweep, presto_buffer *text_out,
                             presto_error *err) {
    const presto_sweep_confidence *confidence = &sweep->confidence;
    if (confidence->rival_count == 0)
        return add_unrivalled(sweep, text_out, err);
    if (!presto__has_rounds(sweep)) {
        if (sweep->is_settled)
            return PRESTO_OK;
        size_t left = confidence->rival_count + confidence->left_out;
        bool is_open = best_contends(sweep);
        PRESTO_TRY(
            presto__text_add(text_out, err,
                             is_open ? " Undecided whether it reaches it: it was not measured again"
                                     : " Undecided: "));
        if (is_open && left > 1)
            PRESTO_TRY(presto__text_add(text_out, err, "; "));
        if (left > is_open)
            PRESTO_TRY(add_left(left - is_open, text_out, err));
        return presto__text_add(text_out, err, ".");
    }
    if (sweep->matter == PRESTO__BY_TARGET)
        return add_target(sweep, text_out, err);
    PRESTO_TRY(add_between(sweep, text_out, err));
    if (confidence->left_out > 0) {
        PRESTO_TRY(presto__text_add(text_out, err, "; "));
        PRESTO_TRY(add_left(confidence->left_out, text_out, err));
    }
    return presto__text_add(text_out, err, ".");
}

/* Epochs were too short to tell what an epoch of the whole source would be. */
static presto_status add_start(const presto_sweep *sweep, presto_buffer *text, presto_error *err) {
    double part = sweep->confidence.start_part;
    if (part == 0)
        return PRESTO_OK;
    const char *head = sweep->is_settled ? "Undecided:" : "Besides,";
    if (isnan(part))
        return presto__text_add(text, err,
                                " %s epochs were short, and what starts them counted in full; more "
                                "samples, more --run-time or more room on the disk would tell.",
                                head);
    return presto__text_add(text, err,
                            " %s epochs were short, and their start-up counted for %.0f %%; more "
                            "samples, more --run-time or more room on the disk would tell.",
                            head, 100 * part);
}

presto_status presto__reason_sure(const presto_sweep *sweep, presto_buffer *text_out,
                                  presto_error *err) {
    bool by_rate = sweep->matter != PRESTO__BY_SCORE || sweep->weights.throughput > 0;
    PRESTO_TRY(add_run(sweep, text_out, err));
    if (presto__lacks_some(sweep))
        PRESTO_TRY(presto__text_add(text_out, err,
                                    " Undecided: the sweep was stopped before it had looked at "
                                    "all."));
    if (!by_rate && !sweep->is_settled)
        PRESTO_TRY(presto__text_add(text_out, err,
                                    " Undecided: times of preparation vary, and rounds do not "
                                    "measure them."));
    PRESTO_TRY(add_start(sweep, text_out, err));
    return sweep->confidence.not_run_count > 0 ? add_not_run(sweep, text_out, err) : PRESTO_OK;
}
