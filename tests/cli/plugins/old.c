/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin that was built with the headers of version 3 of the step interface. */
#include <presto/step.h>

PRESTO_API extern const presto_plugin presto_plugin_steps;
const presto_plugin presto_plugin_steps = {3, 1, NULL};
