/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which Presto this is: the macros tell what a program was compiled against, presto_version() which
 * library it runs with. CMakeLists.txt reads the project's version here.
 *
 * A release whose public structs, functions or constants have grown counts the second number up.
 */
#ifndef PRESTO_VERSION_H
#define PRESTO_VERSION_H

#include <presto/api.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PRESTO_VERSION_MAJOR 0
#define PRESTO_VERSION_MINOR 2
#define PRESTO_VERSION_PATCH 0

#define PRESTO_VERSION_QUOTE_(number) #number
#define PRESTO_VERSION_JOIN_(major, minor, patch)                                                  \
    PRESTO_VERSION_QUOTE_(major) "." PRESTO_VERSION_QUOTE_(minor) "." PRESTO_VERSION_QUOTE_(patch)
/** The three numbers above, as in "1.2.3". */
#define PRESTO_VERSION_TEXT                                                                        \
    PRESTO_VERSION_JOIN_(PRESTO_VERSION_MAJOR, PRESTO_VERSION_MINOR, PRESTO_VERSION_PATCH)

/** The version of the library that runs, as PRESTO_VERSION_TEXT writes it. Static storage. */
PRESTO_API const char *presto_version(void);

#ifdef __cplusplus
}
#endif

#endif
