/* SPDX-License-Identifier: Apache-2.0 */
/* Where an output goes that the user named: to a file, a pipe, a device or an open descriptor. */
#define _XOPEN_SOURCE 700 /* lstat, S_ISLNK */
#include "named_output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"

/* The descriptor that the path stands for; -1: none. */
static int descriptor_of(const char *path) {
    static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
    if (strcmp(path, "/dev/stdout") == 0)
        return STDOUT_FILENO;
    if (strcmp(path, "/dev/stderr") == 0)
        return STDERR_FILENO;
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        const char *digits = path + strlen(folders[i]);
        if (strncmp(path, folders[i], strlen(folders[i])) == 0 && digits[0] != '\0' &&
            strlen(digits) < 9 && strspn(digits, "0123456789") == strlen(digits))
            return atoi(digits);
    }
    return -1;
}

static bool is_link_of_another(const struct stat *info) {
    return S_ISLNK(info->st_mode) && info->st_uid != geteuid() && info->st_uid != 0;
}

bool output_is_direct(const char *path) {
    struct stat info;
    if (descriptor_of(path) >= 0)
        return true;
    if (lstat(path, &info) != 0 || is_link_of_another(&info))
        return false;
    return stat(path, &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode);
}

int output_check(const char *path) {
    int fd = descriptor_of(path);
    if (fd < 0)
        return access(path, W_OK) == 0 ? 0 : errno;
    int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && (flags & O_ACCMODE) != O_RDONLY ? 0 : EBADF;
}

int output_open(const char *path, int flags) {
    struct stat info;
    int fd = descriptor_of(path);
    if (fd >= 0) {
        fd = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    } else {
        bool is_found = lstat(path, &info) == 0;
        if (is_found && is_link_of_another(&info)) {
            cli_message("%s: is a link that another user has made, which is not followed", path);
            return -1;
        }
        /* What becomes a link only now is none of ours. */
        int follow = is_found && S_ISLNK(info.st_mode) ? 0 : O_NOFOLLOW;
        fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY | follow | flags, 0666);
    }
    if (fd < 0)
        cli_message("%s: cannot open: %s", path, strerror(errno));
    return fd;
}

int output_write(int fd, presto_span data) {
    while (data.bytes > 0) {
        ssize_t done = write(fd, data.data, data.bytes);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return errno;
        data.data += done;
        data.bytes -= (size_t)done;
    }
    return 0;
}
