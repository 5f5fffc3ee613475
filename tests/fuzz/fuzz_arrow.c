/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrow's C data interface: schemas of any form, and arrays whose buffers are as large as their
 * lengths and offsets say, but may hold anything: offsets that go backwards, indexes and views that
 * lie beyond, missing values, structs that are longer than their fields. Rows that are read are
 * written in both ways, to the same bytes.
 */
#include "fuzz.h"

#include <stdlib.h>

#include "../../loader/arrow/arrow_internal.h"
#include "../../records/records_internal.h"

#define MOST_NODES 48
#define MOST_CHILDREN 4
#define BODY_BYTES 4096
#define METADATA_BYTES 256

typedef struct node {
    struct ArrowSchema schema;
    struct ArrowArray array;
    struct ArrowSchema *schemas[MOST_CHILDREN];
    struct ArrowArray *arrays[MOST_CHILDREN];
    const void *buffers[5];
    void *owned[5];
    char format[24], name[3], metadata[METADATA_BYTES];
} node;

typedef struct input {
    const uint8_t *at, *end;
    node *nodes;
    size_t count;
    bool is_strange; /* a format says how large buffers must be */
} input;

static uint8_t take(input *from) {
    return from->at == from->end ? 0 : *from->at++;
}

static void release_schema(struct ArrowSchema *schema) {
    schema->release = NULL;
}

static void release_array(struct ArrowArray *array) {
    array->release = NULL;
}

/* A buffer of exactly so many bytes, of what the input has next, again and again. */
static void *make_buffer(input *from, size_t bytes) {
    uint8_t seed[9] = {0};
    uint8_t *buffer = malloc(bytes + (bytes == 0));
    for (size_t i = 0; i < sizeof seed; i++)
        seed[i] = take(from);
    for (size_t i = 0; i < bytes; i++)
        buffer[i] = (uint8_t)(seed[i % sizeof seed] + (seed[8] & i));
    return buffer;
}

/* Offsets into a body: rising or not, but none behind its end. */
static void *make_offsets(input *from, size_t count, size_t width) {
    uint8_t *buffer = make_buffer(from, count * width);
    bool rises = take(from) % 4 != 0;
    int64_t last = 0;
    for (size_t i = 0; i < count; i++) {
        int64_t offset = buffer[i * width] % 16 + (rises ? last : 0);
        offset = offset > BODY_BYTES ? BODY_BYTES : offset;
        offset = !rises && buffer[i * width] == 255 ? -offset : offset;
        last = offset;
        memcpy(buffer + i * width, &offset, width);
    }
    return buffer;
}

static void put_text(char *to, size_t *at, const char *text, size_t bytes) {
    int32_t length = (int32_t)bytes;
    memcpy(to + *at, &length, sizeof length);
    memcpy(to + *at + sizeof length, text, bytes);
    *at += sizeof length + bytes;
}

static const char *make_metadata(input *from, node *self) {
    static const char *const names[] = {"arrow.fixed_shape_tensor", "arrow.variable_shape_tensor",
                                        "arrow.json"};
    static const char *const shapes[] = {"{\"shape\":[2,2]}", "{\"shape\":[4]}", "{\"shape\":[]}",
                                         "{\"shape\":[2,2],\"permutation\":[1,0]}"};
    char own[32];
    size_t at = sizeof(int32_t);
    const char *name = names[take(from) % 3];
    uint8_t which = take(from);
    const char *shape = which < 200 ? shapes[which % 4] : own;
    size_t bytes = which < 200 ? strlen(shape) : which - 200U;
    for (size_t i = 0; i < bytes && which >= 200; i++)
        own[i % sizeof own] = (char)take(from);
    bytes = bytes > sizeof own && which >= 200 ? sizeof own : bytes;
    memcpy(self->metadata, &(int32_t){2}, sizeof(int32_t));
    put_text(self->metadata, &at, "ARROW:extension:name", 20);
    put_text(self->metadata, &at, name, strlen(name));
    put_text(self->metadata, &at, "ARROW:extension:metadata", 24);
    put_text(self->metadata, &at, shape, bytes);
    return self->metadata;
}

static void choose_format(input *from, node *self) {
    static const char *const formats[] = {
        "+s", "+s", "l",   "f",    "u",        "Z",           "vu",   "b",   "c",     "L",
        "e",  "n",  "w:3", "+l",   "+L",       "+w:4",        "+w:0", "tdD", "tsu:Z", "d:9,2",
        "g",  "i",  "S",   "+w:2", "d:9,2,32", "d:40,-3,256", "tDn",  "+m",  "+ud:0", "tiM"};
    uint8_t which = take(from);
    size_t count = sizeof formats / sizeof *formats;
    if (which < 240) {
        snprintf(self->format, sizeof self->format, "%s", formats[which % count]);
        return;
    }
    from->is_strange = true;
    for (size_t i = 0; i < which - 238U; i++)
        self->format[i] = (char)take(from);
}

static size_t offset_width(const char *format) {
    if (strcmp(format, "u") == 0 || strcmp(format, "+l") == 0)
        return 4;
    return strcmp(format, "Z") == 0 || strcmp(format, "+L") == 0 ? 8 : 0;
}

static void fill_array(input *from, node *self) {
    struct ArrowArray *array = &self->array;
    const char *format = self->format;
    *array = (struct ArrowArray){.length = take(from) % 12,
                                 .offset = take(from) % 4,
                                 .null_count = take(from) % 3 - 1,
                                 .n_buffers = 2,
                                 .buffers = self->buffers,
                                 .n_children = self->schema.n_children,
                                 .children = self->arrays,
                                 .release = release_array};
    size_t items = (size_t)(array->length + array->offset), width = offset_width(format);
    uint8_t flags = take(from);
    if ((flags & 1) != 0)
        self->owned[0] = make_buffer(from, (items + 7) / 8);
    self->owned[1] =
        width == 0 ? make_buffer(from, items * 32) : make_offsets(from, items + 1, width);
    if (strcmp(format, "u") == 0 || strcmp(format, "Z") == 0 || strcmp(format, "vu") == 0) {
        self->owned[2] = make_buffer(from, BODY_BYTES);
        array->n_buffers = 3;
    }
    if (strcmp(format, "vu") == 0) {
        array->n_buffers = 4;
        self->owned[3] = malloc(sizeof(int64_t));
        memcpy(self->owned[3], &(int64_t){BODY_BYTES}, sizeof(int64_t));
    }
    if (strcmp(format, "+s") == 0 || strncmp(format, "+w", 2) == 0)
        array->n_buffers = 1;
    if (strcmp(format, "n") == 0)
        array->n_buffers = 0;
    for (size_t i = 0; i < 5; i++)
        self->buffers[i] = self->owned[i];
    if ((flags & 0xf0) == 0x10) /* lies */
        array->n_buffers = take(from) % 4;
    else if ((flags & 0xf0) == 0x20)
        array->length = array->length > 0 && take(from) % 2 == 0 ? array->length - 1 : -1;
    else if ((flags & 0xf0) == 0x30)
        array->n_children = take(from) % (MOST_CHILDREN + 1);
    else if ((flags & 0xf0) == 0x40)
        array->release = NULL;
}

static node *make_node(input *from, int depth) {
    if (from->count == MOST_NODES)
        return NULL;
    node *self = &from->nodes[from->count++];
    choose_format(from, self);
    if (depth == 0)
        snprintf(self->format, sizeof self->format, "+s");
    self->name[0] = (char)('a' + take(from) % 26);
    uint8_t flags = take(from);
    self->schema = (struct ArrowSchema){.format = self->format,
                                        .name = self->name,
                                        .children = self->schemas,
                                        .release = release_schema};
    if ((flags & 7) == 1)
        self->schema.metadata = make_metadata(from, self);
    size_t children = depth > 6                         ? 0
                      : strcmp(self->format, "+s") == 0 ? take(from) % (MOST_CHILDREN + 1)
                      : self->format[0] == '+'          ? 1
                                                        : 0;
    for (size_t i = 0; i < children; i++) {
        node *child = make_node(from, depth + 1);
        if (child == NULL)
            break;
        self->schemas[i] = &child->schema;
        self->arrays[i] = &child->array;
        self->schema.n_children++;
    }
    fill_array(from, self);
    node *dictionary = (flags & 0x70) == 0x10 && depth < 6 ? make_node(from, depth + 1) : NULL;
    if (dictionary != NULL) {
        self->schema.dictionary = &dictionary->schema;
        self->array.dictionary = &dictionary->array;
    }
    return self;
}

static void read_rows(presto_arrow *arrow, const struct ArrowArray *array) {
    presto__example_rows *rows;
    presto_buffer got = {0}, wanted = {0};
    presto_error err;
    bool has_news;
    if (presto__arrow_begin(arrow, array, &err) < 0)
        return;
    FUZZ_HOLDS(presto__example_rows_new(arrow->names, arrow->count, &rows, &err) == PRESTO_OK);
    for (int64_t row = 0; row < arrow->rows; row++) {
        if (presto__arrow_row(arrow, row, &has_news, &err) < 0)
            break;
        const presto_sample sample = {.features = arrow->features, .feature_count = arrow->count};
        got.bytes = wanted.bytes = 0;
        presto_status status = presto_example_append(&wanted, &sample, &err);
        FUZZ_HOLDS(presto__example_rows_append(rows, &got, arrow->features, &err) == status);
        FUZZ_HOLDS(presto_span_equal(presto_buffer_span(&got), presto_buffer_span(&wanted)));
    }
    presto__example_rows_free(rows);
    presto_buffer_done(&got);
    presto_buffer_done(&wanted);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    static const char *const convert[] = {"a=int64", "b=string", "c=float64"};
    static const char *const tensors[] = {"d=float32[2,2]", "e=int64[4]"};
    input from = {.at = data, .end = data + bytes, .nodes = calloc(MOST_NODES, sizeof(node))};
    presto_arrow *arrow;
    presto_arrow_options options;
    presto_error err;
    presto_arrow_options_defaults(&options);
    uint8_t flags = take(&from);
    options.convert = convert;
    options.convert_count = flags & 3;
    options.tensors = tensors;
    options.tensor_count = flags >> 2 & 1;
    options.refuses_nulls = (flags & 0x80) != 0;
    node *root = make_node(&from, 0);
    presto_status status = presto_arrow_open(&root->schema, &options, &arrow, &err);
    if (status < 0)
        FUZZ_HOLDS(err.message[0] != '\0');
    else {
        if (!from.is_strange)
            read_rows(arrow, &root->array);
        presto_arrow_free(arrow);
    }
    for (size_t i = 0; i < from.count; i++)
        for (size_t k = 0; k < 5; k++)
            free(from.nodes[i].owned[k]);
    free(from.nodes);
    return 0;
}
