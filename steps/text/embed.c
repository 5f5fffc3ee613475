/* SPDX-License-Identifier: Apache-2.0 */
/*
 * embed: ids of tokens -> their rows of a table, float32 [n, columns]. The table is a file, or it
 * is made from a seed.
 *
 * A file is not mapped: if it became shorter, reading it would kill the process. A row is read
 * when it is first asked for and kept in memory, so that memory grows with the rows in use only.
 */
#include <stdatomic.h>
#include <stdlib.h>

#include <presto/numbers.h>

#include "../../base/bytes_internal.h"
#include "../../base/memory_internal.h"
#include "../../base/philox_internal.h"
#include "../../storage/storage_internal.h"
#include "../steps_internal.h"
#include "table_internal.h"

enum { OPTION_TABLE, OPTION_TENSOR, OPTION_ROWS, OPTION_COLUMNS, OPTION_SEED, OPTION_COUNT };

static const presto_option_type options[] = {
    [OPTION_TABLE] = {.name = "table",
                      .kind = PRESTO_OPTION_FILE,
                      .help = "a .npy (float32, two dimensions, C order) or .safetensors; without "
                              "it a table is made from the seed"},
    [OPTION_TENSOR] = {.name = "tensor",
                       .kind = PRESTO_OPTION_TEXT,
                       .help = "name of the table in a .safetensors; needed if it has several"},
    [OPTION_ROWS] = {.name = "rows",
                     .kind = PRESTO_OPTION_INT,
                     .default_text = "50001",
                     .minimum = 1,
                     .maximum = 2147483647,
                     .help = "rows of a table that is made; a file says how many it has"},
    [OPTION_COLUMNS] = {.name = "columns",
                        .kind = PRESTO_OPTION_INT,
                        .default_text = "768",
                        .minimum = 1,
                        .maximum = PRESTO__TABLE_MAX_COLUMNS,
                        .help = "columns of a table that is made; a file says how many it has"},
    [OPTION_SEED] = {.name = "seed",
                     .kind = PRESTO_OPTION_INT,
                     .default_text = "0",
                     .minimum = 0,
                     .maximum = 2147483647,
                     .help = "of a table that is made: uniform in [-0.05, 0.05), the same on every "
                             "machine; see docs/tokenizers.md"},
};

/* A table that is made is in memory as a whole. */
#define MAX_MADE_BYTES ((uint64_t)4 << 30)
/* Rows of a file that is larger are read each time. */
#define MAX_KEPT_BYTES ((uint64_t)4 << 30)

typedef struct embed_state {
    char *path; /* NULL: made */
    char *tensor;
    uint64_t rows, columns; /* of a table that is made */
    uint64_t seed;
} embed_state;

enum row_state { ROW_UNREAD, ROW_BEING_READ, ROW_READ };

typedef struct embed_model {
    presto__table table;
    size_t row_bytes;
    uint8_t *rows; /* all, or those whose state is ROW_READ; NULL: rows are not kept */
    size_t rows_bytes;
    _Atomic unsigned char *states; /* a row; NULL: all rows are there, or none is kept */
    const char *path;              /* of the state, which lives longer */
    presto__object object;         /* not open: made */
} embed_model;

/* ---- options ---- */

static void destroy(void *state) {
    embed_state *embed = state;
    if (embed == NULL)
        return;
    free(embed->path);
    free(embed->tensor);
    free(embed);
}

static presto_status create(const presto_option *values, void **state_out, presto_error *err) {
    uint64_t rows = (uint64_t)values[OPTION_ROWS].integer;
    uint64_t columns = (uint64_t)values[OPTION_COLUMNS].integer;
    if (!values[OPTION_TABLE].is_set && rows * columns * sizeof(float) > MAX_MADE_BYTES)
        return presto_fail(err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET,
                           "a table of %ju row%s and %ju column%s takes more than 4 GiB",
                           (uintmax_t)rows, presto_plural(rows), (uintmax_t)columns,
                           presto_plural(columns));
    embed_state *state = calloc(1, sizeof *state);
    if (state == NULL)
        return presto_fail_memory(err, sizeof *state);
    state->rows = rows;
    state->columns = columns;
    state->seed = (uint64_t)values[OPTION_SEED].integer;
    presto_status status = presto__option_copy(&values[OPTION_TABLE], &state->path, err);
    if (status >= 0)
        status = presto__option_copy(&values[OPTION_TENSOR], &state->tensor, err);
    if (status < 0)
        destroy(state);
    else
        *state_out = state;
    return status;
}

static presto_status check_input(const presto_tensor_spec *in, presto_error *err) {
    static const presto_tensor_spec narrow = {PRESTO_INT32, 1, {-1}};
    static const presto_tensor_spec wide = {PRESTO_INT64, 1, {-1}};
    if (presto__spec_could_fit(in, &narrow) || presto__spec_could_fit(in, &wide))
        return PRESTO_OK;
    char got[PRESTO_SPEC_TEXT_BYTES];
    return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET,
                       "needs int32[?] or int64[?], gets %s",
                       presto_spec_format(in, got, sizeof got));
}

static presto_status infer(const void *state, const presto_tensor_spec *in,
                           presto_tensor_spec *out_out, presto_error *err) {
    const embed_state *embed = state;
    PRESTO_TRY(check_input(in, err));
    int64_t columns = embed->path == NULL ? (int64_t)embed->columns : -1;
    int64_t count = in->rank == 1 ? in->dims[0] : -1;
    *out_out = (presto_tensor_spec){PRESTO_FLOAT32, 2, {count, columns}};
    return PRESTO_OK;
}

/* ---- the table ---- */

static void unload(void *model) {
    embed_model *embed = model;
    if (embed == NULL)
        return;
    if (embed->rows != NULL)
        presto__memory_unmap(embed->rows, embed->rows_bytes);
    free((void *)embed->states);
    presto__object_close(&embed->object);
    free(embed);
}

/*
 * Value k of the table is draw k / 2 of Philox4x64-10 with the key (seed, 0), its lower half if k
 * is even; the first block has the counter 1, as numpy.random.Philox(key=[seed, 0]) has it. 24 bits
 * become a number in [-0.5, 0.5), exactly, and one multiplication by 0.1f rounds.
 */
static void fill(const embed_state *state, float *values, size_t count) {
    const uint64_t key[2] = {state->seed, 0};
    uint64_t counter[4] = {0};
    uint64_t draws[4];
    for (size_t k = 0; k < count; k++) {
        if (k % 8 == 0) {
            counter[0]++;
            presto__philox4x64(key, counter, draws);
        }
        uint32_t bits = (uint32_t)(draws[k % 8 / 2] >> 32 * (k % 2));
        values[k] = ((float)(bits >> 8) * 0x1p-24f - 0.5f) * 0.1f;
    }
}

static presto_status make(const embed_state *state, embed_model *model, presto_error *err) {
    model->table = (presto__table){.rows = state->rows, .columns = state->columns};
    model->rows_bytes = (size_t)(state->rows * state->columns * sizeof(float));
    model->rows = presto__memory_map(model->rows_bytes);
    if (model->rows == NULL)
        return presto_fail_memory(err, model->rows_bytes);
    presto__memory_will_fill(model->rows, model->rows_bytes);
    fill(state, (float *)(void *)model->rows, model->rows_bytes / sizeof(float));
    return PRESTO_OK;
}

static presto_status read_header(presto__object object, const char *path, presto_buffer *header,
                                 presto_error *err) {
    uint8_t start[16];
    uint64_t wanted;
    size_t got;
    PRESTO_TRY(
        presto__read_at((presto__object_place){object, path, 0}, start, sizeof start, &got, err));
    PRESTO_TRY(presto__table_header_bytes(presto_span_of(start, got), &wanted, err));
    PRESTO_TRY(presto_buffer_reserve(header, (size_t)wanted, err));
    PRESTO_TRY(presto__read_at((presto__object_place){object, path, 0}, header->data,
                               (size_t)wanted, &header->bytes, err));
    return PRESTO_OK;
}

/* Room for the rows that will be used; without it they are read each time. */
static void keep_rows(embed_model *model) {
    uint64_t bytes = model->table.rows * model->row_bytes;
    if (bytes > MAX_KEPT_BYTES)
        return;
    model->states = calloc((size_t)model->table.rows, sizeof *model->states);
    model->rows = model->states != NULL ? presto__memory_map((size_t)bytes) : NULL;
    model->rows_bytes = (size_t)bytes;
}

static presto_status open_table(const embed_state *state, embed_model *model, presto_error *err) {
    presto__object_info info;
    presto_buffer header = {0};
    PRESTO_TRY(presto__object_open(state->path, &model->object, &info, err));
    presto_status status = read_header(model->object, state->path, &header, err);
    if (status >= 0)
        status = presto__table_find(presto_buffer_span(&header), info.bytes, state->tensor,
                                    &model->table, err);
    presto_buffer_done(&header);
    PRESTO_TRY(status);
    model->path = state->path;
    return PRESTO_OK;
}

static presto_status load(const void *state, presto_tensor_spec *out_io, void **model_out,
                          presto_error *err) {
    const embed_state *embed = state;
    embed_model *model = calloc(1, sizeof *model);
    if (model == NULL)
        return presto_fail_memory(err, sizeof *model);
    presto_status status =
        embed->path != NULL ? open_table(embed, model, err) : make(embed, model, err);
    if (status < 0) {
        if (embed->path != NULL)
            presto_error_set_file(err, embed->path);
        unload(model);
        return status;
    }
    model->row_bytes = (size_t)model->table.columns * sizeof(float);
    if (embed->path != NULL)
        keep_rows(model);
    out_io->dims[1] = (int64_t)model->table.columns;
    *model_out = model;
    return PRESTO_OK;
}

/* ---- rows ---- */

static presto_status read_row(const embed_model *model, uint64_t row, uint8_t *out,
                              presto_error *err) {
    size_t got;
    uint64_t offset = model->table.offset + row * model->row_bytes;
    PRESTO_TRY(presto__read_at((presto__object_place){model->object, model->path, offset}, out,
                               model->row_bytes, &got, err));
    if (got < model->row_bytes) {
        presto_fail(err, PRESTO_ERR_ARGUMENT, offset + got, "the table has become shorter");
        presto_error_set_file(err, model->path);
        return PRESTO_ERR_ARGUMENT;
    }
    return PRESTO_OK;
}

/* Read a row and keep it. One thread does; others that want the row meanwhile read it
 * themselves. */
static presto_status read_and_keep(const embed_model *model, uint64_t row, uint8_t *out,
                                   presto_error *err) {
    unsigned char unread = ROW_UNREAD;
    if (model->states == NULL || model->rows == NULL ||
        !atomic_compare_exchange_strong(&model->states[row], &unread, ROW_BEING_READ))
        return read_row(model, row, out, err);
    uint8_t *kept = model->rows + row * model->row_bytes;
    presto_status status = read_row(model, row, kept, err);
    if (status >= 0)
        memcpy(out, kept, model->row_bytes);
    atomic_store_explicit(&model->states[row], status < 0 ? ROW_UNREAD : ROW_READ,
                          memory_order_release);
    return status;
}

static bool is_there(const embed_model *model, uint64_t row) {
    return !presto__object_is_open(model->object) ||
           (model->rows != NULL &&
            atomic_load_explicit(&model->states[row], memory_order_acquire) == ROW_READ);
}

static presto_status copy_row(const embed_model *model, uint64_t row, uint8_t *out,
                              presto_error *err) {
    if (!is_there(model, row))
        return read_and_keep(model, row, out, err);
    memcpy(out, model->rows + row * model->row_bytes, model->row_bytes);
    return PRESTO_OK;
}

static int64_t id_at(const presto_tensor *ids, size_t i) {
    if (ids->spec.dtype == PRESTO_INT32) {
        int32_t id;
        memcpy(&id, (const uint8_t *)ids->data + i * sizeof id, sizeof id);
        return id;
    }
    int64_t id;
    memcpy(&id, (const uint8_t *)ids->data + i * sizeof id, sizeof id);
    return id;
}

static presto_status run(const void *state, presto_step_context *context, const presto_tensor *in,
                         presto_tensor *out_out, presto_error *err) {
    (void)state;
    PRESTO_TRY(check_input(&in->spec, err));
    const embed_model *model = presto_step_model(context);
    presto_tensor_spec spec = {
        PRESTO_FLOAT32, 2, {in->spec.dims[0], (int64_t)model->table.columns}};
    void *data;
    size_t count = (size_t)in->spec.dims[0];
    for (size_t i = 0; i < count; i++) {
        int64_t id = id_at(in, i);
        if (id < 0 || (uint64_t)id >= model->table.rows)
            return presto_fail(err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET,
                               "id %jd at position %zu, but the table has %ju row%s", (intmax_t)id,
                               i, (uintmax_t)model->table.rows, presto_plural(model->table.rows));
    }
    PRESTO_TRY(presto_step_output(context, &spec, &data, err));
    for (size_t i = 0; i < count; i++)
        PRESTO_TRY(
            copy_row(model, (uint64_t)id_at(in, i), (uint8_t *)data + i * model->row_bytes, err));
    out_out->spec = spec;
    out_out->data = data;
    return PRESTO_OK;
}

const presto_step_type presto__step_embed = {
    .abi = PRESTO_STEP_ABI,
    .name = "embed",
    .summary = "Ids of tokens (int32 or int64) to their rows of a table: float32 [n, columns].",
    .options = options,
    .option_count = OPTION_COUNT,
    .create = create,
    .destroy = destroy,
    .infer = infer,
    .load = load,
    .unload = unload,
    .run = run,
};
