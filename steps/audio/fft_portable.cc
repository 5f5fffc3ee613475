/* SPDX-License-Identifier: Apache-2.0 */
/* The transform for any processor. */
#include "fft_lanes.h"

template class std::vector<int>;

const presto__fft_kernel presto__fft_portable = {plan_new, plan_free, run};
