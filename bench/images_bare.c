/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bare loop: pread of each payload, libjpeg-turbo, the same resize kernel, center, crop. No
 * parsing, no order; a CRC and batches only if it does the same job as the loader.
 */
#include "images.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <presto/crc32c.h>
#include <presto/example.h>

#include "bare_jpeg.h"

enum { MIN_SIDE = 256 };
#define CROP ((size_t)224)

static uint8_t *room(presto_buffer *buffer, size_t bytes) {
    buffer->bytes = 0;
    bench_need(presto_buffer_reserve(buffer, bytes, NULL), NULL, "memory");
    return buffer->data;
}

static uint32_t next_random(images_scratch *s) {
    s->random = s->random * 1664525u + 1013904223u;
    return s->random >> 8;
}

static void decode(images_scratch *s, presto_span file, int64_t dims_out[2]) {
    bare_jpeg jpeg;
    bare_jpeg_start(&jpeg, file);
    dims_out[0] = jpeg.cinfo.output_height;
    dims_out[1] = jpeg.cinfo.output_width;
    size_t stride = (size_t)dims_out[1] * 3, rows = (size_t)dims_out[0];
    bare_jpeg_rows(&jpeg, room(&s->decoded, stride * rows), stride, rows);
    bare_jpeg_end(&jpeg);
}

static const uint8_t *resize(images_scratch *s, const uint8_t *pixels, int64_t dims[2]) {
    int64_t least = dims[0] < dims[1] ? dims[0] : dims[1];
    int64_t height = dims[0] * MIN_SIDE / least;
    int64_t width = dims[1] * MIN_SIDE / least;
    presto_part in = {0};
    in.whole = (presto_tensor_spec){PRESTO_UINT8, 3, {dims[0], dims[1], 3}};
    in.window = (presto_window){0, 0, dims[0], dims[1]};
    in.tensor.spec = in.whole;
    in.tensor.data = pixels;
    const presto__resized whole = {height, width, {0, 0, height, width}};
    s->resizer.use_avx2 = presto__use_avx2();
    uint8_t *out = room(&s->resized, (size_t)(height * width * 3));
    bench_need(presto__resize(&s->resizer, &in, &whole, out, NULL), NULL, "resize");
    dims[0] = height;
    dims[1] = width;
    return out;
}

static inline __attribute__((always_inline)) void center_body(const uint8_t *pixels, size_t count,
                                                              float *out) {
    for (size_t i = 0; i < count; i++)
        out[i] = (float)pixels[i] / 127.5f - 1.0f;
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static void center_avx2(const uint8_t *pixels, size_t count,
                                                        float *out) {
    center_body(pixels, count, out);
}
#else
#define center_avx2 center_body
#endif

static void center(const uint8_t *pixels, size_t count, float *out) {
    if (presto__use_avx2())
        center_avx2(pixels, count, out);
    else
        center_body(pixels, count, out);
}

static void crop_bytes(images_scratch *s, const void *in, const int64_t dims[2], size_t pixel_bytes,
                       void *out) {
    size_t y = next_random(s) % ((size_t)dims[0] - CROP + 1);
    size_t x = next_random(s) % ((size_t)dims[1] - CROP + 1);
    size_t stride = (size_t)dims[1] * pixel_bytes;
    for (size_t row = 0; row < CROP; row++)
        memcpy((uint8_t *)out + row * CROP * pixel_bytes,
               (const uint8_t *)in + (y + row) * stride + x * pixel_bytes, CROP * pixel_bytes);
}

/* From uint8 [h, w, 3] to float32 [224, 224, 3]. */
static void finish(images_scratch *s, const uint8_t *pixels, const int64_t dims[2], bool fused,
                   float *out) {
    if (fused) {
        uint8_t *window = room(&s->centered, CROP * CROP * 3);
        crop_bytes(s, pixels, dims, 3, window);
        center(window, CROP * CROP * 3, out);
    } else {
        size_t values = (size_t)(dims[0] * dims[1] * 3);
        float *whole = (float *)(void *)room(&s->centered, values * sizeof(float));
        center(pixels, values, whole);
        crop_bytes(s, whole, dims, 3 * sizeof(float), out);
    }
}

/* ---- reading ---- */

static presto_span read_item(images_scratch *s, const images_item *it) {
    int fd = it->fd >= 0 ? it->fd : open(it->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        bench_die("%s: %s", it->path, strerror(errno));
    size_t bytes = it->bytes;
    if (it->fd < 0) {
        struct stat info;
        if (fstat(fd, &info) != 0)
            bench_die("%s: %s", it->path, strerror(errno));
        bytes = (size_t)info.st_size;
    }
    uint8_t *data = room(&s->payload, bytes);
    for (size_t done = 0; done < bytes;) {
        ssize_t got = pread(fd, data + done, bytes - done, (off_t)(it->offset + done));
        if (got <= 0)
            bench_die("%s: cannot read", it->path);
        done += (size_t)got;
    }
    if (it->fd < 0)
        close(fd);
    return presto_span_of(data, bytes);
}

/* The whole record, its CRC computed piece by piece while the piece is in the cache. */
static presto_span read_checked(images_scratch *s, const images_item *it) {
    enum { PIECE = 256 << 10 };
    size_t payload = it->before + it->bytes + it->after;
    size_t bytes = payload + PRESTO_FRAME_FOOTER_BYTES;
    uint8_t *data = room(&s->payload, bytes);
    uint64_t offset = it->offset - it->before;
    uint32_t crc = 0, stored;
    for (size_t done = 0; done < bytes;) {
        size_t want = bytes - done < PIECE ? bytes - done : PIECE;
        ssize_t got = pread(it->fd, data + done, want, (off_t)(offset + done));
        if (got <= 0)
            bench_die("%s: cannot read", it->path);
        size_t end = done + (size_t)got;
        if (done < payload)
            crc = presto_crc32c(crc, data + done, (end < payload ? end : payload) - done);
        done = end;
    }
    memcpy(&stored, data + payload, sizeof stored);
    if (stored != presto_crc32c_mask(crc))
        bench_die("CRC differs");
    return presto_span_of(data + it->before, it->bytes);
}

/* Where the next sample goes: of two batches, one is with whoever uses it. */
static float *output(const images_work *w, images_scratch *s) {
    size_t bytes = CROP * CROP * 3 * sizeof(float);
    if (!w->same_job)
        return (float *)(void *)room(&s->crop, bytes);
    size_t row = s->row++ % ((size_t)2 * IMAGES_BATCH);
    return (float *)(void *)(room(&s->batch, (size_t)2 * IMAGES_BATCH * bytes) + row * bytes);
}

static void bare_thread(void *user, unsigned thread) {
    images_work *w = user;
    images_scratch *s = &w->scratch[thread];
    for (;;) {
        size_t i = atomic_fetch_add(&w->next, 1);
        if (i >= w->item_count * w->passes)
            return;
        const images_item *it = &w->items[i % w->item_count];
        presto_span in = w->same_job ? read_checked(s, it) : read_item(s, it);
        int64_t dims[2] = {it->dims[0], it->dims[1]};
        const uint8_t *pixels = in.data;
        if (w->level <= IMAGES_CONCATENATED) {
            decode(s, in, dims);
            pixels = s->decoded.data;
        }
        if (w->level <= IMAGES_DECODED)
            pixels = resize(s, pixels, dims);
        if (w->level <= IMAGES_RESIZED)
            finish(s, pixels, dims, w->fused, output(w, s));
        else
            crop_bytes(s, pixels, dims, 3 * sizeof(float), output(w, s));
    }
}

double images_run_bare(void *user) {
    images_work *w = user;
    atomic_store(&w->next, 0);
    bench_on_threads(w->threads, bare_thread, w);
    for (unsigned i = 0; i < w->threads; i++) /* a loader starts with fresh memory as well */
        presto_buffer_done(&w->scratch[i].batch);
    return (double)(w->item_count * w->passes);
}
