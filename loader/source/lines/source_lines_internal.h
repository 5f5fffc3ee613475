/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room lines: the raw sources `lines`, `jsonl` and `csv`: each line of a text, or row of a table, is
 * a sample. cut.c cuts bytes into records; waymarks.c keeps where some of them stand, in memory and
 * in an index file; text_file.c gives the bytes of a file, plain or decompressed; find.c finds records
 * that are not counted; lines_read.c reads samples; source_lines.c is the rest.
 * May see: base, storage, records, rooms core, files and table.
 *
 * Invariants: what has been counted does not change. A record has one number, whoever found it.
 * Locks: find_lock, then that of a file, then side_lock. Of another file, a lock is only tried.
 */
#ifndef PRESTO_SOURCE_LINES_INTERNAL_H
#define PRESTO_SOURCE_LINES_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "../../../records/shard/shard_internal.h"
#include "../../../steps/pipelines_internal.h"
#include "../files/source_files_internal.h"

/* ---- cut.c: bytes as records ---- */

typedef enum presto__cut_form {
    PRESTO__CUT_LINES, /* each line is a record */
    PRESTO__CUT_JSON,  /* lines of white space are none */
    PRESTO__CUT_CSV    /* line ends in quotes belong to a field; empty lines are no records */
} presto__cut_form;

typedef struct presto__cut_rules {
    presto__cut_form form;
    uint8_t separator; /* of CSV */
    uint64_t
        most_blank; /* of JSON: longer lines of white space are records, as they may not be kept */
} presto__cut_rules;

/**
 * A search for the end of the record that begins in some bytes, which may become more: what was looked
 * at is not looked at again. Zero: nothing was. If the first bytes are taken away, but for the last
 * one that was looked at, presto__cut_forget says so.
 */
typedef struct presto__cut_search {
    size_t start;    /* of the record: before it are lines that are none */
    size_t looked;   /* of the bytes */
    uint64_t before; /* ends of lines before `start` */
    uint64_t within; /* and behind, as far as it was looked */
    bool is_quoted;
    bool has_begun; /* `start` is that of a record */
} presto__cut_search;

typedef struct presto__cut_record {
    size_t start, bytes;   /* without what ends it */
    size_t next;           /* behind its end */
    uint64_t lines_before; /* ends of lines before `start` */
    uint64_t lines;        /* and all before `next` */
    bool is_open;          /* a quote in it is not closed: the text ends */
} presto__cut_record;

/**
 * Find the record. `is_all`: no bytes follow these.
 * Returns: PRESTO_OK; PRESTO_END: there is none; PRESTO_DROP: it does not end in these bytes.
 * Threads: any; no shared state. Time: linear in what was not looked at.
 */
presto_status presto__cut_next(const presto__cut_rules *rules, presto_span bytes, bool is_all,
                               presto__cut_search *search, presto__cut_record *record_out);
/** The lines before `start` are taken away: so many bytes, and ends of lines. */
size_t presto__cut_passed(presto__cut_search *search, uint64_t *lines_out);
/** Is a record, of which `bytes` bytes are there and not its end, sure to be longer than `most`? Its last
 * byte may be the first one of its end. */
static inline bool presto__cut_is_longer(size_t bytes, uint64_t most) {
    return bytes > 0 && bytes - 1 > most;
}
/** How many of the first bytes may be taken away while a record is too large to be kept. */
size_t presto__cut_spare(const presto__cut_search *search);
/** They were taken away. */
void presto__cut_forget(presto__cut_search *search, size_t bytes);

/** The first quote or line end in `bytes` bytes from `at` on; `bytes` if there is none. */
size_t presto__cut_find_mark(const uint8_t *at, size_t bytes);
/** The same without vectors: for tests. */
size_t presto__cut_find_mark_plainly(const uint8_t *at, size_t bytes);

/* ---- waymarks.c: where records stand ---- */

/** A record whose place is kept: one in about 8 KiB. */
typedef struct presto__waymark {
    uint64_t offset; /* of its first byte, in the decompressed text */
    uint64_t record; /* in the file */
    uint64_t line;   /* 0-based, where it begins */
} presto__waymark;

#define PRESTO__WAYMARK_EVERY_BYTES ((uint64_t)8192)
/** Marks are kept, stored and read in blocks of so many. */
#define PRESTO__WAYMARK_BLOCK ((size_t)2048)

/** The marks of a file, in order. Those that an index file holds are read when they are needed.
 * Zero-initialise. */
typedef struct presto__waymarks {
    presto__waymark **blocks; /* NULL: not read yet */
    uint64_t *first_record;   /* of each block */
    uint32_t *crcs;           /* of each block, if `path` is set */
    size_t block_count, block_capacity;
    size_t count;
    char *path; /* of the index file; NULL: all are in memory */
    uint64_t marks_at;
    uint32_t header_crc;
} presto__waymarks;

void presto__waymarks_done(presto__waymarks *marks);
/** Add one, unless the last one is less than PRESTO__WAYMARK_EVERY_BYTES before it. Only to marks that are all in
 * memory. */
presto_status presto__waymarks_add(presto__waymarks *marks, const presto__waymark *mark,
                                   presto_error *err);
/** Around some records. */
typedef struct presto__waymark_pair {
    presto__waymark before; /* the last one at or before them */
    presto__waymark behind; /* the first one behind them; offset UINT64_MAX: there is none */
} presto__waymark_pair;

/**
 * The marks around the records [record, beyond]. There is one at or before them.
 * Returns: PRESTO_OK; PRESTO_ERR_CORRUPT, _IO: the index file cannot be read any more.
 */
presto_status presto__waymarks_find(presto__waymarks *marks, uint64_t record, uint64_t beyond,
                                    presto__waymark_pair *pair_out, presto_error *err);

/** What is in an index file beside the marks. */
typedef struct presto__waymarks_facts {
    presto__cut_rules rules;
    uint64_t data_bytes; /* of the file */
    uint64_t text_bytes; /* decompressed */
    uint64_t records;
    uint64_t header_bytes; /* at the start of the text, which are no record's */
} presto__waymarks_facts;

/** The file that an index is of, open for reading. */
typedef struct presto__waymarks_data {
    presto__object object;
    const char *path;
    bool is_plain;
} presto__waymarks_data;

/**
 * Read the index file `path`, if it is of this data and was made by the rules in facts_io, whose
 * data_bytes and header_bytes are set.
 * Returns: PRESTO_OK; PRESTO_END: there is none, or it is of something else; PRESTO_ERR_CORRUPT: it
 *          is damaged; PRESTO_ERR_UNSUPPORTED: another program wrote it; PRESTO_ERR_IO, _MEMORY.
 */
presto_status presto__waymarks_open(const char *path, const presto__waymarks_data *data,
                                    presto__waymarks_facts *facts_io, presto__waymarks *marks_out,
                                    presto_error *err);
/** Write it; all marks are in memory. Atomic. */
presto_status presto__waymarks_write(const char *path, const presto__waymarks_data *data,
                                     const presto__waymarks_facts *facts,
                                     const presto__waymarks *marks, presto_error *err);
/** Is this an index of lines, whatever it is of? */
bool presto__waymarks_is_index(const char *path);
/** Parse the bytes of an index file as presto__waymarks_open does, but for the data: for tests. */
presto_status presto__waymarks_parse(presto_span bytes, presto__waymarks_facts *facts_io,
                                     presto__waymarks *marks_out, presto_error *err);

/* ---- text_file.c: the bytes of a file ---- */

/** The text of a file from front to back, through a window; of a plain one from anywhere. One
 * thread. Zero-initialise. */
typedef struct presto__text_window {
    presto__object object;
    const char *path; /* NULL: not open */
    presto__packing packing;
    presto__unpacker *unpacker; /* if it is packed */
    presto_buffer input;        /* packed bytes, in use from `input_used` on */
    size_t input_used;
    presto_buffer bytes; /* in use from `head` on */
    size_t head;
    uint64_t at;          /* where in the text that is */
    uint64_t file_offset; /* of the next byte of the file to be read */
    bool is_all;          /* nothing follows the window ... */
    presto_error damage;  /* ... because of this, if its status is < 0 */
    uint64_t read_bytes;  /* of the file, so far */
} presto__text_window;

/** `object` and `path` are the caller's. */
presto_status presto__text_window_open(presto__text_window *window, presto__object object,
                                       const char *path, presto__packing packing,
                                       presto_error *err);
void presto__text_window_done(presto__text_window *window);

static inline presto_span presto__text_window_view(const presto__text_window *window) {
    return window->bytes.bytes == 0 ? (presto_span){0}
                                    : presto_span_of(window->bytes.data + window->head,
                                                     window->bytes.bytes - window->head);
}

/**
 * More bytes, about `wish`, at least one unless is_all is set. Damage of what is packed ends the text.
 * Returns: PRESTO_OK; PRESTO_ERR_IO, _MEMORY, _STOPPED: nothing has changed.
 */
presto_status presto__text_window_fill(presto__text_window *window, size_t wish, presto_error *err);
/** The first bytes of the view are not needed any more. */
void presto__text_window_drop(presto__text_window *window, size_t bytes);
/** Have the text from `offset` on in the view, or its end. Of a packed one, up to `behind` bytes before
 * it stay; if it lies before the view, all is read again from the start. As presto__text_window_fill. */
presto_status presto__text_window_seek(presto__text_window *window, uint64_t offset,
                                       uint64_t behind, presto_error *err);

/* ---- fields ---- */

/** A field that is asked for. */
typedef struct presto__field {
    char *name;    /* in the file */
    char *feature; /* in the sample */
    presto__field_type type;
} presto__field;

typedef struct presto__fields {
    presto__field *items; /* the first one is the main feature */
    size_t count;
    presto__classes classes; /* of the label */
} presto__fields;

void presto__fields_done(presto__fields *fields);
/** A text of a CSV, and which field it is of. */
typedef struct presto__field_text {
    const presto__fields *fields;
    size_t i;
    presto_span text;
} presto__field_text;

/** Its value. The text is copied. PRESTO_ERR_TYPE: it is none of the field's type. */
presto_status presto__field_of_text(const presto__field_text *from, presto_arena *arena,
                                    presto_feature *feature_out, presto_error *err);
/** A feature of a copy of the text. */
presto_status presto__field_copy_text(presto_span text, presto_arena *arena,
                                      presto_feature *feature_out, presto_error *err);
/** Of a number. */
presto_status presto__field_make_integer(int64_t value, presto_arena *arena,
                                         presto_feature *feature_out, presto_error *err);
presto_status presto__field_make_fraction(float value, presto_arena *arena,
                                          presto_feature *feature_out, presto_error *err);

/** PRESTO_ERR_CORRUPT with the first byte of `text` that is no UTF-8. */
presto_status presto__check_utf8(presto_span text, presto_error *err);

/* ---- the source ---- */

/** A record that is damaged, or that cannot be found: all that is behind it is lost. */
typedef struct presto__text_end {
    uint64_t record;
    presto_error why;
} presto__text_end;

/** A file of the source. */
typedef struct presto__text_file {
    /* Number of its first sample; UINT64_MAX: not known yet. Written by who holds find_lock. */
    _Atomic(uint64_t) first;
    atomic_bool is_counted; /* what is guarded by `lock` does not change any more, but for blocks of
                               marks that are read, and for the stream */
    _Atomic(presto__text_end *) end; /* its last record is this; NULL: it is whole. Set once */
    atomic_bool is_looked_at;        /* what is said of the file's start does not change any more */
    pthread_mutex_t lock;
    /* Guarded by lock. */
    presto__packing packing;
    uint64_t header_bytes; /* byte order mark, and the names of a CSV's columns */
    uint64_t header_lines;
    size_t *columns; /* of a CSV: where each field stands, [fields.count] */
    size_t column_count;
    presto__waymarks marks;
    uint64_t records;
    uint64_t text_bytes;
    bool is_from_index;
    presto__text_window stream; /* if it is packed: shared by all readers */
} presto__text_file;

/** Where a search for records stands. Zero-initialise. */
typedef struct presto__finder {
    size_t file;
    uint64_t record;            /* that comes next, in the file */
    uint64_t line;              /* ends of lines before it */
    presto__text_window window; /* path NULL: it stands at the start of the file */
    size_t used;                /* of the view: records that were found */
    presto__cut_search search;
    bool
        is_too_large; /* the record that comes next: its start is not in the view any more, it is ... */
    uint64_t begun; /* ... here in the text */
    bool is_lost;   /* the record found last is damaged, and the text ends with it */
} presto__finder;

/** Packed files that stay open at once. */
#define PRESTO__LINES_STREAMS 8

typedef struct presto__lines_source {
    presto__files files;
    presto__text_file *texts; /* [files.file_count] */
    size_t lock_count;        /* whose locks are made */
    presto__open_files *open; /* for its readers, and for who counts */
    presto__cut_rules rules;
    bool has_names; /* names of columns are given: there is no header */
    char **names;
    size_t name_count;
    presto__fields fields;
    uint64_t max_bytes;
    uint64_t options_digest;
    presto_keep_index keep_index;
    bool ignores_index;
    char *index_dir;         /* NULL: the usual one */
    _Atomic(uint64_t) total; /* of all files; PRESTO_COUNT_UNKNOWN */

    pthread_mutex_t find_lock;
    bool has_find_lock;
    /* Guarded by find_lock. */
    bool is_walked;
    presto__finder finder; /* stands where the search for samples that are not counted does */

    pthread_mutex_t side_lock; /* taken last */
    bool has_side_lock;
    /* Guarded by side_lock. */
    presto_error warning; /* of an index that could not be kept or read; status 0: none */
    presto__text_file *streams[PRESTO__LINES_STREAMS]; /* packed files that are open */
    size_t next_stream;
} presto__lines_source;

static inline presto__lines_source *presto__lines_of(const presto_source *base) {
    return (presto__lines_source *)(uintptr_t)base;
}

/** The file that has the sample. */
size_t presto__lines_file_of(const presto__lines_source *source, uint64_t number);

/** Have the file's packing, header and columns known. Any thread. A failure that is only of this file
 * becomes its one record, and is no failure. */
presto_status presto__lines_look_at(presto__lines_source *source, size_t i, presto_error *err);

/** Take the first line of a CSV: where the fields stand. PRESTO_ERR_NOT_FOUND: a column is not there. */
presto_status presto__csv_columns(const presto__lines_source *source, presto_span header,
                                  size_t *columns, size_t *count_out, presto_error *err);

/** Keep the first warning. Any thread. */
void presto__lines_warn(presto__lines_source *source, const presto_error *why);

/* find.c */
uint64_t presto__lines_count(const presto_source *base);
presto_status presto__lines_settle(const presto_source *base, presto_error *err);
presto_status presto__lines_begin(presto_source *base, uint64_t number, presto_error *err);
void presto__lines_end(presto_source *base);
presto_status presto__lines_pass(const presto_source *base, uint64_t number, uint64_t *known_out,
                                 presto_error *err);
presto_status presto__lines_step(presto__reader *base, const presto__walk_wish *wish,
                                 presto__blocks *blocks, size_t *found_out, presto_error *err);

/* look.c */
/** Count file i by its index file, if it has one that fits. PRESTO_END: it has none. */
presto_status presto__lines_use_index(presto__lines_source *source, size_t i, presto_error *err);
/** File i is counted: keep its index, as the options say. That it fails is a warning. */
void presto__lines_keep_index(presto__lines_source *source, size_t i);
/** The file is counted now; `marks` become its own. */
void presto__lines_set_counted(presto__text_file *text, presto__waymarks *marks, uint64_t records,
                               uint64_t text_bytes);
/** Record `record` of the file is `why`, and the last one. */
presto_status presto__lines_set_end(presto__text_file *text, uint64_t record,
                                    const presto_error *why, presto_error *err);

/* lines_read.c */
/** Records that a reader has at hand: bytes of one file, from the start of a record on. */
typedef struct presto__text_piece {
    size_t file;     /* SIZE_MAX: none */
    uint64_t at;     /* of the first byte, in the text */
    uint64_t number; /* of the record that comes next */
    uint64_t line;   /* where the bytes from `used` on begin */
    size_t used;     /* bytes */
    bool is_all;     /* the text ends with them */
    presto_buffer bytes;
} presto__text_piece;

typedef struct presto__lines_reader {
    presto__reader base;
    presto__lines_source *source;
    const uint64_t *numbers; /* borrowed from the caller of fetch */
    size_t count;
    presto__text_piece piece;
    size_t open; /* the file that `object` is; SIZE_MAX: none */
    presto__object object;
    presto_error fault;    /* of the record `fault_number`, which could not be found */
    uint64_t fault_number; /* UINT64_MAX: none */
    bool *selected;        /* of each field: is it asked for? */
    uint64_t at;   /* where the record found last begins; PRESTO_NO_OFFSET: it was not found */
    uint64_t line; /* 1-based, of it */
} presto__lines_reader;

presto_status presto__lines_reader_new(presto_source *source, const presto__reader_options *options,
                                       presto__reader **reader_out, presto_error *err);
void presto__lines_reader_free(presto__reader *reader);
presto_status presto__lines_fetch(presto__reader *reader, const uint64_t *numbers, size_t count,
                                  presto__blocks *blocks, presto_error *err);
presto_status presto__lines_sample(presto__reader *reader, size_t i, presto_arena *arena,
                                   presto_sample *sample_out, presto_error *err);
void presto__lines_place(presto__reader *reader, size_t i, presto_error *err);
void presto__lines_locate(const presto_source *base, uint64_t number, presto_error *err);
void presto__lines_will_read(presto__reader *reader, const uint64_t *numbers, size_t count);

/* jsonl_row.c, csv_row.c */
/** A record, and what to make of it. */
typedef struct presto__row {
    const presto__fields *fields;
    const bool *selected;
    const size_t *columns; /* of a CSV */
    size_t column_count;
    uint8_t separator;
    presto_span bytes;
} presto__row;

/** The features of a row, in `features_out`, [fields.count]. err->offset is within the row.
 * Returns: PRESTO_ERR_CORRUPT (it is none), _TYPE (a value is missing, or is of another type), _LIMIT,
 * _MEMORY. */
presto_status presto__jsonl_row(const presto__row *row, presto_arena *arena,
                                presto_feature *features_out, size_t *count_out, presto_error *err);
presto_status presto__csv_row(const presto__row *row, presto_arena *arena,
                              presto_feature *features_out, size_t *count_out, presto_error *err);

#endif
