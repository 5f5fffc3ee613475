/* SPDX-License-Identifier: Apache-2.0 */
/* decode-npy: the bytes of a .npy file -> the array. base/npy.c reads the header. */
#include <stdlib.h>

#include "../../base/npy_internal.h"
#include "../steps_internal.h"

enum { OPTION_DTYPE, OPTION_COUNT };

static const char *const dtypes[] = {"any",        "float32", "float64", "float16", "bfloat16",
                                     "uint8",      "uint16",  "uint32",  "uint64",  "int8",
                                     "int16",      "int32",   "int64",   "bool",    "complex64",
                                     "complex128", NULL};

static const presto_option_type options[] = {
    [OPTION_DTYPE] = {.name = "dtype",
                      .kind = PRESTO_OPTION_CHOICE,
                      .default_text = "any",
                      .choices = dtypes,
                      .help = "what all arrays must have; steps that need a certain one are then "
                              "checked before any sample is read"},
};

/* The state is the dtype; unknown: any. */
static presto_status create(const presto_option *values, void **state_out, presto_error *err) {
    presto_dtype *state = malloc(sizeof *state);
    if (state == NULL)
        return presto_fail_memory(err, sizeof *state);
    *state = presto_dtype_by_name(values[OPTION_DTYPE].text);
    *state_out = state;
    return PRESTO_OK;
}

static presto_status infer(const void *state, const presto_tensor_spec *in,
                           presto_tensor_spec *out_out, presto_error *err) {
    static const presto_tensor_spec text = {PRESTO_STRING, 0, {0}};
    PRESTO_TRY(presto__spec_expect(in, &text, err));
    *out_out = presto__spec_unknown();
    out_out->dtype = *(const presto_dtype *)state;
    return PRESTO_OK;
}

static presto_status run(const void *state, presto_step_context *context, const presto_tensor *in,
                         presto_tensor *out_out, presto_error *err) {
    static const presto_tensor_spec text = {PRESTO_STRING, 0, {0}};
    presto_dtype wanted = *(const presto_dtype *)state;
    presto_tensor array;
    void *data;
    PRESTO_TRY(presto__spec_expect(&in->spec, &text, err));
    PRESTO_TRY(presto__npy_parse(in->strings[0], &array, err));
    if (wanted != PRESTO_DTYPE_UNKNOWN && array.spec.dtype != wanted)
        return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET, "an array of %s, not of %s",
                           presto_dtype_name(array.spec.dtype), presto_dtype_name(wanted));
    PRESTO_TRY(presto_step_output(context, &array.spec, &data, err));
    memcpy(data, array.data, presto_tensor_bytes(&array));
    out_out->spec = array.spec;
    out_out->data = data;
    return PRESTO_OK;
}

const presto_step_type presto__step_decode_npy = {
    .abi = PRESTO_STEP_ABI,
    .name = "decode-npy",
    .summary = "The array in a NumPy file (.npy), in C order and little-endian, of numbers; its "
               "dtype and shape are those of the file.",
    .options = options,
    .option_count = OPTION_COUNT,
    .create = create,
    .destroy = free,
    .infer = infer,
    .run = run,
};
