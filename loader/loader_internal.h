/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of loader/ share: the source interface, the order of samples, packets and their
 * pool, the loader itself.
 *
 * Words: a packet is a stretch of consecutive positions of the sequence and the unit that travels
 * through the ring; it holds whole batches. A part is the piece of a packet that one worker fills:
 * a packet of several small batches has one part, a packet that is one large batch has several.
 *
 * One mutex, the pool's, guards everything that is taken or given: tickets, ring, free packets,
 * budget. It is taken a few times a part, never per sample, and never held over I/O or callbacks.
 */
#ifndef PRESTO_LOADER_INTERNAL_H
#define PRESTO_LOADER_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include <presto/loader.h>

/* ---- sources ---- */

/** What the blocks read hold: an array of record blocks, reused from fetch to fetch.
 * Zero-initialise. */
typedef struct presto__blocks {
    presto_block *items;
    size_t count; /* in use */
    size_t capacity;
} presto__blocks;

void presto__blocks_done(presto__blocks *blocks);
size_t presto__blocks_memory(const presto__blocks *blocks);
/** Room for `count` blocks in all. */
presto_status presto__blocks_reserve(presto__blocks *blocks, size_t count, presto_error *err);

/** What reading cost, summed by a reader; stages timed on every n-th sample are scaled up. */
typedef struct presto__read_stats {
    uint64_t read_bytes;
    uint64_t read_ns;
    uint64_t decompress_ns;
    uint64_t parse_ns;
} presto__read_stats;

typedef struct presto__reader_options {
    uint64_t max_record_bytes;
    /* What is known of features; with `only`, others need not be in the samples. Borrowed until the
     * reader is freed. */
    const presto_feature_spec *features;
    size_t feature_count;
    bool only;
} presto__reader_options;

/** One thread's reading state; kinds of source embed it as their first member. */
typedef struct presto__reader {
    const presto_source *source;
    presto__read_stats stats;
    uint64_t time_scale; /* 0: do not time this sample; else: count its times so often */
    bool lost_shard;     /* set by the kind: the failure is not this sample's alone */
    bool is_selective;   /* set by the kind: samples have only what was asked for */
    bool aligns;         /* set by the worker: tensors are to be aligned in the blocks read */
    size_t align_at;     /* where in a record the largest tensor starts, as seen so far */
    const presto_arena *grower; /* the worker's, which lives as long: ask it before blocks grow */
} presto__reader;

typedef struct presto__digest presto__digest; /* disk_internal.h */

/** A kind of source. Everything but `source` calls is per thread. */
typedef struct presto__source_ops {
    void (*free)(presto_source *source);
    presto_status (*drop_cache)(presto_source *source, presto_error *err);
    /** As presto_dataset_take_warning; NULL: there are none. */
    bool (*take_warning)(presto_source *source, presto_error *warning_out);
    /** PRESTO_ERR_ARGUMENT if the source cannot be read out of order; NULL: any order is fine. */
    presto_status (*check_random_access)(presto_source *source, presto_error *err);
    presto_status (*reader_new)(presto_source *source, const presto__reader_options *options,
                                presto__reader **reader_out, presto_error *err);
    void (*reader_free)(presto__reader *reader);
    /**
     * Bring the samples `numbers` within reach, in `blocks` behind those that are in use there; all
     * calls below take positions in `numbers`. What is damaged is reported by them, per sample; a
     * failure here is out of memory.
     */
    presto_status (*fetch)(presto__reader *reader, const uint64_t *numbers, size_t count,
                           presto__blocks *blocks, presto_error *err);
    /** Sample i as features. Borrows from `blocks`, `arena` and the source. */
    presto_status (*sample)(presto__reader *reader, size_t i, presto_arena *arena,
                            presto_sample *sample_out, presto_error *err);
    /** Sample i as the serialized Example it is stored as; `stored` as it stands in the file, `raw`
     * without the codec. NULL: not a source of records. */
    presto_status (*record)(presto__reader *reader, size_t i, presto_arena *arena,
                            presto_span *stored_out, presto_span *raw_out, presto_error *err);
    /** Add file and place of sample i to a failure of a later stage (a step, the batch). */
    void (*place)(presto__reader *reader, size_t i, presto_error *err);
    /** As place, for a sample that was not fetched. */
    void (*locate)(const presto_source *source, uint64_t number, presto_error *err);
    /** These will be read before long: start that, without waiting. A hint: nothing can fail. NULL:
     * there is nothing to start. */
    void (*will_read)(presto__reader *reader, const uint64_t *numbers, size_t count);
    /** For the step read-file; NULL: there are no files. user is the reader. */
    presto_read_file_fn read_file;
    /** Does the payload of sample i live in `blocks` (and not in a mapping of the shard)? NULL: no.
     */
    bool (*owned)(const presto__reader *reader, size_t i);
    const presto_codec_spec *(*codec)(const presto_source *source); /* NULL: none */
    uint64_t (*digest)(const presto_source *source);                /* of presto__source_digest */
    /** Add what samples depend on: names, sizes and times of all files, and how they are read;
     * `as_named`: also the paths as the user wrote them. */
    presto_status (*identify)(const presto_source *source, bool as_named, presto__digest *digest,
                              presto_error *err);
} presto__source_ops;

struct presto_source {
    const presto__source_ops *ops;
    uint64_t count;      /* after truncation */
    uint64_t full_count; /* before */
    uint64_t full_bytes; /* on disk, before truncation */
    presto_feature_spec *features;
    size_t feature_count;
    bool declares_all; /* samples have no other features */
    char *main_feature;
    char **label_names;
    size_t label_count;
    char **notes; /* of presto_source_notes */
    size_t note_count;
};

/** Frees what the base struct owns. */
void presto__source_done(presto_source *source);
/** Keep what the user should know about this source: a line of text. */
presto_status presto__source_note(presto_source *source, const char *text, presto_error *err);
/** Declare one more feature. */
presto_status presto__source_declare(presto_source *source, const char *name,
                                     presto_encoding encoding, const presto_tensor_spec *spec,
                                     presto_error *err);
/**
 * Foreign records say neither which feature the steps work on nor whether its bytes are a
 * TensorProto: set both. Before any reader is made.
 */
presto_status presto__source_set_main(presto_source *source, const char *name,
                                      const presto_tensor_spec *spec, presto_error *err);

/** A digest over what the source consists of: names and sizes, not contents. Changes when files
 * come or go. */
uint64_t presto__source_digest(const presto_source *source);

/* ---- label files ---- */

typedef struct presto__label_row {
    char *path;     /* without "./" */
    char *text;     /* the label as written */
    int64_t label;  /* its number */
    float fraction; /* or this, if are_fractions */
    uint64_t line;  /* 1-based, where the row starts */
    bool used;
} presto__label_row;

/** The rows of a label file, sorted by path, and the names if the labels are not numbers. */
typedef struct presto__labels {
    presto__label_row *rows;
    size_t count;
    char **names; /* sorted; NULL if the labels are numbers */
    size_t name_count;
    bool are_fractions; /* numbers, not all of them whole */
} presto__labels;

/** are_classes: number the texts, whatever they are. */
presto_status presto__labels_parse(presto_span csv, const char *file, bool are_classes,
                                   presto__labels *labels_out, presto_error *err);
void presto__labels_done(presto__labels *labels);
presto__label_row *presto__labels_find(presto__labels *labels, const char *path);

/** Sort and make distinct in place, by strcmp; frees the doubles. Returns the new count. */
size_t presto__names_distinct(char **names, size_t count);
/** Position of `name` among sorted names; SIZE_MAX if it is not there. */
size_t presto__names_find(char *const *names, size_t count, const char *name);

/* ---- order ---- */

#define PRESTO__PERMUTATION_ROUNDS 8

/** A keyed permutation of [0, count). A plain value. */
typedef struct presto__permutation {
    uint64_t count;
    unsigned half_bits;
    uint64_t half_mask;
    uint64_t keys[PRESTO__PERMUTATION_ROUNDS];
} presto__permutation;

/** `stream` tells apart permutations of the same seed and epoch. count >= 1. */
void presto__permutation_init(presto__permutation *permutation, uint64_t count, uint64_t seed,
                              uint64_t epoch, uint64_t stream);
uint64_t presto__permutation_at(const presto__permutation *permutation, uint64_t i);
uint64_t presto__permutation_inverse(const presto__permutation *permutation, uint64_t value);

typedef struct presto__order_options {
    uint64_t count; /* samples of the source */
    uint64_t seed;
    presto_shuffle_kind shuffle;
    uint64_t window;
    uint64_t rank, world;
    bool drop_last; /* leave out an incomplete last round of ranks instead of padding it */
} presto__order_options;

/** Which sample stands at which position of which epoch. */
typedef struct presto__order {
    presto__order_options options; /* read-only */
    uint64_t epoch_samples;        /* of this rank; read-only */
    /* The simulated shuffle buffer, for PRESTO_SHUFFLE_BUFFER; guarded by the pool's lock. */
    uint64_t *buffer;
    size_t buffer_count;
    size_t buffer_capacity;
    uint64_t next_in;  /* the next number that enters the buffer */
    uint64_t next_out; /* global position of the next number that leaves it */
    uint64_t epoch;    /* the one being simulated; UINT64_MAX: none yet */
    uint64_t *head;    /* the first numbers of the epoch, for padding */
    size_t head_count;
    presto_rng rng;
} presto__order;

presto_status presto__order_init(presto__order *order, const presto__order_options *options,
                                 presto_error *err);
void presto__order_done(presto__order *order);
/** Must the numbers be asked for in sequence, under the lock? */
bool presto__order_is_sequential(const presto__order *order);
/** Sample numbers of positions [first, first + count) of this rank in `epoch`. Sequential orders:
 * rising positions only. */
void presto__order_numbers(presto__order *order, uint64_t epoch, uint64_t first, size_t count,
                           uint64_t *numbers_out);

/* ---- several ranges at once ---- */

#define PRESTO__MOST_OPEN 4

/** Positions [first, end) of an epoch. */
typedef struct presto__range {
    uint64_t first, end;
} presto__range;

/**
 * Goes through ranges so that up to `most_open` are under way: a stretch of each of these in turn;
 * when one is used up, the next in the list takes its place. A plain value: a function of the list,
 * most_open and the stretches asked for.
 */
typedef struct presto__ranges {
    const presto__range *list; /* borrowed; NULL: there are none, not even an empty list */
    size_t count;
    size_t next; /* in the list: not begun */
    size_t most_open;
    presto__range open[PRESTO__MOST_OPEN]; /* what is left of those under way */
    size_t turn;
    uint64_t passed; /* positions so far */
} presto__ranges;

/** most_open: 1 to PRESTO__MOST_OPEN. */
void presto__ranges_init(presto__ranges *ranges, const presto__range *list, size_t count,
                         size_t most_open);
/** The next stretch, of 1 to `most` positions of one range; false if all are used up. */
bool presto__ranges_next(presto__ranges *ranges, size_t most, uint64_t *first_out,
                         size_t *count_out);

/* ---- schemas: what features look like ---- */

/** Name, encoding and spec of one row's features, sorted by name. Names are owned. Zero-initialise.
 */
typedef struct presto__schema {
    presto_feature_spec *features;
    size_t count;
    size_t capacity;
} presto__schema;

void presto__schema_done(presto__schema *schema);
void presto__schema_clear(presto__schema *schema);
/** Widen `schema` so that `sample` fits: dims that differ become -1. */
presto_status presto__schema_merge_sample(presto__schema *schema, const presto_sample *sample,
                                          presto_error *err);
presto_status presto__schema_merge(presto__schema *schema, const presto__schema *other,
                                   presto_error *err);
bool presto__schema_equal(const presto__schema *a, const presto__schema *b);
/* ---- cache ---- */

typedef struct presto__cache presto__cache;
typedef struct presto__cached presto__cached; /* one sample */
typedef struct presto__disk presto__disk;     /* the disk cache: disk_internal.h */
typedef struct presto__disk_worker presto__disk_worker;

/** PRESTO_ERR_ARGUMENT if the limit does not even hold the table of `count` samples. */
presto_status presto__cache_new(uint64_t count, size_t limit_bytes, presto__cache **cache_out,
                                presto_error *err);
void presto__cache_free(presto__cache *cache);
/** NULL if the sample is not there. Valid as long as the cache. Any thread. */
const presto__cached *presto__cache_get(const presto__cache *cache, uint64_t number);
/** Keep a copy, unless the cache is full. Any thread. */
void presto__cache_put(presto__cache *cache, const presto_sample *sample);
/** The entry as a sample whose values borrow from the cache and whose features are `arena`'s. */
presto_status presto__cached_sample(const presto__cached *entry, uint64_t number,
                                    presto_arena *arena, presto_sample *sample_out,
                                    presto_error *err);
/** Memory held. */
size_t presto__cache_bytes(const presto__cache *cache);

/* ---- packets ---- */

typedef struct presto__pool presto__pool;
typedef struct presto__packet presto__packet;
typedef struct presto__worker presto__worker;

/** Memory of a packet: a bump allocator whose chunk is as large as the packet's last life needed.
 */
typedef struct presto__slab_chunk presto__slab_chunk;
typedef struct presto__slab {
    presto__slab_chunk *chunks; /* newest first */
    size_t total_bytes;         /* held */
    size_t used_bytes;          /* handed out since the last reset */
} presto__slab;

/** 64-byte aligned; `hint` is how much will be asked for in all from now on, `bytes` included. */
void *presto__slab_alloc(presto__slab *slab, size_t bytes, size_t hint);
void presto__slab_reset(presto__slab *slab);
void presto__slab_done(presto__slab *slab);

/** Bytes that grow at their end and start at a multiple of 64; `data` moves when they grow. Keeps
 * its memory from life to life. Zero-initialise. */
typedef struct presto__tail {
    presto__slab memory; /* one chunk */
    uint8_t *data;
    size_t bytes;
    size_t capacity;
} presto__tail;

presto_status presto__tail_reserve(presto__tail *tail, size_t more, presto_error *err);

/** What is settled of a feature before there is any row. */
typedef struct presto__rule {
    char *name;     /* owned */
    bool is_ragged; /* its declared shape has unknown dims */
    bool is_padded;
    double pad_value;
    uint64_t pad_length; /* 0: the longest row of the batch */
} presto__rule;

/** The rules of a loader: read-only once it is open. */
typedef struct presto__rules {
    presto__rule *list; /* by name */
    size_t count;
    bool has_pads;
    const char *main_feature; /* the source's; NULL: none */
} presto__rules;

/** Which features are wanted. `features` are owned, by name. */
typedef struct presto__selection {
    presto_feature_spec *features;
    size_t count;
    bool is_all;
} presto__selection;

presto_status presto__selection_make(presto__selection *selection_out, const presto_source *source,
                                     const presto_loader_options *options, presto_error *err);
void presto__selection_done(presto__selection *selection);
bool presto__selection_has(const presto__selection *selection, presto_span name);
/** Leave out of the sample what is not selected. */
void presto__selection_apply(const presto__selection *selection, presto_sample *sample);

/** Declared shapes (of the main feature: what comes out of `plan`, if not NULL) and the pads. */
presto_status presto__rules_make(presto__rules *rules_out, const presto_source *source,
                                 const presto_plan *plan, const presto_loader_options *options,
                                 presto_error *err);
void presto__rules_done(presto__rules *rules);
/** NULL if there is none for this name. */
const presto__rule *presto__rules_find(const presto__rules *rules, presto_span name);

/**
 * One feature of the rows of a fill. Rows of one shape stand in the batch's array. Others, and all
 * strings, stand back to back in a tail of the part.
 */
typedef struct presto__column {
    const char *name;
    size_t name_bytes;
    const presto__rule *rule; /* NULL: none */
    presto_encoding encoding; /* as `row`: of the first row that has the feature */
    presto_tensor_spec row;
    size_t row_bytes; /* numeric: of such a row */
    size_t first_at;  /* position of that row in the packet */
    size_t rows;      /* so far */
    bool is_bytes;    /* strings */
    bool is_dense;    /* in the batch's array, each row `row_bytes` */
    bool is_view;     /* strings: `array` and `items` are known and in no tail */
    bool varies;      /* numeric: rows differ in shape or lack it; strings: not one in each row */
    uint8_t *array;   /* of the first row; in a tail, known once all rows are there */
    int64_t *items;   /* strings: where each ends in the bytes, from item 1 on; likewise */
    size_t slot;      /* tails 2 * slot (values) and 2 * slot + 1 (items); SIZE_MAX: none */
    size_t start, item_start; /* in these tails, in bytes */
    int64_t *ends;   /* not dense: where each row ends, in values or strings, from row 1 on */
    int64_t *shapes; /* PRESTO_MAX_RANK dims a row, -1 behind its rank; NULL: all ranks below 2 */
} presto__column;

/** The rows that one part has put into one batch, without gaps. */
typedef struct presto__fill {
    presto__column *columns; /* by name */
    size_t count, capacity;
    uint32_t *guesses; /* which column the features of the last sample went to */
    size_t guess_count;
    size_t rows;
} presto__fill;

typedef struct presto__batch {
    presto_batch shown;     /* first: what the caller sees */
    presto__packet *packet; /* that it is part of; alive while the caller holds the batch */
    size_t first;           /* position in the packet */
    size_t positions;       /* rows if nothing is skipped */
    presto__fill fill;      /* of a packet with one part */
    /* Several parts: the arrays that all of them write into, as columns; guarded by the pool's lock
     * until seen laid out. */
    bool laid_out;
    presto__column *arrays;
    size_t array_count;
    presto_batch_feature *features;
    size_t feature_count;
} presto__batch;

/** A sample left out, or the failure. */
typedef struct presto__fault {
    size_t position; /* in the packet */
    uint64_t number; /* of the sample */
    presto_error error;
} presto__fault;

/** What one worker does of a packet. */
typedef struct presto__part {
    size_t first, count;   /* positions in the packet */
    presto__fault *faults; /* rising; the last one is the failure if has_failed */
    size_t fault_count, fault_capacity;
    bool has_failed;
    presto_arena memory; /* what its fills are made of, but for arrays and tails */
    presto__tail *tails; /* two a slot: values, ends of strings */
    size_t slot_count;   /* in use */
    size_t slot_capacity;
    presto__fill fill;          /* of a packet with several parts: all its rows */
    uint64_t delivered_bytes;   /* BATCHES and COUNT: of the rows */
    const presto__worker *home; /* who filled it in the packet's last life, or does now */
    bool is_taken;              /* guarded by the pool's lock */
} presto__part;

struct presto__packet {
    presto__pool *pool;         /* alive: each packet that is not free holds a reference */
    presto__packet *next;       /* in the free list or the list of finished ones */
    atomic_size_t refs;         /* batches out plus the loader */
    const presto__worker *home; /* who started it last; guarded by the lock */
    const presto__rules *rules; /* the loader's, while it is filled */

    uint64_t number;
    uint64_t epoch;
    uint64_t first; /* position in the epoch */
    size_t count;
    uint64_t *numbers; /* sample number a position; compacted at the end */
    size_t number_capacity;

    presto__part *parts;
    size_t part_count, part_capacity;
    size_t first_untaken;       /* part; guarded by the pool's lock */
    atomic_size_t parts_left;   /* not yet finished */
    atomic_size_t failing_part; /* the first part known to fail: later ones need not run */

    presto__batch *batches;
    size_t batch_rows; /* of each but the last one */
    size_t batch_count, batch_capacity;
    presto__slab slab;

    /* PRESTO_OUTPUT_RECORDS */
    presto_buffer frames;
    uint32_t *frame_bytes; /* a position; rows in the end */
    uint32_t *raw_bytes;   /* serialized samples before the codec, likewise */
    size_t frame_capacity;

    /* views */
    presto__blocks blocks;
    presto_arena arena;

    /* Set when finished. */
    bool is_finished;
    const presto_error *failure; /* in a part's faults or own_error; NULL: none */
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
    size_t limit_bytes;
    size_t held_bytes; /* packets, free or not, and workers */
    size_t peak_bytes;
    size_t packets_ready;
    size_t workers_waiting;
    size_t working_bytes;       /* workers alone */
    const presto__worker *over; /* has more than may be had; NULL: nobody has */
    size_t growers_waiting;     /* for memory */
    size_t resume_at;           /* workers go on when so few packets are ready */
    presto__cache *cache;       /* NULL: none; set by open, freed with the pool */
    size_t packet_bytes;        /* largest packet so far: what the next one is expected to need */
};

presto_status presto__pool_new(size_t limit_bytes, presto__pool **pool_out, presto_error *err);
/** The loader lets go: free packets are freed, the pool goes with the last batch. */
void presto__pool_close(presto__pool *pool);
/**
 * With the lock held: the packet taken next is one that `home` has filled before, if one is free.
 * What another processor has written last has to be fetched from its cache, line by line, before it
 * can be written here.
 */
void presto__pool_prefer_locked(presto__pool *pool, const presto__worker *home);
/**
 * With the lock held: the next part of a packet that has parts to take, where possible one that
 * `home` has filled before, for the same reason.
 */
presto__part *presto__packet_take_part_locked(presto__packet *packet, const presto__worker *home,
                                              bool in_order);
/** With the lock held: a packet with refs 1. NULL: no memory. */
presto__packet *presto__pool_take_locked(presto__pool *pool);
/** With the lock held: change what is held. */
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
/** Empty its batches, before anybody works on it: apart from setup, because it takes long where
 * they are many. */
void presto__packet_clear(presto__packet *packet);

/** Note that the sample at `position` failed; without memory to note it, the part fails there. */
void presto__part_fault(presto__part *part, size_t position, uint64_t number,
                        const presto_error *error, bool is_failure);

/** Where the worker is: the row that comes next. */
typedef struct presto__place {
    presto__batch *batch;
    presto__part *part;
    size_t position; /* in the packet */
} presto__place;

/** Several parts in one batch, with the pool's lock held: make the arrays for rows like `sample`.
 */
presto_status presto__batch_layout(presto__batch *batch, const presto_sample *sample,
                                   presto_error *err);
/** The columns of a fill that has none yet, for rows like `sample`. */
presto_status presto__fill_begin(const presto__place *place, const presto_sample *sample,
                                 presto_error *err);
/** Where the value of a feature may be written before its sample is put; NULL: nowhere. `at` is its
 * position in the sample. */
void *presto__fill_slot(const presto__place *place, const presto_feature *feature, size_t at);
/**
 * Put a sample into the next row; a value that stands there already is left alone.
 * PRESTO_ERR_RAGGED: a feature of another dtype than in the rows before; PRESTO_ERR_LIMIT: it is
 * longer than what it is to be padded to, or of too many dimensions. Then no row was put.
 */
presto_status presto__fill_put(const presto__place *place, const presto_sample *sample,
                               presto_error *err);
/** A batch of one row whose features are views of the sample's; `aligned`: what is not aligned is
 * copied. */
presto_status presto__fill_view(const presto__place *place, const presto_sample *sample,
                                bool aligned, presto_error *err);
/** Are its tensors aligned as those of a batch, or so small that the view may copy them? */
bool presto__batch_may_view(const presto_sample *sample);
/** Bytes of the values of all features. */
uint64_t presto__sample_bytes(const presto_sample *sample);
/** The failure of a sample whose feature `column` is no `dtype` there. */
presto_status presto__fail_dtype(const presto__column *column, presto_dtype dtype,
                                 presto_error *err);

/** All rows of the batch are there: make its features out of what the parts have put. Where a
 * failure ends the batch early, `shown.rows` says so. */
presto_status presto__batch_assemble(presto__batch *batch, presto_error *err);
/** The first row whose feature has another dtype than before in the batch: its position, or
 * SIZE_MAX; *column_out and *dtype_out say what it should have been. */
size_t presto__batch_conflict(const presto__batch *batch, const presto__column **column_out,
                              presto_dtype *dtype_out);
/** Make a dense array of a feature that a rule pads. */
presto_status presto__batch_pad(presto__batch *batch, const presto__rule *rule,
                                presto_batch_feature *feature, presto_error *err);

/** All parts are done: close the gaps that samples left out have left, fix the row counts, make the
 * features. */
void presto__packet_finish(presto__packet *packet, const presto_source *source,
                           presto_output_kind output);
/** A finished packet fails at `position` after all: rows from there on are not handed out. */
void presto__packet_cut(presto__packet *packet, size_t position, const presto_error *failure,
                        presto_output_kind output);

static inline presto__fill *presto__place_fill(const presto__place *place) {
    return place->batch->packet->part_count > 1 ? &place->part->fill : &place->batch->fill;
}

/** Is it a value that batches carry? (A feature with no kind set is not.) */
static inline bool presto__feature_has_value(const presto_feature *feature) {
    return feature->encoding != PRESTO_ENCODE_NONE;
}

/* ---- the number of workers ---- */

/** Finds how many of `most` workers are worth it. A plain value. */
typedef struct presto__tuner {
    unsigned most;   /* 0: it does nothing, all work */
    unsigned active; /* so many may work now, 1 to most */
    int trial;       /* `active` is one more, or one fewer, than what is known to be good */
    bool settling;   /* the window that runs says nothing about `active` yet */
    bool up_failed, down_failed;
    unsigned resting, rest; /* windows to wait, and how many the next time */
    double base_rate;
    uint64_t window_ns; /* when the window began; 0: not yet */
    uint64_t window_bytes;
    unsigned window_packets;
} presto__tuner;

void presto__tuner_init(presto__tuner *tuner, unsigned most);
/** A window has ended: choose what the next one runs with. */
void presto__tuner_step(presto__tuner *tuner, double rate);
/** So much was handed out. Are there more workers to wake? */
bool presto__tuner_add(presto__tuner *tuner, uint64_t bytes, uint64_t now_ns);
/** The number that is best as far as is known; `active` may be on trial. */
unsigned presto__tuner_chosen(const presto__tuner *tuner);

/* ---- loader ---- */

/** A worker's account, added to the loader's under the lock once a part. */
typedef struct presto__account {
    uint64_t read_bytes, read_ns, decompress_ns, parse_ns;
    uint64_t steps_ns, encode_ns, batch_ns;
    uint64_t cache_ns, cached_samples, missed_samples;
    uint64_t told_samples; /* to storage, ahead */
} presto__account;

struct presto__worker {
    /* Neighbours share no line. The loader joins its workers before it goes. */
    _Alignas(PRESTO_APART_BYTES) presto_loader *loader;
    pthread_t thread;
    bool is_started;
    presto_arena arena;
    presto__blocks blocks;
    presto__reader *reader;
    presto_plan_worker *cache_worker; /* of the steps before the cache */
    presto_plan_worker *plan_worker;
    const presto__cached **hits; /* of the numbers being run; NULL entries: fetched. The pool keeps
                                    its cache until the last batch is released */
    uint64_t *missing;           /* those to fetch */
    const presto__cached *hit;   /* the sample being run, if index is SIZE_MAX */
    presto__disk_worker *disk;   /* NULL: no disk cache */
    presto_codec *codec;         /* records output */
    presto_buffer raw;
    presto__schema schema; /* records output: all samples so far */
    presto__account account;
    size_t held_bytes;             /* as the budget knows it */
    size_t free_bytes;             /* that it may still take without asking, until the part ends */
    bool is_over;                  /* pool->over is this worker */
    presto_step_stats *step_stats; /* guarded by the pool's lock: as of the last part */

    /* The sample being run: its packet is in the ring, which the loader frees after the join. */
    presto__packet *packet;
    presto__part *part;
    presto__batch *batch;
    size_t position; /* in the packet */
    size_t index;    /* in the numbers fetched last; SIZE_MAX: from the cache */
    presto_sample *sample;
    size_t main;         /* its main feature; SIZE_MAX: none */
    bool began_here;     /* it began its fill, which must be undone if it fails */
    uint64_t time_scale; /* 0: this sample is not timed; else its times count so often */

    bool wakes_consumer; /* once it has let go of the lock */
    unsigned slow_parts; /* in a row: their reads took as long as storage does */
};

/** The limits of blocks, worked out once from options and source. */
typedef struct presto__blocking {
    size_t fetch_samples;  /* read at a time */
    size_t packet_samples; /* positions a full packet; a multiple of batch_rows */
    size_t parts;          /* of a full packet */
    size_t batch_rows;
} presto__blocking;

/** How far ahead of the workers storage is told what to read; see read_ahead.c. */
typedef struct presto__read_ahead {
    uint64_t most_samples; /* 0: never */
    _Atomic uint64_t samples;
    _Atomic uint64_t told; /* all before this position has been told, or read */
    presto__ranges ranges; /* where telling has come to, in their order; guarded by the lock. Its
                              list is the loader's range_list */
} presto__read_ahead;

struct presto_loader {
    /* Set by open, then read-only. */
    /* Borrowed until free has joined the workers; kept alive by whoever opened the loader: */
    presto_source *source;
    /* What the loader owns of these, freed last: */
    void *owned;
    void (*free_owned)(void *owned);
    const presto_plan *cache_plan; /* steps before the cache; NULL: none */
    const presto_plan *plan;       /* steps behind it, or all; NULL: none */
    presto_loader_options options; /* and the codec's dictionary, which workers' codecs borrow */
    presto__blocking blocking;
    size_t worker_bytes; /* what a worker is expected to hold */
    bool starts_alone;   /* how large packets are is not known before the first one is there */
    bool use_views;      /* batches are views of what was read, if possible */
    presto__selection selection; /* of what is parsed */
    presto__selection shown;     /* of what batches have */
    presto__rules rules;
    bool aligns_views;       /* only those that are aligned */
    bool pass_through;       /* records output: no steps, serialized samples are not parsed */
    bool same_codec;         /* pass_through and the stored bytes are what is wanted */
    bool compresses;         /* records output with a codec other than none */
    size_t cache_step_count; /* of them, before the cache */
    size_t step_count;       /* in all */
    uint64_t epoch_samples;  /* positions an epoch */
    uint64_t opened_ns;
    presto__worker *workers;
    size_t worker_count;
    size_t capacity;
    presto__pool *pool;
    presto__disk *disk;       /* NULL: no disk cache */
    atomic_bool is_abandoned; /* results are no longer wanted */
    presto__read_ahead read_ahead;
    presto__range *range_list; /* owned; what all ranges below and in read_ahead go through */

    /* Guarded by the pool's lock. */
    presto__packet **slots; /* packet m lives in slots[m % capacity] until it is handed out */
    presto__order order;
    uint64_t next_packet; /* the next to start, and its place: */
    uint64_t next_epoch, next_offset;
    presto__ranges ranges; /* of one epoch: they say where the next packet is */
    uint64_t epochs_left;
    uint64_t samples_left;   /* until the limit; UINT64_MAX: none */
    uint64_t end_packet;     /* no packet from this one on is started; UINT64_MAX until known */
    presto__packet *filling; /* has parts to take */
    size_t active_parts;
    bool is_stopped;
    bool knows_packet_bytes;                /* pool->packet_bytes is measured, not guessed */
    bool consumer_inside;                   /* waits for a packet, or is about to */
    bool consumer_asleep;                   /* it has found nothing and has not come back */
    bool consumer_waiting;                  /* and nobody has set about waking it */
    bool consumer_naps;                     /* and looks again by itself before long */
    presto__packet *done_first, *done_last; /* completion order: finished packets */
    uint64_t next_out;                      /* strict order: the next to hand out */
    uint64_t packets_out;
    presto__packet *unstarted; /* could not be set up */
    presto_error start_error;  /* why; delivered after all that was started */
    bool has_start_error;
    bool lacks_schema; /* there was no memory to take over what a worker has seen */
    presto__tuner tuner;
    pthread_cond_t spare; /* workers beyond tuner.active wait here; set up if tuner.most > 0 */
    presto__account account;
    uint64_t worker_wait_ns;
    presto__schema schema;
    presto_loader_stats counts; /* samples, skipped, batches, bytes, consumer times */

    /* The consumer's alone. */
    presto__packet *current;
    size_t current_batch;
    uint64_t state_epoch, state_next; /* behind the batch handed out last */
    uint64_t current_epoch;
    uint64_t last_exit_ns;
    presto_status final_status; /* PRESTO_OK until the end or a failure was reported */
    presto_error final_error;
    uint64_t failed_at;    /* position of the sample that the stream failed at; UINT64_MAX: none */
    uint64_t seen_samples; /* positions consumed */
    uint64_t skipped_samples;
};

/**
 * As presto_loader_open, but only for the positions of `ranges`, in the order of presto__ranges:
 * packets, and so batches, lie within one range. Without shuffle, ranks, first_sample and
 * limit_samples, one epoch. The list is copied.
 */
presto_status presto__loader_open_ranges(presto_source *source, const presto_plan *plan,
                                         const presto_loader_options *options,
                                         const presto__ranges *ranges, presto_loader **loader_out,
                                         presto_error *err);
/** From now on the loader owns `owned`, which is freed at its end. */
void presto__loader_own(presto_loader *loader, void *owned, void (*free_owned)(void *owned));
presto_status presto__worker_init(presto__worker *worker, presto_loader *loader, presto_error *err);
void presto__worker_done(presto__worker *worker);

/* ---- what workers hold: allowance.c ---- */

/** A presto_arena_grow_fn; `worker` is one. Waits for memory; false once the loader is being freed.
 */
bool presto__worker_may_grow(void *worker, size_t bytes);
/** All samples fetched are done: what was more than may be had is given back. */
void presto__worker_give_back(presto__worker *worker);
/** With the pool's lock held: what the worker holds now, at the end of a part. */
void presto__worker_settle_locked(presto__worker *worker, size_t held_bytes);

size_t presto__worker_memory(const presto__worker *worker);
/** The order is known. */
void presto__read_ahead_init(presto__read_ahead *ahead, const presto_loader *loader);
/** The part is about to be read: tell what comes after it. */
void presto__read_ahead_before(presto__worker *worker, const presto__packet *packet,
                               const presto__part *part);
/** It has been: see how long that took. */
void presto__read_ahead_after(presto__worker *worker, const presto__part *part);

/** Run one part: everything but the bookkeeping. */
void presto__worker_run(presto__worker *worker, presto__packet *packet, presto__part *part);

/* ---- tickets: with the pool's lock held ---- */

/** A worker's thread; takes the lock itself. `argument` is the presto__worker. */
void *presto__worker_main(void *argument);
/** Wait for a part to run and run it, letting go of the lock meanwhile; false: there is none left.
 */
bool presto__worker_run_next(presto__worker *worker);
/** The consumer's thread, without the lock: has it been asked to stop, or does it ask now? */
bool presto__loader_stops(presto_loader *loader);
/** The packet to hand out next; NULL: it is not finished. */
presto__packet *presto__loader_ready_packet(const presto_loader *loader);
/** Has all been handed out that there is? */
bool presto__loader_has_ended(const presto_loader *loader);

/** Widen `schema` by the features of all samples run so far (records output with steps or from raw
 * sources). PRESTO_ERR_MEMORY, now and later, if what is known of them is not all. */
presto_status presto__loader_schema_into(presto_loader *loader, presto__schema *schema,
                                         presto_error *err);

#endif
