/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Read batches of another process from shared memory: connect, next batch, release, close.
 *
 *     cc shm_reader.c -o shm_reader $(pkg-config --cflags --libs presto)
 *     presto-load -b 32 --format shm:photos.socket photos-resized &
 *     ./shm_reader photos.socket
 *
 * Prints the number of samples, and the mean of the values of the main feature.
 */
#include <presto/ring.h>

#include <inttypes.h>
#include <stdio.h>

static double sum_of(const presto_tensor *tensor) {
    uint64_t count = presto_spec_elements(&tensor->spec);
    double sum = 0;
    if (tensor->spec.dtype == PRESTO_UINT8) {
        const uint8_t *values = tensor->data;
        for (uint64_t i = 0; i < count; i++)
            sum += values[i];
    } else if (tensor->spec.dtype == PRESTO_FLOAT32) {
        const float *values = tensor->data; /* in the shared memory, aligned to 64 bytes */
        for (uint64_t i = 0; i < count; i++)
            sum += (double)values[i];
    }
    return sum;
}

static int fail(const presto_error *err) {
    char text[2048];
    presto_error_format(err, text, sizeof text);
    fprintf(stderr, "shm_reader: %s\n", text);
    return 1;
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "Usage: shm_reader SOCKET\n");
        return 2;
    }
    presto_ring_options options;
    presto_ring_options_defaults(&options);
    options.path = argv[1];
    options.wait_ns = UINT64_C(60000000000); /* for the writer to come */

    presto_error err;
    presto_ring_reader *reader;
    if (presto_ring_reader_open(&options, &reader, &err) < 0)
        return fail(&err);

    presto_batch *batch;
    presto_status status;
    uint64_t samples = 0, values = 0;
    double sum = 0;
    while ((status = presto_ring_reader_next(reader, &batch, &err)) == PRESTO_OK) {
        samples += batch->rows;
        if (batch->main_feature < batch->feature_count) {
            const presto_tensor *tensor = &batch->features[batch->main_feature].tensor;
            values += presto_spec_elements(&tensor->spec);
            sum += sum_of(tensor);
        }
        presto_ring_batch_release(batch); /* its memory is the writer's again */
    }
    presto_ring_reader_free(reader);
    if (status != PRESTO_END)
        return fail(&err);
    printf("%" PRIu64 " samples, mean %.4f\n", samples, values > 0 ? sum / (double)values : 0);
    return 0;
}
