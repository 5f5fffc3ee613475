/* SPDX-License-Identifier: Apache-2.0 */
/* What the kinds of model of bpe-encode share. */
#ifndef PRESTO_STEPS_BPE_ENCODE_INTERNAL_H
#define PRESTO_STEPS_BPE_ENCODE_INTERNAL_H

#include "../steps_internal.h"
#include "sentencepiece_internal.h"
#include "tokenizer_internal.h"

#endif
