/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which format an audio file has, and is it whole? Walks the containers of WAV, Ogg and MP3 from
 * header to header. No sample is decoded here.
 */
#include <presto/numbers.h>

#include "audio_internal.h"

/* An MP3 may have so many bytes of something else before its first frame, tags not counted. */
#define MP3_SEARCH_BYTES 65536

static uint32_t read_le32(const uint8_t *at) {
    return (uint32_t)at[3] << 24 | (uint32_t)at[2] << 16 | (uint32_t)at[1] << 8 | at[0];
}

static uint32_t read_be32(const uint8_t *at) {
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static bool has_text(presto_span in, size_t at, const char *text) {
    size_t bytes = strlen(text);
    return at <= in.bytes && in.bytes - at >= bytes && memcmp(in.data + at, text, bytes) == 0;
}

/* ---- WAV ---- */

/* Writers that do not know the size yet leave this one: the data then goes to the end. */
#define WAV_UNKNOWN_SIZE 0xffffffffU

/* What of a chunk must be there; the size of the data chunk of an RF64 stands in the chunk ds64. */
static uint64_t wav_data_bytes(presto_span in, uint32_t size) {
    bool has_sizes = has_text(in, 0, "RF64") && has_text(in, 12, "ds64") && in.bytes >= 36;
    if (size != WAV_UNKNOWN_SIZE)
        return size;
    return has_sizes ? (uint64_t)read_le32(in.data + 32) << 32 | read_le32(in.data + 28) : 0;
}

/* MP3 in a WAV: the tag that its format chunk starts with. */
#define WAV_MP3 0x55

static bool wav_has_mp3(presto_span in, size_t chunk, bool is_big) {
    return has_text(in, chunk, "fmt ") && in.bytes - chunk >= 10 &&
           in.data[chunk + (is_big ? 9 : 8)] == WAV_MP3 && in.data[chunk + (is_big ? 8 : 9)] == 0;
}

/* *mp3_out is the data if it is MP3. */
static presto_status check_wav(presto_span in, presto_span *mp3_out, presto_error *err) {
    bool is_big = has_text(in, 0, "RIFX");
    bool is_mp3 = false;
    size_t at = 12;
    while (in.bytes - at >= 8) {
        uint32_t size = is_big ? read_be32(in.data + at + 4) : read_le32(in.data + at + 4);
        size_t left = in.bytes - at - 8;
        bool is_data = has_text(in, at, "data");
        uint64_t wanted = is_data ? wav_data_bytes(in, size) : size;
        if (wanted > left)
            return presto_fail(err, PRESTO_ERR_TRUNCATED, in.bytes,
                               "truncated WAV: the chunk at byte %zu has %zu of %ju byte%s", at,
                               left, (uintmax_t)wanted, presto_plural(wanted));
        if (is_data) {
            size_t bytes = size == WAV_UNKNOWN_SIZE ? left : (size_t)wanted;
            if (is_mp3)
                *mp3_out = presto_span_of(in.data + at + 8, bytes);
            return PRESTO_OK;
        }
        is_mp3 |= wav_has_mp3(in, at, is_big);
        at += 8 + (size_t)size;
        at += size % 2 != 0 && at < in.bytes;
    }
    return presto_fail(err, PRESTO_ERR_TRUNCATED, in.bytes, "truncated WAV: there is no data");
}

/* ---- Ogg ---- */

#define OGG_HEADER_BYTES 27
#define OGG_LAST_PAGE 4

static size_t ogg_page_bytes(presto_span in, size_t at) {
    size_t segments = in.data[at + 26];
    size_t bytes = OGG_HEADER_BYTES + segments;
    if (in.bytes - at < bytes)
        return SIZE_MAX;
    for (size_t i = 0; i < segments; i++)
        bytes += in.data[at + OGG_HEADER_BYTES + i];
    return bytes;
}

static presto_status check_ogg(presto_span in, presto_error *err) {
    size_t at = 0;
    bool is_last = false;
    while (in.bytes - at >= OGG_HEADER_BYTES) {
        if (!has_text(in, at, "OggS"))
            return presto_fail(err, PRESTO_ERR_CORRUPT, at, "damaged Ogg: no page starts here");
        size_t bytes = ogg_page_bytes(in, at);
        if (bytes > in.bytes - at)
            break;
        is_last = (in.data[at + 5] & OGG_LAST_PAGE) != 0;
        at += bytes;
    }
    if (at < in.bytes)
        return presto_fail(err, PRESTO_ERR_TRUNCATED, in.bytes,
                           "truncated Ogg: the page at byte %zu does not end", at);
    if (!is_last)
        return presto_fail(err, PRESTO_ERR_TRUNCATED, in.bytes,
                           "truncated Ogg: the last page is missing");
    return PRESTO_OK;
}

/* ---- MP3 ---- */

typedef struct mp3_frame {
    size_t bytes;
    size_t side_bytes; /* between the header and the main data */
    uint32_t kind;     /* of the header: what all frames of a file share */
} mp3_frame;

/* Version, layer and sampling rate. */
#define MP3_KIND_MASK 0xfffe0c00U

/* MPEG 1, 2 and 2.5, layer III, as ISO 11172-3 and 13818-3 have them. */
static bool mp3_frame_at(presto_span in, size_t at, mp3_frame *frame_out) {
    static const uint16_t kbits[2][16] = {
        {0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 0},
        {0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160, 0}};
    static const uint16_t rates[4] = {44100, 48000, 32000, 0};
    enum { VERSION_1 = 3, VERSION_2 = 2, VERSION_2_5 = 0, LAYER_3 = 1, MONO = 3 };
    if (at > in.bytes || in.bytes - at < 4)
        return false;
    uint32_t header = read_be32(in.data + at);
    unsigned version = header >> 19 & 3;
    bool is_low = version != VERSION_1;
    unsigned rate = rates[header >> 10 & 3];
    unsigned kilo = kbits[is_low][header >> 12 & 15];
    if (header >> 21 != 0x7ff || version == 1 || (header >> 17 & 3) != LAYER_3 || rate == 0 ||
        kilo == 0)
        return false;
    rate = version == VERSION_2 ? rate / 2 : version == VERSION_2_5 ? rate / 4 : rate;
    bool is_mono = (header >> 6 & 3) == MONO;
    frame_out->bytes = (is_low ? 72000U : 144000U) * kilo / rate + (header >> 9 & 1);
    frame_out->side_bytes = is_low ? (is_mono ? 9 : 17) : (is_mono ? 17 : 32);
    frame_out->kind = header & MP3_KIND_MASK;
    return true;
}

static bool mp3_frame_of(presto_span in, size_t at, uint32_t kind, mp3_frame *frame_out) {
    return mp3_frame_at(in, at, frame_out) && frame_out->kind == kind;
}

/* The first of two frames in a row, or of a frame that ends the file: SIZE_MAX if there is none. */
static size_t mp3_find(presto_span in, size_t from, size_t until) {
    mp3_frame first, next;
    for (size_t at = from; at < until && in.bytes - at >= 4; at++) {
        if (in.data[at] != 0xff || !mp3_frame_at(in, at, &first))
            continue;
        if (first.bytes == in.bytes - at || mp3_frame_of(in, at + first.bytes, first.kind, &next))
            return at;
    }
    return SIZE_MAX;
}

/* Behind the ID3v2 tags that start a file. */
static size_t id3_end(presto_span in) {
    size_t at = 0;
    while (has_text(in, at, "ID3") && in.bytes - at >= 10) {
        const uint8_t *size = in.data + at + 6;
        size_t bytes = ((size_t)(size[0] & 127) << 21 | (size_t)(size[1] & 127) << 14 |
                        (size_t)(size[2] & 127) << 7 | (size[3] & 127)) +
                       ((in.data[at + 5] & 0x10) != 0 ? 20 : 10);
        if (bytes > in.bytes - at)
            return in.bytes;
        at += bytes;
    }
    return at;
}

/* How many frames follow the first one, as the encoder noted in it; 0: it did not. */
static uint32_t mp3_promised(presto_span in, size_t at, const mp3_frame *first) {
    size_t tag = at + 4 + first->side_bytes;
    enum { HAS_FRAMES = 1 };
    if ((!has_text(in, tag, "Xing") && !has_text(in, tag, "Info")) || in.bytes - tag < 12)
        return 0;
    return (read_be32(in.data + tag + 4) & HAS_FRAMES) != 0 ? read_be32(in.data + tag + 8) : 0;
}

/* What may follow the last frame: nothing, tags, or what no decoder takes for sound. */
static presto_status check_mp3_tail(presto_span in, size_t at, presto_error *err) {
    if (at == in.bytes || has_text(in, at, "TAG") || has_text(in, at, "APETAGEX") ||
        has_text(in, at, "LYRICSBEGIN") || has_text(in, at, "ID3"))
        return PRESTO_OK;
    if (in.bytes - at < 4 && in.data[at] == 0xff)
        return presto_fail(err, PRESTO_ERR_TRUNCATED, in.bytes,
                           "truncated MP3: the frame at byte %zu does not end", at);
    if (mp3_find(in, at, in.bytes) != SIZE_MAX)
        return presto_fail(err, PRESTO_ERR_CORRUPT, at,
                           "damaged MP3: no frame starts here, but others follow");
    return PRESTO_OK;
}

static presto_status check_mp3(presto_span in, size_t at, presto__sound *sound_out,
                               presto_error *err) {
    const size_t start = at;
    mp3_frame first = {0};
    mp3_frame frame;
    uint64_t count = 0;
    mp3_frame_at(in, at, &first);
    uint32_t promised = mp3_promised(in, at, &first);
    for (; mp3_frame_of(in, at, first.kind, &frame); at += frame.bytes, count++)
        if (frame.bytes > in.bytes - at)
            return presto_fail(err, PRESTO_ERR_TRUNCATED, in.bytes,
                               "truncated MP3: the frame at byte %zu does not end", at);
    PRESTO_TRY(check_mp3_tail(in, at, err));
    if (count - 1 < promised)
        return presto_fail(err, PRESTO_ERR_TRUNCATED, in.bytes,
                           "truncated MP3: it has %ju of %u frame%s", (uintmax_t)count - 1,
                           promised, presto_plural(promised));
    *sound_out = (presto__sound){.bytes = presto_span_of(in.data + start, at - start),
                                 .kind = PRESTO__SOUND_MP3,
                                 .is_counted = promised > 0};
    return PRESTO_OK;
}

/* ---- all ---- */

static presto_status fail_unknown(presto_span in, presto_error *err) {
    const char *what = in.bytes == 0                         ? "the file is empty"
                       : has_text(in, 4, "ftyp")             ? "an MP4"
                       : has_text(in, 0, "FORM")             ? "an AIFF"
                       : has_text(in, 0, ".snd")             ? "an AU"
                       : has_text(in, 0, "\x1a\x45\xdf\xa3") ? "a Matroska or WebM"
                                                             : NULL;
    return presto_fail(err, in.bytes == 0 ? PRESTO_ERR_TRUNCATED : PRESTO_ERR_CORRUPT, 0, "%s%s",
                       what == NULL ? "neither WAV, FLAC, Ogg nor MP3" : what,
                       what == NULL || in.bytes == 0 ? ""
                                                     : ", but WAV, FLAC, Ogg or MP3 is needed");
}

static presto_status check_riff(presto_span in, presto__sound *sound_out, presto_error *err) {
    presto_span mp3 = {0};
    PRESTO_TRY(check_wav(in, &mp3, err));
    if (mp3.data == NULL) {
        *sound_out = (presto__sound){.bytes = in};
        return PRESTO_OK;
    }
    size_t at = (size_t)(mp3.data - in.data);
    presto_span until_end = presto_span_of(in.data, at + mp3.bytes);
    size_t first = mp3_find(until_end, at, until_end.bytes);
    if (first == SIZE_MAX)
        return presto_fail(err, PRESTO_ERR_CORRUPT, at, "damaged WAV: its data is no MP3");
    return check_mp3(until_end, first, sound_out, err);
}

presto_status presto__audio_check(presto_span in, presto__sound *sound_out, presto_error *err) {
    bool is_riff = has_text(in, 0, "RIFF") || has_text(in, 0, "RIFX") || has_text(in, 0, "RF64");
    if (is_riff && has_text(in, 8, "WAVE"))
        return check_riff(in, sound_out, err);
    size_t at = id3_end(in);
    if (has_text(in, 0, "OggS"))
        PRESTO_TRY(check_ogg(in, err));
    else if (!has_text(in, at, "fLaC")) {
        size_t until = in.bytes - at > MP3_SEARCH_BYTES ? at + MP3_SEARCH_BYTES : in.bytes;
        at = mp3_find(in, at, until);
        return at == SIZE_MAX ? fail_unknown(in, err) : check_mp3(in, at, sound_out, err);
    }
    *sound_out = (presto__sound){.bytes = presto_span_of(in.data + at, in.bytes - at)};
    return PRESTO_OK;
}
