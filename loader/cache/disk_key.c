/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the samples of a disk cache depend on, as 128 bits. Whatever changes a sample must change
 * its key. What may change it (the times of a file) also changes the key: a cold cache costs time,
 * a stale one gives wrong samples.
 */
#include <errno.h>
#include <stdlib.h>

#include <presto/version.h>

#include "../../steps/pipelines_internal.h"
#include "../../storage/storage_internal.h"
#include "disk_internal.h"

static void add_text(presto__digest *digest, const char *text) {
    if (text == NULL)
        presto__digest_add(digest, "", 1); /* differs from every text, as texts have no NUL */
    else
        presto__digest_add(digest, text, strlen(text));
}

static void add_number(presto__digest *digest, uint64_t number) {
    presto__digest_add(digest, &number, sizeof number);
}

/* The files of foreign records do not say what the records mean. */
static void add_features(presto__digest *digest, const presto_source *source) {
    add_number(digest, source->feature_count);
    for (size_t i = 0; i < source->feature_count; i++) {
        const presto_feature_spec *feature = &source->features[i];
        char text[PRESTO_SPEC_TEXT_BYTES];
        add_text(digest, feature->name);
        add_number(digest, (uint64_t)feature->encoding);
        add_text(digest, presto_spec_format(&feature->spec, text, sizeof text));
    }
    add_text(digest, source->main_feature);
}

/* Options may name files (a model, a program): the key depends on the files. */
static void add_named_file(void *user, const char *path) {
    presto__digest *digest = user;
    presto__object_info info;
    if (presto__object_find(path, &info, NULL) == PRESTO_OK && info.type == PRESTO__OBJECT_FILE) {
        add_text(digest, path);
        presto__digest_add_object(digest, &info);
    }
}

static presto_status add_plan(presto__digest *digest, const presto_plan *plan, presto_error *err) {
    if (plan == NULL) {
        add_text(digest, NULL);
        return PRESTO_OK;
    }
    presto_buffer text = {0};
    PRESTO_TRY(presto__plan_json(plan, &text, err));
    presto__digest_add(digest, text.data, text.bytes);
    presto_buffer_done(&text);
    presto__plan_files(plan, add_named_file, digest);
    return PRESTO_OK;
}

/* A sample with some of its features is another sample. */
static void add_selection(presto__digest *digest, const presto__selection *selection) {
    if (selection->is_all)
        return;
    add_number(digest, selection->count);
    for (size_t i = 0; i < selection->count; i++)
        add_text(digest, selection->features[i].name);
}

presto_status presto__disk_key_of(const presto_source *source, const presto_plan *plan,
                                  const presto__selection *selection, presto__disk_key *key_out,
                                  presto_error *err) {
    presto__digest digest = {{PRESTO__DISK_VERSION, sizeof(presto__disk_key)}};
    add_text(&digest, presto_version());
    add_features(&digest, source);
    PRESTO_TRY(add_plan(&digest, plan, err));
    /* Until the files are read, a raw source's samples are the paths themselves. */
    bool as_named = plan == NULL || (presto_plan_step_flags(plan, 0) & PRESTO_STEP_READS_FILE) == 0;
    PRESTO_TRY(source->ops->identify(source, as_named, &digest, err));
    add_selection(&digest, selection);
    key_out->words[0] = digest.state[0];
    key_out->words[1] = digest.state[1];
    return PRESTO_OK;
}
