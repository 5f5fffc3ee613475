/* SPDX-License-Identifier: Apache-2.0 */
/* All steps, in the order of the help. */
#include "pipelines_internal.h"
#include "steps_internal.h"

/* One line a step. */
/* clang-format off */
static const presto_step_type *const steps[] = {
    &presto__step_read_file,
    &presto__step_index_jpeg,
    &presto__step_decode_image,
    &presto__step_resize_image,
    &presto__step_center_pixels,
    &presto__step_random_crop,
    &presto__step_random_resized_crop,
    &presto__step_greyscale,
    &presto__step_horizontal_flip,
    &presto__step_color_jitter,
    &presto__step_crop_or_pad,
    &presto__step_pad,
    &presto__step_normalize,
    &presto__step_to_layout,
    &presto__step_cast,
    &presto__step_filter,
    &presto__step_decode_npy,
    &presto__step_pack,
    &presto__step_extract_text,
    &presto__step_bpe_encode,
    &presto__step_embed,
    &presto__step_aggregate,
    &presto__step_rms,
    &presto__step_decode_audio,
    &presto__step_mel_spectrogram,
    &presto__step_command,
};
/* clang-format on */
#define STEP_COUNT (sizeof steps / sizeof steps[0])

const presto_step_type *presto__step_at(size_t i) {
    return i < STEP_COUNT ? steps[i] : NULL;
}

const presto_step_type *presto__step_find(const char *name) {
    for (size_t i = 0; i < STEP_COUNT; i++)
        if (strcmp(steps[i]->name, name) == 0)
            return steps[i];
    return NULL;
}
