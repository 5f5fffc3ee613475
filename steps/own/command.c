/* SPDX-License-Identifier: Apache-2.0 */
/* command: the step is computed by a program that reads requests from stdin and writes replies to
 * stdout (docs/own-steps.md). */
#include <stdio.h>
#include <stdlib.h>

#include "../../base/process_internal.h"
#include "../../base/tensor_internal.h"
#include "own_internal.h"

enum {
    RUN,
    OUTPUT,
    WORKERS,
    TIMEOUT,
    START_TIMEOUT,
    MAX_REPLY,
    FEATURES,
    SETS,
    RANDOM,
    DROPS,
    OPTION_COUNT
};

#define MAX_REPLY_LIMIT 2147483647.0 /* of an Example */
#define MAX_DAYS_S 864000.0
#define MAX_WORKERS 1024

static const presto_option_type options[OPTION_COUNT] = {
    [RUN] = {.name = "run",
             .kind = PRESTO_OPTION_COMMAND,
             .required = true,
             .help = "the program, found by PATH unless it has a slash, and its arguments; those "
                     "that are files beside the pipeline are found there"},
    [OUTPUT] = {.name = "output",
                .kind = PRESTO_OPTION_TEXT,
                .required = true,
                .help = "dtype and shape of what it gives, e.g. `uint8[?,?,3]`, `float32[128]`, "
                        "`int64[?]` or `string`"},
    [WORKERS] = {.name = "workers",
                 .kind = PRESTO_OPTION_INT,
                 .minimum = 1,
                 .maximum = MAX_WORKERS,
                 .help = "most processes at once; without it, one for each thread (`-j`). A thread "
                         "waits while its process works"},
    [TIMEOUT] = {.name = "timeout",
                 .kind = PRESTO_OPTION_TIME,
                 .default_text = "30s",
                 .minimum = 0.001,
                 .maximum = MAX_DAYS_S,
                 .unit = "seconds",
                 .help = "the longest wait for a reply"},
    [START_TIMEOUT] = {.name = "start-timeout",
                       .kind = PRESTO_OPTION_TIME,
                       .default_text = "2m",
                       .minimum = 0.001,
                       .maximum = MAX_DAYS_S,
                       .unit = "seconds",
                       .help = "more of it for the first reply of a process"},
    [MAX_REPLY] = {.name = "max-reply",
                   .kind = PRESTO_OPTION_SIZE,
                   .default_text = "256MiB",
                   .minimum = 1,
                   .maximum = MAX_REPLY_LIMIT,
                   .unit = "bytes",
                   .help = "a longer reply ends the run"},
    [FEATURES] = {.name = "features",
                  .kind = PRESTO_OPTION_TEXT_LIST,
                  .help = "other features of the sample that it gets"},
    [SETS] = {.name = "sets",
              .kind = PRESTO_OPTION_TEXT_LIST,
              .help = "other features that it may give, each as `NAME=SPEC`, e.g. "
                      "`boxes=float32[?,4]`"},
    [RANDOM] = {.name = "random",
                .kind = PRESTO_OPTION_BOOL,
                .default_text = "false",
                .help = "it draws random numbers, from the seed that it gets with each sample: its "
                        "output is never stored"},
    [DROPS] = {.name = "drops",
               .kind = PRESTO_OPTION_BOOL,
               .default_text = "false",
               .help = "it may leave samples out"},
};

typedef struct command_state {
    presto_arena arena; /* of all below */
    const char **argv;
    const char **features;
    size_t feature_count;
    presto__reply_form form;
    presto__workers_options pool; /* without the path */
    unsigned flags;
} command_state;

/* ---- the options ---- */

static void destroy(void *state) {
    command_state *command = state;
    presto_arena_done(&command->arena);
    free(command);
}

static char *copy_text(command_state *command, const char *text, size_t bytes) {
    char *copy = presto_arena_alloc(&command->arena, bytes + 1, 1);
    if (copy != NULL) {
        memcpy(copy, text, bytes);
        copy[bytes] = '\0';
    }
    return copy;
}

/* A copy of the list, which ends with NULL. */
static presto_status copy_list(command_state *command, const presto_option *list,
                               const char ***copy_out, presto_error *err) {
    size_t count = list->is_set ? list->text_count : 0;
    const char **copy =
        presto_arena_alloc(&command->arena, (count + 1) * sizeof *copy, _Alignof(const char *));
    for (size_t i = 0; copy != NULL && i < count; i++) {
        copy[i] = copy_text(command, list->texts[i], strlen(list->texts[i]));
        if (copy[i] == NULL)
            copy = NULL;
    }
    if (copy == NULL)
        return presto_fail_memory(err, count * sizeof *copy);
    copy[count] = NULL;
    *copy_out = copy;
    return PRESTO_OK;
}

static presto_status check_name(const char *name, presto_error *err) {
    static const char *const taken[] = {PRESTO__VALUE_NAME, PRESTO__ERROR_NAME,
                                        PRESTO__RANDOM_NAME};
    if (name[0] == '\0')
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET, "a feature without a name");
    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++)
        if (strcmp(name, taken[i]) == 0)
            return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                               "'%s' has a meaning in requests and replies: no other feature can "
                               "go under that name",
                               name);
    return PRESTO_OK;
}

static presto_status parse_spec(const char *option, const char *text, presto_feature_spec *spec,
                                presto_error *err) {
    if (!presto__spec_parse(text, &spec->spec))
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "%s: '%s' is no dtype and shape such as uint8[?,?,3] or string", option,
                           text);
    spec->encoding = spec->spec.dtype == PRESTO_STRING ? PRESTO_ENCODE_BYTES : PRESTO_ENCODE_TENSOR;
    return PRESTO_OK;
}

/* The value, and each feature of `sets`. */
static presto_status parse_form(command_state *command, const presto_option *values,
                                presto_error *err) {
    const presto_option *sets = &values[SETS];
    size_t count = sets->is_set ? sets->text_count : 0;
    presto_feature_spec *specs = presto_arena_alloc(&command->arena, (count + 1) * sizeof *specs,
                                                    _Alignof(presto_feature_spec));
    if (specs == NULL)
        return presto_fail_memory(err, (count + 1) * sizeof *specs);
    static char value_name[] = PRESTO__VALUE_NAME;
    specs[0] = (presto_feature_spec){.name = value_name};
    PRESTO_TRY(parse_spec("output", values[OUTPUT].text, &specs[0], err));
    for (size_t i = 0; i < count; i++) {
        const char *text = sets->texts[i];
        size_t bytes = strcspn(text, "=");
        specs[i + 1] = (presto_feature_spec){.name = copy_text(command, text, bytes)};
        if (specs[i + 1].name == NULL)
            return presto_fail_memory(err, bytes);
        PRESTO_TRY(check_name(specs[i + 1].name, err));
        PRESTO_TRY(
            parse_spec("sets", text[bytes] == '\0' ? "" : text + bytes + 1, &specs[i + 1], err));
    }
    command->form = (presto__reply_form){specs, count + 1};
    return PRESTO_OK;
}

static unsigned choose_flags(const command_state *command, const presto_option *values) {
    return PRESTO_STEP_RUNS_PROGRAM | (values[RANDOM].truth ? PRESTO_STEP_RANDOM : 0u) |
           (values[DROPS].truth ? PRESTO_STEP_DROPS : 0u) |
           (command->form.count > 1 ? PRESTO_STEP_SETS_FEATURES : 0u) |
           (command->feature_count > 0 ? PRESTO_STEP_READS_FEATURES : 0u);
}

static presto_status take_options(command_state *command, const presto_option *values,
                                  presto_error *err) {
    if (values[RUN].text_count == 0 || values[RUN].texts[0][0] == '\0')
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET, "run: which program?");
    PRESTO_TRY(copy_list(command, &values[RUN], &command->argv, err));
    PRESTO_TRY(copy_list(command, &values[FEATURES], &command->features, err));
    command->feature_count = values[FEATURES].is_set ? values[FEATURES].text_count : 0;
    for (size_t i = 0; i < command->feature_count; i++)
        PRESTO_TRY(check_name(command->features[i], err));
    PRESTO_TRY(parse_form(command, values, err));
    command->pool = (presto__workers_options){
        .argv = command->argv,
        .most = values[WORKERS].is_set ? (unsigned)values[WORKERS].integer : 0,
        .timeout_ns = (uint64_t)(values[TIMEOUT].number * 1e9),
        .start_ns = (uint64_t)(values[START_TIMEOUT].number * 1e9),
        .most_reply_bytes = (uint64_t)values[MAX_REPLY].integer};
    command->flags = choose_flags(command, values);
    return PRESTO_OK;
}

static presto_status create(const presto_option *values, void **state_out, presto_error *err) {
    command_state *command = calloc(1, sizeof *command);
    if (command == NULL)
        return presto_fail_memory(err, sizeof *command);
    presto_status status = take_options(command, values, err);
    if (status < 0)
        destroy(command);
    else
        *state_out = command;
    return status;
}

static unsigned flags_of(const void *state) {
    return ((const command_state *)state)->flags;
}

static presto_status infer(const void *state, const presto_tensor_spec *in,
                           presto_tensor_spec *out_out, presto_error *err) {
    (void)in, (void)err;
    *out_out = ((const command_state *)state)->form.specs[0].spec;
    return PRESTO_OK;
}

/* ---- the processes of a plan ---- */

typedef struct command_model {
    char *path;
    presto__workers *pool;
} command_model;

static void unload(void *model) {
    command_model *processes = model;
    presto__workers_free(processes->pool);
    free(processes->path);
    free(processes);
}

static presto_status load(const void *state, presto_tensor_spec *out_io, void **model_out,
                          presto_error *err) {
    (void)out_io;
    const command_state *command = state;
    char *path = presto__program_find(command->argv[0]);
    if (path == NULL)
        return presto_fail(err, PRESTO_ERR_NOT_FOUND, PRESTO_NO_OFFSET,
                           "no program '%s' is found%s", command->argv[0],
                           strchr(command->argv[0], '/') == NULL ? " by PATH" : "");
    presto__workers_options pool = command->pool;
    pool.path = path;
    command_model *model = calloc(1, sizeof *model);
    presto_status status = model == NULL ? presto_fail_memory(err, sizeof *model)
                                         : presto__workers_new(&pool, &model->pool, err);
    if (status < 0) {
        free(model);
        free(path);
        return status;
    }
    model->path = path;
    *model_out = model;
    return PRESTO_OK;
}

/* ---- one thread ---- */

typedef struct command_worker {
    presto_buffer request;
    presto_arena arena;
    presto_feature *features; /* of a request: the value, the others, the seed */
} command_worker;

static void close_worker(void *worker) {
    command_worker *w = worker;
    presto_buffer_done(&w->request);
    presto_arena_done(&w->arena);
    free(w->features);
    free(w);
}

static presto_status open_worker(const void *state, const void *model, void **worker_out,
                                 presto_error *err) {
    (void)model;
    const command_state *command = state;
    command_worker *w = calloc(1, sizeof *w);
    if (w == NULL)
        return presto_fail_memory(err, sizeof *w);
    w->features = calloc(command->feature_count + 2, sizeof *w->features);
    if (w->features == NULL) {
        close_worker(w);
        return presto_fail_memory(err, (command->feature_count + 2) * sizeof *w->features);
    }
    *worker_out = w;
    return PRESTO_OK;
}

/* ---- one sample ---- */

static presto_status add_features(const command_state *command, presto_step_context *context,
                                  presto_sample *request, presto_error *err) {
    for (size_t i = 0; i < command->feature_count; i++) {
        const presto_feature *feature = presto_step_feature(context, command->features[i]);
        if (feature == NULL)
            return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET,
                               "the sample has no feature \"%s\"", command->features[i]);
        request->features[request->feature_count++] = *feature;
    }
    return PRESTO_OK;
}

static presto_status write_request(const command_state *command, presto_step_context *context,
                                   const presto_tensor *in, presto_error *err) {
    command_worker *w = presto_step_worker(context);
    presto_sample request = {.features = w->features, .feature_count = 1};
    w->features[0] = (presto_feature){
        .name = presto_span_of_text(PRESTO__VALUE_NAME),
        .encoding = in->spec.dtype == PRESTO_STRING ? PRESTO_ENCODE_BYTES : PRESTO_ENCODE_TENSOR,
        .tensor = *in};
    PRESTO_TRY(add_features(command, context, &request, err));
    int64_t seed = 0;
    if ((command->flags & PRESTO_STEP_RANDOM) != 0) {
        seed = (int64_t)presto_rng_next(presto_step_rng(context));
        w->features[request.feature_count++] =
            (presto_feature){.name = presto_span_of_text(PRESTO__RANDOM_NAME),
                             .encoding = PRESTO_ENCODE_INT64,
                             .tensor = {.spec = {.dtype = PRESTO_INT64}, .data = &seed}};
    }
    w->request.bytes = 0;
    PRESTO_TRY(presto_buffer_reserve(&w->request, PRESTO__HEAD_BYTES, err));
    w->request.bytes = PRESTO__HEAD_BYTES;
    return presto_example_append(&w->request, &request, err);
}

/* The value goes to *out_out, the others to the sample. */
static presto_status take_reply(const command_state *command, presto_step_context *context,
                                const presto_sample *reply, presto_tensor *out_out,
                                presto_error *err) {
    for (size_t i = 0; i < reply->feature_count; i++) {
        const presto_feature *feature = &reply->features[i];
        const presto_feature_spec *spec = command->form.specs;
        while (!presto_span_is(feature->name, spec->name))
            spec++;
        if (spec == command->form.specs)
            *out_out = feature->tensor;
        else
            PRESTO_TRY(presto_step_set_feature(context, spec->name, &feature->tensor, err));
    }
    return PRESTO_OK;
}

static bool is_stopped(void *context) {
    return presto_step_is_cancelled(context);
}

static presto_status run(const void *state, presto_step_context *context, const presto_tensor *in,
                         presto_tensor *out_out, presto_error *err) {
    const command_state *command = state;
    const command_model *model = presto_step_model(context);
    command_worker *w = presto_step_worker(context);
    PRESTO_TRY(write_request(command, context, in, err));
    const presto__exchange exchange = {.request = &w->request,
                                       .reply = presto_step_buffer(context),
                                       .stop = is_stopped,
                                       .stop_user = context};
    PRESTO_TRY(presto__workers_ask(model->pool, &exchange, err));
    presto_span payload = presto_span_of(exchange.reply->data + PRESTO__HEAD_BYTES,
                                         exchange.reply->bytes - PRESTO__HEAD_BYTES);
    presto_sample reply;
    presto_arena_reset(&w->arena);
    presto_status status = presto__reply_parse(&command->form, payload, &w->arena, &reply, err);
    if (status == PRESTO_DROP && (command->flags & PRESTO_STEP_DROPS) == 0)
        return presto__own_fail(err, "%s drops a sample without `drops: true`", model->path);
    if (status == PRESTO_ERR_IO && err != NULL)
        presto__error_prefix(err, model->path);
    return status != PRESTO_OK ? status : take_reply(command, context, &reply, out_out, err);
}

const presto_step_type presto__step_command = {
    .abi = PRESTO_STEP_ABI,
    .name = "command",
    .summary = "What another program makes of it: its processes read samples from stdin and write "
               "results to stdout ([own-steps.md](own-steps.md)).",
    .flags = PRESTO_STEP_RUNS_PROGRAM,
    .options = options,
    .option_count = OPTION_COUNT,
    .create = create,
    .destroy = destroy,
    .infer = infer,
    .load = load,
    .unload = unload,
    .open_worker = open_worker,
    .close_worker = close_worker,
    .run = run,
    .flags_of = flags_of,
};
