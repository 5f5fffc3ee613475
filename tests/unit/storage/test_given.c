/* SPDX-License-Identifier: Apache-2.0 */
/* File systems that a program gives: what their functions say is found, read and listed, and what they
 * say wrongly is an error. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <presto/filesystem.h>

#include "../base/stop_internal.h"
#include "presto_check.h"
#include "storage_internal.h"

/* A tree of a few files, whose content is their path again and again. */
typedef struct tree {
    const char *const *files; /* ends with NULL */
    const char *odd_name;     /* is listed in each folder; NULL: none */
    const char *version;
    size_t given_too_few;
    bool is_endless, gives_positive, is_gone, says_nothing;
    atomic_uint opened, closed, done;
} tree;

static const char *const files[] = {"/a/1", "/a/b/2", "/a/b/c/3", "/a/.hidden", "/top", NULL};
static presto_error err;
static atomic_uint busy; /* threads that have read a while */

static void fill(const char *path, presto_filesystem_entry *entry_out, const tree *of) {
    entry_out->bytes = 10 * strlen(path);
    entry_out->mtime_ns = 5;
    snprintf(entry_out->version, sizeof entry_out->version, "%s",
             of->version == NULL ? "v1" : of->version);
}

static bool is_file(const tree *of, const char *path) {
    bool is_any = false;
    for (size_t i = 0; of->files[i] != NULL; i++)
        is_any = is_any || strcmp(of->files[i], path) == 0;
    return is_any && !of->is_gone;
}

/* Is there a file below it? */
static bool is_folder(const tree *of, const char *path) {
    size_t bytes = strcmp(path, "/") == 0 ? 0 : strlen(path);
    bool is_any = of->is_endless;
    for (size_t i = 0; of->files[i] != NULL; i++)
        is_any = is_any || (strncmp(of->files[i], path, bytes) == 0 && of->files[i][bytes] == '/');
    return is_any;
}

static presto_status tree_find(void *user, const char *path, presto_filesystem_entry *entry_out,
                               presto_error *why) {
    const tree *of = user;
    if (of->says_nothing)
        return PRESTO_ERR_IO;
    if (of->gives_positive)
        return PRESTO_END;
    if (is_file(of, path))
        fill(path, entry_out, of);
    else if (is_folder(of, path))
        entry_out->type = PRESTO_FILESYSTEM_FOLDER;
    else
        return presto_fail(why, PRESTO_ERR_NOT_FOUND, PRESTO_NO_OFFSET, "not in the tree");
    return PRESTO_OK;
}

static presto_status tree_open(void *user, const char *path, void **file_out,
                               presto_filesystem_entry *entry_out, presto_error *why) {
    tree *of = user;
    PRESTO_TRY(tree_find(user, path, entry_out, why));
    *file_out = strdup(path);
    of->opened++;
    return PRESTO_OK;
}

static presto_status tree_read(void *user, void *file, uint64_t offset, void *data, size_t bytes,
                               size_t *got_out, presto_error *why) {
    const tree *of = user;
    const char *path = file;
    size_t size = 10 * strlen(path);
    if (offset + bytes > size)
        return presto_fail(why, PRESTO_ERR_IO, offset, "asked for more than there is");
    for (size_t i = 0; i < bytes; i++)
        ((char *)data)[i] = path[(offset + i) % strlen(path)];
    *got_out = bytes - (bytes < of->given_too_few ? bytes : of->given_too_few);
    return PRESTO_OK;
}

static void tree_close(void *user, void *file) {
    ((tree *)user)->closed++;
    free(file);
}

static presto_status tell_folder(presto_filesystem_tell_fn tell, void *tell_user, const char *name,
                                 presto_error *why) {
    const presto_filesystem_entry entry = {.type = PRESTO_FILESYSTEM_FOLDER};
    return tell(tell_user, name, &entry, why);
}

static presto_status tree_list(void *user, const char *path, presto_filesystem_tell_fn tell,
                               void *tell_user, presto_error *why) {
    const tree *of = user;
    size_t bytes = strcmp(path, "/") == 0 ? 0 : strlen(path);
    char before[64] = "";
    if (of->is_endless)
        return tell_folder(tell, tell_user, "again", why);
    if (of->odd_name != NULL)
        PRESTO_TRY(tell_folder(tell, tell_user, of->odd_name, why));
    for (size_t i = 0; of->files[i] != NULL; i++) {
        if (strncmp(of->files[i], path, bytes) != 0 || of->files[i][bytes] != '/')
            continue;
        char name[64];
        presto_filesystem_entry entry = {.bytes = 0};
        const char *rest = of->files[i] + bytes + 1;
        snprintf(name, sizeof name, "%.*s", (int)strcspn(rest, "/"), rest);
        if (strcmp(name, before) == 0)
            continue;
        memcpy(before, name, sizeof before);
        if (strchr(rest, '/') != NULL)
            entry.type = PRESTO_FILESYSTEM_FOLDER;
        else
            fill(of->files[i], &entry, of);
        PRESTO_TRY(tell(tell_user, name, &entry, why));
    }
    return PRESTO_OK;
}

static void tree_done(void *user) {
    ((tree *)user)->done++;
}

static presto_filesystem functions_of(tree *of) {
    const presto_filesystem functions = {.struct_bytes = sizeof functions,
                                         .user = of,
                                         .find = tree_find,
                                         .open = tree_open,
                                         .read = tree_read,
                                         .close = tree_close,
                                         .list = tree_list,
                                         .done = tree_done};
    return functions;
}

static void add(tree *of) {
    const presto_filesystem functions = functions_of(of);
    ck_assert_ok(presto_filesystem_add("tree+1", &functions, &err), &err);
}

START_TEST(what_is_there_is_found_and_read_whole_and_in_parts) {
    tree of = {.files = files};
    add(&of);
    presto__object object;
    presto__object_info info, found;
    ck_assert_ok(presto__object_open("tree+1:///a/1", &object, &info, &err), &err);
    ck_assert_uint_eq(info.bytes, 40);
    ck_assert_int_eq(info.mtime_ns, 5);
    ck_assert_ok(presto__object_find("tree+1://a/1", &found, &err), &err);
    ck_assert(presto__object_is_same(&info, &found)); /* however it was written */
    char data[64] = "";
    size_t got;
    ck_assert_ok(
        presto__read_at((presto__object_place){object, "x", 3}, data, sizeof data, &got, &err),
        &err);
    ck_assert_uint_eq(got, 37);
    ck_assert_str_eq(data, "1/a/1/a/1/a/1/a/1/a/1/a/1/a/1/a/1/a/1");
    ck_assert_ok(presto__read_at((presto__object_place){object, "x", 40}, data, 1, &got, &err),
                 &err);
    ck_assert_uint_eq(got, 0);
    ck_assert_ok(presto__object_look(object, "x", &found, &err), &err);
    ck_assert(presto__object_is_same(&info, &found));
    of.version = "v2";
    ck_assert_ok(presto__object_look(object, "x", &found, &err), &err);
    ck_assert(found.identity[1] != info.identity[1]);
    of.is_gone = true;
    ck_assert_status(presto__object_look(object, "x", &found, &err), PRESTO_ERR_IO, &err);
    ck_assert_str_eq(err.message, "was removed since it was opened");
    presto__object_close(&object);
    ck_assert_uint_eq(of.closed, 1);
    presto_filesystem_remove("tree+1");
    ck_assert_uint_eq(of.done, 1);
}
END_TEST

START_TEST(folders_are_found_and_are_not_read) {
    tree of = {.files = files};
    add(&of);
    presto__object object;
    presto__object_info info;
    for (const char *const *path = (const char *const[]){"tree+1://", "tree+1:///", "tree+1:///a/",
                                                         "tree+1:///a/b", NULL};
         *path != NULL; path++) {
        ck_assert_ok(presto__object_find(*path, &info, &err), &err);
        ck_assert_int_eq(info.type, PRESTO__OBJECT_FOLDER);
        ck_assert_status(presto__object_open(*path, &object, &info, &err), PRESTO_ERR_IO, &err);
        ck_assert_str_eq(err.file, *path);
    }
    ck_assert_uint_eq(of.opened, of.closed);
    ck_assert_status(presto__object_find("tree+1:///b", &info, &err), PRESTO_ERR_NOT_FOUND, &err);
    ck_assert_str_eq(err.message, "not in the tree");
    ck_assert_str_eq(err.file, "tree+1:///b");
    presto_filesystem_remove("tree+1");
}
END_TEST

START_TEST(what_is_said_wrongly_is_an_error) {
    tree of = {.files = files, .given_too_few = 1};
    add(&of);
    presto__object object;
    presto__object_info info;
    char data[64];
    size_t got;
    ck_assert_ok(presto__object_open("tree+1:///top", &object, &info, &err), &err);
    ck_assert_status(
        presto__read_at((presto__object_place){object, "tree+1:///top", 8}, data, 10, &got, &err),
        PRESTO_ERR_IO, &err);
    ck_assert_str_eq(err.message, "has changed since it was opened: it had 40 bytes");
    ck_assert_uint_eq(err.offset, 17);
    presto__object_close(&object);
    of.gives_positive = true;
    ck_assert_status(presto__object_find("tree+1:///top", &info, &err), PRESTO_ERR_IO, &err);
    of.gives_positive = false;
    of.says_nothing = true;
    ck_assert_status(presto__object_find("tree+1:///top", &info, &err), PRESTO_ERR_IO, &err);
    ck_assert_str_eq(err.message, "the file system does not say why");
    presto_filesystem_remove("tree+1");
}
END_TEST

/* ---- lists ---- */

typedef struct seen {
    char text[512]; /* "path;" of each, folders with a '/' */
    const char *refused;
    presto_status stops_with;
} seen;

static presto_status want_name(void *user, const char *folder, const char *name, bool *wanted_out,
                               presto_error *why) {
    const seen *all = user;
    (void)folder, (void)why;
    *wanted_out = all->refused == NULL || strcmp(name, all->refused) != 0;
    return PRESTO_OK;
}

static presto_status note_found(void *user, const presto__listed *found, presto_error *why) {
    seen *all = user;
    size_t used = strlen(all->text);
    if (all->stops_with < 0)
        return presto_fail(why, all->stops_with, PRESTO_NO_OFFSET, "enough");
    ck_assert_uint_gt(found->info->bytes, 0);
    snprintf(all->text + used, sizeof all->text - used, "%s;", found->path + strlen("tree+1://"));
    return PRESTO_OK;
}

static presto_status note_folder(void *user, const char *path, presto_error *why) {
    seen *all = user;
    size_t used = strlen(all->text);
    (void)why;
    snprintf(all->text + used, sizeof all->text - used, "%s/;", path + strlen("tree+1://"));
    return PRESTO_OK;
}

START_TEST(folders_are_listed_as_those_of_a_disk) {
    tree of = {.files = files};
    add(&of);
    seen all = {.text = ""};
    presto__list list = {
        .user = &all, .name = want_name, .found = note_found, .folder = note_folder};
    ck_assert_ok(presto__object_list("tree+1:///a", &list, &err), &err);
    ck_assert_str_eq(all.text, "/a/;/a/1;/a/.hidden;/a/b/;/a/b/2;/a/b/c/;/a/b/c/3;");
    all = (seen){.refused = "b"};
    ck_assert_ok(presto__object_list("tree+1:///", &list, &err), &err);
    ck_assert_str_eq(all.text, "//;/top;/a/;/a/1;/a/.hidden;");
    all = (seen){.text = ""};
    list.is_shallow = true;
    ck_assert_ok(presto__object_list("tree+1:///a/", &list, &err), &err);
    ck_assert_str_eq(all.text, "/a/1;/a/b/;/a/.hidden;");
    all = (seen){.stops_with = PRESTO_ERR_LIMIT};
    ck_assert_status(presto__object_list("tree+1:///a", &list, &err), PRESTO_ERR_LIMIT, &err);
    ck_assert_str_eq(err.message, "enough");
    presto_filesystem_remove("tree+1");
}
END_TEST

START_TEST(patterns_match_names_of_any_folder) {
    tree of = {.files = files};
    presto__paths found;
    add(&of);
    ck_assert_ok(presto__paths_expand((const char *const[]){"tree+1:///a/*/?", "tree+1:///t*"}, 2,
                                      &found, &err),
                 &err);
    ck_assert_uint_eq(found.count, 3);
    ck_assert_str_eq(found.items[0], "tree+1:///a/b/2");
    ck_assert_str_eq(found.items[1], "tree+1:///a/b/c"); /* a folder, as a shell gives it */
    ck_assert_str_eq(found.items[2], "tree+1:///top");
    presto__paths_done(&found);
    presto_filesystem_remove("tree+1");
}
END_TEST

START_TEST(lists_that_never_end_and_names_that_are_none_are_errors) {
    seen all = {.text = ""};
    const presto__list list = {.user = &all, .found = note_found};
    tree of = {.files = files, .is_endless = true};
    add(&of);
    ck_assert_status(presto__object_list("tree+1:///", &list, &err), PRESTO_ERR_LIMIT, &err);
    of.is_endless = false;
    for (const char *const *name = (const char *const[]){"..", ".", "", "a/b", NULL}; *name != NULL;
         name++) {
        of.odd_name = *name;
        ck_assert_status(presto__object_list("tree+1:///", &list, &err), PRESTO_ERR_IO, &err);
        ck_assert(strstr(err.message, "is no name") != NULL);
    }
    presto_filesystem_remove("tree+1");
}
END_TEST

/* ---- its life ---- */

START_TEST(a_name_is_checked_and_belongs_to_one) {
    tree of = {.files = files};
    presto_filesystem functions = functions_of(&of);
    const char *const wrong[] = {
        "tree",  "",       "+",
        "1+a",   "Tree+1", "a+b/c",
        "a+b:c", "a b+1",  "abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyz+12",
        NULL};
    for (size_t i = 0; wrong[i] != NULL; i++)
        ck_assert_status(presto_filesystem_add(wrong[i], &functions, &err), PRESTO_ERR_ARGUMENT,
                         &err);
    add(&of);
    ck_assert_status(presto_filesystem_add("tree+1", &functions, &err), PRESTO_ERR_BUSY, &err);
    functions.read = NULL;
    ck_assert_status(presto_filesystem_add("tree+2", &functions, &err), PRESTO_ERR_ARGUMENT, &err);
    functions.struct_bytes = 0;
    ck_assert_status(presto_filesystem_add("tree+2", &functions, &err), PRESTO_ERR_ARGUMENT, &err);
    ck_assert_uint_eq(of.done, 0);
    presto_filesystem_remove("tree+2"); /* there is none */
    presto_filesystem_remove("tree+1");
    ck_assert_uint_eq(of.done, 1);
}
END_TEST

START_TEST(what_is_open_stays_open_when_it_is_removed) {
    tree of = {.files = files}, next = {.files = files};
    presto__object object;
    presto__object_info info;
    char data[4];
    size_t got;
    add(&of);
    ck_assert_ok(presto__object_open("tree+1:///top", &object, &info, &err), &err);
    presto_filesystem_remove("tree+1");
    ck_assert_uint_eq(of.done, 0);
    ck_assert_status(presto__object_find("tree+1:///top", &info, &err), PRESTO_ERR_UNSUPPORTED,
                     &err);
    ck_assert_str_eq(
        err.message,
        "URLs are not read (no file system of the name tree+1 is given in this process)");
    add(&next); /* the name is free */
    ck_assert_ok(presto__read_at((presto__object_place){object, "x", 0}, data, 4, &got, &err),
                 &err);
    ck_assert_mem_eq(data, "/top", 4);
    presto__object_close(&object);
    ck_assert_uint_eq(of.done, 1);
    ck_assert_uint_eq(next.done, 0);
    presto_filesystem_remove("tree+1");
}
END_TEST

/* Until it is removed by another thread. */
static void *read_on(void *user) {
    size_t reads = 0;
    (void)user;
    for (;;) {
        presto__object object;
        presto__object_info info;
        presto_error why;
        char data[8];
        size_t got;
        presto_status status = presto__object_open("tree+1:///a/1", &object, &info, &why);
        if (status < 0) {
            ck_assert_status(status, PRESTO_ERR_UNSUPPORTED, &why);
            return NULL;
        }
        ck_assert_ok(presto__read_at((presto__object_place){object, "x", 0}, data, 4, &got, &why),
                     &why);
        presto__object_close(&object);
        if (++reads == 100)
            atomic_fetch_add(&busy, 1);
    }
}

START_TEST(threads_that_read_are_not_harmed_when_it_is_removed) {
    tree of = {.files = files};
    pthread_t threads[4];
    atomic_store(&busy, 0);
    add(&of);
    for (size_t i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, read_on, NULL), 0);
    while (atomic_load(&busy) < 4)
        sched_yield();
    presto_filesystem_remove("tree+1");
    for (size_t i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    ck_assert_uint_eq(atomic_load(&of.done), 1);
    ck_assert_uint_eq(atomic_load(&of.opened), atomic_load(&of.closed));
}
END_TEST

START_TEST(a_path_of_this_machine_is_not_taken_for_one) {
    presto__object_info info;
    ck_assert_status(presto__object_find("none+here/a", &info, &err), PRESTO_ERR_NOT_FOUND, &err);
    ck_assert(!presto__path_is_remote("a+b:/c"));
    ck_assert(!presto__path_is_remote("a+b"));
    ck_assert(presto__path_is_remote("a+b://c"));
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        what_is_there_is_found_and_read_whole_and_in_parts,
        folders_are_found_and_are_not_read,
        what_is_said_wrongly_is_an_error,
        folders_are_listed_as_those_of_a_disk,
        patterns_match_names_of_any_folder,
        lists_that_never_end_and_names_that_are_none_are_errors,
        a_name_is_checked_and_belongs_to_one,
        what_is_open_stays_open_when_it_is_removed,
        threads_that_read_are_not_harmed_when_it_is_removed,
        a_path_of_this_machine_is_not_taken_for_one,
    };
    return presto_check_main("given", tests, sizeof tests / sizeof tests[0], 30);
}
