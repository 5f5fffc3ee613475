/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between the library and the interpreter, which may end while threads are inside of the library:
 * daemon threads, and those of other libraries that hold batches. After that nothing of Python may be
 * touched, and a thread that comes back has nowhere to go.
 *
 * end() is called first of all that the package does at the exit. From then on no other thread may
 * begin a call or run a callback. Those inside are told to stop, and end() waits for them; what they
 * get is a SystemExit, which ends a thread without a word. Who is
 * still inside after that stays there: its thread sleeps until the process is gone.
 *
 * The thread that ends the interpreter may do all of it, as long as there is one.
 */
#include "native_internal.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#define SHUT (1u << 31)
#define LOOK_NS 1000000      /* end() looks so often whether all have come back */
#define SIGNALS_EVERY 50     /* looks */
#define LAST_STEP_NS 1000000 /* a thread on its way only needs the GIL */
#define LAST_STEPS 1000

/* How many threads go through, and whether it is shut. */
static atomic_uint into, back;
static atomic_uint inside; /* calls of the library under way */
static atomic_bool is_ending;
static pthread_t ender; /* set before is_ending */

void native_gate_forked(void) {
    atomic_store(&into, 0);
    atomic_store(&back, 0);
    atomic_store(&inside, 0);
    atomic_store(&is_ending, false);
}

static bool pass(atomic_uint *gate) {
    if ((atomic_fetch_add(gate, 1) & SHUT) == 0)
        return true;
    atomic_fetch_sub(gate, 1);
    return false;
}

static bool is_ender(void) {
    return atomic_load(&is_ending) && pthread_equal(ender, pthread_self());
}

bool native_is_ending(void) {
    return atomic_load(&is_ending) && !is_ender();
}

/* ---- calls of the library ---- */

void native_leave_to_free(native_away *away) {
    atomic_fetch_add(&inside, 1);
    away->generation = native_generation();
    away->thread = PyEval_SaveThread();
}

bool native_leave(native_away *away) {
    if (native_is_ending()) {
        native_fail(PRESTO_ERR_STOPPED, "the interpreter ends");
        return false;
    }
    native_leave_to_free(away);
    return true;
}

void native_return(native_away *away) {
    bool is_counted = !is_ender();
    unsigned generation = native_generation();
    if (is_counted && !pass(&back))
        for (;;)
            pause();
    PyEval_RestoreThread(away->thread);
    if (is_counted && generation == native_generation())
        atomic_fetch_sub(&back, 1);
    if (away->generation == native_generation())
        atomic_fetch_sub(&inside, 1);
}

/* ---- callbacks ---- */

bool native_enter(native_visit *visit_out) {
    visit_out->is_counted = !is_ender();
    visit_out->generation = native_generation();
    if (!Py_IsInitialized() || (visit_out->is_counted && !pass(&into)))
        return false;
    visit_out->state = PyGILState_Ensure();
    return true;
}

void native_exit(const native_visit *visit) {
    PyGILState_Release(visit->state);
    if (visit->is_counted && visit->generation == native_generation())
        atomic_fetch_sub(&into, 1);
}

/* ---- the end ---- */

static bool all_are_back(void) {
    return atomic_load(&inside) == 0 && (atomic_load(&into) & ~SHUT) == 0;
}

static void sleep_ns(long ns) {
    (void)nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
}

/* False: Ctrl-C, and the exception is set. */
static bool wait_for_all(double most_s) {
    uint64_t looks = (uint64_t)(most_s * 1e9 / LOOK_NS);
    for (uint64_t i = 0; i < looks && !all_are_back(); i++) {
        Py_BEGIN_ALLOW_THREADS sleep_ns(LOOK_NS);
        Py_END_ALLOW_THREADS if (i % SIGNALS_EVERY == 0 && PyErr_CheckSignals() < 0) return false;
    }
    return true;
}

PyObject *native_end(PyObject *module, PyObject *most_s) {
    (void)module;
    double seconds = PyFloat_AsDouble(most_s);
    if (PyErr_Occurred())
        return NULL;
    if (!atomic_load(&is_ending)) {
        ender = pthread_self();
        atomic_store(&is_ending, true);
    }
    atomic_fetch_or(&into, SHUT);
    bool goes_on = wait_for_all(seconds);
    atomic_fetch_or(&back, SHUT);
    for (int i = 0; i < LAST_STEPS && (atomic_load(&back) & ~SHUT) != 0; i++) {
        Py_BEGIN_ALLOW_THREADS sleep_ns(LAST_STEP_NS);
        Py_END_ALLOW_THREADS
    }
    return goes_on ? PyBool_FromLong(all_are_back()) : NULL;
}
