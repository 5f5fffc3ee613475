/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of results.json that say how sure it is what it says, and what would change it. */
#include "json_internal.h"

static json_t *laps_value(json_builder *builder, const presto__trial *trial) {
    json_t *array = json_array();
    for (size_t i = 0; i < trial->lap_count; i++) {
        json_t *object = json_object();
        put(builder, object, "round", whole(trial->laps[i].round));
        put(builder, object, "samples_per_s", number(trial->laps[i].samples_per_s));
        append(builder, array, object);
    }
    return array;
}

static json_t *contender_value(json_builder *builder, const presto_sweep *sweep, size_t i) {
    json_t *object = json_object();
    put(builder, object, "result", whole(i));
    put(builder, object, "runs", laps_value(builder, &sweep->trials[i]));
    return object;
}

static json_t *rival_value(json_builder *builder, const presto_sweep *sweep,
                           const presto_sweep_rival *rival) {
    static const char *const standings[] = {"unknown", "equal", "worse", "reaches"};
    json_t *object = contender_value(builder, sweep, rival->result);
    put(builder, object, "standing", text_value(standings[rival->standing]));
    put(builder, object, "rounds", whole(rival->rounds));
    put(builder, object, "ratio", number(rival->ratio));
    put(builder, object, "ratio_min", number(rival->ratio_least));
    put(builder, object, "ratio_max", number(rival->ratio_most));
    return object;
}

/* The one that may be most ahead, then the others. */
static json_t *not_run_value(json_builder *builder, const presto_sweep *sweep) {
    json_t *array = json_array();
    if (sweep->confidence.not_run_count > 0)
        append(builder, array, whole(sweep->confidence.not_run));
    for (size_t i = 0; i < sweep->trial_count; i++)
        if (sweep->trials[i].may_change && i != sweep->confidence.not_run)
            append(builder, array, whole(i));
    return array;
}

json_t *presto__confidence_value(json_builder *builder, const presto_sweep *sweep) {
    static const char *const matters[] = {"score", "rate", "cost", "target"};
    const presto_sweep_confidence *confidence = &sweep->confidence;
    json_t *object = json_object();
    put(builder, object, "is_decided", json_boolean(confidence->is_decided));
    put(builder, object, "by", text_value(matters[sweep->matter]));
    put(builder, object, "same", number(confidence->same));
    put(builder, object, "error", number(confidence->error));
    put(builder, object, "rounds", whole(confidence->rounds));
    put(builder, object, "spent_s", number(confidence->spent_s));
    put(builder, object, "left_out", whole(confidence->left_out));
    put(builder, object, "start_part", number(confidence->start_part));
    put(builder, object, "leader",
        confidence->leader == SIZE_MAX ? json_null()
                                       : contender_value(builder, sweep, confidence->leader));
    json_t *rivals = json_array();
    for (size_t r = 0; r < confidence->rival_count; r++)
        append(builder, rivals, rival_value(builder, sweep, &confidence->rivals[r]));
    put(builder, object, "rivals", rivals);
    put(builder, object, "not_run", not_run_value(builder, sweep));
    return object;
}

json_t *presto__what_ifs_value(json_builder *builder, const presto_sweep *sweep) {
    json_t *array = json_array();
    for (size_t i = 0; i < sweep->what_if_count; i++) {
        const presto_sweep_what_if *what_if = &sweep->what_ifs[i].what_if;
        json_t *object = json_object();
        put(builder, object, "if", text_value(what_if->condition));
        put(builder, object, "result", whole(what_if->result));
        put(builder, object, "is_other", json_boolean(what_if->is_other));
        put(builder, object, "is_missed", json_boolean(what_if->is_missed));
        append(builder, array, object);
    }
    return array;
}

json_t *presto__records_value(json_builder *builder, const presto_sweep *sweep,
                              const presto__trial *trial) {
    double least, most;
    if (trial->record_bytes.count == 0)
        return json_null();
    uint64_t records = presto__population_of(trial->record_bytes.count, sweep->facts.samples,
                                             sweep->facts.source_samples);
    presto__skewed_interval(&trial->record_bytes, records, &least, &most);
    json_t *object = json_object();
    put(builder, object, "count", whole(trial->record_bytes.count));
    put(builder, object, "half_in",
        trial->record_half > 0 ? whole(trial->record_half) : json_null());
    put(builder, object, "skewness", number(presto__skewness(&trial->record_bytes)));
    put(builder, object, "total_bytes_min", number(least));
    put(builder, object, "total_bytes_max", number(most));
    return object;
}
