/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room packet: what workers fill and consumers get: slabs, columns, batches, packets and their
 * pool. May see: base, records, steps, rooms source and cache. Must not know: workers, order.
 *
 * Words: a packet is a stretch of consecutive positions of the sequence, and travels through the
 * ring; it holds whole batches. A part is the piece of a packet that one worker fills. A packet of
 * several small batches has one part; a packet of one large batch has several. How rows become
 * features is in columns_internal.h.
 *
 * One mutex, the pool's, guards free packets and the budget, and tickets and ring in room engine.
 * It is taken a few times per part, never per sample, and never held during I/O or callbacks.
 */
#ifndef PRESTO_LOADER_PACKET_INTERNAL_H
#define PRESTO_LOADER_PACKET_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include <presto/dataset.h>

#include "../../records/records_internal.h"
#include "../cache/cache_internal.h"

/* ---- schema.c: the features of samples, without their values ---- */

/** Name, encoding and spec of one row's features, sorted by name. Names are owned. Zero-initialise.
 */
typedef struct presto__schema {
    presto_feature_spec *features;
    size_t count;
    size_t capacity;
} presto__schema;

void presto__schema_done(presto__schema *schema);
/** Widen `schema` so that `sample` fits: dims that differ become -1. */
presto_status presto__schema_merge_sample(presto__schema *schema, const presto_sample *sample,
                                          presto_error *err);
presto_status presto__schema_merge(presto__schema *schema, const presto__schema *other,
                                   presto_error *err);
/** *at_out: the place of the name, or where it belongs. */
bool presto__schema_find(const presto__schema *schema, presto_span name, size_t *at_out);
bool presto__schema_equal(const presto__schema *a, const presto__schema *b);

/* ---- packets ---- */

typedef struct presto__pool presto__pool;
typedef struct presto__packet presto__packet;

/** Memory of a packet: hands out pieces of one chunk, as large as the packet needed the last
 * time. */
typedef struct presto__slab {
    struct presto__slab_chunk *chunks; /* newest first */
    size_t total_bytes;                /* held */
    size_t used_bytes;                 /* handed out since the last reset */
} presto__slab;

/** What is known of features before there is any row. Of a loader; read-only once it is open. */
typedef struct presto__rules {
    struct presto__rule *list; /* by name */
    size_t count;
    bool has_pads, has_declared; /* a rule has */
    const char *main_feature;    /* the source's; NULL: none */
} presto__rules;

/** Declared shapes (of the main feature: what comes out of `plan`, if not NULL) and the pads. */
presto_status presto__rules_make(presto__rules *rules_out, const presto_source *source,
                                 const presto_plan *plan, const presto_loader_options *options,
                                 presto_error *err);
void presto__rules_done(presto__rules *rules);

/** The rows that one part has put into one batch, without gaps. */
typedef struct presto__fill {
    struct presto__column *columns; /* by name */
    size_t count, capacity;
    uint32_t *guesses; /* which column the features of the last sample went to */
    size_t guess_count;
    size_t rows;
    struct presto__lane *lanes; /* by feature number of a layout; NULL: none yet */
    uint32_t *tail_values;      /* which values of the record being put go to tails */
    size_t lane_capacity;
    size_t dense_count;       /* columns with an array, as of then */
    bool dense_is_late;       /* they have `rows` rows, but have not counted all of them */
    uint64_t dense_bytes;     /* of a row of these */
    uint64_t lane_generation; /* the layout's; 0: columns have changed since the lanes were made */
    struct presto__put *puts; /* of records of one order: single floats, then single int64s */
    uint32_t *other_values;   /* which values are neither */
    size_t put_floats, put_int64s, put_others;
    uint64_t put_order;  /* of the layout's records; 0: none */
    uint64_t last_order; /* of the record before; the puts are made for the second one in a row */
    bool is_undone;      /* begun for a sample that was left out; the next sample may use it */
} presto__fill;

typedef struct presto__packet_batch {
    presto_batch shown;     /* must be first: what the caller sees */
    presto__packet *packet; /* that it is part of; alive while the caller holds the batch */
    size_t first;           /* position in the packet */
    size_t positions;       /* rows if nothing is skipped */
    presto__fill fill;      /* of a packet with one part */
    bool is_view;           /* its features are made, without columns */
    /* Several parts: the arrays that all of them write into, as columns; guarded by the pool's lock
     * until seen laid out. */
    bool laid_out;
    struct presto__column *arrays;
    size_t array_count;
    presto_batch_feature *features;
    size_t feature_count;
} presto__packet_batch;

/** A sample that failed: it is left out, or the packet ends with it. */
typedef struct presto__failed_sample {
    size_t position; /* in the packet */
    uint64_t number; /* of the sample */
    presto_error error;
} presto__failed_sample;

/** The share of a packet that one worker fills. */
typedef struct presto__packet_part {
    size_t first, count;           /* positions in the packet */
    presto__failed_sample *failed; /* rising; the last one is the failure if has_failed */
    size_t failed_count, failed_capacity;
    bool has_failed;
    size_t *gaps; /* rising: positions in the packet that are left out, failed or dropped */
    size_t gap_count, gap_capacity;
    presto_arena memory;               /* memory of its fills, without arrays and tails */
    struct presto__column_tail *tails; /* two a slot: values, ends of strings */
    size_t slot_count;                 /* in use */
    size_t slot_capacity;
    const presto__fill *model; /* the last one with a row; NULL: none. The next is mostly like it */
    struct presto__view *views; /* what the last view was like, by position in the sample */
    size_t view_count;
    presto__fill fill;        /* of a packet with several parts: all its rows */
    uint64_t delivered_bytes; /* BATCHES and COUNT: of the rows */
    size_t home;              /* who filled it last, or is filling it; 0: nobody */
    bool is_taken;            /* guarded by the pool's lock */
} presto__packet_part;

struct presto__packet {
    presto__pool *pool;         /* alive: each packet that is not free holds a reference */
    presto__packet *next;       /* in the free list or the list of finished ones */
    atomic_size_t refs;         /* batches handed out, and the loader */
    size_t home;                /* who started it last, 0: nobody; guarded by the lock */
    const presto__rules *rules; /* the loader's, while it is filled */

    uint64_t number;
    uint64_t epoch;
    uint64_t first; /* position in the epoch */
    size_t count;
    size_t end;        /* positions from here on do not exist: the source ends before; mostly
                        * count. Guarded by the pool's lock until all parts are done */
    uint64_t *numbers; /* the sample number of each position; compacted at the end */
    size_t number_capacity;

    presto__packet_part *parts;
    size_t part_count, part_capacity;
    size_t first_untaken;       /* part; guarded by the pool's lock */
    size_t last_part;           /* parts from here on are not needed; likewise */
    atomic_size_t parts_left;   /* not yet finished */
    atomic_size_t failing_part; /* the first part known to fail: later ones need not run */

    presto__packet_batch *batches;
    size_t batch_rows; /* of each but the last one */
    size_t batch_count, batch_capacity;
    presto__slab slab;
    bool is_cold; /* packets go round through more memory than caches hold: rows are copied past
                   * them */

    /* PRESTO_OUTPUT_RECORDS */
    presto_buffer frames;
    uint32_t *frame_bytes; /* of each position; of each row at the end */
    uint32_t *raw_bytes;   /* serialized samples before the codec, likewise */
    size_t frame_capacity;

    /* views */
    presto__blocks blocks;
    presto_arena arena;

    /* Set when finished. */
    bool is_finished;
    const presto_error *failure; /* in a part's `failed` or own_error; NULL: none */
    size_t failed_at;            /* its position; count if none */
    presto_error own_error;
    size_t accounted_bytes; /* what the pool's budget knows of this packet */
};

/** Lock, free packets and budget; lives until the last batch is released. */
struct presto__pool {
    pthread_mutex_t lock;
    pthread_cond_t room;  /* workers: a ticket may be had */
    pthread_cond_t ready; /* consumer: a packet may be had */
    pthread_cond_t given; /* workers within a sample: memory was given back */
    /* All below guarded by lock. */
    size_t refs; /* loader, and packets that are not free */
    bool is_closed;
    presto__packet *free;
    size_t free_count;
    size_t limit_bytes;         /* of all */
    size_t packets_limit_bytes; /* of packets alone; not above limit_bytes */
    size_t held_bytes;          /* packets, free or not, and workers */
    size_t peak_bytes;
    size_t packets_ready;
    size_t workers_waiting;
    size_t working_bytes;   /* workers alone */
    size_t over;            /* home of the worker beyond its allowance; 0: none is */
    size_t growers_waiting; /* for memory */
    size_t resume_at;       /* workers continue when so few packets are ready */
    presto__cache *cache;   /* batches may show its entries: a reference; NULL: none */
    size_t packet_bytes;    /* the largest packet so far, as an estimate for the next */
};

presto_status presto__pool_new(size_t limit_bytes, presto__pool **pool_out, presto_error *err);
/** With the lock held: is there room for so many bytes of packets more, within both limits and so
 * many bytes beyond them? */
bool presto__pool_has_room_locked(const presto__pool *pool, size_t bytes, size_t overrun_bytes);
/** The loader lets go: free packets are freed, the pool goes with the last batch. */
void presto__pool_close(presto__pool *pool);
/**
 * With the lock held: the next packet taken is one that `home` has filled before, if one is free.
 * What another processor has written must be fetched from its cache, line by line, before it can be
 * overwritten here.
 */
void presto__pool_prefer_locked(presto__pool *pool, size_t home);
/**
 * With the lock held: take the next part of a packet, if possible one that `home` has filled
 * before, for the same reason.
 */
presto__packet_part *presto__packet_take_part_locked(presto__packet *packet, size_t home,
                                                     bool in_order);
/** With the lock held: a packet with refs 1. NULL: no memory. */
presto__packet *presto__pool_take_locked(presto__pool *pool);
/** With the lock held: change the number of bytes held. */
void presto__pool_account_locked(presto__pool *pool, size_t before, size_t after);
/** Give up `count` references; the last one puts the packet back. */
void presto__packet_release(presto__packet *packet, size_t count);
size_t presto__packet_memory(const presto__packet *packet);

/** Shape a packet: positions, parts, batches of `rows` rows. */
typedef struct presto__packet_shape {
    uint64_t number, epoch, first;
    size_t count;
    size_t parts;
    size_t batch_rows;
    const presto__rules *rules;
} presto__packet_shape;
presto_status presto__packet_setup(presto__packet *packet, const presto__packet_shape *shape,
                                   presto_error *err);
/** Empty its batches, before work begins. Apart from setup, because it takes long for many
 * batches. */
void presto__packet_clear(presto__packet *packet);

/** The sample at `position` failed: it is left out, or, with `is_failure`, the part ends with it.
 * Without memory to note it, the part fails there. */
void presto__part_fail(presto__packet_part *part, size_t position, uint64_t number,
                       const presto_error *error, bool is_failure);
/** A step does not want the sample at `position`. Without memory to note it, the part fails there.
 */
void presto__part_drop(presto__packet_part *part, size_t position, uint64_t number);
/** How many of the positions [first, end) are left out. */
size_t presto__packet_gaps(const presto__packet *packet, size_t first, size_t end);

/** All parts are done, and its samples end at `end`. */
void presto__packet_shorten(presto__packet *packet);
/** All parts are done: close the gaps of samples left out, count the rows, make the features. */
void presto__packet_finish(presto__packet *packet, const presto_source *source,
                           presto_output_kind output);
/** A finished packet turns out to fail at `position`: later rows are not handed out. */
void presto__packet_cut(presto__packet *packet, size_t position, const presto_error *failure,
                        presto_output_kind output);

/* ---- putting rows into a packet ---- */

/** Where the worker is: the row that comes next. */
typedef struct presto__place {
    presto__packet_batch *batch;
    presto__packet_part *part;
    size_t position; /* in the packet */
} presto__place;

static inline presto__fill *presto__place_fill(const presto__place *place) {
    return place->batch->packet->part_count > 1 ? &place->part->fill : &place->batch->fill;
}

static inline bool presto__fill_is_begun(const presto__fill *fill) {
    return fill->columns != NULL && !fill->is_undone;
}

/** Several parts in one batch, pool's lock held: make the arrays for rows like `sample`. */
presto_status presto__batch_layout(presto__packet_batch *batch, const presto_sample *sample,
                                   presto_error *err);
/** The columns of a fill that has none yet, for rows like `sample`. */
presto_status presto__fill_begin(const presto__place *place, const presto_sample *sample,
                                 presto_error *err);
/** Where a step may write the value of a feature before the sample is put; NULL: nowhere. `at`
 * is the feature's position in the sample. */
void *presto__fill_slot(const presto__place *place, const presto_feature *feature, size_t at);
/**
 * Put a sample into the next row; a value that is there already is not copied. PRESTO_ERR_RAGGED: a
 * feature has another dtype than in the rows before; PRESTO_ERR_LIMIT: it is longer than its padded
 * length, or has too many dimensions. Then no row was put.
 */
presto_status presto__fill_put(const presto__place *place, const presto_sample *sample,
                               presto_error *err);
/** Put raw records into the next rows, one each, if the fill has begun with such a row. False: put
 * them one by one. */
bool presto__fill_put_records(const presto__place *place, const presto_record *records,
                              size_t count);
/**
 * Put the values of a record into the next row without a sample. PRESTO_END: they are not like the
 * rows before; nothing was put, use presto__fill_put, which says why if they cannot be.
 */
presto_status presto__fill_put_values(const presto__place *place,
                                      const presto__example_values *values, presto_error *err);
typedef enum presto__view_mode {
    PRESTO__VIEW_UNALIGNED, /* values stay where they are */
    PRESTO__VIEW_ALIGNED,   /* those that are not aligned are copied */
    PRESTO__VIEW_COPY       /* all are copied */
} presto__view_mode;
/** Make a batch of one row straight from the sample, without columns. */
presto_status presto__fill_view(const presto__place *place, const presto_sample *sample,
                                presto__view_mode mode, presto_error *err);
/** Are its tensors aligned like those of a batch, or so small that the view may copy them? */
bool presto__batch_may_view(const presto_sample *sample);
/** Bytes of the values of all features. */
uint64_t presto__sample_bytes(const presto_sample *sample);

#endif
