/* SPDX-License-Identifier: Apache-2.0 */
#include "pace_internal.h"

/* Of all processors; less is no more than what the system always does beside, and what its ticks of
 * 10 ms leave unknown. */
#define DISTURBED_PART 0.125
#define DISTURBED_S 0.05
/* Of the host's other guests less is felt more: they share the memory and the cores' caches, too. */
#define STOLEN_PART 0.02
#define STOLEN_S 0.015
#define IN_VAIN_MOST 3

void presto__calm_start(presto__calm *calm) {
    calm->others_s = calm->stolen_s = calm->wall_s = 0;
}

void presto__calm_add(presto__calm *calm, double wall_s, double others_s, double stolen_s) {
    calm->wall_s += wall_s;
    calm->others_s += others_s;
    calm->stolen_s += stolen_s;
}

static bool is_much(double seconds, double least_s, double least_part, double all_s) {
    return seconds > least_s && seconds > least_part * all_s;
}

bool presto__calm_wants_again(presto__calm *calm, double processors) {
    double all_s = processors * calm->wall_s;
    if (!is_much(calm->others_s, DISTURBED_S, DISTURBED_PART, all_s) &&
        !is_much(calm->stolen_s, STOLEN_S, STOLEN_PART, all_s)) {
        calm->in_vain = 0;
        return false;
    }
    if (calm->in_vain >= IN_VAIN_MOST)
        return false;
    calm->in_vain++;
    return true;
}
