/* SPDX-License-Identifier: Apache-2.0 */
/* Inside room engine: the loader's workers, the ring of their packets, the consumer's side. */
#ifndef PRESTO_LOADER_WORKERS_INTERNAL_H
#define PRESTO_LOADER_WORKERS_INTERNAL_H

#include <jansson.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <presto/loader.h>

#include "../../base/memory_internal.h"
#include "../../steps/pipelines_internal.h"
#include "../../storage/play_internal.h"
#include "../../storage/storage_internal.h"
#include "engine_internal.h"

/* ---- sample_notes.c: what steps tell of samples, and is no error ---- */

typedef struct presto__sample_note {
    char kind[PRESTO_NOTE_KIND_BYTES];
    uint64_t samples;
    uint64_t number; /* the lowest of theirs */
} presto__sample_note;

/** Bounded: an input may hold any number of texts to tell. Workers write, any thread reads. */
typedef struct presto__sample_notes {
    pthread_mutex_t lock; /* guards all below */
    presto__sample_note notes[PRESTO_LOADER_NOTES];
    size_t count;
    presto__sample_note further; /* those that found no room, together */
} presto__sample_notes;

void presto__sample_notes_init(presto__sample_notes *notes);
void presto__sample_notes_done(presto__sample_notes *notes);
/** Step `step` tells `text` of sample `number`. */
void presto__sample_notes_add(presto__sample_notes *notes, const char *step, const char *text,
                              uint64_t number);
/** The i-th note, in the order of the samples that are their examples; false: there are fewer. */
bool presto__sample_notes_get(presto__sample_notes *notes, size_t i, presto__sample_note *note_out);

/* ---- tuner.c: how many workers are worth it ---- */

/** What all workers have done since the loader was opened. */
typedef struct presto__tuner_seen {
    uint64_t now_ns;
    uint64_t samples;
    uint64_t runnable_ns; /* how long they computed, or waited for a processor, together */
    uint64_t room_ns;     /* how long they waited for room, together */
    bool is_full;         /* one of them waits for room now */
} presto__tuner_seen;

/** Finds how many of `most` workers are worth it. A plain value. */
typedef struct presto__tuner {
    unsigned most;       /* 0: no tuning, all workers are active */
    unsigned processors; /* more workers than this are only for waiting */
    unsigned active;     /* this many may work now */
    int trial;           /* `active` is so many above or below the number known to be good */
    bool growing;        /* at first: more workers until processors are busy, untried */
    bool settling;       /* the current window does not measure `active` */
    bool up_failed, down_failed;
    unsigned resting, rest; /* windows to wait now, and the next time */
    double base_rate;
    presto__tuner_seen start; /* of the window; now_ns 0: none has begun */
} presto__tuner;

/** It begins with as many as there are processors. */
void presto__tuner_init(presto__tuner *tuner, unsigned most, unsigned processors);
/** Is it time to look again? */
bool presto__tuner_is_due(const presto__tuner *tuner, uint64_t now_ns);
/** Judge the window if it has ended, and choose the number for the next one. True: it rose. */
bool presto__tuner_look(presto__tuner *tuner, const presto__tuner_seen *now);
/** There are only so many workers, and no room for more. */
void presto__tuner_limit(presto__tuner *tuner, unsigned most);
/** The number that is best as far as is known; `active` may be on trial. */
unsigned presto__tuner_chosen(const presto__tuner *tuner);

typedef struct presto__worker presto__worker;

/* ---- loader ---- */

/** A worker's account, added to the loader's under the lock once a part. */
typedef struct presto__account {
    uint64_t read_bytes, read_ns, decompress_ns, parse_ns;
    uint64_t steps_ns, encode_ns, batch_ns;
    uint64_t cache_ns, cached_samples, missed_samples;
    uint64_t told_samples; /* that storage was told of in advance */
    uint64_t storage_wait_ns, storage_reads;
} presto__account;

struct presto__worker {
    /* No two workers share a cache line. The loader joins its workers before it goes. */
    _Alignas(PRESTO__APART_BYTES) presto_loader *loader;
    pthread_t thread;
    _Atomic pid_t thread_id; /* 0: not running yet; the worker writes it */
    bool is_started;
    presto_arena arena;
    presto__blocks blocks;
    presto__reader *reader;
    presto__plan_worker *cache_worker; /* of the steps before the cache */
    presto__plan_worker *plan_worker;
    const presto__cached **hits; /* for the numbers being run; NULL: to fetch. The pool's cache */
    uint64_t *missing;           /* those to fetch */
    const presto__cached *hit;   /* the sample being run, if it is from the cache */
    presto__disk_worker *disk;   /* NULL: no disk cache */
    presto_codec *codec;         /* records output */
    presto_buffer raw;
    presto__schema schema; /* records output: all samples so far */
    presto__account account;
    size_t held_bytes;             /* as counted in the budget */
    size_t free_bytes;             /* that it may still take without asking, until the part ends */
    bool is_over;                  /* pool->over is this worker */
    presto_step_stats *step_stats; /* guarded by the pool's lock: as of the last part */

    /* The sample being run: its packet is in the ring, which the loader frees after the join. */
    presto__packet *packet;
    presto__packet_part *part;
    presto__packet_batch *batch;
    size_t part_end; /* position in the packet */
    bool has_turn;   /* to walk; see walk.c */
    bool has_walked; /* what the next fetch is for has been read */
    bool looks_up;   /* the samples of the last fetch were looked up in a cache */
    size_t position; /* in the packet */
    size_t index;    /* in the numbers fetched last; SIZE_MAX: from the cache */
    presto_sample *sample;
    size_t main;         /* its main feature, if there are steps */
    uint64_t *epochs;    /* a mix: those that the part's samples are in; else NULL */
    bool began_here;     /* it began its fill, which is undone if it fails */
    uint64_t time_scale; /* 0: this sample is not timed; else its times are multiplied by this */
    presto__storage_thread storage; /* bound while it reads the source, if a storage is played */
    bool wakes_consumer;            /* after it has released the lock */
    unsigned slow_parts;            /* slow parts in a row */
    /* Samples that it has finished or left out. Only the worker writes it; the consumer reads it
     * for the tuner. */
    _Atomic uint64_t done_samples;
};

/** The sizes of blocks, computed once from options and source. */
typedef struct presto__blocking {
    size_t fetch_samples;  /* read at a time */
    size_t packet_samples; /* positions a full packet; a multiple of batch_rows */
    size_t parts;          /* of a full packet */
    size_t batch_rows;
} presto__blocking;

/** Of a part; the last one of a packet may have fewer. */
static inline size_t presto__blocking_part_samples(const presto__blocking *blocking) {
    return blocking->packet_samples / blocking->parts +
           (blocking->packet_samples % blocking->parts != 0);
}

/** How far ahead storage is told what to read; see read_ahead.c. */
typedef struct presto__read_ahead {
    uint64_t most_samples; /* 0: never */
    _Atomic uint64_t samples;
    _Atomic uint64_t told; /* all before this position has been told, or read */
    presto__ranges ranges; /* how far storage was told, in their order; guarded by the lock. The
                            * list is the loader's range_list */
    /* Of a source that is remote: */
    bool is_remote;
    bool is_planned;        /* which samples come when is known, before their part begins */
    uint64_t shift;         /* samples are told so much earlier than they are read: the buffer's */
    uint64_t stride;        /* told together at least, and a multiple of it */
    pthread_mutex_t lock;   /* of all that follows; whoever tells holds it, and waits for shards to
                             * be opened that its own part needs */
    uint64_t *numbers;      /* PRESTO__TOLD_AT_ONCE */
    uint64_t opened, ahead; /* positions up to which was told what will be opened, and read */
    bool has_begun;         /* something was told */
} presto__read_ahead;

#define PRESTO__TOLD_AT_ONCE 32768

/** The way from a record to what is handed out; chosen once, at open. */
typedef enum presto__delivery {
    PRESTO__DELIVER_ROWS = 0,    /* a sample becomes a row of each column */
    PRESTO__DELIVER_VALUES = 1,  /* the same without a sample, from the record to the columns */
    PRESTO__DELIVER_VIEWS = 2,   /* batches of one sample are views of what was read */
    PRESTO__DELIVER_FRAMES = 3,  /* records output: samples are serialized */
    PRESTO__DELIVER_RECORDS = 4, /* records output: stored samples with another codec, not parsed */
    PRESTO__DELIVER_STORED = 5,  /* records output: the stored bytes are what is wanted */
    PRESTO__DELIVER_COUNT = 6    /* nothing but numbers */
} presto__delivery;

/** What the consumer does. From NAPS on it sleeps, or has slept and is not back yet. */
typedef enum presto__consumer {
    PRESTO__CONSUMER_AWAY = 0,    /* it is not in presto_loader_next */
    PRESTO__CONSUMER_LOOKS = 1,   /* it is about to take a packet, or to wait for one */
    PRESTO__CONSUMER_NAPS = 2,    /* it found nothing, sleeps, and looks again by itself soon */
    PRESTO__CONSUMER_SLEEPS = 3,  /* it sleeps until a worker wakes it */
    PRESTO__CONSUMER_IS_WOKEN = 4 /* it slept; a worker is waking it */
} presto__consumer;

struct presto_loader {
    /* Set by open, then read-only. */
    /* Borrowed until free has joined the workers; kept alive by whoever opened the loader: */
    presto_source *source;
    const presto_plan *cache_plan; /* steps before the cache; NULL: none */
    const presto_plan *plan;       /* steps behind it, or all; NULL: none */
    presto_loader_options options; /* what they point to for callbacks; all else is copied */
    /* What the loader owns of these, freed last: */
    void *owned;
    void (*free_owned)(void *owned);
    presto_codec_spec codec; /* and its dictionary, which workers' codecs borrow */
    presto__blocking blocking;
    size_t packets_bytes;        /* of prefetch_bytes, what packets may take */
    size_t worker_bytes;         /* what a worker is expected to hold */
    bool starts_alone;           /* the size of packets is unknown until the first one is made */
    presto__delivery delivery;   /* presto_loader_pick may change it, without workers */
    presto__selection selection; /* of what is parsed */
    presto__selection shown;     /* of what batches have */
    presto__rules rules;
    bool aligns_views;       /* only those that are aligned */
    bool takes_runs;         /* samples are handed on many at a time */
    bool compresses;         /* records output with a codec other than none */
    size_t cache_step_count; /* of them, before the cache */
    size_t step_count;       /* in all */
    bool last_step_drops;    /* it may leave samples out */
    bool has_walk;           /* the source was not counted: `walked` is set up */
    uint64_t opened_ns;
    /* Owned; freed after the join. The pool and its cache stay until the last batch is released. */
    presto__worker *workers;
    /* Those that are there: with auto_threads they are made when they are needed. The consumer's
     * thread writes it, any thread reads it. */
    _Atomic size_t worker_count;
    size_t capacity;
    presto__pool *pool;
    presto__cache *cache;            /* NULL: no memory cache */
    presto__disk *disk;              /* NULL: no disk cache */
    presto__played_storage *storage; /* NULL: none is played */
    presto__ahead *ahead;            /* NULL: the source is not remote */
    size_t ahead_bytes;              /* of prefetch_bytes, what it may hold */
    atomic_bool is_abandoned;        /* results are no longer wanted */
    presto__sample_notes notes;      /* has a lock of its own */
    presto__read_ahead read_ahead;
    presto__range *range_list; /* owned; the list of all ranges below and in read_ahead */

    /* Guarded by the pool's lock. */
    presto__packet **slots; /* packet m lives in slots[m % capacity] until it is handed out */
    presto__order order;
    uint64_t epoch_samples; /* positions an epoch; PRESTO_COUNT_UNKNOWN while it walks */
    bool walks;             /* packets begin although their samples are not found yet */
    atomic_bool has_walker; /* a worker walks; others look at this for a moment, and wait for ... */
    pthread_cond_t walked;  /* ... this; set up if has_walk */
    uint64_t next_packet;   /* the next to start, and its place: */
    uint64_t next_epoch, next_offset;
    presto__ranges ranges; /* of one epoch: where the next packet is */
    uint64_t epochs_left;
    uint64_t samples_left;   /* until the limit; UINT64_MAX: none */
    uint64_t end_packet;     /* no packet from this one on is started; UINT64_MAX until known */
    presto__packet *filling; /* has parts to take */
    size_t active_parts;
    bool is_stopped;
    bool knows_packet_bytes;             /* pool->packet_bytes is measured, not guessed */
    uint64_t sized_samples, sized_bytes; /* of finished packets, while sizes are learned, ... */
    size_t learned_samples;              /* ... and how many the next one may have after that */
    presto__consumer consumer;
    presto__packet *done_first, *done_last; /* completion order: finished packets */
    uint64_t next_out, packets_out;         /* the first: the next to hand out in strict order */
    presto__packet *unstarted;              /* a packet that could not be set up */
    presto_error start_error;               /* why; reported after all packets that were started */
    bool has_start_error;
    bool lacks_schema; /* there was no memory to merge a worker's schema */
    presto__tuner tuner;
    pthread_cond_t spare; /* workers beyond tuner.active wait here; set up if tuner.most > 0 */
    presto__account account;
    uint64_t worker_wait_ns;
    presto__schema schema;
    presto_loader_stats counts; /* samples, skipped, batches, bytes, consumer times */

    /* The consumer's alone. */
    presto__packet *current;
    size_t current_batch;
    uint64_t state_epoch, state_next;     /* the position after the last batch handed out */
    uint64_t current_epoch, latest_epoch; /* of a packet */
    uint64_t delivered_epoch;             /* of the last batch, else the first */
    uint64_t last_exit_ns;
    presto_status final_status; /* PRESTO_OK until the end or a failure was reported */
    presto_error final_error;
    uint64_t failed_at;    /* position of the sample that the stream failed at; UINT64_MAX: none */
    uint64_t seen_samples; /* positions consumed */
    uint64_t skipped_samples, dropped_samples, latest_skipped; /* the last: of latest_epoch */
};

/** Bytes that a packet should not exceed, so that several of each worker fit. */
size_t presto__loader_packet_share(const presto_loader *loader);

/** The number by which packets remember who filled them; 0 is nobody. */
static inline size_t presto__worker_home(const presto__worker *worker) {
    return (size_t)(worker - worker->loader->workers) + 1;
}

/** PRESTO_ERR_ARGUMENT with the reason if the options contradict each other, or the input. */
presto_status presto__loader_check_options(const presto_source *source, const presto_plan *plan,
                                           const presto_loader_options *options, presto_error *err);
/** PRESTO_ERR_ARGUMENT if a step makes other samples, which no stream does. NULL is fine. */
presto_status presto__loader_check_steps(const presto_plan *plan, presto_error *err);
/** Choose what is parsed and what batches have; forgets the options' features and pads. */
presto_status presto__loader_open_features(presto_loader *loader, presto_error *err);
presto_status presto__worker_init(presto__worker *worker, presto_loader *loader, presto_error *err);
/** Make and start workers until there are `count`. The consumer's thread, without the lock, or open.
 * If it fails, those before are there. */
presto_status presto__loader_start_workers(presto_loader *loader, size_t count, presto_error *err);
void presto__worker_done(presto__worker *worker);

/* ---- batches output: rows.c ---- */

/** The place of the sample being run. */
presto__place presto__worker_row(const presto__worker *worker);
/** A presto_output_fn: the memory for the output of the last step; `user` is the worker. */
presto_status presto__worker_give_row(void *user, const presto_output_request *request,
                                      void **data_out, presto_error *err);
/** Put the sample that has been run into its row. */
presto_status presto__worker_put_row(presto__worker *worker, presto_error *err);
/** The same from its record, without a sample. PRESTO_END: a sample is needed; nothing was put. */
presto_status presto__worker_put_values(presto__worker *worker, presto_error *err);

/* ---- records as they are stored: runs.c ---- */

/** Can samples be handed on without looking at them? The path is chosen. */
bool presto__loader_takes_runs(const presto_loader *loader);
/** Put the fetched samples from worker->index on, up to `most`, as far as they are alike. Returns
 * how many; 0: run the sample by itself. */
size_t presto__worker_put_run(presto__worker *worker, size_t most);

/* ---- records output: frames.c ---- */

/** Room for the sizes of the packet's frames. */
presto_status presto__packet_prepare_frames(presto__packet *packet, presto_error *err);
/** Append the sample that has been run, or `record` if it was read as one. */
presto_status presto__worker_put_frame(presto__worker *worker, const presto__stored_record *record,
                                       presto_error *err);

/* ---- read_ahead.c ---- */

/** The order is known. PRESTO_ERR_MEMORY. */
presto_status presto__read_ahead_init(presto__read_ahead *ahead, const presto_loader *loader,
                                      presto_error *err);
void presto__read_ahead_done(presto__read_ahead *ahead);
/** Before a part is read: tell storage what comes after it. */
void presto__read_ahead_before(presto__worker *worker, const presto__packet *packet,
                               const presto__packet_part *part);
/** After it was read: adapt the distance. */
void presto__read_ahead_after(presto__worker *worker, const presto__packet_part *part);

/** Run one part, without the bookkeeping. */
void presto__worker_run(presto__worker *worker, presto__packet *packet, presto__packet_part *part);

/* ---- tickets: with the pool's lock held ---- */

/** A worker's thread; takes the lock itself. `argument` is the presto__worker. */
void *presto__worker_main(void *argument);
/** Wait for a part, and run it without the lock; false: there is none left. */
bool presto__worker_run_next(presto__worker *worker);
/** Results are no longer wanted: work ends soon, waiting steps are interrupted. Any thread. */
void presto__loader_abandon(presto_loader *loader);
/** The consumer's thread, without the lock: must the loader stop? Asks should_stop. */
bool presto__loader_stops(presto_loader *loader);
/** The packet to hand out next; NULL: it is not finished. */
presto__packet *presto__loader_ready_packet(const presto_loader *loader);
/** Has everything been handed out? */
bool presto__loader_has_ended(const presto_loader *loader);

/* ---- allowance.c: what workers hold, and when they may hold more ---- */

/** Its arena asks before it grows, and waits until it may; it fails once the loader is being freed. */
void presto__worker_open_arena(presto__worker *worker);
/** A step has freed what it had asked for: the worker's next growth takes it first. */
void presto__worker_return(void *worker, size_t bytes);
/** All fetched samples are done: give back memory beyond the allowance. */
void presto__worker_give_back(presto__worker *worker);
/** With the pool's lock held, at the end of a part: set what the worker holds. */
void presto__worker_settle_locked(presto__worker *worker, size_t held_bytes);
/** What it holds at the end of a part. */
size_t presto__worker_memory(const presto__worker *worker);

/* ---- walk.c: samples that are not counted yet ---- */

/** Is a last batch left out if it is not full? Records come in no batches. */
static inline bool presto__loader_drops_last(const presto_loader *loader) {
    const presto_loader_options *options = &loader->options;
    return options->range.drop_last && options->output != PRESTO_OUTPUT_RECORDS &&
           options->batch_samples > 0;
}

/** Before anything depends on the number of samples: begin to walk if that will do, else count
 * them. */
presto_status presto__loader_begin_walk(presto_loader *loader, presto_error *err);
void presto__loader_end_walk(presto_loader *loader);
/**
 * It is this worker's turn: find up to *count_io samples, for the positions from `first` on, and
 * read them for the next fetch. *count_io: how many there are. The turn ends once all are found, or
 * the source ends; then part_end is right.
 */
presto_status presto__worker_walk(presto__worker *worker, size_t first, size_t *count_io,
                                  presto_error *err);
/**
 * It is this worker's turn, and samples are shuffled through a buffer: draw those of its part, and
 * end the turn. If not all records that the buffer needs can be found, part_end is set to the
 * position of the first sample that needs one, and *failure_out says why.
 */
void presto__worker_draw(presto__worker *worker, presto_error *failure_out);
/** With the pool's lock held: another worker walks. Returns when it may have ended, or sooner. */
void presto__worker_await_turn(presto__worker *worker);
/** It does not walk on. */
void presto__worker_end_turn(presto__worker *worker);
/** Positions an epoch, without a limit; PRESTO_COUNT_UNKNOWN while it walks. Any thread. */
uint64_t presto__loader_whole_epoch(const presto_loader *loader);

/* ---- played.c: a storage that the loader plays ---- */

/** If the options say so. */
presto_status presto__loader_open_storage(presto_loader *loader, presto_error *err);
void presto__loader_close_storage(presto_loader *loader);
/** Until presto__storage_bind(what this returns), the calling thread reads from what is played, if
 * there is anything. */
presto__storage_thread *presto__loader_bind_opening(presto_loader *loader,
                                                    presto__storage_thread *opening);

/** Before the worker reads; false: no storage is played. */
bool presto__worker_open_storage(presto__worker *worker);
/** A presto_read_file_fn for the steps; `user` is the worker. */
presto_status presto__worker_read_file(void *user, presto_span path, presto_arena *arena,
                                       presto_span *bytes_out, presto_error *err);
/** Add what it waited for to the worker's account. */
void presto__worker_count_played(presto__worker *worker);

/* ---- state_mix.c: what the state of a mix has beside that of any stream ---- */

/** A member of the state, after a comma: where each input of the mix is before position `next` of
 * `epoch`. Nothing if the source is no mix. */
presto_status presto__state_append_mix(const presto_loader *loader, uint64_t epoch, uint64_t next,
                                       presto_buffer *json_out, presto_error *err);
/**
 * Does "mix" of a state belong to this source and these options? `saved` is NULL if there is none.
 * PRESTO_ERR_ARGUMENT (another input, other weights), PRESTO_ERR_CORRUPT (not what that position of
 * the mix means).
 */
presto_status presto__state_check_mix(const json_t *root, const presto_source *source,
                                      const presto_loader_options *options, presto_error *err);

#endif
