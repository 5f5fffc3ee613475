/* SPDX-License-Identifier: Apache-2.0 */
#include "xml_internal.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>

/* What is declared here is the same in all versions since 2.0 of 2005. */
static struct {
    void *(*create)(const char *encoding);
    void (*release)(void *parser);
    void (*set_user)(void *parser, void *user);
    void (*set_elements)(void *parser, void (*begin)(void *, const char *, const char **),
                         void (*end)(void *, const char *));
    void (*set_text)(void *parser, void (*text)(void *, const char *, int));
    void (*set_doctype)(void *parser,
                        void (*begin)(void *, const char *, const char *, const char *, int));
    int (*parse)(void *parser, const char *text, int bytes, int is_final);
    int (*stop)(void *parser, unsigned char is_resumable);
    int (*code)(void *parser);
    const char *(*words)(int code);
} expat;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static presto_error failure;

static bool find(void *handle, const char *symbol, void *function) {
    void *found = dlsym(handle, symbol);
    memcpy(function, &found, sizeof found);
    return found != NULL;
}

static void load(void) {
    void *handle = dlopen("libexpat.so.1", RTLD_NOW | RTLD_LOCAL);
    if (handle != NULL && find(handle, "XML_ParserCreate", &expat.create) &&
        find(handle, "XML_ParserFree", &expat.release) &&
        find(handle, "XML_SetUserData", &expat.set_user) &&
        find(handle, "XML_SetElementHandler", &expat.set_elements) &&
        find(handle, "XML_SetCharacterDataHandler", &expat.set_text) &&
        find(handle, "XML_SetStartDoctypeDeclHandler", &expat.set_doctype) &&
        find(handle, "XML_Parse", &expat.parse) && find(handle, "XML_StopParser", &expat.stop) &&
        find(handle, "XML_GetErrorCode", &expat.code) &&
        find(handle, "XML_ErrorString", &expat.words))
        return;
    const char *why = dlerror();
    (void)presto_fail(&failure, PRESTO_ERR_UNSUPPORTED, PRESTO_NO_OFFSET,
                      "the server's answers need libexpat.so.1 (Debian: libexpat1), which cannot "
                      "be loaded: %s",
                      why != NULL ? why : "no reason is given");
}

/* One that is read. */
typedef struct document {
    void *parser;
    presto__xml_take take;
    void *user;
    presto_error *err;
    presto_status status;                /* < 0: it has failed, the parser is stopped */
    presto_buffer text;                  /* of the innermost element */
    bool is_leaf;                        /* the innermost element has no element yet */
    size_t ends[PRESTO__XML_MOST_DEPTH]; /* of the path, before each element that is open */
    size_t depth, path_bytes;
    char path[PRESTO__XML_MOST_PATH_BYTES];
} document;

static void stop(document *one, presto_status status) {
    one->status = status;
    (void)expat.stop(one->parser, 0);
}

static void begin_element(void *user, const char *name, const char **attributes) {
    document *one = user;
    (void)attributes;
    if (one->status < 0)
        return;
    const char *colon = strrchr(name, ':');
    const char *own = colon == NULL ? name : colon + 1;
    size_t bytes = strlen(own), at = one->path_bytes;
    if (one->depth == PRESTO__XML_MOST_DEPTH ||
        bytes + 2 > PRESTO__XML_MOST_PATH_BYTES - one->path_bytes) {
        stop(one, presto_fail(one->err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET,
                              "XML with more elements in each other than any answer needs"));
        return;
    }
    one->ends[one->depth++] = at;
    if (at > 0)
        one->path[at++] = '/';
    memcpy(one->path + at, own, bytes + 1);
    one->path_bytes = at + bytes;
    one->text.bytes = 0;
    one->is_leaf = true;
}

static void end_element(void *user, const char *name) {
    document *one = user;
    (void)name;
    if (one->status < 0)
        return;
    const presto__xml_element element = {one->path, one->is_leaf ? presto_buffer_span(&one->text)
                                                                 : presto_span_of(NULL, 0)};
    presto_status status = one->take(one->user, &element, one->err);
    if (status < 0) {
        stop(one, status);
        return;
    }
    one->path_bytes = one->ends[--one->depth];
    one->path[one->path_bytes] = '\0';
    one->is_leaf = false;
}

static void take_text(void *user, const char *text, int bytes) {
    document *one = user;
    if (one->status < 0 || !one->is_leaf)
        return;
    presto_status status =
        presto_buffer_append(&one->text, presto_span_of(text, (size_t)bytes), one->err);
    if (status < 0)
        stop(one, status);
}

static void refuse_doctype(void *user, const char *name, const char *system, const char *open,
                           int has_subset) {
    document *one = user;
    (void)name, (void)system, (void)open, (void)has_subset;
    if (one->status == PRESTO_OK)
        stop(one, presto_fail(one->err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                              "XML with a document type, which no answer needs"));
}

presto_status presto__xml_read(presto_span text, presto__xml_take take, void *user,
                               presto_error *err) {
    (void)pthread_once(&once, load);
    if (failure.status < 0) {
        if (err != NULL)
            *err = failure;
        return failure.status;
    }
    if (text.bytes > PRESTO__XML_MOST_BYTES)
        return presto_fail(err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET, "XML of %zu bytes, limit %zu",
                           text.bytes, PRESTO__XML_MOST_BYTES);
    document one = {.take = take, .user = user, .err = err, .parser = expat.create(NULL)};
    if (one.parser == NULL)
        return presto_fail_memory(err, text.bytes);
    expat.set_user(one.parser, &one);
    expat.set_elements(one.parser, begin_element, end_element);
    expat.set_text(one.parser, take_text);
    expat.set_doctype(one.parser, refuse_doctype);
    int is_read = expat.parse(one.parser, (const char *)text.data, (int)text.bytes, 1);
    if (one.status == PRESTO_OK && is_read == 0)
        one.status = presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET, "no well-formed XML: %s",
                                 expat.words(expat.code(one.parser)));
    expat.release(one.parser);
    presto_buffer_done(&one.text);
    return one.status;
}
