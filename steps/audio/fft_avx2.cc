/* SPDX-License-Identifier: Apache-2.0 */
/* The transform for processors with AVX2: this file is compiled with -mavx2. */
#include "fft_lanes.h"

const presto__fft_kernel presto__fft_avx2 = {plan_new, plan_free, run};
