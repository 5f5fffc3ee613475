/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The filters of HDF5 chunks, undone, and the numbers in them made float64.
 *
 * Sources: HDF5 File Format Specification 3.0, IV.A.2.l (filter pipeline message); Fletcher, "An
 * arithmetic checksum for serial transmissions" (1982), here over 16-bit big-endian words from 0.
 */
#include <inttypes.h>

#include <presto/numbers.h>

#include "../../../base/bytes_internal.h"
#include "hdf5_internal.h"

/* ---- shuffle ---- */

/* 16 items at a time: interleaving the first half of the bytes' rows with the second one, once for
 * each doubling of the item, brings the bytes of an item together. */
typedef uint8_t row __attribute__((vector_size(16)));

static inline row load_row(const uint8_t *at) {
    row value;
    memcpy(&value, at, sizeof value);
    return value;
}

#define LOW_HALVES(a, b)                                                                           \
    __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define HIGH_HALVES(a, b)                                                                          \
    __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)

/* Items of `width` (2, 4 or 8) bytes; `count` of them. Returns how many it did. */
static inline __attribute__((always_inline)) size_t join_rows(const uint8_t *in, size_t count,
                                                              size_t width, uint8_t *out) {
    size_t done = 0;
    for (; done + 16 <= count; done += 16) {
        row rows[8], next[8];
        for (size_t k = 0; k < width; k++)
            rows[k] = load_row(in + k * count + done);
        for (size_t step = 1; step < width; step *= 2) {
            for (size_t k = 0; k < width / 2; k++) {
                next[2 * k] = LOW_HALVES(rows[k], rows[k + width / 2]);
                next[2 * k + 1] = HIGH_HALVES(rows[k], rows[k + width / 2]);
            }
            memcpy(rows, next, width * sizeof rows[0]);
        }
        memcpy(out + done * width, rows, width * sizeof rows[0]);
    }
    return done;
}

void presto__hdf5_unshuffle(presto_span in, size_t item_bytes, uint8_t *out) {
    size_t count = in.bytes / item_bytes;
    size_t done = 0;
    if (item_bytes == 8)
        done = join_rows(in.data, count, 8, out);
    else if (item_bytes == 4)
        done = join_rows(in.data, count, 4, out);
    else if (item_bytes == 2)
        done = join_rows(in.data, count, 2, out);
    for (size_t k = 0; k < item_bytes && done < count; k++)
        for (size_t i = done; i < count; i++)
            out[i * item_bytes + k] = in.data[k * count + i];
    size_t joined = count * item_bytes;
    if (in.bytes > joined)
        memcpy(out + joined, in.data + joined, in.bytes - joined);
}

/* ---- fletcher32 ---- */

/* The sums stay below 2^32 for so many words (2^16 - 1 each), starting below 2^17. */
#define WORDS_BETWEEN_FOLDS 360

static uint32_t fold(uint32_t sum) {
    return (sum & 0xffff) + (sum >> 16);
}

uint32_t presto__hdf5_fletcher32(presto_span bytes) {
    uint32_t first = 0, second = 0;
    const uint8_t *at = bytes.data;
    for (size_t words = bytes.bytes / 2; words > 0;) {
        size_t round = words < WORDS_BETWEEN_FOLDS ? words : WORDS_BETWEEN_FOLDS;
        words -= round;
        for (; round > 0; round--, at += 2) {
            first += (uint32_t)at[0] << 8 | at[1];
            second += first;
        }
        first = fold(first);
        second = fold(second);
    }
    if (bytes.bytes % 2 != 0) {
        first = fold(first + ((uint32_t)at[0] << 8));
        second = fold(second + first);
    }
    return fold(second) << 16 | fold(first);
}

#define CHECKSUM_BYTES ((size_t)4)

static presto_status check_sum(presto_span *bytes_io, presto_error *err) {
    if (bytes_io->bytes < CHECKSUM_BYTES)
        return presto_fail(err, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET,
                           "a chunk is too short for its checksum");
    bytes_io->bytes -= CHECKSUM_BYTES;
    if (presto__hdf5_fletcher32(*bytes_io) != presto__load_u32(bytes_io->data + bytes_io->bytes))
        return presto_fail(err, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET,
                           "the checksum of a chunk differs");
    return PRESTO_OK;
}

/* ---- all of them ---- */

static presto_status open_inflate(presto__hdf5_cursor *cursor, presto_error *err) {
    presto_codec_spec spec;
    if (cursor->inflate != NULL)
        return PRESTO_OK;
    PRESTO_TRY(presto_codec_parse("zlib", &spec, err));
    return presto_codec_new(&spec, &cursor->inflate, err);
}

static presto_status undo(presto__hdf5_cursor *cursor, const presto__hdf5_filter *filter,
                          size_t most_bytes, presto_span *bytes_io, presto_error *err) {
    uint8_t *out;
    switch (filter->kind) {
    case PRESTO__HDF5_FLETCHER32:
        return check_sum(bytes_io, err);
    case PRESTO__HDF5_DEFLATE:
        PRESTO_TRY(open_inflate(cursor, err));
        return presto_codec_decompress(cursor->inflate, *bytes_io,
                                       &(presto_codec_room){&cursor->arena, most_bytes}, bytes_io,
                                       err);
    case PRESTO__HDF5_SHUFFLE:
        if (filter->item_bytes == 1)
            return PRESTO_OK;
        out = presto_arena_alloc(&cursor->arena, bytes_io->bytes, 64);
        if (out == NULL)
            return presto_fail_memory(err, bytes_io->bytes);
        presto__hdf5_unshuffle(*bytes_io, filter->item_bytes, out);
        bytes_io->data = out;
    }
    return PRESTO_OK;
}

presto_status presto__hdf5_unfilter(presto__hdf5_cursor *cursor, const presto__hdf5_stored *stored,
                                    presto_span *values_out, presto_error *err) {
    const presto__hdf5_dataset *dataset = stored->dataset;
    const presto__hdf5_chunk *chunk = &dataset->chunks[stored->chunk];
    size_t wanted = (size_t)dataset->chunk_values * presto_dtype_bytes(dataset->number.dtype);
    presto_span bytes = stored->bytes;
    bool is_part = stored->chunk == dataset->values / dataset->chunk_values;
    size_t count = is_part && dataset->is_last_raw ? 0 : dataset->filter_count;
    for (size_t i = count; i-- > 0;)
        if ((chunk->skipped_filters >> i & 1) == 0)
            PRESTO_TRY(undo(cursor, &dataset->filters[i],
                            wanted + CHECKSUM_BYTES * PRESTO__HDF5_MAX_FILTERS, &bytes, err));
    if (bytes.bytes != wanted)
        return presto_fail(err, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET,
                           "a chunk has %zu byte%s of values, not %zu", bytes.bytes,
                           presto_plural(bytes.bytes), wanted);
    *values_out = bytes;
    return PRESTO_OK;
}

/* ---- numbers ---- */

typedef void widen_fn(const uint8_t *in, size_t count, double *out);

/* `raw` is an unsigned integer as wide as `type`. */
#define WIDEN(name, type, raw, order)                                                              \
    static void name(const uint8_t *in, size_t count, double *out) {                               \
        for (size_t i = 0; i < count; i++) {                                                       \
            raw bits;                                                                              \
            type value;                                                                            \
            memcpy(&bits, in + i * sizeof bits, sizeof bits);                                      \
            bits = order(bits);                                                                    \
            memcpy(&value, &bits, sizeof value);                                                   \
            out[i] = (double)value;                                                                \
        }                                                                                          \
    }
#define AS_IT_IS(bits) bits

WIDEN(widen_float64_big, double, uint64_t, __builtin_bswap64)
WIDEN(widen_float32, float, uint32_t, AS_IT_IS)
WIDEN(widen_float32_big, float, uint32_t, __builtin_bswap32)
WIDEN(widen_int32, int32_t, uint32_t, AS_IT_IS)
WIDEN(widen_int32_big, int32_t, uint32_t, __builtin_bswap32)
WIDEN(widen_uint32, uint32_t, uint32_t, AS_IT_IS)
WIDEN(widen_uint32_big, uint32_t, uint32_t, __builtin_bswap32)
WIDEN(widen_int16, int16_t, uint16_t, AS_IT_IS)
WIDEN(widen_int16_big, int16_t, uint16_t, __builtin_bswap16)
WIDEN(widen_uint16, uint16_t, uint16_t, AS_IT_IS)
WIDEN(widen_uint16_big, uint16_t, uint16_t, __builtin_bswap16)
WIDEN(widen_int8, int8_t, uint8_t, AS_IT_IS)
WIDEN(widen_uint8, uint8_t, uint8_t, AS_IT_IS)

static void widen_float64(const uint8_t *in, size_t count, double *out) {
    memcpy(out, in, count * sizeof *out);
}

/* [0]: little-endian, [1]: big-endian. */
static widen_fn *const widen[][2] = {
    [PRESTO_FLOAT64] = {widen_float64, widen_float64_big},
    [PRESTO_FLOAT32] = {widen_float32, widen_float32_big},
    [PRESTO_INT32] = {widen_int32, widen_int32_big},
    [PRESTO_UINT32] = {widen_uint32, widen_uint32_big},
    [PRESTO_INT16] = {widen_int16, widen_int16_big},
    [PRESTO_UINT16] = {widen_uint16, widen_uint16_big},
    [PRESTO_INT8] = {widen_int8, widen_int8},
    [PRESTO_UINT8] = {widen_uint8, widen_uint8},
};

void presto__hdf5_widen(const presto__hdf5_number *number, const uint8_t *in, size_t count,
                        double *out) {
    if (count > 0)
        widen[number->dtype][number->is_big_endian](in, count, out);
}
