/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Notes of steps, counted by their text. Which of too many texts find room depends on the threads;
 * all else does not: a note's example is the first of its samples in the input, and notes stand in
 * the order of their examples.
 */
#include "workers_internal.h"

#include <stdio.h>
#include <string.h>

#include <presto/text.h>

void presto__sample_notes_init(presto__sample_notes *notes) {
    pthread_mutex_init(&notes->lock, NULL);
    snprintf(notes->further.kind, sizeof notes->further.kind, "steps: further notes");
}

void presto__sample_notes_done(presto__sample_notes *notes) {
    pthread_mutex_destroy(&notes->lock);
}

static presto__sample_note *find_locked(presto__sample_notes *notes, const char *kind) {
    for (size_t i = 0; i < notes->count; i++)
        if (strcmp(notes->notes[i].kind, kind) == 0)
            return &notes->notes[i];
    if (notes->count == PRESTO_LOADER_NOTES)
        return &notes->further;
    presto__sample_note *note = &notes->notes[notes->count++];
    memcpy(note->kind, kind, sizeof note->kind);
    return note;
}

void presto__sample_notes_add(presto__sample_notes *notes, const char *step, const char *text,
                              uint64_t number) {
    char whole[PRESTO_NOTE_KIND_BYTES + 64], kind[PRESTO_NOTE_KIND_BYTES] = {0};
    snprintf(whole, sizeof whole, "%s: %s", step, text);
    presto_text_show(presto_span_of_text(whole), kind, sizeof kind);
    pthread_mutex_lock(&notes->lock);
    presto__sample_note *note = find_locked(notes, kind);
    if (note->samples == 0 || number < note->number)
        note->number = number;
    note->samples++;
    pthread_mutex_unlock(&notes->lock);
}

/* Of two notes with the same example, the one that is first in the alphabet. */
static bool is_before(const presto__sample_note *a, const presto__sample_note *b) {
    return a->number != b->number ? a->number < b->number : strcmp(a->kind, b->kind) < 0;
}

bool presto__sample_notes_get(presto__sample_notes *notes, size_t i,
                              presto__sample_note *note_out) {
    bool is_there = false;
    pthread_mutex_lock(&notes->lock);
    if (i == notes->count && notes->further.samples > 0) {
        *note_out = notes->further;
        is_there = true;
    }
    for (size_t k = 0; k < notes->count && i < notes->count; k++) {
        size_t before = 0;
        for (size_t other = 0; other < notes->count; other++)
            before += is_before(&notes->notes[other], &notes->notes[k]);
        if (before != i)
            continue;
        *note_out = notes->notes[k];
        is_there = true;
    }
    pthread_mutex_unlock(&notes->lock);
    return is_there;
}
