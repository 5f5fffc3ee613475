/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several sources as one: the samples of each input have the numbers behind those of the input
 * before it. A reader has a reader of each input. A fetch sorts its numbers by input and reads each
 * input's together; nothing is copied.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "../../../base/checked_internal.h"
#include "../../../base/memory_internal.h"
#include "../../../records/records_internal.h"
#include "../../loader_internal.h"
#include "mix_internal.h"

#define MOST_WEIGHT 1e9

typedef struct mix_source {
    presto_source base;
    presto__source_ops ops;  /* without the hooks that an input lacks */
    presto_source **sources; /* of the inputs, borrowed */
    void *owned;
    void (*free_owned)(void *owned);
} mix_source;

/* A sample that was fetched: of which input, and its place in what that fetched. */
typedef struct mix_place {
    size_t input, at;
} mix_place;

typedef struct mix_reader {
    presto__reader base;
    const mix_source *mix;
    presto__reader **readers; /* of each input */
    size_t current;           /* the input of the sample taken last */
    mix_place *places;
    uint64_t *numbers; /* by input */
    size_t capacity;
} mix_reader;

/* ---- the reader ---- */

static const presto__source_ops *ops_of(const mix_source *mix, size_t input) {
    return mix->sources[input]->ops;
}

/* The input that has a sample. */
static size_t input_of(const mix_source *mix, uint64_t number) {
    return presto__part_of(&mix->base.parts[0].first_sample, sizeof mix->base.parts[0],
                           mix->base.part_count, number);
}

/* What the worker has set for a sample, or for a fetch. */
static presto__reader *prepare(mix_reader *reader, size_t input) {
    presto__reader *inner = reader->readers[input];
    inner->time_scale = reader->base.time_scale;
    inner->aligns = reader->base.aligns;
    inner->grower = reader->base.grower;
    return inner;
}

/* What the input's reader has counted. */
static void take_stats(mix_reader *reader, presto__reader *inner) {
    presto__read_stats *sum = &reader->base.stats;
    sum->read_bytes += inner->stats.read_bytes;
    sum->read_ns += inner->stats.read_ns;
    sum->decompress_ns += inner->stats.decompress_ns;
    sum->parse_ns += inner->stats.parse_ns;
    inner->stats = (presto__read_stats){0};
}

static presto_status reserve(mix_reader *reader, size_t count, presto_error *err) {
    if (count <= reader->capacity)
        return PRESTO_OK;
    mix_place *places = realloc(reader->places, count * sizeof *places);
    if (places == NULL)
        return presto_fail_memory(err, count * sizeof *places);
    reader->places = places;
    uint64_t *numbers = realloc(reader->numbers, count * sizeof *numbers);
    if (numbers == NULL)
        return presto_fail_memory(err, count * sizeof *numbers);
    reader->numbers = numbers;
    reader->capacity = count;
    return PRESTO_OK;
}

static presto_status mix_fetch(presto__reader *base, const uint64_t *numbers, size_t count,
                               presto__blocks *blocks, presto_error *err) {
    mix_reader *reader = (mix_reader *)base;
    const mix_source *mix = reader->mix;
    size_t inputs = mix->base.part_count;
    size_t counts[PRESTO_MIX_MOST_INPUTS] = {0}, start = 0;
    PRESTO_TRY(reserve(reader, count, err));
    for (size_t i = 0; i < count; i++) {
        size_t input = input_of(mix, numbers[i]);
        reader->places[i] = (mix_place){input, counts[input]++};
    }
    size_t starts[PRESTO_MIX_MOST_INPUTS];
    for (size_t k = 0; k < inputs; start += counts[k++])
        starts[k] = start;
    for (size_t i = 0; i < count; i++) {
        const mix_place *place = &reader->places[i];
        reader->numbers[starts[place->input] + place->at] =
            numbers[i] - mix->base.parts[place->input].first_sample;
    }
    for (size_t k = 0; k < inputs; k++) {
        if (counts[k] == 0)
            continue;
        presto__reader *inner = prepare(reader, k);
        presto_status status =
            ops_of(mix, k)->fetch(inner, reader->numbers + starts[k], counts[k], blocks, err);
        take_stats(reader, inner);
        PRESTO_TRY(status);
    }
    return PRESTO_OK;
}

/* Sample i of what was fetched: the input that it is from, and its place in what that fetched. */
typedef struct mix_turn {
    presto__reader *inner;
    const presto__source_ops *ops;
    size_t input, at;
} mix_turn;

static mix_turn begin_turn(mix_reader *reader, size_t i) {
    const mix_place *place = &reader->places[i];
    mix_turn turn = {prepare(reader, place->input), ops_of(reader->mix, place->input), place->input,
                     place->at};
    turn.inner->lost_shard = false;
    return turn;
}

static void end_turn(mix_reader *reader, const mix_turn *turn) {
    reader->base.lost_shard = turn->inner->lost_shard;
    take_stats(reader, turn->inner);
}

static presto_status mix_sample(presto__reader *base, size_t i, presto_arena *arena,
                                presto_sample *sample_out, presto_error *err) {
    mix_reader *reader = (mix_reader *)base;
    mix_turn turn = begin_turn(reader, i);
    reader->current = turn.input;
    presto_status status = turn.ops->sample(turn.inner, turn.at, arena, sample_out, err);
    end_turn(reader, &turn);
    if (status == PRESTO_OK)
        sample_out->number += reader->mix->base.parts[turn.input].first_sample;
    return status;
}

static presto_status mix_values(presto__reader *base, size_t i, presto_arena *arena,
                                presto__example_values *values_out, presto_error *err) {
    mix_reader *reader = (mix_reader *)base;
    mix_turn turn = begin_turn(reader, i);
    presto_status status = turn.ops->values(turn.inner, turn.at, arena, values_out, err);
    end_turn(reader, &turn);
    /* Each input numbers its features by itself. */
    if (status == PRESTO_OK)
        values_out->generation =
            values_out->generation * PRESTO_MIX_MOST_INPUTS + (uint64_t)turn.input;
    return status;
}

static presto_status mix_record(presto__reader *base, size_t i, presto_arena *arena,
                                presto__stored_record *record_out, presto_error *err) {
    mix_reader *reader = (mix_reader *)base;
    mix_turn turn = begin_turn(reader, i);
    presto_status status = turn.ops->record(turn.inner, turn.at, arena, record_out, err);
    end_turn(reader, &turn);
    return status;
}

static void mix_place_error(presto__reader *base, size_t i, presto_error *err) {
    mix_reader *reader = (mix_reader *)base;
    const mix_place *place = &reader->places[i];
    ops_of(reader->mix, place->input)->place(reader->readers[place->input], place->at, err);
}

static void mix_locate(const presto_source *base, uint64_t number, presto_error *err) {
    const mix_source *mix = (const mix_source *)base;
    size_t input = input_of(mix, number);
    ops_of(mix, input)->locate(mix->sources[input], number - base->parts[input].first_sample, err);
}

/* The numbers of an input that follow each other here are told together. */
static void mix_will_read(presto__reader *base, const uint64_t *numbers, size_t count) {
    enum { AT_ONCE = 1024 };
    mix_reader *reader = (mix_reader *)base;
    const mix_source *mix = reader->mix;
    uint64_t told[AT_ONCE];
    for (size_t k = 0; k < mix->base.part_count; k++) {
        if (ops_of(mix, k)->will_read == NULL)
            continue;
        uint64_t first = mix->base.parts[k].first_sample;
        uint64_t samples = presto__source_all(mix->sources[k]);
        size_t used = 0;
        for (size_t i = 0; i <= count; i++) {
            if (used == AT_ONCE || (i == count && used > 0)) {
                ops_of(mix, k)->will_read(reader->readers[k], told, used);
                used = 0;
            }
            if (i < count && numbers[i] >= first && numbers[i] - first < samples)
                told[used++] = numbers[i] - first;
        }
    }
}

static presto_status mix_read_file(void *user, presto_span path, presto_arena *arena,
                                   presto_span *bytes_out, presto_error *err) {
    mix_reader *reader = user;
    presto__reader *inner = reader->readers[reader->current];
    presto_status status =
        ops_of(reader->mix, reader->current)->read_file(inner, path, arena, bytes_out, err);
    take_stats(reader, inner);
    return status;
}

static bool mix_owned(const presto__reader *base, size_t i) {
    const mix_reader *reader = (const mix_reader *)base;
    const mix_place *place = &reader->places[i];
    return ops_of(reader->mix, place->input)->owned(reader->readers[place->input], place->at);
}

static void mix_reader_free(presto__reader *base) {
    mix_reader *reader = (mix_reader *)base;
    if (reader == NULL)
        return;
    for (size_t k = 0; reader->readers != NULL && k < reader->mix->base.part_count; k++)
        if (reader->readers[k] != NULL)
            ops_of(reader->mix, k)->reader_free(reader->readers[k]);
    free((void *)reader->readers);
    free(reader->places);
    free(reader->numbers);
    free(reader);
}

static presto_status make_readers(mix_reader *reader, const presto__reader_options *options,
                                  presto_error *err) {
    const mix_source *mix = reader->mix;
    reader->readers = calloc(mix->base.part_count, sizeof(presto__reader *));
    if (reader->readers == NULL)
        return presto_fail_memory(err, mix->base.part_count * sizeof(presto__reader *));
    reader->base.is_selective = true;
    for (size_t k = 0; k < mix->base.part_count; k++) {
        PRESTO_TRY(ops_of(mix, k)->reader_new(mix->sources[k], options, &reader->readers[k], err));
        reader->base.is_selective = reader->base.is_selective && reader->readers[k]->is_selective;
    }
    return PRESTO_OK;
}

static presto_status mix_reader_new(presto_source *source, const presto__reader_options *options,
                                    presto__reader **reader_out, presto_error *err) {
    mix_reader *reader = presto__memory_apart(1, sizeof *reader);
    if (reader == NULL)
        return presto_fail_memory(err, sizeof *reader);
    reader->base.source = source;
    reader->mix = (const mix_source *)source;
    presto_status status = make_readers(reader, options, err);
    if (status < 0) {
        mix_reader_free(&reader->base);
        return status;
    }
    *reader_out = &reader->base;
    return PRESTO_OK;
}

/* ---- the source ---- */

static void mix_free(presto_source *base) {
    mix_source *mix = (mix_source *)base;
    for (size_t k = 0; k < base->part_count; k++)
        free((void *)(uintptr_t)base->parts[k].name);
    free(base->parts);
    presto__source_done(base);
    free((void *)mix->sources);
    if (mix->free_owned != NULL)
        mix->free_owned(mix->owned);
    free(mix);
}

void presto__source_mix_own(presto_source *base, void *owned, void (*free_owned)(void *owned)) {
    mix_source *mix = (mix_source *)base;
    mix->owned = owned;
    mix->free_owned = free_owned;
}

static presto_status mix_drop_cache(presto_source *base, presto_error *err) {
    const mix_source *mix = (const mix_source *)base;
    for (size_t k = 0; k < base->part_count; k++)
        PRESTO_TRY(presto__source_drop_cache(mix->sources[k], err));
    return PRESTO_OK;
}

static bool mix_take_warning(presto_source *base, presto_error *warning_out) {
    const mix_source *mix = (const mix_source *)base;
    for (size_t k = 0; k < base->part_count; k++) {
        const presto__source_ops *ops = ops_of(mix, k);
        if (ops->take_warning != NULL && ops->take_warning(mix->sources[k], warning_out))
            return true;
    }
    return false;
}

static presto_status mix_check_random_access(presto_source *base, presto_error *err) {
    const mix_source *mix = (const mix_source *)base;
    for (size_t k = 0; k < base->part_count; k++)
        if (ops_of(mix, k)->check_random_access != NULL)
            PRESTO_TRY(ops_of(mix, k)->check_random_access(mix->sources[k], err));
    return PRESTO_OK;
}

/* The codec of all inputs; NULL: they have none, or not the same one. */
static const presto_codec_spec *mix_codec(const presto_source *base) {
    const mix_source *mix = (const mix_source *)base;
    const presto_codec_spec *first = NULL;
    char text[2][PRESTO_CODEC_TEXT_BYTES];
    for (size_t k = 0; k < base->part_count; k++) {
        const presto__source_ops *ops = ops_of(mix, k);
        const presto_codec_spec *codec = ops->codec == NULL ? NULL : ops->codec(mix->sources[k]);
        if (codec == NULL)
            return NULL;
        if (first == NULL)
            first = codec;
        presto__codec_format(first, text[0]);
        presto__codec_format(codec, text[1]);
        if (strcmp(text[0], text[1]) != 0 ||
            !presto_span_equal(first->dictionary, codec->dictionary))
            return NULL;
    }
    return first;
}

uint64_t presto__source_part_digest(const presto_source *base, size_t part) {
    return presto__source_digest(((const mix_source *)base)->sources[part]);
}

static uint64_t mix_digest(const presto_source *base) {
    uint64_t digest = PRESTO__FNV_START;
    for (size_t k = 0; k < base->part_count; k++) {
        digest = presto__fnv_mix(digest, presto__source_part_digest(base, k));
        digest = presto__fnv_mix(digest, base->parts[k].samples);
        digest = presto__fnv_mix(digest, base->parts[k].epoch_samples);
    }
    return digest;
}

static presto_status mix_identify(const presto_source *base, bool as_named, presto__digest *digest,
                                  presto_error *err) {
    const mix_source *mix = (const mix_source *)base;
    for (size_t k = 0; k < base->part_count; k++) {
        uint64_t samples = presto__source_all(mix->sources[k]);
        presto__digest_add(digest, &samples, sizeof samples);
        PRESTO_TRY(ops_of(mix, k)->identify(mix->sources[k], as_named, digest, err));
    }
    return PRESTO_OK;
}

static size_t mix_will_open(presto__reader *base, const uint64_t *numbers, size_t count) {
    mix_reader *reader = (mix_reader *)base;
    const mix_source *mix = reader->mix;
    for (size_t i = 0; i < count; i++) {
        size_t k = input_of(mix, numbers[i]);
        uint64_t number = numbers[i] - mix->base.parts[k].first_sample;
        if (mix->sources[k]->is_remote && ops_of(mix, k)->will_open != NULL &&
            ops_of(mix, k)->will_open(reader->readers[k], &number, 1) == 0)
            return i;
    }
    return count;
}

static const presto__source_ops all_ops = {
    .free = mix_free,
    .drop_cache = mix_drop_cache,
    .take_warning = mix_take_warning,
    .check_random_access = mix_check_random_access,
    .reader_new = mix_reader_new,
    .reader_free = mix_reader_free,
    .fetch = mix_fetch,
    .sample = mix_sample,
    .values = mix_values,
    .record = mix_record,
    .place = mix_place_error,
    .locate = mix_locate,
    .will_read = mix_will_read,
    .will_open = mix_will_open,
    .read_file = mix_read_file,
    .owned = mix_owned,
    .codec = mix_codec,
    .digest = mix_digest,
    .identify = mix_identify,
};

/* A hook that an input lacks is no hook of the mix. */
static void choose_ops(mix_source *mix) {
    mix->ops = all_ops;
    for (size_t k = 0; k < mix->base.part_count; k++) {
        const presto__source_ops *ops = ops_of(mix, k);
        if (ops->record == NULL)
            mix->ops.record = NULL;
        if (ops->values == NULL || mix->sources[k]->is_raw)
            mix->ops.values = NULL;
        if (ops->read_file == NULL)
            mix->ops.read_file = NULL;
        if (ops->owned == NULL)
            mix->ops.owned = NULL;
    }
    mix->base.ops = &mix->ops;
}

/* ---- what it is made of ---- */

static presto_status add_input(mix_source *mix, const presto__mixed_source *input,
                               presto_error *err) {
    presto_source *base = &mix->base;
    PRESTO_TRY(presto__source_settle(input->source, err));
    uint64_t samples = presto_source_count(input->source);
    if (!(input->weight > 0 && input->weight <= MOST_WEIGHT))
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "the weight of %s is %g, not a number above 0 and up to %g", input->name,
                           input->weight, MOST_WEIGHT);
    if (samples == 0)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "%s has no samples, so that it cannot be mixed with others",
                           input->name);
    char *name = strdup(input->name);
    if (name == NULL)
        return presto_fail_memory(err, strlen(input->name) + 1);
    mix->sources[base->part_count] = input->source;
    base->parts[base->part_count++] = (presto_source_part){
        .name = name, .weight = input->weight, .first_sample = base->count, .samples = samples};
    base->full_bytes += presto_source_bytes(input->source);
    base->is_remote = base->is_remote || input->source->is_remote;
    base->full_count += samples;
    if (!presto__u64_add(base->count, presto__source_all(input->source), &base->count) ||
        base->count > PRESTO__MIX_MOST_SAMPLES)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "the inputs have more than 2^56 samples together");
    return PRESTO_OK;
}

/* The samples of input k that come, as numbers of the mix. */
static presto_status add_chosen(mix_source *mix, size_t k, presto_error *err) {
    const presto_source_part *part = &mix->base.parts[k];
    const presto__subset *chosen = mix->sources[k]->subset;
    for (uint64_t i = 0; i < part->samples; i++) {
        uint64_t number = i;
        if (chosen != NULL)
            presto__subset_numbers(chosen, &number, 1);
        PRESTO_TRY(presto__subset_add(mix->base.subset, part->first_sample + number, err));
    }
    return PRESTO_OK;
}

/* Inputs that are parts of what their files hold: the mix has their samples only. */
static presto_status choose_samples(mix_source *mix, presto_error *err) {
    presto_source *base = &mix->base;
    if (base->full_count == base->count)
        return PRESTO_OK;
    PRESTO_TRY(presto__subset_new(base->count, &base->subset, err));
    for (size_t k = 0; k < base->part_count; k++)
        PRESTO_TRY(add_chosen(mix, k, err));
    return PRESTO_OK;
}

static presto_status fill(mix_source *mix, const presto__mix_request *request, presto_error *err) {
    mix->sources = calloc(request->count + 1, sizeof(presto_source *));
    mix->base.parts = calloc(request->count + 1, sizeof *mix->base.parts);
    if (mix->sources == NULL || mix->base.parts == NULL)
        return presto_fail_memory(err, request->count * sizeof *mix->base.parts);
    for (size_t k = 0; k < request->count; k++)
        PRESTO_TRY(add_input(mix, &request->inputs[k], err));
    choose_ops(mix);
    PRESTO_TRY(choose_samples(mix, err));
    PRESTO_TRY(presto__mix_shares(&mix->base, request->epoch, err));
    return presto__mix_schema(&mix->base, request, err);
}

presto_status presto__source_mix(const presto__mix_request *request, presto_source **source_out,
                                 presto_error *err) {
    if (request->count == 0 || request->count > PRESTO_MIX_MOST_INPUTS)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "a mix has 1 to %d inputs, not %zu", PRESTO_MIX_MOST_INPUTS,
                           request->count);
    mix_source *mix = calloc(1, sizeof *mix);
    if (mix == NULL)
        return presto_fail_memory(err, sizeof *mix);
    presto_status status = fill(mix, request, err);
    if (status < 0) {
        mix_free(&mix->base);
        return status;
    }
    *source_out = &mix->base;
    return PRESTO_OK;
}
