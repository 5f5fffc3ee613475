/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each step beside its library's bare call: speed of one thread, and how much a second one adds.
 * Both sides run in turn, in short slices. Their samples are in memory; nothing is read or
 * delivered.
 *
 * Usage: bench_steps [-r ROUNDS=15] [-m SLICE_MS=150] [-t THREADS=2] [-k ROW] [-q]
 *                    [-w WORK_DIR] [-o FIGURES]
 */
#include "steps.h"
#include "steps/pipelines_internal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock_internal.h"

enum { MAX_THREADS = 16 };

/* ---- one side on some threads ---- */

typedef struct team {
    const steps_side *side;
    void *states[MAX_THREADS];
    unsigned threads;
    size_t count;  /* of samples */
    size_t wanted; /* runs in one slice */
    size_t stride; /* runs that a thread takes at once */
    atomic_size_t next;
} team;

static void team_work(void *user, unsigned thread) {
    team *t = user;
    for (;;) {
        size_t first = atomic_fetch_add(&t->next, t->stride);
        if (first >= t->wanted)
            return;
        size_t end = first + t->stride < t->wanted ? first + t->stride : t->wanted;
        for (size_t i = first; i < end; i++)
            t->side->run(t->states[thread], i % t->count);
    }
}

static double team_run(void *user) {
    team *t = user;
    atomic_store(&t->next, 0);
    bench_on_threads(t->threads, team_work, t);
    return (double)t->wanted;
}

static void team_open(team *t, const steps_side *side, size_t count, unsigned threads) {
    *t = (team){.side = side, .threads = threads, .count = count};
    for (unsigned i = 0; i < threads; i++)
        t->states[i] = side->open(side->user);
}

static void team_close(team *t) {
    for (unsigned i = 0; i < t->threads; i++)
        t->side->close(t->states[i]);
}

/* So many runs that one thread takes about a slice; all teams do equally many for each thread. */
static size_t runs_of_slice(team *one, double slice_ms) {
    size_t runs = one->count;
    for (;;) {
        one->wanted = runs;
        one->stride = 1;
        uint64_t before = presto__clock_ns();
        team_run(one);
        double took_ms = (double)(presto__clock_ns() - before) / 1e6;
        if (took_ms >= slice_ms / 4)
            return (size_t)((double)runs * slice_ms / took_ms) + 1;
        runs *= 4;
    }
}

/* ---- rows ---- */

bool steps_wanted(const steps_settings *set, const char *row) {
    return set->only == NULL || strstr(row, set->only) != NULL;
}

static void note(const char *row, const bench_case *cases, unsigned threads) {
    char title[64];
    bench_figure best = {bench_best(&cases[1]), 0};
    snprintf(title, sizeof title, "%u threads / 1", threads);
    bench_note("steps", row, "samples/s", bench_figure_of(cases[1].in_turn, cases[1].rounds));
    bench_note("steps", row, "best", best);
    bench_note("steps", row, "step / bare call", bench_compare(&cases[1], &cases[0]));
    bench_note("steps", row, "by processor time", bench_compare_cpu(&cases[1], &cases[0]));
    if (threads > 1) {
        bench_note("steps", row, title, bench_compare(&cases[3], &cases[1]));
        snprintf(title, sizeof title, "%u threads / 1, bare", threads);
        bench_note("steps", row, title, bench_compare(&cases[2], &cases[0]));
    }
}

static void print_threads(const bench_case *cases, unsigned threads) {
    bench_figure step = bench_compare(&cases[3], &cases[1]);
    bench_figure bare = bench_compare(&cases[2], &cases[0]);
    bench_figure ratio = bench_compare(&cases[1], &cases[0]);
    printf(
        "  step / bare call %.3f +- %.0f %%; %u threads / 1: step %.2f +- %.0f %%, bare call %.2f "
        "+- %.0f %%\n",
        ratio.median, ratio.spread * 100, threads, step.median, step.spread * 100, bare.median,
        bare.spread * 100);
}

void steps_measure(const steps_settings *set, const char *row, size_t count, const steps_side *step,
                   const steps_side *bare) {
    static team teams[4];
    bench_case cases[4] = {{.name = "bare call", .run = team_run, .user = &teams[0]},
                           {.name = "step", .run = team_run, .user = &teams[1]},
                           {.name = "bare call, threads", .run = team_run, .user = &teams[2]},
                           {.name = "step, threads", .run = team_run, .user = &teams[3]}};
    size_t used = set->threads > 1 ? 4 : 2;
    for (size_t i = 0; i < used; i++)
        team_open(&teams[i], i % 2 == 0 ? bare : step, count, i < 2 ? 1 : set->threads);
    size_t runs = runs_of_slice(&teams[0], set->slice_ms);
    for (size_t i = 0; i < used; i++) {
        teams[i].wanted = runs * teams[i].threads;
        teams[i].stride = runs / 64 + 1;
    }
    bench_run(cases, used, set->rounds);
    bench_print(row, cases, used, 1, "samples/s");
    if (set->threads > 1)
        print_threads(cases, set->threads);
    note(row, cases, set->threads);
    for (size_t i = 0; i < used; i++)
        team_close(&teams[i]);
}

/* ---- steps of a pipeline ---- */

struct steps_plan {
    presto_pipeline *pipeline;
    presto_plan *plan;
    const presto_tensor *inputs;
};

typedef struct plan_state {
    const steps_plan *of;
    presto_arena arena;
    presto__plan_worker *worker;
} plan_state;

static steps_plan *make_plan(const char *yaml, const presto__plan_options *options,
                             const presto_tensor *inputs) {
    presto_error err;
    steps_plan *made = calloc(1, sizeof *made);
    if (made == NULL)
        bench_die("out of memory");
    made->inputs = inputs;
    bench_need(
        presto__pipeline_parse(presto_span_of_text(yaml), "bench", NULL, &made->pipeline, &err),
        &err, yaml);
    bench_need(presto__plan_new(made->pipeline, options, &made->plan, &err), &err, yaml);
    return made;
}

steps_plan *steps_plan_new(const char *yaml, size_t first, size_t last,
                           const presto_tensor_spec *in, const presto_tensor *inputs) {
    presto__plan_options options = {
        .struct_bytes = sizeof options, .first_step = first, .last_step = last, .in = in};
    return make_plan(yaml, &options, inputs);
}

steps_plan *steps_plan_new_unfused(const char *yaml, size_t first, size_t last,
                                   const presto_tensor_spec *in, const presto_tensor *inputs) {
    presto__plan_options options = {.struct_bytes = sizeof options,
                                    .first_step = first,
                                    .last_step = last,
                                    .in = in,
                                    .no_fusion = true};
    return make_plan(yaml, &options, inputs);
}

void steps_plan_free(steps_plan *plan) {
    presto__plan_free(plan->plan);
    presto_pipeline_free(plan->pipeline);
    free(plan);
}

static void *plan_open(const void *user) {
    plan_state *state = calloc(1, sizeof *state);
    presto__plan_worker_options options;
    presto_error err;
    if (state == NULL)
        bench_die("out of memory");
    state->of = user;
    presto__plan_worker_options_defaults(&options);
    options.arena = &state->arena;
    bench_need(presto__plan_worker_new(state->of->plan, &options, &state->worker, &err), &err,
               "worker");
    return state;
}

static void plan_run(void *user, size_t number) {
    plan_state *state = user;
    presto_feature feature = {.name = presto_span_of_text("value"),
                              .tensor = state->of->inputs[number]};
    presto_sample sample = {&feature, 1, number};
    presto__plan_run_options options;
    presto_error err;
    presto__plan_run_options_defaults(&options);
    presto_arena_reset(&state->arena);
    bench_need(presto__plan_run(state->worker, &options, &sample, &err), &err, "step");
}

static void plan_close(void *user) {
    plan_state *state = user;
    presto__plan_worker_free(state->worker);
    presto_arena_done(&state->arena);
    free(state);
}

steps_side steps_plan_side(const steps_plan *plan) {
    return (steps_side){.open = plan_open, .run = plan_run, .close = plan_close, .user = plan};
}

/* ---- samples ---- */

const presto_tensor_spec steps_string_spec = {PRESTO_STRING, 0, {0}};

static presto_span read_file(const char *path) {
    FILE *file = fopen(path, "rb");
    long bytes = -1;
    if (file != NULL && fseek(file, 0, SEEK_END) == 0)
        bytes = ftell(file);
    if (bytes < 0)
        bench_die("%s: %s", path, strerror(errno));
    rewind(file);
    uint8_t *data = malloc((size_t)bytes + 1);
    if (data == NULL || fread(data, 1, (size_t)bytes, file) != (size_t)bytes)
        bench_die("%s: cannot read", path);
    fclose(file);
    return presto_span_of(data, (size_t)bytes);
}

void steps_read_files(const char *folder, const char *ending, size_t most, steps_files *files_out) {
    char command[STEPS_PATH_BYTES + 128];
    char path[STEPS_PATH_BYTES];
    steps_files files = {calloc(most, sizeof *files.files), calloc(most, sizeof *files.samples), 0};
    snprintf(command, sizeof command,
             "find \"%s\" -type f -name '*%s' ! -name '.*' | LC_ALL=C sort", folder, ending);
    FILE *list = popen(command, "r");
    if (list == NULL || files.files == NULL || files.samples == NULL)
        bench_die("%s: cannot list", folder);
    while (files.count < most && fgets(path, sizeof path, list) != NULL) {
        path[strcspn(path, "\n")] = '\0';
        files.files[files.count] = read_file(path);
        files.samples[files.count] =
            (presto_tensor){.spec = steps_string_spec, .strings = &files.files[files.count]};
        files.count++;
    }
    pclose(list);
    if (files.count == 0)
        bench_die("%s: no file *%s", folder, ending);
    *files_out = files;
}

void steps_free_files(steps_files *files) {
    for (size_t i = 0; i < files->count; i++)
        free((void *)(uintptr_t)files->files[i].data);
    free(files->files);
    free(files->samples);
}

#if PRESTO_HAVE_JPEG
void steps_make_photos(const steps_settings *set, size_t count, const char *options,
                       steps_files *photos_out) {
    char folder[STEPS_PATH_BYTES];
    snprintf(folder, sizeof folder, "%s/photos", set->work);
    steps_shell("rm -rf \"%s\" && \"%s\" -q -c 1 -n %zu %s %s -o \"%s\"", folder,
                PRESTO_CORPUS_PROGRAM, count, options, set->quick ? "--width 64 --height 48" : "",
                folder);
    steps_read_files(folder, "", count, photos_out);
}
#endif

void steps_corpus(const steps_settings *set, const char *name, const char *options,
                  char *path_out) {
    char command[STEPS_PATH_BYTES];
    snprintf(command, sizeof command, "\"%s\" %s %s", PRESTO_CORPORA_PROGRAM, name,
             set->quick ? "--tiny" : options);
    FILE *made = popen(command, "r");
    if (made == NULL || fgets(path_out, STEPS_PATH_BYTES, made) == NULL)
        bench_die("failed: %s", command);
    path_out[strcspn(path_out, "\n")] = '\0';
    if (pclose(made) != 0)
        bench_die("failed: %s", command);
}

void steps_shell(const char *format, ...) {
    char command[4096];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(command, sizeof command, format, args);
    va_end(args);
    if (length < 0 || (size_t)length >= sizeof command || system(command) != 0)
        bench_die("failed: %s", command);
}

/* ---- command line ---- */

static void parse_arguments(int argc, char **argv, steps_settings *set) {
    for (int option; (option = getopt(argc, argv, "r:m:t:k:qw:o:")) != -1;) {
        if (option == 'r')
            set->rounds = (unsigned)strtoul(optarg, NULL, 10);
        else if (option == 'm')
            set->slice_ms = strtod(optarg, NULL);
        else if (option == 't')
            set->threads = (unsigned)strtoul(optarg, NULL, 10);
        else if (option == 'k')
            set->only = optarg;
        else if (option == 'q')
            set->quick = true;
        else if (option == 'w')
            set->work = optarg;
        else if (option == 'o')
            bench_figures_to(optarg);
        else
            bench_die("usage: bench_steps [-r ROUNDS] [-m SLICE_MS] [-t THREADS] [-k ROW] "
                      "[-q] [-w WORK_DIR] [-o FIGURES]");
    }
    if (set->threads < 1 || set->threads > MAX_THREADS || !(set->slice_ms > 0))
        bench_die("threads 1 to %d, a slice above 0 ms", MAX_THREADS);
}

int main(int argc, char **argv) {
    steps_settings set = {.rounds = 15, .slice_ms = 150, .threads = 2};
    parse_arguments(argc, argv, &set);
    char made[] = "/tmp/presto-bench-XXXXXX";
    bool is_ours = set.work == NULL;
    if (is_ours && mkdtemp(made) == NULL)
        bench_die("cannot make %s", made);
    if (is_ours)
        set.work = made;
    bench_make_folder(set.work);
#if PRESTO_HAVE_JPEG
    steps_image(&set);
    steps_augment(&set);
#endif
    steps_signal(&set);
#if PRESTO_HAVE_SNDFILE && PRESTO_HAVE_EIGEN
    steps_audio(&set);
#endif
#if PRESTO_HAVE_HTML
    steps_text(&set);
#endif
#if PRESTO_HAVE_SENTENCEPIECE
    steps_tokens(&set);
#endif
    if (is_ours)
        steps_shell("rm -rf \"%s\"", made);
    return 0;
}
