/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of libjpeg's memory manager, replaced. */
#include "jpeg_coefficients_internal.h"

#include <stdbool.h>
#include <stdlib.h>

#include <jerror.h>

#include "../../base/memory_internal.h"

/* Smaller ones are many; malloc gives them faster. */
#define MAPPED_BYTES ((size_t)4 << 20)

/* libjpeg's name for "an array that may be out of memory". These never are. */
struct jvirt_barray_control {
    JBLOCKARRAY rows;
};

/* Zeroed, as libjpeg asks for. It lives in the client's struct, out of reach of the longjmp. */
static JBLOCKROW take_blocks(j_common_ptr cinfo, size_t bytes) {
    presto__coefficients *coefficients = cinfo->client_data;
    bool is_mapped = bytes >= MAPPED_BYTES;
    void *blocks = NULL;
    if (coefficients->count < MAX_COMPONENTS)
        blocks = is_mapped ? presto__memory_map(bytes) : calloc(1, bytes);
    if (blocks == NULL)
        ERREXIT1(cinfo, JERR_OUT_OF_MEMORY, 0);
    coefficients->parts[coefficients->count].blocks = blocks;
    coefficients->parts[coefficients->count].mapped_bytes = is_mapped ? bytes : 0;
    coefficients->count++;
    return blocks;
}

static jvirt_barray_ptr request(j_common_ptr cinfo, int pool, boolean is_zeroed,
                                JDIMENSION blocks_a_row, JDIMENSION row_count,
                                JDIMENSION most_rows) {
    (void)is_zeroed, (void)most_rows;
    jvirt_barray_ptr array = cinfo->mem->alloc_small(cinfo, pool, sizeof *array);
    array->rows = cinfo->mem->alloc_large(cinfo, pool, row_count * sizeof *array->rows);
    JBLOCKROW blocks = take_blocks(cinfo, sizeof(JBLOCK) * blocks_a_row * row_count);
    for (size_t row = 0; row < row_count; row++)
        array->rows[row] = blocks + row * blocks_a_row;
    return array;
}

static JBLOCKARRAY access_rows(j_common_ptr cinfo, jvirt_barray_ptr array, JDIMENSION first,
                               JDIMENSION count, boolean is_written) {
    (void)cinfo, (void)count, (void)is_written;
    return array->rows + first;
}

void presto__coefficients_hook(j_decompress_ptr cinfo) {
    cinfo->mem->request_virt_barray = request;
    cinfo->mem->access_virt_barray = access_rows;
}

static size_t round_up(size_t count, int multiple) {
    size_t step = (size_t)multiple;
    return (count + step - 1) / step * step;
}

size_t presto__coefficients_bytes(j_decompress_ptr cinfo) {
    if (!jpeg_has_multiple_scans(cinfo))
        return 0;
    size_t blocks = 0;
    for (int i = 0; i < cinfo->num_components; i++) {
        const jpeg_component_info *part = &cinfo->comp_info[i];
        blocks += round_up(part->width_in_blocks, part->h_samp_factor) *
                  round_up(part->height_in_blocks, part->v_samp_factor);
    }
    return blocks * sizeof(JBLOCK);
}

void presto__coefficients_free(presto__coefficients *coefficients) {
    for (size_t i = 0; i < coefficients->count; i++) {
        if (coefficients->parts[i].mapped_bytes > 0)
            presto__memory_unmap(coefficients->parts[i].blocks,
                                 coefficients->parts[i].mapped_bytes);
        else
            free(coefficients->parts[i].blocks);
    }
    coefficients->count = 0;
}
