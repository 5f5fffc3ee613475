/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of a file from front to back, decompressed if the file is gzip or zlib as a whole,
 * through a window that slides: what records/ reads when it cannot or need not jump.
 */
#ifndef PRESTO_STREAM_INTERNAL_H
#define PRESTO_STREAM_INTERNAL_H

#include <presto/shard.h>

typedef struct presto__stream presto__stream;

/** Borrows `fd` and `path`. */
presto_status presto__stream_new(int fd, const char *path, presto_file_compression compression,
                                 presto__stream **stream_out, presto_error *err);
void presto__stream_free(presto__stream *stream);

/** Ask `should_stop` before each read; views then fail with PRESTO_ERR_STOPPED. */
void presto__stream_ask(presto__stream *stream, presto_stop_fn should_stop, void *user);

/**
 * The bytes [offset, offset + count), fewer if the stream ends before. offset must not lie before
 * what was forgotten. The view holds until the next call. Returns: PRESTO_OK; an error
 * (PRESTO_ERR_IO, _CORRUPT, _TRUNCATED) if damage, not the end, cuts the view short: *view_out then
 * has the bytes before it. PRESTO_ERR_MEMORY and _STOPPED say nothing of the stream.
 */
presto_status presto__stream_view(presto__stream *stream, uint64_t offset, size_t count,
                                  presto_span *view_out, presto_error *err);

/** Bytes before `offset` will not be asked for again. */
void presto__stream_forget(presto__stream *stream, uint64_t offset);

/** First byte that is still there; going back further takes presto__stream_rewind. */
uint64_t presto__stream_base(const presto__stream *stream);
/** One past the last byte that has been read. */
uint64_t presto__stream_reach(const presto__stream *stream);

/** Start again from the first byte (of another descriptor of the same file). */
presto_status presto__stream_rewind(presto__stream *stream, presto_error *err);
void presto__stream_set_fd(presto__stream *stream, int fd);

/** Of a plain file: go on at `offset`, wherever that is. */
void presto__stream_seek(presto__stream *stream, uint64_t offset);

/**
 * Of a plain file: if a large hole (zeros that take no room on the disk) starts at `from` or before
 * it, go on `keep` bytes before its end, without reading it. Returns where the stream goes on.
 */
uint64_t presto__stream_skip_hole(presto__stream *stream, uint64_t from, size_t keep);

/**
 * The first position >= `from` where a whole frame stands (both CRCs hold) with a payload of at
 * most `max_payload_bytes` that ends before `end` (UINT64_MAX: not known). Everything before it is
 * forgotten. Returns: PRESTO_OK; PRESTO_END if there is none, *found_out is then where the stream
 * ends, if only because it fails there (the next view says why); PRESTO_ERR_MEMORY, _STOPPED.
 */
presto_status presto__stream_find_frame(presto__stream *stream, uint64_t from,
                                        uint64_t max_payload_bytes, uint64_t end,
                                        uint64_t *found_out, presto_error *err);

/** Bytes of the file (not of the stream) read so far. */
uint64_t presto__stream_file_bytes(const presto__stream *stream);

/** What the file is, by its content; `head` is its beginning (64 bytes or all of it). */
presto_file_compression presto__detect_compression(presto_span head);

/** Does a file that begins so hold records, plain or compressed? */
bool presto__is_tfrecord(presto_span head);

/** What its name says: .gz, .deflate, .zz, .zlib. */
presto_file_compression presto__compression_by_name(const char *path);

#endif
