/* SPDX-License-Identifier: Apache-2.0 */
/*
 * records/ against the best that can be written by hand over the same bytes, in one run: verified
 * scan, parsing, writing, codecs, opening and random access.
 *
 * The two sides of a comparison run turn by turn in short slices, for the machine's speed changes
 * by the second. Printed are, by the clock, the median and the best of each side, and the ratio of
 * the two, taken round by round: by the clock and by the processor time of the threads at work,
 * which is what remains comparable while others use the machine.
 */
#define _XOPEN_SOURCE 700
#include "records.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

records_settings records_set = {.rounds = 15, .file_mib = 64};
presto_error records_err;

_Noreturn void records_die(const char *what) {
    bench_need(records_err.status < 0 ? records_err.status : PRESTO_ERR_ARGUMENT, &records_err,
               what);
    abort();
}

void *records_malloc(size_t bytes) {
    void *memory = malloc(bytes);
    if (memory == NULL)
        records_die("malloc");
    return memory;
}

int main(int argc, char **argv) {
    static const size_t sizes[] = {100, 1024, 10240, 102400, 1048576};
    const char *what = "all", *image = NULL, *base = "/tmp";
    int option;
    while ((option = getopt(argc, argv, "r:m:o:w:i:d:")) != -1) {
        if (option == 'r')
            records_set.rounds = (unsigned)atoi(optarg);
        else if (option == 'm')
            records_set.file_mib = atof(optarg);
        else if (option == 'o')
            bench_figures_to(optarg);
        else if (option == 'w')
            what = optarg;
        else if (option == 'i')
            image = optarg;
        else if (option == 'd')
            base = optarg;
        else
            return fprintf(stderr,
                           "usage: records [-r ROUNDS] [-m FILE_MIB] [-d DIR] [-i RAW_IMAGE] "
                           "[-w scan|crc|parse|write|rows|codec|access|all] [-o FIGURES]\n"),
                   2;
    }
    if (records_set.rounds < 1 || records_set.rounds > BENCH_MAX_ROUNDS)
        records_set.rounds = 15;
    bool all = strcmp(what, "all") == 0;
    bench_make_folder(base);
    snprintf(records_set.dir, sizeof records_set.dir, "%s/presto-bench-XXXXXX", base);
    if (mkdtemp(records_set.dir) == NULL)
        records_die("mkdtemp");
    if (all || strcmp(what, "scan") == 0) {
        records_print_head("records.scan", "verified scan of page-cached files", "hand-written");
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
            records_bench_scan(sizes[i]);
    }
    if (all || strcmp(what, "crc") == 0) {
        records_print_head("records.crc", "CRC-32C, memory read once", "ISA-L");
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
            records_bench_crc(sizes[i]);
    }
    if (all || strcmp(what, "parse") == 0) {
        printf("\nparsing to a tensor's view, a record\n");
        records_bench_parse(99);
        records_bench_parse(9999);
        records_bench_parse(99999);
    }
    if (all || strcmp(what, "write") == 0) {
        records_print_head("records.write", "writing", "buffer, CRC, write()");
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
            records_bench_write(sizes[i]);
    }
    if (all || strcmp(what, "rows") == 0) {
        records_print_head(NULL, "writing a table", "row by row");
        records_bench_rows();
    }
    if (all || strcmp(what, "codec") == 0)
        records_bench_codecs(image);
    if (all || strcmp(what, "access") == 0)
        records_bench_access();
    char command[600];
    snprintf(command, sizeof command, "rm -rf '%s'", records_set.dir);
    return system(command) == 0 ? 0 : 1;
}
