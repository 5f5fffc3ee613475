/* SPDX-License-Identifier: Apache-2.0 */
/* What looks like a path, and is none of this machine's file system. Needs no other file, for errors
 * of all kinds ask it. */
#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "paths_internal.h"

#define MOUNT                                                                                      \
    "that object storage is not read yet: mount it (gcsfuse, rclone mount, ...) and give the "     \
    "folder, or copy it"
#define READ_ONLY(scheme, mounts)                                                                  \
    scheme "://BUCKET/KEY, so written, is read, and only datasets are written there "              \
           "(presto-write, presto.Writer): mount it (" mounts ", rclone mount, ...), or write to " \
           "a folder"
#define NAMED                                                                                      \
    "of a web server, datasets that presto-write made are read, and files that are named; "        \
    "nothing is written there"

static const struct {
    const char *scheme, *hint;
} schemes[] = {
    {"s3", READ_ONLY("s3", "mount-s3")},
    {"s3a", "write it as s3://"},
    {"s3n", "write it as s3://"},
    {"gs", READ_ONLY("gs", "gcsfuse")},
    {"gcs", "write it as gs://"},
    {"r2", MOUNT},
    {"oss", MOUNT},
    {"az", MOUNT},
    {"abfs", MOUNT},
    {"abfss", MOUNT},
    {"wasb", MOUNT},
    {"wasbs", MOUNT},
    {"adl", MOUNT},
    {"hdfs", "HDFS is not read: mount it (hadoop-fuse-dfs, rclone mount) and give the folder, or "
             "copy it"},
    {"hf",
     "hf://datasets/OWNER/NAME/FILE, so written, is read, and nothing is written there; download "
     "other repositories (huggingface_hub.snapshot_download), and give the folder"},
    {"http", NAMED},
    {"https", NAMED},
    {"ftp", "files of a server are not read: download them, and give the folder"},
    {"ssh", "files of another machine are not read: mount them (sshfs), and give the folder"},
    {"sftp", "files of another machine are not read: mount them (sshfs), and give the folder"},
    {"file", "a path is written without file://"},
    {"pipe", "commands are not run: give files, or a pipe's end as /dev/stdin where one is taken"},
};

static const char *hint_of_url(const char *path) {
    const char *colon = strstr(path, ":/"); /* a slash may be lost where a path is made absolute */
    const char *from = colon;
    if (colon == NULL)
        return NULL;
    while (from > path && from[-1] != '/')
        from--;
    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++)
        if (strlen(schemes[i].scheme) == (size_t)(colon - from) &&
            strncasecmp(from, schemes[i].scheme, (size_t)(colon - from)) == 0)
            return schemes[i].hint;
    return colon[2] == '/' ? "URLs are not read: give files or a folder of this machine" : NULL;
}

bool presto__is_url(const char *path) {
    size_t bytes =
        strspn(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+.-");
    return bytes > 0 && strncmp(path + bytes, "://", 3) == 0;
}

/* "~", "~/x" or "~name/x", also behind a folder that was put in front to make it absolute. */
static bool has_tilde(const char *path) {
    return path[0] == '~' || strstr(path, "/~") != NULL;
}

const char *presto__path_hint(const char *path) {
    const char *hint = hint_of_url(path);
    if (hint != NULL)
        return hint;
    if (has_tilde(path))
        return "only a shell replaces ~, and only where it begins a word without quotes: write "
               "$HOME there, or the whole path";
    return strpbrk(path, "*?[") != NULL ? "no file matches this pattern" : NULL;
}
