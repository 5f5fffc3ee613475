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
 * What it reads: its labels, notes, numbers. Borrowed.
 * Threads: the consumer's.
 */
const presto_source *presto__loader_source(const presto_loader *loader);

/* ---- sources ---- */

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
