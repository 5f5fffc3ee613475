/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Epochs of threads that wait for storage together. Each thread takes a part at a time; where parts
 * take the same time, all threads end one at once, and an epoch takes whole rounds, however few parts
 * the last one has. And whoever comes to a new file first opens it, while the others wait. A file of a
 * sample has a few parts; one of the whole source has many. So neither the rounds nor the files of a
 * sample tell what an epoch of the whole takes. Epochs of whole rounds in one file do, and how long the
 * other files keep the threads from reading is calculated: a storage that is played says what opening
 * takes.
 */
#include "trial_internal.h"

#include <math.h>
#include <stdbool.h>

/* The longer epoch has so many rounds, and the shorter one has one; two more than that at least. */
#define ROUNDS 6.0
#define ROUNDS_LEAST 3.0
/* With so many or more, one round that is not full counts for little. */
#define MANY_ROUNDS 16.0
/* A file of so many rounds or more is long: each costs the same, and some of them tell how much. */
#define LONG_ROUNDS 8.0
#define LONG_ROUNDS_ROUGH 2.0
#define LONG_FILES 8.0
#define FILES_MOST 256
#define THREADS_MOST 256
/* Threads have not enough of what they share, if a part takes so many times what a thread alone takes. */
#define SHARED 1.1
/* What parts take beyond the latency differs by up to this. It is played with each: where parts take about
 * as long as opening a file, a little decides whether threads wait for that. */
static const double unevens[] = {0.03, 0.1, 0.3};
#define UNEVENS (sizeof unevens / sizeof *unevens)
#define ROUGH_UNEVEN 1
/* A thread takes a part of a MiB in four reads; others have their turns at what is shared between them. */
#define READ_PART 0.25
/* Of the most that opening files may cost, so much is not known. */
#define UNSURE 0.5
#define GOLDEN 0.6180339887498949

/* ---- playing an epoch ---- */

/* A thread, and the part that it is at: from one place to another, where a part is 1. */
typedef struct turn {
    double at_s; /* it is free then */
    double from, end, uneven;
    bool begins; /* a read: its part, or a file */
} turn;

typedef struct played {
    const presto__waiting *epoch;
    double parts, all_parts;  /* of a file; of all files of the epoch */
    double part_s, shared_s;  /* that a part takes of its thread, and of what all threads share */
    double shared_free_s;     /* when that is free */
    double opens[FILES_MOST]; /* when each file is open; below 0: nobody has begun */
    turn turns[THREADS_MOST]; /* a heap: the first one comes next */
    size_t threads, files, taken;
    double lost_s; /* of all threads, to files but the first */
    double uneven; /* of its parts */
} played;

/* The first one of the heap takes its place by its time. */
static void sink(played *with) {
    turn first = with->turns[0];
    size_t at = 0;
    for (;;) {
        size_t child = 2 * at + 1;
        if (child + 1 < with->threads && with->turns[child + 1].at_s < with->turns[child].at_s)
            child++;
        if (child >= with->threads || with->turns[child].at_s >= first.at_s)
            break;
        with->turns[at] = with->turns[child];
        at = child;
    }
    with->turns[at] = first;
}

static void take_part(played *with, turn *next) {
    double k = (double)with->taken++;
    next->from = k;
    next->end = fmin(k + 1, (double)with->files * with->parts);
    next->uneven = 1 + with->uneven * (2 * fmod(k * GOLDEN, 1) - 1);
    next->begins = true;
}

/* A thread reads some of what its part has of a file. In another file than where the part began, that is
 * another read. Whoever comes first opens the file; who comes before it is open comes again then, and
 * leaves what is shared to others. */
static void read_piece(played *with, turn *next) {
    size_t file = (size_t)fmin(floor(next->from / with->parts + 1e-9), (double)with->files - 1);
    if (with->opens[file] < 0)
        with->opens[file] = next->at_s + with->epoch->storage->open_s;
    if (next->at_s < with->opens[file]) {
        with->lost_s += file > 0 ? with->opens[file] - next->at_s : 0;
        next->at_s = with->opens[file];
        return;
    }
    bool is_last = file + 1 == with->files;
    double end = is_last ? next->end : fmin(next->end, (double)(file + 1) * with->parts);
    double until = with->shared_s > 0 ? fmin(end, next->from + READ_PART) : end;
    double latency_s = fmin(with->epoch->storage->latency_s, with->part_s);
    bool is_another = next->begins && next->from != floor(next->from);
    with->lost_s += file > 0 && is_another ? latency_s : 0;
    double part = fmax(until - next->from, 0) * next->uneven;
    with->shared_free_s = fmax(with->shared_free_s, next->at_s) + part * with->shared_s;
    next->at_s = (next->begins ? latency_s : 0) +
                 fmax(next->at_s + part * (with->part_s - latency_s), with->shared_free_s);
    next->begins = until >= end;
    next->from = until;
}

/* When all is done. */
static double play(played *with) {
    double end_s = 0;
    size_t count = (size_t)ceil((double)with->files * with->parts);
    for (size_t i = 0; i < with->threads; i++)
        with->turns[i] = (turn){.at_s = 0};
    for (size_t i = 0; i < with->files; i++)
        with->opens[i] = -1;
    with->taken = 0;
    with->lost_s = with->shared_free_s = 0;
    for (;;) {
        turn *next = &with->turns[0];
        if (next->from >= next->end - 1e-9) {
            if (with->taken >= count)
                break;
            take_part(with, next);
        }
        read_piece(with, next);
        end_s = fmax(end_s, next->at_s);
        sink(with);
    }
    /* Others may be within a part yet. */
    for (size_t i = 0; i < with->threads; i++)
        for (turn *last = &with->turns[i]; last->from < last->end - 1e-9;) {
            read_piece(with, last);
            end_s = fmax(end_s, last->at_s);
        }
    return end_s;
}

/* A part of a thread that has all to itself. */
static double alone_s(const presto__waiting *epoch) {
    double rate = epoch->storage->bytes_per_s_per_thread;
    double reading_s = rate > 0 ? epoch->stored_bytes / rate : 0;
    return epoch->storage->latency_s + epoch->part_samples * (reading_s + epoch->worker_s);
}

/* What the files but the first add. */
static double played_s(played *with) {
    double seconds = play(with);
    if (with->parts * (double)with->files < 0.999 * with->all_parts)
        return with->lost_s / (double)with->threads / ((double)with->files - 1) *
               (with->epoch->files - 1);
    played *one = &(played){.epoch = with->epoch,
                            .parts = with->all_parts,
                            .all_parts = with->all_parts,
                            .part_s = with->part_s,
                            .shared_s = with->shared_s,
                            .threads = with->threads,
                            .files = 1,
                            .uneven = with->uneven};
    return fmax(seconds - play(one), 0);
}

presto__files_cost presto__files_cost_of(const presto__waiting *epoch) {
    const presto_storage *storage = epoch->storage;
    double more = epoch->files - 1, parts = epoch->samples / epoch->files / epoch->part_samples;
    presto__files_cost cost = {0, 0};
    if (!(more > 0))
        return cost;
    if (!(epoch->threads > 1)) /* a new file is a new read, too */
        return (presto__files_cost){more * (storage->open_s + storage->latency_s), 0};
    if (!(storage->open_s > 0))
        return cost;
    if (!(parts > 0) || !isfinite(parts) || !(epoch->each_s > 0) || epoch->files > FILES_MOST)
        return (presto__files_cost){more * storage->open_s, more * storage->open_s};
    played with = {.epoch = epoch,
                   .parts = parts,
                   .all_parts = epoch->samples / epoch->part_samples,
                   .part_s = epoch->each_s * epoch->part_samples * epoch->threads,
                   .threads = (size_t)fmin(epoch->threads, THREADS_MOST),
                   .files = (size_t)epoch->files};
    double threads = (double)with.threads;
    if (with.part_s > SHARED * alone_s(epoch)) {
        with.part_s = alone_s(epoch);
        with.shared_s = epoch->each_s * epoch->part_samples;
    }
    double rounds = epoch->is_rough ? LONG_ROUNDS_ROUGH : LONG_ROUNDS;
    if (parts >= rounds * threads) {
        with.parts = rounds / 2 * threads + fmod(parts, threads);
        with.files = (size_t)fmin(epoch->files, LONG_FILES);
    }
    size_t first = epoch->is_rough ? ROUGH_UNEVEN : 0, end = epoch->is_rough ? first + 1 : UNEVENS;
    for (size_t i = first; i < end; i++) {
        with.uneven = unevens[i];
        cost.seconds += played_s(&with) / (double)(end - first);
    }
    cost.error_s = UNSURE * more * storage->open_s * fmin((parts + 1) / threads, 1);
    return cost;
}

/* ---- which epochs are compared ---- */

double presto__mean_part(presto__portions cut) {
    if (cut.part_samples == 0)
        return 0;
    double parts = ceil((double)cut.packet_samples / (double)cut.part_samples);
    return (double)cut.packet_samples / parts;
}

/* Samples of the first so many parts. */
static uint64_t samples_of_parts(presto__portions cut, uint64_t parts) {
    uint64_t each = (cut.packet_samples + cut.part_samples - 1) / cut.part_samples;
    return parts / each * cut.packet_samples + parts % each * cut.part_samples;
}

presto__lengths presto__lengths_of(presto__portions cut, unsigned threads, double wanted,
                                   double most) {
    double round_samples = threads * presto__mean_part(cut);
    if (!(round_samples > 0) || !isfinite(wanted))
        return (presto__lengths){0, 0};
    double rounds = fmin(fmax(ceil(wanted / round_samples), ROUNDS), floor(most / round_samples));
    if (!(rounds >= ROUNDS_LEAST))
        return (presto__lengths){0, 0};
    return (presto__lengths){samples_of_parts(cut, threads),
                             samples_of_parts(cut, threads * (uint64_t)rounds)};
}

bool presto__has_few_rounds(presto__portions cut, unsigned threads, double samples, size_t files) {
    double part_samples = presto__mean_part(cut);
    if (threads < 2 || !(part_samples > 0))
        return false;
    return files > 1 || samples < MANY_ROUNDS * threads * part_samples;
}
