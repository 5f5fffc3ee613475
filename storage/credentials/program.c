/* SPDX-License-Identifier: Apache-2.0 */
/* credential_process: a program that writes keys as JSON to its stdout. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "../../base/clock_internal.h"
#include "../../base/process_internal.h"
#include "../../base/stop_internal.h"
#include "provider_internal.h"

#define MOST_NS UINT64_C(120000000000) /* it may have to ask somebody */
#define END_NS UINT64_C(5000000000)
#define MOST_WORDS 64

/*
 * The words of a command as Python's shlex.split() has them, which botocore uses: spaces separate,
 * '...' and "..." keep them, a '\' takes the next character as it is (within "..." before '"' and '\'
 * only). In `line`'s own place. False: a quote is open at the end, or there are too many words.
 */
static bool split_words(char *line, const char **words, size_t *count_out) {
    size_t count = 0;
    const char *from = line;
    while (*from != '\0') {
        while (*from != '\0' && strchr(" \t\r\n", *from) != NULL)
            from++;
        if (*from == '\0')
            break;
        if (count == MOST_WORDS)
            return false;
        words[count++] = line;
        char quote = '\0';
        for (; *from != '\0' && (quote != '\0' || strchr(" \t\r\n", *from) == NULL); from++) {
            if (*from == '\\' && quote != '\'' &&
                (quote == '\0' || from[1] == '"' || from[1] == '\\')) {
                if (*++from == '\0')
                    return false;
                *line++ = *from;
            } else if (quote == '\0' && (*from == '\'' || *from == '"')) {
                quote = *from;
            } else if (quote != '\0' && *from == quote) {
                quote = '\0';
            } else {
                *line++ = *from;
            }
        }
        if (quote != '\0')
            return false;
        if (*from != '\0')
            from++;
        *line++ = '\0';
    }
    *count_out = count;
    words[count] = NULL;
    return count > 0;
}

static bool is_stopped(void *unused) {
    (void)unused;
    return presto__stop_check(NULL) < 0;
}

static presto_status receive(presto__process *process, presto_buffer *out, presto_error *err) {
    const presto__process_wait wait = {.deadline_ns = presto__clock_ns() + MOST_NS,
                                       .stop = is_stopped};
    presto_span nothing = {NULL, 0};
    presto__process_finish(process); /* it gets no input */
    PRESTO_TRY(presto_buffer_reserve(out, PRESTO__MOST_ANSWER_BYTES, err));
    for (;;) {
        presto__process_event event = presto__process_move(process, &nothing, out, &wait);
        switch (event) {
        case PRESTO__PROCESS_MOVED:
            if (out->bytes < out->capacity)
                continue;
            return presto_fail(err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET,
                               "credential_process writes too much");
        case PRESTO__PROCESS_CLOSED:
            return PRESTO_OK;
        case PRESTO__PROCESS_STOPPED:
            return presto__stop_check(err);
        case PRESTO__PROCESS_LATE:
            return presto_fail(err, PRESTO_ERR_IO, PRESTO_NO_OFFSET,
                               "credential_process has written no keys in two minutes");
        case PRESTO__PROCESS_FAILED:
        default:
            return presto_fail_errno(err, errno, NULL, "cannot read from credential_process");
        }
    }
}

static presto_status take_keys(presto_span text, presto__keys *keys_out, presto_error *err) {
    static const presto__key_names names = {"AccessKeyId", "SecretAccessKey", "SessionToken",
                                            "Expiration"};
    static const char whose[] = "credential_process";
    presto_error why = {.status = PRESTO_OK};
    json_t *object = presto__token_json(text, whose, &why);
    if (object == NULL) {
        if (err != NULL)
            *err = why;
        return why.status;
    }
    presto_status status =
        json_integer_value(json_object_get(object, "Version")) == 1
            ? presto__keys_from_json(object, &names, whose, keys_out, err)
            : presto_fail(err, PRESTO_ERR_UNSUPPORTED, PRESTO_NO_OFFSET,
                          "credential_process writes keys of another version than 1");
    json_decref(object);
    return status;
}

static presto_status run(const char *path, const char *const *words, presto__keys *keys_out,
                         presto_error *err) {
    presto__process process;
    presto_buffer out = {0};
    char lines[200];
    const presto__family family = presto__family_new();
    PRESTO_TRY(presto__process_start(path, words, &family, &process, err));
    presto_status status = receive(&process, &out, err);
    int end = presto__process_end(&process, status == PRESTO_OK ? END_NS : 0);
    presto__process_last_lines(&process, lines, sizeof lines);
    if (status == PRESTO_OK && (!WIFEXITED(end) || WEXITSTATUS(end) != 0))
        status =
            presto_fail(err, PRESTO_ERR_IO, PRESTO_NO_OFFSET, "credential_process (%s) failed%s%s",
                        words[0], lines[0] == '\0' ? "" : ": ", lines);
    if (status == PRESTO_OK)
        status = take_keys(presto_buffer_span(&out), keys_out, err);
    presto__forget_buffer(&out);
    return status;
}

static presto_status find(const presto__search *search, presto__keys *keys_out, presto_error *err) {
    const char *words[MOST_WORDS + 1];
    size_t count;
    presto_span value;
    if (!presto__aws_value(search->config, PRESTO__AWS_BOTH, search->profile, "credential_process",
                           &value))
        return PRESTO_END;
    char *line = presto_span_to_text(value);
    if (line == NULL)
        return presto_fail_memory(err, value.bytes);
    presto_status status = PRESTO_OK;
    char *path = NULL;
    if (!split_words(line, words, &count))
        status = presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                             "credential_process of the profile '%s' is no command: a quote is "
                             "open, or it has too many words",
                             search->profile);
    else if ((path = presto__program_find(words[0])) == NULL)
        status = presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                             "credential_process of the profile '%s': there is no program '%s'",
                             search->profile, words[0]);
    else
        status = run(path, words, keys_out, err);
    free(path);
    free(line);
    return status;
}

const presto__provider presto__provider_process = {"credential_process", NULL, find};
