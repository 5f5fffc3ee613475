/* SPDX-License-Identifier: Apache-2.0 */
/* The kind `http`: http:// and https://, from servers that send ranges. The URL is sent as it is
 * written. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "remote_internal.h"

static bool http_owns(const char *path) {
    return strncasecmp(path, "http://", 7) == 0 || strncasecmp(path, "https://", 8) == 0;
}

/* The error names the URL without what stands before the host: that may be a password. */
static presto_status fail_user(const char *path, const char *host, presto_error *err) {
    char shown[512];
    int scheme_bytes = (int)strcspn(path, "/") + 2;
    snprintf(shown, sizeof shown, "%.*s...@%s", scheme_bytes, path, host);
    presto_status status =
        presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                    "a URL has no user's name and password here: a server that asks for them is "
                    "not supported");
    presto_error_set_file(err, shown);
    return status;
}

static presto_status http_make(const char *path, void **self_out, presto_error *err) {
    if (strpbrk(path, " \t\r\n") != NULL)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "a URL has no spaces: write %%20");
    const char *host = strstr(path, "://") + strlen("://");
    size_t host_bytes = strcspn(host, "/?#");
    for (size_t i = host_bytes; i-- > 0;)
        if (host[i] == '@')
            return fail_user(path, host + i + 1, err);
    *self_out = strdup(path);
    return *self_out == NULL ? presto_fail_memory(err, strlen(path)) : PRESTO_OK;
}

static void http_free(void *self) {
    free(self);
}

static presto_status http_write(void *self, const presto__remote_wish *wish,
                                presto__message *message, presto_error *err) {
    const char *url = self;
    PRESTO_TRY(presto_buffer_append(&message->text, presto_span_of(url, strlen(url) + 1), err));
    return presto__message_wish(message, wish, err);
}

static const presto__address_type address = {
    .make = http_make, .free = http_free, .write = http_write};

static presto_status http_open(const char *path, presto__object *object_out,
                               presto__object_info *info_out, presto_error *err) {
    const presto__remote_name name = {&presto__storage_http, &address, path};
    return presto__remote_open(&name, object_out, info_out, err);
}

static presto_status http_find(const char *path, presto__object_info *info_out, presto_error *err) {
    const presto__remote_name name = {&presto__storage_http, &address, path};
    presto_error why;
    presto_status status = presto__remote_find(&name, info_out, &why);
    size_t used = status == PRESTO_ERR_NOT_FOUND ? strlen(why.message) : 0;
    if (status == PRESTO_ERR_NOT_FOUND)
        snprintf(why.message + used, sizeof why.message - used,
                 " (a web server does not list what is in a folder: name each file, or a dataset "
                 "that presto-write made)");
    if (status < 0 && err != NULL)
        *err = why;
    return status;
}

static presto_status http_checksum(const char *path, presto__object_checksum *checksum_out,
                                   presto_error *err) {
    const presto__remote_name name = {&presto__storage_http, &address, path};
    return presto__remote_checksum(&name, checksum_out, err);
}

/* Its whole beginning is requested, whatever the number of bytes. */
static void http_will_open(const char *path, uint64_t bytes) {
    const presto__remote_name name = {&presto__storage_http, &address, path};
    (void)bytes;
    presto__remote_will_open(&name);
}

const presto__storage_kind presto__storage_http = {
    .name = "http",
    .is_remote = true,
    .owns = http_owns,
    .open = http_open,
    .close = presto__remote_close,
    .read = presto__remote_read,
    .look = presto__remote_look,
    .find = http_find,
    .checksum = http_checksum,
    .number = presto__remote_number,
    .will_read = presto__remote_will_read,
    .will_open = http_will_open,
};
