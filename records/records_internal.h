/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the rooms of records/ and the folders above them see of it, beside its public headers: frames,
 * datasets that are read before they are counted, Examples by their layout. The rooms define it.
 */
#ifndef PRESTO_RECORDS_INTERNAL_H
#define PRESTO_RECORDS_INTERNAL_H

#include <presto/codec.h>
#include <presto/dataset.h>
#include <presto/example.h>
#include <presto/inspect.h>

/* ---- frames ---- */

/** What a frame must keep to. */
typedef struct presto__frame_rules {
    uint64_t max_payload_bytes; /* a larger payload is PRESTO_ERR_LIMIT */
    presto_checks verify;
} presto__frame_rules;

/**
 * Parse one frame at the start of `in`.
 *
 * Shape:   in starts with a frame; more may follow it.
 * Units:   all sizes in bytes; offset is where `in` starts in the file (for the error).
 * Owner:   *payload_out borrows from `in`; the frame's size is payload_out->bytes + 16.
 * Returns: PRESTO_OK; PRESTO_END if in.bytes == 0; PRESTO_ERR_TRUNCATED (in ends inside the frame),
 *          PRESTO_ERR_CORRUPT (a CRC differs), PRESTO_ERR_LIMIT (the length
 *          is larger than the rules allow).
 * Threads: any; no shared state.
 * Source:  TensorFlow record_writer.h (layout), RFC 3720 B.4 (CRC-32C).
 */
presto_status presto__frame_parse(presto_span in, uint64_t offset, const presto__frame_rules *rules,
                                  presto_span *payload_out, presto_error *err);

/**
 * Check a header alone: the payload's length out of the first 12 bytes.
 * Returns: as presto__frame_parse, without looking at the payload.
 */
presto_status presto__frame_parse_header(presto_span in, uint64_t offset,
                                         const presto__frame_rules *rules,
                                         uint64_t *payload_bytes_out, presto_error *err);

/** Write the 12 header bytes for a payload of `payload_bytes`. */
void presto__frame_write_header(uint64_t payload_bytes,
                                uint8_t header_out[PRESTO_FRAME_HEADER_BYTES]);

/** Write the 4 footer bytes for `payload`. */
void presto__frame_write_footer(presto_span payload, uint8_t footer_out[PRESTO_FRAME_FOOTER_BYTES]);

/** Append a whole frame around `payload` to `out`. */
presto_status presto__frame_append(presto_buffer *out, presto_span payload, presto_error *err);

/* ---- codecs ---- */

/**
 * The canonical text of a spec, which presto_codec_parse reads back; levels that are the default
 * are left out.
 */
char *presto__codec_format(const presto_codec_spec *spec, char text_out[PRESTO_CODEC_TEXT_BYTES]);

/**
 * Compress `in` into one frame of the codec, appended to `out`. No allocation once `out` has grown.
 * Returns: PRESTO_OK, PRESTO_ERR_MEMORY, PRESTO_ERR_LIMIT (input larger than the codec's format can
 * hold).
 */
presto_status presto__codec_compress(presto_codec *codec, presto_span in, presto_buffer *out,
                                     presto_error *err);

/**
 * Fit the spec to the tensors that will be stored: type_bytes from the dtype, and for "+delta"
 * without a number the distance of neighbours along a row (of the last dimension where that looks
 * like channels, else of one element).
 * Returns: PRESTO_ERR_ARGUMENT if "+delta" is asked for and `tensor` (NULL: encoded bytes) holds no
 *          integers.
 */
presto_status presto__codec_spec_fit(presto_codec_spec *spec, const presto_tensor_spec *tensor,
                                     presto_error *err);

/** Serialized samples, back to back. Borrowed. */
typedef struct presto__codec_samples {
    presto_span bytes;
    const size_t *sample_bytes; /* of each */
    size_t count;
} presto__codec_samples;

/**
 * Train a dictionary for a spec with wants_dictionary. Appended to dictionary_out, at most
 * max_bytes (0: 112640, the zstd tool's default). The same samples give the same bytes.
 * Returns: PRESTO_ERR_ARGUMENT (too few or too small samples to learn from; the codec takes none),
 *          PRESTO_ERR_MEMORY.
 */
presto_status presto__codec_train(const presto_codec_spec *spec,
                                  const presto__codec_samples *samples, size_t max_bytes,
                                  presto_buffer *dictionary_out, presto_error *err);

/**
 * Name of the i-th codec of this design, NULL past the last; *built_out (may be NULL): in this
 * build?
 */
const char *presto__codec_name_at(size_t i, bool *built_out);

/* ---- what is packed as a whole ---- */

/** How a file is packed, of texts. */
typedef enum presto__packing {
    PRESTO__NOT_PACKED,
    PRESTO__PACKED_GZIP,
    PRESTO__PACKED_ZSTD
} presto__packing;

/** By the first bytes of a file. */
presto__packing presto__packing_of(presto_span head);
/** "gzip", "zstd" */
const char *presto__packing_name(presto__packing packing);

/** Unpacks from front to back, member after member. One thread. */
typedef struct presto__unpacker presto__unpacker;

/** PRESTO_ERR_UNSUPPORTED: not in this build; PRESTO_ERR_MEMORY. */
presto_status presto__unpacker_new(presto__packing packing, presto__unpacker **unpacker_out,
                                   presto_error *err);
void presto__unpacker_free(presto__unpacker *unpacker);
/** Is a member complete, and no other has begun? */
bool presto__unpacker_is_between(const presto__unpacker *unpacker);
/**
 * Unpack some of *in_io into the room that `to` has; what is left of the input is in *in_io. Without input,
 * only what was held back comes.
 * Returns: PRESTO_OK; PRESTO_ERR_CORRUPT: what came before is right; PRESTO_ERR_MEMORY.
 */
presto_status presto__unpacker_run(presto__unpacker *unpacker, presto_span *in_io,
                                   presto_buffer *to, presto_error *err);

/* ---- Examples ---- */

/** Append a serialized TensorProto (dtype, shape, tensor_content; string_val for strings). */
presto_status presto__tensor_proto_append(presto_buffer *out, const presto_tensor *tensor,
                                          presto_error *err);

/**
 * Examples whose samples have the same features, as the rows of a table: names are sorted and
 * written once.
 * Threads: one at a time.
 */
typedef struct presto__example_rows presto__example_rows;

/** `names`, in bytewise order and distinct, are copied. Owner: caller, presto__example_rows_free. */
presto_status presto__example_rows_new(const presto_span *names, size_t count,
                                       presto__example_rows **rows_out, presto_error *err);
/** NULL is fine. */
void presto__example_rows_free(presto__example_rows *rows);

/**
 * Append the Example of features that have these names in this order: the bytes of
 * presto_example_append. The caller has made sure that dtypes and ranks go with the encodings, and
 * that the size of each value fits 61 bits.
 * Returns: PRESTO_OK, PRESTO_ERR_MEMORY, PRESTO_ERR_LIMIT (over 2 GiB - 1).
 */
presto_status presto__example_rows_append(presto__example_rows *rows, presto_buffer *out,
                                          const presto_feature *features, presto_error *err);

/**
 * What the Examples before looked like: names and order. The records of a dataset are mostly alike,
 * so that the next one is compared with what is remembered, byte by byte, instead of being parsed.
 *
 * Memory:  at most 2 MiB, whatever the Examples hold.
 * Threads: one at a time.
 */
typedef struct presto__example_layout presto__example_layout;

/**
 * A layout that knows no Example. `specs` as in presto_example_parse; may be NULL.
 * Owner:   caller (presto__example_layout_free); borrows specs->list until then.
 * Returns: PRESTO_OK; PRESTO_ERR_MEMORY.
 */
presto_status presto__example_layout_new(const presto_example_specs *specs,
                                         presto__example_layout **layout_out, presto_error *err);

/** NULL is fine. */
void presto__example_layout_free(presto__example_layout *layout);

/**
 * presto_example_parse with the layout's specs: the same sample, the same errors, faster if the
 * Example is like those before. An Example that is not is remembered.
 */
presto_status presto__example_layout_parse(presto__example_layout *layout, presto_span in,
                                           presto_arena *arena, presto_sample *sample_out,
                                           presto_error *err);

/** A feature of an Example, not decoded. */
typedef struct presto__example_value {
    uint32_t feature;         /* number of the name in the layout */
    uint32_t string_count;    /* of PRESTO_ENCODE_BYTES */
    presto_encoding encoding; /* TENSOR: by its spec; NONE: no kind is set */
    bool is_vector;           /* by its spec: a single value has rank 1, not 0 */
    uint32_t name_bytes;      /* see presto__example_value_name */
    uint32_t name_before;     /* how many bytes before `bytes` the name is */
    presto_span
        bytes; /* FLOAT: the numbers. INT64: varints, see presto__example_value_int64s. TENSOR:
                        * the TensorProto. BYTES: the string if string_count is 1, else the
                        * BytesList */
} presto__example_value;

/** The features of an Example in its order, without those that only_these leaves out. */
typedef struct presto__example_values {
    const presto__example_value *list; /* the layout's, until its next call */
    size_t count;
    size_t feature_count; /* names in the layout; feature is below */
    uint64_t generation;  /* changes when names are numbered anew; not 0 */
    uint64_t order;       /* not 0: all lists of this order have the same features, encodings and
                           * string counts at the same places */
} presto__example_values;

/** The name of the feature, in the Example. */
static inline presto_span presto__example_value_name(const presto__example_value *value) {
    return presto_span_of(value->bytes.data - value->name_before, value->name_bytes);
}

/**
 * Find the values of an Example without decoding them.
 * Owner:   bytes borrow from `in`.
 * Returns: false if the Example is not like those that the layout knows, or not of the usual form
 *          (map entries with key before value, one list per feature, numbers packed in one run,
 *          each name once). It may still be good: use presto__example_layout_parse.
 */
bool presto__example_layout_match(presto__example_layout *layout, presto_span in,
                                  presto__example_values *values_out);

/** How many numbers or strings the value has, if its numbers are well-formed. */
size_t presto__example_value_count(const presto__example_value *value);

/**
 * Decode an INT64 value of presto__example_layout_match into `count` numbers. False: there are not
 * exactly as many, or they are malformed; numbers_out may be overwritten.
 */
bool presto__example_value_int64s(const presto__example_value *value, size_t count,
                                  int64_t *numbers_out);

/**
 * The next string of a BYTES value with any number of strings. *at_io is 0 at first. False: there
 * are no more.
 */
bool presto__example_value_next(const presto__example_value *value, size_t *at_io,
                                presto_span *string_out);

/* ---- one shard ---- */

presto_file_compression presto__shard_compression(const presto_shard *shard);

/** Damaged ranges that take a record's place; 0 unless indexing was tolerant. */
uint64_t presto__shard_lost_ranges(const presto_shard *shard);

/**
 * Offsets of the frames of records [first, first + count) and, as one more value, where the last of
 * them ends, in bytes of the (decompressed) file. first + count <= presto_shard_records.
 * Owner:   borrowed, valid as long as the shard.
 * Threads: any.
 * Returns: PRESTO_OK; PRESTO_ERR_ARGUMENT; where an index does not hold and has to be replaced,
 *          also what presto_shard_index returns.
 */
presto_status presto__shard_offsets(presto_shard *shard, uint64_t first, uint64_t count,
                                    const uint64_t **offsets_out, presto_error *err);

/** What a step of a walk (presto__dataset_walk_step) may take. */
typedef struct presto__walk_limits {
    size_t records;             /* at most, >= 1 */
    size_t bytes;               /* about so many; a larger record is taken alone */
    const presto_arena *grower; /* asked before a block grows (presto_arena_may_grow); NULL: none */
} presto__walk_limits;

/**
 * Records that stand next to each other in a shard, as a step of a walk found them. Zero-initialise
 * it and use it for step after step; presto__stretch_done frees.
 */
typedef struct presto__stretch {
    size_t shard;   /* in the dataset */
    uint64_t first; /* number of its first record in the shard */
    size_t count;
    bool is_read;       /* their bytes are in the block; false: the shard has an index, and
                           presto_shard_fetch reads them */
    bool is_last;       /* after `fault`, nothing can be read */
    presto_error fault; /* status < 0: its one record is none, for this reason */
    /* private to records/ */
    presto_buffer offsets_;
} presto__stretch;

void presto__stretch_done(presto__stretch *stretch);

/**
 * Ask the system to read records [first, first + count) into the page cache, without waiting: where
 * the next reads are known but do not follow each other. A hint: nothing can fail. Does nothing to
 * compressed files, nor to records that are not known.
 * Threads: any number at once.
 */
void presto__shard_will_read(presto_shard *shard, uint64_t first, uint64_t count);

/** Bytes of a shard's file. */
typedef struct presto__shard_bytes {
    uint64_t start, end;
    uint64_t wanted; /* of these, will be read */
} presto__shard_bytes;

/** Where records [first, first + count) stand. False: that is not known, or the file is compressed. */
bool presto__shard_find_bytes(presto_shard *shard, uint64_t first, uint64_t count,
                              presto__shard_bytes *bytes_out);
/** As presto__shard_will_read, of bytes that presto__shard_find_bytes found, or that lie between
 * such. */
void presto__shard_will_read_bytes(presto_shard *shard, const presto__shard_bytes *bytes);

/* ---- writing a shard ---- */

typedef struct presto__shard_writer presto__shard_writer;

typedef struct presto__shard_writer_options {
    size_t struct_bytes;                 /* set by presto__shard_writer_options_defaults */
    presto_file_compression compression; /* default PRESTO_FILE_PLAIN */
    int compression_level;               /* 1..9, default 6 */
    bool write_index;                    /* default true */
    bool sync;                           /* fsync file and folder at finish; default true */
} presto__shard_writer_options;

void presto__shard_writer_options_init(presto__shard_writer_options *options, size_t struct_bytes);

static inline void presto__shard_writer_options_defaults(presto__shard_writer_options *options) {
    presto__shard_writer_options_init(options, sizeof *options);
}

/** What a finished shard amounts to. */
typedef struct presto__shard_summary {
    size_t struct_bytes; /* as the program knows it; set by the function that fills it */
    uint64_t records;
    uint64_t stored_bytes;  /* size of the file */
    uint64_t payload_bytes; /* sum of the payloads as framed (after the record codec) */
    uint32_t crc32c;        /* of the whole file */
} presto__shard_summary;

/**
 * Begin the object `path`, of any kind that can be written. A file has a temporary name beside it
 * (".<name>.<random>.partial") and takes its own in presto__shard_writer_finish, so that nothing
 * half-written looks whole.
 */
presto_status presto__shard_writer_open(const char *path,
                                        const presto__shard_writer_options *options,
                                        presto__shard_writer **writer_out, presto_error *err);

/**
 * Frame and append one payload.
 * Threads: one at a time.
 */
presto_status presto__shard_writer_append(presto__shard_writer *writer, presto_span payload,
                                          presto_error *err);

/**
 * Flush, write the index, give both their names; of a file: fsync, rename, fsync the folder. Over a
 * network the index comes second. On failure nothing is left under `path`.
 */
presto_status presto__shard_writer_finish_sized(presto__shard_writer *writer,
                                                presto__shard_summary *summary_out,
                                                presto_error *err);

static inline presto_status presto__shard_writer_finish(presto__shard_writer *writer,
                                                        presto__shard_summary *summary_out,
                                                        presto_error *err) {
    if (summary_out != NULL)
        summary_out->struct_bytes = sizeof *summary_out;
    return presto__shard_writer_finish_sized(writer, summary_out, err);
}

/** Free; if not finished, remove what was written. NULL is fine. */
void presto__shard_writer_free(presto__shard_writer *writer);

/**
 * Append `count` records that are framed already, back to back in `frames`; frame_bytes[i] is the
 * size of the i-th whole frame. The CRCs are not checked again.
 */
presto_status presto__shard_writer_append_frames(presto__shard_writer *writer, presto_span frames,
                                                 const uint32_t *frame_bytes, size_t count,
                                                 presto_error *err);

/**
 * Write <data_path>.index: offsets of `count` records (count + 1 values, the last is the end).
 * Bytes: docs/format.md, with the CRC of the whole file, which is read for it. Atomic (temporary
 * name, rename).
 */
presto_status presto__shard_index_write(const char *data_path, const uint64_t *offsets,
                                        uint64_t count, uint64_t data_bytes, presto_error *err);

/* ---- dataset.json ---- */

/** Frees what the struct holds, and empties it. */
void presto__dataset_info_free(presto_dataset_info *info);

/**
 * Write `dir`/dataset.json: temporary name, fsync, rename, fsync of the folder (both only with
 * `sync`, without which a crash of the machine may lose it). Over a network, PRESTO_ERR_BUSY if one
 * stands there. Fills info->id.
 */
presto_status presto__dataset_info_write(const char *dir, presto_dataset_info *info, bool sync,
                                         presto_error *err);

/**
 * Read `dir`/dataset.json. *info_out is the caller's to free.
 * Returns: PRESTO_ERR_NOT_FOUND if there is none; PRESTO_ERR_CORRUPT if it is not ours, not whole,
 *          or contradicts itself: more records than a shard's bytes can hold, the same feature or
 *          shard twice, more than PRESTO_MAX_FEATURES.
 */
presto_status presto__dataset_info_read(const char *dir, presto_dataset_info *info_out,
                                        presto_error *err);

/** Parse the text of a dataset.json (`file` only for messages). */
presto_status presto__dataset_info_parse(presto_span json, const char *file,
                                         presto_dataset_info *info_out, presto_error *err);

/* ---- datasets ---- */

/** Which checks it is read with. */
presto_checks presto__dataset_checks(const presto_dataset *dataset);

/** Are its shards read past damage (presto_shard_options.tolerate)? */
bool presto__dataset_tolerates(const presto_dataset *dataset);

/** Close the files that no thread reads from. They are opened again when one does. Any thread. */
void presto__dataset_close_idle(presto_dataset *dataset);

/** Number of the first record of shard i (i == shard_count: the total); PRESTO_COUNT_UNKNOWN as
 * long as the shards before it are not counted. */
uint64_t presto__dataset_shard_first(const presto_dataset *dataset, size_t i);

/** Stored bytes per record on average over the dataset, at least 1; a guess from the first records
 * as long as they are not counted. */
uint64_t presto__dataset_mean_bytes(const presto_dataset *dataset);

/**
 * Count all records now, by the headers of what is not counted yet.
 * Returns: as presto_dataset_open.
 * Threads: any.
 */
presto_status presto__dataset_count(presto_dataset *dataset, presto_error *err);

/**
 * Begin to walk at record `number`: all records before it are passed over. One walk at a time.
 * Returns: PRESTO_OK: the next step of the walk gives `number`; presto__dataset_end_walk ends it.
 *          PRESTO_END: there is nothing to walk, all records are counted (also because somebody
 *          else walks, or has walked farther). What presto__dataset_count fails with.
 */
presto_status presto__dataset_begin_walk(presto_dataset *dataset, uint64_t number,
                                         presto_error *err);

/** Others may walk. What was found is kept. */
void presto__dataset_end_walk(presto_dataset *dataset);

/**
 * A walk that does not read: find records until `number` of them are known, or all there are. Those
 * before the last one may then be read by number, in any order, from presto__dataset_shard_with.
 * *known_out: how many are known, also on failure. Not after presto__dataset_walk_step.
 * Returns: PRESTO_OK; what presto__dataset_count fails with: nothing can be found after that.
 * Threads: any, one after the other.
 */
presto_status presto__dataset_pass(presto_dataset *dataset, uint64_t number, uint64_t *known_out,
                                   presto_error *err);

/**
 * A hint: shard i will be opened soon. Over a network, what opening it reads first is requested for
 * the thread's read-ahead. Does not wait.
 * Returns: false: not now, too much is requested already.
 */
bool presto__dataset_will_open(presto_dataset *dataset, size_t i);

/** As presto_dataset_shard_at, for reading up to `record` in it. As long as that is known, the
 * others are not counted for it. */
presto_status presto__dataset_shard_with(presto_dataset *dataset, size_t i, uint64_t record,
                                         presto_shard **shard_out, presto_error *err);

/**
 * A step of the walk: the next records are found, and read into `block` unless their shard has an
 * index. Their payloads are not checked. A damaged range is a stretch of one record with a fault,
 * as presto_shard_index says for `tolerate`; without it, the first fault is the last stretch.
 * Returns: PRESTO_OK; PRESTO_END: there are no more, and all are counted; PRESTO_ERR_MEMORY,
 *          PRESTO_ERR_IO, PRESTO_ERR_NOT_FOUND, PRESTO_ERR_CORRUPT (a file was replaced).
 * Threads: any, one after the other.
 */
presto_status presto__dataset_walk_step(presto_dataset *dataset, const presto__walk_limits *limits,
                                        presto_block *block, presto__stretch *stretch,
                                        presto_error *err);

/**
 * Check the records of a stretch that is read and has no fault: block->records then has them, as
 * after presto_shard_fetch.
 * Returns: PRESTO_OK; PRESTO_ERR_MEMORY.
 * Threads: any.
 */
presto_status presto__dataset_check_stretch(presto_dataset *dataset, const presto__stretch *stretch,
                                            presto_block *block, presto_error *err);

/** Why record i of a checked stretch is damaged. Returns its status. */
presto_status presto__dataset_describe_stretch(presto_dataset *dataset,
                                               const presto__stretch *stretch, size_t i,
                                               presto_block *block, presto_error *err);

/* ---- what a path is ---- */

/** Is this the folder of a dataset of ours: is there a dataset.json in it? */
presto_status presto__path_is_dataset(const char *path, bool *is_dataset_out, presto_error *err);

/**
 * Name of a file format by its first bytes ("jpeg", "wav", "parquet", "zip", "text", ...; the table
 * is in base/content.c), or NULL.
 */
const char *presto__content_name(presto_span bytes);

#endif
