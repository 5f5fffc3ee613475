/* SPDX-License-Identifier: Apache-2.0 */
#include "curl_internal.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static presto__curl_functions curl;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static presto_error failure;

/* Where the address of a symbol goes. */
typedef struct symbol_place {
    const char *symbol;
    size_t offset; /* in presto__curl_functions */
} symbol_place;

#define PLACE(name)                                                                                \
    { "curl_" #name, offsetof(presto__curl_functions, name) }
static const symbol_place places[] = {
    PLACE(global_init),         PLACE(version_info),     PLACE(easy_init),
    PLACE(easy_cleanup),        PLACE(easy_reset),       PLACE(easy_setopt),
    PLACE(easy_getinfo),        PLACE(easy_strerror),    PLACE(slist_append),
    PLACE(slist_free_all),      PLACE(multi_init),       PLACE(multi_cleanup),
    PLACE(multi_setopt),        PLACE(multi_add_handle), PLACE(multi_remove_handle),
    PLACE(multi_socket_action), PLACE(multi_info_read),
};

/* The beginning of what curl_version_info returns. */
typedef struct version_head {
    int age;
    const char *version;
    unsigned number;
} version_head;

static void fail(const char *why) {
    (void)presto_fail(&failure, PRESTO_ERR_UNSUPPORTED, PRESTO_NO_OFFSET,
                      "URLs need libcurl.so.4 (Debian: libcurl4), version 7.68 or later: %s", why);
}

static void load(void) {
    static const char *const names[] = {"libcurl.so.4", "libcurl-gnutls.so.4"};
    void *handle = NULL;
    char why[256] = "";
    for (size_t i = 0; handle == NULL && i < sizeof names / sizeof names[0]; i++) {
        handle = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
        const char *said = handle == NULL ? dlerror() : NULL;
        if (said != NULL && why[0] == '\0')
            snprintf(why, sizeof why, "%s", said);
    }
    if (handle == NULL) {
        fail(why);
        return;
    }
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        void *found = dlsym(handle, places[i].symbol);
        if (found == NULL) {
            snprintf(why, sizeof why, "it has no %s", places[i].symbol);
            fail(why);
            return;
        }
        memcpy((char *)&curl + places[i].offset, &found, sizeof found);
    }
    const version_head *version = curl.version_info(0);
    if (version == NULL || version->number < PRESTO__CURL_OLDEST) {
        snprintf(why, sizeof why, "it is %s", version == NULL ? "?" : version->version);
        fail(why);
    } else if (curl.global_init(PRESTO__CURL_GLOBAL_DEFAULT) != 0) {
        fail("it does not start");
    }
}

presto_status presto__curl_load(const presto__curl_functions **curl_out, presto_error *err) {
    (void)pthread_once(&once, load);
    if (failure.status < 0) {
        if (err != NULL)
            *err = failure;
        return failure.status;
    }
    *curl_out = &curl;
    return PRESTO_OK;
}
