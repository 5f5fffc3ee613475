/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files with many samples each: readers share what is open. Opening is what takes long on a file
 * server, and each of the threads that read a file would do it, again whenever it comes back to it.
 */
#ifndef PRESTO_OPEN_FILES_INTERNAL_H
#define PRESTO_OPEN_FILES_INTERNAL_H

#include "source_files_internal.h"

/** Unused files stay open up to this number; fewer, if the process may have few files open. */
#define PRESTO__IDLE_FILES 64

typedef struct presto__open_files presto__open_files;

/** Of the files of a source, which keeps them until this is freed. PRESTO_ERR_MEMORY, _IO. */
presto_status presto__open_files_new(const presto__files *files, presto__open_files **open_out,
                                     presto_error *err);
/** Nobody has any of them. NULL: nothing. */
void presto__open_files_free(presto__open_files *open);

/**
 * Have file `i` open, as it was listed, until it is released. Its descriptor is for pread only:
 * others read it, too. Who asks for a file that somebody opens waits for that.
 * Returns: as presto__source_file_open. Threads: any.
 */
presto_status presto__open_files_acquire(presto__open_files *open, size_t i,
                                         presto__object *object_out, presto_error *err);
void presto__open_files_release(presto__open_files *open, size_t i);

/** Close what nobody has. Any thread. */
void presto__open_files_close_idle(presto__open_files *open);

#endif
