/* SPDX-License-Identifier: Apache-2.0 */
/* Figures of a loader: dicts whose keys are those of presto-load's --stats. */
#include "native_internal.h"

static double seconds(uint64_t ns) {
    return (double)ns / 1e9;
}

static PyObject *times_of(const presto_loader_stats *stats) {
    return Py_BuildValue("{sdsdsdsdsdsdsdsdsdsd}", "read_s", seconds(stats->read_ns),
                         "decompress_s", seconds(stats->decompress_ns), "parse_s",
                         seconds(stats->parse_ns), "steps_s", seconds(stats->steps_ns), "encode_s",
                         seconds(stats->encode_ns), "batch_s", seconds(stats->batch_ns), "cache_s",
                         seconds(stats->cache_ns), "worker_wait_s", seconds(stats->worker_wait_ns),
                         "consumer_wait_s", seconds(stats->consumer_wait_ns), "consumer_busy_s",
                         seconds(stats->consumer_busy_ns));
}

static PyObject *steps_of(const presto_loader *loader) {
    size_t count = presto_loader_step_count(loader);
    PyObject *out = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; out != NULL && i < count; i++) {
        presto_step_stats stats = presto_loader_step_stats(loader, i);
        PyObject *step =
            Py_BuildValue("{sssKsdsKsKsK}", "name", presto_loader_step_name(loader, i), "samples",
                          stats.samples, "busy_s", seconds(stats.busy_ns), "out_bytes",
                          stats.out_bytes, "dropped", stats.dropped, "unfused", stats.unfused);
        if (step == NULL || PyList_SetItem(out, (Py_ssize_t)i, step) < 0)
            Py_CLEAR(out);
    }
    return out;
}

/* What steps have told of samples: (kind, text). */
static PyObject *notes_of(const presto_loader *loader) {
    presto_loader_note note;
    PyObject *out = PyList_New(0);
    for (size_t i = 0; out != NULL && presto_loader_get_note(loader, i, &note); i++) {
        PyObject *kind = native_text(note.kind), *text = native_text(note.text);
        PyObject *pair = kind == NULL || text == NULL ? NULL : PyTuple_Pack(2, kind, text);
        if (pair == NULL || PyList_Append(out, pair) < 0)
            Py_CLEAR(out);
        Py_XDECREF(kind);
        Py_XDECREF(text);
        Py_XDECREF(pair);
    }
    return out;
}

PyObject *native_loader_notes(PyObject *object, PyObject *unused) {
    (void)unused;
    const presto_loader *loader = native_loader_get((native_loader *)object);
    return loader == NULL ? NULL : notes_of(loader);
}

PyObject *native_loader_stats(PyObject *object, PyObject *unused) {
    (void)unused;
    const presto_loader *loader = native_loader_get((native_loader *)object);
    if (loader == NULL)
        return NULL;
    presto_loader_stats stats;
    presto_loader_get_stats(loader, &stats);
    return Py_BuildValue(
        "{sdsKsKsKsKsKsKsIsKsKsdsKsKsKsKsKsKsKsKsKsKsNsN}", "wall_s", seconds(stats.wall_ns),
        "samples", stats.samples, "skipped", stats.skipped, "dropped", stats.dropped, "batches",
        stats.batches, "read_bytes", stats.read_bytes, "delivered_bytes", stats.delivered_bytes,
        "threads", stats.threads, "queued_bytes", (uint64_t)stats.queued_bytes, "peak_queued_bytes",
        (uint64_t)stats.peak_queued_bytes, "queue_fill", stats.queue_fill, "read_ahead_samples",
        stats.read_ahead_samples, "cached_samples", stats.cached_samples, "missed_samples",
        stats.missed_samples, "cache_bytes", stats.cache_bytes, "cache_written_bytes",
        stats.cache_written_bytes, "cache_damaged_blocks", stats.cache_damaged_blocks,
        "cache_evicted_blocks", stats.cache_evicted_blocks, "requests", stats.requests,
        "request_retries", stats.request_retries, "request_seconds", stats.request_seconds, "times",
        times_of(&stats), "steps", steps_of(loader));
}

PyObject *native_loader_verdict(PyObject *object, PyObject *unused) {
    (void)unused;
    const presto_loader *loader = native_loader_get((native_loader *)object);
    if (loader == NULL)
        return NULL;
    presto_verdict verdict;
    presto_loader_verdict(loader, &verdict);
    return Py_BuildValue("{sssssdss}", "stage", presto_stage_name(verdict.stage), "step",
                         verdict.step_name == NULL ? "" : verdict.step_name, "share", verdict.share,
                         "text", verdict.text);
}
