/* SPDX-License-Identifier: Apache-2.0 */
/* One codec, named by FUZZ_CODEC: any bytes are decompressed, and any bytes come back from a round
 * trip. */
#include "../../records/records_internal.h"
#include "fuzz.h"

#include <string.h>

#include <presto/codec.h>

#define LIMIT ((uint64_t)1 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    static presto_codec *codec;
    static presto_arena arena;
    presto_span in = presto_span_of(data, bytes), out;
    if (codec == NULL) {
        presto_codec_spec spec;
        presto_status status = presto_codec_parse(FUZZ_CODEC, &spec, NULL);
        if (status == PRESTO_ERR_UNSUPPORTED)
            return 0;
        FUZZ_HOLDS(status == PRESTO_OK);
        FUZZ_HOLDS(presto_codec_new(&spec, &codec, NULL) == PRESTO_OK);
    }
    presto_arena_reset(&arena);
    if (presto_codec_decompress(codec, in, &(presto_codec_room){&arena, LIMIT}, &out, NULL) ==
        PRESTO_OK)
        FUZZ_HOLDS(out.bytes <= LIMIT);
    FUZZ_HOLDS(arena.total_bytes < 16 * LIMIT);
    if (bytes > 0 && bytes <= 65536) {
        presto_buffer packed = {0};
        FUZZ_HOLDS(presto__codec_compress(codec, in, &packed, NULL) == PRESTO_OK);
        FUZZ_HOLDS(presto_codec_decompress(codec, presto_buffer_span(&packed),
                                           &(presto_codec_room){&arena, LIMIT}, &out,
                                           NULL) == PRESTO_OK);
        FUZZ_HOLDS(presto_span_equal(in, out));
        presto_buffer_done(&packed);
    }
    return 0;
}
