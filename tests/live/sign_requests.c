/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signs requests for tests/live/sigv4.py. One a line of stdin: words with spaces between, each in
 * hexadecimal digits behind a letter that says what it is. One value of Authorization a line comes
 * out.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sigv4_internal.h"

#define MOST_VALUES 64
#define LINE_BYTES (1 << 16)

static void fail(const char *why) {
    fprintf(stderr, "sign_requests: %s\n", why);
    exit(1);
}

/* The word's bytes in its own place, with a 0 behind. */
static presto_span decode(char *word) {
    size_t bytes = strlen(word) / 2;
    for (size_t i = 0; i < bytes; i++) {
        const char digits[3] = {word[2 * i], word[2 * i + 1], '\0'};
        word[i] = (char)strtoul(digits, NULL, 16);
    }
    word[bytes] = '\0';
    return presto_span_of(word, bytes);
}

static void sign(char *line) {
    presto__named_value query[MOST_VALUES], headers[MOST_VALUES];
    presto__sigv4_signer signer = {.service = "s3"};
    presto__sigv4_request request = {.query = query, .headers = headers};
    for (char *word = strtok(line, " \n"); word != NULL; word = strtok(NULL, " \n")) {
        presto_span value = decode(word + 1);
        const char *text = (const char *)value.data;
        switch (word[0]) {
        case 'm':
            request.method = text;
            break;
        case 'p':
            request.path = value;
            break;
        case 'c':
            request.payload_hash = text;
            break;
        case 't':
            request.time = text;
            break;
        case 'a':
            signer.access_key = text;
            break;
        case 's':
            signer.secret_key = text;
            break;
        case 'r':
            signer.region = text;
            break;
        case 'Q':
            query[request.query_count].name = value;
            break;
        case 'q':
            query[request.query_count++].value = value;
            break;
        case 'H':
            headers[request.header_count].name = value;
            break;
        case 'h':
            headers[request.header_count++].value = value;
            break;
        default:
            fail("an unknown word");
        }
        if (request.query_count == MOST_VALUES || request.header_count == MOST_VALUES)
            fail("too many values");
    }
    presto_buffer out = {0};
    presto_error err;
    if (presto__sigv4_sign(&signer, &request, &out, &err) < 0)
        fail(err.message);
    printf("%.*s\n", (int)out.bytes, (const char *)out.data);
    presto_buffer_done(&out);
}

int main(void) {
    char *line = malloc(LINE_BYTES);
    if (line == NULL)
        fail("no memory");
    while (fgets(line, LINE_BYTES, stdin) != NULL)
        sign(line);
    free(line);
    return 0;
}
