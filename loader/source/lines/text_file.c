/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a file, plain or packed by gzip or zstd as a whole, through a window. */
#include "source_lines_internal.h"

#include <stdlib.h>

#define INPUT_BYTES ((size_t)256 << 10)
#define OUTPUT_BYTES ((size_t)256 << 10)

/* ---- unpacking ---- */

/* What follows the window is lost. */
static presto_status end_damaged(presto__text_window *window, const presto_error *why) {
    window->damage = *why;
    window->damage.offset = window->at + presto__text_window_view(window).bytes;
    presto_error_set_file(&window->damage, window->path);
    window->is_all = true;
    return PRESTO_OK;
}

/* More packed bytes. is_all is set if there are none. */
static presto_status refill(presto__text_window *window, presto_error *err) {
    size_t got;
    presto_error why;
    window->input.bytes = window->input_used = 0; /* also if nothing can be read */
    PRESTO_TRY(presto_buffer_reserve(&window->input, INPUT_BYTES, err));
    PRESTO_TRY(
        presto__read_at((presto__object_place){window->object, window->path, window->file_offset},
                        window->input.data, INPUT_BYTES, &got, err));
    window->file_offset += got;
    window->read_bytes += got;
    window->input.bytes = got;
    window->input_used = 0;
    if (got > 0)
        return PRESTO_OK;
    window->is_all = true;
    if (presto__unpacker_is_between(window->unpacker))
        return PRESTO_OK;
    presto_fail(&why, PRESTO_ERR_TRUNCATED, PRESTO_NO_OFFSET, "%s data: the file ends too early",
                presto__packing_name(window->packing));
    return end_damaged(window, &why);
}

static presto_status unpack_some(presto__text_window *window, presto_error *err) {
    presto_buffer *to = &window->bytes;
    presto_error why;
    PRESTO_TRY(presto_buffer_reserve(to, OUTPUT_BYTES, err));
    size_t before = to->bytes;
    presto_span in = presto_span_of(window->input.data + window->input_used,
                                    window->input.bytes - window->input_used);
    bool had_input = in.bytes > 0;
    if (window->input.bytes > 0 || had_input) {
        presto_status status = presto__unpacker_run(window->unpacker, &in, to, &why);
        window->input_used = window->input.bytes - in.bytes;
        if (status == PRESTO_ERR_MEMORY)
            return presto_fail_memory(err, OUTPUT_BYTES);
        if (status < 0)
            return end_damaged(window, &why);
    }
    return had_input || to->bytes > before ? PRESTO_OK : refill(window, err);
}

/* ---- the window ---- */

presto_status presto__text_window_open(presto__text_window *window, presto__object object,
                                       const char *path, presto__packing packing,
                                       presto_error *err) {
    *window = (presto__text_window){.object = object, .path = path, .packing = packing};
    return packing == PRESTO__NOT_PACKED ? PRESTO_OK
                                         : presto__unpacker_new(packing, &window->unpacker, err);
}

void presto__text_window_done(presto__text_window *window) {
    presto__unpacker_free(window->unpacker);
    presto_buffer_done(&window->bytes);
    presto_buffer_done(&window->input);
    *window = (presto__text_window){0};
}

static presto_status fill_plain(presto__text_window *window, size_t wish, presto_error *err) {
    size_t got;
    PRESTO_TRY(presto_buffer_reserve(&window->bytes, wish, err));
    PRESTO_TRY(
        presto__read_at((presto__object_place){window->object, window->path, window->file_offset},
                        window->bytes.data + window->bytes.bytes, wish, &got, err));
    window->bytes.bytes += got;
    window->file_offset += got;
    window->read_bytes += got;
    window->is_all = got < wish;
    return PRESTO_OK;
}

/* What was dropped makes room, once it is the larger part. */
static void make_room(presto__text_window *window) {
    size_t left = window->bytes.bytes - window->head;
    if (window->head == 0 || window->head < left)
        return;
    if (left > 0)
        memmove(window->bytes.data, window->bytes.data + window->head, left);
    window->bytes.bytes = left;
    window->head = 0;
}

presto_status presto__text_window_fill(presto__text_window *window, size_t wish,
                                       presto_error *err) {
    make_room(window);
    size_t before = window->bytes.bytes;
    if (window->is_all)
        return PRESTO_OK;
    if (window->packing == PRESTO__NOT_PACKED)
        return fill_plain(window, wish, err);
    while (!window->is_all && window->bytes.bytes == before)
        PRESTO_TRY(unpack_some(window, err));
    return PRESTO_OK;
}

void presto__text_window_drop(presto__text_window *window, size_t bytes) {
    window->head += bytes;
    window->at += bytes;
}

static presto_status rewind_text(presto__text_window *window, presto_error *err) {
    presto__unpacker *fresh = NULL;
    if (window->packing != PRESTO__NOT_PACKED)
        PRESTO_TRY(presto__unpacker_new(window->packing, &fresh, err));
    presto__unpacker_free(window->unpacker);
    window->unpacker = fresh;
    window->input.bytes = window->input_used = 0;
    window->bytes.bytes = window->head = 0;
    window->at = window->file_offset = 0;
    window->is_all = false;
    window->damage.status = PRESTO_OK;
    return PRESTO_OK;
}

presto_status presto__text_window_seek(presto__text_window *window, uint64_t offset,
                                       uint64_t behind, presto_error *err) {
    if (window->packing == PRESTO__NOT_PACKED) {
        window->bytes.bytes = window->head = 0;
        window->at = window->file_offset = offset;
        window->is_all = false;
        return PRESTO_OK;
    }
    if (offset < window->at)
        PRESTO_TRY(rewind_text(window, err));
    for (;;) {
        uint64_t end = window->at + presto__text_window_view(window).bytes;
        uint64_t keep = offset > behind ? offset - behind : 0;
        if (keep > end)
            keep = end;
        if (keep > window->at)
            presto__text_window_drop(window, (size_t)(keep - window->at));
        if (end >= offset || window->is_all)
            return PRESTO_OK;
        PRESTO_TRY(presto__text_window_fill(window, OUTPUT_BYTES, err));
    }
}
