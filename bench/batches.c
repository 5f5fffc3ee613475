/* SPDX-License-Identifier: Apache-2.0 */
/* The loop that bench/python.py compares Python's with: takes all batches of a dataset. As Python's
 * `for` does, it holds a batch until it has the next one. */
#include <presto/presto.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double seconds(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static int fail(const presto_error *err) {
    char text[2048];
    presto_error_format(err, text, sizeof text);
    fprintf(stderr, "%s\n", text);
    return 1;
}

int main(int argc, char **argv) {
    if (argc != 5) {
        fprintf(stderr, "Usage: bench_batches DATASET BATCH EPOCHS THREADS\n");
        return 2;
    }
    const char *dataset = argv[1];
    presto_loader_options options;
    presto_stream_options input;
    presto_loader_options_defaults(&options);
    presto_stream_options_defaults(&input);
    options.batch_samples = strtoull(argv[2], NULL, 10);
    options.range.epochs = strtoull(argv[3], NULL, 10);
    options.threads = (unsigned)strtoul(argv[4], NULL, 10);
    input.loader = &options;
    input.to = "generated"; /* what is stored */
    presto_error err;
    presto_loader *loader;
    presto_batch *batch, *held = NULL;
    if (presto_loader_open_paths(&dataset, 1, &input, &loader, &err) < 0)
        return fail(&err);
    double start = seconds(CLOCK_MONOTONIC), own = seconds(CLOCK_THREAD_CPUTIME_ID);
    unsigned long long samples = 0, batches = 0;
    presto_status status;
    while ((status = presto_loader_next(loader, &batch, &err)) == PRESTO_OK) {
        samples += batch->rows;
        batches++;
        presto_batch_release(held);
        held = batch;
    }
    presto_batch_release(held);
    printf("%llu %llu %.9f %.9f\n", samples, batches, seconds(CLOCK_MONOTONIC) - start,
           seconds(CLOCK_THREAD_CPUTIME_ID) - own);
    presto_loader_free(loader);
    return status == PRESTO_END ? 0 : fail(&err);
}
