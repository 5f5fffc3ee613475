/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of a mix: what each input is, its share of an epoch, and its position. The positions
 * follow from that of the mix; they are saved so that a state which does not belong to these inputs
 * and weights is refused, with the input named.
 */
#include <inttypes.h>
#include <stdio.h>

#include <presto/numbers.h>

#include "../../base/checked_internal.h"
#include "workers_internal.h"

/* Where an input is: in which of its epochs, and how many samples of that have passed. */
typedef struct part_position {
    uint64_t epoch, next;
} part_position;

/* Positions of all parts before position `next` of the mix's `epoch`; false: there is no such
 * position. */
static bool find_positions(const presto__order_options *order, uint64_t epoch, uint64_t next,
                           part_position *positions_out) {
    uint64_t counts[PRESTO_MIX_MOST_INPUTS];
    if (next > order->count)
        return false;
    presto__mix_passed(order, epoch, next, counts);
    for (size_t k = 0; k < order->part_count; k++) {
        const presto_source_part *part = &order->parts[k];
        uint64_t passed;
        if (!presto__u64_multiply(epoch, part->epoch_samples, &passed) ||
            !presto__u64_add(passed, counts[k], &passed))
            return false;
        positions_out[k] = (part_position){passed / part->samples, passed % part->samples};
    }
    return true;
}

static presto__order_options order_of(const presto_source *source,
                                      const presto_loader_options *options) {
    presto__order_options order = {.seed = options->order.seed,
                                   .shuffle = options->order.shuffle,
                                   .count = presto__source_positions(source),
                                   .world = 1};
    order.parts = presto_source_parts(source, &order.part_count);
    return order;
}

presto_status presto__state_append_mix(const presto_loader *loader, uint64_t epoch, uint64_t next,
                                       presto_buffer *json_out, presto_error *err) {
    const presto__order_options order = order_of(loader->source, &loader->options);
    part_position positions[PRESTO_MIX_MOST_INPUTS] = {{0, 0}};
    if (order.part_count == 0)
        return PRESTO_OK;
    (void)find_positions(&order, epoch, next, positions);
    for (size_t k = 0; k < order.part_count; k++) {
        char text[256];
        int bytes =
            snprintf(text, sizeof text,
                     "%s{\"source\": \"%016" PRIx64 "\", \"samples\": %" PRIu64
                     ", \"share\": %" PRIu64 ", \"epoch\": %" PRIu64 ", \"next\": %" PRIu64 "}",
                     k == 0 ? ", \"mix\": [" : ", ", presto__source_part_digest(loader->source, k),
                     order.parts[k].samples, order.parts[k].epoch_samples, positions[k].epoch,
                     positions[k].next);
        PRESTO_TRY(presto_buffer_append(json_out, presto_span_of(text, (size_t)bytes), err));
    }
    return presto_buffer_append(json_out, presto_span_of_text("]"), err);
}

/* One input of a saved mix. */
typedef struct saved_part {
    const char *source;
    json_int_t samples, share, epoch, next;
} saved_part;

static presto_status read_part(json_t *item, size_t k, saved_part *part_out, presto_error *err) {
    if (json_unpack(item, "{s:s, s:I, s:I, s:I, s:I}", "source", &part_out->source, "samples",
                    &part_out->samples, "share", &part_out->share, "epoch", &part_out->epoch,
                    "next", &part_out->next) == 0)
        return PRESTO_OK;
    return presto_fail(err, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET,
                       "no state of a stream: input %zu of its mix is none", k);
}

static presto_status check_part(const saved_part *saved, const presto_source *source, size_t k,
                                presto_error *err) {
    const presto_source_part *part = &source->parts[k];
    char digest[24];
    snprintf(digest, sizeof digest, "%016" PRIx64, presto__source_part_digest(source, k));
    if (saved->samples != (json_int_t)part->samples || strcmp(saved->source, digest) != 0)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "the state belongs to a stream with another input in place of %s",
                           part->name);
    if (saved->share != (json_int_t)part->epoch_samples)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "the state belongs to a mix with other weights: it has %jd sample%s of "
                           "%s in an epoch, not %" PRIu64,
                           (intmax_t)saved->share, presto_plural((uint64_t)saved->share),
                           part->name, part->epoch_samples);
    return PRESTO_OK;
}

static presto_status check_list(const json_t *list, const json_t *root, const presto_source *source,
                                const presto__order_options *order, presto_error *err) {
    part_position positions[PRESTO_MIX_MOST_INPUTS];
    json_int_t epoch = json_integer_value(json_object_get(root, "epoch"));
    json_int_t next = json_integer_value(json_object_get(root, "next"));
    saved_part saved;
    for (size_t k = 0; k < order->part_count; k++) {
        PRESTO_TRY(read_part(json_array_get(list, k), k, &saved, err));
        PRESTO_TRY(check_part(&saved, source, k, err));
    }
    bool holds = find_positions(order, (uint64_t)epoch, (uint64_t)next, positions);
    for (size_t k = 0; holds && k < order->part_count; k++) {
        PRESTO_TRY(read_part(json_array_get(list, k), k, &saved, err));
        holds = saved.epoch == (json_int_t)positions[k].epoch &&
                saved.next == (json_int_t)positions[k].next;
    }
    return holds ? PRESTO_OK
                 : presto_fail(err, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET,
                               "the positions of the state do not belong together");
}

presto_status presto__state_check_mix(const json_t *root, const presto_source *source,
                                      const presto_loader_options *options, presto_error *err) {
    const json_t *list = json_object_get(root, "mix");
    const presto__order_options order = order_of(source, options);
    const json_t *seed = json_object_get(root, "seed");
    char text[24];
    if (list == NULL && order.part_count == 0)
        return PRESTO_OK;
    if (json_array_size(list) != order.part_count)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "the state belongs to a stream of %zu mixed input%s, not %zu",
                           json_array_size(list), json_array_size(list) == 1 ? "" : "s",
                           order.part_count);
    snprintf(text, sizeof text, "%" PRIu64, order.seed);
    if (strcmp(json_string_value(seed), text) != 0)
        return PRESTO_OK; /* reported as such: the positions are of another mix */
    return check_list(list, root, source, &order, err);
}
