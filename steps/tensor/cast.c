/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cast: another dtype, value by value.
 *
 * Nothing is undefined: integers saturate, a NaN becomes 0 in them, fractions are cut off. float16
 * and bfloat16 are rounded from float32, to nearest, ties to even; beyond their range to infinity.
 */
#include <math.h>

#include "../steps_internal.h"

enum { OPTION_DTYPE, OPTION_COUNT };

/* ---- 16-bit floats, through the bits of float32 ---- */

static inline uint32_t float_bits(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float float_of_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint16_t bfloat16_of(float value) {
    uint32_t bits = float_bits(value);
    if ((bits & 0x7fffffff) > 0x7f800000)
        return (uint16_t)(bits >> 16 | 0x40); /* a NaN stays one when its tail is cut off */
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static inline float of_bfloat16(uint16_t half) {
    return float_of_bits((uint32_t)half << 16);
}

/* 2^-14 is the smallest normal number of float16, 2^-24 the smallest of all. */
static inline uint16_t float16_of(float value) {
    uint32_t bits = float_bits(value);
    uint32_t sign = bits >> 16 & 0x8000;
    uint32_t magnitude = bits & 0x7fffffff;
    if (magnitude > 0x7f800000)
        return (uint16_t)(sign | 0x7e00 | (magnitude >> 13 & 0x3ff));
    if (magnitude >= 0x47800000) /* 65536 and more */
        return (uint16_t)(sign | 0x7c00);
    if (magnitude < 0x38800000) { /* adding 0.5 rounds at 2^-24, the last bit of 0.5 */
        uint32_t rounded = float_bits(float_of_bits(magnitude) + 0.5f);
        return (uint16_t)(sign | (rounded - float_bits(0.5f)));
    }
    uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
    return (uint16_t)(sign | ((rounded - 0x38000000) >> 13)); /* may carry into infinity */
}

static inline float of_float16(uint16_t half) {
    uint32_t sign = (uint32_t)(half & 0x8000) << 16;
    uint32_t magnitude = half & 0x7fff;
    if (magnitude >= 0x7c00)
        return float_of_bits(sign | 0x7f800000 | (magnitude & 0x3ff) << 13);
    if (magnitude < 0x400) {
        float value = (float)magnitude * 0x1p-24f;
        return sign != 0 ? -value : value;
    }
    return float_of_bits(sign | ((magnitude << 13) + 0x38000000));
}

/* ---- integers ---- */

/* The bounds are compared as doubles: INT64_MAX becomes 2^63, which is out of range, too. */
static inline int64_t int_of_double(double value, int64_t least, int64_t most) {
    if (isnan(value))
        return 0;
    if (value <= (double)least)
        return least;
    return value >= (double)most ? most : (int64_t)value;
}

static inline int64_t int_of_int(int64_t value, int64_t least, int64_t most) {
    return value < least ? least : value > most ? most : value;
}

/* ---- every pair, in two loops ---- */

/* Values are read into a block of one of four wide types, and written from there. */
#define BLOCK_VALUES 256

typedef union block {
    int32_t i32[BLOCK_VALUES];
    int64_t i64[BLOCK_VALUES];
    float f32[BLOCK_VALUES];
    double f64[BLOCK_VALUES];
} block;

/* `in` and `out` need not be aligned. */
typedef void (*read_fn)(const uint8_t *in, block *wide, size_t count);
typedef void (*write_fn)(const block *wide, uint8_t *out, size_t count);

#define SAME(value) (value)

#define READER(name, type, wide_type, convert)                                                     \
    static void read_##name(const uint8_t *restrict in, block *restrict wide, size_t count) {      \
        for (size_t i = 0; i < count; i++) {                                                       \
            type value;                                                                            \
            memcpy(&value, in + i * sizeof value, sizeof value);                                   \
            wide->wide_type[i] = convert(value);                                                   \
        }                                                                                          \
    }

READER(bool, uint8_t, i32, SAME)
READER(uint8, uint8_t, i32, SAME)
READER(int8, int8_t, i32, (int32_t))
READER(uint16, uint16_t, i32, SAME)
READER(int16, int16_t, i32, SAME)
READER(int32, int32_t, i32, SAME)
READER(uint32, uint32_t, i64, SAME)
READER(int64, int64_t, i64, SAME)
READER(float16, uint16_t, f32, of_float16)
READER(bfloat16, uint16_t, f32, of_bfloat16)
READER(float32, float, f32, SAME)
READER(float64, double, f64, SAME)

#define WRITER(name, type, wide_type, value_of)                                                    \
    static void write_##name##_##wide_type(const block *restrict wide, uint8_t *restrict out,      \
                                           size_t count) {                                         \
        for (size_t i = 0; i < count; i++) {                                                       \
            type value = (type)value_of(wide->wide_type[i]);                                       \
            memcpy(out + i * sizeof value, &value, sizeof value);                                  \
        }                                                                                          \
    }

#define TO_UINT8(of, value) of(value, 0, UINT8_MAX)
#define TO_INT16(of, value) of(value, INT16_MIN, INT16_MAX)
#define TO_INT32(of, value) of(value, INT32_MIN, INT32_MAX)
#define TO_INT64(of, value) of(value, INT64_MIN, INT64_MAX)

#define UINT8_OF_INT(value) TO_UINT8(int_of_int, value)
#define UINT8_OF_DOUBLE(value) TO_UINT8(int_of_double, value)
#define INT16_OF_INT(value) TO_INT16(int_of_int, value)
#define INT16_OF_DOUBLE(value) TO_INT16(int_of_double, value)
#define INT32_OF_INT(value) TO_INT32(int_of_int, value)
#define INT32_OF_DOUBLE(value) TO_INT32(int_of_double, value)
#define INT64_OF_DOUBLE(value) TO_INT64(int_of_double, value)
#define FLOAT16_OF(value) float16_of((float)(value))
#define BFLOAT16_OF(value) bfloat16_of((float)(value))

#define WRITERS(name, type, of_int, of_float)                                                      \
    WRITER(name, type, i32, of_int)                                                                \
    WRITER(name, type, i64, of_int)                                                                \
    WRITER(name, type, f32, of_float)                                                              \
    WRITER(name, type, f64, of_float)

WRITERS(uint8, uint8_t, UINT8_OF_INT, UINT8_OF_DOUBLE)
WRITERS(int16, int16_t, INT16_OF_INT, INT16_OF_DOUBLE)
WRITERS(int32, int32_t, INT32_OF_INT, INT32_OF_DOUBLE)
WRITERS(int64, int64_t, SAME, INT64_OF_DOUBLE)
WRITERS(float16, uint16_t, FLOAT16_OF, FLOAT16_OF)
WRITERS(bfloat16, uint16_t, BFLOAT16_OF, BFLOAT16_OF)
WRITERS(float32, float, SAME, SAME)
WRITERS(float64, double, SAME, SAME)

/* ---- tables ---- */

enum { WIDE_I32, WIDE_I64, WIDE_F32, WIDE_F64, WIDE_COUNT };

typedef struct input_type {
    presto_dtype dtype;
    read_fn read;
    int wide;
} input_type;

static const input_type inputs[] = {
    {PRESTO_BOOL, read_bool, WIDE_I32},       {PRESTO_UINT8, read_uint8, WIDE_I32},
    {PRESTO_INT8, read_int8, WIDE_I32},       {PRESTO_UINT16, read_uint16, WIDE_I32},
    {PRESTO_INT16, read_int16, WIDE_I32},     {PRESTO_INT32, read_int32, WIDE_I32},
    {PRESTO_UINT32, read_uint32, WIDE_I64},   {PRESTO_INT64, read_int64, WIDE_I64},
    {PRESTO_FLOAT16, read_float16, WIDE_F32}, {PRESTO_BFLOAT16, read_bfloat16, WIDE_F32},
    {PRESTO_FLOAT32, read_float32, WIDE_F32}, {PRESTO_FLOAT64, read_float64, WIDE_F64},
};
#define INPUT_COUNT (sizeof inputs / sizeof inputs[0])

typedef struct output_type {
    presto_dtype dtype;
    write_fn write[WIDE_COUNT];
} output_type;

#define OUTPUT(dtype, name)                                                                        \
    {                                                                                              \
        dtype, {                                                                                   \
            write_##name##_i32, write_##name##_i64, write_##name##_f32, write_##name##_f64         \
        }                                                                                          \
    }

/* In the order of `dtypes`. */
static const output_type outputs[] = {
    OUTPUT(PRESTO_UINT8, uint8),     OUTPUT(PRESTO_INT16, int16),
    OUTPUT(PRESTO_INT32, int32),     OUTPUT(PRESTO_INT64, int64),
    OUTPUT(PRESTO_FLOAT16, float16), OUTPUT(PRESTO_BFLOAT16, bfloat16),
    OUTPUT(PRESTO_FLOAT32, float32), OUTPUT(PRESTO_FLOAT64, float64),
};

static const char *const dtypes[] = {"uint8",    "int16",   "int32",   "int64", "float16",
                                     "bfloat16", "float32", "float64", NULL};

static const presto_option_type options[] = {
    [OPTION_DTYPE] = {.name = "dtype",
                      .kind = PRESTO_OPTION_CHOICE,
                      .required = true,
                      .choices = dtypes,
                      .help = "of the output; integers saturate, fractions are cut off, a NaN "
                              "becomes 0 in them"},
};

static presto_status create(const presto_option *values, void **state_out, presto_error *err) {
    (void)err;
    *state_out = (void *)(uintptr_t)&outputs[values[OPTION_DTYPE].choice];
    return PRESTO_OK;
}

static const input_type *find_input(presto_dtype dtype) {
    for (size_t i = 0; i < INPUT_COUNT; i++)
        if (inputs[i].dtype == dtype)
            return &inputs[i];
    return NULL;
}

static presto_status infer(const void *state, const presto_tensor_spec *in,
                           presto_tensor_spec *out_out, presto_error *err) {
    const output_type *to = state;
    char text[PRESTO_SPEC_TEXT_BYTES];
    if (in->dtype != PRESTO_DTYPE_UNKNOWN && find_input(in->dtype) == NULL)
        return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET,
                           "needs whole or real numbers of at most 64 bits, gets %s",
                           presto_spec_format(in, text, sizeof text));
    *out_out = *in;
    out_out->dtype = to->dtype;
    return PRESTO_OK;
}

static void convert(const input_type *from, const output_type *to, const uint8_t *in, uint8_t *out,
                    size_t count) {
    size_t in_bytes = presto_dtype_bytes(from->dtype);
    size_t out_bytes = presto_dtype_bytes(to->dtype);
    block wide;
    for (size_t at = 0; at < count; at += BLOCK_VALUES) {
        size_t values = count - at < BLOCK_VALUES ? count - at : BLOCK_VALUES;
        from->read(in + at * in_bytes, &wide, values);
        to->write[from->wide](&wide, out + at * out_bytes, values);
    }
}

static presto_status run(const void *state, presto_step_context *context, const presto_tensor *in,
                         presto_tensor *out_out, presto_error *err) {
    const output_type *to = state;
    presto_tensor_spec spec;
    PRESTO_TRY(infer(state, &in->spec, &spec, err));
    if (in->spec.dtype == to->dtype) {
        *out_out = *in;
        return PRESTO_OK;
    }
    void *data;
    PRESTO_TRY(presto_step_output(context, &spec, &data, err));
    convert(find_input(in->spec.dtype), to, in->data, data, (size_t)presto_spec_elements(&spec));
    out_out->spec = spec;
    out_out->data = data;
    return PRESTO_OK;
}

const presto_step_type presto__step_cast = {
    .abi = PRESTO_STEP_ABI,
    .name = "cast",
    .summary = "Another dtype, value by value; 16-bit floats round to nearest, ties to even.",
    .options = options,
    .option_count = OPTION_COUNT,
    .create = create,
    .infer = infer,
    .run = run,
};
