/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thin layer over libsentencepiece: C functions around one processor, no exception leaves.
 *
 * The library joins a run of unknown characters into one token by copying what it has of the run
 * for each character: quadratic time. With byte pieces it does not join anything. So a model
 * without them gets them, behind its own tokens; sentencepiece_words.c makes the one unknown token
 * of the model of a run of them. Self-tests are taken out: the library prints which of them fail.
 */
#include "sentencepiece_internal.h"

#include <cstring>
#include <exception>
#include <new>
#include <string_view>
#include <vector>

#include <sentencepiece_processor.h>

struct presto__sentencepiece {
    sentencepiece::SentencePieceProcessor processor;
    presto__sentencepiece_info info;
};

namespace {

std::string_view view(presto_span span) {
    return {reinterpret_cast<const char *>(span.data), span.bytes};
}

presto_status fail(const char *what, const char *reason, presto_error *err) {
    return presto_fail(err, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET, "%s: %s", what, reason);
}

/* The library's exceptions, as a status. */
template <typename Function>
presto_status guarded(const char *what, presto_error *err, Function function) noexcept {
    try {
        return function();
    } catch (const std::bad_alloc &) {
        return presto_fail_memory(err, 0);
    } catch (const std::exception &e) {
        /* A lack of memory that the library has caught, and thrown again as another exception. */
        if (std::strstr(e.what(), "bad_alloc") != nullptr)
            return presto_fail_memory(err, 0);
        return fail(what, e.what(), err);
    } catch (...) {
        return fail(what, "libsentencepiece failed", err);
    }
}

presto_status load(presto__sentencepiece *loaded, presto_span model, presto_error *err) {
    static const char what[] = "the SentencePiece model cannot be loaded";
    return guarded(what, err, [&] {
        const auto result = loaded->processor.LoadFromSerializedProto(view(model));
        return result.ok() ? PRESTO_OK : fail(what, result.error_message(), err);
    });
}

presto_status rewrite_and_load(presto__sentencepiece *loaded, presto_span model,
                               presto_error *err) {
    presto_buffer rewritten = {};
    const bool add_bytes = !loaded->info.has_byte_pieces && !loaded->info.has_byte_names;
    presto_status status = presto__sentencepiece_rewrite(model, add_bytes, &rewritten, err);
    if (status >= 0)
        status = load(loaded, presto_buffer_span(&rewritten), err);
    presto_buffer_done(&rewritten);
    return status;
}

} // namespace

presto_status presto__sentencepiece_new(presto_span model, presto__sentencepiece **model_out,
                                        presto_error *err) {
    presto__sentencepiece_info info;
    PRESTO_TRY(presto__sentencepiece_check(model, &info, err));
    auto *loaded = new (std::nothrow) presto__sentencepiece();
    if (loaded == nullptr)
        return presto_fail_memory(err, sizeof *loaded);
    loaded->info = info;
    const presto_status status = rewrite_and_load(loaded, model, err);
    if (status < 0)
        presto__sentencepiece_free(loaded);
    else
        *model_out = loaded;
    return status;
}

void presto__sentencepiece_free(presto__sentencepiece *model) {
    delete model;
}

const presto__sentencepiece_info *presto__sentencepiece_get_info(
    const presto__sentencepiece *model) {
    return &model->info;
}

/* How many bytes a text has at most when the library has mapped its characters: a space becomes
 * three bytes, and so does a byte that is no UTF-8. */
static uint64_t most_mapped(presto_span text, uint64_t growth) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < text.bytes; i++)
        bytes += text.data[i] == ' ' || text.data[i] >= 0x80 ? 3 : 1;
    return bytes * growth;
}

presto_status presto__sentencepiece_encode_raw(const presto__sentencepiece *model, presto_span text,
                                               presto_buffer *ids, presto_error *err) {
    static const char what[] = "the text cannot be encoded";
    static_assert(sizeof(int) == sizeof(int32_t), "ids are int32");
    const uint64_t each = model->info.most_compared;
    const uint64_t growth = model->info.growth;
    const uint64_t most = PRESTO__SENTENCEPIECE_MAX_COMPARED_BYTES / (each > 0 ? each : 1);
    if (each > PRESTO__SENTENCEPIECE_USUAL_TOKEN_BYTES && most_mapped(text, growth) > most)
        return presto_fail(err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET,
                           "a text of %zu bytes, or %ju when its characters are mapped, and the "
                           "model has tokens of up to %ju bytes: it would take too long; cut it "
                           "into texts of %ju bytes at most",
                           text.bytes, static_cast<uintmax_t>(most_mapped(text, growth)),
                           static_cast<uintmax_t>(each), static_cast<uintmax_t>(most / growth / 3));
    return guarded(what, err, [&] {
        std::vector<int> found;
        const auto result = model->processor.Encode(view(text), &found);
        if (!result.ok())
            return fail(what, result.error_message(), err);
        return presto_buffer_append(ids, presto_span_of(found.data(), found.size() * sizeof(int)),
                                    err);
    });
}
