/* SPDX-License-Identifier: Apache-2.0 */
/* embed: rows of tables from files and from a seed, and files that hold no table. */
#include <pthread.h>
#include <unistd.h>

#include "../../../steps/pipelines_internal.h"
#include "steps_check.h"
#include "text/table_internal.h"

static const presto_tensor_spec ids_spec = {PRESTO_INT32, 1, {-1}};

static char *dir;

static void make_dir(void) {
    dir = presto_check_temp_dir();
}

static void remove_dir(void) {
    presto_check_remove_tree(dir);
    free(dir);
}

/* A file of these two parts; returns its path, which the next call overwrites. */
static const char *put_file(presto_span head, presto_span data) {
    static char path[512];
    uint8_t content[4096];
    snprintf(path, sizeof path, "%s/table", dir);
    ck_assert_uint_le(head.bytes + data.bytes, sizeof content);
    memcpy(content, head.data, head.bytes);
    memcpy(content + head.bytes, data.data, data.bytes);
    presto_check_write_file(path, presto_span_of(content, head.bytes + data.bytes));
    return path;
}

static const char *put_npy(const char *dict, presto_span data) {
    uint8_t head[600] = "\x93NUMPY\1";
    size_t bytes = strlen(dict);
    head[8] = (uint8_t)bytes;
    head[9] = (uint8_t)(bytes >> 8);
    memcpy(head + 10, dict, bytes);
    return put_file(presto_span_of(head, 10 + bytes), data);
}

static const char *put_safetensors(const char *json, presto_span data) {
    uint8_t head[600] = {(uint8_t)strlen(json), (uint8_t)(strlen(json) >> 8)};
    memcpy(head + 8, json, strlen(json));
    return put_file(presto_span_of(head, 8 + strlen(json)), data);
}

static presto_status open_step(rig *r, const char *options, presto_error *err) {
    char step[900];
    snprintf(step, sizeof step, "{step: embed, %s}", options);
    return rig_open(r, step, &ids_spec, false, err);
}

/* `options` may be empty or end with a comma. */
static presto_status open_table(rig *r, const char *options, const char *path, presto_error *err) {
    char all[700];
    snprintf(all, sizeof all, "%stable: \"%s\"", options, path);
    return open_step(r, all, err);
}

static presto_status run_ids(rig *r, const int32_t *ids, size_t count, presto_tensor *out,
                             presto_error *err) {
    rig_options options = {0};
    *out = (presto_tensor){.spec = {PRESTO_INT32, 1, {(int64_t)count}}, .data = ids};
    return rig_run(r, &options, out, err);
}

/* Row 0: 1 2 3; row 1: NaN 5 -0; with a tail that belongs to nothing. */
static const uint32_t two_rows[] = {0x3f800000, 0x40000000, 0x40400000, 0x7fc00001,
                                    0x40a00000, 0x80000000, 0x12345678};
#define TWO_ROWS presto_span_of(two_rows, sizeof two_rows)

static void check_rows(const char *options, const char *path) {
    static const int32_t ids[] = {1, 0, 1, 1};
    rig r;
    presto_error err;
    presto_tensor out;
    ck_assert_ok(open_table(&r, options, path, &err), &err);
    ck_assert_int_eq(presto__plan_output(r.plan)->dims[1], 3);
    for (int again = 0; again < 2; again++) {
        ck_assert_ok(run_ids(&r, ids, 4, &out, &err), &err);
        ck_assert_int_eq(out.spec.dtype, PRESTO_FLOAT32);
        ck_assert_int_eq(out.spec.dims[0], 4);
        ck_assert_int_eq(out.spec.dims[1], 3);
        for (size_t i = 0; i < 4; i++)
            ck_assert_int_eq(
                memcmp((const uint8_t *)out.data + i * 12, two_rows + (size_t)ids[i] * 3, 12), 0);
        ck_assert_ok(run_ids(&r, ids, 0, &out, &err), &err);
        ck_assert_int_eq(out.spec.dims[0], 0);
    }
    rig_close(&r);
}

START_TEST(rows_are_those_of_the_file) {
    make_dir();
    static const char none[] = "";
    check_rows(
        none, put_npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }  \n", TWO_ROWS));
    check_rows(none, put_npy("{\"shape\":(2,3,),'descr':\"<f4\",'fortran_order':False}", TWO_ROWS));
    uint8_t version_2[] = "\x93NUMPY\2\0\x36\0\0\0{'descr': '<f4', 'fortran_order': False, "
                          "'shape': (2, 3)}";
    version_2[8] = (uint8_t)(sizeof version_2 - 1 - 12);
    check_rows(none, put_file(presto_span_of(version_2, sizeof version_2 - 1), TWO_ROWS));
    check_rows(none,
               put_safetensors("{\"t\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,"
                               "24]},\"__metadata__\":{\"format\":\"pt\"}}",
                               TWO_ROWS));
    check_rows("tensor: b, ",
               put_safetensors("{\"a\":{\"dtype\":\"F16\",\"shape\":[2],\"data_offsets\":[24,28]},"
                               "\"b\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]}}",
                               TWO_ROWS));
    remove_dir();
}
END_TEST

/* Bits computed with numpy.random.Philox(key=[7, 0]), as fill() in embed.c says. */
START_TEST(a_made_table_is_that_of_its_seed) {
    static const int32_t ids[] = {50000, 0};
    rig r;
    presto_error err;
    presto_tensor out;
    ck_assert_ok(open_step(&r, "seed: 7", &err), &err);
    ck_assert_ok(run_ids(&r, ids, 2, &out, &err), &err);
    ck_assert_int_eq(out.spec.dims[1], 768);
    const uint32_t *bits = out.data;
    ck_assert_uint_eq(bits[767], 0x3d3d0835);
    ck_assert_uint_eq(bits[768 + 0], 0xbd09bcd5);
    ck_assert_uint_eq(bits[768 + 1], 0x3d1866ba);
    ck_assert_uint_eq(bits[768 + 9], 0xbd2ade1f);
    rig_close(&r);
    ck_assert_status(open_step(&r, "rows: 2000000, columns: 768", &err), PRESTO_ERR_SYNTAX, &err);
    ck_assert_ptr_nonnull(strstr(err.message, "takes more than 4 GiB"));
    rig_close(&r);
}
END_TEST

START_TEST(ids_that_the_table_lacks_are_errors_of_their_sample) {
    static const int32_t high[] = {0, 3, 4}, low[] = {-1};
    static const int64_t wide[] = {2, INT64_C(4294967296)};
    rig r;
    presto_error err;
    presto_tensor out;
    ck_assert_ok(open_step(&r, "rows: 4, columns: 2", &err), &err);
    ck_assert_ok(run_ids(&r, high, 2, &out, &err), &err);
    ck_assert_status(run_ids(&r, high, 3, &out, &err), PRESTO_ERR_LIMIT, &err);
    ck_assert_str_eq(err.message, "embed: id 4 at position 2, but the table has 4 rows");
    ck_assert_status(run_ids(&r, low, 1, &out, &err), PRESTO_ERR_LIMIT, &err);
    rig_options options = {0};
    out = (presto_tensor){.spec = {PRESTO_INT64, 1, {1}}, .data = wide};
    ck_assert_ok(rig_run(&r, &options, &out, &err), &err);
    out = (presto_tensor){.spec = {PRESTO_INT64, 1, {2}}, .data = wide};
    ck_assert_status(rig_run(&r, &options, &out, &err), PRESTO_ERR_LIMIT, &err);
    ck_assert_str_eq(err.message, "embed: id 4294967296 at position 1, but the table has 4 rows");
    out = (presto_tensor){.spec = {PRESTO_FLOAT32, 1, {1}}, .data = wide};
    ck_assert_status(rig_run(&r, &options, &out, &err), PRESTO_ERR_TYPE, &err);
    rig_close(&r);
}
END_TEST

static void refuse(const char *path, presto_status want, const char *part) {
    rig r;
    presto_error err;
    ck_assert_status(open_table(&r, "", path, &err), want, &err);
    ck_assert_msg(strstr(err.message, part) != NULL, "%s lacks: %s", err.message, part);
    ck_assert_str_eq(err.file, path);
    rig_close(&r);
}

static void refuse_npy(const char *dict, presto_status want, const char *part) {
    refuse(put_npy(dict, TWO_ROWS), want, part);
}

START_TEST(npy_files_that_are_no_tables_are_told) {
    make_dir();
    refuse_npy("{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3)}", PRESTO_ERR_TYPE,
               "type '<f8'");
    refuse_npy("{'descr': '>f4', 'fortran_order': False, 'shape': (2, 3)}", PRESTO_ERR_TYPE,
               "type '>f4'");
    refuse_npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2, 3)}",
               PRESTO_ERR_TYPE, "records");
    refuse_npy("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3)}", PRESTO_ERR_TYPE,
               "Fortran");
    refuse_npy("{'descr': '<f4', 'fortran_order': False, 'shape': (6,)}", PRESTO_ERR_TYPE,
               "1 dimension;");
    refuse_npy("{'descr': '<f4', 'fortran_order': False, 'shape': ()}", PRESTO_ERR_TYPE,
               "0 dimensions");
    refuse_npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2, 3)}", PRESTO_ERR_TYPE,
               "3 dimensions");
    refuse_npy("{'descr': '<f4', 'fortran_order': False, 'shape': (0, 3)}", PRESTO_ERR_LIMIT,
               "0 rows");
    refuse_npy("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 3)}", PRESTO_ERR_TRUNCATED,
               "needs 36 more");
    refuse_npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2147483647, 1048576)}",
               PRESTO_ERR_TRUNCATED, "needs 9007199250546688 more");
    refuse_npy("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999, 1)}",
               PRESTO_ERR_CORRUPT, "header");
    refuse_npy("{'descr': '<f4', 'descr': '<f4', 'shape': (2, 3)}", PRESTO_ERR_CORRUPT, "header");
    refuse_npy("{'descr': '<f4', 'shape': (2, 3)}", PRESTO_ERR_CORRUPT, "header");
    refuse_npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2 3)}", PRESTO_ERR_CORRUPT,
               "header");
    refuse_npy("{'descr': '<f4'", PRESTO_ERR_CORRUPT, "header");
    refuse_npy("", PRESTO_ERR_CORRUPT, "header");
    refuse(put_file(presto_span_of("\x93NUMPY\1\0\xff\xff", 10), TWO_ROWS), PRESTO_ERR_TRUNCATED,
           "ends within the header");
    refuse(put_file(presto_span_of("\x93NUMPY\2\0\xff\xff\xff\xff", 12), TWO_ROWS),
           PRESTO_ERR_LIMIT, "limit 16 MiB");
    refuse(put_file(presto_span_of("\x93NUMPY\4\0\1\0\0\0", 12), TWO_ROWS), PRESTO_ERR_CORRUPT,
           "version 4.0");
    remove_dir();
}
END_TEST

START_TEST(safetensors_of_too_many_values_are_refused_before_they_are_parsed) {
    presto_error err;
    presto_buffer text = {0};
    presto__table table;
    uint64_t bytes;
    const char *pieces[] = {"........", "{\"a\":[", "{},", "0]}"};
    for (size_t i = 0; i < 4; i++)
        for (size_t n = i == 2 ? ((size_t)4 << 20) / 9 : 1; n > 0; n--)
            ck_assert_ok(presto_buffer_append(&text, presto_span_of_text(pieces[i]), &err), &err);
    bytes = text.bytes - 8;
    memcpy(text.data, &bytes, sizeof bytes);
    ck_assert_status(presto__safetensors_find(presto_buffer_span(&text), NULL, &table, &err),
                     PRESTO_ERR_LIMIT, &err);
    ck_assert_ptr_nonnull(strstr(err.message, "more values than such a file needs"));
    presto_buffer_done(&text);
}
END_TEST

START_TEST(safetensors_that_are_no_tables_are_told) {
    make_dir();
    refuse(put_safetensors("{\"t\":{\"dtype\":\"F16\",\"shape\":[2,3],\"data_offsets\":[0,12]}}",
                           TWO_ROWS),
           PRESTO_ERR_TYPE, "type F16");
    refuse(put_safetensors("{\"t\":{\"dtype\":\"F32\",\"shape\":[6],\"data_offsets\":[0,24]}}",
                           TWO_ROWS),
           PRESTO_ERR_TYPE, "1 dimension;");
    refuse(put_safetensors("{\"t\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,28]}}",
                           TWO_ROWS),
           PRESTO_ERR_CORRUPT, "do not fit");
    refuse(put_safetensors("{\"t\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[8,32]}}",
                           TWO_ROWS),
           PRESTO_ERR_TRUNCATED, "needs 24 more");
    refuse(put_safetensors("{\"t\":{\"dtype\":\"F32\",\"shape\":[-2,3],\"data_offsets\":[0,24]}}",
                           TWO_ROWS),
           PRESTO_ERR_LIMIT, "-2 rows");
    refuse(put_safetensors("{\"a\":{},\"b\":{}}", TWO_ROWS), PRESTO_ERR_NOT_FOUND, "'a', 'b'");
    refuse(put_safetensors("{\"__metadata__\":{}}", TWO_ROWS), PRESTO_ERR_NOT_FOUND, "0 tensors");
    refuse(put_safetensors("{\"a\":3}", TWO_ROWS), PRESTO_ERR_CORRUPT, "no dtype");
    refuse(put_safetensors("{\"a\":", TWO_ROWS), PRESTO_ERR_CORRUPT, "header");
    refuse(put_file(presto_span_of("\xff\xff\xff\xff\xff\xff\xff\x7f{", 9), TWO_ROWS),
           PRESTO_ERR_LIMIT, "limit 16 MiB");
    refuse(put_file(presto_span_of("not a table at all", 18), TWO_ROWS), PRESTO_ERR_CORRUPT,
           "a .npy or .safetensors file is needed");
    refuse(put_file(presto_span_of("", 0), presto_span_of("", 0)), PRESTO_ERR_CORRUPT, "neither");
    rig r;
    presto_error err;
    const char *path = put_safetensors("{\"a\":{}}", TWO_ROWS);
    ck_assert_status(open_table(&r, "tensor: x, ", path, &err), PRESTO_ERR_NOT_FOUND, &err);
    ck_assert_ptr_nonnull(strstr(err.message, "no tensor 'x'; there are: 'a'"));
    rig_close(&r);
    ck_assert_status(open_table(&r, "", "/nowhere/table.npy", &err), PRESTO_ERR_NOT_FOUND, &err);
    rig_close(&r);
    remove_dir();
}
END_TEST

/* A mapped file would end the process here. */
START_TEST(a_table_that_becomes_shorter_is_an_error) {
    make_dir();
    static const int32_t first[] = {0}, second[] = {1};
    rig r;
    presto_error err;
    presto_tensor out;
    const char *path =
        put_npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}", TWO_ROWS);
    ck_assert_ok(open_table(&r, "", path, &err), &err);
    ck_assert_ok(run_ids(&r, first, 1, &out, &err), &err);
    ck_assert_int_eq(truncate(path, 90), 0);
    ck_assert_ok(run_ids(&r, first, 1, &out, &err), &err);
    ck_assert_status(run_ids(&r, second, 1, &out, &err), PRESTO_ERR_ARGUMENT, &err);
    ck_assert_str_eq(err.message, "embed: the table has become shorter");
    ck_assert_str_eq(err.file, path);
    rig_close(&r);
    remove_dir();
}
END_TEST

enum { MANY_ROWS = 200 };

static void *read_much(void *user) {
    rig *shared = user;
    presto_arena arena = {0};
    presto__plan_worker *worker;
    presto_error err;
    int32_t ids[MANY_ROWS];
    presto__plan_worker_options options = {.struct_bytes = sizeof options, .arena = &arena};
    ck_assert_ok(presto__plan_worker_new(shared->plan, &options, &worker, &err), &err);
    for (int round = 0; round < 20; round++) {
        rig_options run = {0};
        for (int32_t i = 0; i < MANY_ROWS; i++)
            ids[i] = (i * 7 + round) % MANY_ROWS;
        presto_tensor out = {.spec = {PRESTO_INT32, 1, {MANY_ROWS}}, .data = ids};
        presto_arena_reset(&arena);
        ck_assert_ok(run_one(worker, &run, &out, &err), &err);
        for (size_t i = 0; i < MANY_ROWS; i++)
            ck_assert(((const float *)out.data)[i * 2 + 1] == (float)ids[i] + 0.5f);
    }
    presto__plan_worker_free(worker);
    presto_arena_done(&arena);
    return NULL;
}

START_TEST(threads_read_each_row_right) {
    make_dir();
    float rows[MANY_ROWS * 2];
    for (size_t i = 0; i < MANY_ROWS; i++) {
        rows[i * 2] = (float)i;
        rows[i * 2 + 1] = (float)i + 0.5f;
    }
    const char *path = put_npy("{'descr': '<f4', 'fortran_order': False, 'shape': (200, 2)}",
                               presto_span_of(rows, sizeof rows));
    rig r;
    presto_error err;
    pthread_t threads[4];
    ck_assert_ok(open_table(&r, "", path, &err), &err);
    for (size_t t = 0; t < 4; t++)
        ck_assert_int_eq(pthread_create(&threads[t], NULL, read_much, &r), 0);
    for (size_t t = 0; t < 4; t++)
        pthread_join(threads[t], NULL);
    rig_close(&r);
    remove_dir();
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        rows_are_those_of_the_file,
        a_made_table_is_that_of_its_seed,
        ids_that_the_table_lacks_are_errors_of_their_sample,
        npy_files_that_are_no_tables_are_told,
        safetensors_that_are_no_tables_are_told,
        safetensors_of_too_many_values_are_refused_before_they_are_parsed,
        a_table_that_becomes_shorter_is_an_error,
        threads_read_each_row_right,
    };
    return presto_check_main("embed", tests, sizeof tests / sizeof tests[0], 120);
}
