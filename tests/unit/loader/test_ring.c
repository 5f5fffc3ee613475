/* SPDX-License-Identifier: Apache-2.0 */
/* The ring between two ends: what comes out is what was put in, in memory that comes back; and
 * neither side can hurt the other one. */
#define _GNU_SOURCE /* memfd_create, seals */
#include "presto_check.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <presto/rng.h>

#include "ring/ring_internal.h"

static presto_error err;

/* ---- batches that say by themselves what is in them ---- */

enum { MOST_ROWS = 40, ROW_VALUES = 100, VALUES = MOST_ROWS * ROW_VALUES };

typedef struct made_batch {
    presto_batch batch;
    presto_batch_feature features[5];
    uint64_t numbers[MOST_ROWS];
    int32_t values[VALUES];
    int64_t offsets[MOST_ROWS + 1], rows[MOST_ROWS + 1], shapes[MOST_ROWS * 3];
    char text[MOST_ROWS * 8];
} made_batch;

static const int64_t no_values[MOST_ROWS + 1];

static presto_tensor list_of(presto_dtype dtype, int64_t count, const void *data) {
    return (presto_tensor){.spec = {dtype, 1, {count}}, .data = data};
}

/* Batch number `number`: rows and values follow from it. */
static void make_batch(made_batch *self, uint64_t number) {
    size_t rows = 1 + number * 7 % MOST_ROWS;
    for (size_t i = 0; i < VALUES; i++)
        self->values[i] = (int32_t)(number * 1000003 + i);
    memset(self->text, (int)('a' + number % 26), sizeof self->text);
    for (size_t i = 0; i <= rows; i++) {
        self->numbers[i % MOST_ROWS] = number + i % MOST_ROWS;
        self->offsets[i] = (int64_t)(i * 6);
        self->rows[i] = (int64_t)(i / 2);
    }
    for (size_t i = 0; i < rows; i++)
        memcpy(self->shapes + 3 * i, (const int64_t[]){2, 3, -1}, 3 * sizeof(int64_t));
    self->features[0] = (presto_batch_feature){
        .name = "image",
        .encoding = PRESTO_ENCODE_TENSOR,
        .tensor = {.spec = {PRESTO_INT32, 3, {(int64_t)rows, 10, ROW_VALUES / 10}},
                   .data = self->values}};
    self->features[1] =
        (presto_batch_feature){.name = "tokens",
                               .layout = PRESTO_LAYOUT_RAGGED,
                               .encoding = PRESTO_ENCODE_INT64,
                               .tensor = list_of(PRESTO_INT32, (int64_t)rows * 6, self->values + 1),
                               .offsets = self->offsets,
                               .shapes = self->shapes,
                               .shape_rank = 3};
    self->features[2] =
        (presto_batch_feature){.name = "key",
                               .layout = PRESTO_LAYOUT_BYTES,
                               .tensor = list_of(PRESTO_UINT8, (int64_t)rows * 6, self->text),
                               .offsets = self->offsets};
    self->features[3] =
        (presto_batch_feature){.name = "words",
                               .layout = PRESTO_LAYOUT_BYTES,
                               .tensor = list_of(PRESTO_UINT8, (int64_t)(rows / 2) * 6, self->text),
                               .offsets = self->offsets,
                               .row_offsets = self->rows};
    self->features[4] = (presto_batch_feature){.name = "nothing",
                                               .layout = PRESTO_LAYOUT_RAGGED,
                                               .tensor = list_of(PRESTO_FLOAT64, 0, NULL),
                                               .offsets = no_values};
    self->batch = (presto_batch){.epoch = number / 3,
                                 .first = number * 10,
                                 .rows = rows,
                                 .skipped = (size_t)(number % 2),
                                 .sample_numbers = self->numbers,
                                 .features = self->features,
                                 .feature_count = 5,
                                 .main_feature = 0};
}

static bool same_numbers(const int64_t *a, const int64_t *b, size_t count) {
    return (a == NULL) == (b == NULL) && (a == NULL || memcmp(a, b, count * sizeof *a) == 0);
}

static void check_feature(const presto_batch_feature *got, const presto_batch_feature *wanted,
                          size_t rows) {
    size_t strings = wanted->row_offsets == NULL ? rows : (size_t)wanted->row_offsets[rows];
    ck_assert_str_eq(got->name, wanted->name);
    ck_assert_int_eq(got->layout, wanted->layout);
    ck_assert_int_eq(got->encoding, wanted->encoding);
    ck_assert(presto_spec_equal(&got->tensor.spec, &wanted->tensor.spec));
    ck_assert_uint_eq((uintptr_t)got->tensor.data % 64, 0);
    size_t bytes = presto_tensor_bytes(&wanted->tensor);
    ck_assert(bytes == 0 || memcmp(got->tensor.data, wanted->tensor.data, bytes) == 0);
    ck_assert(same_numbers(got->offsets, wanted->offsets, strings + 1));
    ck_assert(same_numbers(got->row_offsets, wanted->row_offsets, rows + 1));
    ck_assert(same_numbers(got->shapes, wanted->shapes, rows * wanted->shape_rank));
}

static void check_batch(const presto_batch *got, uint64_t number) {
    made_batch *wanted = malloc(sizeof *wanted);
    make_batch(wanted, number);
    const presto_batch *want = &wanted->batch;
    ck_assert_uint_eq(got->epoch, want->epoch);
    ck_assert_uint_eq(got->first, want->first);
    ck_assert_uint_eq(got->rows, want->rows);
    ck_assert_uint_eq(got->skipped, want->skipped);
    ck_assert_uint_eq(got->main_feature, want->main_feature);
    ck_assert_uint_eq(got->feature_count, want->feature_count);
    ck_assert_mem_eq(got->sample_numbers, want->sample_numbers, want->rows * sizeof(uint64_t));
    for (size_t i = 0; i < want->feature_count; i++)
        check_feature(&got->features[i], &want->features[i], want->rows);
    free(wanted);
}

/* ---- a writer in a thread ---- */

#define BATCH_BYTES ((size_t)64 << 10)

typedef struct writing {
    pthread_t thread;
    presto_ring_options options;
    uint64_t count;
    size_t fails_at; /* batch; SIZE_MAX: none */
    bool ends;
    presto_status status;
    presto_error err;
} writing;

static void *write_all(void *user) {
    writing *self = user;
    presto_ring_writer *writer;
    made_batch *made = malloc(sizeof *made);
    self->status = presto_ring_writer_open(&self->options, &writer, &self->err);
    if (self->status < 0) {
        free(made);
        return NULL;
    }
    for (uint64_t i = 0; i < self->count && self->status == PRESTO_OK; i++) {
        make_batch(made, i);
        if (i == self->fails_at) {
            presto_error_set(&self->err, PRESTO_ERR_CORRUPT, 4711, "this is damaged");
            presto_error_set_file(&self->err, "some.tfrecord");
            presto_error_set_record(&self->err, 12);
            presto_ring_writer_fail(writer, &self->err);
            break;
        }
        self->status = presto_ring_writer_put(writer, &made->batch, &self->err);
    }
    if (self->status == PRESTO_OK && self->ends)
        self->status = presto_ring_writer_end(writer, &self->err);
    presto_ring_writer_free(writer);
    free(made);
    return NULL;
}

static void start_writer(writing *self) {
    ck_assert_int_eq(pthread_create(&self->thread, NULL, write_all, self), 0);
}

static void end_writer(writing *self, presto_status wanted) {
    pthread_join(self->thread, NULL);
    ck_assert_status(self->status, wanted, &self->err);
}

/* A writer and a reader on a socketpair. */
static presto_ring_reader *start_pair(writing *self, size_t ring_bytes) {
    int ends[2];
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    presto_ring_options options;
    presto_ring_options_defaults(&options);
    presto_ring_options_defaults(&self->options);
    self->options.fd = ends[0];
    self->options.ring_bytes = ring_bytes;
    options.fd = ends[1];
    start_writer(self);
    presto_ring_reader *reader;
    ck_assert_ok(presto_ring_reader_open(&options, &reader, &err), &err);
    return reader;
}

static const writing whole = {.count = 500, .fails_at = SIZE_MAX, .ends = true};

START_TEST(batches_of_every_layout_come_in_order_and_then_the_end) {
    writing self = whole;
    presto_ring_reader *reader = start_pair(&self, 2 * BATCH_BYTES);
    presto_batch *batch = NULL, *last = NULL;
    for (uint64_t i = 0; i < self.count; i++) {
        ck_assert_ok(presto_ring_reader_next(reader, &batch, &err), &err);
        check_batch(batch, i);
        presto_ring_batch_release(last);
        last = batch;
    }
    for (int i = 0; i < 2; i++)
        ck_assert_status(presto_ring_reader_next(reader, &batch, &err), PRESTO_END, &err);
    presto_ring_reader_free(reader);
    check_batch(last, self.count - 1); /* outlives the reader */
    presto_ring_batch_release(last);
    presto_ring_batch_release(NULL);
    presto_ring_reader_free(NULL);
    end_writer(&self, PRESTO_OK);
}
END_TEST

START_TEST(batches_may_be_released_in_any_order) {
    enum { HELD = 10 };
    presto_rng rng;
    presto_rng_key key = {.seed = presto_check_seed()};
    presto_rng_init(&rng, &key);
    writing self = whole;
    self.count = presto_check_rounds(2000);
    presto_ring_reader *reader = start_pair(&self, (HELD + 2) * BATCH_BYTES);
    presto_batch *held[HELD] = {NULL};
    uint64_t numbers[HELD] = {0};
    for (uint64_t i = 0; i < self.count; i++) {
        size_t at = (size_t)presto_rng_below(&rng, HELD);
        if (held[at] != NULL)
            check_batch(held[at], numbers[at]); /* nobody wrote into it meanwhile */
        presto_ring_batch_release(held[at]);
        ck_assert_ok(presto_ring_reader_next(reader, &held[at], &err), &err);
        numbers[at] = i;
    }
    presto_ring_reader_free(reader);
    for (size_t i = 0; i < HELD; i++)
        presto_ring_batch_release(held[i]);
    end_writer(&self, PRESTO_OK);
}
END_TEST

/* Threads that take and release. */
typedef struct sharing {
    pthread_mutex_t lock;
    presto_ring_reader *reader;
    uint64_t rows;
} sharing;

static void *take_some(void *user) {
    sharing *self = user;
    for (;;) {
        presto_batch *batch = NULL;
        presto_error own;
        pthread_mutex_lock(&self->lock);
        presto_status status = presto_ring_reader_next(self->reader, &batch, &own);
        self->rows += status == PRESTO_OK ? batch->rows : 0;
        pthread_mutex_unlock(&self->lock);
        if (status == PRESTO_END)
            return NULL;
        ck_assert(status == PRESTO_OK || status == PRESTO_ERR_BUSY);
        presto_ring_batch_release(batch);
    }
}

START_TEST(threads_may_share_a_reader_in_turn_and_release_at_once) {
    writing self = whole;
    sharing shared = {.lock = PTHREAD_MUTEX_INITIALIZER, .reader = start_pair(&self, 300 << 10)};
    pthread_t threads[4];
    for (size_t i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, take_some, &shared), 0);
    for (size_t i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    uint64_t rows = 0;
    for (uint64_t i = 0; i < self.count; i++)
        rows += 1 + i * 7 % MOST_ROWS;
    ck_assert_uint_eq(shared.rows, rows);
    presto_ring_reader_free(shared.reader);
    end_writer(&self, PRESTO_OK);
}
END_TEST

START_TEST(a_reader_that_holds_too_much_is_told_and_may_go_on) {
    writing self = whole;
    presto_ring_reader *reader = start_pair(&self, 2 * BATCH_BYTES);
    presto_batch *held[PRESTO__RING_MOST_LIVE + 1];
    size_t count = 0;
    presto_status status;
    while ((status = presto_ring_reader_next(reader, &held[count], &err)) == PRESTO_OK)
        ck_assert_uint_le(++count, PRESTO__RING_MOST_LIVE);
    ck_assert_status(status, PRESTO_ERR_BUSY, &err);
    ck_assert_uint_ge(count, 2);
    for (size_t i = 0; i < count; i++) {
        check_batch(held[i], i);
        presto_ring_batch_release(held[i]);
    }
    ck_assert_ok(presto_ring_reader_next(reader, &held[0], &err), &err);
    check_batch(held[0], count);
    presto_ring_batch_release(held[0]);
    presto_ring_reader_free(reader);
    end_writer(&self, PRESTO_END);
}
END_TEST

START_TEST(a_batch_larger_than_the_ring_is_refused) {
    writing self = whole;
    presto_ring_reader *reader = start_pair(&self, 4096);
    presto_batch *batch = NULL;
    presto_status status;
    while ((status = presto_ring_reader_next(reader, &batch, &err)) == PRESTO_OK)
        presto_ring_batch_release(batch);
    ck_assert_status(status, PRESTO_ERR_TRUNCATED, &err);
    presto_ring_reader_free(reader);
    end_writer(&self, PRESTO_ERR_LIMIT);
}
END_TEST

START_TEST(a_failure_of_the_writer_is_told_with_its_place) {
    writing self = whole;
    self.fails_at = 3;
    presto_ring_reader *reader = start_pair(&self, 1 << 20);
    presto_batch *batch;
    for (int i = 0; i < 3; i++) {
        ck_assert_ok(presto_ring_reader_next(reader, &batch, &err), &err);
        presto_ring_batch_release(batch);
    }
    for (int i = 0; i < 2; i++) {
        ck_assert_status(presto_ring_reader_next(reader, &batch, &err), PRESTO_ERR_CORRUPT, &err);
        ck_assert_str_eq(err.file, "some.tfrecord");
        ck_assert_str_eq(err.message, "this is damaged");
        ck_assert_uint_eq(err.offset, 4711);
        ck_assert_uint_eq(err.record, 12);
    }
    presto_ring_reader_free(reader);
    pthread_join(self.thread, NULL);
}
END_TEST

START_TEST(an_end_that_was_not_told_is_an_error) {
    writing self = whole;
    self.ends = false;
    self.count = 5;
    presto_ring_reader *reader = start_pair(&self, 1 << 20);
    presto_batch *batch;
    for (uint64_t i = 0; i < self.count; i++) {
        ck_assert_ok(presto_ring_reader_next(reader, &batch, &err), &err);
        presto_ring_batch_release(batch);
    }
    for (int i = 0; i < 2; i++)
        ck_assert_status(presto_ring_reader_next(reader, &batch, &err), PRESTO_ERR_TRUNCATED, &err);
    presto_ring_reader_free(reader);
    end_writer(&self, PRESTO_OK);
}
END_TEST

START_TEST(an_empty_stream_has_an_end) {
    writing self = whole;
    self.count = 0;
    presto_ring_reader *reader = start_pair(&self, 1 << 20);
    presto_batch *batch;
    ck_assert_status(presto_ring_reader_next(reader, &batch, &err), PRESTO_END, &err);
    presto_ring_reader_free(reader);
    end_writer(&self, PRESTO_OK);
}
END_TEST

/* ---- waiting ---- */

static bool stop_at_third(void *user) {
    return ++*(int *)user >= 3;
}

START_TEST(waits_can_be_ended) {
    int ends[2], asked = 0;
    presto_ring_options options;
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    presto_ring_options_defaults(&options);
    options.fd = ends[0];
    options.should_stop = stop_at_third;
    options.should_stop_user = &asked;
    presto_ring_writer *writer;
    made_batch *made = malloc(sizeof *made);
    make_batch(made, 0);
    ck_assert_ok(presto_ring_writer_open(&options, &writer, &err), &err);
    ck_assert_status(presto_ring_writer_put(writer, &made->batch, &err), PRESTO_ERR_STOPPED, &err);
    presto_ring_writer_free(writer);
    asked = 0;
    options.fd = ends[1];
    presto_ring_reader *reader;
    ck_assert_status(presto_ring_reader_open(&options, &reader, &err), PRESTO_ERR_BUSY, &err);
    options.fd = -1;
    options.path = "/nowhere/at/all";
    options.wait_ns = UINT64_C(60000000000);
    ck_assert_status(presto_ring_reader_open(&options, &reader, &err), PRESTO_ERR_STOPPED, &err);
    free(made);
}
END_TEST

/* ---- the path ---- */

static char *dir;
static char path[200];

static void make_dir(void) {
    dir = presto_check_temp_dir();
    snprintf(path, sizeof path, "%s/ring", dir);
}

static void remove_dir(void) {
    presto_check_remove_tree(dir);
    free(dir);
}

static presto_status open_reader(uint64_t wait_s, presto_ring_reader **reader_out) {
    presto_ring_options options;
    presto_ring_options_defaults(&options);
    options.path = path;
    options.wait_ns = wait_s * UINT64_C(1000000000);
    return presto_ring_reader_open(&options, reader_out, &err);
}

static presto_status open_writer(presto_ring_writer **writer_out) {
    presto_ring_options options;
    presto_ring_options_defaults(&options);
    options.path = path;
    return presto_ring_writer_open(&options, writer_out, &err);
}

static struct sockaddr_un address_of_path(void) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    ck_assert_uint_lt(strlen(path), sizeof address.sun_path);
    memcpy(address.sun_path, path, strlen(path) + 1);
    return address;
}

static int connect_bare(void) {
    struct sockaddr_un address = address_of_path();
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(connect(fd, (const struct sockaddr *)(const void *)&address, sizeof address),
                     0);
    return fd;
}

START_TEST(a_path_is_there_until_its_reader_has_come) {
    make_dir();
    writing self = whole;
    presto_ring_reader *reader, *other;
    struct stat is;
    ck_assert_status(open_reader(0, &reader), PRESTO_ERR_NOT_FOUND, &err);
    presto_ring_options_defaults(&self.options);
    self.options.path = path;
    start_writer(&self);
    ck_assert_ok(open_reader(60, &reader), &err);
    presto_batch *batch;
    ck_assert_ok(presto_ring_reader_next(reader, &batch, &err), &err);
    ck_assert_int_ne(lstat(path, &is), 0); /* removed, so that nobody else comes */
    ck_assert_status(open_reader(0, &other), PRESTO_ERR_NOT_FOUND, &err);
    presto_ring_batch_release(batch);
    presto_ring_reader_free(reader);
    pthread_join(self.thread, NULL);
    ck_assert(self.status == PRESTO_END || self.status == PRESTO_OK);
    remove_dir();
}
END_TEST

START_TEST(only_this_user_may_connect_and_a_writer_that_ends_leaves_nothing) {
    make_dir();
    presto_ring_writer *writer, *other;
    struct stat is;
    ck_assert_ok(open_writer(&writer), &err);
    ck_assert_int_eq(lstat(path, &is), 0);
    ck_assert_uint_eq(is.st_mode & 0777, 0600);
    ck_assert_status(open_writer(&other), PRESTO_ERR_BUSY, &err);
    ck_assert_int_eq(lstat(path, &is), 0);
    presto_ring_writer_free(writer);
    ck_assert_int_ne(lstat(path, &is), 0);
    remove_dir();
}
END_TEST

START_TEST(the_socket_of_a_killed_writer_is_replaced_and_other_files_are_not) {
    make_dir();
    presto_ring_writer *writer;
    struct sockaddr_un address = address_of_path();
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(fd, (const struct sockaddr *)(const void *)&address, sizeof address), 0);
    close(fd); /* the file stays */
    ck_assert_ok(open_writer(&writer), &err);
    presto_ring_writer_free(writer);
    presto_check_write_file(path, presto_span_of_text("mine"));
    ck_assert_status(open_writer(&writer), PRESTO_ERR_ARGUMENT, &err);
    ck_assert_int_eq(access(path, F_OK), 0);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(symlink("elsewhere", path), 0);
    ck_assert_status(open_writer(&writer), PRESTO_ERR_ARGUMENT, &err);
    memset(path, 'x', sizeof path - 1);
    ck_assert_status(open_writer(&writer), PRESTO_ERR_ARGUMENT, &err);
    remove_dir();
}
END_TEST

START_TEST(who_is_no_reader_is_sent_away_and_the_writer_waits_on) {
    make_dir();
    writing self = whole;
    presto_ring_options_defaults(&self.options);
    self.options.path = path;
    start_writer(&self);
    presto_ring_reader *reader;
    while (access(path, F_OK) != 0)
        continue;
    char reply[8];
    int gone = connect_bare();
    close(gone);
    int odd = connect_bare();
    ck_assert_int_eq(send(odd, "GET / HTTP/1.1\r\n\r\n", 18, MSG_NOSIGNAL), 18);
    ck_assert_int_le(recv(odd, reply, sizeof reply, 0), 0);
    close(odd);
    ck_assert_ok(open_reader(60, &reader), &err);
    presto_ring_reader_free(reader);
    pthread_join(self.thread, NULL);
    ck_assert(self.status == PRESTO_END || self.status == PRESTO_OK);
    remove_dir();
}
END_TEST

/* ---- ends that do not keep to the protocol ---- */

typedef struct hostile {
    int fd;
    int memory;
    presto_ring_options options;
} hostile;

static void send_message(int fd, uint32_t kind, const void *body, size_t bytes) {
    presto__ring_head head = {kind, (uint32_t)bytes};
    struct iovec parts[] = {{&head, sizeof head}, {(void *)(uintptr_t)body, bytes}};
    presto__ring_link link = {.fd = fd, .memory = -1};
    (void)presto__ring_send(&link, parts, 2, -1, NULL);
}

static hostile start_hostile(void) {
    hostile self;
    int ends[2];
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    presto_ring_options_defaults(&self.options);
    self.options.fd = ends[1];
    self.fd = ends[0];
    self.memory = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    ck_assert_int_eq(ftruncate(self.memory, 4096), 0);
    return self;
}

static void say_hello(const hostile *self, uint64_t ring_bytes, int memory) {
    presto__ring_head head = {PRESTO__RING_HELLO, sizeof(presto__ring_hello)};
    presto__ring_hello hello = {.version = PRESTO__RING_VERSION, .ring_bytes = ring_bytes};
    memcpy(hello.magic, PRESTO__RING_MAGIC, sizeof hello.magic);
    struct iovec parts[] = {{&head, sizeof head}, {&hello, sizeof hello}};
    presto__ring_link link = {.fd = self->fd, .memory = -1};
    ck_assert_ok(presto__ring_send(&link, parts, 2, memory, &err), &err);
}

static void end_hostile(const hostile *self) {
    close(self->fd);
    close(self->memory);
}

START_TEST(memory_that_could_shrink_or_is_too_small_is_refused) {
    for (int which = 0; which < 4; which++) {
        hostile self = start_hostile();
        presto_ring_reader *reader;
        if (which > 0)
            ck_assert_int_eq(fcntl(self.memory, F_ADD_SEALS, F_SEAL_SHRINK), 0);
        const uint64_t sizes[] = {4096, 4097, UINT64_MAX, 0};
        say_hello(&self, sizes[which], self.memory);
        ck_assert_status(presto_ring_reader_open(&self.options, &reader, &err), PRESTO_ERR_CORRUPT,
                         &err);
        end_hostile(&self);
    }
    hostile self = start_hostile();
    presto_ring_reader *reader;
    say_hello(&self, 4096, -1);
    ck_assert_status(presto_ring_reader_open(&self.options, &reader, &err), PRESTO_ERR_CORRUPT,
                     &err);
    end_hostile(&self);
}
END_TEST

static presto_ring_reader *open_hostile(const hostile *self) {
    presto_ring_reader *reader;
    ck_assert_int_eq(fcntl(self->memory, F_ADD_SEALS, F_SEAL_SHRINK), 0);
    say_hello(self, 4096, self->memory);
    ck_assert_ok(presto_ring_reader_open(&self->options, &reader, &err), &err);
    return reader;
}

START_TEST(messages_that_cannot_be_are_refused) {
    const presto__ring_end end = {1, 1};
    const presto__ring_batch outside = {.place = 4096, .bytes = 64, .rows = 1};
    const presto__ring_batch many = {.bytes = 4096, .rows = UINT64_MAX};
    const presto__ring_batch features = {.bytes = 4096, .feature_count = UINT64_MAX};
    const struct {
        uint32_t kind;
        const void *body;
        size_t bytes;
    } messages[] = {{PRESTO__RING_END, &end, sizeof end},
                    {PRESTO__RING_END, &end, 3},
                    {PRESTO__RING_FULL, &end, 3},
                    {PRESTO__RING_HELLO, &end, sizeof end},
                    {PRESTO__RING_ERROR, &end, sizeof end},
                    {77, "", 0},
                    {PRESTO__RING_BATCH, "", 0},
                    {PRESTO__RING_BATCH, &outside, sizeof outside},
                    {PRESTO__RING_BATCH, &many, sizeof many},
                    {PRESTO__RING_BATCH, &features, sizeof features}};
    for (size_t i = 0; i < sizeof messages / sizeof *messages; i++) {
        hostile self = start_hostile();
        presto_ring_reader *reader = open_hostile(&self);
        presto_batch *batch;
        send_message(self.fd, messages[i].kind, messages[i].body, messages[i].bytes);
        for (int twice = 0; twice < 2; twice++)
            ck_assert_status(presto_ring_reader_next(reader, &batch, &err), PRESTO_ERR_CORRUPT,
                             &err);
        presto_ring_reader_free(reader);
        end_hostile(&self);
    }
    hostile self = start_hostile();
    presto_ring_reader *reader = open_hostile(&self);
    presto_batch *batch;
    const presto__ring_head head = {PRESTO__RING_BATCH, UINT32_MAX};
    ck_assert_int_eq(send(self.fd, &head, sizeof head, MSG_NOSIGNAL), sizeof head);
    ck_assert_status(presto_ring_reader_next(reader, &batch, &err), PRESTO_ERR_CORRUPT, &err);
    presto_ring_reader_free(reader);
    end_hostile(&self);
}
END_TEST

START_TEST(a_reader_that_gives_back_what_it_has_not_is_refused) {
    writing self = whole;
    int ends[2];
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    presto_ring_options_defaults(&self.options);
    self.options.fd = ends[0];
    start_writer(&self);
    const presto__ring_hello hello = {.magic = {'P', 'R', 'E', 'S', 'T', 'O', 'R', 'G'}};
    const uint64_t id = 1 << 20;
    send_message(ends[1], PRESTO__RING_HELLO, &hello, sizeof hello);
    send_message(ends[1], PRESTO__RING_RELEASE, &id, sizeof id);
    end_writer(&self, PRESTO_ERR_CORRUPT);
    close(ends[1]);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {batches_of_every_layout_come_in_order_and_then_the_end,
                                  batches_may_be_released_in_any_order,
                                  threads_may_share_a_reader_in_turn_and_release_at_once,
                                  a_reader_that_holds_too_much_is_told_and_may_go_on,
                                  a_batch_larger_than_the_ring_is_refused,
                                  a_failure_of_the_writer_is_told_with_its_place,
                                  an_end_that_was_not_told_is_an_error,
                                  an_empty_stream_has_an_end,
                                  waits_can_be_ended,
                                  a_path_is_there_until_its_reader_has_come,
                                  only_this_user_may_connect_and_a_writer_that_ends_leaves_nothing,
                                  the_socket_of_a_killed_writer_is_replaced_and_other_files_are_not,
                                  who_is_no_reader_is_sent_away_and_the_writer_waits_on,
                                  memory_that_could_shrink_or_is_too_small_is_refused,
                                  messages_that_cannot_be_are_refused,
                                  a_reader_that_gives_back_what_it_has_not_is_refused};
    return presto_check_main("ring", tests, sizeof tests / sizeof tests[0], 120);
}
