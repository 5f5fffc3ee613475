/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every unit test uses on top of Check: one suite per file, run by presto_check_main, and
 * comparisons that print both sides by name.
 */
#ifndef PRESTO_CHECK_H
#define PRESTO_CHECK_H

#include <check.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include <presto/span.h>

/*
 * Check writes every assertion that holds to a file, so that it can tell the last one before a
 * crash. That is a system call each: most of the time of many tests. Sanitizers tell where a crash
 * was.
 */
#undef ck_assert_msg
#define ck_assert_msg(expr, ...)                                                                   \
    ((expr) ? (void)0                                                                              \
            : _ck_assert_failed(__FILE__, __LINE__, "Assertion '" #expr "' failed", __VA_ARGS__))

/** Fails unless the status is the expected one; prints both names and the error's text. */
#define ck_assert_status(expr, wanted, err)                                                        \
    do {                                                                                           \
        presto_status got_ = (expr);                                                               \
        presto_check_status(got_, (wanted), (err), #expr, __FILE__, __LINE__);                     \
    } while (0)
#define ck_assert_ok(expr, err) ck_assert_status(expr, PRESTO_OK, err)

void presto_check_status(presto_status got, presto_status wanted, const presto_error *err,
                         const char *expression, const char *file, int line);

/** A copy on the heap of exactly the span's size, so that ASan sees every read past it. */
uint8_t *presto_check_copy(presto_span span);

/** A whole file; *bytes_out its size. Fails the test if it cannot be read. Free with free(). */
uint8_t *presto_check_read_file(const char *path, size_t *bytes_out);
void presto_check_write_file(const char *path, presto_span content);

/**
 * A fresh folder under TMPDIR or /tmp; presto_check_remove_tree deletes it with all that is in it.
 */
char *presto_check_temp_dir(void);
void presto_check_remove_tree(const char *dir);

/** The seed of this run's random tests: PRESTO_TEST_SEED or the time; printed once. */
uint64_t presto_check_seed(void);

/** Does each operation take many times as long: with TSan, or a hostile scheduler? */
bool presto_check_is_slow(void);
/** How often to repeat what is tried at random: `rounds`, an eighth of it (at least 1) under TSan,
 * which is slow, and under the hostile scheduler, which sleeps in each round. */
size_t presto_check_rounds(size_t rounds);

/**
 * Build a suite of one test case per array element and run it; the value of main(). Time limit per
 * test in seconds of an idle machine: four times that for a busy one.
 */
int presto_check_main(const char *name, const TTest *const *tests, size_t count, double timeout_s);

#endif
