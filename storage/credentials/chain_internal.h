/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of providers. Of the room credentials alone. */
#ifndef PRESTO_CREDENTIALS_CHAIN_INTERNAL_H
#define PRESTO_CREDENTIALS_CHAIN_INTERNAL_H

#include "provider_internal.h"

/**
 * The keys of the first provider that has some. `config` is that of AWS, and not looked at for
 * another cloud. Returns: PRESTO_ERR_ARGUMENT: nobody has any.
 */
presto_status presto__chain_find(presto__cloud cloud, const presto__aws_config *config,
                                 presto__keys *keys_out, presto_error *err);

#endif
