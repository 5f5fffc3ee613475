/* SPDX-License-Identifier: Apache-2.0 */
/* The reader in docs/format.md, run as it stands there, reads what we write and refuses what is
 * damaged. */
#include "../../../records/records_internal.h"
#include "presto_check.h"

#include <stdio.h>

#include <presto/codec.h>
#include <presto/shard.h>

#define DOC PRESTO_GOLDEN_DIR "/../../docs/format.md"

static presto_error err;

static void extract_reader(const char *path) {
    size_t bytes;
    char *text = (char *)presto_check_read_file(DOC, &bytes);
    text[bytes - 1] = '\0';
    char *start = strstr(text, "<!-- test: reader -->\n```python\n");
    ck_assert_ptr_nonnull(start);
    start = strstr(start, "import");
    char *end = strstr(start, "```");
    ck_assert_ptr_nonnull(end);
    presto_check_write_file(path, presto_span_of(start, (size_t)(end - start)));
    free(text);
}

static int run_reader(const char *reader, const char *shard, char *out, size_t room) {
    char command[2000];
    snprintf(command, sizeof command, "python3 '%s' '%s' 2>&1", reader, shard);
    FILE *pipe = popen(command, "r");
    ck_assert_ptr_nonnull(pipe);
    size_t used = fread(out, 1, room - 1, pipe);
    out[used] = '\0';
    return pclose(pipe);
}

START_TEST(the_reader_in_the_documentation_works) {
    char *dir = presto_check_temp_dir();
    char reader[600], path[600], out[4000], want[4000] = "";
    presto_codec_spec spec;
    presto_codec *codec;
    presto__shard_writer *writer;
    presto_buffer packed = {0};
    snprintf(reader, sizeof reader, "%s/reader.py", dir);
    snprintf(path, sizeof path, "%s/data-00000-of-00001.tfrecord", dir);
    extract_reader(reader);
    ck_assert_ok(presto_codec_parse("zlib", &spec, &err), &err);
    ck_assert_ok(presto_codec_new(&spec, &codec, &err), &err);
    ck_assert_ok(presto__shard_writer_open(path, NULL, &writer, &err), &err);
    for (size_t i = 0; i < 20; i++) {
        char record[64];
        size_t bytes = (size_t)snprintf(record, sizeof record, "record number %zu of them", i * i);
        packed.bytes = 0;
        ck_assert_ok(presto__codec_compress(codec, presto_span_of(record, bytes), &packed, &err),
                     &err);
        ck_assert_ok(presto__shard_writer_append(writer, presto_buffer_span(&packed), &err), &err);
        size_t used = strlen(want);
        used += (size_t)snprintf(want + used, sizeof want - used, "%zu ", bytes);
        for (size_t k = 0; k < 16; k++)
            used += (size_t)snprintf(want + used, sizeof want - used, "%02x", record[k]);
        snprintf(want + used, sizeof want - used, "\n");
    }
    ck_assert_ok(presto__shard_writer_finish(writer, NULL, &err), &err);
    presto__shard_writer_free(writer);
    presto_codec_free(codec);
    presto_buffer_done(&packed);
    ck_assert_int_eq(run_reader(reader, path, out, sizeof out), 0);
    ck_assert_str_eq(out, want);
    size_t bytes;
    uint8_t *content = presto_check_read_file(path, &bytes);
    content[0] ^= 1;
    presto_check_write_file(path, presto_span_of(content, bytes));
    ck_assert_int_ne(run_reader(reader, path, out, sizeof out), 0);
    ck_assert_ptr_nonnull(strstr(out, "damaged header at byte 0"));
    free(content);
    presto_check_remove_tree(dir);
    free(dir);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {the_reader_in_the_documentation_works};
    return presto_check_main("format_doc", tests, sizeof tests / sizeof tests[0], 60);
}
