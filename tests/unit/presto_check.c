/* SPDX-License-Identifier: Apache-2.0 */
#define _XOPEN_SOURCE 700
#include "presto_check.h"

#include <ftw.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

void presto_check_status(presto_status got, presto_status wanted, const presto_error *err,
                         const char *expression, const char *file, int line) {
    if (got == wanted)
        return;
    char text[2048] = "";
    if (err != NULL && got < 0)
        presto_error_format(err, text, sizeof text);
    ck_abort_msg("%s:%d: %s gives %s, not %s: %s", file, line, expression, presto_status_name(got),
                 presto_status_name(wanted), text);
}

uint8_t *presto_check_copy(presto_span span) {
    uint8_t *copy = malloc(span.bytes);
    ck_assert(copy != NULL || span.bytes == 0);
    if (span.bytes > 0)
        memcpy(copy, span.data, span.bytes);
    return copy;
}

uint8_t *presto_check_read_file(const char *path, size_t *bytes_out) {
    FILE *file = fopen(path, "rb");
    ck_assert_msg(file != NULL, "cannot open %s", path);
    presto_buffer buffer = {0};
    for (;;) {
        ck_assert_int_eq(presto_buffer_reserve(&buffer, 65536, NULL), PRESTO_OK);
        size_t got = fread(buffer.data + buffer.bytes, 1, 65536, file);
        if (got == 0)
            break;
        buffer.bytes += got;
    }
    ck_assert_msg(!ferror(file), "cannot read %s", path);
    fclose(file);
    *bytes_out = buffer.bytes;
    return buffer.data;
}

void presto_check_write_file(const char *path, presto_span content) {
    FILE *file = fopen(path, "wb");
    ck_assert_msg(file != NULL, "cannot create %s", path);
    if (content.bytes > 0)
        ck_assert_uint_eq(fwrite(content.data, 1, content.bytes, file), content.bytes);
    ck_assert_int_eq(fclose(file), 0);
}

char *presto_check_temp_dir(void) {
    const char *base = getenv("TMPDIR");
    char *path = malloc(512);
    ck_assert_ptr_nonnull(path);
    snprintf(path, 512, "%s/presto-test-XXXXXX", base != NULL ? base : "/tmp");
    ck_assert_msg(mkdtemp(path) != NULL, "cannot make %s", path);
    return path;
}

static int remove_entry(const char *path, const struct stat *info, int kind, struct FTW *place) {
    (void)info;
    (void)kind;
    (void)place;
    return remove(path);
}

void presto_check_remove_tree(const char *dir) {
    nftw(dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

uint64_t presto_check_seed(void) {
    static uint64_t seed;
    if (seed == 0) {
        const char *text = getenv("PRESTO_TEST_SEED");
        seed = text != NULL ? strtoull(text, NULL, 10) : (uint64_t)time(NULL);
        printf("PRESTO_TEST_SEED=%" PRIu64 "\n", seed);
        fflush(stdout);
    }
    return seed;
}

bool presto_check_is_slow(void) {
#ifdef __SANITIZE_THREAD__
    return true;
#else
    return getenv("PRESTO_HOSTILE_SEED") != NULL;
#endif
}

size_t presto_check_rounds(size_t rounds) {
    return presto_check_is_slow() ? (rounds + 7) / 8 : rounds;
}

/* Is it among the names in PRESTO_TEST_SKIP, which commas separate? */
static bool is_skipped(const char *name) {
    const char *list = getenv("PRESTO_TEST_SKIP");
    size_t bytes = strlen(name);
    for (const char *at = list; at != NULL && (at = strstr(at, name)) != NULL; at += bytes)
        if ((at == list || at[-1] == ',') && (at[bytes] == ',' || at[bytes] == '\0'))
            return true;
    return false;
}

int presto_check_main(const char *name, const TTest *const *tests, size_t count, double timeout_s) {
    Suite *suite = suite_create(name);
    TCase *tests_case = tcase_create(name);
    /* A busy machine is no failure: only what hangs is one. */
    setenv("CK_TIMEOUT_MULTIPLIER", "4", 0);
    tcase_set_timeout(tests_case, timeout_s);
    for (size_t i = 0; i < count; i++)
        if (!is_skipped(tests[i]->name))
            tcase_add_test(tests_case, tests[i]);
    suite_add_tcase(suite, tests_case);
    SRunner *runner = srunner_create(suite);
    presto_check_seed();
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
