/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mixes: several inputs in one stream, in given proportions.
 *
 * An epoch of a mix has a fixed number of samples of each input, spread evenly over it: in each 64
 * positions every input has its share, to within a sample or two, in random order. The sequence is
 * a function of the inputs, weights and seed and nothing else, like that of any stream.
 *
 * Each input has epochs of its own, which go on from one epoch of the mix to the next. In each of
 * them every sample of the input comes exactly once. The samples of an input come in the order in
 * which a stream of this input alone would deliver them with the same seed and shuffle. Random
 * steps draw by the epoch of the input, so a repeated sample is augmented anew, and by the number
 * of the sample in the mix, which counts the samples of the inputs before it, too.
 */
#ifndef PRESTO_MIX_H
#define PRESTO_MIX_H

#include <presto/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What a weight is, and where an epoch of the mix ends. */
typedef enum presto_mix_epoch {
    /* Weights are shares of the stream. An epoch ends when each input has come once; inputs that
     * end earlier begin again. */
    PRESTO_MIX_LONGEST = 0,
    /* Weights are shares of the stream. An epoch ends when the first input has come once; the
     * others go on where they are in the next epoch. */
    PRESTO_MIX_SHORTEST = 1,
    /* Weights are epochs of the inputs: 0.5 takes half of an input in each epoch of the mix, and 2
     * takes it twice. */
    PRESTO_MIX_WEIGHTS = 2
} presto_mix_epoch;

/** The most inputs of a mix. */
#define PRESTO_MIX_MOST_INPUTS 64

/** One input: a dataset, TFRecord files or a raw source, as presto_stream_open takes them. */
typedef struct presto_mix_input {
    const char *path; /* borrowed during the call */
    double weight;    /* more than 0, at most 1e9 */
    uint64_t reserved[2];
} presto_mix_input;

typedef struct presto_mix_options {
    size_t struct_bytes;            /* set by presto_mix_options_defaults */
    const presto_mix_input *inputs; /* borrowed during the call. Required */
    size_t input_count;             /* 1 to PRESTO_MIX_MOST_INPUTS */
    presto_mix_epoch epoch;         /* default PRESTO_MIX_LONGEST */
    /* How each input is opened; a partition is one of each input. If its loader options choose
     * features, only these need to agree. Borrowed during the call. NULL: the defaults */
    const presto_stream_options *stream;
} presto_mix_options;

PRESTO_API void presto_mix_options_init(presto_mix_options *options, size_t struct_bytes);
static inline void presto_mix_options_defaults(presto_mix_options *options) {
    presto_mix_options_init(options, sizeof *options);
}

/**
 * Open several inputs as one stream, for presto_loader_open_stream: `dataset` is NULL, and
 * presto_source_parts of its source tells the inputs. Sample numbers of batches are those of the
 * mix. The same steps must remain for all inputs, and their features must agree: in name, dtype,
 * encoding and number of dimensions.
 *
 * Loaders of a mix do everything that others do but PRESTO_SHUFFLE_BUFFER: order.shuffle is that of
 * each input. Ranks share the positions of the mix.
 *
 * Returns: as presto_stream_open; PRESTO_ERR_ARGUMENT: no inputs or too many, a weight that is no
 *          positive number, an input without samples, inputs that do not agree (the message names
 *          what differs and both inputs).
 */
PRESTO_API presto_status presto_stream_open_mix_sized(const presto_mix_options *options,
                                                      presto_stream *stream_out, presto_error *err);
static inline presto_status presto_stream_open_mix(const presto_mix_options *options,
                                                   presto_stream *stream_out, presto_error *err) {
    stream_out->struct_bytes = sizeof *stream_out;
    return presto_stream_open_mix_sized(options, stream_out, err);
}

#ifdef __cplusplus
}
#endif

#endif
