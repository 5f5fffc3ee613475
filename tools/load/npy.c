/* SPDX-License-Identifier: Apache-2.0 */
/* Headers of NumPy's .npy files, format version 1.0, and the messages of an npy stream. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sink.h"

enum { MAGIC_BYTES = 10, ALIGNMENT = 64 };

size_t npy_format_header(const presto_tensor_spec *spec, size_t item_bytes,
                         char header_out[NPY_HEADER_BYTES]) {
    const char *type = presto_dtype_numpy(spec->dtype);
    if (type == NULL)
        return 0;
    char width[24] = "";
    if (spec->dtype == PRESTO_STRING)
        snprintf(width, sizeof width, "%zu", item_bytes);
    char *text = header_out + MAGIC_BYTES;
    size_t room = NPY_HEADER_BYTES - MAGIC_BYTES;
    size_t used = (size_t)snprintf(
        text, room, "{'descr': '%s%s', 'fortran_order': False, 'shape': (", type, width);
    for (int i = 0; i < spec->rank; i++)
        used += (size_t)snprintf(text + used, room - used, "%jd,%s", (intmax_t)spec->dims[i],
                                 i + 1 < spec->rank ? " " : "");
    used += (size_t)snprintf(text + used, room - used, "), }");
    /* The header ends in a newline; blanks before it fill up to the alignment. */
    size_t total = (MAGIC_BYTES + used + 1 + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    size_t text_bytes = total - MAGIC_BYTES;
    memset(text + used, ' ', text_bytes - used);
    text[text_bytes - 1] = '\n';
    static const char magic[8] = {'\x93', 'N', 'U', 'M', 'P', 'Y', 1, 0};
    memcpy(header_out, magic, sizeof magic);
    header_out[8] = (char)(text_bytes & 0xff);
    header_out[9] = (char)(text_bytes >> 8);
    return total;
}

json_t *npy_describe(const npy_feature *feature) {
    json_t *arrays = json_array();
    json_array_append_new(arrays, json_string("values"));
    if (feature->layout != PRESTO_LAYOUT_DENSE)
        json_array_append_new(arrays, json_string("offsets"));
    if (feature->has_rows)
        json_array_append_new(arrays, json_string("rows"));
    if (feature->has_shapes)
        json_array_append_new(arrays, json_string("shapes"));
    return json_pack("{s:s,s:s,s:s,s:o}", "name", feature->name, "layout",
                     presto_layout_name(feature->layout), "dtype",
                     presto_dtype_name(feature->dtype), "arrays", arrays);
}

presto_status npy_message(json_t *json, presto_buffer *out, presto_error *err) {
    char *text = json == NULL ? NULL : json_dumps(json, JSON_COMPACT);
    json_decref(json);
    if (text == NULL)
        return presto_fail(err, PRESTO_ERR_TYPE, PRESTO_NO_OFFSET,
                           "cannot describe the features: no memory, or a name that is not UTF-8");
    size_t bytes = strlen(text);
    size_t padded = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    presto_tensor_spec spec = {.dtype = PRESTO_STRING};
    char header[NPY_HEADER_BYTES];
    size_t header_bytes = npy_format_header(&spec, padded, header);
    out->bytes = 0;
    presto_status status = presto_buffer_reserve(out, header_bytes + padded, err);
    if (status == PRESTO_OK) {
        memcpy(out->data, header, header_bytes);
        memcpy(out->data + header_bytes, text, bytes);
        memset(out->data + header_bytes + bytes, ' ', padded - bytes);
        out->bytes = header_bytes + padded;
    }
    free(text);
    return status;
}
