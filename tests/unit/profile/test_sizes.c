/* SPDX-License-Identifier: Apache-2.0 */
/* What all records take in a codec, told from some: invented sizes, whose answers are known. */
#include <math.h>

#include "predict/predict_internal.h"
#include "presto_check.h"

/* 60 records of 1000 bytes, of which every sixth one is tried. */
#define ALL ((size_t)60)
#define STRIDE ((size_t)6)
#define TRIED ((size_t)10)
#define CODECS ((size_t)3)
#define NONE ((size_t)0)
#define FAST ((size_t)1)
#define SLOW ((size_t)2)

typedef struct made {
    presto__model model;
    presto__model_split split;
    presto__model_codec codecs[CODECS];
    const char *names[CODECS];
    presto__records all;
    presto__sizes sizes;
    size_t bytes[TRIED];
    uint64_t numbers[TRIED];
    double tried[CODECS * TRIED], looks[CODECS * ALL];
    bool has_looks[CODECS];
} made;

/* Those that are tried take less than the others, mostly. */
static double true_size(size_t record) {
    return record % STRIDE == 0 ? 200 + (double)(record % 4) : 500 + (double)(record * 7 % 90);
}

static double true_mean(size_t count) {
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += true_size(i);
    return sum / (double)count;
}

static void make(made *m) {
    *m = (made){.names = {"none", "fast", "slow"}};
    m->split = (presto__model_split){.raw_bytes = 1000, .plain_bytes = 1016, .codecs = m->codecs};
    m->model = (presto__model){
        .splits = &m->split, .split_count = 1, .codecs = m->names, .codec_count = CODECS};
    m->all = (presto__records){.sizes = m->bytes,
                               .numbers = m->numbers,
                               .count = TRIED,
                               .look_count = ALL,
                               .look_stride = 1};
    m->sizes = (presto__sizes){m->tried, m->looks, m->has_looks, ALL};
    for (size_t i = 0; i < TRIED; i++) {
        m->numbers[i] = STRIDE * i;
        m->bytes[i] = 1000;
        m->tried[FAST * TRIED + i] = 2 * true_size(STRIDE * i);
        m->tried[SLOW * TRIED + i] = i == 1 || i == 4 ? true_size(STRIDE * i) : 0;
    }
    for (size_t i = 0; i < ALL; i++)
        m->looks[FAST * ALL + i] = m->looks[SLOW * ALL + i] = 1.1 * true_size(i);
    for (size_t c = 0; c < CODECS; c++)
        m->codecs[c] = (presto__model_codec){.is_known = true, .records = TRIED};
    m->codecs[SLOW].records = 2;
    m->has_looks[FAST] = m->has_looks[SLOW] = true;
}

static double payload(made *m, size_t codec) {
    presto_error err;
    ck_assert_ok(presto__set_sizes(&m->model, &m->split, &m->all, &m->sizes, &err), &err);
    ck_assert_double_eq(m->codecs[NONE].stored_bytes, 1016);
    return m->codecs[codec].stored_bytes - 16;
}

START_TEST(looks_tell_of_the_records_that_were_not_tried) {
    made m;
    make(&m);
    ck_assert_double_eq_tol(payload(&m, FAST), 2 * true_mean(ALL), 1e-6);
    ck_assert_double_eq_tol(payload(&m, SLOW), true_mean(ALL), 1e-6);
}
END_TEST

START_TEST(a_codec_without_looks_goes_by_those_of_the_fast_one) {
    made m;
    make(&m);
    m.has_looks[SLOW] = false;
    for (size_t i = 0; i < ALL; i++)
        m.looks[SLOW * ALL + i] = 0; /* as far as it came */
    ck_assert_double_eq_tol(payload(&m, SLOW), true_mean(ALL), 1e-6);
}
END_TEST

/* The looks say nothing of the sizes: these are all alike, as the bytes are. */
START_TEST(bytes_tell_where_they_fit_better) {
    made m;
    make(&m);
    for (size_t i = 0; i < TRIED; i++) {
        m.tried[FAST * TRIED + i] = 700;
        m.tried[SLOW * TRIED + i] = i == 3 ? 350 : 0;
    }
    ck_assert_double_eq_tol(payload(&m, FAST), 700, 1e-6);
    ck_assert_double_eq_tol(payload(&m, SLOW), 350, 1e-6);
}
END_TEST

START_TEST(records_that_were_stored_count_if_they_are_more) {
    made m;
    make(&m);
    m.codecs[SLOW].tried = (presto__model_trial){
        .samples = 20, .raw_bytes = 1000, .stored_bytes = 3 * true_mean(20) + 16};
    ck_assert_double_eq_tol(payload(&m, SLOW), 3 * true_mean(ALL), 1e-6);
    m.codecs[SLOW].tried.samples = 1; /* fewer than were tried alone */
    ck_assert_double_eq_tol(payload(&m, SLOW), true_mean(ALL), 1e-6);
}
END_TEST

START_TEST(without_looks_bytes_tell) {
    made m;
    make(&m);
    m.all.look_count = m.sizes.look_count = 0;
    m.split.raw_bytes = 2000; /* the others are larger */
    m.split.plain_bytes = 2016;
    presto_error err;
    ck_assert_ok(presto__set_sizes(&m.model, &m.split, &m.all, &m.sizes, &err), &err);
    double mean = 0;
    for (size_t i = 0; i < TRIED; i++)
        mean += true_size(STRIDE * i) / (double)TRIED;
    ck_assert_double_eq_tol(m.codecs[FAST].stored_bytes, 4 * mean + 16, 1e-6);
    ck_assert_double_eq_tol(m.codecs[SLOW].stored_bytes, 2 * mean + 16, 1e-6);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        looks_tell_of_the_records_that_were_not_tried,
        a_codec_without_looks_goes_by_those_of_the_fast_one,
        bytes_tell_where_they_fit_better,
        records_that_were_stored_count_if_they_are_more,
        without_looks_bytes_tell,
    };
    return presto_check_main("sizes", tests, sizeof tests / sizeof tests[0], 60);
}
