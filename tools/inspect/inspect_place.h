/* SPDX-License-Identifier: Apache-2.0 */
/* presto-inspect place: who asks where bytes are read from, and how far that is. */
#ifndef PRESTO_TOOLS_INSPECT_PLACE_H
#define PRESTO_TOOLS_INSPECT_PLACE_H

#include <stdbool.h>

/** Look at the object at `path`, or at the first shard of the dataset there, and print on stdout;
 * what was found before a failure, too. Returns the exit code. */
int inspect_place(const char *path, bool json);

#endif
