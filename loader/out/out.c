/* SPDX-License-Identifier: Apache-2.0 */
/* The table of formats, and the life of one that is written. */
#include <stdlib.h>
#include <string.h>

#include "../../base/options_internal.h"
#include "out_internal.h"

#define ADDRESS(name) &presto__out_##name,
static const presto__out_type *const types[] = {PRESTO__OUT_FORMATS(ADDRESS) NULL};
#undef ADDRESS

const presto_out_format *presto_out_format_at(size_t i) {
    return i + 1 < sizeof types / sizeof *types ? &types[i]->about : NULL;
}

void presto_out_options_init(presto_out_options *options, size_t struct_bytes) {
    const presto_out_options defaults = {.format = &types[0]->about};
    presto__options_give(options, struct_bytes, &defaults, sizeof defaults);
}

/* ---- life ---- */

static presto_status check_options(const presto_out_options *options, size_t *type_out,
                                   presto_error *err) {
    const presto_out_format *format;
    size_t i = 0;
    while ((format = presto_out_format_at(i)) != NULL && format != options->format)
        i++;
    if (format == NULL)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "the format is none of presto_out_format_at");
    if (format->way == PRESTO_OUT_BYTES && options->write == NULL)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "format %s: nothing to write with", format->name);
    if (format->way == PRESTO_OUT_RING && options->ring == NULL)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "format %s: no options of a ring", format->name);
    *type_out = i;
    return PRESTO_OK;
}

static presto_status open_type(presto_out *out, const presto_out_options *options,
                               presto_error *err) {
    if (out->type->about.way == PRESTO_OUT_BYTES) {
        out->pieces = calloc(PRESTO__OUT_MOST_PIECES, sizeof *out->pieces);
        if (out->pieces == NULL)
            return presto_fail_memory(err, PRESTO__OUT_MOST_PIECES * sizeof *out->pieces);
    }
    if (out->type->state_bytes > 0) {
        out->state = calloc(1, out->type->state_bytes);
        if (out->state == NULL)
            return presto_fail_memory(err, out->type->state_bytes);
    }
    return out->type->begin == NULL ? PRESTO_OK : out->type->begin(out, options, err);
}

presto_status presto_out_open(const presto_out_options *options, presto_out **opened_out,
                              presto_error *err) {
    presto_out_options taken;
    size_t type;
    presto_out_options_defaults(&taken);
    PRESTO_TRY(presto__options_take(&taken, sizeof taken, options, err));
    PRESTO_TRY(check_options(&taken, &type, err));
    presto_out *out = calloc(1, sizeof *out);
    if (out == NULL)
        return presto_fail_memory(err, sizeof *out);
    out->type = types[type];
    out->write = taken.write;
    out->write_user = taken.write_user;
    out->wanted = taken.features;
    out->wanted_count = taken.feature_count;
    presto_status status = open_type(out, &taken, err);
    if (status >= 0)
        *opened_out = out;
    else
        presto_out_free(out);
    return status;
}

void presto_out_free(presto_out *out) {
    if (out == NULL)
        return;
    if (out->type->done != NULL && out->state != NULL)
        out->type->done(out);
    for (size_t i = 0; i < out->count; i++)
        free(out->columns[i].name);
    free(out->columns);
    free(out->sorted);
    free(out->pieces);
    free(out->state);
    free(out);
}

presto_status presto_out_put(presto_out *out, const presto_batch *batch, presto_error *err) {
    if (out->type->encode == NULL || batch->rows == 0)
        return PRESTO_OK;
    presto_status status = out->type->encode(out, batch, err);
    if (status == PRESTO_OK)
        status = presto__out_flush(out, err);
    out->piece_count = 0; /* after a failure, too: they are the batch's */
    out->samples += batch->rows;
    out->batches++;
    return status;
}

presto_status presto_out_end(presto_out *out, presto_error *err) {
    if (out->type->end == NULL)
        return PRESTO_OK;
    presto_status status = out->type->end(out, err);
    return status == PRESTO_OK ? presto__out_flush(out, err) : status;
}

void presto_out_fail(presto_out *out, const presto_error *why) {
    if (out->type->fail != NULL)
        out->type->fail(out, why);
}

uint64_t presto_out_bytes(const presto_out *out) {
    return out->type->bytes != NULL ? out->type->bytes(out) : out->bytes;
}
