/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of Arrow's arrays into a writer. A thread becomes the one who adds for a block of rows, not
 * for each. A row is compared with those before it only if its values have sizes that no row of the
 * batch had, or if it has or lacks one for the first time: its features are always the same.
 */
#include <inttypes.h>

#include <presto/arrow.h>

#include "../../base/clock_internal.h"
#include "../arrow/arrow_internal.h"
#include "writer_internal.h"

#define ASK_NS 100000000

/* Rows from *row_io on, until the block is full. *added_out: how many were. */
static presto_status put_block(presto_writer *writer, presto_arrow *arrow,
                               presto__example_rows *rows, int64_t *row_io, uint64_t *added_out,
                               presto_error *err) {
    presto__sample_block *block = &writer->blocks[writer->next_in % writer->block_count];
    presto_sample sample = {arrow->features, arrow->count, writer->samples};
    uint64_t first = sample.number;
    presto_status status = PRESTO_OK;
    while (*row_io < arrow->rows && status == PRESTO_OK && !presto__blocks_is_full(block)) {
        bool has_news;
        status = presto__arrow_row(arrow, *row_io, &has_news, err);
        if (status == PRESTO_OK)
            status = presto__writer_put(writer, &sample, rows, !has_news, err);
        if (status < 0)
            break;
        ++*row_io;
        sample.number++;
    }
    *added_out = sample.number - first;
    if (status == PRESTO_OK && presto__blocks_is_full(block))
        status = presto__blocks_submit(writer, err);
    return status;
}

static presto_status add_rows(presto_writer *writer, presto_arrow *arrow,
                              presto__example_rows *rows, presto_error *err) {
    presto_status status = PRESTO_OK;
    uint64_t asked_ns = presto__clock_ns();
    int64_t row = 0;
    while (row < arrow->rows && status == PRESTO_OK) {
        uint64_t added = 0;
        PRESTO_TRY(presto__writer_begin(writer, err));
        status = put_block(writer, arrow, rows, &row, &added, err);
        presto__writer_end(writer, added);
        if (status < 0 || writer->should_stop == NULL || presto__clock_ns() - asked_ns < ASK_NS)
            continue;
        asked_ns = presto__clock_ns();
        if (writer->should_stop(writer->should_stop_user))
            status = presto_fail(err, PRESTO_ERR_STOPPED, PRESTO_NO_OFFSET, "stopped");
    }
    return status;
}

presto_status presto_writer_add_arrow(presto_writer *writer, presto_arrow *arrow,
                                      const struct ArrowArray *array, presto_error *err) {
    presto__example_rows *rows;
    PRESTO_TRY(presto__arrow_begin(arrow, array, err));
    PRESTO_TRY(presto__example_rows_new(arrow->names, arrow->count, &rows, err));
    presto_status status = add_rows(writer, arrow, rows, err);
    presto__example_rows_free(rows);
    return status;
}
