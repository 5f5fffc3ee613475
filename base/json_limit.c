/* SPDX-License-Identifier: Apache-2.0 */
#include "json_limit_internal.h"

/*
 * A number takes jansson 32 bytes of memory and two bytes of text ("0,"), a list or an object up to
 * 256 bytes and two or three of text ("{},"). So 64 MiB of text could take 8 GiB. Lists and objects
 * count as eight numbers here.
 */
#define CONTAINER_WEIGHT 8

presto_status presto__json_check(presto_span json, uint64_t max_bytes, size_t max_weight,
                                 presto_error *err) {
    if (json.bytes > max_bytes)
        return presto_fail(err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET, "%zu bytes, limit %ju",
                           json.bytes, (uintmax_t)max_bytes);
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
    if (weight > max_weight)
        return presto_fail(err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET,
                           "more values than such a file needs (%zu, limit %zu)", weight,
                           max_weight);
    return PRESTO_OK;
}
