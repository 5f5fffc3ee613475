/* SPDX-License-Identifier: Apache-2.0 */
/* What long calls of the library call back: signals, progress, samples that are left out. */
#include "writing_internal.h"

#include <time.h>

#define ASK_NS 50000000

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

bool native_watch_signals(native_watch *watch) {
    uint64_t now = now_ns();
    if (now - watch->asked_ns < ASK_NS)
        return !PyErr_Occurred();
    watch->asked_ns = now;
    return !PyErr_Occurred() && PyErr_CheckSignals() == 0;
}

bool native_watch_stops(void *user) {
    native_watch *watch = user;
    native_visit visit;
    uint64_t now = now_ns();
    if (watch->is_stopped || native_is_ending())
        return true;
    if (now - watch->asked_ns < ASK_NS)
        return false;
    if (!native_enter(&visit))
        return true;
    watch->asked_ns = now;
    watch->is_stopped = PyErr_Occurred() != NULL || PyErr_CheckSignals() < 0;
    native_exit(&visit);
    return watch->is_stopped;
}

void native_watch_skip(void *user, uint64_t epoch, uint64_t sample, const presto_error *err) {
    native_watch *watch = user;
    native_visit visit;
    if (!native_enter(&visit))
        return;
    if (watch->on_skip != NULL && !PyErr_Occurred()) {
        PyObject *type, *value, *trace;
        native_raise(err);
        PyErr_Fetch(&type, &value, &trace);
        PyErr_NormalizeException(&type, &value, &trace);
        PyObject *done = PyObject_CallFunction(watch->on_skip, "KKO", epoch, sample, value);
        Py_XDECREF(done); /* what it raises stays set, and ends the call */
        Py_XDECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(trace);
    }
    native_exit(&visit);
}

void native_watch_warning(void *user, const presto_error *warning) {
    native_watch *watch = user;
    char text[PRESTO_ERROR_FILE_BYTES + PRESTO_ERROR_MESSAGE_BYTES + 128];
    presto_error_format(warning, text, sizeof text);
    native_visit visit;
    if (!native_enter(&visit))
        return;
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyObject *line = native_text(text);
    if (line == NULL || PyList_Append(watch->warnings, line) < 0)
        PyErr_Clear(); /* no memory to tell that there is a problem */
    Py_XDECREF(line);
    PyErr_Restore(type, value, trace);
    native_exit(&visit);
}
