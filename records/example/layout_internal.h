/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Behind presto__example_layout: layout.c compares Examples with what is remembered, layout_plan.c
 * with the last one as a whole; layout_learn.c remembers. For this room alone.
 */
#ifndef PRESTO_EXAMPLE_LAYOUT_INTERNAL_H
#define PRESTO_EXAMPLE_LAYOUT_INTERNAL_H

#include <presto/example.h>

#include "../records_internal.h"
#include "example_internal.h"

/* What a layout remembers at most. */
#define PRESTO__LAYOUT_NAMES 2048
#define PRESTO__LAYOUT_NAME_BYTES ((size_t)64 << 10)

/* Wire tags of the kinds of a Feature. */
enum { PRESTO__TAG_BYTES = 0x0a, PRESTO__TAG_FLOAT = 0x12, PRESTO__TAG_INT64 = 0x1a };

/**
 * Eight bytes of a head. The lengths in it, each one byte, are those for an empty payload. A
 * payload of n bytes adds n to each of them: `value + n * lengths`, where `lengths` has a 1 in
 * their bytes.
 */
typedef struct presto__head_word {
    uint64_t value;
    uint64_t lengths;
} presto__head_word;

/**
 * A name, and the head of its map entry: all bytes before the payload, as they are if each length
 * takes one byte.
 *
 *     0a LEN  0a LEN name  12 LEN  kind LEN  0a LEN  payload     values of one kind, in one run
 *     0a LEN  0a LEN name  12 LEN                    payload     an ignored feature
 */
typedef struct presto__layout_entry {
    presto__head_word *words; /* the last eight bytes, then those at 0, 8, ... before them */
    uint8_t head_bytes;       /* 0: lengths take more than a byte, or the head less than eight */
    uint8_t most_run;         /* payload with which each length fits a byte */
    uint8_t run_mask;         /* bits that a payload's length must not have */
    uint8_t tag;              /* the kind that `words` are for; 0: none yet */
    presto_encoding encoding; /* of that kind */
    uint32_t next;            /* the entry that came after this one the last time */
    uint64_t seen_in;         /* the Example in which it was seen last */
    uint8_t run; /* bytes of its last payload behind a head; PRESTO__NO_RUN: none yet */
    bool varies; /* payloads of different lengths were seen */
    bool is_ignored;
    bool is_tensor; /* by its spec: a single string is a TensorProto */
    bool is_vector; /* by its spec: a single value has rank 1 */
    presto_span name;
} presto__layout_entry;

#define PRESTO__NO_RUN UINT8_MAX

/* Payloads up to this length that do not vary are passed over together with what is around them. */
#define PRESTO__FIXED_RUN 16

#define PRESTO__NO_OFFSET UINT32_MAX

/** 16 bytes of a stretch. */
typedef uint64_t presto__layout_pair __attribute__((vector_size(16)));
typedef struct presto__layout_chunk {
    presto__layout_pair mask, value; /* (bytes & mask) == value */
} presto__layout_chunk;

/**
 * Bytes that are the same in all Examples of a plan, but for payloads whose length does not vary.
 * It ends with the head of a payload whose length varies, or with the Example.
 */
typedef struct presto__layout_stretch {
    const presto__layout_chunk *chunks; /* the last 16 bytes, then those at 0, 16, ... before them;
                                         * of less than 16: the first 8 and the last 8 */
    const presto__head_word *last_word; /* of the head that it ends with; NULL: of none */
    uint32_t bytes;
    bool has_value;             /* one stands behind it */
    uint8_t most_run, run_mask; /* as of the entry */
    uint8_t head_bytes;         /* likewise */
} presto__layout_stretch;

struct presto__example_layout {
    presto_example_specs specs;    /* borrowed */
    presto__name_table spec_names; /* in `specs_arena` */
    presto_arena specs_arena;
    bool is_off; /* specs that share a name */

    /* Made anew when names are added. */
    presto_arena arena;
    presto__layout_entry *entries; /* NULL: nothing was learned yet */
    presto__head_word *words;
    presto__example_value *values; /* room for one each */
    size_t count;
    size_t name_bytes;
    presto__name_table names;
    uint32_t first; /* the entry that an Example begins with */
    uint64_t generation;

    /* An Example as a whole, of entries that match their heads. There is room for all entries. */
    presto__layout_stretch *stretches;
    presto__example_value *plan_values; /* with all that does not differ from Example to Example */
    uint32_t *plan_offsets; /* of the values in a stretch, then PRESTO__NO_OFFSET; and so on */
    presto__layout_chunk *plan_chunks;
    uint8_t *plan_mask;   /* scratch: of the bytes of a stretch */
    size_t stretch_count; /* 0: there is no plan */
    size_t plan_value_count;
    uint64_t order;     /* of the plan */
    unsigned plan_wait; /* Examples of another order before the plan is made anew, */
    unsigned plan_rest; /* and the next time */
    bool has_odd_entry; /* an entry of the Example being compared did not match a head */

    uint64_t examples; /* compared so far */
    size_t unlike;     /* names in Examples that were parsed since the tables were made */
};

/** An Example that has just been compared entry by entry, each with its head. */
typedef struct presto__layout_example {
    presto_span map; /* from the first entry to the last */
    size_t entry_count, value_count;
} presto__layout_example;

/** Make a plan of it. Not of every one, if each has another order. */
void presto__layout_make_plan(presto__example_layout *layout,
                              const presto__layout_example *example);
/** Bytes of plan_mask and chunks of plan_chunks for so many names of so many bytes. */
size_t presto__layout_plan_bytes(size_t count, size_t name_bytes);
size_t presto__layout_plan_chunks(size_t count, size_t name_bytes);
/** Is the map at `at` like the plan, from its first entry to its last? Then plan_values are its. */
bool presto__layout_match_plan(const presto__example_layout *layout, const uint8_t *at,
                               const uint8_t *end);

/** Set the head for values of the kind `tag`. */
void presto__layout_set_head(presto__layout_entry *entry, uint8_t tag);

/**
 * Remember the names of an Example that presto_example_parse has parsed, if it is of the usual
 * form. Without memory, the layout stays as it is.
 */
void presto__layout_learn(presto__example_layout *layout, presto_span in);

#endif
