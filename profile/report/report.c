/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report.html: one file that shows the sweep offline. The results and the library that draws the
 * charts are inserted into a fixed page with a script. Nothing is downloaded when it is opened.
 */
#include "../profile_internal.h"

#include <string.h>

#define CHARTS_MARK "/*@CHART_LIBRARY@*/"
#define RESULTS_MARK "/*@RESULTS@*/"

bool presto__report_is_built(void) {
    return presto__report_charts[0] != '\0';
}

static presto_status append_text(presto_buffer *to, const char *from, const char *end,
                                 presto_error *err) {
    return presto_buffer_append(to, presto_span_of(from, (size_t)(end - from)), err);
}

/* In a script element, "</script" and "<!--" would end or change it. In JSON, '<' occurs only
 * within strings. */
static presto_status append_json(presto_buffer *to, presto_span json, presto_error *err) {
    const char *at = (const char *)json.data;
    const char *end = at + json.bytes;
    for (const char *less; (less = memchr(at, '<', (size_t)(end - at))) != NULL; at = less + 1) {
        PRESTO_TRY(append_text(to, at, less, err));
        PRESTO_TRY(presto_buffer_append(to, presto_span_of_text("\\u003c"), err));
    }
    return append_text(to, at, end, err);
}

presto_status presto__report_html(const presto_sweep *sweep, presto_buffer *text_out,
                                  presto_error *err) {
    const char *page = (const char *)presto__report_template;
    const char *charts_at = strstr(page, CHARTS_MARK);
    const char *results_at = strstr(page, RESULTS_MARK);
    if (!presto__report_is_built() || charts_at == NULL || results_at == NULL)
        return presto_fail(err, PRESTO_ERR_UNSUPPORTED, PRESTO_NO_OFFSET,
                           "report.html needs Chart.js, which this build lacks");
    presto_buffer results = {0};
    PRESTO_TRY(presto__results_json(sweep, &results, err));
    const char *charts = (const char *)presto__report_charts;
    presto_status status = append_text(text_out, page, charts_at, err);
    if (status == PRESTO_OK)
        status = append_text(text_out, charts, charts + strlen(charts), err);
    if (status == PRESTO_OK)
        status = append_text(text_out, charts_at + strlen(CHARTS_MARK), results_at, err);
    if (status == PRESTO_OK)
        status = append_json(text_out, presto_buffer_span(&results), err);
    const char *rest = results_at + strlen(RESULTS_MARK);
    if (status == PRESTO_OK)
        status = append_text(text_out, rest, rest + strlen(rest), err);
    presto_buffer_done(&results);
    return status;
}
