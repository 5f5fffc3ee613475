/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bpe-encode: text -> int32 ids of tokens. The content of the model's file decides its kind, never
 * the name. Each kind is a table of functions; all of them share a loaded model between threads.
 */
#include <stdlib.h>

#include <presto/file.h>

#include "bpe_encode_internal.h"

enum { OPTION_MODEL, OPTION_MAX_BYTES, OPTION_COUNT };

static const presto_option_type options[] = {
    [OPTION_MODEL] = {.name = "model",
                      .kind = PRESTO_OPTION_FILE,
                      .help = "a SentencePiece .model (unigram or BPE); see docs/tokenizers.md"},
    [OPTION_MAX_BYTES] = {.name = "max-bytes",
                          .kind = PRESTO_OPTION_SIZE,
                          .default_text = "16MiB",
                          .minimum = 1,
                          .maximum = 16777216,
                          .help = "longer texts are errors; while a text is encoded, about 100 "
                                  "bytes of memory are used for each of its bytes"},
};

#define MAX_MODEL_BYTES ((uint64_t)32 << 20)

typedef struct encode_state {
    uint64_t max_bytes;
    char *model; /* path; NULL: none is set */
} encode_state;

static void destroy(void *state) {
    encode_state *encode = state;
    if (encode == NULL)
        return;
    free(encode->model);
    free(encode);
}

static presto_status create(const presto_option *values, void **state_out, presto_error *err) {
    encode_state *state = calloc(1, sizeof *state);
    if (state == NULL)
        return presto_fail_memory(err, sizeof *state);
    state->max_bytes = (uint64_t)values[OPTION_MAX_BYTES].integer;
    if (values[OPTION_MODEL].is_set) {
        state->model = presto_span_to_text(presto_span_of_text(values[OPTION_MODEL].text));
        if (state->model == NULL) {
            destroy(state);
            return presto_fail_memory(err, 0);
        }
    }
    *state_out = state;
    return PRESTO_OK;
}

static presto_status check_input(const presto_tensor_spec *in, presto_error *err) {
    static const presto_tensor_spec text = {PRESTO_STRING, 0, {0}};
    static const presto_tensor_spec bytes = {PRESTO_UINT8, 1, {-1}};
    if (presto__spec_could_fit(in, &text) || presto__spec_could_fit(in, &bytes))
        return PRESTO_OK;
    char got[PRESTO_SPEC_TEXT_BYTES];
    return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET, "needs string or uint8[?], gets %s",
                       presto_spec_format(in, got, sizeof got));
}

static presto_status infer(const void *state, const presto_tensor_spec *in,
                           presto_tensor_spec *out_out, presto_error *err) {
    (void)state;
    PRESTO_TRY(check_input(in, err));
    *out_out = (presto_tensor_spec){PRESTO_INT32, 1, {-1}};
    return PRESTO_OK;
}

static presto_status load(const void *state, presto_tensor_spec *out_io, void **model_out,
                          presto_error *err) {
    (void)out_io;
    const encode_state *encode = state;
    if (encode->model == NULL)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "no model: set one, e.g. --set bpe-encode.model=FILE; "
                           "docs/tokenizers.md says how to get or train one");
    presto_buffer content = {0};
    presto__sentencepiece *model = NULL;
    presto_status status = presto_file_read(encode->model, MAX_MODEL_BYTES, &content, err);
    if (status >= 0)
        status = presto__sentencepiece_new(presto_buffer_span(&content), &model, err);
    if (status < 0)
        presto_error_set_file(err, encode->model);
    else
        *model_out = model;
    presto_buffer_done(&content);
    return status;
}

static void unload(void *model) {
    presto__sentencepiece_free(model);
}

static presto_status run(const void *state, presto_step_context *context, const presto_tensor *in,
                         presto_tensor *out_out, presto_error *err) {
    const encode_state *encode = state;
    PRESTO_TRY(check_input(&in->spec, err));
    presto_span text = in->spec.dtype == PRESTO_STRING
                           ? in->strings[0]
                           : presto_span_of(in->data, (size_t)in->spec.dims[0]);
    if (text.bytes > encode->max_bytes)
        return presto_fail(err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET,
                           "a text of %zu bytes, limit %ju (max-bytes)", text.bytes,
                           (uintmax_t)encode->max_bytes);
    presto_buffer *ids = presto_step_buffer(context);
    PRESTO_TRY(presto__sentencepiece_encode(presto_step_model(context), text, ids, err));
    out_out->spec =
        (presto_tensor_spec){PRESTO_INT32, 1, {(int64_t)(ids->bytes / sizeof(int32_t))}};
    out_out->data = ids->data;
    return PRESTO_OK;
}

const presto_step_type presto__step_bpe_encode = {
    .abi = PRESTO_STEP_ABI,
    .name = "bpe-encode",
    .summary = "Text to int32 [n], the ids of its tokens: those of the library sentencepiece.",
#if !PRESTO_HAVE_SENTENCEPIECE
    .unsupported = "built without libsentencepiece",
#endif
    .options = options,
    .option_count = OPTION_COUNT,
    .create = create,
    .destroy = destroy,
    .infer = infer,
    .load = load,
    .unload = unload,
    .run = run,
};
