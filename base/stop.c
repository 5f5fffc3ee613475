/* SPDX-License-Identifier: Apache-2.0 */
#include "stop_internal.h"

#include <stddef.h>

static _Thread_local presto__stop_scope bound;

presto__stop_scope presto__stop_enter(presto__stop_hook *hook, presto_stop_fn ask, void *user) {
    presto__stop_scope before = bound;
    hook->ask = ask;
    hook->user = user;
    atomic_init(&hook->is_wished, false);
    if (ask != NULL)
        bound = (presto__stop_scope){hook, true};
    return before;
}

presto_status presto__stop_leave(presto__stop_hook *hook, presto__stop_scope before,
                                 presto_status status, presto_error *err) {
    bound = before;
    return atomic_load(&hook->is_wished)
               ? presto_fail(err, PRESTO_ERR_STOPPED, PRESTO_NO_OFFSET, "stopped")
               : status;
}

presto__stop_scope presto__stop_bind(presto__stop_scope scope) {
    presto__stop_scope before = bound;
    bound = scope;
    return before;
}

presto__stop_scope presto__stop_bound(void) {
    return bound;
}

/* What is called may begin passes of its own, and read files in none. */
static bool ask(presto__stop_hook *hook) {
    presto__stop_scope before = presto__stop_bind((presto__stop_scope){.hook = NULL});
    bool is_wished = hook->ask(hook->user);
    (void)presto__stop_bind(before);
    if (is_wished)
        atomic_store(&hook->is_wished, true);
    return is_wished;
}

presto_status presto__stop_check(presto_error *err) {
    presto__stop_hook *hook = bound.hook;
    if (hook == NULL || (!atomic_load(&hook->is_wished) && !(bound.asks && ask(hook))))
        return PRESTO_OK;
    return presto_fail(err, PRESTO_ERR_STOPPED, PRESTO_NO_OFFSET, "stopped");
}
