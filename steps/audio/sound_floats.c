/* SPDX-License-Identifier: Apache-2.0 */
/* Samples that a decoder gives as floats. */
#include "audio_internal.h"

/* Without branches and calls, so that compilers make vectors of it. A float of about 1.5 * 2^23 has
 * no bits below 1: adding that rounds as lrintf() does, and leaves the integer in the low bits. */
void presto__sound_from_floats(int16_t *out, const float *values, size_t count) {
    const float turn = 12582912.0f;
    for (size_t i = 0; i < count; i++) {
        float scaled = values[i] * 32768.0f;
        scaled = scaled == scaled ? scaled : 0.0f;
        scaled = scaled < 32767.0f ? scaled : 32767.0f;
        scaled = scaled > -32768.0f ? scaled : -32768.0f;
        float turned = scaled + turn;
        int32_t bits;
        memcpy(&bits, &turned, sizeof bits);
        out[i] = (int16_t)(bits - 0x4b400000);
    }
}
