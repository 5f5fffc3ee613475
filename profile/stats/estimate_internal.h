/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room stats: means, medians and totals with what is known of their errors.
 * May see: base, and the headers of trial/ and choice/ that say what is estimated.
 */
#ifndef PRESTO_PROFILE_ESTIMATE_INTERNAL_H
#define PRESTO_PROFILE_ESTIMATE_INTERNAL_H

#include <presto/sweep.h>

/* ---- estimate.c: from a sample to the whole ---- */

/** Count, mean and spread of numbers seen one by one. Zero-initialise. */
typedef struct presto__moments {
    uint64_t count;
    double mean;
    double squares; /* sum of the squared distances from the mean */
    double cubes;   /* and of the cubed ones */
} presto__moments;

void presto__moments_add(presto__moments *moments, double value);
double presto__moments_variance(const presto__moments *moments); /* NaN below two values */
/** Two-sided 95 % quantile of Student's t. degrees >= 1. */
double presto__student_95(uint64_t degrees);
/** Sorts `values` in place. count >= 1. */
presto_spread presto__spread_of(double *values, size_t count);
/**
 * The position of the value that presto__spread_of calls the median (for an even count, the lower
 * of the two in the middle).
 */
size_t presto__median_index(const double *values, size_t count);

/** A total and half the width of its 95 % interval (NaN: unknown). */
typedef struct presto__estimate {
    double total, error;
} presto__estimate;

/** The error of a sum of two parts whose errors are independent: not hypot, which asks for glibc 2.35. */
double presto__joint_error(double one, double other);

/** If `samples` gave so many items, some samples none or several: how many all give. */
uint64_t presto__population_of(uint64_t items, uint64_t samples, uint64_t all_samples);

/**
 * The sum over `population` items, of which `sample` is a simple sample: mean * population. With
 * the finite population correction, so a sample of all items has no error.
 */
presto__estimate presto__estimate_sum(const presto__moments *sample, uint64_t population);

/** How far a job was at some moment. */
typedef struct presto__mark {
    uint64_t samples;
    uint64_t elapsed_ns;
} presto__mark;

/** Marks of one job, thinned out as they grow. Zero-initialise; marks are stored in place. */
#define PRESTO__MARKS 256
typedef struct presto__marks {
    presto__mark at[PRESTO__MARKS];
    size_t count;
} presto__marks;

void presto__marks_add(presto__marks *marks, uint64_t samples, uint64_t elapsed_ns);
/**
 * Half of the 95 % interval of the mean time per sample, in seconds, by batch means: the job is cut
 * into ten pieces at most with similar numbers of samples, whose means are taken as independent.
 * NaN below three pieces.
 */
double presto__marks_error_s(const presto__marks *marks);

#endif
