/* SPDX-License-Identifier: Apache-2.0 */
/* Inside room engine: what steps tell of samples, and is no error. */
#ifndef PRESTO_LOADER_SAMPLE_NOTES_INTERNAL_H
#define PRESTO_LOADER_SAMPLE_NOTES_INTERNAL_H

#include <presto/loader.h>

#include <pthread.h>

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

#endif
