/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sets of keys, shared by all who ask. A set is known by what its providers look at: the variables
 * of the environment. As many sets are kept as anybody uses, and one that nobody uses.
 *
 * New keys are got when the old ones have little time left: a quarter of what they had, 15 minutes
 * at most. If that fails, or gives no later ones, it is tried again after a tenth of the time that
 * is left, 1 second at least and 1 minute at most; the old ones are used until they expire.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "../../base/clock_internal.h"
#include "../../base/digest_internal.h"
#include "../../base/stop_internal.h"
#include "../../base/thread_internal.h"
#include "chain_internal.h"

#define MOST_AHEAD_S 900
#define LEAST_PAUSE_S 1
#define MOST_PAUSE_S 60
#define ASK_NS UINT64_C(100000000) /* how often a stop is asked for while waiting */

extern char **environ;

struct presto__credentials {
    /* Set once. */
    presto__cloud cloud;
    presto__digest environment;
    presto__aws_config config; /* of AWS, as it was when the set was made */
    /* Guarded by the lock. */
    presto__credentials *next;
    unsigned users;
    presto__keys *keys;   /* NULL: none yet */
    int64_t ahead_s;      /* so long before they expire, others are got */
    int64_t next_try_s;   /* not before that, as long as these are valid */
    bool is_asking;       /* one is getting keys */
    uint64_t attempts;    /* that have ended */
    presto_error failure; /* of the last one; status PRESTO_OK: it had keys */
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t ended; /* an attempt, of any set */
    presto__credentials *first;
    uint64_t last_number;
} sets = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- the list of sets ---- */

/* In a child of fork: whoever was getting keys is not there. */
static void in_child(void) {
    for (presto__credentials *one = sets.first; one != NULL; one = one->next)
        one->is_asking = false;
    (void)presto__timed_condition_init(&sets.ended);
    pthread_mutex_unlock(&sets.lock);
}

static void before_fork(void) {
    pthread_mutex_lock(&sets.lock);
}

static void in_parent(void) {
    pthread_mutex_unlock(&sets.lock);
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int begun;

static void begin(void) {
    begun = presto__timed_condition_init(&sets.ended);
    if (begun == 0)
        begun = pthread_atfork(before_fork, in_parent, in_child);
}

/* What is looked at: variables of AWS's and Google's tools, and of ours for them. */
static presto__digest digest_of_environment(presto__cloud cloud) {
    static const char *const names[] = {"AWS_", "PRESTO_", "GOOGLE_", "CLOUDSDK_",
                                        "GCE_", "NO_GCE_", "HOME="};
    presto__digest digest = {{(uint64_t)cloud, 0}};
    for (char **at = environ; at != NULL && *at != NULL; at++)
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
            if (strncmp(*at, names[i], strlen(names[i])) == 0)
                presto__digest_add(&digest, *at, strlen(*at));
    return digest;
}

static void free_set(presto__credentials *one) {
    if (one->keys != NULL) {
        presto__keys_done(one->keys);
        free(one->keys);
    }
    presto__aws_config_done(&one->config);
    free(one);
}

/* With the lock held: take out all that nobody uses, but for the first `kept` of them, which were
 * used last. Returns the list of them. */
static presto__credentials *take_unused(size_t kept) {
    presto__credentials *unused = NULL;
    for (presto__credentials **at = &sets.first; *at != NULL;) {
        presto__credentials *one = *at;
        if (one->users > 0 || kept > 0) {
            kept -= one->users == 0;
            at = &one->next;
        } else {
            *at = one->next;
            one->next = unused;
            unused = one;
        }
    }
    return unused;
}

/* With the lock held: the set of this environment, now in use and the first of the list. NULL: there
 * is none. */
static presto__credentials *find_set(presto__cloud cloud, const presto__digest *digest) {
    for (presto__credentials **at = &sets.first; *at != NULL; at = &(*at)->next) {
        presto__credentials *one = *at;
        if (one->cloud == cloud && memcmp(&one->environment, digest, sizeof *digest) == 0) {
            *at = one->next;
            one->next = sets.first;
            sets.first = one;
            one->users++;
            return one;
        }
    }
    return NULL;
}

presto_status presto__credentials_find(presto__cloud cloud, presto__credentials **credentials_out,
                                       presto_error *err) {
    (void)pthread_once(&once, begin);
    if (begun != 0)
        return presto_fail_errno(err, begun, NULL, "cannot make a lock");
    const presto__digest digest = digest_of_environment(cloud);
    pthread_mutex_lock(&sets.lock);
    presto__credentials *one = find_set(cloud, &digest);
    pthread_mutex_unlock(&sets.lock);
    if (one != NULL) {
        *credentials_out = one;
        return PRESTO_OK;
    }
    presto__credentials *made = calloc(1, sizeof *made);
    if (made == NULL)
        return presto_fail_memory(err, sizeof *made);
    made->cloud = cloud;
    made->environment = digest;
    made->users = 1;
    presto_status status =
        cloud == PRESTO__CLOUD_AWS ? presto__aws_config_read(&made->config, err) : PRESTO_OK;
    if (status < 0) {
        free(made);
        return status;
    }
    pthread_mutex_lock(&sets.lock);
    one = find_set(cloud, &digest); /* another thread may have made it meanwhile */
    if (one == NULL) {
        made->next = sets.first;
        sets.first = one = made;
        made = NULL;
    }
    presto__credentials *unused = take_unused(1);
    pthread_mutex_unlock(&sets.lock);
    if (made != NULL)
        free_set(made);
    while (unused != NULL) {
        presto__credentials *next = unused->next;
        free_set(unused);
        unused = next;
    }
    *credentials_out = one;
    return PRESTO_OK;
}

void presto__credentials_release(presto__credentials *credentials) {
    if (credentials == NULL)
        return;
    pthread_mutex_lock(&sets.lock);
    credentials->users--;
    pthread_mutex_unlock(&sets.lock);
}

const presto__aws_config *presto__credentials_config(const presto__credentials *credentials) {
    return credentials->cloud == PRESTO__CLOUD_AWS ? &credentials->config : NULL;
}

/* ---- keys ---- */

/* With the lock held. */
static void drop_keys(presto__keys *keys) {
    if (--keys->users == 0) {
        presto__keys_done(keys);
        free(keys);
    }
}

void presto__keys_release(const presto__keys *keys) {
    if (keys == NULL)
        return;
    pthread_mutex_lock(&sets.lock);
    drop_keys((presto__keys *)(uintptr_t)keys); /* who has them may not change them, the room may */
    pthread_mutex_unlock(&sets.lock);
}

static bool are_valid(const presto__keys *keys, int64_t now_s) {
    return keys != NULL && !keys->is_refused && keys->until_s > now_s;
}

/* With the lock held: what an attempt has come to. `made` NULL: `why` says why not. */
static void end_attempt(presto__credentials *set, presto__keys *made, const presto_error *why) {
    int64_t now_s = (int64_t)time(NULL);
    presto__keys *before = set->keys;
    int64_t had_until_s = before != NULL && are_valid(before, now_s) ? before->until_s : 0;
    set->failure = *why;
    set->attempts++;
    set->is_asking = false;
    if (made != NULL) {
        if (before != NULL)
            drop_keys(before);
        made->users = 1;
        made->number = ++sets.last_number;
        set->keys = made;
        int64_t left_s = made->until_s - now_s;
        set->ahead_s = left_s / 4 < MOST_AHEAD_S ? left_s / 4 : MOST_AHEAD_S;
        set->next_try_s = 0;
    }
    if (set->keys != NULL && set->keys->until_s <= had_until_s) { /* no later ones */
        int64_t pause_s = (set->keys->until_s - now_s) / 10;
        pause_s = pause_s < MOST_PAUSE_S ? pause_s : MOST_PAUSE_S;
        set->next_try_s = now_s + (pause_s > LEAST_PAUSE_S ? pause_s : LEAST_PAUSE_S);
    }
    (void)pthread_cond_broadcast(&sets.ended);
}

/* Ask the providers. The files are read anew: some tools put newer keys there. */
static presto_status find_keys(presto__cloud cloud, presto__keys *keys_out, presto_error *err) {
    presto__aws_config config = {.profile = NULL};
    if (cloud == PRESTO__CLOUD_AWS)
        PRESTO_TRY(presto__aws_config_read(&config, err));
    presto_status status = presto__chain_find(cloud, &config, keys_out, err);
    presto__aws_config_done(&config);
    return status;
}

/* Called without the lock, returns with it. */
static presto_status attempt(presto__credentials *set, presto_error *err) {
    presto_error why = {.status = PRESTO_OK};
    presto__keys *made = calloc(1, sizeof *made);
    presto_status status =
        made == NULL ? presto_fail_memory(&why, sizeof *made) : find_keys(set->cloud, made, &why);
    if (status == PRESTO_OK && made->until_s <= (int64_t)time(NULL)) {
        status = presto_fail(&why, PRESTO_ERR_IO, PRESTO_NO_OFFSET,
                             "the keys that %s gives have expired already", made->provider);
        presto__keys_done(made);
    }
    if (status < 0) {
        free(made);
        made = NULL;
        if (err != NULL)
            *err = why;
    } else {
        why.status = PRESTO_OK;
    }
    pthread_mutex_lock(&sets.lock);
    end_attempt(set, made, &why);
    return status;
}

/* With the lock held, but not while it waits and asks: until the attempt under way has ended. */
static presto_status wait_for_attempt(const presto__credentials *set, presto_error *err) {
    uint64_t before = set->attempts;
    while (set->attempts == before && set->is_asking) {
        uint64_t until_ns = presto__clock_ns() + ASK_NS;
        const struct timespec until = {.tv_sec = (time_t)(until_ns / 1000000000),
                                       .tv_nsec = (long)(until_ns % 1000000000)};
        if (pthread_cond_timedwait(&sets.ended, &sets.lock, &until) != ETIMEDOUT)
            continue;
        pthread_mutex_unlock(&sets.lock);
        presto_status status = presto__stop_check(err);
        pthread_mutex_lock(&sets.lock);
        PRESTO_TRY(status);
    }
    return PRESTO_OK;
}

/* With the lock held: until there are keys that are valid, or getting them has failed. */
static presto_status have_keys(presto__credentials *set, presto_error *err) {
    for (;;) {
        int64_t now_s = (int64_t)time(NULL);
        bool has_keys = are_valid(set->keys, now_s);
        if (has_keys && (set->keys->until_s == PRESTO__KEYS_FOR_EVER || set->is_asking ||
                         set->keys->until_s - now_s > set->ahead_s || now_s < set->next_try_s))
            return PRESTO_OK;
        if (!set->is_asking) {
            set->is_asking = true;
            pthread_mutex_unlock(&sets.lock);
            presto_status status = attempt(set, err); /* has taken the lock */
            bool has_old =
                status != PRESTO_ERR_STOPPED && are_valid(set->keys, (int64_t)time(NULL));
            return has_old ? PRESTO_OK : status;
        }
        PRESTO_TRY(wait_for_attempt(set, err));
        /* Whoever asked may have been stopped: that is not this one's failure. */
        if (!set->is_asking && set->failure.status < 0 &&
            set->failure.status != PRESTO_ERR_STOPPED) {
            if (err != NULL)
                *err = set->failure;
            return set->failure.status;
        }
    }
}

presto_status presto__keys_acquire(presto__credentials *credentials, const presto__keys **keys_out,
                                   presto_error *err) {
    pthread_mutex_lock(&sets.lock);
    presto_status status = have_keys(credentials, err);
    if (status == PRESTO_OK) {
        credentials->keys->users++;
        *keys_out = credentials->keys;
    }
    pthread_mutex_unlock(&sets.lock);
    return status;
}

bool presto__keys_renew(presto__credentials *credentials, uint64_t number) {
    const presto__keys *now;
    pthread_mutex_lock(&sets.lock);
    presto__keys *keys = credentials->keys, *refused = NULL;
    if (keys != NULL && keys->number == number) {
        keys->is_refused = true;
        keys->users++;
        refused = keys;
    }
    pthread_mutex_unlock(&sets.lock);
    if (presto__keys_acquire(credentials, &now, NULL) != PRESTO_OK) {
        presto__keys_release(refused);
        return false;
    }
    bool is_other = now->number != number;
    if (refused != NULL) /* the same ones again, from a file that nobody has changed? */
        is_other = now->access_key != NULL && refused->access_key != NULL
                       ? strcmp(now->access_key, refused->access_key) != 0
                       : now->token != NULL && refused->token != NULL &&
                             strcmp(now->token, refused->token) != 0;
    presto__keys_release(now);
    presto__keys_release(refused);
    return is_other;
}
