/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looking into TFRecord files, whoever wrote them: what is in them, whether it is whole, saving
 * what can be saved, and storing it again in another codec or number of shards.
 */
#ifndef PRESTO_INSPECT_H
#define PRESTO_INSPECT_H

#include <presto/dataset.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- verify ---- */

/* name, value, text */
#define PRESTO_FAULT_LIST(X)                                                                       \
    X(PRESTO_FAULT_IO, 0, "unreadable")               /* open or read failed */                    \
    X(PRESTO_FAULT_LENGTH, 1, "damaged header")       /* the CRC of a record's length differs */   \
    X(PRESTO_FAULT_PAYLOAD, 2, "damaged record")      /* the CRC of its payload differs */         \
    X(PRESTO_FAULT_TRUNCATED, 3, "truncated")         /* the file ends within a record */          \
    X(PRESTO_FAULT_LIMIT, 4, "too large")             /* a record above the limit */               \
    X(PRESTO_FAULT_COMPRESSION, 5, "bad compression") /* of the whole file */                      \
    X(PRESTO_FAULT_CODEC, 6, "bad codec frame")       /* the record does not decompress */         \
    X(PRESTO_FAULT_EXAMPLE, 7, "bad example")         /* no well-formed Example or TensorProto */  \
    X(PRESTO_FAULT_INDEX, 8, "bad index")             /* the file's index is damaged or stale */   \
    X(PRESTO_FAULT_MANIFEST, 9, "not as in dataset.json") /* count, size or CRC of the file */     \
    X(PRESTO_FAULT_FOREIGN, 10, "foreign file")           /* the file is of another kind */

typedef enum presto_fault_kind {
#define PRESTO_FAULT_ENUM(name, value, text) name = value,
    PRESTO_FAULT_LIST(PRESTO_FAULT_ENUM)
#undef PRESTO_FAULT_ENUM
} presto_fault_kind;
#define PRESTO_FAULT_KINDS 11
/** Kinds that a result has room for; later versions may have more. */
#define PRESTO_FAULT_ROOM 32

/** "damaged header", ...; "?" for a value that is not in the list. */
PRESTO_API const char *presto_fault_name(presto_fault_kind kind);

/** One fault. Borrowed during the callback. */
typedef struct presto_fault {
    const char *file;
    uint64_t record; /* 0-based number of the record, or of the next whole one after a lost range;
                        PRESTO_NO_RECORD if it concerns the file as a whole */
    uint64_t offset; /* byte in the file (whole-file compression: in the decompressed stream), or
                        PRESTO_NO_OFFSET */
    uint64_t lost_bytes; /* bytes from offset on that belong to no whole record; 0 if the record is
                            whole and what is wrong lies within it */
    presto_fault_kind kind;
    const char *message;
} presto_fault;

/** Return false to stop (the function returns PRESTO_ERR_STOPPED). */
typedef bool (*presto_fault_fn)(void *user, const presto_fault *fault);

typedef struct presto_verify_options {
    size_t struct_bytes;            /* set by presto_verify_options_defaults */
    uint64_t max_payload_bytes;     /* default PRESTO_FRAME_MAX_PAYLOAD_BYTES; 2^62 - 1 at most */
    uint64_t max_record_bytes;      /* after decompression; default PRESTO_CODEC_MAX_RECORD_BYTES */
    bool check_examples;            /* decompress and parse every record; default true */
    const presto_codec_spec *codec; /* of the records; NULL: guessed from the first ones */
    const presto_feature_spec *features; /* which features are tensors; NULL: not known */
    size_t feature_count;
    bool check_index;         /* the index beside the file, if there is one; default true */
    presto_fault_fn on_fault; /* NULL: count only */
    void *user;
    presto_stop_fn should_stop; /* asked before each read of at most some MiB; NULL: never */
    void *should_stop_user;
    /* Of a dataset of ours on a server: a shard whose CRC-32C the server says, and whose size, are as
       in dataset.json is not read; its index is not looked at. Default false: all are read. */
    bool asks_server;
} presto_verify_options;

PRESTO_API void presto_verify_options_init(presto_verify_options *options, size_t struct_bytes);
static inline void presto_verify_options_defaults(presto_verify_options *options) {
    presto_verify_options_init(options, sizeof *options);
}

typedef struct presto_verify_result {
    size_t struct_bytes; /* as the program knows it; set by the function that fills it */
    uint64_t files;
    uint64_t records;       /* whole ones: both CRCs hold */
    uint64_t bytes;         /* on disk */
    uint64_t payload_bytes; /* of the whole records */
    uint64_t faults;
    uint64_t faults_of[PRESTO_FAULT_ROOM]; /* by presto_fault_kind */
    uint64_t lost_bytes;
    /* With asks_server, of `files`: those that were not read, and those that were, because the server
       does not say their CRC-32C. */
    uint64_t said_files, silent_files;
} presto_verify_result;

/**
 * The same for every file of a dataset, and for one of ours also against dataset.json (records,
 * sizes, CRCs). Codec and features are taken from there unless the options name them. Paths as
 * presto_dataset_open.
 * Returns: also what listing the paths returns (PRESTO_ERR_NOT_FOUND, PRESTO_ERR_CORRUPT for
 *          dataset.json, ...).
 */
PRESTO_API presto_status presto_verify_paths_sized(const char *const *paths, size_t path_count,
                                                   const presto_verify_options *options,
                                                   presto_verify_result *result, presto_error *err);
static inline presto_status presto_verify_paths(const char *const *paths, size_t path_count,
                                                const presto_verify_options *options,
                                                presto_verify_result *result, presto_error *err) {
    result->struct_bytes = sizeof *result;
    return presto_verify_paths_sized(paths, path_count, options, result, err);
}

/* ---- info ---- */

/** What was seen of one feature in the sampled records. */
typedef struct presto_feature_info {
    char *name;    /* as presto_text_encode makes it */
    uint64_t seen; /* in how many of the sampled records */
    /* What all the sampled values have in common. A bytes_list whose values all are serialized
       TensorProtos is PRESTO_ENCODE_TENSOR with their dtype and shape, -1 where they differ; dtype
       unknown if kinds differ. */
    presto_encoding encoding;
    presto_tensor_spec spec;
    uint64_t least_bytes, most_bytes; /* of one value list, as stored */
    const char
        *content; /* "jpeg", "png", "flac", "text", ... by signature; NULL if unknown or mixed */
    uint64_t reserved[2];
} presto_feature_info;

typedef struct presto_file_info {
    char *path;
    presto_file_compression compression;
    bool name_disagrees; /* compressed or not, against what its name says */
    bool indexed;        /* an index that fits stands beside it */
    uint64_t file_bytes;
    uint64_t records;
    uint64_t lost_ranges; /* > 0: damaged, see verify */
    uint64_t reserved[2];
} presto_file_info;

/* Sizes are counted in classes of powers of two: class i holds 2^(i-1) <= bytes < 2^i, class 0
 * empty records. */
#define PRESTO_SIZE_CLASSES 40

typedef struct presto_info {
    size_t struct_bytes; /* as the program knows it; set by the function that fills it */
    presto_file_info *files;
    size_t file_count;
    uint64_t records;
    uint64_t stored_bytes; /* the files */
    uint64_t
        raw_bytes; /* the samples before compression: exact for our datasets, else extrapolated */
    bool raw_bytes_exact;
    uint64_t payload_bytes;                         /* as framed */
    uint64_t least_bytes, median_bytes, most_bytes; /* of a payload */
    uint64_t size_classes[PRESTO_SIZE_CLASSES];
    char codec[PRESTO_CODEC_TEXT_BYTES]; /* known from dataset.json, else guessed */
    bool codec_guessed;
    const char *record_kind;       /* "Example", "SequenceExample", "bytes", "empty" (no records) */
    presto_feature_info *features; /* by name */
    size_t feature_count;
    uint64_t sampled; /* records looked into */
    presto_dataset
        *dataset; /* what was looked at, open; presto_dataset_get_info describes it. Owned
                                by this struct */
} presto_info;

typedef struct presto_info_options {
    size_t struct_bytes; /* set by presto_info_options_defaults */
    size_t
        sample_records; /* how many records are looked into, spread over the files; default 100 */
    presto_stop_fn should_stop; /* asked before each read; NULL: never */
    void *should_stop_user;
} presto_info_options;

PRESTO_API void presto_info_options_init(presto_info_options *options, size_t struct_bytes);
static inline void presto_info_options_defaults(presto_info_options *options) {
    presto_info_options_init(options, sizeof *options);
}

/**
 * Look at a dataset or foreign files (paths as presto_dataset_open; damage is tolerated and
 * counted).
 * Returns: also PRESTO_ERR_FOREIGN for a file of another kind that is no listed shard.
 */
PRESTO_API presto_status presto_info_collect_sized(const char *const *paths, size_t path_count,
                                                   const presto_info_options *options,
                                                   presto_info *info_out, presto_error *err);
static inline presto_status presto_info_collect(const char *const *paths, size_t path_count,
                                                const presto_info_options *options,
                                                presto_info *info_out, presto_error *err) {
    info_out->struct_bytes = sizeof *info_out;
    return presto_info_collect_sized(paths, path_count, options, info_out, err);
}
PRESTO_API void presto_info_done_sized(presto_info *info);
static inline void presto_info_done(presto_info *info) {
    if (info != NULL)
        info->struct_bytes = sizeof *info;
    presto_info_done_sized(info);
}

/* ---- index, repair ---- */

/**
 * (Re)build <path>.index from the headers.
 * Returns: PRESTO_ERR_CORRUPT or _TRUNCATED if the file is damaged; PRESTO_ERR_FOREIGN if it is of
 *          another kind, _CORRUPT if a dataset.json lists it.
 */
PRESTO_API presto_status presto_index_build(const char *path, uint64_t *records_out,
                                            presto_error *err);

/** Write DALI's text index of `path` ("offset size" a line) to `index_path`, by temporary name. */
PRESTO_API presto_status presto_index_write_dali(const char *path, const char *index_path,
                                                 presto_error *err);

/** A range of bytes that belongs to no whole record. */
typedef bool (*presto_lost_fn)(void *user, uint64_t offset, uint64_t bytes,
                               uint64_t records_before);

typedef struct presto_repair_result {
    size_t struct_bytes; /* as the program knows it; set by the function that fills it */
    uint64_t records;    /* copied */
    uint64_t lost_bytes;
    uint64_t lost_ranges;
} presto_repair_result;

typedef struct presto_repair_options {
    size_t struct_bytes;    /* set by presto_repair_options_defaults */
    presto_lost_fn on_lost; /* NULL: count only */
    void *on_lost_user;
    presto_stop_fn should_stop; /* asked before each read of at most some MiB; NULL: never */
    void *should_stop_user;
} presto_repair_options;

PRESTO_API void presto_repair_options_init(presto_repair_options *options, size_t struct_bytes);
static inline void presto_repair_options_defaults(presto_repair_options *options) {
    presto_repair_options_init(options, sizeof *options);
}

/**
 * Copy every whole record (both CRCs hold) of `path` to the new file `out_path`, in order, with an
 * index. A file that exists is not replaced: PRESTO_ERR_ARGUMENT. The output is compressed as the
 * input is. `options` NULL: none of them.
 * Returns: also PRESTO_ERR_STOPPED, PRESTO_ERR_CORRUPT if a file that is not empty has no whole
 *          record, and for a file of another kind as presto_index_build; nothing is left of the new
 *          file then, as after any failure.
 */
PRESTO_API presto_status presto_repair_file_sized(const char *path, const char *out_path,
                                                  const presto_repair_options *options,
                                                  presto_repair_result *result_out,
                                                  presto_error *err);
static inline presto_status presto_repair_file(const char *path, const char *out_path,
                                               const presto_repair_options *options,
                                               presto_repair_result *result_out,
                                               presto_error *err) {
    if (result_out != NULL)
        result_out->struct_bytes = sizeof *result_out;
    return presto_repair_file_sized(path, out_path, options, result_out, err);
}

#ifdef __cplusplus
}
#endif

#endif
