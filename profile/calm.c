/* SPDX-License-Identifier: Apache-2.0 */
#include "calm_internal.h"

/* Of all processors; less is no more than what the system always does beside, and what its ticks of
 * 10 ms leave unknown. */
#define DISTURBED_PART 0.125
#define DISTURBED_S 0.05
#define IN_VAIN_MOST 3

void presto__calm_start(presto__calm *calm) {
    calm->others_s = calm->wall_s = 0;
}

void presto__calm_add(presto__calm *calm, double wall_s, double busy_s, double own_s) {
    calm->wall_s += wall_s;
    calm->others_s += busy_s - own_s;
}

bool presto__calm_wants_again(presto__calm *calm, double processors) {
    double most_s = DISTURBED_PART * processors * calm->wall_s;
    if (!(calm->others_s > DISTURBED_S && calm->others_s > most_s)) {
        calm->in_vain = 0;
        return false;
    }
    if (calm->in_vain >= IN_VAIN_MOST)
        return false;
    calm->in_vain++;
    return true;
}
