/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading ahead from servers. A read-ahead is told of ranges in the order in which they will be
 * read, and requests them in this order: so many at a time as raise the rate, and no more bytes than
 * its limit. A range that has come waits until all that is wanted of it was read. Whoever reads what
 * is under way waits for it; whoever reads something else requests it as if there were no read-ahead.
 * So a range that fails costs time, and nothing else: the reader requests it once more, and says what
 * is wrong.
 *
 * How many requests raise the rate is found by trying: twice as many, as long as that pays; then so
 * many, until another try some time later. A server that says "slow down" gets fewer.
 *
 * One lock for all, held for moments: what it guards is done once a request. The thread of transfers
 * takes it, so nothing is waited for while it is held, and no request is written, which may need keys
 * from another server. Lock order: this one, then the client's (transfer.c).
 */
#include "ahead_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "../base/clock_internal.h"
#include "../base/file_internal.h"
#include "../base/memory_internal.h"
#include "../base/stop_internal.h"
#include "../base/thread_internal.h"

#define MOST_RANGE ((uint64_t)4 << 20) /* what is longer is several requests */
#define MOST_QUEUED 16384              /* ranges that are not requested yet */
#define FIRST_LEVEL 16                 /* requests at a time, at first */
#define LEAST_LEVEL 4
#define MOST_LEVEL 256
#define SHARE_OF_FILES 4 /* a request is a connection: of the files that the process may open */
#define MOST_TRIES 6
#define MOST_FAILURES 8 /* in a row: then nothing is requested, until something succeeds */
#define REST_WINDOWS 16
#define ASK_NS UINT64_C(100000000) /* how often a stop is asked for while waiting */
#define MOST_SPARE 8
/* A second request for what takes long: for at most so many of 100. */
#define SECONDS_OF_100 3
#define TIMES 64       /* that are known, of each class of sizes */
#define LEAST_TIMES 32 /* before anything is said to take long */
#define SORT_EVERY 16
#define LEAST_LATE_NS UINT64_C(5000000)
#define CLASSES 3

typedef enum flight_state { QUEUED, UNDER_WAY, ARRIVED, FAILED } flight_state;

/** A request for a range. */
typedef struct attempt {
    presto__flight *flight;
    presto__http_call call;
    uint8_t *data; /* NULL: it is not under way, and has brought nothing */
    bool is_running;
    uint64_t begun_ns;
} attempt;

/** A range. Its owner is the read-ahead; freed when nobody reads it and no request is under way. */
struct presto__flight {
    presto__ahead *ahead;
    presto__flights *of; /* in which it is found; NULL: not any more, it only has to end */
    uint64_t first, end;
    uint64_t unread;  /* bytes that are wanted, and not read yet */
    uint64_t told_at; /* so many bytes were told before it */
    flight_state state;
    unsigned readers; /* who wait or copy */
    unsigned tries;
    presto__message message;
    attempt attempts[2];           /* the second one if the first takes long */
    const attempt *arrived;        /* whose data it is; NULL: it has not come */
    presto__flight *newer, *older; /* in the list that its state says */
};

typedef struct flight_list {
    presto__flight *oldest, *newest;
    size_t count;
} flight_list;

/** The beginning of an object that is not open. */
typedef struct beginning {
    presto__ahead *ahead;
    char *path;
    const presto__address_type *address;
    void *self; /* of the address */
    flight_state state;
    presto__message message;
    uint8_t *head;
    size_t bytes;
    presto__http_call call;
    unsigned tries;   /* that have failed */
    bool is_unwanted; /* it only has to end */
} beginning;

/** How long requests take, of about one size. */
typedef struct request_times {
    uint64_t ns[TIMES]; /* the last ones */
    size_t count;       /* of all */
    uint64_t most_ns;   /* so long that 1 of 20 takes longer; 0: that is not known */
} request_times;

/** Guarded by the lock. */
struct presto__ahead {
    size_t limit_bytes;
    unsigned generation;        /* of the process that made it */
    pthread_cond_t changed;     /* something has come, or failed */
    flight_list queue;          /* not requested yet, in order */
    flight_list begun;          /* all others that are found, in order of their requests */
    uint8_t *spare[MOST_SPARE]; /* of MOST_RANGE bytes each */
    size_t spare_count;
    size_t held_bytes; /* of their data, and spare */
    size_t under_way;  /* requests, also those that only have to end */
    size_t readers;    /* threads in presto__flights_read */
    uint64_t told_bytes;
    uint64_t read_at;                  /* told_at of the latest range that was read */
    unsigned failures;                 /* in a row */
    beginning *beginnings[MOST_LEVEL]; /* no more than `top`: each is a connection at first */
    size_t beginning_count;
    /* How many requests at a time. */
    size_t level, top;
    bool is_climbing;
    unsigned misses, rest;
    double best_rate; /* bytes a second, at the level before */
    /* Since the level changed last, or was judged: */
    uint64_t window_ns, window_bytes;
    size_t window_count, slowed;
    bool was_short; /* there were fewer than the level allows */
    request_times times[CLASSES];
    presto__ahead_counts counts;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local presto__ahead *bound;

/* A child of fork has the lists, too: no other thread changes them meanwhile. */
static void take_lock(void) {
    pthread_mutex_lock(&lock);
}

static void give_lock(void) {
    pthread_mutex_unlock(&lock);
}

static void register_fork(void) {
    (void)pthread_atfork(take_lock, give_lock, give_lock);
}

/* ---- lists ---- */

static void list_add(flight_list *list, presto__flight *flight) {
    flight->older = list->newest;
    flight->newer = NULL;
    if (list->newest != NULL)
        list->newest->newer = flight;
    else
        list->oldest = flight;
    list->newest = flight;
    list->count++;
}

static void list_remove(flight_list *list, presto__flight *flight) {
    if (flight->newer == NULL)
        list->newest = flight->older;
    else
        flight->newer->older = flight->older;
    if (list->oldest == flight)
        list->oldest = flight->newer;
    else
        flight->older->newer = flight->newer;
    list->count--;
}

/* The first range that ends behind `offset`. */
static size_t place_of(const presto__flights *flights, uint64_t offset) {
    size_t low = 0, high = flights->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (flights->items[middle]->end <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool insert(presto__flights *flights, size_t at, presto__flight *flight) {
    if (flights->count == flights->capacity) {
        size_t capacity = flights->capacity == 0 ? 16 : flights->capacity * 2;
        presto__flight **items =
            realloc((void *)flights->items, capacity * sizeof(presto__flight *));
        if (items == NULL)
            return false;
        flights->items = items;
        flights->capacity = capacity;
    }
    memmove((void *)(flights->items + at + 1), (void *)(flights->items + at),
            (flights->count - at) * sizeof(presto__flight *));
    flights->items[at] = flight;
    flights->count++;
    flight->of = flights;
    return true;
}

/* Memory for large ranges is of one size, and used again: what is fresh costs as much as a copy. */
static size_t room_of(const presto__flight *flight) {
    uint64_t bytes = flight->end - flight->first;
    return (size_t)(bytes > MOST_RANGE / 2 ? MOST_RANGE : bytes);
}

/* With the lock held, as all that follows. NULL: there is none. */
static uint8_t *take_room(presto__ahead *ahead, size_t bytes) {
    if (bytes == MOST_RANGE && ahead->spare_count > 0)
        return ahead->spare[--ahead->spare_count];
    uint8_t *data = malloc(bytes);
    if (data != NULL) {
        ahead->held_bytes += bytes;
        presto__memory_will_fill(data, bytes);
    }
    return data;
}

static void free_spare(presto__ahead *ahead) {
    free(ahead->spare[--ahead->spare_count]);
    ahead->held_bytes -= (size_t)MOST_RANGE;
}

static void free_data(attempt *one) {
    if (one->data == NULL)
        return;
    presto__ahead *ahead = one->flight->ahead;
    size_t bytes = room_of(one->flight);
    if (bytes == MOST_RANGE && ahead->spare_count < MOST_SPARE &&
        ahead->held_bytes <= ahead->limit_bytes) {
        ahead->spare[ahead->spare_count++] = one->data;
    } else {
        free(one->data);
        ahead->held_bytes -= bytes;
    }
    one->data = NULL;
}

/* If nobody finds it, reads it or brings it any more. */
static void free_unused(presto__flight *flight) {
    attempt *both = flight->attempts;
    if (flight->of != NULL || flight->readers > 0 || both[0].is_running || both[1].is_running)
        return;
    free_data(&both[0]);
    free_data(&both[1]);
    presto__message_done(&flight->message);
    free(flight);
}

/* Its end frees what it has. */
static void cancel(attempt *one) {
    if (one->is_running)
        presto__http_cancel(&one->call);
}

/* Nobody finds it any more; it is freed now, or by whoever uses it last. */
static void drop(presto__ahead *ahead, presto__flight *flight) {
    presto__flights *flights = flight->of;
    if (flights == NULL)
        return;
    size_t at = place_of(flights, flight->first);
    flights->count--;
    memmove((void *)(flights->items + at), (void *)(flights->items + at + 1),
            (flights->count - at) * sizeof(presto__flight *));
    list_remove(flight->state == QUEUED ? &ahead->queue : &ahead->begun, flight);
    flight->of = NULL;
    cancel(&flight->attempts[0]);
    cancel(&flight->attempts[1]);
    free_unused(flight);
}

/* In a child of fork, at first: what the parent began is never done here, and its threads are not
 * there. True: some ranges may have gone. */
static bool adopt(presto__ahead *ahead) {
    if (ahead->generation == presto__http_generation())
        return false;
    ahead->generation = presto__http_generation();
    ahead->under_way = ahead->readers = 0;
    /* Threads of the parent may have waited: nobody wakes them here. */
    (void)presto__timed_condition_init(&ahead->changed);
    for (presto__flight *one = ahead->begun.oldest, *next; one != NULL; one = next) {
        next = one->newer;
        one->readers = 0;
        one->attempts[0].is_running = one->attempts[1].is_running = false;
        if (one->state == UNDER_WAY)
            drop(ahead, one);
    }
    for (size_t i = 0; i < ahead->beginning_count; i++)
        if (ahead->beginnings[i]->state == UNDER_WAY)
            ahead->beginnings[i]->state = FAILED;
    return true;
}

/* ---- how many at a time ---- */

static void begin_window(presto__ahead *ahead) {
    ahead->window_ns = presto__clock_ns();
    ahead->window_bytes = 0;
    ahead->window_count = ahead->slowed = 0;
    ahead->was_short = false;
}

static void climb(presto__ahead *ahead) {
    ahead->level = ahead->level * 2 < ahead->top ? ahead->level * 2 : ahead->top;
}

/* A window has passed in which all requests that the level allows were under way. */
static void judge(presto__ahead *ahead, double rate) {
    if (!ahead->is_climbing) {
        if (ahead->rest-- > 1)
            return;
        ahead->is_climbing = true;
        ahead->misses = 0;
        ahead->best_rate = rate;
        climb(ahead);
    } else if (rate > ahead->best_rate * 1.1) {
        ahead->best_rate = rate;
        ahead->misses = 0;
        climb(ahead);
    } else if (++ahead->misses == 2) {
        ahead->level = ahead->level / 2 > LEAST_LEVEL ? ahead->level / 2 : LEAST_LEVEL;
        ahead->is_climbing = false;
        ahead->rest = REST_WINDOWS;
    }
}

/* A request has ended. */
static void note_end(presto__ahead *ahead, const presto__http_answer *answer) {
    ahead->window_bytes += answer->bytes;
    ahead->window_count++;
    ahead->slowed += answer->code == 503 || answer->code == 429;
    if (ahead->window_count < 2 * ahead->level)
        return;
    double seconds = (double)(presto__clock_ns() - ahead->window_ns) * 1e-9;
    if (ahead->slowed * 3 > ahead->window_count) { /* it says so often that it has too much to do */
        size_t fewer = ahead->level - ahead->level / 4;
        ahead->level = fewer > LEAST_LEVEL ? fewer : LEAST_LEVEL;
        ahead->is_climbing = false;
        ahead->rest = REST_WINDOWS;
    } else if (!ahead->was_short && seconds > 0) {
        judge(ahead, (double)ahead->window_bytes / seconds);
    }
    begin_window(ahead);
}

static size_t top_level(void) {
    struct rlimit limit;
    size_t top = MOST_LEVEL;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur / SHARE_OF_FILES < top)
        top = (size_t)(limit.rlim_cur / SHARE_OF_FILES);
    return top > LEAST_LEVEL ? top : LEAST_LEVEL;
}

/* ---- what takes long ---- */

static request_times *times_of(presto__ahead *ahead, const presto__flight *flight) {
    uint64_t bytes = flight->end - flight->first;
    return &ahead->times[bytes <= (64 << 10) ? 0 : bytes <= (1 << 20) ? 1 : 2];
}

static int compare_times(const void *a, const void *b) {
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return left < right ? -1 : left > right;
}

static void note_time(request_times *times, uint64_t ns) {
    uint64_t sorted[TIMES];
    times->ns[times->count++ % TIMES] = ns;
    if (times->count < LEAST_TIMES || times->count % SORT_EVERY != 0)
        return;
    size_t known = times->count < TIMES ? times->count : TIMES;
    memcpy(sorted, times->ns, known * sizeof *sorted);
    qsort(sorted, known, sizeof *sorted, compare_times);
    times->most_ns = sorted[known - 1 - known / 20];
}

/* Somebody waits for it: when is a second request for it worth its price? UINT64_MAX: never. */
static uint64_t late_at(presto__flight *flight) {
    presto__ahead *ahead = flight->ahead;
    uint64_t most_ns = times_of(ahead, flight)->most_ns;
    if (most_ns == 0 || flight->state != UNDER_WAY || flight->tries > 0 ||
        flight->attempts[1].flight != NULL ||
        (ahead->counts.seconds + 1) * 100 > ahead->counts.requests * SECONDS_OF_100)
        return UINT64_MAX;
    return flight->attempts[0].begun_ns + most_ns +
           (most_ns > LEAST_LATE_NS ? most_ns : LEAST_LATE_NS);
}

/* ---- requests ---- */

static void attempt_ended(presto__http_call *call);
static void beginning_ended(presto__http_call *call);

/* False: it cannot be requested. */
static bool begin_attempt(presto__flight *flight, attempt *one) {
    presto__ahead *ahead = flight->ahead;
    size_t bytes = (size_t)(flight->end - flight->first);
    one->flight = flight;
    one->data = take_room(ahead, room_of(flight));
    if (one->data == NULL)
        return false;
    one->call.request = presto__message_request(&flight->message);
    one->call.request.data = one->data;
    one->call.request.most_bytes = bytes;
    one->call.done = attempt_ended;
    one->call.user = one;
    one->begun_ns = presto__clock_ns();
    if (presto__http_begin(&one->call, 0, NULL) < 0) {
        free_data(one);
        return false;
    }
    one->is_running = true;
    ahead->under_way++;
    ahead->counts.requests++;
    return true;
}

/* False: it cannot be requested. */
static bool begin_flight(presto__flight *flight) {
    presto__ahead *ahead = flight->ahead;
    if (!begin_attempt(flight, &flight->attempts[0]))
        return false;
    list_remove(&ahead->queue, flight);
    list_add(&ahead->begun, flight);
    flight->state = UNDER_WAY;
    return true;
}

/* What was told long before that which is read now will not be read: its sample was left out, or
 * found elsewhere. True: something went. */
static bool drop_stale(presto__ahead *ahead) {
    presto__flight *oldest = ahead->begun.oldest;
    uint64_t far = 2 * (uint64_t)ahead->limit_bytes;
    if (oldest == NULL || oldest->state != ARRIVED || oldest->readers > 0 || ahead->read_at < far ||
        oldest->told_at > ahead->read_at - far)
        return false;
    drop(ahead, oldest);
    return true;
}

/* Request as many of those that are queued as there may be. */
static void pump(presto__ahead *ahead) {
    while (ahead->queue.oldest != NULL && ahead->under_way < ahead->level &&
           ahead->failures < MOST_FAILURES) {
        presto__flight *next = ahead->queue.oldest;
        size_t bytes = room_of(next);
        while (ahead->held_bytes > 0 && ahead->held_bytes + bytes > ahead->limit_bytes) {
            if (ahead->spare_count > 0 && bytes == MOST_RANGE)
                break; /* it takes that */
            if (ahead->spare_count > 0) {
                free_spare(ahead);
            } else if (!drop_stale(ahead)) {
                ahead->was_short = true;
                return;
            }
        }
        if (!begin_flight(next)) { /* there is no memory, or the process is ending */
            drop(ahead, next);
            return;
        }
    }
    if (ahead->under_way < ahead->level)
        ahead->was_short = true;
}

static void wish_of(const presto__flight *flight, presto__remote_wish *wish_out) {
    *wish_out =
        (presto__remote_wish){.has_range = true, .first = flight->first, .last = flight->end - 1};
}

/* Is it worth another try? */
static bool may_try_again(presto__ahead *ahead, const presto__http_answer *answer, unsigned tries) {
    return tries < MOST_TRIES && ahead->failures < MOST_FAILURES &&
           (answer->code == 206 || presto__answer_may_pass(answer)) && presto__retry_allowed();
}

/* Of a range that is still wanted. */
static void take_answer(attempt *one) {
    presto__flight *flight = one->flight;
    presto__ahead *ahead = flight->ahead;
    attempt *other = &flight->attempts[one == flight->attempts];
    presto__remote_wish wish;
    wish_of(flight, &wish);
    if (presto__answer_is_range(&wish, &one->call.answer) &&
        one->call.answer.bytes == flight->end - flight->first) { /* a server may send fewer */
        ahead->failures = 0;
        presto__retry_note_success();
        flight->state = ARRIVED;
        flight->arrived = one;
        note_time(times_of(ahead, flight), presto__clock_ns() - one->begun_ns);
        ahead->counts.seconds_first += one == &flight->attempts[1];
        cancel(other);
        return;
    }
    ahead->failures++;
    flight->tries++;
    if (other->is_running) { /* that one may bring it */
        free_data(one);
        return;
    }
    if (may_try_again(ahead, &one->call.answer, flight->tries) &&
        presto__http_begin(&one->call, presto__retry_wait_ns(flight->tries - 1), NULL) ==
            PRESTO_OK) {
        one->is_running = true;
        one->begun_ns = presto__clock_ns();
        ahead->under_way++;
        ahead->counts.requests++;
        ahead->counts.retries++;
        return;
    }
    flight->state = FAILED;
    drop(ahead, flight);
}

/* The thread of transfers. */
static void attempt_ended(presto__http_call *call) {
    attempt *one = call->user;
    presto__flight *flight = one->flight;
    presto__ahead *ahead = flight->ahead;
    pthread_mutex_lock(&lock);
    note_end(ahead, &call->answer);
    ahead->under_way--;
    one->is_running = false;
    if (flight->of != NULL && flight->arrived == NULL) {
        take_answer(one);
    } else {
        if (flight->arrived != one)
            free_data(one);
        free_unused(flight);
    }
    pump(ahead);
    pthread_cond_broadcast(&ahead->changed);
    pthread_mutex_unlock(&lock);
}

/* ---- what is told ---- */

/* The next bytes of the wish that are in no range, from *at_io on; what is in one counts for that.
 * False: there are none. With the lock held. */
static bool next_missing(const presto__ahead_wish *wish, uint64_t *at_io, uint64_t *end_out,
                         uint64_t *wanted_io) {
    const presto__flights *flights = wish->flights;
    size_t i = place_of(flights, *at_io);
    for (; *at_io < wish->end && i < flights->count && flights->items[i]->first <= *at_io; i++) {
        presto__flight *there = flights->items[i];
        uint64_t end = there->end < wish->end ? there->end : wish->end;
        uint64_t shared = end - *at_io < *wanted_io ? end - *at_io : *wanted_io;
        there->unread += shared;
        *wanted_io -= shared;
        *at_io = end;
    }
    if (*at_io >= wish->end)
        return false;
    *end_out = i < flights->count && flights->items[i]->first < wish->end ? flights->items[i]->first
                                                                          : wish->end;
    return true;
}

/* A range that nobody knows yet. NULL: it cannot be made. */
static presto__flight *make_flight(presto__ahead *ahead, const presto__ahead_wish *wish,
                                   uint64_t first, uint64_t end) {
    presto__flight *flight = calloc(1, sizeof *flight);
    if (flight == NULL)
        return NULL;
    flight->ahead = ahead;
    flight->first = first;
    flight->end = end;
    presto__remote_wish asked;
    wish_of(flight, &asked);
    if (wish->flights->type->write(wish->flights->object, &asked, &flight->message, NULL) < 0) {
        free_unused(flight);
        return NULL;
    }
    return flight;
}

void presto__flights_request(const presto__ahead_wish *wish) {
    presto__ahead *ahead = bound;
    uint64_t at = wish->first, end, wanted = wish->wanted;
    if (ahead == NULL)
        return;
    pthread_mutex_lock(&lock);
    (void)adopt(ahead);
    while (ahead->queue.count < MOST_QUEUED && next_missing(wish, &at, &end, &wanted)) {
        uint64_t pieces = (end - at - 1) / MOST_RANGE + 1;
        end = at + (end - at - 1) / pieces + 1;
        pthread_mutex_unlock(&lock);
        presto__flight *flight = make_flight(ahead, wish, at, end);
        pthread_mutex_lock(&lock);
        if (flight == NULL)
            break;
        size_t place = place_of(wish->flights, at);
        bool is_there = place < wish->flights->count && wish->flights->items[place]->first < end;
        if (is_there || !insert(wish->flights, place, flight)) { /* another thread was faster */
            free_unused(flight);
            break;
        }
        flight->unread = end - at < wanted ? end - at : wanted;
        wanted -= flight->unread;
        flight->told_at = ahead->told_bytes;
        ahead->told_bytes += end - at;
        list_add(&ahead->queue, flight);
        pump(ahead);
        at = end;
    }
    pthread_mutex_unlock(&lock);
}

/* ---- what is read ---- */

/* So many bytes of it. With the lock held. */
static void note_read(presto__flight *flight, uint64_t bytes) {
    presto__ahead *ahead = flight->ahead;
    flight->unread -= bytes < flight->unread ? bytes : flight->unread;
    if (flight->told_at > ahead->read_at)
        ahead->read_at = flight->told_at;
}

/* Until something has come, but no longer than some time. With the lock held, but not while it waits
 * and asks. */
static presto_status wait_a_while(presto__ahead *ahead, uint64_t most_ns, presto_error *err) {
    uint64_t until_ns = presto__clock_ns() + (most_ns < ASK_NS ? most_ns : ASK_NS);
    const struct timespec until = {.tv_sec = (time_t)(until_ns / 1000000000),
                                   .tv_nsec = (long)(until_ns % 1000000000)};
    if (pthread_cond_timedwait(&ahead->changed, &lock, &until) != ETIMEDOUT)
        return PRESTO_OK;
    pthread_mutex_unlock(&lock);
    presto_status status = presto__stop_check(err);
    pthread_mutex_lock(&lock);
    return status;
}

/* With the lock held: until it has come, or will not. */
static presto_status wait_for(presto__flight *flight, presto_error *err) {
    presto__ahead *ahead = flight->ahead;
    while (flight->state == UNDER_WAY && flight->of != NULL) {
        uint64_t now_ns = presto__clock_ns(), late_ns = late_at(flight);
        if (late_ns <= now_ns) {
            ahead->counts.seconds += begin_attempt(flight, &flight->attempts[1]);
            late_ns = UINT64_MAX;
        }
        PRESTO_TRY(wait_a_while(ahead, late_ns - now_ns, err));
    }
    return PRESTO_OK;
}

/* One reader fewer. With the lock held. */
static void leave(presto__flight *flight) {
    presto__ahead *ahead = flight->ahead;
    flight->readers--;
    if (--ahead->readers == 0)
        pthread_cond_broadcast(&ahead->changed); /* it may be about to be freed */
    free_unused(flight);
}

/* Beside the limit, each thread that waits may have one range. */
static bool has_room_now(const presto__ahead *ahead, size_t bytes) {
    size_t over =
        ahead->held_bytes > ahead->limit_bytes ? ahead->held_bytes - ahead->limit_bytes : 0;
    return over + bytes <= (ahead->readers + 1) * (size_t)MOST_RANGE;
}

/* It is wanted now, whatever is before it in the queue. False: it is not requested; the caller
 * requests `bytes` of it. */
static bool hurry(presto__flight *flight, size_t bytes) {
    presto__ahead *ahead = flight->ahead;
    if (flight->state != QUEUED)
        return true;
    if (!has_room_now(ahead, room_of(flight))) {
        /* Ranges that were begun so wait for the rest that is wanted of them: no more of these. */
        note_read(flight, bytes);
        if (flight->unread > 0)
            return false;
    } else if (ahead->failures < MOST_FAILURES && begin_flight(flight)) {
        return true;
    }
    drop(ahead, flight);
    return false;
}

presto_status presto__flights_read(const presto__ahead_read *wanted, size_t *got_out,
                                   size_t *gap_out, presto_error *err) {
    presto__flights *flights = wanted->flights;
    *got_out = 0;
    *gap_out = wanted->bytes;
    pthread_mutex_lock(&lock);
    presto__flight *flight;
    do { /* those of several read-aheads may be among them */
        size_t i = place_of(flights, wanted->offset);
        flight = i < flights->count ? flights->items[i] : NULL;
    } while (flight != NULL && adopt(flight->ahead));
    if (flight == NULL || flight->first > wanted->offset) {
        if (flight != NULL && flight->first - wanted->offset < wanted->bytes)
            *gap_out = (size_t)(flight->first - wanted->offset);
        pthread_mutex_unlock(&lock);
        return PRESTO_OK;
    }
    size_t bytes = wanted->bytes;
    if (bytes > flight->end - wanted->offset)
        bytes = (size_t)(flight->end - wanted->offset);
    *gap_out = bytes;
    presto__ahead *ahead = flight->ahead;
    if (!hurry(flight, bytes)) {
        pump(ahead);
        pthread_mutex_unlock(&lock);
        return PRESTO_OK;
    }
    flight->readers++;
    ahead->readers++;
    presto_status status = wait_for(flight, err);
    bool has_it = status == PRESTO_OK && flight->state == ARRIVED && flight->of != NULL;
    if (has_it && flights->type->fits(flights->object, &flight->arrived->call.answer)) {
        pthread_mutex_unlock(&lock);
        memcpy(wanted->data, flight->arrived->data + (wanted->offset - flight->first), bytes);
        pthread_mutex_lock(&lock);
        *got_out = bytes;
        note_read(flight, bytes);
    }
    /* All was read, or it is of no use: who reads requests it, and is told why. */
    bool is_over =
        status == PRESTO_OK && flight->of != NULL && (*got_out == 0 || flight->unread == 0);
    leave(flight);
    if (is_over) {
        drop(ahead, flight);
        pump(ahead);
    }
    pthread_mutex_unlock(&lock);
    return status;
}

void presto__flights_note(presto__flights *flights, uint64_t first, uint64_t end) {
    pthread_mutex_lock(&lock);
    for (uint64_t at = first;;) {
        size_t i = place_of(flights, at);
        presto__flight *one = i < flights->count ? flights->items[i] : NULL;
        if (one == NULL || one->first >= end)
            break;
        presto__ahead *ahead = one->ahead;
        if (adopt(ahead))
            continue;
        uint64_t from = one->first > first ? one->first : first;
        at = one->end;
        note_read(one, (at < end ? at : end) - from);
        if (one->unread == 0) {
            drop(ahead, one);
            pump(ahead);
        }
    }
    pthread_mutex_unlock(&lock);
}

void presto__flights_done(presto__flights *flights) {
    pthread_mutex_lock(&lock);
    while (flights->count > 0) {
        presto__flight *last = flights->items[flights->count - 1];
        if (!adopt(last->ahead))
            drop(last->ahead, last);
    }
    pthread_mutex_unlock(&lock);
    free((void *)flights->items);
    *flights = (presto__flights){0};
}

void presto__ahead_note_success(void) {
    presto__ahead *ahead = bound;
    if (ahead == NULL)
        return;
    pthread_mutex_lock(&lock);
    bool was_stuck = ahead->failures >= MOST_FAILURES;
    ahead->failures = 0;
    if (was_stuck)
        pump(ahead);
    pthread_mutex_unlock(&lock);
}

/* ---- beginnings ---- */

static void free_beginning(beginning *one) {
    presto__message_done(&one->message);
    if (one->self != NULL)
        one->address->free(one->self);
    free(one->head);
    free(one->path);
    free(one);
}

/* SIZE_MAX: it was not requested. */
static size_t find_beginning(const presto__ahead *ahead, const char *path) {
    for (size_t i = 0; i < ahead->beginning_count; i++)
        if (strcmp(ahead->beginnings[i]->path, path) == 0)
            return i;
    return SIZE_MAX;
}

/* Of the thread of transfers. */
static void beginning_ended(presto__http_call *call) {
    beginning *one = call->user;
    presto__ahead *ahead = one->ahead;
    pthread_mutex_lock(&lock);
    const presto__remote_wish wish = {.has_range = true, .first = 0, .last = one->bytes - 1};
    bool has_come =
        call->answer.code == 206
            ? presto__answer_is_range(&wish, &call->answer)
            : call->answer.failed == 0 && (call->answer.code == 200 || call->answer.code == 404 ||
                                           call->answer.code == 416);
    bool is_again = false;
    ahead->failures = has_come ? 0 : ahead->failures + 1;
    if (has_come && call->answer.code != 404)
        presto__retry_note_success();
    if (!has_come && !one->is_unwanted && ++one->tries < MOST_TRIES &&
        ahead->failures < MOST_FAILURES && presto__answer_may_pass(&call->answer) &&
        presto__retry_allowed())
        is_again =
            presto__http_begin(call, presto__retry_wait_ns(one->tries - 1), NULL) == PRESTO_OK;
    if (!is_again) {
        ahead->under_way--;
        one->state = has_come ? ARRIVED : FAILED;
        if (one->is_unwanted)
            free_beginning(one);
        pump(ahead);
    }
    pthread_cond_broadcast(&ahead->changed);
    pthread_mutex_unlock(&lock);
}

bool presto__ahead_may_open(void) {
    presto__ahead *ahead = bound;
    if (ahead == NULL)
        return false;
    pthread_mutex_lock(&lock);
    bool may = ahead->beginning_count < ahead->top && ahead->failures < MOST_FAILURES;
    pthread_mutex_unlock(&lock);
    return may;
}

/* With the lock held. False: there is no room, or it is there already. */
static bool begin_beginning(presto__ahead *ahead, beginning *one) {
    if (ahead->beginning_count >= ahead->top || ahead->failures >= MOST_FAILURES ||
        find_beginning(ahead, one->path) != SIZE_MAX || presto__http_begin(&one->call, 0, NULL) < 0)
        return false;
    ahead->under_way++;
    ahead->beginnings[ahead->beginning_count++] = one;
    return true;
}

void presto__beginning_request(const presto__remote_name *name, size_t bytes) {
    presto__ahead *ahead = bound;
    if (ahead == NULL)
        return;
    pthread_mutex_lock(&lock);
    (void)adopt(ahead);
    bool is_there =
        find_beginning(ahead, name->path) != SIZE_MAX || ahead->beginning_count >= ahead->top;
    pthread_mutex_unlock(&lock);
    beginning *one = is_there ? NULL : calloc(1, sizeof *one);
    if (one == NULL)
        return;
    const presto__remote_wish wish = {.has_range = true, .first = 0, .last = bytes - 1};
    one->ahead = ahead;
    one->address = name->address;
    one->state = UNDER_WAY;
    one->bytes = bytes;
    one->path = strdup(name->path);
    one->head = malloc(bytes);
    bool is_ready = one->path != NULL && one->head != NULL &&
                    name->address->make(name->path, &one->self, NULL) == PRESTO_OK &&
                    name->address->write(one->self, &wish, &one->message, NULL) == PRESTO_OK;
    if (is_ready) {
        one->call.request = presto__message_request(&one->message);
        one->call.request.data = one->head;
        one->call.request.most_bytes = bytes;
        one->call.done = beginning_ended;
        one->call.user = one;
        pthread_mutex_lock(&lock);
        is_ready = begin_beginning(ahead, one);
        pthread_mutex_unlock(&lock);
    }
    if (!is_ready)
        free_beginning(one);
}

bool presto__beginning_take(const char *path, presto__beginning *beginning_out,
                            presto_status *status_out, presto_error *err) {
    presto__ahead *ahead = bound;
    *status_out = PRESTO_OK;
    if (ahead == NULL)
        return false;
    pthread_mutex_lock(&lock);
    (void)adopt(ahead);
    size_t i = find_beginning(ahead, path);
    if (i == SIZE_MAX) {
        pthread_mutex_unlock(&lock);
        return false;
    }
    beginning *one = ahead->beginnings[i];
    ahead->beginnings[i] = ahead->beginnings[--ahead->beginning_count];
    while (*status_out == PRESTO_OK && one->state == UNDER_WAY)
        *status_out = wait_a_while(ahead, ASK_NS, err);
    bool has_come = *status_out == PRESTO_OK && one->state == ARRIVED;
    if (has_come) {
        *beginning_out = (presto__beginning){one->self, one->head, one->call.answer};
        one->self = NULL;
        one->head = NULL;
    } else if (one->state == UNDER_WAY) {
        one->is_unwanted = true;
        presto__http_cancel(&one->call);
        one = NULL;
    }
    pthread_mutex_unlock(&lock);
    if (one != NULL && one->state != UNDER_WAY)
        free_beginning(one);
    return has_come;
}

/* Another thread may take it meanwhile. */
bool presto__beginning_look(const char *path, presto__http_answer *answer_out,
                            presto_status *status_out, presto_error *err) {
    presto__ahead *ahead = bound;
    *status_out = PRESTO_OK;
    if (ahead == NULL)
        return false;
    pthread_mutex_lock(&lock);
    (void)adopt(ahead);
    size_t i = find_beginning(ahead, path);
    while (*status_out == PRESTO_OK && i != SIZE_MAX && ahead->beginnings[i]->state == UNDER_WAY) {
        *status_out = wait_a_while(ahead, ASK_NS, err);
        i = find_beginning(ahead, path);
    }
    bool has_come =
        *status_out == PRESTO_OK && i != SIZE_MAX && ahead->beginnings[i]->state == ARRIVED;
    if (has_come)
        *answer_out = ahead->beginnings[i]->call.answer;
    pthread_mutex_unlock(&lock);
    return has_come;
}

/* ---- its life ---- */

presto_status presto__ahead_new(size_t limit_bytes, presto__ahead **ahead_out, presto_error *err) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, register_fork);
    presto__ahead *ahead = calloc(1, sizeof *ahead);
    if (ahead == NULL)
        return presto_fail_memory(err, sizeof *ahead);
    int failed = presto__timed_condition_init(&ahead->changed);
    if (failed != 0) {
        free(ahead);
        return presto_fail_errno(err, failed, NULL, "cannot make a lock");
    }
    ahead->limit_bytes = limit_bytes;
    ahead->generation = presto__http_generation();
    ahead->top = top_level();
    ahead->level = FIRST_LEVEL < ahead->top ? FIRST_LEVEL : ahead->top;
    ahead->is_climbing = true;
    begin_window(ahead);
    *ahead_out = ahead;
    return PRESTO_OK;
}

static void drop_all(presto__ahead *ahead, flight_list *list) {
    for (presto__flight *one = list->oldest, *next; one != NULL; one = next) {
        next = one->newer;
        drop(ahead, one);
    }
}

void presto__ahead_free(presto__ahead *ahead) {
    if (ahead == NULL)
        return;
    pthread_mutex_lock(&lock);
    (void)adopt(ahead);
    drop_all(ahead, &ahead->queue);
    drop_all(ahead, &ahead->begun);
    for (size_t i = 0; i < ahead->beginning_count; i++) {
        beginning *one = ahead->beginnings[i];
        if (one->state != UNDER_WAY) {
            free_beginning(one);
        } else {
            one->is_unwanted = true;
            presto__http_cancel(&one->call);
        }
    }
    ahead->beginning_count = 0;
    pthread_cond_broadcast(&ahead->changed);
    while (ahead->under_way > 0 || ahead->readers > 0)
        pthread_cond_wait(&ahead->changed, &lock);
    while (ahead->spare_count > 0)
        free_spare(ahead);
    pthread_mutex_unlock(&lock);
    pthread_cond_destroy(&ahead->changed);
    free(ahead);
}

presto__ahead_counts presto__ahead_count(const presto__ahead *ahead) {
    pthread_mutex_lock(&lock);
    presto__ahead_counts counts = ahead->counts;
    pthread_mutex_unlock(&lock);
    return counts;
}

size_t presto__ahead_bytes(const presto__ahead *ahead) {
    pthread_mutex_lock(&lock);
    size_t bytes = ahead->held_bytes;
    pthread_mutex_unlock(&lock);
    return bytes;
}

presto__ahead *presto__ahead_bind(presto__ahead *ahead) {
    presto__ahead *before = bound;
    bound = ahead;
    return before;
}

presto__ahead *presto__ahead_bound(void) {
    return bound;
}
