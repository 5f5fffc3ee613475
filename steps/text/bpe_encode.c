/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bpe-encode: text -> int32 ids of tokens. The content of the model's file decides its kind, never
 * the name. Each kind is a table of functions; all of them share a loaded model between threads.
 */
#include <stdlib.h>

#include <presto/storage.h>

#include "../../base/content_internal.h"
#include "../steps_internal.h"
#include "bpe_encode_internal.h"

enum {
    OPTION_MODEL,
    OPTION_MERGES,
    OPTION_SPECIAL_TOKENS,
    OPTION_MAX_BYTES,
    OPTION_CONTENT,
    OPTION_COUNT
};

static const presto_option_type options[] = {
    [OPTION_MODEL] = {.name = "model",
                      .kind = PRESTO_OPTION_FILE,
                      .help = "a SentencePiece .model, a tokenizer.json of byte-level BPE, or a "
                              "GPT-2 vocab.json; see docs/tokenizers.md"},
    [OPTION_MERGES] = {.name = "merges",
                       .kind = PRESTO_OPTION_FILE,
                       .help = "the merges.txt that belongs to a vocab.json"},
    [OPTION_SPECIAL_TOKENS] = {.name = "special-tokens",
                               .kind = PRESTO_OPTION_BOOL,
                               .default_text = "true",
                               .help = "put the tokens around each text that the post_processor of "
                                       "a tokenizer.json names; other models name none"},
    [OPTION_MAX_BYTES] = {.name = "max-bytes",
                          .kind = PRESTO_OPTION_SIZE,
                          .default_text = "16MiB",
                          .minimum = 1,
                          .maximum = 16777216,
                          .help = "longer texts are errors; while a text is encoded, about 100 "
                                  "bytes of memory are used for each of its bytes"},
    [OPTION_CONTENT] = {.name = "content",
                        .kind = PRESTO_OPTION_CHOICE,
                        .default_text = "text",
                        .choices = presto__input_contents,
                        .help = PRESTO__INPUT_HELP},
};

#define MAX_MODEL_BYTES ((uint64_t)64 << 20)

typedef struct encode_state {
    uint64_t max_bytes;
    bool with_special;
    bool takes_any; /* bytes */
    char *model;    /* paths; NULL: none is set */
    char *merges;
} encode_state;

/* One of them. */
typedef struct encode_model {
    presto__sentencepiece *sentencepiece;
    presto__tokenizer *tokenizer;
} encode_model;

static void destroy(void *state) {
    encode_state *encode = state;
    if (encode == NULL)
        return;
    free(encode->model);
    free(encode->merges);
    free(encode);
}

static presto_status create(const presto_option *values, void **state_out, presto_error *err) {
    encode_state *state = calloc(1, sizeof *state);
    if (state == NULL)
        return presto_fail_memory(err, sizeof *state);
    state->max_bytes = (uint64_t)values[OPTION_MAX_BYTES].integer;
    state->takes_any = values[OPTION_CONTENT].choice == PRESTO__INPUT_ANY;
    state->with_special = values[OPTION_SPECIAL_TOKENS].truth;
    presto_status status = presto__option_copy(&values[OPTION_MODEL], &state->model, err);
    if (status >= 0)
        status = presto__option_copy(&values[OPTION_MERGES], &state->merges, err);
    if (status < 0)
        destroy(state);
    else
        *state_out = state;
    return status;
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

static bool is_blank(uint8_t c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* JSON begins with a brace and a quoted key; SentencePiece models with a line feed and a length. */
static bool is_json(presto_span content) {
    static const uint8_t marks[2] = {'{', '"'};
    size_t at = 0;
    for (size_t i = 0; i < 2; i++, at++) {
        while (at < content.bytes && is_blank(content.data[at]))
            at++;
        if (at == content.bytes || content.data[at] != marks[i])
            return false;
    }
    return true;
}

static presto_status load_json(const encode_state *encode, presto_span json, encode_model *model,
                               presto_error *err) {
    presto_buffer merges = {0};
    presto_status status = PRESTO_OK;
    if (encode->merges != NULL)
        status = presto_file_read(encode->merges, MAX_MODEL_BYTES, &merges, err);
    if (status >= 0 && encode->merges != NULL)
        status = presto_buffer_reserve(&merges, 1, err); /* an empty file has data, too */
    const presto__merges lines = {presto_buffer_span(&merges), encode->merges};
    if (status >= 0)
        status = presto__tokenizer_new(json, &lines, &model->tokenizer, err);
    presto_buffer_done(&merges);
    return status;
}

static void unload(void *model) {
    encode_model *encode = model;
    if (encode == NULL)
        return;
    presto__sentencepiece_free(encode->sentencepiece);
    presto__tokenizer_free(encode->tokenizer);
    free(encode);
}

static presto_status load_content(const encode_state *encode, presto_span content,
                                  encode_model *model, presto_error *err) {
    if (is_json(content))
        return load_json(encode, content, model, err);
    const presto__content *other = presto__content_of(content);
    if (other != NULL && strcmp(other->name, "sentencepiece") != 0)
        return presto__content_refuse(other, PRESTO__CONTENT_OTHER,
                                      "a SentencePiece .model, tokenizer.json or vocab.json", err);
    if (encode->merges != NULL)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "the option 'merges' is for a vocab.json, which this is not");
    return presto__sentencepiece_new(content, &model->sentencepiece, err);
}

static presto_status load(const void *state, presto_tensor_spec *out_io, void **model_out,
                          presto_error *err) {
    (void)out_io;
    const encode_state *encode = state;
    if (encode->model == NULL)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "no model: set one, e.g. --set bpe-encode.model=FILE; "
                           "docs/tokenizers.md says how to get or train one");
    encode_model *model = calloc(1, sizeof *model);
    if (model == NULL)
        return presto_fail_memory(err, sizeof *model);
    presto_buffer content = {0};
    presto_status status = presto_file_read(encode->model, MAX_MODEL_BYTES, &content, err);
    if (status >= 0)
        status = load_content(encode, presto_buffer_span(&content), model, err);
    presto_buffer_done(&content);
    if (status < 0) {
        presto_error_set_file(err, encode->model);
        unload(model);
    } else {
        *model_out = model;
    }
    return status;
}

/* Memory of one thread: of the kind that the model is. */
typedef struct encode_worker {
    presto__sentencepiece_scratch *sentencepiece;
    presto__tokenizer_scratch *tokenizer;
    presto_buffer text; /* of UTF-16 */
} encode_worker;

static void close_worker(void *worker) {
    encode_worker *own = worker;
    if (own == NULL)
        return;
    presto__sentencepiece_scratch_free(own->sentencepiece);
    presto__tokenizer_scratch_free(own->tokenizer);
    presto_buffer_done(&own->text);
    free(own);
}

static presto_status open_worker(const void *state, const void *model, void **worker_out,
                                 presto_error *err) {
    const encode_state *encode = state;
    const encode_model *loaded = model;
    encode_worker *own = calloc(1, sizeof *own);
    if (own == NULL)
        return presto_fail_memory(err, sizeof *own);
    if (loaded->tokenizer == NULL)
        own->sentencepiece = presto__sentencepiece_scratch_new();
    else
        own->tokenizer = presto__tokenizer_scratch_new(encode->with_special);
    if (own->sentencepiece == NULL && own->tokenizer == NULL) {
        close_worker(own);
        return presto_fail_memory(err, 0);
    }
    *worker_out = own;
    return PRESTO_OK;
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
    static const presto__input_rules rules = {"bpe-encode", "text", false, false};
    presto_buffer *ids = presto_step_buffer(context);
    const encode_model *model = presto_step_model(context);
    encode_worker *own = presto_step_worker(context);
    if (!encode->takes_any) {
        PRESTO_TRY(presto__input_check(text, &rules, err));
        PRESTO_TRY(presto__input_utf8(text, &own->text, &text, err));
    }
    PRESTO_TRY(
        model->tokenizer == NULL
            ? presto__sentencepiece_encode(model->sentencepiece, own->sentencepiece, text, ids, err)
            : presto__tokenizer_encode(model->tokenizer, own->tokenizer, text, ids, err));
    out_out->spec =
        (presto_tensor_spec){PRESTO_INT32, 1, {(int64_t)(ids->bytes / sizeof(int32_t))}};
    out_out->data = ids->data;
    return PRESTO_OK;
}

const presto_step_type presto__step_bpe_encode = {
    .abi = PRESTO_STEP_ABI,
    .name = "bpe-encode",
    .summary =
        "Text to int32 [n], the ids of its tokens: those of the library that the model comes "
        "from, sentencepiece or tokenizers.",
    .options = options,
    .option_count = OPTION_COUNT,
    .create = create,
    .destroy = destroy,
    .infer = infer,
    .load = load,
    .unload = unload,
    .open_worker = open_worker,
    .close_worker = close_worker,
    .run = run,
};
