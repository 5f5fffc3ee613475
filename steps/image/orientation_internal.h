/* SPDX-License-Identifier: Apache-2.0 */
/* The orientation that EXIF gives an image: where it stands, and how pixels are turned. */
#ifndef PRESTO_STEPS_ORIENTATION_INTERNAL_H
#define PRESTO_STEPS_ORIENTATION_INTERNAL_H

#include "../geometry_internal.h"
#include "../steps_internal.h"

/**
 * The orientation, 1 to 8, in the EXIF of a JPEG (the first APP1 segment that has one) or PNG (the
 * first eXIf chunk). 1, which is upright, if there is none, or none that can be read: photos with
 * damaged EXIF are common, and their pixels are whole. Linear in the bytes before the pixels.
 */
int presto__exif_orientation(presto_span image);

presto__turn presto__turn_of(int orientation);
bool presto__turn_is_none(const presto__turn *turn);

/** The upright image's spec. */
presto_tensor_spec presto__turn_spec(const presto__turn *turn, const presto_tensor_spec *stored);

/** The window of the stored image, whose spec is `stored`, that holds `upright`'s pixels. */
presto_window presto__turn_window(const presto__turn *turn, const presto_tensor_spec *stored,
                                  const presto_window *upright);

/** Write the window `upright` of the upright image into rows without gaps. `stored` holds at least
 * presto__turn_window(). */
void presto__turn_copy(const presto__turn *turn, const presto_part *stored,
                       const presto_window *upright, void *out);

#endif
