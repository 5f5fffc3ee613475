/* SPDX-License-Identifier: Apache-2.0 */
/* JPEG decoding in two parts, header and pixels, so that a plan can read the size first. */
#ifndef PRESTO_STEPS_JPEG_INTERNAL_H
#define PRESTO_STEPS_JPEG_INTERNAL_H

#include "../steps_internal.h"

typedef struct presto__jpeg presto__jpeg;

/** The state of one thread. Owner: caller, presto__jpeg_free. NULL: no memory. */
presto__jpeg *presto__jpeg_new(void);
void presto__jpeg_free(presto__jpeg *jpeg);

/** Does it begin like a JPEG? */
bool presto__jpeg_probe(presto_span in);

/**
 * Read the header of `image`, whose channels are 0, 1 or 3. *spec_out is the decoded image's, of
 * full size, or of a half, quarter or eighth of it (rounded up) where image->least allows it.
 * Closes an image that is still open.
 */
presto_status presto__jpeg_open(presto__jpeg *jpeg, const presto__encoded_image *image,
                                presto_tensor_spec *spec_out, presto_error *err);

/**
 * Memory that libjpeg takes from presto__jpeg_aim to the end of presto__jpeg_read, beside some rows:
 * the coefficients of all blocks, if the image comes in several scans; else 0.
 */
size_t presto__jpeg_coefficient_bytes(presto__jpeg *jpeg);

/**
 * The window that presto__jpeg_read delivers if `wanted` is asked for. It is at least as wide,
 * because columns come in whole blocks. Call it once, between open and read.
 */
presto_status presto__jpeg_aim(presto__jpeg *jpeg, const presto_window *wanted,
                               presto_window *window_out, presto_error *err);

/**
 * The window's pixels into `out`, rows without gaps. `scratch` has presto__jpeg_scratch_bytes().
 * The rest of the file is read as well, to find any damage. Closes the image.
 */
presto_status presto__jpeg_read(presto__jpeg *jpeg, uint8_t *out, uint8_t *scratch,
                                presto_error *err);
size_t presto__jpeg_scratch_bytes(const presto__jpeg *jpeg);

void presto__jpeg_close(presto__jpeg *jpeg);

#endif
