/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A JPEG by the decoder of jpeg_fast_internal.h and by libjpeg-turbo: what the first one accepts the
 * other one decodes without a warning, to the same pixels. The first byte chooses instructions,
 * transform, reduction and channels; the others are the file. A window is decoded as well.
 */
#include "../unit/steps/jpeg_check.h"
#include "fuzz.h"

#define MAX_PIXELS (1 << 18)

/* The decoder is told how many pixels to leave, not by what to reduce. */
static void take_reduction(presto__jpeg_fast *decoder, presto_span in, jpeg_request *request) {
    const presto__encoded_image image = {
        .bytes = in, .channels = request->channels, .max_bytes = (uint64_t)1 << 26};
    presto_tensor_spec full = {0};
    if (presto__jpeg_fast_open(decoder, &image, &full))
        request->by = jpeg_reduction((unsigned)full.dims[1], (unsigned)full.dims[0], request->by);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    static presto__jpeg_fast *decoders[PRESTO__JPEG_LEVELS];
    if (bytes < 4 || bytes > 1 << 16)
        return 0;
    unsigned level = data[0] % 3;
    if (level != PRESTO__JPEG_PORTABLE && presto__jpeg_level_is_there(PRESTO__JPEG_NEON))
        level = PRESTO__JPEG_NEON;
    if (!presto__jpeg_level_is_there((presto__jpeg_level)level))
        level = PRESTO__JPEG_PORTABLE;
    if (decoders[level] == NULL)
        decoders[level] = presto__jpeg_fast_new((presto__jpeg_level)level);
    FUZZ_HOLDS(decoders[level] != NULL);
    uint8_t *copy = malloc(bytes - 1);
    FUZZ_HOLDS(copy != NULL);
    memcpy(copy, data + 1, bytes - 1);
    presto_span in = presto_span_of(copy, bytes - 1);
    jpeg_request request = {.channels = (data[0] & 64) != 0 ? 1 : 3,
                            .by = 1U << (data[0] / 4 % 4),
                            .is_accurate = (data[0] & 128) != 0};
    take_reduction(decoders[level], in, &request);
    jpeg_result want = jpeg_by_libjpeg(in, &request, MAX_PIXELS);
    presto_window all = {0, 0, (int64_t)want.height, (int64_t)want.width};
    presto_tensor_spec spec = {0};
    /* Larger images are left out. */
    uint8_t *got = want.width == 0 && want.is_decoded
                       ? NULL
                       : jpeg_by_fast(decoders[level], in, &request, NULL, &spec);
    bool is_comparable = spec.dims[0] == all.height && spec.dims[1] == all.width;
    if (got != NULL && is_comparable) {
        FUZZ_HOLDS(want.is_decoded && want.warnings == 0);
        FUZZ_HOLDS(jpeg_window_is_equal(&want, &all, got));
        presto_window window = {all.height / 3, all.width / 3, 1 + all.height / 4,
                                1 + all.width / 4};
        if (window.y + window.height <= all.height && window.x + window.width <= all.width) {
            uint8_t *part = jpeg_by_fast(decoders[level], in, &request, &window, &spec);
            FUZZ_HOLDS(part != NULL && jpeg_window_is_equal(&want, &window, part));
            free(part);
        }
    }
    free(got);
    free(want.pixels);
    free(copy);
    return 0;
}
