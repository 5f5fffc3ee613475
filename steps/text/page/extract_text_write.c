/* SPDX-License-Identifier: Apache-2.0 */
/* Kept blocks -> text: white space collapsed, character references decoded, a line a block. */
#include "extract_text_internal.h"

typedef struct line_writer {
    uint8_t *at;
    const uint8_t *line; /* where the line begins: no space before it */
    bool after_space;
    bool keeps_lines; /* in <pre> */
} line_writer;

static void end_line(line_writer *writer) {
    writer->after_space = false;
    if (writer->at == writer->line)
        return;
    *writer->at++ = '\n';
    writer->line = writer->at;
}

static void put_byte(line_writer *writer, uint8_t byte) {
    if (byte == '\n' && writer->keeps_lines) {
        end_line(writer);
        return;
    }
    if (byte <= ' ') {
        writer->after_space = byte != '\0' || writer->after_space;
        return;
    }
    if (writer->after_space && writer->at > writer->line)
        *writer->at++ = ' ';
    writer->after_space = false;
    *writer->at++ = byte;
}

/* No-break spaces are spaces; zero-width spaces, soft hyphens and marks of byte order are
 * nothing. */
static size_t put_special(line_writer *writer, const uint8_t *at, size_t left) {
    if (left >= 2 && at[0] == 0xc2 && at[1] == 0xa0) {
        writer->after_space = true;
        return 2;
    }
    if (left >= 2 && at[0] == 0xc2 && at[1] == 0xad)
        return 2;
    if (left >= 3 && at[0] == 0xe2 && at[1] == 0x80 && at[2] >= 0x80 && at[2] <= 0x8a) {
        writer->after_space = true;
        return 3;
    }
    if (left >= 3 && (memcmp(at, "\xe2\x80\x8b", 3) == 0 || memcmp(at, "\xef\xbb\xbf", 3) == 0))
        return 3;
    return 0;
}

static void put_text(line_writer *writer, presto_span text) {
    for (size_t i = 0; i < text.bytes;) {
        uint8_t byte = text.data[i];
        size_t special = byte == 0xc2 || byte == 0xe2 || byte == 0xef
                             ? put_special(writer, text.data + i, text.bytes - i)
                             : 0;
        if (special == 0)
            put_byte(writer, byte);
        i += special > 0 ? special : 1;
    }
}

/* A reference is never shorter than what it stands for, but for a few of three letters that give
 * up to six bytes: put_run() reserves for that. */
static void put_raw(line_writer *writer, presto_span raw) {
    while (raw.bytes > 0) {
        const uint8_t *mark = memchr(raw.data, '&', raw.bytes);
        size_t plain = mark == NULL ? raw.bytes : (size_t)(mark - raw.data);
        put_text(writer, (presto_span){raw.data, plain});
        raw.data += plain;
        raw.bytes -= plain;
        if (raw.bytes == 0)
            return;
        char decoded[8];
        size_t bytes = 0, used = presto__html_reference(raw, decoded, &bytes);
        if (used == 0) {
            put_byte(writer, '&');
            used = 1;
        } else {
            put_text(writer, (presto_span){(const uint8_t *)decoded, bytes});
        }
        raw.data += used;
        raw.bytes -= used;
    }
}

static size_t most_bytes(const presto__page *page, const presto__text_block *block) {
    size_t bytes = 1;
    for (uint32_t i = block->run_begin; i < block->run_end; i++)
        bytes += 1 + page->runs[i].bytes;
    return 2 * bytes;
}

presto_status presto__block_write(const presto__page *page, const presto__text_block *block,
                                  presto_buffer *out, presto_error *err) {
    PRESTO_TRY(presto_buffer_reserve(out, most_bytes(page, block), err));
    uint8_t *begin = out->data + out->bytes;
    line_writer writer = {
        .at = begin, .line = begin, .keeps_lines = page->nodes[block->node].tag == PRESTO__TAG_PRE};
    if (out->bytes > 0) {
        *writer.at++ = '\n';
        writer.line = writer.at;
    }
    const uint8_t *first = writer.line;
    for (uint32_t i = block->run_begin; i < block->run_end; i++) {
        const presto__text_run *run = &page->runs[i];
        if (run->bytes > 0) {
            put_raw(&writer, (presto_span){page->text.data + run->at, run->bytes});
        } else {
            end_line(&writer);
        }
    }
    if (writer.at > first && writer.at[-1] == '\n')
        writer.at--;
    if (writer.at > first)
        out->bytes = (size_t)(writer.at - out->data);
    return PRESTO_OK;
}

presto_status presto__page_write(const presto__page *page, presto_buffer *out, presto_error *err) {
    for (size_t i = 0; i < page->block_count; i++)
        if (page->blocks[i].is_kept)
            PRESTO_TRY(presto__block_write(page, &page->blocks[i], out, err));
    return PRESTO_OK;
}
