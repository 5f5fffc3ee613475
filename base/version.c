/* SPDX-License-Identifier: Apache-2.0 */
#include <presto/version.h>

const char *presto_version(void) {
    return PRESTO_VERSION_TEXT;
}
