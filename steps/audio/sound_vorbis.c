/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The headers of Vorbis in Ogg, by libogg and libvorbis. If libsndfile 1.2 cannot read them, what it
 * has allocated for them is lost, 6 kB a file: it does not get to see such a file.
 */
#include "audio_internal.h"

#if PRESTO_HAVE_OGG && PRESTO_HAVE_VORBIS
#include <ogg/ogg.h>
#include <vorbis/codec.h>

enum { HEADERS = 3, READ_BYTES = 4096 };

typedef struct headers {
    ogg_sync_state pages;
    ogg_stream_state packets;
    presto_span left; /* what libogg has not got yet */
} headers;

static presto_status fail_damaged(presto_error *err) {
    return presto_fail(err, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET, "damaged headers of an Ogg");
}

/* The pages are back to back: one that libogg passes over has a wrong checksum. */
static presto_status next_page(headers *self, ogg_page *page, presto_error *err) {
    for (;;) {
        int found = ogg_sync_pageout(&self->pages, page);
        if (found == 1)
            return PRESTO_OK;
        if (found < 0 || self->left.bytes == 0)
            return fail_damaged(err);
        size_t bytes = self->left.bytes < READ_BYTES ? self->left.bytes : READ_BYTES;
        char *room = ogg_sync_buffer(&self->pages, (long)bytes);
        if (room == NULL)
            return presto_fail_memory(err, bytes);
        memcpy(room, self->left.data, bytes);
        (void)ogg_sync_wrote(&self->pages, (long)bytes);
        self->left = presto_span_of(self->left.data + bytes, self->left.bytes - bytes);
    }
}

/* Of the stream that the first page belongs to. */
static presto_status next_packet(headers *self, ogg_packet *packet, presto_error *err) {
    for (;;) {
        ogg_page page;
        int found = ogg_stream_packetout(&self->packets, packet);
        if (found == 1)
            return PRESTO_OK;
        if (found < 0)
            return fail_damaged(err);
        PRESTO_TRY(next_page(self, &page, err));
        (void)ogg_stream_pagein(&self->packets, &page);
    }
}

static bool is_vorbis(const ogg_packet *first) {
    static const char begins[] = "\x01vorbis";
    return first->bytes >= (long)sizeof begins - 1 &&
           memcmp(first->packet, begins, sizeof begins - 1) == 0;
}

static bool can_be_read(ogg_packet *first) {
    vorbis_info info;
    vorbis_comment comment;
    vorbis_info_init(&info);
    vorbis_comment_init(&comment);
    int code = vorbis_synthesis_headerin(&info, &comment, first);
    vorbis_comment_clear(&comment);
    vorbis_info_clear(&info);
    return code == 0;
}

/* Of the second and third header, libsndfile needs no more than that they are there. */
static presto_status check_headers(headers *self, presto_error *err) {
    ogg_page page;
    ogg_packet packet;
    PRESTO_TRY(next_page(self, &page, err));
    if (ogg_stream_init(&self->packets, ogg_page_serialno(&page)) != 0)
        return presto_fail_memory(err, sizeof self->packets);
    (void)ogg_stream_pagein(&self->packets, &page);
    PRESTO_TRY(next_packet(self, &packet, err));
    if (!is_vorbis(&packet))
        return PRESTO_OK;
    if (!can_be_read(&packet))
        return fail_damaged(err);
    for (int i = 1; i < HEADERS; i++)
        PRESTO_TRY(next_packet(self, &packet, err));
    return PRESTO_OK;
}

presto_status presto__sound_vorbis_check(presto_span ogg, presto_error *err) {
    headers self = {.left = ogg};
    (void)ogg_sync_init(&self.pages);
    presto_status status = check_headers(&self, err);
    (void)ogg_stream_clear(&self.packets);
    (void)ogg_sync_clear(&self.pages);
    return status;
}

#else

presto_status presto__sound_vorbis_check(presto_span ogg, presto_error *err) {
    (void)ogg, (void)err;
    return PRESTO_OK;
}

#endif
