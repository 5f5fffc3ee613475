/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded into a program (LD_PRELOAD): a hostile scheduler. Threads sleep or yield at random
 * around locks, condition variables, starts and ends of threads, reads, closes and frees. So orders
 * of events that a quiet machine never shows happen in seconds. For programs under TSan and ASan;
 * tests/chaos/hostile runs the tests with it.
 *
 * PRESTO_HOSTILE_SEED=N chooses what is delayed, how often and how long; without it a seed is drawn
 * and printed. A seed repeats the delays of each thread, not the system's scheduling: a failure
 * comes back within a few runs, not each time.
 * PRESTO_HOSTILE_COUNTS=FILE: at exit each process appends "KIND CALLS DELAYS" lines, one a kind.
 *
 * The threads of a process are delayed for a few times as long as it computes, all of them together:
 * a program that ends without this library also ends with it, and soon. Only Presto's programs and
 * tests are delayed, not a shell or Python.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum kind { LOCK, UNLOCK, WAIT, WAKE, RWLOCK, START, JOIN, READ, CLOSE, FREE, KINDS };
static const char *const names[KINDS] = {"lock",  "unlock", "wait", "wake",  "rwlock",
                                         "start", "join",   "read", "close", "free"};

#define CALLS_A_MOOD 500

/* Each thread may wait for another one's delay, so that it is their sum that needs a bound: so many
 * times the time that the process computes, and a little at its beginning. */
#define DELAY_A_CPU_TIME 4
#define FIRST_DELAYS_NS UINT64_C(200000000)

/* One delay in `every` calls, of up to `most_ns`. */
typedef struct habit {
    uint32_t every;
    uint64_t most_ns;
} habit;

static bool is_on;
static uint64_t seed;
static atomic_uint_fast64_t threads; /* started so far */
static uint64_t forks;               /* by the parents of this process; each child draws its own */
static atomic_uint_fast64_t calls[KINDS], delays[KINDS];
static atomic_uint_fast64_t late_ns; /* of all threads */

static _Thread_local struct {
    bool is_known;
    uint64_t state;
    unsigned calls; /* until the thread's mood changes */
    habit habits[KINDS];
} self;

/* splitmix64 */
static uint64_t next_of(uint64_t *state) {
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static uint64_t now_ns(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void meet_thread(void) {
    uint64_t mixed = seed + (forks << 32);
    (void)next_of(&mixed);
    self.state = mixed + atomic_fetch_add(&threads, 1);
    self.calls = 0;
    self.is_known = true;
}

static void before_fork(void) {
    forks++;
}

static bool is_program_of_ours(void) {
    const char *name = program_invocation_short_name;
    return strncmp(name, "presto", 6) == 0 || strstr(name, "_test_") != NULL;
}

static void in_child(void) {
    atomic_store(&threads, 0);
    atomic_store(&late_ns, 0);
    self.is_known = false;
}

static void *_Atomic static_free;

__attribute__((constructor)) static void begin(void) {
    const char *text = getenv("PRESTO_HOSTILE_SEED");
    atomic_store(&static_free, dlsym(RTLD_NEXT, "free"));
    if (!is_program_of_ours())
        return;
    if (text != NULL) {
        seed = strtoull(text, NULL, 10);
    } else {
        seed = now_ns(CLOCK_MONOTONIC) % 1000000;
        fprintf(stderr, "PRESTO_HOSTILE_SEED=%llu\n", (unsigned long long)seed);
    }
    pthread_atfork(before_fork, NULL, in_child);
    is_on = true;
}

__attribute__((destructor)) static void end(void) {
    const char *path = getenv("PRESTO_HOSTILE_COUNTS");
    FILE *file = !is_on || path == NULL ? NULL : fopen(path, "a");
    is_on = false;
    for (int i = 0; file != NULL && i < KINDS; i++)
        fprintf(file, "%s %llu %llu\n", names[i], (unsigned long long)atomic_load(&calls[i]),
                (unsigned long long)atomic_load(&delays[i]));
    if (file != NULL)
        fclose(file);
}

/* A sanitizer may have replaced the C library's function, so it is not used. */
static void sleep_ns(uint64_t ns) {
    struct timespec time = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
    syscall(SYS_nanosleep, &time, NULL);
}

/* Moods differ: in one, locks take long; in another, frees do; in a third, hardly anything. */
static void draw_habits(void) {
    static const uint32_t everies[] = {2, 8, 32, 128, 1024};
    static const uint64_t mosts_ns[] = {0, 20000, 200000, 2000000, 20000000};
    for (int i = 0; i < KINDS; i++) {
        self.habits[i].every = everies[next_of(&self.state) % 5];
        self.habits[i].most_ns = mosts_ns[next_of(&self.state) % 5];
    }
    self.calls = CALLS_A_MOOD;
}

/* Is this call to be delayed? */
static bool draw(enum kind kind, uint64_t *random_out) {
    if (!is_on)
        return false;
    if (!self.is_known)
        meet_thread();
    if (self.calls-- == 0)
        draw_habits();
    uint64_t random = next_of(&self.state);
    *random_out = random >> 32;
    return (uint32_t)random % self.habits[kind].every == 0;
}

static bool may_sleep(void) {
    return atomic_load_explicit(&late_ns, memory_order_relaxed) <=
           FIRST_DELAYS_NS + DELAY_A_CPU_TIME * now_ns(CLOCK_PROCESS_CPUTIME_ID);
}

static void disturb(enum kind kind) {
    uint64_t random;
    if (!draw(kind, &random))
        return;
    int code = errno;
    /* Mostly short delays; an eighth are of the longest kind. */
    uint64_t part = self.habits[kind].most_ns >> (random & 7);
    if (part == 0 || !may_sleep()) {
        sched_yield();
    } else {
        uint64_t start = now_ns(CLOCK_MONOTONIC);
        sleep_ns(part / 2 + next_of(&self.state) % (part / 2 + 1));
        atomic_fetch_add_explicit(&late_ns, now_ns(CLOCK_MONOTONIC) - start, memory_order_relaxed);
    }
    atomic_fetch_add_explicit(&delays[kind], 1, memory_order_relaxed);
    errno = code;
}

static void count(enum kind kind) {
    atomic_fetch_add_explicit(&calls[kind], 1, memory_order_relaxed);
}

/* The next library's function of that name: the sanitizer's, or the C library's own. */
#define REAL(name) ((__typeof__(&(name)))real(#name, &(static_##name)))
#define DECLARE(name) static void *_Atomic static_##name

static void *real(const char *name, void *_Atomic *cache) {
    void *function = atomic_load_explicit(cache, memory_order_relaxed);
    if (function == NULL) {
        function = dlsym(RTLD_NEXT, name);
        atomic_store_explicit(cache, function, memory_order_relaxed);
    }
    return function;
}

/* A call with a delay before it, and another one behind it. */
#define AROUND(kind, type, name, parameters, arguments)                                            \
    DECLARE(name);                                                                                 \
    type name parameters {                                                                         \
        count(kind);                                                                               \
        disturb(kind);                                                                             \
        type result = REAL(name) arguments;                                                        \
        disturb(kind);                                                                             \
        return result;                                                                             \
    }

AROUND(LOCK, int, pthread_mutex_lock, (pthread_mutex_t * lock), (lock))
AROUND(UNLOCK, int, pthread_mutex_unlock, (pthread_mutex_t * lock), (lock))
AROUND(RWLOCK, int, pthread_rwlock_rdlock, (pthread_rwlock_t * lock), (lock))
AROUND(RWLOCK, int, pthread_rwlock_wrlock, (pthread_rwlock_t * lock), (lock))
AROUND(RWLOCK, int, pthread_rwlock_unlock, (pthread_rwlock_t * lock), (lock))
AROUND(WAKE, int, pthread_cond_signal, (pthread_cond_t * condition), (condition))
AROUND(WAKE, int, pthread_cond_broadcast, (pthread_cond_t * condition), (condition))
AROUND(JOIN, int, pthread_join, (pthread_t thread, void **result_out), (thread, result_out))
AROUND(READ, ssize_t, read, (int fd, void *data, size_t bytes), (fd, data, bytes))
AROUND(READ, ssize_t, pread, (int fd, void *data, size_t bytes, off_t offset),
       (fd, data, bytes, offset))
AROUND(READ, ssize_t, pread64, (int fd, void *data, size_t bytes, off64_t offset),
       (fd, data, bytes, offset))
AROUND(CLOSE, int, close, (int fd), (fd))

/* A wait may end although nobody woke the thread. POSIX allows it, and here it happens. */
static bool wakes_for_nothing(void) {
    uint64_t random;
    return draw(WAIT, &random) && random % 4 == 0;
}

DECLARE(pthread_cond_wait);
int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *lock) {
    count(WAIT);
    disturb(WAIT);
    int result = 0;
    if (wakes_for_nothing()) {
        pthread_mutex_unlock(lock);
        pthread_mutex_lock(lock);
    } else {
        result = REAL(pthread_cond_wait)(condition, lock);
    }
    disturb(WAIT);
    return result;
}

AROUND(WAIT, int, pthread_cond_timedwait,
       (pthread_cond_t * condition, pthread_mutex_t *lock, const struct timespec *until),
       (condition, lock, until))

/*
 * Frees are delayed, so that a use after free is more likely to be seen. Until this library is set
 * up, nothing is freed: a sanitizer that sets itself up calls dlsym, which frees, and must not be
 * entered again from there.
 */
void free(void *memory) {
    void (*function)(void *) = (void (*)(void *))atomic_load(&static_free);
    if (memory == NULL || function == NULL)
        return;
    function(memory);
    count(FREE);
    disturb(FREE);
}

typedef struct birth {
    void *(*run)(void *);
    void *argument;
} birth;

static void *start_late(void *argument) {
    birth own = *(birth *)argument;
    REAL(free)(argument);
    disturb(START);
    return own.run(own.argument);
}

DECLARE(pthread_create);
int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                   void *argument) {
    birth *own = is_on ? malloc(sizeof *own) : NULL;
    if (own == NULL)
        return REAL(pthread_create)(thread, attributes, run, argument);
    *own = (birth){run, argument};
    count(START);
    disturb(START);
    int result = REAL(pthread_create)(thread, attributes, start_late, own);
    if (result != 0)
        REAL(free)(own);
    disturb(START);
    return result;
}
