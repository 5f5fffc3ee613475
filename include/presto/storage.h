/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where bytes live: reading a small object as a whole; who asks there, and how far it is.
 *
 * And another storage than this machine's, in a few figures: to plan for it, or to play it. A loader
 * that plays a storage (presto_loader_options.storage) reads no faster than it would there; a sweep
 * (presto_sweep_options.storage) loads so in its cold epochs.
 *
 * What counts as a read: bytes that a thread takes off a file one after the other. A call that goes
 * on where the thread's last one in the same file ended is part of the same read, as systems and
 * servers read ahead. Anything else begins a read: another file, a place further on, a shuffled
 * record.
 *
 * How long a read takes: its bytes pass through the bandwidth that all threads share, and through
 * the thread's own rate; it takes its turn among the reads per second; whichever is the longest
 * counts, and the latency comes on top. Each file that is opened takes `open_s` before.
 */
#ifndef PRESTO_STORAGE_H
#define PRESTO_STORAGE_H

#include <stddef.h>

#include <presto/api.h>
#include <presto/span.h>
#include <presto/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Append the content of the regular file `path` to `out`, which stays as it was on failure.
 *
 * Returns: PRESTO_ERR_NOT_FOUND (there is no such file); PRESTO_ERR_IO (it cannot be read, or is a
 *          folder, named pipe, socket or device, none of which is waited for); PRESTO_ERR_LIMIT
 *          (more than `most_bytes`); PRESTO_ERR_MEMORY.
 * Threads: any; no shared state.
 */
PRESTO_API presto_status presto_file_read(const char *path, uint64_t most_bytes, presto_buffer *out,
                                          presto_error *err);

/** All 0: no storage is meant. A field that is 0 is no limit. */
typedef struct presto_storage {
    double bytes_per_s;            /* of all threads together */
    double bytes_per_s_per_thread; /* of one thread */
    double reads_per_s;            /* of all threads together */
    double latency_s;              /* of each read */
    double open_s;                 /* of opening a file */
    uint64_t reserved[3];          /* 0 */
} presto_storage;

/**
 * Parse "bandwidth=910MB/s,per-thread=219MB/s,iops=222000,latency=8us,open=65ms", of which any part
 * may be missing, or the name of a profile, which such parts may follow and change: "nvme",
 * "object-store,latency=30ms".
 *
 * Units:   bandwidth, per-thread: B/s, kB/s, MB/s, GB/s, TB/s (powers of ten), KiB/s, MiB/s, GiB/s,
 *          TiB/s, kbit/s, Mbit/s, Gbit/s. latency, open: ns, us, ms, s. iops: reads per second.
 * Returns: PRESTO_OK; PRESTO_ERR_ARGUMENT: the message names the part, and what is possible.
 */
PRESTO_API presto_status presto_storage_parse(const char *text, presto_storage *storage_out,
                                              presto_error *err);

#define PRESTO_STORAGE_TEXT_BYTES 160

#define PRESTO_PLACE_NAME_BYTES 64
#define PRESTO_PLACE_URL_BYTES 256

/** What is known of a place that bytes are read from: who asks there, and how far it is. */
typedef struct presto_place_facts {
    double round_trip_s; /* median of some requests for a byte; 0: not measured */
    double bytes_per_s;  /* of one request after the other, on one connection; 0: not measured */
    int64_t key_until_s; /* since 1970, when the key expires; INT64_MAX: it does not, or is none */
    uint64_t bytes;      /* of the object */
    char kind[PRESTO_PLACE_NAME_BYTES]; /* "file", "http", "s3", "gs", "hf" */
    char
        provider[PRESTO_PLACE_NAME_BYTES]; /* which one gave the key; "": nobody is asked for one */
    char key[PRESTO_PLACE_NAME_BYTES];     /* its beginning and end; the rest is "..." */
    char region[PRESTO_PLACE_NAME_BYTES];  /* "": the kind has none */
    char endpoint[PRESTO_PLACE_URL_BYTES]; /* "https://HOST"; "": the kind has none */
    uint64_t reserved[4];                  /* 0 */
} presto_place_facts;

/**
 * Look at the object at `path`, which may be a URL, as one who reads it would: find the key, open it,
 * ask for single bytes of it, and read up to 32 MiB.
 *
 * Returns: what opening and reading it fails with; *place_out then holds what was found before: kind,
 *          provider, key, region and endpoint, each "" if it was not.
 * Threads: any.
 */
PRESTO_API presto_status presto_place_look(const char *path, presto_place_facts *place_out,
                                           presto_error *err);

#ifdef __cplusplus
}
#endif

#endif
