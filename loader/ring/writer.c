/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* memfd_create, F_ADD_SEALS, accept4 */

#include "ring_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../base/clock_internal.h"
#include "../../base/options_internal.h"

#define DEFAULT_RING_BYTES ((size_t)256 << 20)
/* For a reader's hello: whoever says nothing is none. */
#define HELLO_NS UINT64_C(5000000000)
/* For a reader, if all there is to tell is a failure. */
#define FAREWELL_NS UINT64_C(1000000000)

struct presto__ring_writer {
    presto_ring_options options;
    char *path;
    int listener;       /* -1: none (any more) */
    struct stat socket; /* the file at `path` */
    presto__ring_link link;
    bool is_met; /* both have said hello */
    int memory_fd;
    uint8_t *memory;
    presto__ring_parts parts;
    uint64_t next_id, released, samples, bytes;
    presto_buffer message;
};

void presto_ring_options_init(presto_ring_options *options, size_t struct_bytes) {
    const presto_ring_options defaults = {.fd = -1, .ring_bytes = DEFAULT_RING_BYTES};
    presto__options_give(options, struct_bytes, &defaults, sizeof defaults);
}

/* ---- open ---- */

/* Memory that nobody can make smaller, so that reading it cannot end a process. */
static presto_status make_memory(presto__ring_writer *self, presto_error *err) {
    size_t bytes = self->parts.ring_bytes;
    self->memory_fd = memfd_create("presto-ring", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (self->memory_fd < 0)
        return presto_fail_errno(err, errno, NULL, "cannot make shared memory");
    if (ftruncate(self->memory_fd, (off_t)bytes) != 0 ||
        fcntl(self->memory_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0)
        return presto_fail_errno(err, errno, NULL, "cannot make %zu bytes of shared memory", bytes);
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, self->memory_fd, 0);
    if (memory == MAP_FAILED)
        return presto_fail_errno(err, errno, NULL, "cannot map %zu bytes of shared memory", bytes);
    self->memory = memory;
    /* From here on others can map it for reading only; kernels before 5.1 cannot promise that. */
    (void)fcntl(self->memory_fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE);
    return PRESTO_OK;
}

static presto_status make_socket(presto__ring_writer *self, presto_error *err) {
    const presto_ring_options *options = &self->options;
    if ((options->path == NULL) == (options->fd < 0))
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "a ring has either a path or a descriptor");
    self->link.should_stop = options->should_stop;
    self->link.should_stop_user = options->should_stop_user;
    if (options->path == NULL)
        return presto__ring_check_peer(self->link.fd, err);
    char *path = strdup(options->path);
    if (path == NULL)
        return presto_fail_memory(err, strlen(options->path) + 1);
    presto_status status = presto__ring_listen(path, &self->listener, err);
    if (status >= 0 && lstat(path, &self->socket) == 0)
        self->path = path; /* only what is known to be this writer's is removed */
    else
        free(path);
    return status;
}

presto_status presto__ring_writer_open(const presto_ring_options *options,
                                       presto__ring_writer **writer_out, presto_error *err) {
    presto__ring_writer *self = calloc(1, sizeof *self);
    if (self == NULL)
        return presto_fail_memory(err, sizeof *self);
    self->listener = self->memory_fd = -1;
    self->link = (presto__ring_link){.fd = -1, .memory = -1};
    presto_ring_options_defaults(&self->options);
    presto_status status = presto__options_take(&self->options, sizeof self->options, options, err);
    self->link.fd = self->options.fd;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    self->parts.ring_bytes = (self->options.ring_bytes + page - 1) / page * page;
    if (status >= 0 && self->parts.ring_bytes < page)
        status = presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET, "a ring of %zu bytes",
                             self->options.ring_bytes);
    if (status >= 0)
        status = make_memory(self, err);
    if (status >= 0)
        status = make_socket(self, err);
    if (status >= 0)
        *writer_out = self;
    else
        presto__ring_writer_free(self);
    return status;
}

/* Nobody else can come from now on. */
static void remove_socket(presto__ring_writer *self) {
    struct stat is;
    if (self->path != NULL && lstat(self->path, &is) == 0 && is.st_dev == self->socket.st_dev &&
        is.st_ino == self->socket.st_ino)
        (void)unlink(self->path);
    free(self->path);
    self->path = NULL;
    if (self->listener >= 0)
        (void)close(self->listener);
    self->listener = -1;
}

void presto__ring_writer_free(presto__ring_writer *self) {
    if (self == NULL)
        return;
    remove_socket(self);
    presto__ring_link_done(&self->link);
    if (self->memory != NULL)
        (void)munmap(self->memory, self->parts.ring_bytes);
    if (self->memory_fd >= 0)
        (void)close(self->memory_fd);
    presto_buffer_done(&self->message);
    free(self);
}

uint64_t presto__ring_writer_bytes(const presto__ring_writer *self) {
    return self->bytes;
}

/* ---- the reader comes ---- */

static presto_status send_hello(presto__ring_writer *self, int memory_fd, presto_error *err) {
    presto__ring_head head = {PRESTO__RING_HELLO, sizeof(presto__ring_hello)};
    presto__ring_hello hello = {.version = PRESTO__RING_VERSION,
                                .ring_bytes = self->parts.ring_bytes};
    memcpy(hello.magic, PRESTO__RING_MAGIC, sizeof hello.magic);
    struct iovec parts[] = {{&head, sizeof head}, {&hello, sizeof hello}};
    return presto__ring_send(&self->link, parts, 2, memory_fd, err);
}

/*
 * Whoever is at the other end says hello. A reader of another version is told this one's, so that
 * it can say why it is refused. PRESTO_END: it has hung up.
 */
static presto_status take_hello(presto__ring_writer *self, uint64_t within_ns, presto_error *err) {
    presto__ring_head head = {0};
    presto_span body = {0};
    presto__ring_hello hello = {0};
    PRESTO_TRY(presto__ring_check_peer(self->link.fd, err));
    uint64_t until_ns = self->link.until_ns;
    self->link.until_ns = presto__clock_ns() + within_ns;
    presto_status status = presto__ring_take(&self->link, true, &head, &body, err);
    self->link.until_ns = until_ns;
    if (status == PRESTO_ERR_BUSY)
        return presto_fail(err, PRESTO_ERR_BUSY, PRESTO_NO_OFFSET,
                           "no reader said hello within %ju s",
                           (uintmax_t)(within_ns / UINT64_C(1000000000)));
    if (status != PRESTO_OK && status != PRESTO_ERR_CORRUPT)
        return status;
    if (status == PRESTO_OK && head.kind == PRESTO__RING_HELLO && body.bytes == sizeof hello)
        memcpy(&hello, body.data, sizeof hello);
    if (memcmp(hello.magic, PRESTO__RING_MAGIC, sizeof hello.magic) != 0)
        return presto_fail(err, PRESTO_ERR_IO, PRESTO_NO_OFFSET,
                           "the other side is no reader of a ring");
    if (hello.version == PRESTO__RING_VERSION)
        return PRESTO_OK;
    (void)send_hello(self, -1, NULL);
    return presto_fail(err, PRESTO_ERR_UNSUPPORTED, PRESTO_NO_OFFSET,
                       "the reader's protocol has version %ju, not %d", (uintmax_t)hello.version,
                       PRESTO__RING_VERSION);
}

/* Accept whoever connects next. */
static presto_status accept_one(presto__ring_writer *self, presto_error *err) {
    for (;;) {
        PRESTO_TRY(presto__ring_may_wait(&self->link, err));
        struct pollfd wait = {self->listener, POLLIN, 0};
        if (poll(&wait, 1, 100) < 0 && errno != EINTR)
            return presto_fail_errno(err, errno, self->path, "cannot wait for a reader");
        int fd = accept4(self->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0)
            continue;
        self->link.fd = fd;
        return PRESTO_OK;
    }
}

/* Whatever it says, it is not listened to. */
static void hang_up(presto__ring_writer *self) {
    (void)close(self->link.fd);
    self->link.fd = -1;
    self->link.in.bytes = self->link.taken = 0;
}

/*
 * Wait for a reader. At a path, whoever is none is sent away, and the next one may come; at a given
 * descriptor there is no next one. A hello is answered when the path is gone, so that the reader
 * knows that.
 */
static presto_status meet(presto__ring_writer *self, presto_error *err) {
    presto_status status = PRESTO_OK;
    if (self->is_met)
        return PRESTO_OK;
    do {
        if (self->listener >= 0)
            PRESTO_TRY(accept_one(self, err));
        status = take_hello(self, HELLO_NS, err);
        if (status == PRESTO_ERR_STOPPED || status == PRESTO_ERR_MEMORY)
            return status;
        if (status < 0 || (status == PRESTO_END && self->listener >= 0))
            hang_up(self);
    } while (status != PRESTO_OK && self->listener >= 0);
    if (status != PRESTO_OK)
        return status;
    remove_socket(self);
    self->is_met = true;
    return send_hello(self, self->memory_fd, err);
}

/* ---- room ---- */

/* Take what the reader has released. */
static presto_status take_releases(presto__ring_writer *self, presto_error *err) {
    for (;;) {
        presto__ring_head head = {0};
        presto_span body = {0};
        uint64_t id;
        presto_status status = presto__ring_take(&self->link, false, &head, &body, err);
        if (status != PRESTO_OK)
            return status == PRESTO_DROP ? PRESTO_OK : status;
        if (head.kind != PRESTO__RING_RELEASE || body.bytes != sizeof id)
            return presto_fail(err, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET,
                               "the reader of the ring sent what is no release of a batch");
        memcpy(&id, body.data, sizeof id);
        if (!presto__ring_release(&self->parts, id))
            return presto_fail(err, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET,
                               "the reader of the ring gave back what it did not have");
        self->released++;
    }
}

static presto_status tell_full(presto__ring_writer *self, uint64_t bytes, presto_error *err) {
    presto__ring_head head = {PRESTO__RING_FULL, sizeof(presto__ring_full)};
    presto__ring_full full = {self->released, bytes};
    struct iovec parts[] = {{&head, sizeof head}, {&full, sizeof full}};
    return presto__ring_send(&self->link, parts, 2, -1, err);
}

/* Wait until the reader says something, or is gone. */
static presto_status wait_for_reader(presto__ring_writer *self, presto_error *err) {
    struct pollfd wait = {self->link.fd, POLLIN, 0};
    PRESTO_TRY(presto__ring_may_wait(&self->link, err));
    if (poll(&wait, 1, 100) < 0 && errno != EINTR)
        return presto_fail_errno(err, errno, NULL, "cannot wait for the reader of the ring");
    return PRESTO_OK;
}

static presto_status find_room(presto__ring_writer *self, uint64_t bytes, uint64_t *place_out,
                               presto_error *err) {
    uint64_t told = UINT64_MAX; /* released when the reader was told */
    if (bytes > self->parts.ring_bytes)
        return presto_fail(err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET,
                           "a batch has %ju bytes, and the ring %ju: make it larger, or batches "
                           "smaller",
                           (uintmax_t)bytes, (uintmax_t)self->parts.ring_bytes);
    for (;;) {
        presto_status status = take_releases(self, err);
        if (status != PRESTO_OK)
            return status;
        if (presto__ring_reserve(&self->parts, self->next_id, bytes, place_out))
            return PRESTO_OK;
        if (told != self->released)
            status = tell_full(self, bytes, err);
        told = self->released;
        if (status == PRESTO_OK)
            status = wait_for_reader(self, err);
        if (status != PRESTO_OK)
            return status;
    }
}

/* ---- a batch ---- */

/* The arrays of a batch one after the other: their places, and what goes there. */
typedef struct layout {
    uint64_t bytes;
    uint8_t *to; /* NULL: they are only counted */
} layout;

/* Returns the place, or that there is nothing. */
static uint64_t put_array(layout *in, const void *data, uint64_t bytes) {
    if (data == NULL)
        return PRESTO__RING_NOTHING;
    uint64_t at = in->bytes;
    if (in->to != NULL && bytes > 0)
        memcpy(in->to + at, data, bytes);
    in->bytes +=
        (bytes + PRESTO__RING_ALIGNMENT - 1) / PRESTO__RING_ALIGNMENT * PRESTO__RING_ALIGNMENT;
    return at;
}

static presto__ring_feature put_feature(layout *in, const presto_batch_feature *feature,
                                        size_t rows) {
    const presto_tensor_spec *spec = &feature->tensor.spec;
    uint64_t strings = feature->row_offsets == NULL ? rows : (uint64_t)feature->row_offsets[rows];
    presto__ring_feature says = {.name_bytes = strlen(feature->name),
                                 .encoding = feature->encoding,
                                 .layout = feature->layout,
                                 .dtype = spec->dtype,
                                 .rank = (uint64_t)spec->rank,
                                 .shape_rank = feature->shape_rank};
    memcpy(says.dims, spec->dims, sizeof says.dims);
    const void *values = feature->tensor.data == NULL ? "" : feature->tensor.data;
    says.values_at = put_array(in, values, presto_tensor_bytes(&feature->tensor));
    says.offsets_at = put_array(in, feature->offsets, (strings + 1) * sizeof(int64_t));
    says.rows_at = put_array(in, feature->row_offsets, (rows + 1) * sizeof(int64_t));
    says.shapes_at = put_array(in, feature->shapes, rows * feature->shape_rank * sizeof(int64_t));
    return says;
}

static uint64_t put_all(layout *in, const presto_batch *batch, presto__ring_feature *says) {
    uint64_t numbers_at =
        put_array(in, batch->sample_numbers, batch->rows * sizeof *batch->sample_numbers);
    for (size_t i = 0; i < batch->feature_count; i++) {
        presto__ring_feature one = put_feature(in, &batch->features[i], batch->rows);
        if (says != NULL)
            says[i] = one;
    }
    return numbers_at;
}

static presto_status reserve_message(presto__ring_writer *self, const presto_batch *batch,
                                     presto_error *err) {
    size_t bytes = batch->feature_count * sizeof(presto__ring_feature);
    for (size_t i = 0; i < batch->feature_count; i++)
        bytes += strlen(batch->features[i].name);
    if (bytes > PRESTO__RING_MOST_MESSAGE_BYTES / 2 ||
        batch->feature_count > PRESTO__RING_MOST_FEATURES)
        return presto_fail(err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET,
                           "a batch of %zu features is more than a ring takes",
                           batch->feature_count);
    self->message.bytes = 0;
    return presto_buffer_reserve(&self->message, bytes, err);
}

static presto_status send_batch(presto__ring_writer *self, const presto_batch *batch,
                                presto__ring_batch *says, presto_error *err) {
    layout in = {.to = self->memory + says->place};
    presto__ring_feature *features = (presto__ring_feature *)(void *)self->message.data;
    says->numbers_at = put_all(&in, batch, features);
    self->message.bytes = batch->feature_count * sizeof *features;
    for (size_t i = 0; i < batch->feature_count; i++)
        PRESTO_TRY(presto_buffer_append(&self->message,
                                        presto_span_of_text(batch->features[i].name), err));
    presto__ring_head head = {PRESTO__RING_BATCH, (uint32_t)(sizeof *says + self->message.bytes)};
    struct iovec parts[] = {
        {&head, sizeof head}, {says, sizeof *says}, {self->message.data, self->message.bytes}};
    return presto__ring_send(&self->link, parts, 3, -1, err);
}

presto_status presto__ring_writer_put(presto__ring_writer *self, const presto_batch *batch,
                                      presto_error *err) {
    layout counted = {0};
    uint64_t place = 0;
    PRESTO_TRY(reserve_message(self, batch, err));
    (void)put_all(&counted, batch, NULL);
    presto_status status = meet(self, err);
    if (status == PRESTO_OK)
        status = find_room(self, counted.bytes, &place, err);
    if (status != PRESTO_OK)
        return status;
    presto__ring_batch says = {.id = self->next_id++,
                               .place = place,
                               .bytes = counted.bytes,
                               .epoch = batch->epoch,
                               .first = batch->first,
                               .rows = batch->rows,
                               .skipped = batch->skipped,
                               .main_feature = batch->main_feature,
                               .feature_count = batch->feature_count};
    status = send_batch(self, batch, &says, err);
    if (status == PRESTO_OK) {
        self->samples += batch->rows;
        self->bytes += counted.bytes;
    }
    return status;
}

/* ---- the end ---- */

presto_status presto__ring_writer_end(presto__ring_writer *self, presto_error *err) {
    presto__ring_head head = {PRESTO__RING_END, sizeof(presto__ring_end)};
    presto_status status = meet(self, err);
    presto__ring_end end = {self->samples, self->next_id};
    struct iovec parts[] = {{&head, sizeof head}, {&end, sizeof end}};
    return status == PRESTO_OK ? presto__ring_send(&self->link, parts, 2, -1, err) : status;
}

void presto__ring_writer_fail(presto__ring_writer *self, const presto_error *why) {
    self->link.should_stop = NULL; /* this is what happens when it says so */
    self->link.until_ns = presto__clock_ns() + (self->listener >= 0 ? 0 : FAREWELL_NS);
    if (!self->is_met && (self->listener >= 0 || take_hello(self, FAREWELL_NS, NULL) != PRESTO_OK ||
                          send_hello(self, self->memory_fd, NULL) != PRESTO_OK))
        return;
    size_t file_bytes = strlen(why->file), message_bytes = strlen(why->message);
    presto__ring_error says = {why->status, why->sys_errno, why->offset,
                               why->record, file_bytes,     message_bytes};
    presto__ring_head head = {PRESTO__RING_ERROR,
                              (uint32_t)(sizeof says + file_bytes + message_bytes)};
    struct iovec parts[] = {{&head, sizeof head},
                            {&says, sizeof says},
                            {(void *)(uintptr_t)why->file, file_bytes},
                            {(void *)(uintptr_t)why->message, message_bytes}};
    (void)presto__ring_send(&self->link, parts, 4, -1, NULL);
}
