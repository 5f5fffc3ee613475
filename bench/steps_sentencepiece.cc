// SPDX-License-Identifier: Apache-2.0
// The bare call of bpe-encode: libsentencepiece, as its own programs use it.
#include "steps_sentencepiece.h"

#include <vector>

#include <sentencepiece_processor.h>

void *bare_sentencepiece_open(const char *model_path) {
    auto *processor = new sentencepiece::SentencePieceProcessor;
    if (processor->Load(model_path).ok())
        return processor;
    delete processor;
    return nullptr;
}

bool bare_sentencepiece_encode(void *state, const char *text, size_t bytes) {
    std::vector<int> ids;
    const auto *processor = static_cast<const sentencepiece::SentencePieceProcessor *>(state);
    return processor->Encode({text, bytes}, &ids).ok();
}

void bare_sentencepiece_close(void *state) {
    delete static_cast<sentencepiece::SentencePieceProcessor *>(state);
}
