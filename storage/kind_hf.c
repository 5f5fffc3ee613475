/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kind `hf`: hf://datasets/OWNER/NAME[@REVISION]/FILE of the Hugging Face Hub. The Hub answers with
 * the file, or points to its store: that redirection is followed, to hosts of the Hub alone, and
 * kept for the ranges that follow, until the store refuses it. The token goes to the Hub and never
 * to the store.
 *
 * A branch moves. The first answer says which commit it is at, or the Hub is asked for it before a
 * list; from then on this process reads that one, so that the files of a dataset belong together.
 *
 * A file is known by its oid: the store has other names for it, but lists and the Hub's own answers
 * agree in that.
 *
 * Source: Hugging Face, huggingface_hub: the URLs of `resolve`, the headers X-Repo-Commit,
 *         X-Linked-ETag and Location, environment variables.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "../base/paths_internal.h"
#include "credentials/aws_config_internal.h"
#include "credentials/credentials_internal.h"
#include "hf_list_internal.h"
#include "kept_internal.h"
#include "place_internal.h"
#include "remote_internal.h"
#include "sigv4_internal.h"
#include "texts_internal.h"

#define SCHEME "hf://"
#define DATASETS "datasets/"
#define HUB "https://huggingface.co"
/* Of the store, twice: the Hub points to one, and the store may refuse it, because requests beside this
 * one have used it up. */
#define MOST_ADDRESSES 16

typedef struct hf_address {
    /* Set once. */
    char *hub;      /* "https://huggingface.co" */
    char *token;    /* NULL: nobody's */
    char *repo;     /* "datasets/OWNER/NAME" */
    char *revision; /* as it is written */
    char *file;     /* encoded; "": the repository itself */
    char *root;     /* "hf://datasets/OWNER/NAME/", with the revision, if it was given */
    char *folder;   /* the file as it was given, without '/' at its end */
    /* Guarded by the lock. */
    pthread_mutex_t lock;
    char *store;           /* where the Hub has pointed to; NULL: ask the Hub */
    bool store_is_hub;     /* it is at the Hub itself, and gets the token */
    uint64_t store_number; /* of stores that it has pointed to so far */
    char oid[sizeof((presto__http_answer){0}.linked_etag)]; /* "": the Hub has not said it */
} hf_address;

/* Commits that revisions were at when they were first asked for, by "HUB/REPO@REVISION". */
static presto__kept commits;

static bool hf_owns(const char *path) {
    return strncmp(path, SCHEME, strlen(SCHEME)) == 0;
}

/* ---- the token ---- */

/* The file that 'hf auth login' writes; malloc'd. NULL: no home, or no memory. */
static char *token_file(void) {
    const char *named = presto__variable("HF_TOKEN_PATH"), *home = presto__variable("HF_HOME");
    const char *cache = presto__variable("XDG_CACHE_HOME"), *user = presto__variable("HOME");
    if (named != NULL)
        return strdup(named);
    if (home != NULL)
        return PRESTO__JOINED(home, "/token");
    if (cache != NULL)
        return PRESTO__JOINED(cache, "/huggingface/token");
    return user == NULL ? NULL : PRESTO__JOINED(user, "/.cache/huggingface/token");
}

/* What huggingface_hub takes for yes. */
static bool is_switched_on(const char *name) {
    static const char *const words[] = {"1", "on", "yes", "true"};
    const char *value = presto__variable(name);
    for (size_t i = 0; value != NULL && i < sizeof words / sizeof words[0]; i++)
        if (strcasecmp(value, words[i]) == 0)
            return true;
    return false;
}

/* *token_out NULL: there is none. */
static presto_status find_token(char **token_out, presto_error *err) {
    const char *named = presto__variable("HF_TOKEN");
    presto_buffer text = {0};
    presto_status status = PRESTO_OK;
    *token_out = NULL;
    if (is_switched_on("HF_HUB_DISABLE_IMPLICIT_TOKEN"))
        return PRESTO_OK;
    if (named == NULL)
        named = presto__variable("HUGGING_FACE_HUB_TOKEN");
    if (named != NULL) {
        status = presto_buffer_append(&text, presto_span_of_text(named), err);
    } else {
        char *file = token_file();
        status = file == NULL ? PRESTO_END : presto__small_file(file, &text, err);
        free(file);
        if (status == PRESTO_END)
            return PRESTO_OK;
    }
    while (text.bytes > 0 && text.data[text.bytes - 1] <= ' ')
        text.bytes--;
    for (size_t i = 0; i < text.bytes && status == PRESTO_OK; i++)
        if (text.data[i] <= ' ' || text.data[i] >= 0x7f)
            status = presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                                 "the token of the Hub has a space or a control character in it");
    if (status == PRESTO_OK && text.bytes > 0) {
        *token_out = presto_span_to_text(presto_buffer_span(&text));
        status = *token_out == NULL ? presto_fail_memory(err, text.bytes) : PRESTO_OK;
    }
    presto__forget_buffer(&text);
    return status;
}

/* ---- where ---- */

static presto_status fail_name(presto_error *err) {
    return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                       "it is hf://datasets/OWNER/NAME/FILE or hf://datasets/OWNER/NAME@REVISION/"
                       "FILE, or either without a file: other repositories are not read");
}

/* Is it all of letters that names of the Hub have? */
static bool is_name(const char *text, size_t bytes, const char *more) {
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    for (size_t i = 0; i < bytes; i++)
        if (text[i] == '\0' || (strchr(letters, text[i]) == NULL && strchr(more, text[i]) == NULL))
            return false;
    return bytes > 0 && !(text[0] == '.' && bytes <= 2); /* no "." and ".." */
}

static presto_status place(hf_address *self, const char *path, presto_error *err) {
    const char *owner = path + strlen(SCHEME) + strlen(DATASETS);
    presto_buffer file = {0};
    if (strncmp(path + strlen(SCHEME), DATASETS, strlen(DATASETS)) != 0)
        return fail_name(err);
    size_t owner_bytes = strcspn(owner, "/@");
    const char *name = owner + owner_bytes + 1;
    if (owner[owner_bytes] != '/' || !is_name(owner, owner_bytes, ""))
        return fail_name(err);
    size_t name_bytes = strcspn(name, "/@");
    const char *revision = name[name_bytes] == '@' ? name + name_bytes + 1 : NULL;
    const char *end = revision == NULL ? name + name_bytes : revision + strcspn(revision, "/");
    if (!is_name(name, name_bytes, "") || (end[0] != '/' && end[0] != '\0') ||
        (revision != NULL && !is_name(revision, (size_t)(end - revision), "%")))
        return fail_name(err);
    const char *hub = presto__variable("HF_ENDPOINT");
    self->hub = strdup(hub != NULL ? hub : HUB);
    self->repo = strndup(owner - strlen(DATASETS), strlen(DATASETS) + owner_bytes + 1 + name_bytes);
    self->revision =
        revision == NULL ? strdup("main") : strndup(revision, (size_t)(end - revision));
    const char *named = end[0] == '/' ? end + 1 : "";
    size_t named_bytes = strlen(named);
    while (named_bytes > 0 && named[named_bytes - 1] == '/')
        named_bytes--;
    char *before = strndup(path, (size_t)(end - path));
    self->root = before == NULL ? NULL : PRESTO__JOINED(before, "/");
    self->folder = strndup(named, named_bytes);
    free(before);
    if (self->hub == NULL || self->repo == NULL || self->revision == NULL || self->root == NULL ||
        self->folder == NULL)
        return presto_fail_memory(err, strlen(path));
    for (size_t bytes = strlen(self->hub); bytes > 0 && self->hub[bytes - 1] == '/'; bytes--)
        self->hub[bytes - 1] = '\0';
    PRESTO_TRY(presto__check_secure("the Hub", self->hub, err));
    PRESTO_TRY(find_token(&self->token, err));
    presto_status status = presto__percent_encode(presto_span_of_text(named), true, &file, err);
    if (status == PRESTO_OK) {
        self->file = presto_span_to_text(presto_buffer_span(&file));
        status = self->file == NULL ? presto_fail_memory(err, file.bytes) : PRESTO_OK;
    }
    presto_buffer_done(&file);
    return status;
}

static void hf_free(void *user) {
    hf_address *self = user;
    free(self->hub);
    presto__forget(self->token);
    free(self->repo);
    free(self->revision);
    free(self->file);
    free(self->root);
    free(self->folder);
    free(self->store);
    pthread_mutex_destroy(&self->lock);
    free(self);
}

static presto_status hf_make(const char *path, void **self_out, presto_error *err) {
    hf_address *self = calloc(1, sizeof *self);
    if (self == NULL)
        return presto_fail_memory(err, sizeof *self);
    int failed = pthread_mutex_init(&self->lock, NULL);
    if (failed != 0) {
        free(self);
        return presto_fail_errno(err, failed, NULL, "cannot make a lock");
    }
    presto_status status = place(self, path, err);
    if (status < 0) {
        presto_error_set_file(err, path);
        hf_free(self);
        return status;
    }
    *self_out = self;
    return PRESTO_OK;
}

/* ---- commits ---- */

/* NULL: no memory. */
static char *commit_name(const hf_address *self) {
    return PRESTO__JOINED(self->hub, "/", self->repo, "@", self->revision);
}

/* The commit that the revision was at first; malloc'd. NULL: it was not asked for yet. */
static char *find_commit(const hf_address *self) {
    char *name = commit_name(self);
    char *commit = name == NULL ? NULL : presto__kept_find(&commits, name);
    free(name);
    return commit;
}

/* The first one counts. */
static void keep_commit(const hf_address *self, const char *commit) {
    char *name = commit_name(self);
    if (name != NULL && commit[0] != '\0' && commit[strspn(commit, "0123456789abcdef")] == '\0')
        presto__kept_set(&commits, name, commit, false);
    free(name);
}

/* ---- requests ---- */

static presto_status hf_write(void *user, const presto__remote_wish *wish, presto__message *message,
                              presto_error *err) {
    hf_address *self = user;
    char *commit = find_commit(self);
    pthread_mutex_lock(&self->lock);
    bool is_hub = self->store == NULL || self->store_is_hub;
    char *url = self->store != NULL
                    ? strdup(self->store)
                    : PRESTO__JOINED(self->hub, "/", self->repo, "/resolve/",
                                     commit != NULL ? commit : self->revision, "/", self->file);
    message->keys = is_hub ? 0 : self->store_number; /* by which its answer is known */
    pthread_mutex_unlock(&self->lock);
    free(commit);
    if (url == NULL)
        return presto_fail_memory(err, strlen(self->file));
    presto_status status =
        presto_buffer_append(&message->text, presto_span_of(url, strlen(url) + 1), err);
    free(url);
    PRESTO_TRY(status);
    PRESTO_TRY(presto__message_wish(message, wish, err));
    if (!is_hub || self->token == NULL)
        return PRESTO_OK;
    char *value = PRESTO__JOINED("Bearer ", self->token);
    if (value == NULL)
        return presto_fail_memory(err, strlen(self->token));
    status = presto__message_add(message, "Authorization", presto_span_of_text(value), err);
    presto__forget(value);
    return status;
}

static bool ends_with(presto_span text, const char *end) {
    size_t bytes = strlen(end);
    return text.bytes > bytes && memcmp(text.data + text.bytes - bytes, end, bytes) == 0;
}

/* A store of the Hub: over TLS, under its names; or, of a Hub on this machine, on this machine. */
static bool is_store(const hf_address *self, const char *url) {
    presto_span host = presto__host_of(url), hub = presto__host_of(self->hub);
    if (presto__check_secure("the Hub's store", url, NULL) < 0)
        return false;
    return presto_span_equal(host, hub) || ends_with(host, ".hf.co") ||
           ends_with(host, ".huggingface.co") ||
           (presto__is_loopback(hub) && presto__is_loopback(host));
}

/* Is it the Hub itself: its scheme, host and port? */
static bool is_at_hub(const hf_address *self, const char *url) {
    size_t bytes = strlen(self->hub);
    return strncmp(url, self->hub, bytes) == 0 && (url[bytes] == '/' || url[bytes] == '?');
}

/* Where the answer points to; malloc'd. NULL: nowhere that is followed. */
static char *target(const hf_address *self, const presto__http_answer *answer) {
    const char *to = answer->location;
    bool is_redirection = answer->code == 301 || answer->code == 302 || answer->code == 303 ||
                          answer->code == 307 || answer->code == 308;
    if (!is_redirection || to[0] == '\0' || strlen(to) + 1 == sizeof answer->location)
        return NULL;
    if (to[0] == '/' && to[1] != '/')
        return PRESTO__JOINED(self->hub, to);
    return is_store(self, to) ? strdup(to) : NULL;
}

static void hf_see(void *user, const presto__http_answer *answer) {
    if (answer->commit[0] != '\0')
        keep_commit(user, answer->commit);
}

/* The Hub points to its store; or the store does not take an address any more, which lasts an hour.
 * That is seen by all requests that were under way: the first one drops the address, and none drops
 * the next one. */
static bool hf_learn(void *user, const presto__http_answer *answer) {
    hf_address *self = user;
    bool is_worth = false;
    char *to = target(self, answer);
    pthread_mutex_lock(&self->lock);
    if (to != NULL) {
        free(self->store);
        self->store = to;
        self->store_is_hub = is_at_hub(self, to);
        self->store_number++;
        if (answer->linked_etag[0] != '\0')
            memcpy(self->oid, answer->linked_etag, sizeof self->oid);
        is_worth = true;
    } else if (answer->keys != 0 &&
               (answer->code == 400 || answer->code == 401 || answer->code == 403)) {
        if (answer->keys == self->store_number) {
            free(self->store);
            self->store = NULL;
        }
        is_worth = true;
    }
    pthread_mutex_unlock(&self->lock);
    hf_see(self, answer);
    return is_worth;
}

/* The oid of the file in the place of what its store says: that may be stored anew. */
static void hf_know(void *user, const char *path, const presto__http_answer *answer,
                    presto__object_info *info_io) {
    hf_address *self = user;
    pthread_mutex_lock(&self->lock);
    const char *oid = self->oid[0] != '\0'             ? self->oid
                      : answer->linked_etag[0] != '\0' ? answer->linked_etag
                                                       : answer->etag;
    const presto__remote_version version = {.etag = strncmp(oid, "W/", 2) == 0 ? oid + 2 : oid};
    *info_io = presto__remote_info(path, info_io->bytes, &version);
    pthread_mutex_unlock(&self->lock);
}

static const presto__address_type address = {.make = hf_make,
                                             .free = hf_free,
                                             .write = hf_write,
                                             .learn = hf_learn,
                                             .most_learned = MOST_ADDRESSES,
                                             .see = hf_see,
                                             .know = hf_know};

/* ---- folders ---- */

/* What makes a tree of it, at the commit of its revision. The caller frees `self` and *url_out, also
 * on failure. */
static presto_status make_tree(const presto__remote_name *name, hf_address **self_out,
                               presto__hf_tree *tree_out, char **url_out, presto_error *err) {
    static const char digits[] = "0123456789abcdef";
    void *made;
    *self_out = NULL;
    *url_out = NULL;
    PRESTO_TRY(hf_make(name->path, &made, err));
    hf_address *self = made;
    *self_out = self;
    const char *revision = self->revision;
    bool is_commit = strlen(revision) == 40 && revision[strspn(revision, digits)] == '\0';
    char *commit = is_commit ? strdup(revision) : find_commit(self);
    if (commit == NULL) {
        char *url =
            PRESTO__JOINED(self->hub, "/api/", self->repo, "/revision/", revision, "?expand=sha");
        if (url == NULL)
            return presto_fail_memory(err, strlen(self->repo));
        presto_status status = presto__hf_commit_of(name->path, url, self->token, &commit, err);
        free(url);
        PRESTO_TRY(status);
        keep_commit(self, commit);
        char *first = find_commit(self); /* another thread may have been faster */
        if (first != NULL) {
            free(commit);
            commit = first;
        }
    }
    presto_buffer folder = {0};
    presto_status status =
        presto__percent_encode(presto_span_of_text(self->folder), true, &folder, err);
    char *encoded = status < 0 ? NULL : presto_span_to_text(presto_buffer_span(&folder));
    if (encoded != NULL)
        *url_out = PRESTO__JOINED(self->hub, "/api/", self->repo, "/tree/", commit,
                                  encoded[0] == '\0' ? "" : "/", encoded);
    presto_buffer_done(&folder);
    free(encoded);
    free(commit);
    PRESTO_TRY(status);
    *tree_out = (presto__hf_tree){name, self->root, self->folder, *url_out, self->token};
    return *url_out == NULL ? presto_fail_memory(err, strlen(name->path)) : PRESTO_OK;
}

/* Does the path name the repository, and nothing in it? PRESTO_ERR_NOT_FOUND: it is what a dataset
 * beside a repository would have, and there are none. */
static presto_status is_repository(const char *path, bool *is_it_out, presto_error *err) {
    void *self;
    PRESTO_TRY(hf_make(path, &self, err));
    *is_it_out = ((const hf_address *)self)->folder[0] == '\0';
    hf_free(self);
    if (!*is_it_out || !presto__ends_with(path, "/dataset.json"))
        return PRESTO_OK;
    presto_status status =
        presto_fail(err, PRESTO_ERR_NOT_FOUND, PRESTO_NO_OFFSET, "no such object");
    presto_error_set_file(err, path);
    return status;
}

static presto_status hf_list(const char *path, const presto__list *list, presto_error *err) {
    const presto__remote_name name = {&presto__storage_hf, &address, path};
    hf_address *self;
    presto__hf_tree tree;
    char *url;
    presto_status status = make_tree(&name, &self, &tree, &url, err);
    if (status == PRESTO_OK)
        status = presto__hf_list(&tree, list, err);
    free(url);
    if (self != NULL)
        hf_free(self);
    return status;
}

static presto_status find_below(const presto__remote_name *name, presto_error *err) {
    hf_address *self;
    presto__hf_tree tree;
    char *url;
    presto_status status = make_tree(name, &self, &tree, &url, err);
    if (status == PRESTO_OK)
        status = presto__hf_find_below(&tree, err);
    free(url);
    if (self != NULL)
        hf_free(self);
    return status;
}

static presto_status hf_open(const char *path, presto__object *object_out,
                             presto__object_info *info_out, presto_error *err) {
    const presto__remote_name name = {&presto__storage_hf, &address, path};
    bool is_all;
    PRESTO_TRY(is_repository(path, &is_all, err));
    return is_all ? presto_fail_errno(err, EISDIR, path, "cannot read")
                  : presto__remote_open(&name, object_out, info_out, err);
}

/* A file, a dataset, or a folder in which files are. */
static presto_status hf_find(const char *path, presto__object_info *info_out, presto_error *err) {
    const presto__remote_name name = {&presto__storage_hf, &address, path};
    presto_error none, why;
    bool is_all;
    PRESTO_TRY(is_repository(path, &is_all, err));
    presto_status status =
        is_all ? PRESTO_ERR_NOT_FOUND : presto__remote_find(&name, info_out, &none);
    if (is_all || (status == PRESTO_ERR_NOT_FOUND && !presto__ends_with(path, "/dataset.json"))) {
        status = find_below(&name, &why);
        if (status == PRESTO_OK)
            *info_out = (presto__object_info){.type = PRESTO__OBJECT_FOLDER};
        else if (status != PRESTO_ERR_NOT_FOUND || is_all)
            none = why;
    }
    if (status < 0 && err != NULL)
        *err = none;
    return status;
}

static presto_status hf_describe(const char *path, presto_place_facts *place_io,
                                 presto_error *err) {
    void *made;
    PRESTO_TRY(hf_make(path, &made, err));
    const hf_address *self = made;
    presto__place_text(self->hub, place_io->endpoint, sizeof place_io->endpoint);
    presto__place_text(self->token == NULL ? "anonymous" : "token", place_io->provider,
                       sizeof place_io->provider);
    if (self->token != NULL)
        presto__place_mask(self->token, place_io->key);
    hf_free(made);
    return PRESTO_OK;
}

const presto__storage_kind presto__storage_hf = {
    .name = "hf",
    .is_remote = true,
    .owns = hf_owns,
    .open = hf_open,
    .close = presto__remote_close,
    .read = presto__remote_read,
    .look = presto__remote_look,
    .find = hf_find,
    .list = hf_list,
    .number = presto__remote_number,
    .will_read = presto__remote_will_read,
    .describe = hf_describe,
};
