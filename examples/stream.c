/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stream a dataset through the C API: open, next batch, release, close.
 *
 *     cc stream.c -o stream $(pkg-config --cflags --libs presto) && ./stream DATASET
 *
 * Prints one line a batch: layout and shape of the main feature, the mean of the values, the key of
 * the first row if there are keys; and keeps one batch past the loader's end, which is allowed.
 */
#include <presto/presto.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static double mean_of(const presto_tensor *tensor) {
    uint64_t count = presto_spec_elements(&tensor->spec);
    double sum = 0;
    if (tensor->spec.dtype == PRESTO_UINT8) {
        const uint8_t *values = tensor->data;
        for (uint64_t i = 0; i < count; i++)
            sum += values[i];
    } else if (tensor->spec.dtype == PRESTO_FLOAT32) {
        const float *values = tensor->data; /* a batch is aligned to 64 bytes */
        for (uint64_t i = 0; i < count; i++)
            sum += (double)values[i];
    }
    return count > 0 ? sum / (double)count : 0;
}

/* Strings stand back to back, with offsets. */
static void print_key(const presto_batch *batch) {
    for (size_t i = 0; i < batch->feature_count; i++) {
        const presto_batch_feature *feature = &batch->features[i];
        if (strcmp(feature->name, "key") != 0 || feature->layout != PRESTO_LAYOUT_BYTES ||
            feature->row_offsets != NULL)
            continue;
        presto_span key = presto_batch_string(feature, 0);
        printf(", from %.*s", (int)key.bytes, (const char *)key.data);
    }
}

static void print_batch(const presto_batch *batch) {
    char shape[PRESTO_SPEC_TEXT_BYTES];
    printf("epoch %" PRIu64 ", samples %" PRIu64 "..%" PRIu64, batch->epoch, batch->first,
           batch->first + batch->rows - 1);
    if (batch->main_feature < batch->feature_count) {
        /* Dense: [rows, ...]. Ragged: the values of all rows; row r has offsets[r]..offsets[r + 1].
         */
        const presto_batch_feature *main = &batch->features[batch->main_feature];
        printf(": %s %s, mean %.4f", presto_layout_name(main->layout),
               presto_spec_format(&main->tensor.spec, shape, sizeof shape), mean_of(&main->tensor));
    }
    print_key(batch);
    putchar('\n');
}

static int fail(const presto_error *err) {
    char text[2048];
    presto_error_format(err, text, sizeof text);
    fprintf(stderr, "stream: %s\n", text);
    return 1;
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "Usage: stream DATASET\n");
        return 2;
    }
    presto_loader_options options;
    presto_loader_options_defaults(&options);
    options.threads = 2;
    options.batch_samples = 8;
    options.order.shuffle = PRESTO_SHUFFLE_FULL;
    presto_stream_options input;
    presto_stream_options_defaults(&input);
    input.loader = &options;

    presto_error err;
    presto_loader *loader;
    if (presto_loader_open_paths((const char *const[]){argv[1]}, 1, &input, &loader, &err) < 0)
        return fail(&err);

    presto_batch *batch;
    presto_batch *last = NULL;
    presto_status status;
    while ((status = presto_loader_next(loader, &batch, &err)) == PRESTO_OK) {
        print_batch(batch);
        presto_batch_release(last);
        last = batch;
    }
    presto_loader_free(loader);
    if (last != NULL) /* outlives the loader and all that it stood on */
        print_batch(last);
    presto_batch_release(last);
    return status == PRESTO_END ? 0 : fail(&err);
}
