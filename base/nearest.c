/* SPDX-License-Identifier: Apache-2.0 */
/* Similar words, by Levenshtein's distance. */
#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include <presto/text.h>

#define WORD_MAX_BYTES 40

static size_t smallest(size_t a, size_t b, size_t c) {
    size_t least = a < b ? a : b;
    return least < c ? least : c;
}

static bool same_letter(char a, char b) {
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* Levenshtein's distance: insertions, deletions and substitutions; words are short. */
static size_t edit_distance(const char *a, const char *b) {
    size_t row[WORD_MAX_BYTES + 1];
    size_t a_length = strlen(a);
    size_t b_length = strlen(b);
    if (a_length > WORD_MAX_BYTES || b_length > WORD_MAX_BYTES)
        return SIZE_MAX;
    for (size_t j = 0; j <= b_length; j++)
        row[j] = j;
    for (size_t i = 1; i <= a_length; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            size_t substituted = diagonal + !same_letter(a[i - 1], b[j - 1]);
            diagonal = row[j];
            row[j] = smallest(row[j] + 1, row[j - 1] + 1, substituted);
        }
    }
    return row[b_length];
}

const char *presto_text_nearest(const char *word, const char *const *words) {
    const char *best = NULL;
    size_t length = strlen(word), best_distance = length / 3 + 1;
    bool best_begins = false; /* with `word`: png is png16 rather than jpeg */
    for (; *words != NULL; words++) {
        size_t distance = edit_distance(word, *words);
        bool begins = strncasecmp(word, *words, length) == 0;
        if (distance < best_distance ||
            (distance == best_distance && (best == NULL || (begins && !best_begins)))) {
            best = *words;
            best_distance = distance;
            best_begins = begins;
        }
    }
    return best;
}
