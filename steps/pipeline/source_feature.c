/* SPDX-License-Identifier: Apache-2.0 */
/* What all types of source ask of their option `feature`. */
#include "pipeline_internal.h"

presto_status presto__source_check_feature(const char *feature, presto_error *err) {
    if (feature[0] == '\0' || strcmp(feature, "label") == 0 || strcmp(feature, "key") == 0)
        return presto_fail(err, PRESTO_ERR_SYNTAX, PRESTO_NO_OFFSET,
                           "option 'feature' is '%s': 'label' and 'key' are taken, and a name is "
                           "needed",
                           feature);
    return PRESTO_OK;
}
