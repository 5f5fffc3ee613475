/* SPDX-License-Identifier: Apache-2.0 */
/* What a process keeps of secrets that it has given back, and what a child of fork finds locked. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "credentials/credentials_internal.h"
#include "kinds_internal.h"
#include "presto_check.h"

#define MOST_BYTES ((size_t)64 << 20) /* of a mapping that is looked through: not a sanitizer's */
#define FORKS 400
#define THREADS 4

static presto_error err;
static char *dir;

static void end(pid_t child) {
    int status;
    while (waitpid(child, &status, 0) < 0)
        ck_assert_int_eq(errno, EINTR);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %x", (unsigned)status);
}

/* The secret stands nowhere in this program: it is made of its letters. */
static void make_secret(char secret[41]) {
    for (int i = 0; i < 40; i++)
        secret[i] = (char)('a' + (i * 7 + i / 13) % 26);
    secret[40] = '\0';
}

static void set_up(void) {
    char path[512];
    dir = presto_check_temp_dir();
    snprintf(path, sizeof path, "%s/credentials", dir);
    pid_t child = fork(); /* what it has in memory ends with it */
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        char secret[41];
        FILE *file = fopen(path, "w");
        make_secret(secret);
        if (file != NULL)
            fprintf(file, "[default]\naws_access_key_id = K\naws_secret_access_key = %s\n", secret);
        _exit(file == NULL || fclose(file) != 0);
    }
    end(child);
    setenv("AWS_SHARED_CREDENTIALS_FILE", path, 1);
    setenv("AWS_CONFIG_FILE", "/dev/null", 1);
    static const char *const names[] = {
        "AWS_PROFILE",           "AWS_DEFAULT_PROFILE",         "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY", "AWS_WEB_IDENTITY_TOKEN_FILE", "PRESTO_S3_ANONYMOUS"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        unsetenv(names[i]);
}

static void tear_down(void) {
    presto_check_remove_tree(dir);
    free(dir);
}

/* Is the letter after letter there? Nothing that looks for it may have it as a whole. */
static bool has_secret(const uint8_t *at) {
    for (int i = 0; i < 40; i++)
        if (at[i] != (uint8_t)('a' + (i * 7 + i / 13) % 26))
            return false;
    return true;
}

/* How often it stands in memory that may be written to. */
static size_t count_in_memory(void) {
    FILE *maps = fopen("/proc/self/maps", "re");
    int memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    char line[512];
    size_t count = 0;
    ck_assert(maps != NULL && memory >= 0);
    while (fgets(line, sizeof line, maps) != NULL) {
        unsigned long first, last;
        char rights[5];
        if (sscanf(line, "%lx-%lx %4s", &first, &last, rights) != 3 || rights[1] != 'w' ||
            last - first > MOST_BYTES)
            continue;
        uint8_t page[4096 + 64]; /* with the beginning of the next one */
        for (unsigned long at = first; at < last; at += 4096) {
            ssize_t got = pread(memory, page, sizeof page, (off_t)at);
            for (ssize_t i = 0; i < 4096 && i + 40 <= got; i++)
                count += has_secret(page + i);
            memset(page, 0, sizeof page); /* it is on the stack, which is looked through, too */
        }
    }
    close(memory);
    fclose(maps);
    return count;
}

START_TEST(no_secret_is_left_when_all_is_given_back) {
    set_up();
    presto__credentials *credentials;
    const presto__keys *keys;
    ck_assert_ok(presto__credentials_find(PRESTO__CLOUD_AWS, &credentials, &err), &err);
    ck_assert_ok(presto__keys_acquire(credentials, &keys, &err), &err);
    ck_assert_uint_gt(count_in_memory(), 0);
    presto__keys_release(keys);
    presto__credentials_release(credentials);
    /* Of other environments; one set that nobody uses is kept, the last one. */
    unsetenv("AWS_SHARED_CREDENTIALS_FILE");
    setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null", 1);
    ck_assert_ok(presto__credentials_find(PRESTO__CLOUD_AWS, &credentials, &err), &err);
    presto__credentials_release(credentials);
    setenv("AWS_REGION", "eu-west-1", 1);
    ck_assert_ok(presto__credentials_find(PRESTO__CLOUD_AWS, &credentials, &err), &err);
    presto__credentials_release(credentials);
    unsetenv("AWS_REGION");
    ck_assert_uint_eq(count_in_memory(), 0);
    tear_down();
}
END_TEST

/* A sanitizer's allocator may be locked in the child. */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
static atomic_bool is_over;

/* Makes addresses, over and over. */
static void *describe(void *user) {
    const char *path = user;
    const presto__storage_kind *kind = presto__storage_kind_of(path);
    presto_place_facts facts;
    while (!atomic_load(&is_over))
        (void)kind->describe(path, &facts, NULL);
    return NULL;
}

START_TEST(a_child_of_fork_finds_no_lock_held) {
    pthread_t threads[THREADS];
    static char path[] = "s3://bucket/key";
    presto_place_facts facts = {.key_until_s = 0};
    setenv("AWS_ACCESS_KEY_ID", "K", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "S", 1);
    setenv("AWS_CONFIG_FILE", "/dev/null", 1);
    setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null", 1);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, describe, path), 0);
    for (int i = 0; i < FORKS; i++) {
        pid_t child = fork();
        ck_assert_int_ge(child, 0);
        if (child == 0) {
            alarm(30);
            _exit(presto__storage_kind_of(path)->describe(path, &facts, NULL) == PRESTO_OK ? 0 : 1);
        }
        end(child);
    }
    atomic_store(&is_over, true);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}
END_TEST
#endif

int main(void) {
    const TTest *const tests[] = {
        no_secret_is_left_when_all_is_given_back,
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
        a_child_of_fork_finds_no_lock_held,
#endif
    };
    return presto_check_main("secrets", tests, sizeof tests / sizeof tests[0], 120);
}
