/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packets and their pool. A packet goes round: it is free, filled by workers, handed out as
 * batches, and free again when the last batch is released, on any thread. It keeps its memory, so
 * after the first rounds nothing is allocated and no fresh page is touched.
 *
 * The pool lives until the loader is gone and all batches are released.
 */
#define _GNU_SOURCE /* PTHREAD_MUTEX_ADAPTIVE_NP */
#include <stdlib.h>
#include <time.h>

#include "../../base/memory_internal.h"
#include "../../base/thread_internal.h"
#include "columns_internal.h"

#define PART_CHUNK_BYTES 4096
#define PREFER_AMONG 32 /* free packets or parts that are looked at under the lock */

/* ---- packets ---- */

static void part_done(presto__packet_part *part) {
    free(part->failed);
    free(part->gaps);
    presto_arena_done(&part->memory);
    for (size_t i = 0; i < 2 * part->slot_capacity; i++)
        presto__slab_done(&part->tails[i].memory);
    free(part->tails);
}

static void packet_free(presto__packet *packet) {
    for (size_t i = 0; i < packet->part_capacity; i++)
        part_done(&packet->parts[i]);
    free(packet->parts);
    free(packet->batches);
    free(packet->numbers);
    presto__slab_done(&packet->slab);
    presto_buffer_done(&packet->frames);
    free(packet->frame_bytes);
    free(packet->raw_bytes);
    presto__blocks_done(&packet->blocks);
    presto_arena_done(&packet->arena);
    free(packet);
}

size_t presto__packet_memory(const presto__packet *packet) {
    size_t bytes = sizeof *packet + packet->slab.total_bytes + packet->frames.capacity +
                   packet->frame_capacity * 2 * sizeof *packet->frame_bytes +
                   packet->number_capacity * sizeof *packet->numbers +
                   packet->batch_capacity * sizeof *packet->batches + packet->arena.total_bytes +
                   presto__blocks_memory(&packet->blocks);
    for (size_t i = 0; i < packet->part_capacity; i++) {
        const presto__packet_part *part = &packet->parts[i];
        bytes += sizeof *part + part->memory.total_bytes +
                 part->failed_capacity * sizeof *part->failed +
                 part->gap_capacity * sizeof *part->gaps;
        for (size_t j = 0; j < 2 * part->slot_capacity; j++)
            bytes += sizeof *part->tails + part->tails[j].capacity;
    }
    return bytes;
}

static bool note_gap(presto__packet_part *part, size_t position) {
    if (part->gap_count == part->gap_capacity) {
        size_t capacity = part->gap_capacity * 2 + 16;
        size_t *gaps = realloc(part->gaps, capacity * sizeof *gaps);
        if (gaps == NULL)
            return false;
        part->gaps = gaps;
        part->gap_capacity = capacity;
    }
    part->gaps[part->gap_count++] = position;
    return true;
}

static bool reserve_failed(presto__packet_part *part) {
    if (part->failed_count < part->failed_capacity)
        return true;
    size_t capacity = part->failed_capacity * 2;
    presto__failed_sample *grown = realloc(part->failed, capacity * sizeof *grown);
    if (grown == NULL)
        return false;
    part->failed = grown;
    part->failed_capacity = capacity;
    return true;
}

void presto__part_fail(presto__packet_part *part, size_t position, uint64_t number,
                       const presto_error *error, bool is_failure) {
    presto__failed_sample *failed = &part->failed[part->failed_count++];
    failed->position = position;
    failed->number = number;
    failed->error = *error;
    part->has_failed = is_failure;
    if (is_failure)
        return;
    /* Room for the next one is made now: a failure that is not noted would count as a whole
     * sample. */
    if (!note_gap(part, position) || !reserve_failed(part)) {
        (void)presto_fail_memory(&failed->error, sizeof *failed);
        part->has_failed = true;
    }
}

void presto__part_drop(presto__packet_part *part, size_t position, uint64_t number) {
    presto_error error;
    if (note_gap(part, position))
        return;
    (void)presto_fail_memory(&error, sizeof *part->gaps);
    presto__part_fail(part, position, number, &error, true);
}

size_t presto__packet_gaps(const presto__packet *packet, size_t first, size_t end) {
    size_t found = 0;
    for (size_t i = 0; i < packet->part_count; i++)
        for (size_t j = 0; j < packet->parts[i].gap_count; j++)
            found += packet->parts[i].gaps[j] >= first && packet->parts[i].gaps[j] < end;
    return found;
}

static presto_status reserve_parts(presto__packet *packet, size_t count, presto_error *err) {
    if (count <= packet->part_capacity)
        return PRESTO_OK;
    presto__packet_part *parts = realloc(packet->parts, count * sizeof *parts);
    if (parts == NULL)
        return presto_fail_memory(err, count * sizeof *parts);
    memset(parts + packet->part_capacity, 0, (count - packet->part_capacity) * sizeof *parts);
    packet->parts = parts;
    for (; packet->part_capacity < count; packet->part_capacity++) {
        presto__packet_part *part = &parts[packet->part_capacity];
        part->failed = malloc(sizeof *part->failed);
        if (part->failed == NULL)
            return presto_fail_memory(err, sizeof *part->failed);
        presto_arena_init(&part->memory, PART_CHUNK_BYTES);
        part->failed_capacity = 1;
    }
    return PRESTO_OK;
}

static presto_status reserve_batches(presto__packet *packet, size_t count, presto_error *err) {
    if (count <= packet->batch_capacity)
        return PRESTO_OK;
    presto__packet_batch *batches = realloc(packet->batches, count * sizeof *batches);
    if (batches == NULL)
        return presto_fail_memory(err, count * sizeof *batches);
    packet->batches = batches;
    packet->batch_capacity = count;
    return PRESTO_OK;
}

static presto_status reserve_numbers(presto__packet *packet, size_t count, presto_error *err) {
    if (count <= packet->number_capacity)
        return PRESTO_OK;
    uint64_t *numbers = realloc(packet->numbers, count * sizeof *numbers);
    if (numbers == NULL)
        return presto_fail_memory(err, count * sizeof *numbers);
    packet->numbers = numbers;
    packet->number_capacity = count;
    return PRESTO_OK;
}

static void part_setup(presto__packet_part *part, size_t first, size_t end) {
    part->first = first;
    part->count = end - first;
    part->failed_count = 0;
    part->gap_count = 0;
    part->has_failed = false;
    presto_arena_reset(&part->memory);
    for (size_t i = 0; i < 2 * part->slot_count; i++)
        part->tails[i].bytes = 0;
    part->slot_count = 0;
    part->fill = (presto__fill){0};
    part->model = NULL;
    part->views = NULL;
    part->view_count = 0;
    part->delivered_bytes = 0;
    part->is_taken = false;
}

void presto__packet_clear(presto__packet *packet) {
    size_t rows = packet->batch_rows;
    for (size_t i = 0; i < packet->batch_count; i++) {
        presto__packet_batch *batch = &packet->batches[i];
        *batch = (presto__packet_batch){.packet = packet, .first = i * rows};
        size_t left = packet->count - i * rows;
        batch->positions = left < rows ? left : rows;
        batch->shown.epoch = packet->epoch;
        batch->shown.first = packet->first + i * rows;
        batch->shown.main_feature = SIZE_MAX;
    }
    presto__slab_reset(&packet->slab);
    presto_arena_reset(&packet->arena);
    packet->frames.bytes = 0;
    packet->blocks.count = 0;
}

presto_status presto__packet_setup(presto__packet *packet, const presto__packet_shape *shape,
                                   presto_error *err) {
    size_t rows = shape->batch_rows;
    size_t batches = shape->count / rows + (shape->count % rows != 0);
    PRESTO_TRY(reserve_parts(packet, shape->parts, err));
    PRESTO_TRY(reserve_batches(packet, batches, err));
    PRESTO_TRY(reserve_numbers(packet, shape->count, err));
    packet->number = shape->number;
    packet->epoch = shape->epoch;
    packet->first = shape->first;
    packet->count = packet->end = shape->count;
    packet->part_count = packet->last_part = shape->parts;
    packet->first_untaken = 0;
    atomic_store(&packet->parts_left, shape->parts);
    atomic_store(&packet->failing_part, SIZE_MAX);
    for (size_t i = 0; i < shape->parts; i++)
        part_setup(&packet->parts[i], shape->count * i / shape->parts,
                   shape->count * (i + 1) / shape->parts);
    packet->batch_rows = rows;
    packet->rules = shape->rules;
    packet->batch_count = batches;
    packet->is_finished = false;
    packet->failure = NULL;
    packet->failed_at = shape->count;
    return PRESTO_OK;
}

/* ---- pool ---- */

/* The lock is held for less than a microsecond, so a thread spins before it sleeps. */
static bool init_lock(pthread_mutex_t *lock) {
    pthread_mutexattr_t attributes;
    if (pthread_mutexattr_init(&attributes) != 0)
        return false;
    bool is_done = pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ADAPTIVE_NP) == 0 &&
                   pthread_mutex_init(lock, &attributes) == 0;
    pthread_mutexattr_destroy(&attributes);
    return is_done;
}

presto_status presto__pool_new(size_t limit_bytes, presto__pool **pool_out, presto_error *err) {
    presto__pool *pool = calloc(1, sizeof *pool);
    if (pool == NULL)
        return presto_fail_memory(err, sizeof *pool);
    pool->limit_bytes = pool->packets_limit_bytes = limit_bytes;
    pool->refs = 1;
    if (!init_lock(&pool->lock))
        goto no_lock;
    if (pthread_cond_init(&pool->room, NULL) != 0)
        goto no_room;
    if (presto__timed_condition_init(&pool->ready) != 0)
        goto no_ready;
    if (pthread_cond_init(&pool->given, NULL) != 0)
        goto no_given;
    *pool_out = pool;
    return PRESTO_OK;
no_given:
    pthread_cond_destroy(&pool->ready);
no_ready:
    pthread_cond_destroy(&pool->room);
no_room:
    pthread_mutex_destroy(&pool->lock);
no_lock:
    free(pool);
    return presto_fail(err, PRESTO_ERR_MEMORY, PRESTO_NO_OFFSET, "cannot make a lock");
}

static void pool_free(presto__pool *pool) {
    pthread_cond_destroy(&pool->given);
    pthread_cond_destroy(&pool->ready);
    pthread_cond_destroy(&pool->room);
    pthread_mutex_destroy(&pool->lock);
    presto__cache_release(pool->cache);
    free(pool);
}

void presto__pool_account_locked(presto__pool *pool, size_t before, size_t after) {
    pool->held_bytes = pool->held_bytes - before + after;
    if (pool->held_bytes > pool->peak_bytes)
        pool->peak_bytes = pool->held_bytes;
}

void presto__pool_prefer_locked(presto__pool *pool, size_t home) {
    presto__packet **at = &pool->free;
    for (size_t i = 0; i < PREFER_AMONG && *at != NULL && (*at)->home != home; i++)
        at = &(*at)->next;
    presto__packet *found = *at;
    if (found == NULL || found->home != home)
        return;
    *at = found->next;
    found->next = pool->free;
    pool->free = found;
}

presto__packet_part *presto__packet_take_part_locked(presto__packet *packet, size_t home,
                                                     bool in_order) {
    size_t first = packet->first_untaken, left = packet->part_count - first;
    size_t end = first + (left < PREFER_AMONG ? left : PREFER_AMONG);
    size_t at = first;
    while (!in_order && at < end && (packet->parts[at].is_taken || packet->parts[at].home != home))
        at++;
    presto__packet_part *part = &packet->parts[at < end ? at : first];
    part->is_taken = true;
    part->home = home;
    while (packet->first_untaken < packet->part_count &&
           packet->parts[packet->first_untaken].is_taken)
        packet->first_untaken++;
    return part;
}

presto__packet *presto__pool_take_locked(presto__pool *pool) {
    presto__packet *packet = pool->free;
    if (packet != NULL) {
        pool->free = packet->next;
        pool->free_count--;
    } else {
        packet = calloc(1, sizeof *packet);
        if (packet == NULL)
            return NULL;
        packet->pool = pool;
    }
    packet->next = NULL;
    packet->is_cold = pool->held_bytes > PRESTO__IN_CACHE_MOST;
    atomic_store(&packet->refs, 1);
    pool->refs++;
    return packet;
}

/* What its batches use of its memory. */
static size_t packet_used_bytes(const presto__packet *packet) {
    size_t bytes = packet->slab.used_bytes;
    for (size_t i = 0; i < packet->part_count; i++)
        for (size_t j = 0; j < 2 * packet->parts[i].slot_count; j++)
            bytes += packet->parts[i].tails[j].bytes;
    return bytes;
}

static bool fits(size_t held, size_t more, size_t limit, size_t overrun) {
    limit = limit > SIZE_MAX - overrun ? SIZE_MAX : limit + overrun;
    return held <= limit && more <= limit - held;
}

bool presto__pool_has_room_locked(const presto__pool *pool, size_t bytes, size_t overrun_bytes) {
    size_t packets = pool->held_bytes - pool->working_bytes;
    return fits(pool->held_bytes, bytes, pool->limit_bytes, overrun_bytes) &&
           fits(packets, bytes, pool->packets_limit_bytes, overrun_bytes);
}

/* Does it use little of its memory? The last batch of an epoch has fewer samples than the others,
 * and counts as if it were whole. */
static bool is_mostly_empty(const presto__packet *packet) {
    double used = (double)packet_used_bytes(packet);
    if (packet->count > 0 && packet->number_capacity > packet->count)
        used *= (double)packet->number_capacity / (double)packet->count;
    return used < (double)packet->accounted_bytes / 2;
}

/*
 * Will the next packet be as large, and is there no other one? It is made however large it is, and
 * counts with the bytes of the largest so far. So keeping this memory for it takes no more, and
 * spares the system from clearing new pages for each batch that is larger than the limit. A packet
 * that is mostly empty is left over from a larger batch.
 */
static bool is_kept(const presto__pool *pool, const presto__packet *packet) {
    bool is_alone = pool->refs == 2 && pool->free == NULL; /* the loader, and this packet */
    return is_alone && !is_mostly_empty(packet);
}

/* Does it only take room? Another one is free, and to let this one grow to what is expected of the
 * next there is no room. */
static bool is_in_the_way(const presto__pool *pool, const presto__packet *packet) {
    size_t bytes = packet->accounted_bytes, next = pool->packet_bytes;
    return pool->free != NULL && bytes < next - next / 4 &&
           !presto__pool_has_room_locked(pool, next - bytes, 0);
}

void presto__packet_release(presto__packet *packet, size_t count) {
    if (atomic_fetch_sub_explicit(&packet->refs, count, memory_order_acq_rel) != count)
        return;
    presto__pool *pool = packet->pool;
    pthread_mutex_lock(&pool->lock);
    /* Memory over the limit goes back to the system now, unless the next batch takes it. */
    if (pool->is_closed || is_in_the_way(pool, packet) ||
        (!presto__pool_has_room_locked(pool, 0, 0) && !is_kept(pool, packet))) {
        /* It is freed before workers are told, or they would take new memory while it is still
         * there. */
        size_t accounted = packet->accounted_bytes;
        pthread_mutex_unlock(&pool->lock);
        packet_free(packet);
        pthread_mutex_lock(&pool->lock);
        presto__pool_account_locked(pool, accounted, 0);
    } else {
        packet->next = pool->free;
        pool->free = packet;
        pool->free_count++;
    }
    bool is_last = --pool->refs == 0;
    if (pool->workers_waiting > 0 && pool->packets_ready <= pool->resume_at)
        pthread_cond_broadcast(&pool->room);
    pthread_mutex_unlock(&pool->lock);
    if (is_last)
        pool_free(pool);
}

void presto__pool_close(presto__pool *pool) {
    pthread_mutex_lock(&pool->lock);
    pool->is_closed = true;
    presto__packet *packet = pool->free;
    pool->free = NULL;
    pool->free_count = 0;
    bool is_last = --pool->refs == 0;
    pthread_mutex_unlock(&pool->lock);
    while (packet != NULL) {
        presto__packet *next = packet->next;
        packet_free(packet);
        packet = next;
    }
    if (is_last)
        pool_free(pool);
}

void presto_batch_release(presto_batch *batch) {
    if (batch != NULL)
        presto__packet_release(((presto__packet_batch *)(void *)batch)->packet, 1);
}
