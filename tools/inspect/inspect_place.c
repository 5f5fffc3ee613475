/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect_place.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include <presto/dataset.h>
#include <presto/numbers.h>
#include <presto/storage.h>

#include "../cli/cli.h"

#define TIME_BYTES 32

/* "2026-01-31T23:59:59Z"; "": never. */
static void time_text(int64_t seconds, char text[TIME_BYTES]) {
    struct tm parts;
    time_t time = (time_t)seconds;
    text[0] = '\0';
    if (seconds != INT64_MAX && gmtime_r(&time, &parts) != NULL)
        (void)strftime(text, TIME_BYTES, "%Y-%m-%dT%H:%M:%SZ", &parts);
}

/* Texts that are not there are null. */
static json_t *text_json(const char *text) {
    return text[0] == '\0' ? json_null() : cli_json_text(text);
}

static json_t *measured_json(double value) {
    return value > 0 ? cli_json_real(value) : json_null();
}

/* `why` NULL: nothing failed. */
static int print_json(const char *object, const presto_place_facts *place,
                      const presto_error *why) {
    char until[TIME_BYTES];
    json_t *json = cli_json_new();
    time_text(place->key_until_s, until);
    cli_json_set(json, "object", cli_json_text(object));
    cli_json_set(json, "kind", text_json(place->kind));
    cli_json_set(json, "provider", text_json(place->provider));
    cli_json_set(json, "key", text_json(place->key));
    cli_json_set(json, "key_until", text_json(until));
    cli_json_set(json, "region", text_json(place->region));
    cli_json_set(json, "endpoint", text_json(place->endpoint));
    cli_json_set(json, "bytes", json_integer((json_int_t)place->bytes));
    cli_json_set(json, "round_trip_s", measured_json(place->round_trip_s));
    cli_json_set(json, "bytes_per_s", measured_json(place->bytes_per_s));
    cli_json_set(json, "failure", text_json(why == NULL ? "" : why->message));
    return cli_print_json(json);
}

static void print_text(const char *object, const presto_place_facts *place) {
    char until[TIME_BYTES], bytes[PRESTO_TEXT_BYTES];
    time_text(place->key_until_s, until);
    cli_put("%s\n", object);
    if (place->key[0] != '\0')
        cli_put("  key         %s of %s%s%s\n", place->key, place->provider,
                until[0] == '\0' ? "" : ", until ", until);
    else if (place->provider[0] != '\0')
        cli_put("  key         none: %s\n", place->provider);
    if (place->region[0] != '\0')
        cli_put("  region      %s\n", place->region);
    if (place->endpoint[0] != '\0')
        cli_put("  endpoint    %s\n", place->endpoint);
    if (place->round_trip_s > 0)
        cli_put("  round trip  %s\n", presto_format_seconds(place->round_trip_s, bytes));
    if (place->bytes_per_s > 0)
        cli_put("  rate        %s/s on one connection\n",
                presto_format_bytes(place->bytes_per_s, bytes));
}

int inspect_place(const char *path, bool json) {
    presto_dataset *dataset = NULL;
    presto_place_facts place;
    presto_error err;
    /* What is no dataset is looked at as it is: that says what is wrong. */
    bool is_dataset = presto_dataset_open(&path, 1, NULL, &dataset, NULL) == PRESTO_OK &&
                      presto_dataset_is_ours(dataset) && presto_dataset_shard_count(dataset) > 0;
    const char *object = is_dataset ? presto_dataset_shard_path(dataset, 0) : path;
    presto_status status = presto_place_look(object, &place, &err);
    int code = CLI_DONE;
    if (json)
        code = print_json(object, &place, status < 0 ? &err : NULL);
    else
        print_text(object, &place);
    if (status < 0)
        code = cli_error(&err);
    presto_dataset_free(dataset);
    return code;
}
