/* SPDX-License-Identifier: Apache-2.0 */
/* Paths as users write them: endings, and what is no path of this machine's file system. */
#ifndef PRESTO_PATHS_INTERNAL_H
#define PRESTO_PATHS_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

#include <presto/status.h>

/** What to do instead of naming a path that is not there: "object storage is not read, ..."; NULL:
 * it looks like any path. */
const char *presto__path_hint(const char *path);

/** Is it "SCHEME://..."? No folder of this machine is made for it. */
bool presto__is_url(const char *path);

/** PRESTO_ERR_NOT_FOUND, "no such file or folder", with the hint. */
presto_status presto__fail_no_path(const char *path, presto_error *err);

/** Does `text` end with `ending`? */
bool presto__ends_with(const char *text, const char *ending);
/** The same, whatever the case of its letters. */
bool presto__ends_alike(const char *text, const char *ending);

#endif
