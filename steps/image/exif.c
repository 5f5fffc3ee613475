/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The orientation in EXIF data. EXIF is a TIFF file without pixels: a byte order, and the offset of
 * a directory of 12-byte entries. JPEG has it in a segment APP1, PNG in a chunk eXIf.
 * Source: Exif 2.32 (CIPA DC-008), 4.5.2 and 4.6.4; PNG third edition, 11.3.4.5.
 */
#include "orientation_internal.h"

#define UPRIGHT 1
#define TAG_ORIENTATION 0x0112
#define ENTRY_BYTES 12

enum { TYPE_BYTE = 1, TYPE_SHORT = 3, TYPE_LONG = 4 };

static uint32_t number_at(presto_span in, size_t at, size_t bytes, bool is_little) {
    uint32_t value = 0;
    for (size_t i = 0; i < bytes; i++)
        value = value << 8 | in.data[at + (is_little ? bytes - 1 - i : i)];
    return value;
}

/* The value of an entry; 0 if it is no number that fits into the entry. */
static uint32_t value_of(presto_span tiff, size_t entry, bool is_little) {
    if (number_at(tiff, entry + 4, 4, is_little) != 1)
        return 0;
    switch (number_at(tiff, entry + 2, 2, is_little)) {
    case TYPE_BYTE:
        return number_at(tiff, entry + 8, 1, is_little);
    case TYPE_SHORT:
        return number_at(tiff, entry + 8, 2, is_little);
    case TYPE_LONG:
        return number_at(tiff, entry + 8, 4, is_little);
    default:
        return 0;
    }
}

static int orientation_in_tiff(presto_span tiff) {
    if (tiff.bytes < 8)
        return UPRIGHT;
    bool is_little = memcmp(tiff.data, "II*\0", 4) == 0;
    if (!is_little && memcmp(tiff.data, "MM\0*", 4) != 0)
        return UPRIGHT;
    size_t directory = number_at(tiff, 4, 4, is_little);
    if (directory > tiff.bytes - 2)
        return UPRIGHT;
    size_t count = number_at(tiff, directory, 2, is_little);
    size_t room = (tiff.bytes - directory - 2) / ENTRY_BYTES;
    for (size_t i = 0; i < count && i < room; i++) {
        size_t entry = directory + 2 + i * ENTRY_BYTES;
        if (number_at(tiff, entry, 2, is_little) != TAG_ORIENTATION)
            continue;
        uint32_t value = value_of(tiff, entry, is_little);
        return value >= 1 && value <= 8 ? (int)value : UPRIGHT;
    }
    return UPRIGHT;
}

/* Segments up to the start of the pixels: 0xff, marker, length of what follows with itself. */
static int orientation_in_jpeg(presto_span in) {
    static const uint8_t name[6] = "Exif\0";
    size_t at = 2;
    while (at + 4 <= in.bytes && in.data[at] == 0xff) {
        uint8_t marker = in.data[at + 1];
        if (marker == 0xff) { /* a fill byte */
            at++;
            continue;
        }
        size_t length = number_at(in, at + 2, 2, false);
        if (marker == 0xda || length < 2 || length > in.bytes - at - 2)
            return UPRIGHT;
        const uint8_t *content = in.data + at + 4;
        if (marker == 0xe1 && length >= 2 + sizeof name && memcmp(content, name, sizeof name) == 0)
            return orientation_in_tiff(
                presto_span_of(content + sizeof name, length - 2 - sizeof name));
        at += 2 + length;
    }
    return UPRIGHT;
}

/* Chunks: length, name, content, checksum. */
static int orientation_in_png(presto_span in) {
    size_t at = 8;
    while (in.bytes - at >= 12) {
        size_t length = number_at(in, at, 4, false);
        if (length > in.bytes - at - 12)
            return UPRIGHT;
        if (memcmp(in.data + at + 4, "eXIf", 4) == 0)
            return orientation_in_tiff(presto_span_of(in.data + at + 8, length));
        at += 12 + length;
    }
    return UPRIGHT;
}

int presto__exif_orientation(presto_span image) {
    if (image.bytes >= 2 && image.data[0] == 0xff && image.data[1] == 0xd8)
        return orientation_in_jpeg(image);
    if (image.bytes >= 8 && memcmp(image.data, "\x89PNG\r\n\x1a\n", 8) == 0)
        return orientation_in_png(image);
    return UPRIGHT;
}
