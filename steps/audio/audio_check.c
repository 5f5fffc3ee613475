/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which format an audio file has, and is it whole? Walks the containers of WAV, Ogg and MP3 from
 * header to header. No sample is decoded here.
 */
#include <presto/numbers.h>

#include "../../base/content_internal.h"
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

/*
 * Writers into a pipe cannot go back to fill in the size of the data. What they leave is 0, or a size
 * that no such file has: 0xffffffff (ffmpeg), 0x7ffff000 (sox, espeak), 0x7fffffff (lame, opusdec),
 * 0x80000000 (arecord), or one of them less what the headers take, or rounded to whole frames.
 */
#define WAV_FRAMES_AND_HEADERS 0x10000U

static bool wav_is_placeholder(uint64_t size) {
    uint64_t half = (uint64_t)1 << 31, whole = (uint64_t)1 << 32;
    return (size >= half - WAV_FRAMES_AND_HEADERS && size <= half + WAV_FRAMES_AND_HEADERS) ||
           (size >= whole - WAV_FRAMES_AND_HEADERS && size < whole) || size > (uint64_t)1 << 62;
}

/* Nothing but chunks up to the end: what stands behind data of size 0 is no sound then. */
static bool wav_ends_in_chunks(presto_span in, size_t at, bool is_big) {
    while (in.bytes - at >= 8) {
        for (size_t i = 0; i < 4; i++)
            if (in.data[at + i] < ' ' || in.data[at + i] > '~')
                return false;
        uint64_t size = is_big ? read_be32(in.data + at + 4) : read_le32(in.data + at + 4);
        if (size > in.bytes - at - 8)
            return false;
        at += 8 + (size_t)size;
        at += size % 2 != 0 && at < in.bytes;
    }
    return at == in.bytes;
}

/* The size of the data of a large WAV stands in the chunk ds64; 0: nowhere. */
static uint64_t wav_large_bytes(presto_span in) {
    if (!has_text(in, 12, "ds64") || in.bytes < 36)
        return 0;
    return (uint64_t)read_le32(in.data + 32) << 32 | read_le32(in.data + 28);
}

/* libsndfile is told the real size, and reads a large WAV as one that is not. */
static void wav_patch(presto__sound *sound, size_t size_at, size_t bytes, bool is_big) {
    memcpy(sound->patches[0].bytes, is_big ? "RIFX" : "RIFF", 4);
    sound->patches[1].at = size_at;
    for (size_t i = 0; i < 4; i++)
        sound->patches[1].bytes[is_big ? 3 - i : i] = (uint8_t)(bytes >> (8 * i));
    sound->patch_count = 2;
}

/* MP3 in a WAV: the tag that its format chunk starts with. */
#define WAV_MP3 0x55

static bool wav_has_mp3(presto_span in, size_t chunk, bool is_big) {
    return has_text(in, chunk, "fmt ") && in.bytes - chunk >= 10 &&
           in.data[chunk + (is_big ? 9 : 8)] == WAV_MP3 && in.data[chunk + (is_big ? 8 : 9)] == 0;
}

/* The data chunk is at `at`: how much of it is sound? */
static presto_status wav_data(presto_span in, size_t at, presto__sound *sound, size_t *bytes_out,
                              presto_error *err) {
    bool is_big = has_text(in, 0, "RIFX"), is_large = in.data[1] != 'I';
    uint64_t size = is_big ? read_be32(in.data + at + 4) : read_le32(in.data + at + 4);
    size_t left = in.bytes - at - 8;
    if (is_large && size == UINT32_MAX)
        size = wav_large_bytes(in);
    bool is_open = size == 0 ? !wav_ends_in_chunks(in, at + 8, is_big)
                             : size > left && wav_is_placeholder(size);
    if (is_open)
        size = left;
    if (size > left)
        return presto_fail(err, PRESTO_ERR_TRUNCATED, in.bytes,
                           "truncated WAV: the chunk at byte %zu has %zu of %ju byte%s", at, left,
                           (uintmax_t)size, presto_plural(size));
    if (is_open && size >= UINT32_MAX)
        return presto_fail(err, PRESTO_ERR_LIMIT, at,
                           "a WAV of %ju bytes that does not tell its size", (uintmax_t)size);
    if ((is_open || is_large) && size < UINT32_MAX)
        wav_patch(sound, at + 4, (size_t)size, is_big);
    *bytes_out = (size_t)size;
    return PRESTO_OK;
}

/* *mp3_out is the data if it is MP3. */
static presto_status check_wav(presto_span in, presto__sound *sound, presto_span *mp3_out,
                               presto_error *err) {
    bool is_big = has_text(in, 0, "RIFX");
    bool is_mp3 = false;
    size_t at = 12;
    while (in.bytes - at >= 8) {
        uint32_t size = is_big ? read_be32(in.data + at + 4) : read_le32(in.data + at + 4);
        size_t left = in.bytes - at - 8, bytes = 0;
        if (has_text(in, at, "data")) {
            PRESTO_TRY(wav_data(in, at, sound, &bytes, err));
            if (is_mp3)
                *mp3_out = presto_span_of(in.data + at + 8, bytes);
            return PRESTO_OK;
        }
        if (size > left)
            return presto_fail(err, PRESTO_ERR_TRUNCATED, in.bytes,
                               "truncated WAV: the chunk at byte %zu has %zu of %u byte%s", at,
                               left, size, presto_plural(size));
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
    bool is_free;      /* of free format: its bit rate is in no table, so `bytes` is not known */
    size_t padding;    /* 0 or 1, part of `bytes` */
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
    bool is_free = (header >> 12 & 15) == 0;
    if (header >> 21 != 0x7ff || version == 1 || (header >> 17 & 3) != LAYER_3 || rate == 0 ||
        (kilo == 0 && !is_free))
        return false;
    rate = version == VERSION_2 ? rate / 2 : version == VERSION_2_5 ? rate / 4 : rate;
    bool is_mono = (header >> 6 & 3) == MONO;
    frame_out->is_free = is_free;
    frame_out->padding = header >> 9 & 1;
    frame_out->bytes = is_free ? 0 : (is_low ? 72000U : 144000U) * kilo / rate + frame_out->padding;
    frame_out->side_bytes = is_low ? (is_mono ? 9 : 17) : (is_mono ? 17 : 32);
    frame_out->kind = header & MP3_KIND_MASK;
    return true;
}

/* Frames of free format have one size in a file, but for the padding: it is that of the first one,
 * found by looking for the next one. 0: not known yet. */
typedef struct mp3_stream {
    presto_span in;
    uint32_t kind;
    size_t free_bytes;
} mp3_stream;

/* The largest is of 640 kbit/s at 8 kHz. */
#define MP3_FREE_MOST 5761

static bool mp3_frame_of(const mp3_stream *stream, size_t at, mp3_frame *frame_out) {
    if (!mp3_frame_at(stream->in, at, frame_out) || frame_out->kind != stream->kind)
        return false;
    if (frame_out->is_free)
        frame_out->bytes = stream->free_bytes + frame_out->padding;
    return true;
}

/* The first of three frames of free format in a row, or of two that end the file. */
static bool mp3_find_size(mp3_stream *stream, size_t at, const mp3_frame *first) {
    mp3_frame next, third;
    size_t end = stream->in.bytes - at > MP3_FREE_MOST ? at + MP3_FREE_MOST : stream->in.bytes;
    for (size_t next_at = at + 4 + first->side_bytes; next_at < end; next_at++) {
        stream->free_bytes = next_at - at - first->padding;
        if (stream->in.data[next_at] == 0xff && mp3_frame_of(stream, next_at, &next) &&
            next.is_free &&
            (next.bytes >= stream->in.bytes - next_at ||
             (mp3_frame_of(stream, next_at + next.bytes, &third) && third.is_free)))
            return true;
    }
    stream->free_bytes = 0;
    return false;
}

/*
 * The first of two frames in a row, or of a frame that ends the file, at `from` or behind:
 * SIZE_MAX if there is none. The size of free frames is found out only `with_size`.
 */
static size_t mp3_find(mp3_stream *stream, size_t from, size_t until, bool with_size) {
    mp3_frame first, next;
    presto_span in = stream->in;
    for (size_t at = from; at < until && in.bytes - at >= 4; at++) {
        if (in.data[at] != 0xff || !mp3_frame_at(in, at, &first))
            continue;
        stream->kind = first.kind;
        if (first.is_free) {
            if (with_size && mp3_find_size(stream, at, &first))
                return at;
            continue;
        }
        if (first.bytes == in.bytes - at || mp3_frame_of(stream, at + first.bytes, &next))
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

/* What the encoder noted in the first frame. */
typedef struct mp3_promise {
    uint32_t frames; /* that follow the first one; some encoders count it, too. 0: not noted */
    uint32_t bytes;  /* of all frames; 0: not noted */
} mp3_promise;

static mp3_promise mp3_promised(presto_span in, size_t at, const mp3_frame *first) {
    size_t tag = at + 4 + first->side_bytes;
    enum { HAS_FRAMES = 1, HAS_BYTES = 2 };
    mp3_promise promise = {0};
    if ((!has_text(in, tag, "Xing") && !has_text(in, tag, "Info")) || in.bytes - tag < 16)
        return promise;
    uint32_t flags = read_be32(in.data + tag + 4);
    if ((flags & HAS_FRAMES) != 0)
        promise.frames = read_be32(in.data + tag + 8);
    if ((flags & HAS_BYTES) != 0)
        promise.bytes = read_be32(in.data + tag + ((flags & HAS_FRAMES) != 0 ? 12 : 8));
    return promise;
}

/* What may follow the last frame: nothing, tags, or what no decoder takes for sound. */
static presto_status check_mp3_tail(mp3_stream *stream, size_t at, presto_error *err) {
    presto_span in = stream->in;
    if (at == in.bytes || has_text(in, at, "APETAGEX") || has_text(in, at, "LYRICSBEGIN") ||
        has_text(in, at, "ID3"))
        return PRESTO_OK;
    if (mp3_find(stream, at, in.bytes, false) != SIZE_MAX)
        return presto_fail(err, PRESTO_ERR_CORRUPT, at,
                           "damaged MP3: no frame starts here, but others follow");
    return PRESTO_OK;
}

/*
 * Is as much there as the encoder promised? `count` whole frames follow the first one, and `cut` is
 * what the one behind lacks, 0: there is none. Decoders leave that one out without a word,
 * so one such frame is no loss that is to be reported. Of encoders that count the first frame, too, the
 * number of bytes tells that nothing is missing.
 */
static bool mp3_is_whole(const mp3_promise *promise, uint64_t count, size_t bytes, size_t cut) {
    uint64_t missing = promise->bytes > bytes ? promise->bytes - bytes : 0;
    if (promise->frames <= count + (cut > 0))
        return true;
    if (promise->frames > count + (cut > 0) + 1)
        return false;
    return missing <= cut;
}

/* Those that stand behind each other from `at` on. Of an ID3v1 tag, nothing is taken for sound. */
static presto_status check_mp3(mp3_stream *stream, size_t at, presto__sound *sound_out,
                               presto_error *err) {
    const size_t start = at;
    mp3_frame first = {0};
    mp3_frame frame;
    uint64_t count = 0;
    size_t cut = 0;
    if (stream->in.bytes - at > 128 && has_text(stream->in, stream->in.bytes - 128, "TAG"))
        stream->in.bytes -= 128;
    const presto_span in = stream->in;
    mp3_frame_at(in, at, &first);
    stream->kind = first.kind;
    mp3_promise promise = mp3_promised(in, at, &first);
    while (cut == 0 && mp3_frame_of(stream, at, &frame)) {
        if (frame.is_free && stream->free_bytes == 0) {
            if (!mp3_find_size(stream, at, &frame))
                break;
            frame.bytes = stream->free_bytes + frame.padding;
        }
        if (frame.bytes > in.bytes - at) {
            cut = frame.bytes - (in.bytes - at);
        } else {
            at += frame.bytes;
            count++;
        }
    }
    if (count == 0)
        return presto_fail(err, PRESTO_ERR_TRUNCATED, in.bytes,
                           "truncated MP3: its first frame does not end");
    if (cut == 0 && at < in.bytes && in.bytes - at < 4 && in.data[at] == 0xff)
        cut = 1;
    if (cut == 0)
        PRESTO_TRY(check_mp3_tail(stream, at, err));
    if (!mp3_is_whole(&promise, count - 1, (cut > 0 ? in.bytes : at) - start, cut))
        return presto_fail(err, PRESTO_ERR_TRUNCATED, in.bytes,
                           "truncated MP3: it has %ju of %u frame%s", (uintmax_t)count - 1,
                           promise.frames, presto_plural(promise.frames));
    *sound_out = (presto__sound){.bytes = presto_span_of(in.data + start, at - start),
                                 .kind = PRESTO__SOUND_MP3,
                                 .length = promise.frames == 0      ? PRESTO__MP3_UNNOTED
                                           : promise.frames < count ? PRESTO__MP3_NOTED
                                                                    : PRESTO__MP3_SHORT};
    return PRESTO_OK;
}

/* ---- all ---- */

static bool is_decoded(const presto__content *content) {
    static const char *const names[] = {"wav", "flac", "ogg", "mp3"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(content->name, names[i]) == 0)
            return true;
    return false;
}

static presto_status fail_unknown(presto_span in, presto_error *err) {
    const presto__content *content = presto__content_of(in);
    if (in.bytes == 0)
        return presto_fail(err, PRESTO_ERR_TRUNCATED, 0, "the file is empty");
    if (content == NULL || is_decoded(content))
        return presto_fail(err, PRESTO_ERR_CORRUPT, 0, "neither WAV, FLAC, Ogg nor MP3");
    return presto__content_refuse(content, PRESTO__CONTENT_SOUND, "WAV, FLAC, Ogg or MP3", err);
}

static presto_status check_riff(presto_span in, presto__sound *sound_out, presto_error *err) {
    presto_span mp3 = {0};
    presto__sound sound = {.bytes = in};
    PRESTO_TRY(check_wav(in, &sound, &mp3, err));
    if (mp3.data == NULL) {
        *sound_out = sound;
        return PRESTO_OK;
    }
    size_t at = (size_t)(mp3.data - in.data);
    presto_span until_end = presto_span_of(in.data, at + mp3.bytes);
    size_t until = mp3.bytes > MP3_SEARCH_BYTES ? at + MP3_SEARCH_BYTES : until_end.bytes;
    mp3_stream stream = {.in = until_end};
    size_t first = mp3_find(&stream, at, until, true);
    if (first == SIZE_MAX)
        return presto_fail(err, PRESTO_ERR_CORRUPT, at, "damaged WAV: its data is no MP3");
    return check_mp3(&stream, first, sound_out, err);
}

presto_status presto__audio_check(presto_span in, presto__sound *sound_out, presto_error *err) {
    bool is_riff = has_text(in, 0, "RIFF") || has_text(in, 0, "RIFX") || has_text(in, 0, "RF64") ||
                   has_text(in, 0, "BW64");
    if (is_riff && has_text(in, 8, "WAVE"))
        return check_riff(in, sound_out, err);
    size_t at = id3_end(in);
    if (has_text(in, 0, "OggS"))
        PRESTO_TRY(check_ogg(in, err));
    else if (!has_text(in, at, "fLaC")) {
        size_t until = in.bytes - at > MP3_SEARCH_BYTES ? at + MP3_SEARCH_BYTES : in.bytes;
        mp3_stream stream = {.in = in};
        at = mp3_find(&stream, at, until, true);
        return at == SIZE_MAX ? fail_unknown(in, err) : check_mp3(&stream, at, sound_out, err);
    }
    presto_span bytes = presto_span_of(in.data + at, in.bytes - at);
    *sound_out = (presto__sound){.bytes = bytes,
                                 .kind = presto__sound_is_flac(bytes) ? PRESTO__SOUND_FLAC
                                                                      : PRESTO__SOUND_FILE};
    return PRESTO_OK;
}
