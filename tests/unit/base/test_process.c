/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that run beside this one: pipes, ends, groups, and what they do not inherit. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock_internal.h"
#include "presto_check.h"
#include "process_internal.h"

#define LONG_NS UINT64_C(60000000000)

static presto__process start(const char *const *argv) {
    presto__process process;
    presto_error err;
    presto__family family = presto__family_new();
    char *path = presto__program_find(argv[0]);
    ck_assert_ptr_nonnull(path);
    ck_assert_ok(presto__process_start(path, argv, &family, &process, &err), &err);
    free(path);
    return process;
}

static presto__process start_shell(const char *script) {
    return start((const char *const[]){"sh", "-c", script, NULL});
}

/* Until it closes its stdout. */
static presto__process_event receive_all(presto__process *process, presto_buffer *in) {
    const presto__process_wait wait = {.deadline_ns = presto__clock_ns() + LONG_NS};
    presto_span nothing = {NULL, 0};
    presto__process_event event;
    do {
        ck_assert_ok(presto_buffer_reserve(in, 4096, NULL), NULL);
        event = presto__process_move(process, &nothing, in, &wait);
    } while (event == PRESTO__PROCESS_MOVED);
    return event;
}

START_TEST(what_is_sent_comes_back_however_much_it_is) {
    static const size_t sizes[] = {1, 4096, 65536, 65537, 5 << 20};
    const presto__process_wait wait = {.deadline_ns = presto__clock_ns() + LONG_NS};
    presto__process process = start((const char *const[]){"cat", NULL});
    presto_buffer in = {0};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        uint8_t *bytes = malloc(sizes[i]);
        ck_assert_ptr_nonnull(bytes);
        for (size_t b = 0; b < sizes[i]; b++)
            bytes[b] = (uint8_t)(b * 7 + b / 251);
        presto_span unsent = presto_span_of(bytes, sizes[i]);
        in.bytes = 0;
        ck_assert_ok(presto_buffer_reserve(&in, sizes[i] + 1, NULL), NULL);
        while (in.bytes < sizes[i])
            ck_assert_int_eq(presto__process_move(&process, &unsent, &in, &wait),
                             PRESTO__PROCESS_MOVED);
        ck_assert_uint_eq(unsent.bytes, 0);
        ck_assert(presto_span_equal(presto_buffer_span(&in), presto_span_of(bytes, sizes[i])));
        free(bytes);
        presto__process_grow(&process);
    }
    presto__process_finish(&process);
    ck_assert_int_eq(receive_all(&process, &in), PRESTO__PROCESS_CLOSED);
    int status = presto__process_end(&process, LONG_NS);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    ck_assert_int_eq(process.pid, 0);
    ck_assert_int_eq(presto__process_end(&process, LONG_NS), -1);
    presto_buffer_done(&in);
}
END_TEST

START_TEST(a_program_is_found_by_path_and_runs_from_where_it_was_found) {
    presto_error err;
    presto__process process;
    char *dir = presto_check_temp_dir(), file[512];
    snprintf(file, sizeof file, "%s/mine", dir);
    presto_check_write_file(file, presto_span_of_text("#!/bin/sh\nexit 7\n"));
    setenv("PATH", "", 1);
    ck_assert_ptr_null(presto__program_find("mine"));
    char folders[600];
    snprintf(folders, sizeof folders, "/nowhere::%s:/usr/bin:/bin", dir);
    setenv("PATH", folders, 1);
    ck_assert_ptr_null(presto__program_find("mine")); /* may not be executed */
    ck_assert_int_eq(chmod(file, 0700), 0);
    char *found = presto__program_find("mine");
    ck_assert_str_eq(found, file);
    presto__family family = presto__family_new();
    ck_assert_ok(
        presto__process_start(found, (const char *const[]){"mine", NULL}, &family, &process, &err),
        &err);
    int status = presto__process_end(&process, LONG_NS);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    ck_assert_ptr_null(presto__program_find("/nowhere/mine"));
    ck_assert_status(presto__process_start("/nowhere/mine", (const char *const[]){"mine", NULL},
                                           &family, &process, &err),
                     PRESTO_ERR_IO, &err);
    ck_assert_int_eq(err.sys_errno, ENOENT);
    ck_assert_str_eq(err.message, "cannot start /nowhere/mine: No such file or directory");
    free(found);
    presto_check_remove_tree(dir);
    free(dir);
}
END_TEST

START_TEST(it_inherits_three_files_and_no_signals) {
    /* Files without close-on-exec, and files of other processes. */
    int leaked = dup(0);
    ck_assert_int_ge(leaked, 3);
    presto__process other = start((const char *const[]){"cat", NULL});
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    signal(SIGPIPE, SIG_IGN);
    presto__process process =
        start_shell("ls /proc/self/fd | wc -l; grep -E 'Sig(Blk|Ign)' /proc/self/status");
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    presto_buffer in = {0};
    ck_assert_int_eq(receive_all(&process, &in), PRESTO__PROCESS_CLOSED);
    ck_assert_ok(presto_buffer_append(&in, presto_span_of("", 1), NULL), NULL);
    unsigned long long files, blocked, ignored;
    ck_assert_int_eq(
        sscanf((const char *)in.data, "%llu SigBlk: %llx SigIgn: %llx", &files, &blocked, &ignored),
        3);
    ck_assert_uint_eq(files, 4); /* the fourth is the folder that ls reads */
    ck_assert_uint_eq(blocked, 0);
    ck_assert_uint_eq(ignored & 0x7fffffff, 0); /* 32 and 33 are the C library's own */
    presto__process_end(&process, LONG_NS);
    presto__process_end(&other, LONG_NS);
    presto_buffer_done(&in);
    close(leaked);
}
END_TEST

static bool is_dead(pid_t pid) {
    char path[64], state[512] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return true;
    bool ends = fgets(state, sizeof state, file) == NULL || strstr(state, ") Z") != NULL ||
                strstr(state, ") X") != NULL;
    fclose(file);
    return ends;
}

START_TEST(one_that_hangs_is_late_can_be_stopped_and_is_killed_with_its_children) {
    presto__process process = start_shell("sleep 1000 & echo $!; wait");
    presto_buffer in = {0};
    presto_span nothing = {NULL, 0};
    ck_assert_ok(presto_buffer_reserve(&in, 64, NULL), NULL);
    presto__process_wait wait = {.deadline_ns = presto__clock_ns() + LONG_NS};
    ck_assert_int_eq(presto__process_move(&process, &nothing, &in, &wait), PRESTO__PROCESS_MOVED);
    ck_assert_ok(presto_buffer_append(&in, presto_span_of("", 1), NULL), NULL);
    pid_t child = (pid_t)strtol((const char *)in.data, NULL, 10);
    ck_assert_int_eq(kill(child, 0), 0);
    wait.deadline_ns = presto__clock_ns() + 1000000;
    ck_assert_int_eq(presto__process_move(&process, &nothing, &in, &wait), PRESTO__PROCESS_LATE);
    int status = presto__process_end(&process, 0);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    /* The signal is on its way; init buries the child in its own time. */
    while (!is_dead(child))
        sched_yield();
    presto_buffer_done(&in);
}
END_TEST

/* One line of its stdout is a number. */
static pid_t receive_pid(presto__process *process) {
    presto_buffer in = {0};
    presto_span nothing = {NULL, 0};
    const presto__process_wait wait = {.deadline_ns = presto__clock_ns() + LONG_NS};
    do {
        ck_assert_ok(presto_buffer_reserve(&in, 64, NULL), NULL);
        ck_assert_int_eq(presto__process_move(process, &nothing, &in, &wait),
                         PRESTO__PROCESS_MOVED);
    } while (in.data[in.bytes - 1] != '\n');
    char text[32] = "";
    memcpy(text, in.data, in.bytes < sizeof text ? in.bytes : sizeof text - 1);
    pid_t pid = (pid_t)strtol(text, NULL, 10);
    presto_buffer_done(&in);
    ck_assert_int_gt(pid, 1);
    return pid;
}

#define STRAY "setsid sh -c 'echo $$; exec sleep 1000' & sleep 1000"

START_TEST(what_has_left_its_group_ends_with_it_and_that_of_others_does_not) {
    setenv("PRESTO_WORKER", "outer", 1); /* this program is itself a worker of another one */
    presto__process process = start_shell(STRAY), other = start_shell(STRAY);
    pid_t stray = receive_pid(&process), others = receive_pid(&other);
    presto__process_end(&process, 0);
    ck_assert(!is_dead(stray));
    presto__process_kill_marked(process.mark);
    while (!is_dead(stray))
        sched_yield();
    ck_assert(!is_dead(others));
    presto__process_end(&other, 0);
    presto__process_kill_marked("outer:");
    while (!is_dead(others))
        sched_yield();
    unsetenv("PRESTO_WORKER");
}
END_TEST

/* A program that starts one and is killed. */
START_TEST(all_ends_if_this_program_is_killed) {
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    pid_t program = fork();
    if (program == 0) {
        presto__process process = start_shell("sleep 1000 & " STRAY "; wait");
        pid_t pids[] = {process.pid, process.guard, receive_pid(&process)};
        ck_assert_int_eq(write(ends[1], pids, sizeof pids), sizeof pids);
        for (;;)
            pause();
    }
    pid_t pids[3];
    ck_assert_int_eq(read(ends[0], pids, sizeof pids), sizeof pids);
    for (size_t i = 0; i < 3; i++)
        ck_assert(!is_dead(pids[i]));
    kill(program, SIGKILL);
    waitpid(program, NULL, 0);
    for (size_t i = 0; i < 3; i++)
        while (!is_dead(pids[i]))
            sched_yield();
    close(ends[0]);
    close(ends[1]);
}
END_TEST

static bool always(void *asked) {
    ++*(int *)asked;
    return true;
}

START_TEST(who_waits_can_be_stopped) {
    int asked = 0;
    presto__process process = start((const char *const[]){"cat", NULL});
    presto_buffer in = {0};
    presto_span nothing = {NULL, 0};
    ck_assert_ok(presto_buffer_reserve(&in, 64, NULL), NULL);
    const presto__process_wait wait = {
        .deadline_ns = presto__clock_ns() + LONG_NS, .stop = always, .stop_user = &asked};
    ck_assert_int_eq(presto__process_move(&process, &nothing, &in, &wait), PRESTO__PROCESS_STOPPED);
    ck_assert_int_eq(asked, 1);
    presto__process_end(&process, LONG_NS);
    presto_buffer_done(&in);
}
END_TEST

START_TEST(one_that_has_gone_raises_no_signal) {
    static uint8_t much[1 << 20];
    const presto__process_wait wait = {.deadline_ns = presto__clock_ns() + LONG_NS};
    presto__process process = start_shell("exec <&-; exec >&-; sleep 1000");
    presto_buffer in = {0};
    presto_span unsent = presto_span_of(much, sizeof much);
    presto__process_event event;
    signal(SIGPIPE, SIG_DFL);
    do {
        ck_assert_ok(presto_buffer_reserve(&in, 64, NULL), NULL);
        event = presto__process_move(&process, &unsent, &in, &wait);
    } while (event == PRESTO__PROCESS_MOVED);
    ck_assert_int_eq(event, PRESTO__PROCESS_CLOSED);
    presto__process_end(&process, 0);
    presto_buffer_done(&in);
}
END_TEST

START_TEST(the_last_lines_of_stderr_are_kept_however_many_there_are) {
    presto_buffer in = {0};
    char lines[64];
    presto__process process =
        start_shell("i=0; while [ $i -lt 30000 ]; do echo line $i >&2; i=$((i+1)); done");
    ck_assert_int_eq(receive_all(&process, &in), PRESTO__PROCESS_CLOSED);
    ck_assert_int_ge(presto__process_end(&process, LONG_NS), 0);
    presto__process_last_lines(&process, lines, 30);
    ck_assert_str_eq(lines, "line 29998 | line 29999");
    presto__process_last_lines(&process, lines, 8);
    ck_assert_str_eq(lines, "e 29999");
    presto__process none = start_shell("exit 0");
    presto__process_end(&none, LONG_NS);
    presto__process_last_lines(&none, lines, sizeof lines);
    ck_assert_str_eq(lines, "");
    presto_buffer_done(&in);
}
END_TEST

static void *start_many(void *unused) {
    for (int i = 0; i < 10; i++) {
        presto__process process = start((const char *const[]){"cat", NULL});
        int status = presto__process_end(&process, LONG_NS); /* hangs if another one has its pipe */
        ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    return unused;
}

START_TEST(threads_that_start_processes_at_once_do_not_share_pipes) {
    pthread_t threads[8];
    for (size_t i = 0; i < 8; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, start_many, NULL), 0);
    for (size_t i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
}
END_TEST

int main(void) {
    const TTest *tests[] = {
        what_is_sent_comes_back_however_much_it_is,
        a_program_is_found_by_path_and_runs_from_where_it_was_found,
        it_inherits_three_files_and_no_signals,
        one_that_hangs_is_late_can_be_stopped_and_is_killed_with_its_children,
        what_has_left_its_group_ends_with_it_and_that_of_others_does_not,
        all_ends_if_this_program_is_killed,
        who_waits_can_be_stopped,
        one_that_has_gone_raises_no_signal,
        the_last_lines_of_stderr_are_kept_however_many_there_are,
        threads_that_start_processes_at_once_do_not_share_pipes,
    };
    return presto_check_main("process", tests, sizeof tests / sizeof tests[0], 120);
}
