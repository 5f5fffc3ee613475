/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who owns a folder of a bucket. There, no process can lock a file and lose the lock with its life.
 * So the progress file itself is the lock: it is made on the condition that there is none, and each
 * later write is made on the condition that what stands there is what this process has written last.
 * It names its owner.
 *
 * A run that resumes writes its own name into it, on the condition that it is still the one that it
 * has read: of two, one succeeds. The owner before, should it be alive, fails at its next look at the
 * file. What it may still complete until then are shards of the same job: an object gets its name on
 * the condition that there is none, so it cannot change one that is there.
 *
 * Lock: its own, as writers' threads look at the file, too.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>

#include "../../base/file_internal.h"
#include "../../records/dataset/dataset_internal.h"
#include "../../storage/outlet_internal.h"
#include "convert_internal.h"

#define HOST_BYTES 64
#define MACHINE_BYTES 128

struct presto__bucket_lock {
    char *folder, *path;
    char id[17];       /* of this run */
    char owner_id[17]; /* of the run that it was read from */
    pthread_mutex_t mutex;
    /* Guarded by mutex. */
    presto__version version; /* what this process has written last */
    bool is_held, has_ended, was_taken_over;
    uint64_t lost_before; /* uploads, when it was taken */
};

/* ---- owners ---- */

/* When the process began, in the system's own count: another process of that number has another one.
 * 0: not known. *is_dead_out: it has ended, and nobody has asked how. */
static uint64_t process_start(long pid, bool *is_dead_out) {
    char path[64], text[1024];
    *is_dead_out = false;
    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return 0;
    size_t bytes = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[bytes] = '\0';
    const char *at = strrchr(text, ')'); /* a name may have anything in it */
    *is_dead_out = at != NULL && strncmp(at, ") Z", 3) == 0;
    for (int field = 2; at != NULL && field < 22; field++)
        at = strchr(at + 1, ' ');
    return at == NULL ? 0 : strtoull(at + 1, NULL, 10);
}

static void host_name(char host[HOST_BYTES]) {
    host[0] = '\0';
    (void)gethostname(host, HOST_BYTES - 1);
    host[HOST_BYTES - 1] = '\0';
    for (char *at = host; *at != '\0'; at++) /* it becomes a text of JSON */
        if ((unsigned char)*at < ' ' || (unsigned char)*at > '~')
            *at = '?';
}

/*
 * Where process numbers mean the same: since the machine has begun, in one namespace. Containers may
 * have the host's name, and numbers of their own. "": not known.
 */
static void machine_name(char machine[MACHINE_BYTES]) {
    char boot[64] = "", space[48];
    machine[0] = '\0';
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (file == NULL)
        return;
    size_t bytes = fread(boot, 1, sizeof boot - 1, file);
    fclose(file);
    boot[bytes] = '\0';
    boot[strspn(boot, "0123456789abcdef-")] = '\0';
    ssize_t space_bytes = readlink("/proc/self/ns/pid", space, sizeof space - 1);
    if (boot[0] == '\0' || space_bytes <= 0)
        return;
    space[space_bytes] = '\0';
    snprintf(machine, MACHINE_BYTES, "%s %s", boot, space);
}

/* `has_ended`: the run gives it up. */
static json_t *owner_json(const struct presto__bucket_lock *lock, bool has_ended) {
    char host[HOST_BYTES], machine[MACHINE_BYTES], since[32];
    struct tm parts;
    time_t now = time(NULL);
    bool is_dead;
    host_name(host);
    machine_name(machine);
    since[0] = '\0';
    if (gmtime_r(&now, &parts) != NULL)
        strftime(since, sizeof since, "%Y-%m-%dT%H:%M:%SZ", &parts);
    return json_pack("{s:s, s:s, s:s, s:I, s:I, s:s, s:b}", "id", lock->id, "host", host, "machine",
                     machine, "process", (json_int_t)getpid(), "started",
                     (json_int_t)process_start((long)getpid(), &is_dead), "time", since, "ended",
                     has_ended);
}

/* Of another machine than this one, it cannot be known. */
static presto__owner_state state_of(const json_t *owner) {
    char machine[MACHINE_BYTES];
    const char *theirs = json_string_value(json_object_get(owner, "machine"));
    json_int_t pid = json_integer_value(json_object_get(owner, "process"));
    json_int_t started = json_integer_value(json_object_get(owner, "started"));
    machine_name(machine);
    if (json_is_true(json_object_get(owner, "ended")))
        return PRESTO__OWNER_DEAD;
    bool is_here = theirs != NULL && theirs[0] != '\0' && strcmp(theirs, machine) == 0;
    if (!is_here || pid <= 0 || pid > INT32_MAX)
        return PRESTO__OWNER_UNKNOWN;
    if (kill((pid_t)pid, 0) != 0 && errno == ESRCH)
        return PRESTO__OWNER_DEAD;
    bool is_dead;
    uint64_t start = process_start((long)pid, &is_dead);
    is_dead = is_dead || (start != 0 && started != 0 && (json_int_t)start != started);
    return is_dead ? PRESTO__OWNER_DEAD : PRESTO__OWNER_ALIVE;
}

static presto_status fail_owner(const char *folder, const json_t *owner, presto_error *err) {
    const char *host = json_string_value(json_object_get(owner, "host"));
    presto_status status = presto_fail(
        err, PRESTO_ERR_BUSY, PRESTO_NO_OFFSET,
        "is being written to by process %" PRId64 " on %.63s: let that one end first",
        (int64_t)json_integer_value(json_object_get(owner, "process")), host == NULL ? "?" : host);
    presto_error_set_file(err, folder);
    return status;
}

/* ---- writing it ---- */

/* With the mutex held. */
static presto_status write_file(struct presto__bucket_lock *lock,
                                const presto__progress_file *progress, presto__put_how how,
                                presto_error *err) {
    char *text = presto__progress_file_text(progress, owner_json(lock, lock->has_ended));
    if (text == NULL)
        return presto_fail_memory(err, 0);
    const presto_span content = presto_span_of_text(text);
    presto__version version = {.text = ""};
    how.version_out = &version;
    presto_status status = presto__object_put(lock->path, &content, 1, &how, err);
    free(text);
    if (status == PRESTO_OK && version.text[0] == '\0') {
        status = presto_fail(err, PRESTO_ERR_UNSUPPORTED, PRESTO_NO_OFFSET,
                             "the server gives no ETag for what is written: without, two writers "
                             "could not be told apart");
        presto_error_set_file(err, lock->path);
        if (how.condition == PRESTO__PUT_NEW)
            (void)presto__object_remove(lock->path, NULL);
    }
    if (status == PRESTO_OK)
        lock->version = version;
    return status;
}

static presto_status fail_lost(const struct presto__bucket_lock *lock, presto_error *err) {
    presto_status status =
        presto_fail(err, PRESTO_ERR_BUSY, PRESTO_NO_OFFSET,
                    "was removed, or taken over by another process, while it was written to");
    presto_error_set_file(err, lock->folder);
    return status;
}

presto_status presto__bucket_lock_write(presto__bucket_lock *lock,
                                        const presto__progress_file *progress, presto_error *err) {
    pthread_mutex_lock(&lock->mutex);
    const presto__version before = lock->version;
    const presto__put_how how = {.condition = PRESTO__PUT_SAME, .version = &before};
    presto_status status = write_file(lock, progress, how, err);
    if (status == PRESTO_ERR_BUSY) {
        lock->is_held = false;
        status = fail_lost(lock, err);
    }
    pthread_mutex_unlock(&lock->mutex);
    return status;
}

void presto__bucket_lock_give_up(presto__bucket_lock *lock, const presto__progress_file *progress) {
    pthread_mutex_lock(&lock->mutex);
    lock->has_ended = true;
    pthread_mutex_unlock(&lock->mutex);
    (void)presto__bucket_lock_write(lock, progress, NULL);
}

presto_status presto__bucket_lock_check(presto__bucket_lock *lock, presto_error *err) {
    presto__version now;
    pthread_mutex_lock(&lock->mutex);
    presto_status status = presto__object_version(lock->path, &now, err);
    if (status == PRESTO_ERR_NOT_FOUND ||
        (status == PRESTO_OK && strcmp(now.text, lock->version.text) != 0)) {
        lock->is_held = false;
        status = fail_lost(lock, err);
    }
    pthread_mutex_unlock(&lock->mutex);
    return status;
}

/* ---- taking it ---- */

static presto_status new_lock(const char *folder, presto__bucket_lock **lock_out,
                              presto_error *err) {
    presto__bucket_lock *lock = calloc(1, sizeof *lock);
    if (lock == NULL)
        return presto_fail_memory(err, sizeof *lock);
    int failed = pthread_mutex_init(&lock->mutex, NULL);
    if (failed != 0) {
        free(lock);
        return presto_fail_errno(err, failed, NULL, "cannot make a lock");
    }
    lock->lost_before = presto__sent_count().lost;
    snprintf(lock->id, sizeof lock->id, "%016" PRIx64, presto__random_name());
    lock->folder = strdup(folder);
    lock->path = presto__join_path(folder, PRESTO_PROGRESS_FILE);
    if (lock->folder == NULL || lock->path == NULL) {
        presto__bucket_lock_free(lock);
        return presto_fail_memory(err, strlen(folder));
    }
    *lock_out = lock;
    return PRESTO_OK;
}

void presto__bucket_lock_free(presto__bucket_lock *lock) {
    if (lock == NULL)
        return;
    /* An answer was lost, or what a run had asked for before it died was done after ours had looked:
     * nobody else would end what has begun so. */
    if (lock->is_held && (lock->was_taken_over || presto__sent_count().lost > lock->lost_before))
        (void)presto__uploads_abort_all(lock->folder, NULL, NULL);
    pthread_mutex_destroy(&lock->mutex);
    free(lock->folder);
    free(lock->path);
    free(lock);
}

/* What is put on a condition that does not hold must be refused. */
static presto_status check_condition(const presto__bucket_lock *lock, const presto__put_how *how,
                                     const char *name, presto_error *err) {
    const presto_span other = presto_span_of_text("{}\n");
    presto_error why;
    presto_status status = presto__object_put(lock->path, &other, 1, how, &why);
    if (status == PRESTO_ERR_BUSY)
        return PRESTO_OK;
    (void)presto__object_remove(lock->path, NULL);
    if (status == PRESTO_OK) {
        status = presto_fail(err, PRESTO_ERR_UNSUPPORTED, PRESTO_NO_OFFSET,
                             "the server does not know %s, without which two writers could not be "
                             "told apart: write to a folder, and copy it there",
                             name);
        presto_error_set_file(err, lock->folder);
    } else if (err != NULL) {
        *err = why;
    }
    return status;
}

/* A server that does not know the conditions would let two write. */
static presto_status check_conditions(const presto__bucket_lock *lock, presto_error *err) {
    const presto__version none = {"\"00000000000000000000000000000000\""};
    const presto__put_how is_new = {.condition = PRESTO__PUT_NEW};
    const presto__put_how is_same = {.condition = PRESTO__PUT_SAME, .version = &none};
    PRESTO_TRY(check_condition(lock, &is_new, "If-None-Match", err));
    return check_condition(lock, &is_same, "If-Match", err);
}

presto_status presto__bucket_lock_make(const char *folder, const presto__progress_file *progress,
                                       presto__bucket_lock **lock_out, presto_error *err) {
    presto__bucket_lock *lock = NULL;
    PRESTO_TRY(new_lock(folder, &lock, err));
    const presto__put_how how = {.condition = PRESTO__PUT_NEW};
    pthread_mutex_lock(&lock->mutex);
    presto_status status = write_file(lock, progress, how, err);
    if (status == PRESTO_ERR_BUSY) {
        status = presto_fail(err, PRESTO_ERR_BUSY, PRESTO_NO_OFFSET,
                             "is being written to by another process, which has begun at the same "
                             "time: let that one end first");
        presto_error_set_file(err, folder);
    } else if (status == PRESTO_OK) {
        status = check_conditions(lock, err);
    }
    lock->is_held = status == PRESTO_OK;
    pthread_mutex_unlock(&lock->mutex);
    if (status == PRESTO_OK)
        *lock_out = lock;
    else
        presto__bucket_lock_free(lock);
    return status;
}

/* Who has written the text; NULL: it does not say. */
static json_t *owner_of(presto_span text) {
    json_t *root = json_loadb((const char *)text.data, text.bytes, 0, NULL);
    json_t *owner = json_incref(json_object_get(root, "owner"));
    json_decref(root);
    return owner;
}

presto_status presto__bucket_lock_read(const char *folder, presto__progress_file *progress_out,
                                       presto__bucket_lock **lock_out,
                                       presto__owner_state *owner_out, presto_error *err) {
    presto__bucket_lock *lock = NULL;
    presto_buffer text = {0};
    json_t *owner = NULL;
    PRESTO_TRY(new_lock(folder, &lock, err));
    presto_status status =
        presto__object_read_version(lock->path, PRESTO__JSON_MAX_BYTES, &text, &lock->version, err);
    if (status == PRESTO_OK)
        status = presto__progress_file_parse(presto_buffer_span(&text), progress_out, err);
    if (status < 0)
        presto_error_set_file(err, lock->path);
    if (status == PRESTO_OK)
        owner = owner_of(presto_buffer_span(&text));
    *owner_out = owner == NULL ? PRESTO__OWNER_UNKNOWN : state_of(owner);
    const char *id = json_string_value(json_object_get(owner, "id"));
    snprintf(lock->owner_id, sizeof lock->owner_id, "%s", id == NULL ? "" : id);
    if (*owner_out == PRESTO__OWNER_ALIVE)
        status = fail_owner(folder, owner, err);
    presto_buffer_done(&text);
    json_decref(owner);
    if (status == PRESTO_OK)
        *lock_out = lock;
    else
        presto__bucket_lock_free(lock);
    return status;
}

bool presto__bucket_lock_is_same(const presto__bucket_lock *a, const presto__bucket_lock *b) {
    return strcmp(a->owner_id, b->owner_id) == 0;
}

presto_status presto__bucket_lock_take_over(presto__bucket_lock *lock,
                                            const presto__progress_file *progress,
                                            presto_error *err) {
    presto_status status = presto__bucket_lock_write(lock, progress, err);
    pthread_mutex_lock(&lock->mutex);
    lock->is_held = lock->was_taken_over = status == PRESTO_OK;
    pthread_mutex_unlock(&lock->mutex);
    return status;
}
