/* SPDX-License-Identifier: Apache-2.0 */
/* presto-load's --features, --pad and --arrow-type. */
#ifndef PRESTO_TOOLS_FEATURE_OPTIONS_H
#define PRESTO_TOOLS_FEATURE_OPTIONS_H

#include <presto/out.h>
#include <presto/stream.h>

#include "../cli/options.h"

/** Zero-initialise. */
typedef struct feature_options {
    char **names; /* --features, one allocation */
    size_t name_count;
    presto_pad *pads; /* --pad */
    char **pad_names; /* what they are called, owned */
    size_t pad_count;
    presto_arrow_type *types; /* --arrow-type */
    char **type_names;        /* what they are of, owned */
    size_t type_count;
    const char *main; /* borrowed from the stream's source */
} feature_options;

/** --features, --pad and --arrow-type, into a feature_options. */
cli_read feature_options_names, feature_options_pad, feature_options_type;
void feature_options_done(feature_options *self);

/**
 * Ask `loader` for these features, or with `only_main` and no names for the main one, as long as
 * `self` and `stream` live. Where the input says which features it has (files of others do not),
 * PRESTO_ERR_NOT_FOUND for a name that is not among them.
 */
presto_status feature_options_apply(feature_options *self, const presto_stream *stream,
                                    bool only_main, presto_loader_options *loader,
                                    presto_error *err);

#endif
