/* SPDX-License-Identifier: Apache-2.0 */
/* PNG decoding in two halves, header and pixels. */
#ifndef PRESTO_STEPS_PNG_INTERNAL_H
#define PRESTO_STEPS_PNG_INTERNAL_H

#include "../steps_internal.h"

typedef struct presto__png {
    void *context; /* spng_ctx while an image is open, else NULL */
    presto_tensor_spec spec;
    int stored_channels; /* of libspng's image: 3 or 4; cut to spec's if more */
} presto__png;

bool presto__png_probe(presto_span in);

/** Read the header of `image`, whose channels are 0, 1, 3 or 4. */
presto_status presto__png_open(presto__png *png, const presto__encoded_image *image,
                               presto_tensor_spec *spec_out, presto_error *err);

/** Bytes of scratch memory that presto__png_read needs; 0 if none. */
size_t presto__png_scratch_bytes(const presto__png *png);

/** The whole image into `out`. Closes it. */
presto_status presto__png_read(presto__png *png, uint8_t *out, uint8_t *scratch, presto_error *err);

void presto__png_close(presto__png *png);

#endif
