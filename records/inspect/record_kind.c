/* SPDX-License-Identifier: Apache-2.0 */
/* What foreign records are: Examples or not, and how they are compressed. Each guess is proven
 * by trying it. */
#include "inspect_internal.h"

#include <presto/example.h>

#include "../example/example_internal.h"

const char *presto__record_kind_name(presto__record_kind kind) {
    switch (kind) {
    case PRESTO__KIND_EMPTY:
        return "empty";
    case PRESTO__KIND_EXAMPLE:
        return "Example";
    case PRESTO__KIND_SEQUENCE:
        return "SequenceExample";
    case PRESTO__KIND_BYTES:
        return "bytes";
    }
    return "?";
}

presto__record_kind presto__record_kind_of(presto_span record, presto_arena *arena) {
    if (record.bytes == 0)
        return PRESTO__KIND_EMPTY;
    /* Other messages parse as well, as unknown fields only. So only a message without other
     * fields counts. */
    presto_sample sample;
    bool lists = false;
    presto__wire wire = presto__wire_of(record);
    while (wire.at != wire.end) {
        presto__wire_field field;
        if (!presto__wire_next(&wire, &field) || field.type != PRESTO__WIRE_BYTES ||
            field.number > 2)
            return PRESTO__KIND_BYTES;
        lists |= field.number == 2;
    }
    if (presto_example_parse(record, NULL, arena, &sample, NULL) < 0)
        return PRESTO__KIND_BYTES;
    return lists ? PRESTO__KIND_SEQUENCE : PRESTO__KIND_EXAMPLE;
}

/* ---- codec ---- */

/* The payloads whose codec is searched. */
typedef struct guess {
    const presto_span *payloads;
    size_t count;
    presto_arena *arena;
    presto_error *err;
} guess;

/* Empties the arena: what the next record needs comes in its place. */
static bool is_message(presto_span record, presto_arena *arena) {
    presto__record_kind kind = presto__record_kind_of(record, arena);
    presto_arena_reset(arena);
    return kind == PRESTO__KIND_EXAMPLE || kind == PRESTO__KIND_SEQUENCE;
}

/* Does the codec decode any of the payloads? With `proof`, it must decode to an Example. */
static presto_status try_codec(const guess *job, const presto_codec_spec *spec, bool proof,
                               bool *fits_out) {
    presto_codec *codec;
    bool fits = false;
    PRESTO_TRY(presto_codec_new(spec, &codec, job->err));
    presto_status status = PRESTO_OK;
    for (size_t i = 0; i < job->count && status == PRESTO_OK && !fits; i++) {
        presto_span record;
        presto_status result = presto_codec_decompress(
            codec, job->payloads[i], &(presto_codec_room){job->arena, (uint64_t)256 << 20}, &record,
            job->err);
        if (result == PRESTO_ERR_MEMORY)
            status = result;
        else if (result == PRESTO_OK)
            fits = !proof || is_message(record, job->arena);
        presto_arena_reset(job->arena);
    }
    presto_codec_free(codec);
    *fits_out = fits;
    return status;
}

/* Answer with the codec called `name`, if it fits. */
static presto_status propose(const guess *job, const char *name, bool proof,
                             presto_codec_spec *spec_out, bool *fits_out) {
    presto_codec_spec spec;
    presto_status status = presto_codec_parse(name, &spec, job->err);
    *fits_out = false;
    if (status == PRESTO_ERR_UNSUPPORTED)
        return PRESTO_OK;
    PRESTO_TRY(status);
    PRESTO_TRY(try_codec(job, &spec, proof, fits_out));
    if (*fits_out)
        *spec_out = spec;
    return PRESTO_OK;
}

presto_status presto__guess_codec(const presto_span *payloads, size_t count, presto_arena *arena,
                                  presto_codec_spec *spec_out, presto_error *err) {
    const guess job = {payloads, count, arena, err};
    bool all_empty = true, fits;
    PRESTO_TRY(presto_codec_parse("none", spec_out, err));
    for (size_t i = 0; i < count; i++) {
        if (is_message(payloads[i], arena))
            return PRESTO_OK;
        all_empty &= payloads[i].bytes == 0;
    }
    if (all_empty)
        return PRESTO_OK;
    for (size_t i = 0; i < count; i++) {
        const char *name = presto_codec_guess(payloads[i]);
        if (strcmp(name, "none") == 0)
            continue;
        PRESTO_TRY(propose(&job, name, false, spec_out, &fits));
        if (fits)
            return PRESTO_OK;
    }
    /* snappy has no signature: Examples in the output are the proof. */
    return propose(&job, "snappy", true, spec_out, &fits);
}
