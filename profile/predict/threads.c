/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that do the same at once, for probes of what they do to each other. */
#include "../../base/thread_internal.h"
#include "predict_internal.h"

#include <stdlib.h>

typedef struct worker {
    pthread_t thread;
    void (*work)(void *user, unsigned number);
    void *user; /* the caller's: presto__run_together joins the threads before it returns */
    unsigned number;
} worker;

static void *run(void *argument) {
    worker *self = argument;
    self->work(self->user, self->number);
    return NULL;
}

presto_status presto__run_together(unsigned count, void (*work)(void *user, unsigned number),
                                   void *user, presto_error *err) {
    worker *workers = calloc(count, sizeof *workers);
    if (workers == NULL)
        return presto_fail_memory(err, count * sizeof *workers);
    unsigned started = 1; /* the caller is the first */
    bool failed = false;
    for (; started < count && !failed; started += !failed) {
        workers[started] = (worker){.work = work, .user = user, .number = started};
        failed = presto__thread_start(&workers[started].thread, run, &workers[started]) != 0;
    }
    work(user, 0);
    for (unsigned i = 1; i < started; i++)
        pthread_join(workers[i].thread, NULL);
    free(workers);
    return failed ? presto_fail(err, PRESTO_ERR_MEMORY, PRESTO_NO_OFFSET,
                                "a thread to measure with could not be started")
                  : PRESTO_OK;
}
