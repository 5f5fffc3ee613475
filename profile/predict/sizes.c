/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What all records of a split take in a codec. Ratios vary much from record to record, but those of
 * two codecs vary together. So the size of a slow codec, which saw few of the records that are
 * tried, is estimated by what the codec that saw most made of these, and of all that are tried.
 *
 * These are some of all records. What these take grows with something that is known of more: either
 * what the codec made of their parts, or the bytes before the codec, whichever fits better where
 * both are known. Where more records were stored in the codec to be loaded than it was tried on,
 * they count.
 */
#include "predict_internal.h"

#include <math.h>
#include <string.h>

#define TELLING_RECORDS 4

/* Mean compressed bytes of all records: those tried, times what `known`, a codec that was tried on
 * all, has for all of them against these. */
static double mean_size(const double *sizes, const double *known, size_t count) {
    double tried = 0, known_tried = 0, known_all = 0;
    size_t trials = 0;
    for (size_t i = 0; i < count; i++) {
        known_all += known[i];
        if (sizes[i] <= 0)
            continue;
        trials++;
        tried += sizes[i];
        known_tried += known[i];
    }
    if (trials == 0 || known_tried <= 0)
        return 0;
    return tried / known_tried * known_all / (double)count;
}

/* The codec that was tried on most records, the first of equal ones. SIZE_MAX: none is known. */
static size_t find_reference(const presto__model *model, const presto__model_split *split) {
    size_t found = SIZE_MAX;
    for (size_t c = 0; c < model->codec_count; c++)
        if (split->codecs[c].is_known && strcmp(model->codecs[c], "none") != 0 &&
            (found == SIZE_MAX || split->codecs[c].records > split->codecs[found].records))
            found = c;
    return found;
}

/* ---- of the records that are tried, and of all ---- */

/* Something that is known of many records, and that sizes grow with. */
typedef struct guide {
    double all, tried;     /* means */
    double first;          /* mean of the first ones, which were stored to be loaded; 0: unknown */
    const double *records; /* of each that is tried */
} guide;

/* How much the sizes differ from being proportional to the guide: squares, as a part of all. Only
 * records that were tried count. */
static double misfit(const double *sizes, const guide *by, size_t count) {
    double size = 0, of_guide = 0, misses = 0;
    for (size_t i = 0; i < count; i++) {
        size += sizes[i] > 0 ? sizes[i] : 0;
        of_guide += sizes[i] > 0 ? by->records[i] : 0;
    }
    if (size <= 0 || of_guide <= 0)
        return INFINITY;
    for (size_t i = 0; i < count; i++) {
        double miss = sizes[i] > 0 ? sizes[i] - size / of_guide * by->records[i] : 0;
        misses += miss * miss;
    }
    return misses / (size * size);
}

static double mean_of(const double *values, size_t count) {
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += values[i];
    return count > 0 ? sum / (double)count : 0;
}

/* What all codecs of a split are sized by. */
typedef struct sizing {
    presto__model_split *split;
    const presto__records *all;
    const presto__sizes *sizes;
    size_t reference;
    double framing;
    double *plain, *seen; /* of each record that is tried: its bytes; a codec's look */
} sizing;

static const double *tried_in(const sizing *from, size_t codec) {
    return from->sizes->tried + codec * from->all->count;
}

static guide raw_guide(const sizing *from, size_t codec) {
    const presto__model_trial *loaded = &from->split->codecs[codec].tried;
    return (guide){from->split->raw_bytes, fmax(mean_of(from->plain, from->all->count), 1),
                   loaded->samples > 0 ? loaded->raw_bytes : 0, from->plain};
}

/* By the looks of `codec`. `loaded`: of the first so many records a mean is wanted. */
static guide look_guide(const sizing *from, size_t codec, uint64_t loaded) {
    const presto__records *all = from->all;
    const double *looks = from->sizes->looks + codec * from->sizes->look_count;
    for (size_t i = 0; i < all->count; i++)
        from->seen[i] = looks[all->numbers[i] / all->look_stride];
    size_t first = (size_t)(loaded / all->look_stride);
    bool is_known = first >= TELLING_RECORDS && first <= all->look_count;
    return (guide){mean_of(looks, all->look_count), mean_of(from->seen, all->count),
                   is_known ? mean_of(looks, first) : 0, from->seen};
}

/* Do sizes grow with looks rather than with bytes? Few records do not tell; those of the codec that
 * saw most do. */
static bool goes_by_looks(const sizing *from, size_t codec) {
    size_t telling = from->split->codecs[codec].records < TELLING_RECORDS ? from->reference : codec;
    if (from->all->look_count == 0 || !from->sizes->has_looks[telling])
        return false;
    guide looks = look_guide(from, telling, 0), raw = raw_guide(from, telling);
    const double *sizes = tried_in(from, telling);
    return misfit(sizes, &looks, from->all->count) < misfit(sizes, &raw, from->all->count);
}

static double size_of(const sizing *from, size_t c) {
    const presto__model_codec *codec = &from->split->codecs[c];
    size_t count = from->all->count, whose = from->sizes->has_looks[c] ? c : from->reference;
    guide by = goes_by_looks(from, c) && from->sizes->has_looks[whose]
                   ? look_guide(from, whose, codec->tried.samples)
                   : raw_guide(from, c);
    if (codec->tried.samples > codec->records && by.first > 0)
        return (codec->tried.stored_bytes - from->framing) / by.first * by.all;
    bool has_all = from->split->codecs[from->reference].records == count;
    const double *known = has_all ? tried_in(from, from->reference) : from->plain;
    return mean_size(tried_in(from, c), known, count) / by.tried * by.all;
}

/* ---- all codecs ---- */

presto_status presto__set_sizes(const presto__model *model, presto__model_split *split,
                                const presto__records *all, const presto__sizes *sizes,
                                presto_error *err) {
    double *room = calloc(2 * all->count, sizeof *room);
    if (room == NULL)
        return presto_fail_memory(err, 2 * all->count * sizeof *room);
    const sizing from = {.split = split,
                         .all = all,
                         .sizes = sizes,
                         .reference = find_reference(model, split),
                         .framing = split->plain_bytes - split->raw_bytes,
                         .plain = room,
                         .seen = room + all->count};
    for (size_t i = 0; i < all->count; i++)
        from.plain[i] = (double)all->sizes[i];
    for (size_t c = 0; c < model->codec_count; c++) {
        presto__model_codec *codec = &split->codecs[c];
        if (strcmp(model->codecs[c], "none") == 0) {
            codec->stored_bytes = split->plain_bytes;
            codec->compress_s = codec->decompress_s = (presto__pair){0, 0};
        } else if (codec->is_known) {
            codec->stored_bytes = size_of(&from, c) + from.framing;
        }
    }
    free(room);
    return PRESTO_OK;
}
