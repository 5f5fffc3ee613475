/* SPDX-License-Identifier: Apache-2.0 */
#include "flat.h"

#include <string.h>

size_t flat_room(flat *self, size_t bytes, size_t alignment, size_t before) {
    size_t start = self->bytes.bytes;
    size_t gap = (alignment - (start + before) % alignment) % alignment;
    if (self->status >= 0)
        self->status = presto_buffer_reserve(&self->bytes, gap + bytes, self->err);
    if (self->status < 0)
        return 0;
    memset(self->bytes.data + start, 0, gap + bytes);
    self->bytes.bytes = start + gap + bytes;
    return start + gap;
}

void flat_set(flat *self, size_t position, int64_t value, size_t bytes) {
    uint64_t rest = (uint64_t)value;
    for (size_t i = 0; i < bytes && self->status >= 0; i++, rest >>= 8)
        self->bytes.data[position + i] = (uint8_t)rest;
}

/* Every field has eight bytes, so that each is aligned whatever its width. */
size_t flat_table(flat *self, const flat_field *fields, size_t count) {
    size_t vtable_bytes = 4 + 2 * count, table_bytes = 4 + 8 * count;
    size_t vtable = flat_room(self, vtable_bytes, 2, 0);
    size_t table = flat_room(self, table_bytes, 8, 4);
    flat_set(self, vtable, (int64_t)vtable_bytes, 2);
    flat_set(self, vtable + 2, (int64_t)table_bytes, 2);
    flat_set(self, table, (int64_t)(table - vtable), 4);
    for (size_t i = 0; i < count; i++) {
        if (fields[i].bytes == 0)
            continue;
        flat_set(self, vtable + 4 + 2 * i, (int64_t)(4 + 8 * i), 2);
        flat_set(self, flat_in_table(table, i), fields[i].value, fields[i].bytes);
    }
    return table;
}

size_t flat_string(flat *self, const char *text) {
    size_t bytes = strlen(text);
    size_t at = flat_room(self, 4 + bytes + 1, 4, 0);
    flat_set(self, at, (int64_t)bytes, 4);
    if (self->status >= 0)
        memcpy(self->bytes.data + at + 4, text, bytes);
    return at;
}

size_t flat_offsets(flat *self, size_t count) {
    size_t at = flat_room(self, 4 + 4 * count, 4, 0);
    flat_set(self, at, (int64_t)count, 4);
    return at;
}

size_t flat_structs(flat *self, const int64_t *numbers, size_t width, size_t count) {
    size_t at = flat_room(self, 4 + 8 * width * count, 8, 4);
    flat_set(self, at, (int64_t)count, 4);
    for (size_t i = 0; i < width * count; i++)
        flat_set(self, at + 4 + 8 * i, numbers[i], 8);
    return at;
}

void flat_point(flat *self, size_t at, size_t target) {
    flat_set(self, at, (int64_t)(target - at), 4);
}
