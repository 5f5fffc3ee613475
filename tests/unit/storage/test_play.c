/* SPDX-License-Identifier: Apache-2.0 */
/* A storage as text; and as it is played, on a clock that only moves when somebody waits. */
#define _XOPEN_SOURCE 700
#include "../../../base/rng_internal.h"
#include "comma_check.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <presto/rng.h>

#include "play_internal.h"
#include "storage_internal.h"

/* ---- text ---- */

static presto_storage parsed(const char *text) {
    presto_storage storage;
    presto_error err;
    ck_assert_ok(presto_storage_parse(text, &storage, &err), &err);
    return storage;
}

START_TEST(a_storage_is_its_parts_with_units) {
    presto_storage s =
        parsed("bandwidth=910MB/s,per-thread=219MB/s,iops=222000,latency=8us,open=65ms");
    ck_assert_double_eq(s.bytes_per_s, 910e6);
    ck_assert_double_eq(s.bytes_per_s_per_thread, 219e6);
    ck_assert_double_eq(s.reads_per_s, 222000);
    ck_assert_double_eq_tol(s.latency_s, 8e-6, 1e-18);
    ck_assert_double_eq_tol(s.open_s, 65e-3, 1e-15);
    static const struct {
        const char *text;
        double bytes_per_s;
    } rates[] = {{"bandwidth=1B/s", 1},
                 {"bandwidth=2.5kB/s", 2500},
                 {"bandwidth=2.5MB/s", 2.5e6},
                 {"bandwidth=7GB/s", 7e9},
                 {"bandwidth=1000TB/s", 1e15},
                 {"bandwidth=1KiB/s", 1024},
                 {"bandwidth=.5MiB/s", 524288},
                 {"bandwidth=1GiB/s", 1073741824},
                 {"bandwidth=1TiB/s", 1099511627776},
                 {"bandwidth=8kbit/s", 1000},
                 {"bandwidth=8Mbit/s", 1e6},
                 {"bandwidth=10Gbit/s", 1.25e9}};
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
        s = parsed(rates[i].text);
        ck_assert_double_eq(s.bytes_per_s, rates[i].bytes_per_s);
        ck_assert(s.reads_per_s == 0 && s.latency_s == 0 && s.bytes_per_s_per_thread == 0);
    }
    ck_assert_double_eq(parsed("latency=10s").latency_s, 10);
    ck_assert_double_eq_tol(parsed("latency=250ns").latency_s, 250e-9, 1e-20);
    ck_assert_double_eq(parsed("iops=0.5/s").reads_per_s, 0.5);
}
END_TEST

START_TEST(a_profile_may_be_followed_by_parts_that_change_it) {
    for (size_t i = 0; presto__storage_profile_at(i) != NULL; i++) {
        const presto__storage_profile *profile = presto__storage_profile_at(i);
        presto_storage s = parsed(profile->name);
        ck_assert_double_eq(s.bytes_per_s, profile->storage.bytes_per_s);
        ck_assert_double_eq(s.latency_s, profile->storage.latency_s);
        ck_assert_double_eq(s.open_s, profile->storage.open_s);
        ck_assert(presto__storage_is_set(&s));
        ck_assert_status(presto__storage_check(&s, NULL), PRESTO_OK, NULL);
    }
    presto_storage s = parsed("object-store,latency=30ms,open=0s");
    ck_assert_double_eq_tol(s.latency_s, 30e-3, 1e-15);
    ck_assert_double_eq(s.open_s, 0);
    ck_assert_double_eq(s.bytes_per_s, parsed("object-store").bytes_per_s);
}
END_TEST

START_TEST(what_is_formatted_reads_back) {
    char text[PRESTO_STORAGE_TEXT_BYTES];
    static const char *const texts[] = {
        "bandwidth=910MB/s,per-thread=219MB/s,iops=222000,latency=614us,open=65ms",
        "bandwidth=131.072MB/s,iops=3000,latency=1ms",
        "bandwidth=1B/s",
        "iops=0.001",
        "latency=1ns,open=3600s",
        "bandwidth=1000TB/s,iops=1000000000000"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        presto_storage s = parsed(texts[i]);
        ck_assert_str_eq(presto__storage_format(&s, text), texts[i]);
    }
    presto_storage none = {0};
    ck_assert_str_eq(presto__storage_format(&none, text), "");
    presto_storage most = {1e15, 1e15 / 7, 1e12 / 7, 3600.0 / 7, 3600.0 / 7, {0}};
    ck_assert_uint_lt(strlen(presto__storage_format(&most, text)), sizeof text - 1);
    presto_storage back = parsed(text);
    ck_assert_double_eq_tol(back.latency_s, most.latency_s, 1e-9);
}
END_TEST

START_TEST(what_is_formatted_has_points_in_any_locale) {
    char text[PRESTO_STORAGE_TEXT_BYTES];
    static const char wanted[] = "bandwidth=131.072MB/s,latency=1.5ms";
    if (!comma_begin())
        return;
    presto_storage s = parsed(wanted);
    ck_assert_str_eq(presto__storage_format(&s, text), wanted);
    comma_end();
}
END_TEST

START_TEST(what_makes_no_storage_says_why) {
    static const struct {
        const char *text, *why;
    } wrong[] = {
        {"", "empty part"},
        {",", "empty part"},
        {"bandwidth=1GB/s,", "empty part"},
        {"bandwidth=0MB/s", "leave it out for no limit"},
        {"iops=0", "leave it out for no limit"},
        {"bandwidth=910", "lacks its unit"},
        {"latency=8", "lacks its unit"},
        {"bandwidth=-1MB/s", "is none"},
        {"bandwidth=inf", "is none"},
        {"bandwidth=nan", "is none"},
        {"bandwidth=1e300MB/s", "is none"},
        {"bandwidth=0x10MB/s", "is none"},
        {"bandwidth= 1MB/s", "is none"},
        {"bandwidth=1MB", "is none"},
        {"bandwidth=1.2.3MB/s", "is none"},
        {"bandwidth=", "is none"},
        {"bandwidth", "is none"},
        {"bandwidth=MB/s", "is none"},
        {"bandwidth=9999999999999999999999MB/s", "is none"},
        {"bandwidth=1001TB/s", "1B/s to 1000TB/s is possible"},
        {"bandwidth=0.1B/s", "1B/s to 1000TB/s is possible"},
        {"iops=10000000000000", "is possible"},
        {"latency=3601s", "1ns to 3600s is possible"},
        {"latency=0.1ns", "1ns to 3600s is possible"},
        {"latency=0s", "limits nothing"},
        {"latency=1ms,latency=2ms", "latency is given twice"},
        {"bandwith=1GB/s", "did you mean bandwidth"},
        {"nvm", "did you mean nvme"},
        {"ceph-hdd,nvme", "a profile's name comes first"},
        {"latency=1ms,nvme", "a profile's name comes first"},
        {"tape", "there are nvme, network-disk, ceph-hdd, object-store"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        presto_storage storage = {.latency_s = 42};
        presto_error err;
        ck_assert_status(presto_storage_parse(wrong[i].text, &storage, &err), PRESTO_ERR_ARGUMENT,
                         &err);
        ck_assert_msg(strstr(err.message, wrong[i].why) != NULL, "'%s': %s", wrong[i].text,
                      err.message);
        ck_assert_double_eq(storage.latency_s, 42);
        ck_assert_status(presto_storage_parse(wrong[i].text, &storage, NULL), PRESTO_ERR_ARGUMENT,
                         NULL);
    }
}
END_TEST

START_TEST(figures_out_of_range_are_refused) {
    const presto_storage wrong[] = {
        {.bytes_per_s = -1},    {.bytes_per_s = NAN}, {.bytes_per_s = INFINITY},
        {.bytes_per_s = 1e300}, {.bytes_per_s = 0.5}, {.bytes_per_s_per_thread = -INFINITY},
        {.reads_per_s = 1e13},  {.latency_s = -1e-9}, {.latency_s = 1e300},
        {.open_s = NAN}};
    presto_error err;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        ck_assert_status(presto__storage_check(&wrong[i], &err), PRESTO_ERR_ARGUMENT, &err);
    presto_storage unknown = {.bytes_per_s = 1, .reserved = {0, 1, 0}};
    ck_assert_status(presto__storage_check(&unknown, &err), PRESTO_ERR_UNSUPPORTED, &err);
}
END_TEST

/* ---- played ---- */

enum { MOST_THREADS = 64 };

/* A clock that moves only when somebody waits, and then up to `oversleep_ns` too far. */
static struct {
    uint64_t now_ns, oversleep_ns;
    presto_rng rng;
} fake;

static uint64_t fake_now(void *user) {
    (void)user;
    return fake.now_ns;
}

static void fake_wait(void *user, uint64_t until_ns) {
    (void)user;
    if (until_ns > fake.now_ns)
        fake.now_ns = until_ns;
    if (fake.oversleep_ns > 0)
        fake.now_ns += (uint64_t)(presto_rng_uniform(&fake.rng) * (double)fake.oversleep_ns);
}

static const presto__storage_time fake_time = {fake_now, fake_wait, NULL};

/* What threads do, all the same: open a file, read it in pieces, compute. */
typedef struct work {
    unsigned threads;
    uint64_t piece_bytes;
    unsigned pieces; /* of a file */
    bool opens;
    uint64_t compute_ns; /* for each file */
} work;

/* Files per second that `work` gets from the storage, within so long. */
static double files_per_s(const presto_storage *limits, const work *what, double end_s) {
    presto__played_storage storage;
    presto__storage_thread threads[MOST_THREADS];
    uint64_t ready_ns[MOST_THREADS] = {0}, pieces = 0;
    const uint64_t end_ns = (uint64_t)(end_s * 1e9);
    fake.now_ns = 0;
    presto__rng_init(&fake.rng, &(presto__rng_key){.seed = presto_check_seed()});
    ck_assert_status(presto__storage_init(&storage, limits, &fake_time, NULL), PRESTO_OK, NULL);
    for (unsigned i = 0; i < what->threads; i++)
        presto__storage_thread_init(&threads[i], &storage);
    for (uint64_t steps[MOST_THREADS] = {0};;) {
        unsigned first = 0;
        for (unsigned i = 1; i < what->threads; i++)
            first = ready_ns[i] < ready_ns[first] ? i : first;
        if (ready_ns[first] >= end_ns)
            break;
        presto__storage_thread *thread = &threads[first];
        uint64_t piece = steps[first]++ % what->pieces;
        fake.now_ns = ready_ns[first];
        if (piece == 0 && what->opens)
            presto__storage_opened(thread, presto__storage_begin(thread));
        if (piece == 0)
            thread->file = -1;
        presto__storage_read(
            thread, presto__storage_begin(thread),
            &(presto__storage_piece){3, piece * what->piece_bytes, what->piece_bytes});
        if (piece == what->pieces - 1)
            fake.now_ns += what->compute_ns;
        pieces++;
        ready_ns[first] = fake.now_ns;
    }
    presto__storage_done(&storage);
    return (double)pieces / what->pieces / ((double)end_ns * 1e-9);
}

static double least(double a, double b) {
    return a < b ? a : b;
}

/* The same by what presto/storage.h says. */
static double model(const presto_storage *s, const work *what) {
    double bytes = (double)(what->piece_bytes * what->pieces);
    double reading_s = 0, each = INFINITY;
    if (s->bytes_per_s_per_thread > 0)
        reading_s = bytes / s->bytes_per_s_per_thread;
    if (s->bytes_per_s > 0 && bytes / s->bytes_per_s > reading_s)
        reading_s = bytes / s->bytes_per_s;
    if (s->reads_per_s > 0 && 1 / s->reads_per_s > reading_s)
        reading_s = 1 / s->reads_per_s;
    each = what->threads / (reading_s + s->latency_s + (what->opens ? s->open_s : 0) +
                            (double)what->compute_ns * 1e-9);
    if (s->bytes_per_s > 0)
        each = least(each, s->bytes_per_s / bytes);
    if (s->reads_per_s > 0)
        each = least(each, s->reads_per_s);
    return each;
}

static const char *const storages[] = {"nvme",
                                       "network-disk",
                                       "ceph-hdd",
                                       "object-store",
                                       "iops=1000",
                                       "latency=8us",
                                       "bandwidth=10MB/s",
                                       "per-thread=1MB/s,latency=3ms",
                                       "bandwidth=910MB/s,iops=222000,latency=8us"};
static const work works[] = {
    {1, 262144, 4, false, 0},      {8, 262144, 4, false, 0},      {64, 262144, 16, false, 0},
    {1, 4096, 1, false, 0},        {8, 4096, 1, false, 0},        {64, 4096, 1, false, 1000000},
    {1, 114700, 1, true, 2000000}, {8, 114700, 1, true, 2000000}, {64, 20000, 1, true, 0},
};

START_TEST(rates_are_those_of_the_model) {
    static const uint64_t oversleeps_ns[] = {0, 60000, 3000000};
    for (size_t o = 0; o < 3; o++)
        for (size_t s = 0; s < sizeof storages / sizeof *storages; s++)
            for (size_t w = 0; w < sizeof works / sizeof *works; w++) {
                presto_storage storage = parsed(storages[s]);
                double wanted = model(&storage, &works[w]);
                if (wanted > 3e4 || wanted < 10)
                    continue; /* too many steps; too few for a rate */
                fake.oversleep_ns = oversleeps_ns[o];
                double got = files_per_s(&storage, &works[w], wanted > 1000 ? 1.5 : 20);
                ck_assert_msg(fabs(got / wanted - 1) < 0.05,
                              "%s, work %zu, %g ms late: %g files a second, not %g", storages[s], w,
                              (double)oversleeps_ns[o] * 1e-6, got, wanted);
            }
}
END_TEST

START_TEST(what_goes_on_is_one_read) {
    presto__played_storage storage;
    presto__storage_thread thread;
    presto_storage limits = parsed("latency=1s");
    fake.now_ns = 1000;
    fake.oversleep_ns = 0;
    ck_assert_status(presto__storage_init(&storage, &limits, &fake_time, NULL), PRESTO_OK, NULL);
    presto__storage_thread_init(&thread, &storage);
    static const struct {
        presto__storage_piece piece;
        uint64_t reads; /* so far */
    } pieces[] = {
        {{3, 0, 100}, 1},  {{3, 100, 50}, 1}, {{3, 150, 0}, 1},
        {{3, 150, 10}, 1}, {{3, 200, 10}, 2}, {{4, 210, 10}, 3},
        {{4, 220, 10}, 3}, {{3, 230, 10}, 4}, {{3, 0, 10}, 5},
    };
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        presto__storage_read(&thread, presto__storage_begin(&thread), &pieces[i].piece);
        ck_assert_uint_eq(thread.reads, pieces[i].reads);
        ck_assert_uint_eq(fake.now_ns, 1000 + pieces[i].reads * UINT64_C(1000000000));
    }
    ck_assert_uint_eq(thread.wait_ns, fake.now_ns - 1000);
    presto__storage_opened(&thread, presto__storage_begin(&thread)); /* another file, same number */
    presto__storage_read(&thread, presto__storage_begin(&thread),
                         &(presto__storage_piece){3, 10, 10});
    ck_assert_uint_eq(thread.reads, 6);
    presto__storage_done(&storage);
}
END_TEST

START_TEST(the_slowest_storage_does_not_overflow) {
    presto_storage limits = parsed("bandwidth=1B/s,per-thread=1B/s,iops=0.001,latency=3600s");
    presto__played_storage storage;
    presto__storage_thread thread;
    fake.now_ns = 0;
    fake.oversleep_ns = 0;
    ck_assert_status(presto__storage_init(&storage, &limits, &fake_time, NULL), PRESTO_OK, NULL);
    presto__storage_thread_init(&thread, &storage);
    for (uint64_t i = 0; i < 100; i++) {
        uint64_t before_ns = fake.now_ns;
        presto__storage_read(&thread, presto__storage_begin(&thread),
                             &(presto__storage_piece){3, i * 7, UINT64_MAX / 2});
        ck_assert_uint_gt(fake.now_ns, before_ns);
    }
    presto__storage_done(&storage);
}
END_TEST

/* ---- on the system's clock ---- */

static presto_status read_here(presto__object object, uint64_t offset, size_t bytes) {
    char data[64];
    size_t got;
    return presto__read_at((presto__object_place){object, "file", offset}, data, bytes, &got, NULL);
}

START_TEST(only_threads_that_are_bound_read_from_it) {
    presto_storage limits = parsed("bandwidth=1000TB/s");
    presto__played_storage storage;
    presto__storage_thread thread;
    presto__object_info info;
    presto__object object;
    char path[700], *dir = presto_check_temp_dir();
    snprintf(path, sizeof path, "%s/file", dir);
    presto_check_write_file(path, presto_span_of(path, sizeof path));
    ck_assert_status(presto__storage_init(&storage, &limits, NULL, NULL), PRESTO_OK, NULL);
    presto__storage_thread_init(&thread, &storage);
    ck_assert_ptr_null(presto__storage_bound());
    ck_assert_status(presto__object_open(path, &object, &info, NULL), PRESTO_OK, NULL);
    ck_assert_status(read_here(object, 0, 10), PRESTO_OK, NULL);
    ck_assert_uint_eq(thread.reads, 0);
    ck_assert_ptr_null(presto__storage_bind(&thread));
    ck_assert_status(read_here(object, 10, 10), PRESTO_OK, NULL);
    ck_assert_status(read_here(object, 20, 10), PRESTO_OK, NULL);
    ck_assert_uint_eq(thread.reads, 1);
    ck_assert_status(read_here(object, 100, 10), PRESTO_OK, NULL);
    ck_assert_uint_eq(thread.reads, 2);
    ck_assert_ptr_eq(presto__storage_bind(NULL), &thread);
    ck_assert_status(read_here(object, 0, 10), PRESTO_OK, NULL);
    ck_assert_uint_eq(thread.reads, 2);
    ck_assert_uint_eq(thread.wait_ns, 0);
    presto__object_close(&object);
    presto__storage_done(&storage);
    presto_check_remove_tree(dir);
    free(dir);
}
END_TEST

static void *read_slowly(void *argument) {
    presto__storage_thread *thread = argument;
    presto__storage_read(thread, presto__storage_begin(thread),
                         &(presto__storage_piece){3, 0, 1000});
    return NULL;
}

START_TEST(cancelling_ends_every_wait_at_once) {
    presto_storage limits = parsed("bandwidth=1B/s,latency=3600s");
    presto__played_storage storage;
    presto__storage_thread threads[4];
    pthread_t ids[4];
    ck_assert_status(presto__storage_init(&storage, &limits, NULL, NULL), PRESTO_OK, NULL);
    for (size_t i = 0; i < 4; i++) {
        presto__storage_thread_init(&threads[i], &storage);
        ck_assert_int_eq(pthread_create(&ids[i], NULL, read_slowly, &threads[i]), 0);
    }
    presto__storage_cancel(&storage);
    for (size_t i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_join(ids[i], NULL), 0);
    read_slowly(&threads[0]); /* and nobody waits any more */
    presto__storage_done(&storage);
}
END_TEST

static bool stop_after_some(void *user) {
    unsigned *left = user;
    return (*left)-- == 1;
}

START_TEST(who_waits_asks_whether_to_stop) {
    presto_storage limits = parsed("latency=3600s");
    presto__played_storage storage;
    presto__storage_thread thread;
    unsigned left = 3;
    ck_assert_status(presto__storage_init(&storage, &limits, NULL, NULL), PRESTO_OK, NULL);
    presto__storage_thread_init(&thread, &storage);
    thread.stop = stop_after_some;
    thread.stop_user = &left;
    read_slowly(&thread);
    ck_assert_uint_eq(left, 0);
    ck_assert_uint_gt(thread.wait_ns, 0);
    presto__storage_done(&storage);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        a_storage_is_its_parts_with_units,     a_profile_may_be_followed_by_parts_that_change_it,
        what_is_formatted_reads_back,          what_is_formatted_has_points_in_any_locale,
        what_makes_no_storage_says_why,        figures_out_of_range_are_refused,
        rates_are_those_of_the_model,          what_goes_on_is_one_read,
        the_slowest_storage_does_not_overflow, only_threads_that_are_bound_read_from_it,
        cancelling_ends_every_wait_at_once,    who_waits_asks_whether_to_stop,
    };
    return presto_check_main("storage", tests, sizeof tests / sizeof tests[0], 120);
}
