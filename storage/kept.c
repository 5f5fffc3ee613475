/* SPDX-License-Identifier: Apache-2.0 */
#include "kept_internal.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct presto__kept_text {
    struct presto__kept_text *next;
    char *name, *text;
} presto__kept_text;

/* Of all of them: it is held for a moment only. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void take_lock(void) {
    pthread_mutex_lock(&lock);
}

static void give_lock(void) {
    pthread_mutex_unlock(&lock);
}

/* A child of fork gets what is kept, and no lock that a thread of its parent held. */
static void register_fork(void) {
    (void)pthread_atfork(take_lock, give_lock, give_lock);
}

static void lock_all(void) {
    (void)pthread_once(&once, register_fork);
    take_lock();
}

static presto__kept_text *find(const presto__kept *kept, const char *name) {
    presto__kept_text *one = kept->first;
    while (one != NULL && strcmp(one->name, name) != 0)
        one = one->next;
    return one;
}

char *presto__kept_find(const presto__kept *kept, const char *name) {
    lock_all();
    const presto__kept_text *one = find(kept, name);
    char *text = one == NULL ? NULL : strdup(one->text);
    give_lock();
    return text;
}

void presto__kept_set(presto__kept *kept, const char *name, const char *text, bool replaces) {
    presto__kept_text *made = calloc(1, sizeof *made);
    char *name_copy = strdup(name), *text_copy = strdup(text), *before = NULL;
    if (made != NULL && name_copy != NULL && text_copy != NULL) {
        lock_all();
        presto__kept_text *one = find(kept, name);
        if (one == NULL) {
            *made = (presto__kept_text){kept->first, name_copy, text_copy};
            kept->first = made;
            made = NULL;
            name_copy = text_copy = NULL;
        } else if (replaces) {
            before = one->text;
            one->text = text_copy;
            text_copy = NULL;
        }
        give_lock();
    }
    free(before);
    free(text_copy);
    free(name_copy);
    free(made);
}
