/* SPDX-License-Identifier: Apache-2.0 */
/* One set of keys for all who ask. The keys come from a program here, which counts its calls;
 * tests/cli/test_credentials.py has the services. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "credentials/credentials_internal.h"
#include "presto_check.h"

#define THREADS 64

static char *dir;
static char path[512];
static presto_error err;

/* A program that gives other keys at each call. The first call's are valid for `first_s` seconds, all
 * others for an hour. `more`: what it does before. */
static void set_up(int first_s, const char *more) {
    static const char *const names[] = {
        "AWS_PROFILE",           "AWS_DEFAULT_PROFILE",         "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY", "AWS_WEB_IDENTITY_TOKEN_FILE", "PRESTO_S3_ANONYMOUS"};
    char text[2048];
    dir = presto_check_temp_dir();
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        unsetenv(names[i]);
    setenv("HOME", dir, 1);
    setenv("AWS_EC2_METADATA_DISABLED", "true", 1);
    snprintf(path, sizeof path, "%s/give", dir);
    snprintf(text, sizeof text,
             "#!/bin/sh\nprintf x >>'%s/calls'\nn=$(wc -c <'%s/calls')\nlife=3600\n"
             "[ \"$n\" -gt 1 ] || life=%d\n%s\n"
             "printf '{\"Version\":1,\"AccessKeyId\":\"K%%s\",\"SecretAccessKey\":\"S%%s\","
             "\"SessionToken\":\"T\",\"Expiration\":\"%%s\"}' $n $n "
             "\"$(date -u -d @$(($(date +%%s) + life)) +%%Y-%%m-%%dT%%H:%%M:%%SZ)\"\n",
             dir, dir, first_s, more);
    presto_check_write_file(path, presto_span_of_text(text));
    ck_assert_int_eq(chmod(path, 0700), 0);
    snprintf(text, sizeof text, "[default]\ncredential_process = \"%s\"\n", path);
    snprintf(path, sizeof path, "%s/config", dir);
    presto_check_write_file(path, presto_span_of_text(text));
    setenv("AWS_CONFIG_FILE", path, 1);
    snprintf(path, sizeof path, "%s/credentials", dir);
    setenv("AWS_SHARED_CREDENTIALS_FILE", path, 1);
    snprintf(path, sizeof path, "%s/calls", dir);
}

static void tear_down(void) {
    presto_check_remove_tree(dir);
    free(dir);
}

static size_t calls(void) {
    struct stat info;
    return stat(path, &info) == 0 ? (size_t)info.st_size : 0;
}

static presto__credentials *found(void) {
    presto__credentials *credentials;
    ck_assert_ok(presto__credentials_find(PRESTO__CLOUD_AWS, &credentials, &err), &err);
    return credentials;
}

static time_t end_s;
static atomic_uint failures, expired, asked;

/* Asks until the time is over. Keys that are given are valid. */
static void *ask(void *user) {
    presto__credentials *credentials = user;
    while (time(NULL) < end_s) {
        const presto__keys *keys;
        if (presto__keys_acquire(credentials, &keys, NULL) < 0) {
            atomic_fetch_add(&failures, 1);
            continue;
        }
        /* A second may have begun since. */
        if (keys->until_s + 1 < time(NULL))
            atomic_fetch_add(&expired, 1);
        atomic_fetch_add(&asked, 1);
        presto__keys_release(keys);
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return NULL;
}

static void ask_all(presto__credentials *credentials, int for_s) {
    pthread_t threads[THREADS];
    end_s = time(NULL) + for_s;
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, ask, credentials), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

START_TEST(keys_that_expire_in_three_seconds_are_got_once_more_for_64_that_ask) {
    set_up(3, "sleep 0.3");
    presto__credentials *credentials = found();
    ask_all(credentials, 7);
    ck_assert_uint_eq(atomic_load(&failures), 0);
    ck_assert_uint_eq(atomic_load(&expired), 0);
    ck_assert_uint_gt(atomic_load(&asked), 1000);
    ck_assert_uint_eq(calls(), 2);
    presto__credentials_release(credentials);
    tear_down();
}
END_TEST

START_TEST(a_failure_is_that_of_all_who_waited_and_the_next_one_asks_again) {
    set_up(3600, "sleep 0.3; [ \"$n\" -gt 1 ] || { echo 'not now' >&2; exit 3; }");
    presto__credentials *credentials = found();
    const presto__keys *keys;
    ck_assert_status(presto__keys_acquire(credentials, &keys, &err), PRESTO_ERR_IO, &err);
    ck_assert_ptr_nonnull(strstr(err.message, "not now"));
    ck_assert_ok(presto__keys_acquire(credentials, &keys, &err), &err);
    ck_assert_str_eq(keys->access_key, "K2");
    presto__keys_release(keys);
    presto__credentials_release(credentials);
    tear_down();
}
END_TEST

START_TEST(a_failure_while_old_keys_hold_is_not_repeated_at_once) {
    set_up(8, "[ \"$n\" -le 1 ] || exit 3");
    presto__credentials *credentials = found();
    const presto__keys *first, *keys;
    ck_assert_ok(presto__keys_acquire(credentials, &first, &err), &err);
    bool is_slow = false; /* this machine */
    for (int i = 0; i < 200 && !is_slow; i++) {
        presto_status status = presto__keys_acquire(credentials, &keys, &err);
        is_slow = time(NULL) >= first->until_s;
        if (status == PRESTO_OK)
            presto__keys_release(keys);
        ck_assert(is_slow || status == PRESTO_OK);
        if (calls() < 2) { /* others are asked for when a quarter of the time is left */
            i = 0;
            (void)nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
        }
    }
    ck_assert(is_slow || calls() >= 2);
    ck_assert_uint_le(calls(), 4); /* once a second */
    presto__keys_release(first);
    presto__credentials_release(credentials);
    tear_down();
}
END_TEST

START_TEST(one_set_serves_all_as_long_as_the_environment_is_the_same) {
    set_up(3600, "");
    presto__credentials *one = found(), *same = found();
    const presto__keys *keys;
    ck_assert_ptr_eq(one, same);
    presto__credentials_release(same);
    ck_assert_ok(presto__keys_acquire(one, &keys, &err), &err);
    ck_assert_str_eq(keys->provider, "credential_process");
    setenv("AWS_ACCESS_KEY_ID", "E", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "F", 1);
    presto__credentials *other = found();
    const presto__keys *others;
    ck_assert_ptr_ne(one, other);
    ck_assert_ok(presto__keys_acquire(other, &others, &err), &err);
    ck_assert_str_eq(others->access_key, "E");
    ck_assert_str_eq(keys->access_key, "K1"); /* whoever has them keeps them */
    presto__keys_release(keys);
    presto__keys_release(others);
    presto__credentials_release(one);
    presto__credentials_release(other);
    unsetenv("AWS_ACCESS_KEY_ID");
    unsetenv("AWS_SECRET_ACCESS_KEY");
    tear_down();
}
END_TEST

START_TEST(keys_that_a_server_calls_expired_are_replaced_once) {
    set_up(3600, "");
    presto__credentials *credentials = found();
    const presto__keys *keys, *others;
    ck_assert_ok(presto__keys_acquire(credentials, &keys, &err), &err);
    ck_assert(presto__keys_renew(credentials, keys->number));
    ck_assert(presto__keys_renew(credentials, keys->number)); /* for another request */
    ck_assert_uint_eq(calls(), 2);
    ck_assert_ok(presto__keys_acquire(credentials, &others, &err), &err);
    ck_assert_str_eq(others->access_key, "K2");
    presto__keys_release(keys);
    presto__keys_release(others);
    presto__credentials_release(credentials);
    /* The same ones again are no others. */
    setenv("AWS_ACCESS_KEY_ID", "E", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "F", 1);
    credentials = found();
    ck_assert_ok(presto__keys_acquire(credentials, &keys, &err), &err);
    ck_assert(!presto__keys_renew(credentials, keys->number));
    presto__keys_release(keys);
    presto__credentials_release(credentials);
    tear_down();
}
END_TEST

/* Asks for as long as it takes to be in the middle of it. */
static void *ask_once(void *user) {
    const presto__keys *keys;
    if (presto__keys_acquire(user, &keys, NULL) == PRESTO_OK)
        presto__keys_release(keys);
    return NULL;
}

START_TEST(a_child_of_fork_does_not_wait_for_a_thread_of_its_parent) {
    set_up(3600, "sleep 0.5");
    presto__credentials *credentials = found();
    const presto__keys *keys;
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, ask_once, credentials), 0);
    (void)nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0)
        _exit(presto__keys_acquire(credentials, &keys, NULL) == PRESTO_OK ? 0 : 1);
    int status;
    while (waitpid(child, &status, 0) < 0)
        ck_assert_int_eq(errno, EINTR);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    pthread_join(thread, NULL);
    presto__credentials_release(credentials);
    tear_down();
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        keys_that_expire_in_three_seconds_are_got_once_more_for_64_that_ask,
        a_failure_is_that_of_all_who_waited_and_the_next_one_asks_again,
        a_failure_while_old_keys_hold_is_not_repeated_at_once,
        one_set_serves_all_as_long_as_the_environment_is_the_same,
        keys_that_a_server_calls_expired_are_replaced_once,
        a_child_of_fork_does_not_wait_for_a_thread_of_its_parent,
    };
    return presto_check_main("keys", tests, sizeof tests / sizeof tests[0], 60);
}
