/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steps that other programs compute. `cat` repeats its request, which is a whole reply: the value
 * unchanged. Shell scripts do everything wrong that a worker can do wrong.
 */
#include <errno.h>
#include <signal.h>

#include "../../../base/tensor_internal.h"
#include "../../../steps/pipelines_internal.h"
#include "own/own_internal.h"
#include "steps_check.h"

/* The step `command` with these options on an input of `in`. */
static presto_status open_command(rig *r, const char *options, const presto_tensor_spec *in,
                                  presto_code code, presto_error *err) {
    char yaml[2048];
    *r = (rig){0};
    snprintf(yaml, sizeof yaml,
             "name: t\nsource: {type: files}\nsteps:\n  - {step: read-file}\n  - {step: command, "
             "%s}\n",
             options);
    const presto_pipeline_options reading = {.struct_bytes = sizeof reading, .code = code};
    PRESTO_TRY(presto__pipeline_parse(presto_span_of_text(yaml), "t", &reading, &r->pipeline, err));
    PRESTO_TRY(plan_of(r->pipeline, 1, 2, in, &r->plan, err));
    presto__plan_worker_options worker = {.struct_bytes = sizeof worker, .arena = &r->arena};
    return presto__plan_worker_new(r->plan, &worker, &r->worker, err);
}

static void must_open(rig *r, const char *options) {
    presto_error err;
    ck_assert_ok(open_command(r, options, &string_spec, PRESTO_CODE_ALWAYS, &err), &err);
}

START_TEST(values_of_all_kinds_go_there_and_back) {
    static const float numbers[] = {1.5F, -2, 3e30F, 0, 5, 6};
    rig r;
    presto_error err;
    rig_options options = {0};
    presto_tensor value = {.spec = {PRESTO_FLOAT32, 2, {2, 3}}, .data = numbers};
    ck_assert_ok(open_command(&r, "run: [cat], output: \"float32[2,?]\"", &value.spec,
                              PRESTO_CODE_ALWAYS, &err),
                 &err);
    for (int i = 0; i < 100; i++) {
        value = (presto_tensor){.spec = {PRESTO_FLOAT32, 2, {2, 3}}, .data = numbers};
        ck_assert_ok(rig_run(&r, &options, &value, &err), &err);
        ck_assert_int_eq(value.spec.dims[1], 3);
        ck_assert_ptr_ne(value.data, numbers);
        ck_assert(presto_span_equal(presto_span_of(value.data, sizeof numbers),
                                    presto_span_of(numbers, sizeof numbers)));
    }
    rig_close(&r);
    must_open(&r, "run: [cat], output: string");
    static const char *const texts[] = {"", "a", "some text"};
    for (size_t i = 0; i < 3; i++) {
        ck_assert_ok(rig_run_bytes(&r, &options, presto_span_of_text(texts[i]), &value, &err),
                     &err);
        ck_assert(presto_span_is(*value.strings, texts[i]));
    }
    size_t large = 20000000;
    uint8_t *much = calloc(1, large);
    much[large - 1] = 1;
    ck_assert_ok(rig_run_bytes(&r, &options, presto_span_of(much, large), &value, &err), &err);
    ck_assert(presto_span_equal(*value.strings, presto_span_of(much, large)));
    free(much);
    rig_close(&r);
}
END_TEST

START_TEST(a_text_of_somebody_starts_no_program) {
    rig r;
    presto_error err;
    static const presto_code codes[] = {PRESTO_CODE_IF_NAMED, PRESTO_CODE_NEVER};
    for (size_t i = 0; i < 2; i++) {
        ck_assert_status(
            open_command(&r, "run: [cat], output: string", &string_spec, codes[i], &err),
            PRESTO_ERR_UNSUPPORTED, &err);
        ck_assert_ptr_nonnull(strstr(err.message, "line 5: step command: it runs a program"));
        rig_close(&r);
    }
}
END_TEST

START_TEST(wrong_options_are_told_when_the_pipeline_is_read) {
    static const struct {
        const char *options, *message;
    } cases[] = {
        {"output: string", "step command needs the option 'run'"},
        {"run: [cat]", "step command needs the option 'output'"},
        {"run: cat, output: string", "needs a program and its arguments as a list of texts"},
        {"run: [], output: string", "option 'run' is an empty list"},
        {"run: [\"\"], output: string", "run: which program?"},
        {"run: [cat], output: text", "'text' is no dtype and shape such as uint8[?,?,3]"},
        {"run: [cat], output: \"uint8[\"", "'uint8[' is no dtype"},
        {"run: [cat], output: \"uint8[1,]\"", "'uint8[1,]' is no dtype"},
        {"run: [cat], output: string, timeout: soon", "'timeout' needs a time such as 30s"},
        {"run: [cat], output: string, timeout: 0", "'timeout' is 0, must be from 0.001"},
        {"run: [cat], output: string, timeout: 5 s", "'timeout' needs a time"},
        {"run: [cat], output: string, workers: 0", "'workers' is 0, must be from 1 to 1024"},
        {"run: [cat], output: string, features: [value]", "'value' has a meaning"},
        {"run: [cat], output: string, sets: [\"error=string\"]", "'error' has a meaning"},
        {"run: [cat], output: string, sets: [boxes]", "sets: '' is no dtype and shape"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        rig r;
        presto_error err;
        ck_assert_status(open_command(&r, cases[i].options, &string_spec, PRESTO_CODE_ALWAYS, &err),
                         PRESTO_ERR_SYNTAX, &err);
        ck_assert_msg(strstr(err.message, cases[i].message) != NULL, "%s", err.message);
    }
    rig r;
    presto_error err;
    ck_assert_status(open_command(&r, "run: [no-such-program], output: string", &string_spec,
                                  PRESTO_CODE_ALWAYS, &err),
                     PRESTO_ERR_NOT_FOUND, &err);
    ck_assert_ptr_nonnull(strstr(err.message, "no program 'no-such-program' is found by PATH"));
    rig_close(&r);
}
END_TEST

START_TEST(times_are_read_with_their_units) {
    static const struct {
        const char *text;
        double seconds;
    } times[] = {{"5", 5}, {"1.5", 1.5}, {"30s", 30}, {"500ms", 0.5}, {"2m", 120}, {"1h", 3600}};
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        rig r;
        presto_error err;
        char options[128], wanted[64];
        snprintf(options, sizeof options, "run: [cat], output: string, timeout: %s", times[i].text);
        ck_assert_ok(open_command(&r, options, &string_spec, PRESTO_CODE_ALWAYS, &err), &err);
        snprintf(wanted, sizeof wanted, "\"timeout\": %.1f,", times[i].seconds);
        ck_assert_ptr_nonnull(strstr(presto_pipeline_json(r.pipeline), wanted));
        rig_close(&r);
    }
}
END_TEST

/* Each ends the job: an error of the machine, so that no policy leaves the sample out. */
START_TEST(whatever_a_worker_does_wrong_ends_the_job_and_says_what) {
    static const struct {
        const char *script, *message;
    } cases[] = {
        {"exit 0", "has ended with code 0"},
        {"echo one >&2; echo two >&2; exit 3", "has ended with code 3; its last lines: one | two"},
        {"kill -SEGV $$", "was killed by signal 11"},
        {"sleep 1000", "has not answered for 0.4 s"},
        {"exec >&-; sleep 1000", "has closed its stdin or stdout, or was killed"},
        {"echo hello, this is my step; sleep 1000", "is no worker of a step: its reply begins with "
                                                    "\\\"hello, this is m\\\", which is no head"},
        {"yes", "is no worker of a step: its reply begins with"},
        {"head -c 10; exit 1", "has ended with code 1"},
        {"head -c 20; sleep 1000", "has not answered for"},
        {"cat /dev/zero >&2", "has not answered for"},
        /* 10 GB; the wrong number; over max-reply; a frame too many; no Example; another spec. */
        {"printf '\\000\\344\\013\\124\\002\\0\\0\\0\\001\\0\\0\\0\\0\\0\\0\\0'; sleep 1000",
         "its reply begins with"},
        {"printf '\\002\\0\\0\\0\\0\\0\\0\\0\\005\\0\\0\\0\\0\\0\\0\\0hi'; sleep 1000",
         "its reply has the number 5, the request had 1"},
        {"printf '\\0\\0\\0\\002\\0\\0\\0\\0\\001\\0\\0\\0\\0\\0\\0\\0'; sleep 1000",
         "its reply has 33554432 bytes, max-reply is 16MiB"},
        {"printf '\\0\\0\\0\\0\\0\\0\\0\\0\\001\\0\\0\\0\\0\\0\\0\\0hi'; sleep 1000",
         "more follows its reply"},
        {"printf '\\002\\0\\0\\0\\0\\0\\0\\0\\001\\0\\0\\0\\0\\0\\0\\0\\012\\377'; sleep 1000",
         "its reply is no tf.train.Example"},
        {"printf '\\0\\0\\0\\0\\0\\0\\0\\0\\001\\0\\0\\0\\0\\0\\0\\0'; sleep 1000",
         "drops a sample without `drops: true`"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        rig r;
        presto_error err;
        presto_tensor value;
        rig_options options = {0};
        char text[1024], quoted[512];
        size_t used = 0;
        for (const char *c = cases[i].script; *c != '\0'; c++) {
            if (*c == '\\' || *c == '"')
                quoted[used++] = '\\';
            quoted[used++] = *c;
        }
        quoted[used] = '\0';
        bool is_late = strstr(cases[i].message, "not answered") != NULL;
        snprintf(text, sizeof text,
                 "run: [sh, -c, \"%s\"], output: string, max-reply: 16MiB, timeout: %s, "
                 "start-timeout: %s",
                 quoted, is_late ? "200ms" : "50s", is_late ? "200ms" : "10s");
        must_open(&r, text);
        ck_assert_status(
            rig_run_bytes(&r, &options, presto_span_of_text("0123456789"), &value, &err),
            PRESTO_ERR_IO, &err);
        ck_assert_int_eq(err.sys_errno, EPROTO);
        char wanted[256];
        used = 0;
        for (const char *c = cases[i].message; *c != '\0'; c++)
            if (*c != '\\')
                wanted[used++] = *c;
        wanted[used] = '\0';
        ck_assert_msg(strstr(err.message, wanted) != NULL, "%s: %s", cases[i].script, err.message);
        rig_close(&r);
    }
}
END_TEST

START_TEST(a_worker_that_dies_at_a_later_sample_is_told_and_another_one_starts) {
    rig r;
    presto_error err;
    presto_tensor value;
    rig_options options = {0};
    /* A request of "x" has 16 bytes of head and 19 of Example. */
    must_open(&r,
              "run: [sh, -c, \"dd bs=1 count=105 status=none; echo enough >&2\"], output: string");
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 3; i++)
            ck_assert_ok(rig_run_bytes(&r, &options, presto_span_of_text("x"), &value, &err), &err);
        ck_assert_status(rig_run_bytes(&r, &options, presto_span_of_text("x"), &value, &err),
                         PRESTO_ERR_IO, &err);
        ck_assert_ptr_nonnull(strstr(err.message, "its last lines: enough"));
    }
    rig_close(&r);
}
END_TEST

START_TEST(a_cancelled_worker_returns_although_its_process_hangs) {
    rig r;
    presto_error err;
    presto_tensor value;
    rig_options options = {0};
    must_open(&r, "run: [sleep, \"1000\"], output: string, timeout: 1h");
    presto__plan_worker_cancel(r.worker);
    ck_assert_status(rig_run_bytes(&r, &options, presto_span_of_text("x"), &value, &err),
                     PRESTO_ERR_STOPPED, &err);
    rig_close(&r);
}
END_TEST

/* ---- replies ---- */

static char value_name[] = "value", boxes_name[] = "boxes";
static const presto_feature_spec form_specs[] = {
    {value_name, PRESTO_ENCODE_TENSOR, {PRESTO_UINT8, 2, {-1, 3}}},
    {boxes_name, PRESTO_ENCODE_TENSOR, {PRESTO_FLOAT32, 1, {-1}}},
};
static const presto__reply_form form = {form_specs, 2};

static presto_status parse_features(const presto_feature *features, size_t count,
                                    presto_arena *arena, presto_sample *reply, presto_error *err) {
    presto_buffer payload = {0};
    presto_sample sample = {(presto_feature *)features, count, 0};
    ck_assert_ok(presto_example_append(&payload, &sample, NULL), NULL);
    void *kept = presto_arena_alloc(arena, payload.bytes, 1);
    memcpy(kept, payload.data, payload.bytes);
    presto_span bytes = presto_span_of(kept, payload.bytes);
    presto_buffer_done(&payload);
    return presto__reply_parse(&form, bytes, arena, reply, err);
}

START_TEST(replies_are_what_the_step_declares_or_are_refused) {
    static const uint8_t pixels[6] = {1, 2, 3, 4, 5, 6};
    static const float numbers[2] = {1, 2};
    presto_span text = presto_span_of_text("too dark"), texts[2] = {text, text};
    const presto_feature value = {presto_span_of_text("value"),
                                  PRESTO_ENCODE_TENSOR,
                                  {.spec = {PRESTO_UINT8, 2, {2, 3}}, .data = pixels}};
    const presto_feature turned = {presto_span_of_text("value"),
                                   PRESTO_ENCODE_TENSOR,
                                   {.spec = {PRESTO_UINT8, 2, {3, 2}}, .data = pixels}};
    const presto_feature boxes = {presto_span_of_text("boxes"),
                                  PRESTO_ENCODE_FLOAT,
                                  {.spec = {PRESTO_FLOAT32, 1, {2}}, .data = numbers}};
    const presto_feature other = {presto_span_of_text("other"),
                                  PRESTO_ENCODE_BYTES,
                                  {.spec = {.dtype = PRESTO_STRING}, .strings = &text}};
    const presto_feature error = {presto_span_of_text("error"),
                                  PRESTO_ENCODE_BYTES,
                                  {.spec = {.dtype = PRESTO_STRING}, .strings = &text}};
    const presto_feature errors = {presto_span_of_text("error"),
                                   PRESTO_ENCODE_BYTES,
                                   {.spec = {PRESTO_STRING, 1, {2}}, .strings = texts}};
    const struct {
        presto_feature features[2];
        size_t count;
        presto_status status;
        const char *message;
    } cases[] = {
        {{value}, 1, PRESTO_OK, ""},
        {{value, boxes}, 2, PRESTO_OK, ""},
        {{value}, 0, PRESTO_DROP, ""},
        {{error}, 1, PRESTO_ERR_CORRUPT, "bad sample: too dark"},
        {{value, error}, 2, PRESTO_ERR_IO, "its reply has the feature error, which comes alone"},
        {{errors}, 1, PRESTO_ERR_IO, "its reply's feature error is not one text"},
        {{boxes}, 1, PRESTO_ERR_IO, "its reply lacks the feature value"},
        {{turned},
         1,
         PRESTO_ERR_IO,
         "its reply's feature \"value\" is uint8[3,2], must be uint8[?,3]"},
        {{value, other}, 2, PRESTO_ERR_IO, "its reply has the feature \"other\", which"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        presto_arena arena = {0};
        presto_sample reply;
        presto_error err = {.message = ""};
        ck_assert_status(parse_features(cases[i].features, cases[i].count, &arena, &reply, &err),
                         cases[i].status, &err);
        ck_assert_ptr_nonnull(strstr(err.message, cases[i].message));
        ck_assert_int_eq(err.sys_errno, cases[i].status == PRESTO_ERR_IO ? EPROTO : 0);
        if (cases[i].status == PRESTO_OK)
            ck_assert_uint_eq(reply.feature_count, cases[i].count);
        presto_arena_done(&arena);
    }
}
END_TEST

/* A tensor's size has no place in the reply. */
START_TEST(what_has_no_place_in_a_reply_is_told_without_one) {
    static const char huge[] = "\x08\x04\x12\x1c" /* uint8[2^62,2^62,3] */
                               "\x12\x0a\x08\x80\x80\x80\x80\x80\x80\x80\x80\x40"
                               "\x12\x0a\x08\x80\x80\x80\x80\x80\x80\x80\x80\x40"
                               "\x12\x02\x08\x03";
    presto_span proto = presto_span_of(huge, sizeof huge - 1);
    const presto_feature value = {presto_span_of_text("value"),
                                  PRESTO_ENCODE_BYTES,
                                  {.spec = {.dtype = PRESTO_STRING}, .strings = &proto}};
    presto_arena arena = {0};
    presto_sample reply;
    presto_error err;
    ck_assert_status(parse_features(&value, 1, &arena, &reply, &err), PRESTO_ERR_IO, &err);
    ck_assert_ptr_nonnull(strstr(err.message, "its reply is no tf.train.Example: "));
    ck_assert_ptr_null(strstr(err.message, "at byte"));
    presto_arena_done(&arena);
}
END_TEST

START_TEST(specs_are_read_as_they_are_written) {
    static const char *const texts[] = {"uint8[375,500,3]", "uint8[?,?,3]",
                                        "string",           "float32[...]",
                                        "int64[0]",         "bool[1,2,3,4,5,6,7,8]"};
    static const char *const wrong[] = {"",
                                        "[3]",
                                        "uint8[]",
                                        "uint8[3",
                                        "uint8[3]]",
                                        "uint8[-1]",
                                        "uint8[ 3]",
                                        "uint8[3,]",
                                        "uint8[..]",
                                        "uint8[...",
                                        "UINT8",
                                        "uint8 [3]",
                                        "unknown",
                                        "uint8[1x]",
                                        "uint8[99999999999999999999]",
                                        "uint8[1,2,3,4,5,6,7,8,9]"};
    presto_tensor_spec spec;
    char text[PRESTO_SPEC_TEXT_BYTES];
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        ck_assert(presto__spec_parse(texts[i], &spec));
        ck_assert_str_eq(presto_spec_format(&spec, text, sizeof text), texts[i]);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        ck_assert_msg(!presto__spec_parse(wrong[i], &spec), "%s", wrong[i]);
}
END_TEST

int main(void) {
    const TTest *tests[] = {
        values_of_all_kinds_go_there_and_back,
        a_text_of_somebody_starts_no_program,
        wrong_options_are_told_when_the_pipeline_is_read,
        times_are_read_with_their_units,
        whatever_a_worker_does_wrong_ends_the_job_and_says_what,
        a_worker_that_dies_at_a_later_sample_is_told_and_another_one_starts,
        a_cancelled_worker_returns_although_its_process_hangs,
        replies_are_what_the_step_declares_or_are_refused,
        what_has_no_place_in_a_reply_is_told_without_one,
        specs_are_read_as_they_are_written,
    };
    return presto_check_main("command", tests, sizeof tests / sizeof tests[0], 120);
}
