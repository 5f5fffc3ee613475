/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Codecs of single records: the payload of a frame is one standard frame of the codec and nothing
 * of ours around it, so that any tool of that codec decodes it.
 *
 * A presto_codec_spec says which codec and how (from text such as "zstd:3"); a presto_codec is the
 * working state of one thread (contexts, scratch), reused for every record.
 */
#ifndef PRESTO_CODEC_H
#define PRESTO_CODEC_H

#include <presto/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Largest decompressed record accepted by default: a bomb stops here. */
#define PRESTO_CODEC_MAX_RECORD_BYTES ((uint64_t)2 << 30)
#define PRESTO_CODEC_TEXT_BYTES 64
#define PRESTO_CODEC_MAX_DICTIONARY_BYTES ((uint64_t)64 << 20)

typedef struct presto_codec_type presto_codec_type; /* static descriptor, one per codec */
typedef struct presto_codec presto_codec;

/** A codec with its parameters. A plain value: copy freely; the dictionary is borrowed. */
typedef struct presto_codec_spec {
    const presto_codec_type *type; /* static storage; never NULL once parsed */
    int level;                     /* the codec's own scale; its default filled in by parsing */
    bool bitshuffle;               /* blosc only: bit instead of byte shuffle */
    unsigned type_bytes;           /* element size that blosc's shuffles use; 0 = unknown (1) */
    bool wants_dictionary;         /* "+dict": to be trained on the dataset's own samples */
    presto_span dictionary;        /* the trained dictionary, borrowed; empty if none */
    bool wants_delta;              /* "+delta": bytes are stored as differences to a neighbour */
    unsigned delta_bytes;          /* how far back that neighbour is ("+delta3"); 0 = not known yet:
                                      it is fitted to what is stored */
} presto_codec_spec;

/**
 * Parse "CODEC[:LEVEL][+VARIANT...]", e.g. "none", "zstd:3", "lz4hc:9", "blosc-zstd:1+bitshuffle",
 * "zstd:3+dict", "zstd:1+delta3".
 * Returns: PRESTO_ERR_NOT_FOUND (unknown name; the message lists what there is),
 *          PRESTO_ERR_UNSUPPORTED (known, but this build lacks it), PRESTO_ERR_ARGUMENT (level or
 *          variant out of the codec's range; the message says the range).
 */
PRESTO_API presto_status presto_codec_parse(const char *text, presto_codec_spec *spec_out,
                                            presto_error *err);

/** Name of the i-th codec that this build has, from 0; NULL: there are no more. */
PRESTO_API const char *presto_codec_built_at(size_t i);

/**
 * Can every TensorFlow 2 read records in this codec, with tf.io.decode_compressed? zlib and gzip it
 * can; what only some versions read (2.21: zstd without variants) does not count.
 * Returns: PRESTO_ERR_ARGUMENT if not; the message lists those that it reads.
 */
PRESTO_API presto_status presto_codec_check_tensorflow(const presto_codec_spec *spec,
                                                       presto_error *err);

/**
 * Working state for one thread. The spec is copied; its dictionary must outlive the codec.
 * Returns: PRESTO_ERR_ARGUMENT if the spec still lacks its dictionary or its delta's distance.
 * Owner:   caller, presto_codec_free.
 * Threads: one at a time.
 */
PRESTO_API presto_status presto_codec_new(const presto_codec_spec *spec, presto_codec **codec_out,
                                          presto_error *err);
PRESTO_API void presto_codec_free(presto_codec *codec);

/** Where a decompressed record goes. */
typedef struct presto_codec_room {
    presto_arena *arena;
    uint64_t max_bytes; /* a larger record is PRESTO_ERR_LIMIT */
} presto_codec_room;

/**
 * Decompress one frame that fills `in` exactly.
 *
 * Owner:   *out_out is memory of room->arena (valid until its reset), or borrows from `in` (codec
 *          none).
 * Limit:   a record that says or turns out to be larger than room->max_bytes gives PRESTO_ERR_LIMIT
 *          before that much memory is asked for.
 * Returns: PRESTO_OK, PRESTO_ERR_CORRUPT, PRESTO_ERR_TRUNCATED, PRESTO_ERR_LIMIT,
 *          PRESTO_ERR_MEMORY.
 */
PRESTO_API presto_status presto_codec_decompress(presto_codec *codec, presto_span in,
                                                 const presto_codec_room *room,
                                                 presto_span *out_out, presto_error *err);

/**
 * Guess a record's codec from its first bytes (zstd, lz4, gzip and zlib have signatures; else
 * none).
 */
PRESTO_API const char *presto_codec_guess(presto_span payload);

#ifdef __cplusplus
}
#endif

#endif
