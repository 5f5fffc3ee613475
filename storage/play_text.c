/* SPDX-License-Identifier: Apache-2.0 */
/* A storage as text: its parts, its units, and the profiles that have a name. */
#include <presto/storage.h>

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <presto/span.h>
#include <presto/text.h>

#include "../base/decimal_internal.h"
#include "play_internal.h"

#define MOST_WORD_BYTES 40
#define MOST_DIGITS 18

typedef struct unit {
    const char *name;
    double worth;
} unit;

static const unit rates[] = {
    {"B/s", 1},          {"kB/s", 1e3},         {"MB/s", 1e6},
    {"GB/s", 1e9},       {"TB/s", 1e12},        {"KiB/s", 1024},
    {"MiB/s", 1048576},  {"GiB/s", 1073741824}, {"TiB/s", 1099511627776},
    {"kbit/s", 1e3 / 8}, {"Mbit/s", 1e6 / 8},   {"Gbit/s", 1e9 / 8},
    {NULL, 0},
};
static const unit times[] = {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}, {NULL, 0}};
static const unit counts[] = {{"", 1}, {"/s", 1}, {NULL, 0}};

/* A part of a storage. A time may be 0, which is none. */
typedef struct part {
    const char *name;
    size_t offset; /* of a double in presto_storage */
    const unit *units;
    double least, most;
    const char *range, *example; /* in words */
} part;

#define AT(field) offsetof(presto_storage, field)
static const part parts[] = {
    {"bandwidth", AT(bytes_per_s), rates, 1, 1e15, "1B/s to 1000TB/s", "910MB/s"},
    {"per-thread", AT(bytes_per_s_per_thread), rates, 1, 1e15, "1B/s to 1000TB/s", "219MB/s"},
    {"iops", AT(reads_per_s), counts, 1e-3, 1e12, "0.001 to 1000000000000", "222000"},
    {"latency", AT(latency_s), times, 1e-9, 3600, "0s, or 1ns to 3600s", "8us"},
    {"open", AT(open_s), times, 1e-9, 3600, "0s, or 1ns to 3600s", "65ms"},
};
#define PART_COUNT (sizeof parts / sizeof parts[0])

/* docs/loading.md names the sources of the figures. */
static const presto__storage_profile profiles[] = {
    {"nvme", "a local NVMe drive", {.bytes_per_s = 7e9, .reads_per_s = 1e6, .latency_s = 45e-6}},
    {"network-disk",
     "a cloud's network disk (gp3, as it comes)",
     {.bytes_per_s = 131072000, .reads_per_s = 3000, .latency_s = 1e-3, .open_s = 1e-3}},
    {"ceph-hdd",
     "Ceph on hard disks over 10 Gbit/s, as in the paper",
     {.bytes_per_s = 910e6,
      .bytes_per_s_per_thread = 219e6,
      .reads_per_s = 222000,
      .latency_s = 614e-6,
      .open_s = 65e-3}},
    {"object-store",
     "objects over HTTP, 10 Gbit/s",
     {.bytes_per_s = 1.25e9,
      .bytes_per_s_per_thread = 90e6,
      .reads_per_s = 5500,
      .latency_s = 0.1,
      .open_s = 0.1}},
};
#define PROFILE_COUNT (sizeof profiles / sizeof profiles[0])

const presto__storage_profile *presto__storage_profile_at(size_t i) {
    return i < PROFILE_COUNT ? &profiles[i] : NULL;
}

static double *value_at(presto_storage *storage, const part *one) {
    return (double *)(void *)((char *)storage + one->offset);
}

static double value_of(const presto_storage *storage, const part *one) {
    double value;
    memcpy(&value, (const char *)storage + one->offset, sizeof value);
    return value;
}

bool presto__storage_is_set(const presto_storage *storage) {
    bool is_set = false;
    for (size_t i = 0; i < PART_COUNT; i++)
        is_set = is_set || value_of(storage, &parts[i]) > 0;
    return is_set;
}

presto_status presto__storage_check(const presto_storage *storage, presto_error *err) {
    for (size_t i = 0; i < sizeof storage->reserved / sizeof storage->reserved[0]; i++)
        if (storage->reserved[i] != 0)
            return presto_fail(err, PRESTO_ERR_UNSUPPORTED, PRESTO_NO_OFFSET,
                               "the storage has a figure that this library does not know");
    for (size_t i = 0; i < PART_COUNT; i++) {
        double value = value_of(storage, &parts[i]);
        if (value != 0 && !(value >= parts[i].least && value <= parts[i].most))
            return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                               "the storage's %s is %g: %s is possible", parts[i].name, value,
                               parts[i].range);
    }
    return PRESTO_OK;
}

/* ---- parsing ---- */

/* One part of the text, between commas: "NAME=VALUE" or "NAME". */
typedef struct word {
    presto_span text, name, value;
    bool has_value;
} word;

static word cut(const char *text) {
    word found = {.text = presto_span_of(text, strcspn(text, ",")),
                  .value = presto_span_of_text("")};
    const uint8_t *equals = found.text.bytes == 0 ? NULL : memchr(text, '=', found.text.bytes);
    found.has_value = equals != NULL;
    found.name = found.text;
    if (found.has_value) {
        found.name.bytes = (size_t)(equals - found.text.data);
        found.value = presto_span_of(equals + 1, found.text.bytes - found.name.bytes - 1);
    }
    return found;
}

static bool is_word(presto_span span, const char *text) {
    return presto_span_equal(span, presto_span_of_text(text));
}

/* For messages: with precision %.*s. */
static int shown(presto_span span) {
    return (int)(span.bytes < MOST_WORD_BYTES ? span.bytes : MOST_WORD_BYTES);
}

/* Digits with at most one point; returns the bytes they take, 0: there is no number. */
static size_t take_number(presto_span text, double *value_out) {
    double value = 0, scale = 1;
    size_t i = 0, digits = 0;
    bool has_point = false;
    for (; i < text.bytes; i++) {
        uint8_t c = text.data[i];
        if (c == '.' && !has_point) {
            has_point = true;
            continue;
        }
        if (c < '0' || c > '9' || ++digits > MOST_DIGITS)
            break;
        value = value * 10 + (c - '0');
        scale *= has_point ? 10 : 1;
    }
    *value_out = value / scale;
    return digits > 0 && digits <= MOST_DIGITS ? i : 0;
}

static presto_status parse_value(const part *one, presto_span text, double *value_out,
                                 presto_error *err) {
    double number;
    size_t used = take_number(text, &number);
    presto_span rest = presto_span_of(text.data + used, text.bytes - used);
    for (const unit *u = one->units; used > 0 && u->name != NULL; u++) {
        if (!is_word(rest, u->name))
            continue;
        double value = number * u->worth;
        bool is_none = value == 0 && one->units == times;
        if (!is_none && !(value >= one->least && value <= one->most))
            return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                               "%s=%.*s: %s is possible%s", one->name, shown(text), text.data,
                               one->range, value == 0 ? "; leave it out for no limit" : "");
        *value_out = value;
        return PRESTO_OK;
    }
    if (used > 0 && rest.bytes == 0)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                           "%s=%.*s lacks its unit: write it as %s=%s", one->name, shown(text),
                           text.data, one->name, one->example);
    return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                       "%s=%.*s is none: write it as %s=%s", one->name, shown(text), text.data,
                       one->name, one->example);
}

static const part *find_part(presto_span name) {
    for (size_t i = 0; i < PART_COUNT; i++)
        if (is_word(name, parts[i].name))
            return &parts[i];
    return NULL;
}

/* "'x' is no ...: did you mean 'y'?" with all names. */
static presto_status fail_name(presto_span name, bool is_profile, presto_error *err) {
    const char *names[PART_COUNT + PROFILE_COUNT + 1] = {NULL};
    char list[128] = "", copy[MOST_WORD_BYTES + 1];
    size_t count = is_profile ? PROFILE_COUNT : PART_COUNT, used = 0;
    for (size_t i = 0; i < count; i++) {
        names[i] = is_profile ? profiles[i].name : parts[i].name;
        used +=
            (size_t)snprintf(list + used, sizeof list - used, "%s%s", i == 0 ? "" : ", ", names[i]);
    }
    snprintf(copy, sizeof copy, "%.*s", shown(name),
             name.bytes == 0 ? "" : (const char *)name.data);
    const char *nearest = presto_text_nearest(copy, names);
    return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                       "'%s' is no %s: there are %s%s%s%s", copy,
                       is_profile ? "storage" : "figure of a storage", list,
                       is_profile ? ", and figures such as bandwidth=910MB/s,latency=8us" : "",
                       nearest != NULL ? "; did you mean " : "", nearest != NULL ? nearest : "");
}

static presto_status take_profile(presto_span name, presto_storage *storage, presto_error *err) {
    for (size_t i = 0; i < PROFILE_COUNT; i++)
        if (is_word(name, profiles[i].name)) {
            *storage = profiles[i].storage;
            return PRESTO_OK;
        }
    return fail_name(name, true, err);
}

static presto_status take_part(const word *found, unsigned *seen_io, presto_storage *storage,
                               presto_error *err) {
    const part *one = find_part(found->name);
    if (one == NULL)
        return fail_name(found->name, false, err);
    unsigned bit = 1U << (unsigned)(one - parts);
    if ((*seen_io & bit) != 0)
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET, "%s is given twice",
                           one->name);
    *seen_io |= bit;
    return parse_value(one, found->value, value_at(storage, one), err);
}

presto_status presto_storage_parse(const char *text, presto_storage *storage_out,
                                   presto_error *err) {
    presto_storage storage = {0};
    unsigned seen = 0;
    for (const char *at = text;;) {
        word found = cut(at);
        if (found.text.bytes == 0)
            return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                               "'%.*s' has an empty part", MOST_WORD_BYTES, text);
        if (!found.has_value && at != text && find_part(found.name) == NULL)
            return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET,
                               "'%.*s' is not NAME=VALUE; a profile's name comes first",
                               shown(found.text), (const char *)found.text.data);
        if (!found.has_value && find_part(found.name) == NULL)
            PRESTO_TRY(take_profile(found.name, &storage, err));
        else
            PRESTO_TRY(take_part(&found, &seen, &storage, err));
        if (at[found.text.bytes] == '\0')
            break;
        at += found.text.bytes + 1;
    }
    if (!presto__storage_is_set(&storage))
        return presto_fail(err, PRESTO_ERR_ARGUMENT, PRESTO_NO_OFFSET, "'%.*s' limits nothing",
                           MOST_WORD_BYTES, text);
    *storage_out = storage;
    return PRESTO_OK;
}

/* ---- formatting ---- */

/* The largest decimal unit that the value has at least one of. */
static const unit *unit_for(const part *one, double value) {
    const unit *best = &one->units[0];
    for (const unit *u = best; u->name != NULL && strchr(u->name, 'i') == NULL; u++)
        if (u->worth > best->worth && value >= u->worth * 0.9999999)
            best = u;
    return best;
}

char *presto__storage_format(const presto_storage *storage, char text[PRESTO_STORAGE_TEXT_BYTES]) {
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < PART_COUNT && used < PRESTO_STORAGE_TEXT_BYTES; i++) {
        double value = value_of(storage, &parts[i]);
        if (!(value > 0))
            continue;
        const unit *u = unit_for(&parts[i], value);
        char number[32];
        (void)presto__decimal_format(number, sizeof number, 15, value / u->worth);
        used += (size_t)snprintf(text + used, PRESTO_STORAGE_TEXT_BYTES - used, "%s%s=%s%s",
                                 used == 0 ? "" : ",", parts[i].name, number, u->name);
    }
    return text;
}
