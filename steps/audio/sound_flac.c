/* SPDX-License-Identifier: Apache-2.0 */
/*
 * FLAC by libFLAC, out of memory: of all depths, where libsndfile has 8, 16 and 24 bits only. Deeper
 * samples lose their low bits, as in libsndfile. What a frame says of itself must be what the stream
 * says.
 */
#include <stdlib.h>

#include "audio_internal.h"

/* Magic, and the start of the block STREAMINFO, which comes first. */
#define FLAC_MARK "fLaC"
#define OGG_PACKET_AT 28
#define OGG_FLAC_MARK                                                                              \
    "\x7f"                                                                                         \
    "FLAC"

bool presto__sound_is_flac(presto_span in) {
    if (in.bytes >= 4 && memcmp(in.data, FLAC_MARK, 4) == 0)
        return true;
    return presto__sound_is_ogg_flac(in);
}

bool presto__sound_is_ogg_flac(presto_span in) {
    return in.bytes >= OGG_PACKET_AT + 5 && memcmp(in.data, "OggS", 4) == 0 &&
           memcmp(in.data + OGG_PACKET_AT, OGG_FLAC_MARK, 5) == 0;
}

#if PRESTO_HAVE_FLAC
#include <FLAC/stream_decoder.h>

typedef struct flac_reader {
    presto__sound *sound;
    FLAC__StreamDecoder *decoder;
    unsigned bits;
    bool has_info;
    /* The frame that was decoded last, interleaved: what of it is still to be given away. */
    int16_t *block;
    size_t block_capacity, block_values, block_at;
    uint64_t decoded;     /* samples a channel */
    presto_error failure; /* the first; its status is PRESTO_OK if there is none */
} flac_reader;

static FLAC__StreamDecoderReadStatus read_bytes(const FLAC__StreamDecoder *decoder, FLAC__byte *out,
                                                size_t *bytes, void *user) {
    (void)decoder;
    *bytes = presto__sound_bytes_read(((flac_reader *)user)->sound, out, *bytes);
    return *bytes > 0 ? FLAC__STREAM_DECODER_READ_STATUS_CONTINUE
                      : FLAC__STREAM_DECODER_READ_STATUS_END_OF_STREAM;
}

static FLAC__StreamDecoderTellStatus tell(const FLAC__StreamDecoder *decoder, FLAC__uint64 *at,
                                          void *user) {
    (void)decoder;
    *at = ((flac_reader *)user)->sound->at;
    return FLAC__STREAM_DECODER_TELL_STATUS_OK;
}

static void take_info(const FLAC__StreamDecoder *decoder, const FLAC__StreamMetadata *metadata,
                      void *user) {
    (void)decoder;
    flac_reader *reader = user;
    const FLAC__StreamMetadata_StreamInfo *info = &metadata->data.stream_info;
    if (metadata->type != FLAC__METADATA_TYPE_STREAMINFO || reader->has_info)
        return;
    reader->has_info = true;
    reader->bits = info->bits_per_sample;
    reader->sound->rate = info->sample_rate;
    reader->sound->channels = (int)info->channels;
    reader->sound->frames = info->total_samples == 0 ? UINT64_MAX : info->total_samples;
}

static void fail_once(flac_reader *reader, presto_status status, const char *what, uint64_t from,
                      uint64_t to) {
    if (reader->failure.status == PRESTO_OK)
        (void)presto_fail(&reader->failure, status, reader->sound->at,
                          "%s changes from %ju to %ju at sample %ju, which is not supported", what,
                          (uintmax_t)from, (uintmax_t)to, (uintmax_t)reader->decoded);
}

static void take_error(const FLAC__StreamDecoder *decoder, FLAC__StreamDecoderErrorStatus status,
                       void *user) {
    (void)decoder;
    flac_reader *reader = user;
    if (reader->failure.status == PRESTO_OK)
        (void)presto_fail(
            &reader->failure, PRESTO_ERR_CORRUPT, reader->sound->at, "damaged FLAC: %s",
            status == FLAC__STREAM_DECODER_ERROR_STATUS_LOST_SYNC    ? "no frame starts here"
            : status == FLAC__STREAM_DECODER_ERROR_STATUS_BAD_HEADER ? "the header of a frame"
            : status == FLAC__STREAM_DECODER_ERROR_STATUS_FRAME_CRC_MISMATCH
                ? "the checksum of a frame"
                : "a frame that no encoder writes");
}

/* Samples of `bits` bits, sign-extended, to 16 of them. */
static void take_channel(const flac_reader *reader, const FLAC__int32 *in, size_t count,
                         int16_t *out) {
    size_t channels = (size_t)reader->sound->channels;
    if (reader->bits >= 16)
        for (size_t i = 0; i < count; i++)
            out[i * channels] = (int16_t)(in[i] >> (reader->bits - 16));
    else
        for (size_t i = 0; i < count; i++)
            out[i * channels] = (int16_t)(in[i] * (1 << (16 - reader->bits)));
}

static FLAC__StreamDecoderWriteStatus take_frame(const FLAC__StreamDecoder *decoder,
                                                 const FLAC__Frame *frame,
                                                 const FLAC__int32 *const values[], void *user) {
    (void)decoder;
    flac_reader *reader = user;
    const presto__sound *sound = reader->sound;
    const FLAC__FrameHeader *header = &frame->header;
    if (header->sample_rate != (uint64_t)sound->rate)
        fail_once(reader, PRESTO_ERR_UNSUPPORTED, "the sampling rate", (uint64_t)sound->rate,
                  header->sample_rate);
    if (header->channels != (unsigned)sound->channels)
        fail_once(reader, PRESTO_ERR_UNSUPPORTED, "the number of channels",
                  (uint64_t)sound->channels, header->channels);
    if (header->bits_per_sample != reader->bits)
        fail_once(reader, PRESTO_ERR_UNSUPPORTED, "the number of bits", reader->bits,
                  header->bits_per_sample);
    size_t count = (size_t)header->blocksize * header->channels;
    if (reader->failure.status == PRESTO_OK && count > reader->block_capacity) {
        free(reader->block);
        reader->block = malloc(count * sizeof *reader->block);
        reader->block_capacity = reader->block == NULL ? 0 : count;
        if (reader->block == NULL)
            (void)presto_fail_memory(&reader->failure, count * sizeof *reader->block);
    }
    if (reader->failure.status != PRESTO_OK)
        return FLAC__STREAM_DECODER_WRITE_STATUS_ABORT;
    for (size_t c = 0; c < header->channels; c++)
        take_channel(reader, values[c], header->blocksize, reader->block + c);
    reader->block_values = count;
    reader->decoded += header->blocksize;
    reader->block_at = 0;
    return FLAC__STREAM_DECODER_WRITE_STATUS_CONTINUE;
}

static presto_status fail_as(const flac_reader *reader, presto_error *err) {
    if (reader->failure.status == PRESTO_OK)
        return presto_fail(err, PRESTO_ERR_CORRUPT, reader->sound->at, "damaged FLAC: %s",
                           FLAC__stream_decoder_get_resolved_state_string(reader->decoder));
    if (err != NULL)
        *err = reader->failure;
    return reader->failure.status;
}

/* Another stream behind the first one would be lost without a word. */
static presto_status check_end(flac_reader *reader, presto_error *err) {
    FLAC__uint64 end;
    presto_span in = reader->sound->bytes;
    if (!FLAC__stream_decoder_get_decode_position(reader->decoder, &end) || end > in.bytes)
        return PRESTO_OK;
    if (in.bytes - end >= 4 && memcmp(in.data + end, FLAC_MARK, 4) == 0)
        return presto_fail(err, PRESTO_ERR_UNSUPPORTED, end,
                           "several FLAC streams behind each other, which are not supported");
    return PRESTO_OK;
}

presto_status presto__sound_flac_open(presto__sound *sound, presto_error *err) {
    flac_reader *reader = calloc(1, sizeof *reader);
    if (reader == NULL)
        return presto_fail_memory(err, sizeof *reader);
    bool is_ogg = presto__sound_is_ogg_flac(sound->bytes);
    sound->handle = reader;
    reader->sound = sound;
    reader->decoder = FLAC__stream_decoder_new();
    if (reader->decoder == NULL)
        return presto_fail_memory(err, sizeof *reader->decoder);
    if (is_ogg && !FLAC_API_SUPPORTS_OGG_FLAC)
        return presto_fail(err, PRESTO_ERR_UNSUPPORTED, PRESTO_NO_OFFSET,
                           "FLAC in Ogg: libFLAC was built without it");
    FLAC__StreamDecoderInitStatus done =
        is_ogg
            ? FLAC__stream_decoder_init_ogg_stream(reader->decoder, read_bytes, NULL, tell, NULL,
                                                   NULL, take_frame, take_info, take_error, reader)
            : FLAC__stream_decoder_init_stream(reader->decoder, read_bytes, NULL, tell, NULL, NULL,
                                               take_frame, take_info, take_error, reader);
    if (done != FLAC__STREAM_DECODER_INIT_STATUS_OK)
        return presto_fail(err, PRESTO_ERR_MEMORY, PRESTO_NO_OFFSET, "libFLAC: %s",
                           FLAC__StreamDecoderInitStatusString[done]);
    if (!FLAC__stream_decoder_process_until_end_of_metadata(reader->decoder) ||
        reader->failure.status != PRESTO_OK)
        return fail_as(reader, err);
    if (!reader->has_info)
        return presto_fail(err, PRESTO_ERR_CORRUPT, 0,
                           "damaged FLAC: it does not say what it holds");
    return PRESTO_OK;
}

presto_status presto__sound_flac_read(presto__sound *sound, int16_t *out, size_t frames,
                                      size_t *got_out, presto_error *err) {
    flac_reader *reader = sound->handle;
    size_t channels = (size_t)sound->channels, wanted = frames * channels, done = 0;
    while (done < wanted) {
        if (reader->block_at == reader->block_values) {
            FLAC__StreamDecoderState state = FLAC__stream_decoder_get_state(reader->decoder);
            if (state == FLAC__STREAM_DECODER_END_OF_STREAM)
                break;
            if (!FLAC__stream_decoder_process_single(reader->decoder) ||
                reader->failure.status != PRESTO_OK)
                return fail_as(reader, err);
            continue;
        }
        size_t left = reader->block_values - reader->block_at;
        size_t count = wanted - done < left ? wanted - done : left;
        memcpy(out + done, reader->block + reader->block_at, count * sizeof *out);
        reader->block_at += count;
        done += count;
    }
    *got_out = done / channels;
    return reader->decoded >= sound->frames ? check_end(reader, err) : PRESTO_OK;
}

void presto__sound_flac_close(presto__sound *sound) {
    flac_reader *reader = sound->handle;
    sound->handle = NULL;
    if (reader == NULL)
        return;
    if (reader->decoder != NULL)
        FLAC__stream_decoder_delete(reader->decoder);
    free(reader->block);
    free(reader);
}

#else

/* libsndfile reads those of 8, 16 and 24 bits. */
presto_status presto__sound_flac_open(presto__sound *sound, presto_error *err) {
    presto_span in = sound->bytes;
    if (in.bytes >= 22 && memcmp(in.data, FLAC_MARK, 4) == 0) {
        unsigned bits = ((in.data[20] & 1U) << 4 | in.data[21] >> 4) + 1;
        if (bits != 8 && bits != 16 && bits != 24)
            return presto_fail(err, PRESTO_ERR_UNSUPPORTED, PRESTO_NO_OFFSET,
                               "FLAC of %u bits: this program was built without libFLAC", bits);
    }
    return presto__sound_file_open(sound, err);
}

presto_status presto__sound_flac_read(presto__sound *sound, int16_t *out, size_t frames,
                                      size_t *got_out, presto_error *err) {
    return presto__sound_file_read(sound, out, frames, got_out, err);
}

void presto__sound_flac_close(presto__sound *sound) {
    presto__sound_file_close(sound);
}

#endif
