/* SPDX-License-Identifier: Apache-2.0 */
/* How much memory jansson will take is known before it is asked to parse. */
#include "dataset_internal.h"

/*
 * A number takes jansson 32 bytes of memory and two bytes of text ("0,"), a list or an object up to
 * 256 bytes and two or three of text ("{},"). So 64 MiB of text could take 8 GiB. Lists and objects
 * count as eight numbers here; within the limit, all values take 128 MiB, beside the texts
 * themselves. 99,999 shards with 65,536 features of rank 8 stay below it.
 */
#define CONTAINER_WEIGHT 8

presto_status presto__json_check_size(presto_span json, presto_error *err) {
    if (json.bytes > PRESTO__JSON_MAX_BYTES)
        return presto_fail(err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET, "%zu bytes, limit %ju",
                           json.bytes, (uintmax_t)PRESTO__JSON_MAX_BYTES);
    size_t weight = 0;
    bool is_text = false;
    for (size_t i = 0; i < json.bytes; i++) {
        uint8_t byte = json.data[i];
        if (byte == '"')
            is_text = !is_text;
        else if (byte == '\\' && is_text)
            i++;
        else if (!is_text && byte == ',')
            weight++;
        else if (!is_text && (byte == '{' || byte == '['))
            weight += CONTAINER_WEIGHT;
    }
    if (weight > PRESTO__JSON_MAX_WEIGHT)
        return presto_fail(err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET,
                           "more values than any dataset needs (%zu, limit %zu)", weight,
                           PRESTO__JSON_MAX_WEIGHT);
    return PRESTO_OK;
}
