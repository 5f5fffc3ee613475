/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sources: where samples come from. A source is a numbered sequence of samples: raw files, or the
 * records of a dataset. The loader reads it in blocks.
 */
#ifndef PRESTO_SOURCE_H
#define PRESTO_SOURCE_H

#include <presto/dataset.h>
#include <presto/pipeline.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct presto_source presto_source;

/**
 * One of the inputs of a mix (presto/mix.h). Borrowed from the source. Its samples are the numbers
 * of the mix from first_sample to before that of the next input: `samples` of them, and with
 * presto_stream_options.partition those among them that are in the part.
 */
typedef struct presto_source_part {
    const char *name; /* its path */
    double weight;    /* as given */
    uint64_t first_sample, samples;
    uint64_t epoch_samples; /* so many of its samples are in each epoch of the mix */
    uint64_t reserved[3];
} presto_source_part;

/** The inputs of a mix; NULL: it is none, and *count_out is 0. Borrowed. */
PRESTO_API const presto_source_part *presto_source_parts(const presto_source *source,
                                                         size_t *count_out);

/** The one feature of raw records: its bytes are the payload of the frame. */
#define PRESTO_RECORD_FEATURE "record"

/** Number of samples; PRESTO_COUNT_UNKNOWN as long as they are not counted (a dataset opened with
 * count_later). A loader in order or through a buffer, with one rank and no cache on disk, begins
 * at once and counts on the way; any other counts them when it is opened. Any thread. */
PRESTO_API uint64_t presto_source_count(const presto_source *source);
/** Bytes on disk over all samples. */
PRESTO_API uint64_t presto_source_bytes(const presto_source *source);
#define PRESTO_SOURCE_IDENTITY_BYTES 33

/**
 * A part of a source's samples. The parts are disjoint and together complete. A sample's part depends
 * on its name and the seed: files that are added change the part of no other sample. The name is the
 * path below the folder that was given; of samples in a file of many, the file's name and the number
 * there; in a dataset that presto-write made, the number. So the ratio is met as draws meet it, not
 * exactly.
 */
typedef struct presto_partition {
    const char *ratio; /* two to 16 whole numbers: "90/10", "80/10/10". NULL: all samples */
    const char *part;  /* of two: "train" or "eval"; of three: "train", "validation" or "test"; or a
                          number from "1" on */
    uint64_t seed;
    uint64_t even_samples; /* instead of a ratio: so many samples to measure, from all over the
                              source. 0: not so */
    uint64_t reserved[1];
} presto_partition;

/**
 * Is there such a part of such a ratio? All samples (both NULL) is one, too.
 * Returns: PRESTO_OK; PRESTO_ERR_ARGUMENT: the message begins with "split" or "part", the word for
 *          a ratio or its part in the programs and in Python.
 */
PRESTO_API presto_status presto_partition_check(const presto_partition *partition,
                                                presto_error *err);

/** Declared features, as far as known (foreign TFRecords: none). Borrowed. */
PRESTO_API const presto_feature_spec *presto_source_features(const presto_source *source,
                                                             size_t *count_out);
/** Name of the main feature; NULL if not known. Borrowed. */
PRESTO_API const char *presto_source_main_feature(const presto_source *source);
/**
 * Names of the labels in their numeric order (parent folders); *count_out = 0 if there are none.
 * Borrowed.
 */
PRESTO_API const char *const *presto_source_label_names(const presto_source *source,
                                                        size_t *count_out);

/**
 * What the user should know of how the source was found: files left out, and of which kinds; labels
 * that may not be what was meant. A line of text each; *count_out may be 0. Borrowed.
 */
PRESTO_API const char *const *presto_source_notes(const presto_source *source, size_t *count_out);

/** What a note is for. */
typedef enum presto_note_kind {
    PRESTO_NOTE_CAUTION = 0, /* it may not be what was meant: files left out, labels, ... */
    PRESTO_NOTE_CONFIRM = 1  /* what was asked for, in numbers: a part, the shares of a mix */
} presto_note_kind;

/** The kind of note i, which is below presto_source_notes' count. */
PRESTO_API presto_note_kind presto_source_note_kind(const presto_source *source, size_t i);

#ifdef __cplusplus
}
#endif

#endif
