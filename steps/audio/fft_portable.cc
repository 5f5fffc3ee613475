/* SPDX-License-Identifier: Apache-2.0 */
/* The transform for any processor. */
#include "fft_lanes.h"

template class std::vector<int>;

void presto__fft_factorize(int length, std::vector<int> &radix, std::vector<int> &remainder) {
    Eigen::internal::kiss_cpx_fft<float> plan;
    plan.factorize(length);
    radix = plan.m_stageRadix;
    remainder = plan.m_stageRemainder;
}

const presto__fft_kernel presto__fft_portable = {plan_new, plan_free, run};
