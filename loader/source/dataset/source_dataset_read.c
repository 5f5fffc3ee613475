/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the records of a dataset as samples: one thread's reader. Knows where each record is and
 * how damage is reported; records/ knows the bytes.
 *
 * A block of sample numbers is read in runs of records that are adjacent in a shard: one run for a
 * sequential block, many for a shuffled one. If a run cannot be read as a whole, its records are
 * read one by one, so that a failure belongs to exactly one sample.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <presto/example.h>
#include <presto/numbers.h>

#include "../../../base/clock_internal.h"
#include "../../../base/memory_internal.h"
#include "../../../base/retry_internal.h"
#include "../../../records/records_internal.h"
#include "../../../storage/storage_internal.h"
#include "source_dataset_internal.h"

/* ---- fetching ---- */

static presto_status reserve_places(presto__dataset_reader *reader, size_t count,
                                    presto_error *err) {
    if (count <= reader->capacity)
        return PRESTO_OK;
    presto__record_place *places = realloc(reader->places, count * sizeof *places);
    if (places == NULL)
        return presto_fail_memory(err, count * sizeof *places);
    reader->places = places;
    presto__record_place **sorted = realloc(reader->sorted, count * sizeof *sorted);
    if (sorted == NULL)
        return presto_fail_memory(err, count * sizeof *sorted);
    reader->sorted = sorted;
    reader->capacity = count;
    return PRESTO_OK;
}

static int compare_places(const void *a, const void *b) {
    const presto__record_place *left = *(presto__record_place *const *)a;
    const presto__record_place *right = *(presto__record_place *const *)b;
    return left->number < right->number ? -1 : left->number > right->number;
}

/* Find the places of all numbers, and the order in which to read them. */
static void find_places(presto__dataset_reader *reader, const uint64_t *numbers, size_t count) {
    const presto_dataset *dataset = reader->dataset;
    bool is_rising = true;
    size_t shard = 0;
    uint64_t first = 0, end = 0; /* of the shard found last */
    for (size_t i = 0; i < count; i++) {
        presto__record_place *place = &reader->places[i];
        *place = (presto__record_place){.number = numbers[i], .block = SIZE_MAX};
        if (numbers[i] < first || numbers[i] >= end) {
            uint64_t record;
            shard = presto_dataset_locate(dataset, numbers[i], &record);
            first = presto__dataset_shard_first(dataset, shard);
            end = presto__dataset_shard_first(dataset, shard + 1);
        }
        place->shard = shard;
        place->record = numbers[i] - first;
        reader->sorted[i] = place;
        if (i > 0 && numbers[i] < numbers[i - 1])
            is_rising = false;
    }
    if (!is_rising)
        qsort(reader->sorted, count, sizeof *reader->sorted, compare_places);
}

/* May the block become as large as the records [record, record + count)? */
static bool may_fetch(const presto__dataset_reader *reader, presto_shard *shard, uint64_t record,
                      size_t count, const presto_block *block) {
    const uint64_t *offsets;
    if (presto__shard_offsets(shard, record, count, &offsets, NULL) < 0)
        return true; /* it cannot be read */
    uint64_t start = offsets[0], end = offsets[count];
    size_t has = block->bytes_.capacity;
    return end < start || end - start <= has || end - start > presto_shard_file_bytes(shard) ||
           presto_arena_may_grow(reader->base.grower, (size_t)(end - start) - has);
}

/* A server that failed after all tries would fail for each record of its block, and for those of
 * others: nothing more is asked for. The first record that is wanted says why. */
static bool is_lost(const presto__dataset_reader *reader, const presto__record_place *place,
                    presto_status status) {
    return status == PRESTO_ERR_IO &&
           presto__path_is_remote(presto_dataset_shard_path(reader->dataset, place->shard));
}

/* Read one run, sorted[first..end), into the next block: the records [record, record + count) of
 * one shard. */
static presto_status fetch_run(presto__dataset_reader *reader, presto__blocks *blocks, size_t first,
                               size_t end, presto_error *err) {
    presto__record_place *const *sorted = reader->sorted;
    uint64_t record = sorted[first]->record;
    size_t count = (size_t)(sorted[end - 1]->record - record) + 1;
    presto_shard *shard;
    PRESTO_TRY(presto__dataset_shard_with(reader->dataset, sorted[first]->shard, record + count - 1,
                                          &shard, err));
    PRESTO_TRY(presto__blocks_reserve(blocks, blocks->count + 1, err));
    presto_block *block = &blocks->items[blocks->count];
    block->align_at = reader->base.align_at;
    if (reader->base.grower != NULL && !may_fetch(reader, shard, record, count, block))
        return presto_fail_memory(err, 0);
    presto_status status = presto_shard_fetch(shard, record, count, block, NULL);
    if (status == PRESTO_OK) {
        reader->base.stats.read_bytes += block->file_bytes_read;
        for (size_t i = first; i < end; i++) {
            sorted[i]->block = blocks->count;
            sorted[i]->index = (size_t)(sorted[i]->record - record);
        }
        blocks->count++;
        return PRESTO_OK;
    }
    if (count == 1 || presto__dataset_is_fatal(status) || is_lost(reader, sorted[first], status))
        return status;
    /* A shard that was cut has no more records. */
    uint64_t records = presto_shard_records(shard);
    for (size_t i = first; i < end && sorted[i]->record < records; i++) {
        status = fetch_run(reader, blocks, i, i + 1, NULL);
        if (presto__dataset_is_fatal(status) || is_lost(reader, sorted[i], status))
            return status;
    }
    return PRESTO_OK;
}

/* ---- records that are not counted yet ---- */

/* The samples are those of the last walk, or its first ones. */
static presto_status fetch_walked(presto__dataset_reader *reader, presto__blocks *blocks,
                                  presto_error *err) {
    size_t at = 0;
    bool has_lost = false;
    for (size_t s = 0; s < reader->walked_count && at < reader->count; s++) {
        const presto__walked_stretch *walked = &reader->walked[s];
        size_t left = reader->count - at;
        size_t end = at + (walked->found.count < left ? walked->found.count : left);
        bool is_fault = walked->found.fault.status < 0;
        if (walked->block != SIZE_MAX) {
            PRESTO_TRY(presto__dataset_check_stretch(reader->dataset, &walked->found,
                                                     &blocks->items[walked->block], err));
        } else if (!is_fault && !has_lost) {
            presto_status status = fetch_run(reader, blocks, at, end, NULL);
            if (presto__dataset_is_fatal(status))
                return presto_fail_memory(err, 0);
            has_lost = is_lost(reader, reader->sorted[at], status);
        }
        for (size_t i = at; i < end && (is_fault || walked->block != SIZE_MAX); i++) {
            reader->places[i].stretch = &walked->found;
            reader->places[i].block = walked->block;
            reader->places[i].index = i - at;
        }
        at = end;
    }
    reader->walked_count = 0;
    return PRESTO_OK;
}

presto_status presto__dataset_fetch(presto__reader *base, const uint64_t *numbers, size_t count,
                                    presto__blocks *blocks, presto_error *err) {
    presto__dataset_reader *reader = (presto__dataset_reader *)base;
    uint64_t start = presto__clock_ns();
    PRESTO_TRY(reserve_places(reader, count, err));
    find_places(reader, numbers, count);
    reader->blocks = blocks;
    reader->count = count;
    reader->known = 0;
    if (reader->walked_count > 0) {
        presto_status status = fetch_walked(reader, blocks, err);
        base->stats.read_ns += presto__clock_ns() - start;
        return status;
    }
    for (size_t first = 0; first < count;) {
        size_t end = first + 1;
        while (end < count && reader->sorted[end]->shard == reader->sorted[first]->shard &&
               reader->sorted[end]->record <= reader->sorted[end - 1]->record + 1)
            end++;
        presto_status status = fetch_run(reader, blocks, first, end, NULL);
        if (presto__dataset_is_fatal(status))
            return presto_fail_memory(err, 0);
        if (is_lost(reader, reader->sorted[first], status))
            break;
        first = end;
    }
    base->stats.read_ns += presto__clock_ns() - start;
    return PRESTO_OK;
}

/* ---- what will be read ---- */

/* Over a network, what stands between two records that will be read costs less than another request:
 * so many bytes. */
#define GAP_BYTES ((uint64_t)32 << 10)
/* No longer than one request. */
#define MOST_JOINED ((uint64_t)4 << 20)

/* A number that will be read, or records that will be read together. */
typedef struct told_range {
    uint64_t number;
    size_t position; /* which of those that are told, at first */
    presto_shard *shard;
    presto__shard_bytes bytes;
} told_range;

static int compare_numbers(const void *a, const void *b) {
    const told_range *left = a, *right = b;
    return left->number < right->number ? -1 : left->number > right->number;
}

static int compare_positions(const void *a, const void *b) {
    const told_range *left = a, *right = b;
    return left->position < right->position ? -1 : left->position > right->position;
}

/* The records [record, record + count) join the last range, or begin another one. */
static void add_told(told_range *ranges, size_t *count_io, const told_range *more) {
    told_range *last = *count_io == 0 ? NULL : &ranges[*count_io - 1];
    if (last != NULL && last->shard == more->shard && last->bytes.end <= more->bytes.start &&
        more->bytes.start - last->bytes.end <= GAP_BYTES &&
        more->bytes.end - last->bytes.start <= MOST_JOINED) {
        last->bytes.end = more->bytes.end;
        last->bytes.wanted += more->bytes.wanted;
        if (more->position < last->position)
            last->position = more->position;
        return;
    }
    ranges[(*count_io)++] = *more;
}

/* Neighbours are requested together, in the order in which the first of them is read. */
static void tell_remote(presto__dataset_reader *reader, const uint64_t *numbers, size_t count) {
    presto_dataset *dataset = reader->dataset;
    size_t range_count = 0;
    reader->told.bytes = 0;
    if (presto_buffer_reserve(&reader->told, count * sizeof(told_range), NULL) < 0)
        return;
    told_range *told = (told_range *)(void *)reader->told.data;
    bool is_rising = true;
    for (size_t i = 0; i < count; i++) {
        told[i] = (told_range){.number = numbers[i], .position = i};
        is_rising = is_rising && (i == 0 || numbers[i] >= numbers[i - 1]);
    }
    if (!is_rising)
        qsort(told, count, sizeof *told, compare_numbers);
    for (size_t i = 0, end; i < count; i = end) {
        uint64_t record, number = told[i].number;
        told_range more = told[i];
        size_t at = presto_dataset_locate(dataset, number, &record);
        uint64_t behind = presto__dataset_shard_first(dataset, at + 1);
        for (end = i + 1; end < count && told[end].number <= told[end - 1].number + 1 &&
                          told[end].number < behind;
             end++)
            if (told[end].position < more.position)
                more.position = told[end].position;
        uint64_t records = told[end - 1].number - number + 1;
        if (presto__dataset_shard_with(dataset, at, record + records - 1, &more.shard, NULL) ==
                PRESTO_OK &&
            presto__shard_find_bytes(more.shard, record, records, &more.bytes))
            add_told(told, &range_count, &more); /* those before are not looked at any more */
    }
    if (!is_rising)
        qsort(told, range_count, sizeof *told, compare_positions);
    for (size_t i = 0; i < range_count; i++)
        presto__shard_will_read_bytes(told[i].shard, &told[i].bytes);
}

size_t presto__dataset_will_open_for(presto__reader *base, const uint64_t *numbers, size_t count) {
    presto_dataset *dataset = ((presto__dataset_reader *)base)->dataset;
    for (size_t i = 0; i < count; i++) {
        uint64_t record;
        if (!presto__dataset_will_open(dataset,
                                       presto_dataset_locate(dataset, numbers[i], &record)))
            return i;
    }
    return count;
}

/* Adjacent numbers are told together. */
void presto__dataset_will_read(presto__reader *base, const uint64_t *numbers, size_t count) {
    presto_dataset *dataset = ((presto__dataset_reader *)base)->dataset;
    if (base->source->is_remote) {
        tell_remote((presto__dataset_reader *)base, numbers, count);
        return;
    }
    for (size_t i = 0, end; i < count; i = end) {
        uint64_t record;
        size_t at = presto_dataset_locate(dataset, numbers[i], &record);
        uint64_t behind = presto__dataset_shard_first(dataset, at + 1);
        for (end = i + 1; end < count && numbers[end] == numbers[end - 1] + 1; end++)
            if (numbers[end] >= behind)
                break;
        presto_shard *shard;
        if (presto__dataset_shard_with(dataset, at, record + (end - i) - 1, &shard, NULL) ==
            PRESTO_OK)
            presto__shard_will_read(shard, record, end - i);
    }
}

/* ---- samples ---- */

void presto__dataset_place(presto__reader *base, size_t i, presto_error *err) {
    presto__dataset_reader *reader = (presto__dataset_reader *)base;
    const presto__record_place *place = &reader->places[i];
    if (err == NULL)
        return;
    presto_error_set_record(err, place->record);
    presto_error_set_file(err, presto_dataset_shard_path(reader->dataset, place->shard));
    if (place->block != SIZE_MAX)
        err->offset = reader->blocks->items[place->block].records[place->index].offset;
}

void presto__dataset_locate(const presto_source *base, uint64_t number, presto_error *err) {
    const presto_dataset *dataset = ((const presto__dataset_source *)base)->dataset;
    uint64_t record;
    size_t shard = presto_dataset_locate(dataset, number, &record);
    presto_error_set_record(err, record);
    presto_error_set_file(err, presto_dataset_shard_path(dataset, shard));
}

/* Read one record into reader->single. */
static presto_status fetch_alone(presto__dataset_reader *reader, const presto__record_place *place,
                                 presto_error *err) {
    presto_shard *shard;
    presto_status status =
        presto__dataset_shard_with(reader->dataset, place->shard, place->record, &shard, err);
    /* A shard that cannot be opened is no damage: skipping would save none of its samples. */
    reader->base.lost_shard = status == PRESTO_ERR_IO || status == PRESTO_ERR_NOT_FOUND;
    if (status < 0)
        return status;
    if (place->record >= presto_shard_records(shard))
        return presto_fail(err, PRESTO_ERR_TRUNCATED, PRESTO_NO_OFFSET,
                           "missing: the file ends after %ju record%s",
                           (uintmax_t)presto_shard_records(shard),
                           presto_plural(presto_shard_records(shard)));
    PRESTO_TRY(presto_shard_fetch(shard, place->record, 1, &reader->single, err));
    return reader->single.records[0].status;
}

/* The sample was walked over and is damaged: say why. */
static presto_status fail_walked(presto__dataset_reader *reader, const presto__record_place *place,
                                 presto_error *err) {
    const presto__stretch *stretch = place->stretch;
    if (stretch->fault.status >= 0) {
        presto_status status = presto__dataset_describe_stretch(
            reader->dataset, stretch, place->index, &reader->blocks->items[place->block], err);
        return status < 0 ? status
                          : presto_fail(err, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET, "damaged");
    }
    reader->base.lost_shard = stretch->is_last;
    if (err != NULL)
        *err = stretch->fault;
    return stretch->fault.status;
}

/* The sample could not be read with its neighbours: read it alone, to get it or to learn why. */
static presto_status read_alone(presto__dataset_reader *reader, const presto__record_place *place,
                                presto_span *payload_out, presto_error *err) {
    if (place->stretch != NULL)
        return fail_walked(reader, place, err);
    presto_error found;
    unsigned tries = 0;
    presto_status status;
    do
        status = fetch_alone(reader, place, &found);
    while (status < 0 && presto__retry_pause(found.sys_errno, &tries));
    if (status >= 0) {
        *payload_out = reader->single.records[0].payload;
        return PRESTO_OK;
    }
    presto_error_set_record(&found, place->record);
    presto_error_set_file(&found, presto_dataset_shard_path(reader->dataset, place->shard));
    if (err != NULL)
        *err = found;
    return status;
}

/* The most bytes that a record may decompress to: not more than its whole shard. */
static uint64_t most_raw_bytes(const presto__dataset_reader *reader,
                               const presto__record_place *place) {
    if (!presto_dataset_is_ours(reader->dataset))
        return reader->options.max_record_bytes;
    uint64_t shard = presto_dataset_get_info(reader->dataset)->shards[place->shard].raw_bytes;
    return shard < reader->options.max_record_bytes ? shard : reader->options.max_record_bytes;
}

static presto_status decompress(presto__dataset_reader *reader, size_t i, presto_arena *arena,
                                presto__stored_record *record, presto_error *err) {
    presto__reader *base = &reader->base;
    uint64_t start = base->time_scale == 0 ? 0 : presto__clock_ns();
    uint64_t most = most_raw_bytes(reader, &reader->places[i]);
    presto_status status = presto_codec_decompress(
        reader->codec, record->stored, &(presto_codec_room){arena, most}, &record->raw, err);
    if (status == PRESTO_ERR_LIMIT && most < reader->options.max_record_bytes)
        status = presto_fail(err, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET,
                             "the record decompresses to more than the %ju byte%s that all records "
                             "of its shard have together according to dataset.json",
                             (uintmax_t)most, presto_plural(most));
    if (base->time_scale != 0)
        base->stats.decompress_ns += (presto__clock_ns() - start) * base->time_scale;
    if (status < 0)
        presto__dataset_place(base, i, err);
    return status;
}

/* As the hook `record`, in the reader's own loops: mostly the record is in a block, and not
 * compressed. */
static inline presto_status read_record(presto__dataset_reader *reader, size_t i,
                                        presto_arena *arena, presto__stored_record *record_out,
                                        presto_error *err) {
    const presto__record_place *place = &reader->places[i];
    const presto_record *record = place->block == SIZE_MAX
                                      ? NULL
                                      : &reader->blocks->items[place->block].records[place->index];
    if (record == NULL || record->status < 0)
        PRESTO_TRY(read_alone(reader, place, &record_out->stored, err));
    else
        record_out->stored = record->payload;
    record_out->raw = record_out->stored;
    return reader->codec == NULL ? PRESTO_OK : decompress(reader, i, arena, record_out, err);
}

presto_status presto__dataset_record(presto__reader *base, size_t i, presto_arena *arena,
                                     presto__stored_record *record_out, presto_error *err) {
    return read_record((presto__dataset_reader *)base, i, arena, record_out, err);
}

size_t presto__dataset_run(presto__reader *base, size_t i, size_t count,
                           const presto_record **records_out) {
    const presto__dataset_reader *reader = (const presto__dataset_reader *)base;
    const presto__record_place *places = reader->places + i;
    if (reader->codec != NULL || places->block == SIZE_MAX)
        return 0;
    const presto_record *records = reader->blocks->items[places->block].records + places->index;
    size_t found = 0;
    while (found < count && places[found].block == places->block &&
           places[found].index == places->index + found && records[found].status >= 0)
        found++;
    *records_out = records;
    return found;
}

/* A raw record as a sample. */
static presto_status show_record(presto_span stored, presto_arena *arena, presto_sample *sample_out,
                                 presto_error *err) {
    presto_feature *feature = presto_arena_alloc(arena, sizeof *feature, _Alignof(presto_feature));
    presto_span *string = presto_arena_alloc(arena, sizeof *string, _Alignof(presto_span));
    if (feature == NULL || string == NULL)
        return presto_fail_memory(err, sizeof *feature + sizeof *string);
    *string = stored;
    *feature = (presto_feature){.name = presto_span_of_text(PRESTO_RECORD_FEATURE),
                                .encoding = PRESTO_ENCODE_BYTES,
                                .tensor = {.spec = {.dtype = PRESTO_STRING}, .strings = string}};
    *sample_out = (presto_sample){.features = feature, .feature_count = 1};
    return PRESTO_OK;
}

/* Records of a dataset are alike: the largest tensor of the next one is expected where it is in
 * this one. */
static void note_alignment(presto__reader *base, presto_span raw, const presto_sample *sample) {
    uint64_t largest = 0;
    for (size_t i = 0; i < sample->feature_count; i++) {
        const presto_tensor *tensor = &sample->features[i].tensor;
        uintptr_t at = (uintptr_t)tensor->data - (uintptr_t)raw.data;
        if (sample->features[i].encoding == PRESTO_ENCODE_NONE ||
            tensor->spec.dtype == PRESTO_STRING || at >= raw.bytes)
            continue;
        uint64_t bytes = presto_tensor_bytes(tensor);
        if (bytes > largest) {
            largest = bytes;
            base->align_at = at;
        }
    }
}

presto_status presto__dataset_values(presto__reader *base, size_t i, presto_arena *arena,
                                     presto__example_values *values_out, presto_error *err) {
    presto__dataset_reader *reader = (presto__dataset_reader *)base;
    presto__stored_record record;
    PRESTO_TRY(read_record(reader, i, arena, &record, err));
    reader->known = i + 1;
    reader->known_raw = record.raw;
    uint64_t start = base->time_scale == 0 ? 0 : presto__clock_ns();
    bool is_alike = presto__example_layout_match(reader->layout, record.raw, values_out);
    if (base->time_scale != 0)
        base->stats.parse_ns += (presto__clock_ns() - start) * base->time_scale;
    return is_alike ? PRESTO_OK : PRESTO_END;
}

/* A record of another program is whole, and a feature is no serialized tensor, as those of the first
 * records are: that is no damage. */
static presto_status fail_tensor(presto__dataset_reader *reader, presto_span raw,
                                 presto_arena *arena, presto_status status, presto_error *err) {
    presto_sample sample;
    bool is_whole = status == PRESTO_ERR_CORRUPT && !presto_dataset_is_ours(reader->dataset) &&
                    reader->options.feature_count > 0 &&
                    presto_example_parse(raw, NULL, arena, &sample, NULL) == PRESTO_OK;
    if (!is_whole)
        return status;
    char why[PRESTO_ERROR_MESSAGE_BYTES / 2];
    snprintf(why, sizeof why, "%.200s", err != NULL ? err->message : "");
    return presto_fail(err, PRESTO_ERR_TYPE, err != NULL ? err->offset : PRESTO_NO_OFFSET,
                       "a feature that holds serialized tensors in the first records does not here "
                       "(%s): --tensors raw, or tensors=\"raw\" in Python, delivers the bytes",
                       why);
}

/* `err` has the byte within the record. */
static presto_status fail_parse(presto__dataset_reader *reader, size_t i, presto_status status,
                                presto_error *err) {
    uint64_t within = err != NULL ? err->offset : PRESTO_NO_OFFSET;
    presto__dataset_place(&reader->base, i, err);
    /* In a record without a codec, the byte is known. */
    if (err != NULL && reader->codec == NULL && within != PRESTO_NO_OFFSET)
        err->offset += PRESTO_FRAME_HEADER_BYTES + within;
    return status;
}

presto_status presto__dataset_sample(presto__reader *base, size_t i, presto_arena *arena,
                                     presto_sample *sample_out, presto_error *err) {
    presto__dataset_reader *reader = (presto__dataset_reader *)base;
    presto__stored_record record = {.raw = reader->known_raw};
    if (reader->known != i + 1)
        PRESTO_TRY(read_record(reader, i, arena, &record, err));
    reader->known = 0;
    uint64_t start = base->time_scale == 0 ? 0 : presto__clock_ns();
    presto_status status =
        base->source->is_raw
            ? show_record(record.stored, arena, sample_out, err)
            : presto__example_layout_parse(reader->layout, record.raw, arena, sample_out, err);
    if (base->time_scale != 0)
        base->stats.parse_ns += (presto__clock_ns() - start) * base->time_scale;
    if (status < 0)
        return fail_parse(reader, i, fail_tensor(reader, record.raw, arena, status, err), err);
    sample_out->number = reader->places[i].number;
    if (base->aligns)
        note_alignment(base, record.raw, sample_out);
    return PRESTO_OK;
}

bool presto__dataset_owned(const presto__reader *base, size_t i) {
    const presto__dataset_reader *reader = (const presto__dataset_reader *)base;
    const presto__record_place *place = &reader->places[i];
    if (reader->codec != NULL)
        return true; /* decompressed into the caller's arena */
    if (place->block == SIZE_MAX)
        return false;
    const presto_block *block = &reader->blocks->items[place->block];
    const uint8_t *data = block->records[place->index].payload.data;
    uintptr_t at = (uintptr_t)data;
    uintptr_t start = (uintptr_t)block->bytes_.data;
    return at >= start && at - start < block->bytes_.capacity;
}

/* ---- the reader ---- */

void presto__dataset_reader_free(presto__reader *base) {
    presto__dataset_reader *reader = (presto__dataset_reader *)base;
    if (reader == NULL)
        return;
    presto_codec_free(reader->codec);
    presto__example_layout_free(reader->layout);
    presto_block_done(&reader->single);
    presto_buffer_done(&reader->told);
    for (size_t i = 0; i < reader->walked_capacity; i++)
        presto__stretch_done(&reader->walked[i].found);
    free(reader->walked);
    free(reader->places);
    free(reader->sorted);
    free(reader);
}

presto_status presto__dataset_reader_new(presto_source *source,
                                         const presto__reader_options *options,
                                         presto__reader **reader_out, presto_error *err) {
    presto__dataset_reader *reader = presto__memory_apart(1, sizeof *reader);
    if (reader == NULL)
        return presto_fail_memory(err, sizeof *reader);
    reader->base.source = source;
    reader->dataset = ((presto__dataset_source *)source)->dataset;
    reader->options = *options;
    reader->base.is_selective = !source->is_raw;
    const presto_example_specs specs = {options->features, options->feature_count, options->only};
    presto_status status = presto__example_layout_new(&specs, &reader->layout, err);
    const presto_codec_spec *codec = source->ops->codec(source);
    char text[PRESTO_CODEC_TEXT_BYTES];
    if (status == PRESTO_OK && strcmp(presto__codec_format(codec, text), "none") != 0)
        status = presto_codec_new(codec, &reader->codec, err);
    if (status < 0) {
        presto__dataset_reader_free(&reader->base);
        return status;
    }
    *reader_out = &reader->base;
    return PRESTO_OK;
}
