/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Normal forms by utf8proc, run by run. No character before an ASCII one changes with it, so a text
 * is cut there: what is ASCII alone is copied as it is.
 *
 * Source: Unicode Standard Annex #15.
 */
#include "unicode_internal.h"

#if PRESTO_HAVE_UTF8PROC
#include <utf8proc.h>

/* utf8proc sorts marks that follow one another in quadratic time. Real text has a few. */
enum { MOST_MARKS = 256 };

bool presto__unicode_forms_built(void) {
    return true;
}

static const utf8proc_option_t form_options[] = {
    [PRESTO__FORM_NFC] = UTF8PROC_STABLE | UTF8PROC_COMPOSE,
    [PRESTO__FORM_NFD] = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE,
    [PRESTO__FORM_NFKC] = UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT,
    [PRESTO__FORM_NFKD] = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT,
};

static bool is_newer(uint32_t point) {
    size_t first = 0, last = presto__newer_point_count;
    while (first < last) {
        size_t middle = first + (last - first) / 2;
        if (presto__newer_points[middle].last < point)
            first = middle + 1;
        else
            last = middle;
    }
    return first < presto__newer_point_count && presto__newer_points[first].first <= point;
}

/* How much of the run is before the first newer character, or how long that is if it is the first
 * one. */
static presto_status find_part(presto_span run, size_t *part_out, bool *is_newer_out,
                               presto_error *err) {
    size_t marks = 0, at = 0;
    *is_newer_out = false;
    while (at < run.bytes) {
        utf8proc_int32_t point;
        utf8proc_ssize_t bytes =
            utf8proc_iterate(run.data + at, (utf8proc_ssize_t)(run.bytes - at), &point);
        if (bytes <= 0)
            return presto_fail(err, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET, "no UTF-8");
        if (is_newer((uint32_t)point)) {
            *is_newer_out = at == 0;
            at += at == 0 ? (size_t)bytes : 0;
            break;
        }
        marks = utf8proc_get_property(point)->combining_class != 0 ? marks + 1 : 0;
        if (marks > MOST_MARKS)
            return presto_fail(err, PRESTO_ERR_LIMIT, PRESTO_NO_OFFSET,
                               "more than %d combining marks follow one another", MOST_MARKS);
        at += (size_t)bytes;
    }
    *part_out = at;
    return PRESTO_OK;
}

static presto_status add_part(presto__form form, presto_span run, presto_buffer *points,
                              presto_buffer *out, presto_error *err) {
    utf8proc_option_t options = form_options[form];
    points->bytes = 0;
    for (;;) {
        size_t room = points->capacity / sizeof(utf8proc_int32_t);
        utf8proc_ssize_t count = utf8proc_decompose(
            run.data, (utf8proc_ssize_t)run.bytes, (utf8proc_int32_t *)(void *)points->data,
            room > 0 ? (utf8proc_ssize_t)room - 1 : 0, options);
        if (count < 0)
            return presto_fail(err, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET, "%s",
                               utf8proc_errmsg(count));
        if ((size_t)count < room) { /* one more for the zero behind the text */
            utf8proc_ssize_t bytes =
                utf8proc_reencode((utf8proc_int32_t *)(void *)points->data, count, options);
            if (bytes < 0)
                return presto_fail(err, PRESTO_ERR_CORRUPT, PRESTO_NO_OFFSET, "%s",
                                   utf8proc_errmsg(bytes));
            return presto_buffer_append(out, presto_span_of(points->data, (size_t)bytes), err);
        }
        PRESTO_TRY(
            presto_buffer_reserve(points, ((size_t)count + 1) * sizeof(utf8proc_int32_t), err));
    }
}

/* An ASCII character at most, and what is not ASCII behind it. */
static presto_status add_run(presto__form form, presto_span run, presto_buffer *points,
                             presto_buffer *out, presto_error *err) {
    while (run.bytes > 0) {
        size_t part;
        bool stays;
        PRESTO_TRY(find_part(run, &part, &stays, err));
        presto_span bytes = presto_span_of(run.data, part);
        PRESTO_TRY(stays ? presto_buffer_append(out, bytes, err)
                         : add_part(form, bytes, points, out, err));
        run = presto_span_of(run.data + part, run.bytes - part);
    }
    return PRESTO_OK;
}

presto_status presto__unicode_normalize(presto__form form, presto_span text, presto_buffer *points,
                                        presto_buffer *out, presto_error *err) {
    size_t done = 0;
    for (size_t at = 0; at < text.bytes;) {
        if (text.data[at] < 0x80) {
            at++;
            continue;
        }
        size_t start = at > 0 ? at - 1 : 0; /* the ASCII character that marks may join */
        while (at < text.bytes && text.data[at] >= 0x80)
            at++;
        PRESTO_TRY(presto_buffer_append(out, presto_span_of(text.data + done, start - done), err));
        PRESTO_TRY(add_run(form, presto_span_of(text.data + start, at - start), points, out, err));
        done = at;
    }
    return presto_buffer_append(out, presto_span_of(text.data + done, text.bytes - done), err);
}

#else

bool presto__unicode_forms_built(void) {
    return false;
}

presto_status presto__unicode_normalize(presto__form form, presto_span text, presto_buffer *points,
                                        presto_buffer *out, presto_error *err) {
    (void)form, (void)text, (void)points, (void)out;
    return presto_fail(err, PRESTO_ERR_UNSUPPORTED, PRESTO_NO_OFFSET,
                       "this build has no normal forms: libutf8proc is missing");
}

#endif
