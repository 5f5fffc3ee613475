/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the rooms of loader/ and the folders above them see of sources and loaders, beside the public
 * headers.
 */
#ifndef PRESTO_LOADER_INTERNAL_H
#define PRESTO_LOADER_INTERNAL_H

#include <presto/loader.h>
#include <presto/source.h>

/* ---- loaders ---- */

/**
 * Open a loader over `source` running `plan` (NULL: no steps, samples are delivered as they are).
 * Both are borrowed and must outlive the loader (batches may outlive all of them), as must what
 * `options` point to: cache.plan, the codec's dictionary, the users of the callbacks.
 *
 * `options` NULL: the defaults. With PRESTO_OUTPUT_RECORDS batch_samples bounds the records
 * handed out at a time.
 * Returns: PRESTO_ERR_ARGUMENT (options that contradict each other; the message says which),
 *          PRESTO_ERR_MEMORY, PRESTO_ERR_IO (a thread could not be started; cache.dir cannot be
 *          made, read or written); with a state also what presto_loader_load_state fails with (that
 *          nothing remains is no failure: the stream ends at once).
 */
presto_status presto__loader_open(presto_source *source, const presto_plan *plan,
                                  const presto_loader_options *options, presto_loader **loader_out,
                                  presto_error *err);

/**
 * What it reads: its labels, notes, numbers. Borrowed.
 * Threads: the consumer's.
 */
const presto_source *presto__loader_source(const presto_loader *loader);

/** How a stream is cut: into packets of so many samples, and these into parts of so many, the last
 * one perhaps of fewer. A thread takes a part at a time, and reads its samples one after another. */
typedef struct presto__portions {
    size_t packet_samples, part_samples;
} presto__portions;

/** Threads: any. */
presto__portions presto__loader_portions(const presto_loader *loader);

/* ---- sources ---- */

/**
 * The raw source that a pipeline describes, over `paths` (folders or single files; several are
 * taken in the given order, each sorted; none for a source that makes its samples). Samples: the
 * main feature (a PRESTO_STRING with the path for read-file, or a tensor), and as far as the source
 * has them `label` (int64 or float32) and `key` (string).
 * Returns: PRESTO_ERR_NOT_FOUND (no path, or nothing in it matches: the message says what was
 *          looked for), PRESTO_ERR_ARGUMENT (paths for a source that takes none),
 *          PRESTO_ERR_UNSUPPORTED (not in this build), PRESTO_ERR_IO, PRESTO_ERR_SYNTAX (label
 *          csv).
 * Owner:   caller.
 */
presto_status presto__source_open_raw(const presto_pipeline *pipeline, const char *const *paths,
                                      size_t path_count, presto_source **source_out,
                                      presto_error *err);

/** What a raw source is opened with. */
typedef struct presto__raw_request {
    const presto_pipeline *pipeline;
    const char *const *paths;
    size_t path_count;
    /* Of it: may samples be counted later (count_later), and how are indexes kept? For sources whose
     * samples must be searched for. NULL: they are counted, no index is kept. */
    const presto_shard_options *shard;
} presto__raw_request;

/** As presto__source_open_raw. */
presto_status presto__source_open_request(const presto__raw_request *request,
                                          presto_source **source_out, presto_error *err);

/** The records of a dataset as samples. The dataset is borrowed and must outlive the source. */
presto_status presto__source_open_dataset(presto_dataset *dataset, presto_source **source_out,
                                          presto_error *err);

/**
 * The same records as they are stored, whatever they hold: neither decompressed nor parsed. A
 * sample has one feature, PRESTO_RECORD_FEATURE, a string. The dataset is borrowed and must outlive
 * the source.
 */
presto_status presto__source_open_records(presto_dataset *dataset, presto_source **source_out,
                                          presto_error *err);

void presto__source_free(presto_source *source);

/**
 * A text that changes if a file of the source is added, removed, renamed or written: 32 hex digits,
 * a digest of their paths, sizes and times. Nothing is read from the files. Of all samples, whatever
 * part of them was chosen; they must be counted.
 * Returns: PRESTO_OK; PRESTO_ERR_MEMORY.
 */
presto_status presto__source_identify(const presto_source *source,
                                      char text_out[PRESTO_SOURCE_IDENTITY_BYTES],
                                      presto_error *err);

/**
 * Keep only the first `count` samples (a smaller count for a sample sweep); count >=
 * presto_source_count changes nothing. Samples that are not counted yet are counted now. Not for a
 * mix, whose proportions it would change.
 */
void presto__source_truncate(presto_source *source, uint64_t count);

/**
 * Leave only one part of the samples, as presto_partition says.
 * With `even_samples`, as many samples are left: equal stretches of samples that follow one
 * another, each in the middle of one of as many equal stretches of the source. They are 16, or more
 * if each would have more than 1 MiB, or one per sample if there are fewer. Of a source that can
 * only be read from its start, the first samples are left.
 * Samples that are not counted yet are counted now. From then on,
 * presto_source_count counts these, and numbers of samples are among these.
 * Returns: PRESTO_OK; PRESTO_END (even samples are the first ones); PRESTO_ERR_ARGUMENT (as
 *          presto_partition_check, or both a ratio and `even_samples`; a mix, whose inputs are split
 *          instead); PRESTO_ERR_NOT_FOUND (there is no sample in the part).
 */
presto_status presto__source_choose(presto_source *source, const presto_partition *partition,
                                    presto_error *err);

/** What is known of its values; nothing if there is none. */
presto_tensor_spec presto__source_main_spec(const presto_source *source);

/**
 * Drop the page cache of everything this source reads (posix_fadvise(DONTNEED) per file after
 * sync), for a cold epoch.
 */
presto_status presto__source_drop_cache(presto_source *source, presto_error *err);

#endif
