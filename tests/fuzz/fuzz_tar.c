/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tar archives: any bytes are a list of members, each within the archive and behind the one before,
 * that ends, or fails with a byte; going on behind a failure ends as well.
 */
#include "source/tar/tar_internal.h"

#include "fuzz.h"

static presto_status view(void *user, uint64_t offset, size_t count, presto_span *view_out,
                          presto_error *err) {
    const presto_span *all = user;
    (void)err;
    size_t at = offset < all->bytes ? (size_t)offset : all->bytes;
    *view_out = presto_span_of(all->data + at, all->bytes - at < count ? all->bytes - at : count);
    return PRESTO_OK;
}

static void check_member(const presto__tar *tar, const presto__tar_member *member, uint64_t from,
                         size_t bytes) {
    presto_span key, extension;
    FUZZ_HOLDS(member->start == from && member->data >= from + PRESTO__TAR_BLOCK);
    FUZZ_HOLDS(member->data <= bytes && member->bytes <= bytes - member->data);
    FUZZ_HOLDS(tar->next >= member->data + member->bytes && tar->next % PRESTO__TAR_BLOCK == 0);
    FUZZ_HOLDS(member->name.bytes == 0 || memchr(member->name.data, 0, member->name.bytes) == NULL);
    if (presto__tar_split(member->name, &key, &extension)) {
        FUZZ_HOLDS(key.bytes > 0 && key.data[key.bytes - 1] != '/');
        FUZZ_HOLDS(key.bytes + 1 + extension.bytes == member->name.bytes);
        FUZZ_HOLDS(extension.bytes == 0 || memchr(extension.data, '/', extension.bytes) == NULL);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    presto_span all = presto_span_of(data, bytes);
    presto__tar tar = {.view = view, .user = &all};
    presto_error err;
    for (;;) {
        presto__tar_member member;
        uint64_t from = tar.next;
        presto_status status = presto__tar_next(&tar, &member, &err);
        if (status == PRESTO_OK) {
            check_member(&tar, &member, from, bytes);
            continue;
        }
        FUZZ_HOLDS(tar.next == from);
        FUZZ_HOLDS(status == PRESTO_END || err.offset != PRESTO_NO_OFFSET);
        status = status == PRESTO_END ? presto__tar_pass_zeros(&tar, &err)
                                      : presto__tar_resume(&tar, &err);
        if (status != PRESTO_OK)
            break;
        FUZZ_HOLDS(tar.next > from && tar.next < bytes);
    }
    presto__tar_done(&tar);
    return 0;
}
