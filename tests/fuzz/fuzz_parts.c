/* SPDX-License-Identifier: Apache-2.0 */
/* part.json, and the log of a join: what is read leads nowhere but to files of its folder. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "convert/share_internal.h"

static void check_part(const presto__part_file *part) {
    size_t first = presto__share_first(part->shards, part->number, part->count);
    size_t end = presto__share_first(part->shards, part->number + 1, part->count);
    uint64_t most = presto__layout_first(part->samples, part->shards, end) -
                    presto__layout_first(part->samples, part->shards, first);
    uint64_t records = 0;
    char key[64];
    FUZZ_HOLDS(part->number < part->count && part->count <= PRESTO_MAX_SHARDS);
    FUZZ_HOLDS(part->info.shard_count == end - first && end <= part->shards);
    for (size_t i = 0; i < part->info.shard_count; i++) {
        records += part->info.shards[i].records;
        FUZZ_HOLDS(strchr(part->info.shards[i].file, '/') == NULL);
    }
    FUZZ_HOLDS(records + part->skipped + part->dropped == most);
    FUZZ_HOLDS(!presto__jobs_differ(part->job, part->job, key));
}

static void check_log(const presto__join_log *log) {
    size_t number, count;
    for (size_t i = 0; i < log->attempt_count; i++)
        FUZZ_HOLDS(presto__attempt_parse(log->attempts[i], &number, &count) && number < count);
    for (size_t i = 0; i < log->move_count; i++)
        FUZZ_HOLDS(log->moves[i].attempt < log->attempt_count &&
                   strchr(log->moves[i].file, '/') == NULL && log->moves[i].file[0] == 'd');
    FUZZ_HOLDS(log->dictionary == SIZE_MAX || log->dictionary < log->attempt_count);
    FUZZ_HOLDS(log->dataset != NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    const presto_span text = presto_span_of(data, bytes);
    presto__part_file part = {0};
    presto__join_log log = {.dictionary = SIZE_MAX};
    presto_error err;
    if (presto__part_file_parse(text, "part.json", &part, &err) == PRESTO_OK)
        check_part(&part);
    if (presto__join_log_parse(text, &log, &err) == PRESTO_OK) {
        FUZZ_HOLDS(presto__join_log_is(text));
        check_log(&log);
    }
    presto__part_file_done(&part);
    presto__join_log_done(&log);
    return 0;
}
