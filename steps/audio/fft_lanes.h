/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one body of the fft_*.cc, each of which is compiled for another processor. What it defines
 * has internal linkage, so that the linker cannot take code of one for that of another.
 */
#ifndef PRESTO_STEPS_FFT_LANES_H
#define PRESTO_STEPS_FFT_LANES_H

#include <new>
#include <vector>

#include <unsupported/Eigen/FFT>

#include "fft_internal.h"

/* In fft_portable.cc, for all processors: the linker keeps one copy of a template of the standard
 * library, which must not be one with instructions that few processors have. */
extern template class std::vector<int>;
void presto__fft_factorize(int length, std::vector<int> &radix, std::vector<int> &remainder);

namespace {

typedef float vector __attribute__((vector_size(PRESTO__FFT_LANES * sizeof(float))));

/* A vector as a number, for templates that compute with numbers. */
struct lanes {
    /* NOLINTNEXTLINE(misc-non-private-member-variables-in-classes) */
    vector value;

    lanes() = default;
    explicit lanes(vector v) : value(v) {
    }
    lanes(double number) : value(static_cast<float>(number) - vector{}) {
    }
    lanes &operator+=(const lanes &other) {
        value += other.value;
        return *this;
    }
    lanes &operator-=(const lanes &other) {
        value -= other.value;
        return *this;
    }
    lanes &operator*=(const lanes &other) {
        value *= other.value;
        return *this;
    }
};

inline lanes operator-(const lanes &a) {
    return lanes(-a.value);
}
inline lanes operator+(const lanes &a, const lanes &b) {
    return lanes(a.value + b.value);
}
inline lanes operator-(const lanes &a, const lanes &b) {
    return lanes(a.value - b.value);
}
inline lanes operator*(const lanes &a, const lanes &b) {
    return lanes(a.value * b.value);
}

typedef Eigen::internal::kiss_cpx_fft<lanes> transform;

inline void *plan_new(size_t length) {
    try {
        transform *plan = new transform;
        try {
            plan->make_twiddles(static_cast<int>(length), false);
            presto__fft_factorize(static_cast<int>(length), plan->m_stageRadix,
                                  plan->m_stageRemainder);
        } catch (...) {
            delete plan;
            throw;
        }
        return plan;
    } catch (const std::bad_alloc &) {
        return nullptr;
    }
}

inline void plan_free(void *plan) {
    delete static_cast<transform *>(plan);
}

inline void run(void *plan, const float *in, float *out) {
    const auto *from = reinterpret_cast<const transform::Complex *>(in);
    static_cast<transform *>(plan)->work(0, reinterpret_cast<transform::Complex *>(out), from, 1,
                                         1);
}

} // namespace

#endif
