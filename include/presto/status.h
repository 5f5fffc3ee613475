/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Status codes and the caller-owned error record.
 *
 * Every function that can fail returns a presto_status: 0 is done, positive is a normal event,
 * negative is a failure whose detail stands in the presto_error that the caller passed (NULL is
 * allowed everywhere). On failure, `_out` parameters are untouched. Nothing here prints or exits.
 */
#ifndef PRESTO_STATUS_H
#define PRESTO_STATUS_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#include <presto/api.h>

#ifdef __cplusplus
extern "C" {
#endif

/* name, value, text */
#define PRESTO_STATUS_LIST(X)                                                                      \
    X(PRESTO_OK, 0, "ok")                                                                          \
    X(PRESTO_END, 1, "end of data")                                                                \
    X(PRESTO_DROP, 2, "sample left out")                                                           \
    X(PRESTO_ERR_MEMORY, -1, "out of memory")                                                      \
    X(PRESTO_ERR_IO, -2, "input/output error")                                                     \
    X(PRESTO_ERR_ARGUMENT, -3, "invalid argument")                                                 \
    X(PRESTO_ERR_SYNTAX, -4, "syntax error")                                                       \
    X(PRESTO_ERR_NOT_FOUND, -5, "not found")                                                       \
    X(PRESTO_ERR_UNSUPPORTED, -6, "not supported by this build")                                   \
    X(PRESTO_ERR_TYPE, -7, "input does not fit")                                                   \
    X(PRESTO_ERR_LIMIT, -8, "limit exceeded")                                                      \
    X(PRESTO_ERR_TRUNCATED, -9, "truncated data")                                                  \
    X(PRESTO_ERR_CORRUPT, -10, "corrupt data")                                                     \
    X(PRESTO_ERR_RAGGED, -11, "samples that do not go together in one batch")                      \
    X(PRESTO_ERR_STOPPED, -12, "stopped")                                                          \
    X(PRESTO_ERR_BUSY, -13, "being written, or unfinished")                                        \
    X(PRESTO_ERR_FOREIGN, -14, "a file that holds no TFRecords")

typedef enum presto_status {
#define PRESTO_STATUS_ENUM(name, value, text) name = value,
    PRESTO_STATUS_LIST(PRESTO_STATUS_ENUM)
#undef PRESTO_STATUS_ENUM
} presto_status;

#define PRESTO_NO_OFFSET UINT64_MAX
#define PRESTO_NO_RECORD UINT64_MAX
#define PRESTO_ERROR_MESSAGE_BYTES 512
#define PRESTO_ERROR_FILE_BYTES 1024

/**
 * What failed, where. Caller's storage; zero-initialisation is not needed, presto_fail() sets every
 * field. The layers fill it from the inside out: the parser sets offset and message, the reader
 * adds record and file.
 */
typedef struct presto_error {
    presto_status status;
    int sys_errno;                            /* errno of the failed call, 0 if none */
    uint64_t offset;                          /* bytes from file start, or PRESTO_NO_OFFSET */
    uint64_t record;                          /* 0-based record in the file, or PRESTO_NO_RECORD */
    char file[PRESTO_ERROR_FILE_BYTES];       /* path as the user named it, "" if none */
    char message[PRESTO_ERROR_MESSAGE_BYTES]; /* what failed: one line of UTF-8, no file name */
} presto_error;

/** Name of a status, e.g. "PRESTO_ERR_CORRUPT"; "PRESTO_ERR_?" for a value not in the list. */
PRESTO_API const char *presto_status_name(presto_status status);

/**
 * Fill `err` (unless NULL): status, the offset (bytes from file start or PRESTO_NO_OFFSET) and the
 * message, cut to fit, with what it quotes from outside as presto_text_show makes it. sys_errno is
 * set to 0, file to "", record to PRESTO_NO_RECORD.
 */
PRESTO_API void presto_error_set(presto_error *err, presto_status status, uint64_t offset,
                                 const char *format, ...) PRESTO_PRINTF(4, 5);

static inline presto_status presto_status_pass(presto_status status) {
    return status;
}

/**
 * presto_error_set() and have `status` as the value: `return presto_fail(err, PRESTO_ERR_LIMIT, at,
 * "...", n);`. A macro, so that compilers and analyzers see which status leaves the function.
 * Evaluates `status` twice.
 */
#define presto_fail(err, status, offset, ...)                                                      \
    (presto_error_set((err), (status), (offset), __VA_ARGS__), presto_status_pass(status))

/**
 * As presto_error_set for a failed system call on `file`: keeps sys_errno and appends its text,
 * e.g. "cannot open: No such file or directory". Leaves errno as it was.
 */
PRESTO_API void presto_error_set_errno(presto_error *err, int sys_errno, const char *file,
                                       const char *format, ...) PRESTO_PRINTF(4, 5);

/** PRESTO_ERR_MEMORY for ENOMEM, else PRESTO_ERR_IO. */
static inline presto_status presto_status_of_errno(int sys_errno) {
    return sys_errno == ENOMEM ? PRESTO_ERR_MEMORY : PRESTO_ERR_IO;
}

/** presto_error_set_errno() and have its status as the value. Evaluates `sys_errno` twice. */
#define presto_fail_errno(err, sys_errno, file, ...)                                               \
    (presto_error_set_errno((err), (sys_errno), (file), __VA_ARGS__),                              \
     presto_status_of_errno(sys_errno))

/** PRESTO_ERR_MEMORY with a standard message; `bytes` is what could not be had. */
static inline presto_status presto_fail_memory(presto_error *err, uint64_t bytes) {
    presto_error_set(err, PRESTO_ERR_MEMORY, PRESTO_NO_OFFSET, "cannot allocate %llu bytes",
                     (unsigned long long)bytes);
    return PRESTO_ERR_MEMORY;
}

/** Add the file's name where none is set yet. */
PRESTO_API void presto_error_set_file(presto_error *err, const char *file);

/** Add the record number where none is set yet. */
PRESTO_API void presto_error_set_record(presto_error *err, uint64_t record);

/**
 * The whole error as one line: "FILE: record R: MESSAGE (at byte N)", leaving out what is not set.
 * Always NUL-terminated within `bytes`. The file's name is shown as presto_text_show makes it.
 */
PRESTO_API void presto_error_format(const presto_error *err, char *text_out, uint64_t bytes);

/** Asked now and then by what takes long: true makes it end with PRESTO_ERR_STOPPED. */
typedef bool (*presto_stop_fn)(void *user);

/** Return at once with the status of `expr` if it failed. Only while nothing is held. */
#define PRESTO_TRY(expr)                                                                           \
    do {                                                                                           \
        presto_status presto_try_status_ = (expr);                                                 \
        if (presto_try_status_ < 0)                                                                \
            return presto_try_status_;                                                             \
    } while (0)

#ifdef __cplusplus
}
#endif

#endif
