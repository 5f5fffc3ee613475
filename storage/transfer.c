/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thread runs libcurl's multi interface. Who asks puts a transfer into a list and wakes it; then
 * it waits on the transfer's own condition, or is called. Only that thread touches libcurl's handles.
 * It waits for all sockets itself (epoll) and tells libcurl which of them is ready: then what is done
 * does not grow with the number of transfers, as it would if libcurl looked at each of them.
 *
 * The thread and its connections belong to the process: objects are opened and closed all the time,
 * and a connection over TLS is worth keeping. It is started with the first transfer, and ends with
 * the process, before libcurl and its libraries do. A child after fork has none and starts its own.
 */
#include "transfer_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "../base/clock_internal.h"
#include "../base/stop_internal.h"
#include "../base/thread_internal.h"
#include "curl_internal.h"

#include <presto/version.h>

_Static_assert(sizeof((presto__http_call){0}.why) >= PRESTO__CURL_ERROR_BYTES, "too small");

#define ASK_NS UINT64_C(100000000)    /* how often a stop is asked for while waiting */
#define IDLE_NS UINT64_C(10000000000) /* the thread is woken when there is work */
#define NS_PER_MS UINT64_C(1000000)
#define KEPT_CONNECTIONS 512L
#define CONNECT_MS 10000L
#define STALLED_S 30L /* without a byte for so long, a transfer has failed */
#define BUFFER_BYTES (256L << 10)
#define KEPT_HANDLES 256
#define MOST_EVENTS 64 /* that are taken at once */

static struct {
    pthread_mutex_t lock;
    const presto__curl_functions *curl; /* NULL: not started */
    void *multi;
    int epoll, wake;   /* wake: written to when there is work. Set by start */
    uint64_t timer_ns; /* libcurl wants to be called then; UINT64_MAX: never. The thread's */
    pthread_t thread;
    presto__http_call *first, **last; /* not begun */
    presto__http_call *delayed;       /* not begun, and not due */
    presto__http_call *ended;         /* who began them is to be called */
    presto__http_call *running[1024]; /* begun */
    size_t running_count;
    void *handles[KEPT_HANDLES]; /* idle ones. The thread's */
    size_t handle_count;
    unsigned generation;
    bool is_ending;
    bool has_unwanted;
    int not_watched; /* errno: a socket is not waited for. The thread's */
} client = {.lock = PTHREAD_MUTEX_INITIALIZER, .last = &client.first};

/* ---- what comes ---- */

static bool takes_body(const presto__http_call *one) {
    long code = 0;
    (void)client.curl->easy_getinfo(one->easy, PRESTO__CURLINFO_RESPONSE_CODE, &code);
    return code >= 200 && code < 300;
}

static size_t take_body(char *data, size_t size, size_t count, void *user) {
    presto__http_call *one = user;
    presto__http_answer *answer = &one->answer;
    size_t bytes = size * count;
    if (!takes_body(one)) {
        size_t room = sizeof answer->text - 1 - strlen(answer->text);
        size_t taken = bytes < room ? bytes : room;
        for (size_t i = 0, at = strlen(answer->text); i < taken; i++)
            answer->text[at + i] = data[i] == '\0' ? ' ' : data[i];
        return bytes;
    }
    size_t room = one->request.most_bytes - answer->bytes;
    size_t taken = bytes < room ? bytes : room;
    if (taken > 0)
        memcpy((uint8_t *)one->request.data + answer->bytes, data, taken);
    answer->bytes += taken;
    answer->is_longer = taken < bytes;
    return taken; /* fewer end the transfer */
}

/* The value of a header line, cut to fit. */
static void take_text(char *out, size_t room, const char *value, size_t bytes) {
    size_t taken = bytes < room - 1 ? bytes : room - 1;
    memcpy(out, value, taken);
    out[taken] = '\0';
}

/* What comes in several headers of a name, with commas between. What has no room fills it all. */
static void add_text(char *out, size_t room, const char *value, size_t bytes) {
    size_t at = strlen(out);
    if (at > 0)
        at += (size_t)snprintf(out + at, room - at, ", ");
    if (at < room - 1)
        take_text(out + at, room - at, value, bytes);
}

static size_t take_header(char *data, size_t size, size_t count, void *user) {
    presto__http_answer *answer = &((presto__http_call *)user)->answer;
    const char *method = ((presto__http_call *)user)->request.method;
    bool is_success = takes_body(user), is_post = method != NULL && strcmp(method, "POST") == 0;
    bool is_put = method != NULL && strcmp(method, "PUT") == 0;
    const struct {
        const char *name;
        char *out;
        size_t room;
    } wanted[] = {
        {"etag", answer->etag, sizeof answer->etag},
        {"x-amz-checksum-crc32c", answer->crc32c, sizeof answer->crc32c},
        {"x-amz-checksum-type", answer->checksum_type, sizeof answer->checksum_type},
        {"content-range", answer->content_range, sizeof answer->content_range},
        {"last-modified", answer->last_modified, sizeof answer->last_modified},
        {"x-amz-request-id", answer->request_id, sizeof answer->request_id},
        {"x-guploader-uploadid", answer->request_id, sizeof answer->request_id},
        {"x-request-id", answer->request_id, sizeof answer->request_id},
        {"x-amz-bucket-region", answer->region, sizeof answer->region},
        {"x-goog-generation", answer->generation, sizeof answer->generation},
        {"x-repo-commit", answer->commit, sizeof answer->commit},
        {"x-linked-etag", answer->linked_etag, sizeof answer->linked_etag},
        {"range", is_put ? answer->content_range : NULL, sizeof answer->content_range},
        {"location", is_success && !is_post ? NULL : answer->location, sizeof answer->location},
    };
    size_t bytes = size * count, end = bytes;
    const char *colon = memchr(data, ':', bytes);
    if (colon == NULL)
        return bytes;
    size_t name_bytes = (size_t)(colon - data), at = name_bytes + 1;
    while (end > at && (data[end - 1] == '\r' || data[end - 1] == '\n' || data[end - 1] == ' '))
        end--;
    while (at < end && (data[at] == ' ' || data[at] == '\t'))
        at++;
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
        if (wanted[i].out != NULL && strlen(wanted[i].name) == name_bytes &&
            strncasecmp(wanted[i].name, data, name_bytes) == 0)
            take_text(wanted[i].out, wanted[i].room, data + at, end - at);
    if (is_success && name_bytes == strlen("link") && strncasecmp("link", data, name_bytes) == 0)
        add_text(answer->location, sizeof answer->location, data + at, end - at);
    static const char google[] = "x-goog-hash", crc[] = "crc32c=";
    if (name_bytes == strlen(google) && strncasecmp(google, data, name_bytes) == 0 &&
        end - at > strlen(crc) && memcmp(data + at, crc, strlen(crc)) == 0) {
        take_text(answer->crc32c, sizeof answer->crc32c, data + at + strlen(crc),
                  end - at - strlen(crc));
        answer->crc32c[strcspn(answer->crc32c, ",")] = '\0'; /* md5 may follow */
    }
    if (name_bytes == strlen("content-length") &&
        strncasecmp("content-length", data, name_bytes) == 0) {
        char number[24];
        take_text(number, sizeof number, data + at, end - at);
        answer->length = strtoull(number, NULL, 10);
    }
    return bytes;
}

/* ---- the thread ---- */

static const char *certificates(void) {
    static const char *const names[] = {"AWS_CA_BUNDLE", "SSL_CERT_FILE", "CURL_CA_BUNDLE"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *file = getenv(names[i]);
        if (file != NULL && file[0] != '\0')
            return file;
    }
    return NULL; /* those that the system's libcurl knows */
}

/* Returns: a code of libcurl: 0 if it may be sent. */
static int prepare(presto__http_call *one) {
    const presto__curl_functions *curl = client.curl;
    const presto__http_request *request = &one->request;
    one->why[0] = '\0';
    one->easy = client.handle_count > 0 ? client.handles[--client.handle_count] : curl->easy_init();
    if (one->easy == NULL)
        return PRESTO__CURLE_OUT_OF_MEMORY;
    for (size_t i = 0; i < request->header_count; i++) {
        void *longer = curl->slist_append(one->headers, request->headers[i]);
        if (longer == NULL)
            return PRESTO__CURLE_OUT_OF_MEMORY;
        one->headers = longer;
    }
    bool has_body = request->body.data != NULL;
    if (has_body) { /* it is small: no answer is waited for before it is sent */
        void *longer = curl->slist_append(one->headers, "Expect:");
        if (longer == NULL)
            return PRESTO__CURLE_OUT_OF_MEMORY;
        one->headers = longer;
    }
    long most_ms = request->most_ms;
    const struct {
        int option;
        long value;
    } numbers[] = {
        {PRESTO__CURLOPT_NOSIGNAL, 1},
        {PRESTO__CURLOPT_PROTOCOLS, PRESTO__CURLPROTO_HTTP | PRESTO__CURLPROTO_HTTPS},
        {PRESTO__CURLOPT_TIMEOUT_MS, most_ms},
        {PRESTO__CURLOPT_CONNECTTIMEOUT_MS,
         most_ms > 0 && most_ms < CONNECT_MS ? most_ms : CONNECT_MS},
        {PRESTO__CURLOPT_LOW_SPEED_LIMIT, 1},
        {PRESTO__CURLOPT_LOW_SPEED_TIME, STALLED_S},
        {PRESTO__CURLOPT_TCP_KEEPALIVE, 1},
        {PRESTO__CURLOPT_PATH_AS_IS, 1},
        {PRESTO__CURLOPT_SUPPRESS_CONNECT_HEADERS, 1}, /* of a proxy */
    };
    const struct {
        int option;
        const void *value;
    } pointers[] = {
        {PRESTO__CURLOPT_URL, request->url},
        {PRESTO__CURLOPT_USERAGENT, "presto/" PRESTO_VERSION_TEXT},
        {PRESTO__CURLOPT_HTTPHEADER, one->headers},
        {PRESTO__CURLOPT_WRITEDATA, one},
        {PRESTO__CURLOPT_HEADERDATA, one},
        {PRESTO__CURLOPT_PRIVATE, one},
        {PRESTO__CURLOPT_ERRORBUFFER, one->why},
    };
    int failed = 0;
    /* Without these it works as well: names are looked up without a thread that must be waited for,
     * and the buffer cannot be changed while one is in use. */
    (void)curl->easy_setopt(one->easy, PRESTO__CURLOPT_QUICK_EXIT, 1L);
    (void)curl->easy_setopt(one->easy, PRESTO__CURLOPT_BUFFERSIZE, BUFFER_BYTES);
    for (size_t i = 0; failed == 0 && i < sizeof numbers / sizeof numbers[0]; i++)
        failed = curl->easy_setopt(one->easy, numbers[i].option, numbers[i].value);
    for (size_t i = 0; failed == 0 && i < sizeof pointers / sizeof pointers[0]; i++)
        failed = curl->easy_setopt(one->easy, pointers[i].option, pointers[i].value);
    if (failed == 0)
        failed = curl->easy_setopt(one->easy, PRESTO__CURLOPT_WRITEFUNCTION, take_body);
    if (failed == 0)
        failed = curl->easy_setopt(one->easy, PRESTO__CURLOPT_HEADERFUNCTION, take_header);
    if (failed == 0 && has_body)
        failed = curl->easy_setopt(one->easy, PRESTO__CURLOPT_POSTFIELDSIZE_LARGE,
                                   (int64_t)request->body.bytes);
    if (failed == 0 && has_body)
        failed = curl->easy_setopt(one->easy, PRESTO__CURLOPT_POSTFIELDS, request->body.data);
    if (failed == 0 && request->method != NULL && strcmp(request->method, "HEAD") == 0)
        failed =
            curl->easy_setopt(one->easy, PRESTO__CURLOPT_NOBODY, 1L); /* does not wait for it */
    else if (failed == 0 && request->method != NULL)
        failed = curl->easy_setopt(one->easy, PRESTO__CURLOPT_CUSTOMREQUEST, request->method);
    if (failed == 0 && request->is_direct)
        failed = curl->easy_setopt(one->easy, PRESTO__CURLOPT_NOPROXY, "*");
    const char *file = certificates();
    if (failed == 0 && file != NULL)
        failed = curl->easy_setopt(one->easy, PRESTO__CURLOPT_CAINFO, file);
    return failed;
}

/* The handle goes back, and who waits is told. With the lock held. */
static void finish(presto__http_call *one, int failed) {
    const presto__curl_functions *curl = client.curl;
    presto__http_answer *answer = &one->answer;
    long code = 0;
    if (one->easy != NULL) {
        (void)curl->easy_getinfo(one->easy, PRESTO__CURLINFO_RESPONSE_CODE, &code);
        if (failed == 0)
            curl->easy_reset(one->easy);
        /* After a failure it may not be as new: it keeps a buffer. */
        if (failed == 0 && client.handle_count < KEPT_HANDLES)
            client.handles[client.handle_count++] = one->easy;
        else
            curl->easy_cleanup(one->easy);
        one->easy = NULL;
    }
    curl->slist_free_all(one->headers);
    one->headers = NULL;
    answer->code = (int)code;
    answer->failed = failed;
    if (failed != 0)
        snprintf(answer->why, sizeof answer->why, "%s",
                 one->why[0] != '\0' ? one->why : curl->easy_strerror(failed));
    one->is_done = true;
    if (one->waits != NULL) {
        pthread_cond_signal(one->waits);
    } else {
        one->next = client.ended;
        client.ended = one;
    }
}

/* With the lock held: the first one that is not begun, of at least one. */
static presto__http_call *take_first(void) {
    presto__http_call *one = client.first;
    client.first = one->next;
    if (client.first == NULL)
        client.last = &client.first;
    return one;
}

/* With the lock held: it is to begin now. */
static void append(presto__http_call *one) {
    one->next = NULL;
    *client.last = one;
    client.last = &one->next;
}

/* With the lock held. */
static void begin_all(void) {
    while (client.first != NULL &&
           client.running_count < sizeof client.running / sizeof client.running[0]) {
        presto__http_call *one = take_first();
        int failed = prepare(one);
        if (failed == 0 && client.curl->multi_add_handle(client.multi, one->easy) != 0)
            failed = PRESTO__CURLE_OUT_OF_MEMORY;
        if (failed != 0) {
            finish(one, failed);
        } else {
            one->at = client.running_count;
            client.running[client.running_count++] = one;
        }
    }
}

/* With the lock held: what is due is to begin. Returns how long nothing else will be. */
static uint64_t begin_due(void) {
    uint64_t now_ns = presto__clock_ns(), wait_ns = IDLE_NS;
    for (presto__http_call **at = &client.delayed; *at != NULL;) {
        presto__http_call *one = *at;
        if (one->due_ns <= now_ns) {
            *at = one->next;
            append(one);
            continue;
        }
        if (one->due_ns - now_ns < wait_ns)
            wait_ns = one->due_ns - now_ns;
        at = &one->next;
    }
    return wait_ns;
}

/* With the lock held: take it out of those that run. */
static void end_one(presto__http_call *one, int failed) {
    (void)client.curl->multi_remove_handle(client.multi, one->easy);
    client.running[one->at] = client.running[--client.running_count];
    client.running[one->at]->at = one->at;
    finish(one, failed);
}

/* With the lock held: of those that have not begun. */
static void drop_unwanted(presto__http_call **at) {
    while (*at != NULL) {
        presto__http_call *one = *at;
        if (one->is_unwanted) {
            *at = one->next;
            finish(one, PRESTO__CURLE_ABORTED);
        } else {
            at = &one->next;
        }
    }
}

static void end_unwanted(void) {
    drop_unwanted(&client.delayed);
    drop_unwanted(&client.first);
    for (client.last = &client.first; *client.last != NULL;)
        client.last = &(*client.last)->next;
    for (size_t i = client.running_count; i-- > 0;)
        if (client.running[i]->is_unwanted)
            end_one(client.running[i], PRESTO__CURLE_ABORTED);
    client.has_unwanted = false;
}

/* With the lock held: nothing would wake those that wait for a socket which is not waited for. Which
 * these are is not known: all are tried again. */
static void end_unwatched(void) {
    presto_error why;
    (void)presto_fail_errno(&why, client.not_watched, NULL, "cannot wait for its socket");
    for (size_t i = client.running_count; i-- > 0;) {
        presto__http_call *one = client.running[i];
        snprintf(one->why, sizeof one->why, "%.*s", (int)sizeof one->why - 1, why.message);
        end_one(one, PRESTO__CURLE_SEND_ERROR);
    }
    client.not_watched = 0;
}

static void end_done(void) {
    int left;
    const presto__curl_message *message;
    while ((message = client.curl->multi_info_read(client.multi, &left)) != NULL) {
        void *one = NULL;
        int result = message->data.result;
        if (message->kind == 1 &&
            client.curl->easy_getinfo(message->easy, PRESTO__CURLINFO_PRIVATE, &one) == 0)
            end_one(one, result);
    }
}

/* With the lock held, but not while they are called. */
static void call_ended(void) {
    presto__http_call *one = client.ended;
    client.ended = NULL;
    pthread_mutex_unlock(&client.lock);
    while (one != NULL) {
        presto__http_call *next = one->next; /* it may be freed there */
        one->done(one);
        one = next;
    }
    pthread_mutex_lock(&client.lock);
}

/* libcurl's: which events of a socket are waited for. */
static int take_interest(void *easy, int socket, int what, void *user, void *known) {
    (void)easy, (void)user, (void)known;
    struct epoll_event event = {.data.fd = socket};
    if ((what & PRESTO__CURL_REMOVE) != 0) {
        (void)epoll_ctl(client.epoll, EPOLL_CTL_DEL, socket, NULL);
        return 0;
    }
    event.events = ((what & PRESTO__CURL_IN) != 0 ? (uint32_t)EPOLLIN : 0) |
                   ((what & PRESTO__CURL_OUT) != 0 ? (uint32_t)EPOLLOUT : 0);
    if (epoll_ctl(client.epoll, EPOLL_CTL_MOD, socket, &event) == 0)
        return 0;
    if (epoll_ctl(client.epoll, EPOLL_CTL_ADD, socket, &event) != 0)
        client.not_watched = errno;
    return 0; /* after a failure, libcurl would never ask for its timer again */
}

/* libcurl's: when it wants to be called, in ms from now; -1: not at all. */
static int take_timer(void *multi, long after_ms, void *user) {
    (void)multi, (void)user;
    client.timer_ns =
        after_ms < 0 ? UINT64_MAX : presto__clock_ns() + (uint64_t)after_ms * NS_PER_MS;
    return 0;
}

static void wake(void) {
    const uint64_t one = 1;
    ssize_t written = write(client.wake, &one, sizeof one);
    (void)written; /* what is there already wakes it, too */
}

/* One event: work, or something at a socket. */
static void take_event(const struct epoll_event *event) {
    uint64_t count;
    int running, what = 0;
    if (event->data.fd == client.wake) {
        ssize_t got = read(client.wake, &count, sizeof count);
        (void)got;
        return;
    }
    what |= (event->events & (EPOLLIN | EPOLLHUP)) != 0 ? PRESTO__CURL_IN : 0;
    what |= (event->events & EPOLLOUT) != 0 ? PRESTO__CURL_OUT : 0;
    what |= (event->events & EPOLLERR) != 0 ? PRESTO__CURL_ERR : 0;
    (void)client.curl->multi_socket_action(client.multi, event->data.fd, what, &running);
}

/* Wait until something comes, or for so long, and do what is to be done then. */
static void attend(uint64_t wait_ns) {
    struct epoll_event events[MOST_EVENTS];
    int running;
    uint64_t now_ns = presto__clock_ns();
    if (client.timer_ns <= now_ns)
        wait_ns = 0;
    else if (client.timer_ns - now_ns < wait_ns)
        wait_ns = client.timer_ns - now_ns;
    int count =
        epoll_wait(client.epoll, events, MOST_EVENTS, (int)((wait_ns + NS_PER_MS - 1) / NS_PER_MS));
    for (int i = 0; i < count; i++)
        take_event(&events[i]);
    if (client.timer_ns > presto__clock_ns())
        return;
    client.timer_ns = UINT64_MAX;
    (void)client.curl->multi_socket_action(client.multi, PRESTO__CURL_TIMEOUT, 0, &running);
}

static void *serve(void *unused) {
    (void)unused;
    pthread_mutex_lock(&client.lock);
    while (!client.is_ending) {
        uint64_t wait_ns = begin_due();
        if (client.has_unwanted)
            end_unwanted();
        begin_all();
        if (client.ended != NULL) { /* what could not begin */
            call_ended();
            wait_ns = begin_due(); /* there may be more of them */
        }
        bool may_begin = client.running_count < sizeof client.running / sizeof client.running[0];
        bool has_more = (client.first != NULL && may_begin) || client.has_unwanted;
        pthread_mutex_unlock(&client.lock);
        attend(has_more ? 0 : wait_ns);
        pthread_mutex_lock(&client.lock);
        end_done();
        if (client.not_watched != 0)
            end_unwatched();
        if (client.ended != NULL)
            call_ended();
    }
    while (client.delayed != NULL) {
        presto__http_call *one = client.delayed;
        client.delayed = one->next;
        append(one);
    }
    while (client.running_count > 0)
        end_one(client.running[client.running_count - 1], PRESTO__CURLE_ABORTED);
    while (client.first != NULL)
        finish(take_first(), PRESTO__CURLE_ABORTED);
    call_ended();
    pthread_mutex_unlock(&client.lock);
    return NULL;
}

/* ---- its life ---- */

/* At exit, before libcurl's libraries clean up: they were there when this was registered. */
static void end_client(void) {
    pthread_mutex_lock(&client.lock);
    bool is_running = client.curl != NULL;
    client.is_ending = true;
    pthread_mutex_unlock(&client.lock);
    if (!is_running)
        return;
    wake();
    pthread_join(client.thread, NULL);
    for (size_t i = 0; i < client.handle_count; i++)
        client.curl->easy_cleanup(client.handles[i]);
    (void)client.curl->multi_cleanup(client.multi);
    (void)close(client.epoll);
    (void)close(client.wake);
    pthread_mutex_lock(&client.lock);
    client.curl = NULL; /* nobody wakes it: the numbers may be other files' */
    pthread_mutex_unlock(&client.lock);
}

/* In a child of fork: the thread is not there, and its connections are the parent's. */
static void forget_client(void) {
    const pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    client.lock = lock;
    if (client.curl != NULL) { /* the parent's are the same, and stay */
        (void)close(client.epoll);
        (void)close(client.wake);
    }
    client.curl = NULL;
    client.multi = NULL;
    client.first = NULL;
    client.last = &client.first;
    client.delayed = client.ended = NULL;
    client.running_count = client.handle_count = 0;
    client.not_watched = 0;
    client.has_unwanted = client.is_ending = false;
    client.generation++;
}

/* With the lock held. */
static presto_status start(presto_error *err) {
    static bool is_registered;
    const presto__curl_functions *curl;
    if (client.is_ending)
        return presto_fail(err, PRESTO_ERR_IO, PRESTO_NO_OFFSET,
                           "nothing is requested any more: the process is ending");
    if (client.curl != NULL)
        return PRESTO_OK;
    PRESTO_TRY(presto__curl_load(&curl, err));
    if (!is_registered &&
        (atexit(end_client) != 0 || pthread_atfork(NULL, NULL, forget_client) != 0))
        return presto_fail_memory(err, sizeof client);
    is_registered = true;
    client.multi = curl->multi_init();
    if (client.multi == NULL)
        return presto_fail_memory(err, sizeof client);
    (void)curl->multi_setopt(client.multi, PRESTO__CURLMOPT_MAXCONNECTS, KEPT_CONNECTIONS);
    client.timer_ns = UINT64_MAX;
    client.epoll = epoll_create1(EPOLL_CLOEXEC);
    client.wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = client.wake};
    int failed =
        client.epoll < 0 || client.wake < 0 ||
                epoll_ctl(client.epoll, EPOLL_CTL_ADD, client.wake, &event) != 0
            ? errno
        : curl->multi_setopt(client.multi, PRESTO__CURLMOPT_SOCKETFUNCTION, take_interest) != 0 ||
                curl->multi_setopt(client.multi, PRESTO__CURLMOPT_TIMERFUNCTION, take_timer) != 0
            ? ENOSYS
            : 0;
    client.curl = curl;
    if (failed == 0)
        failed = presto__thread_start(&client.thread, serve, NULL);
    if (failed != 0) {
        client.curl = NULL;
        (void)curl->multi_cleanup(client.multi);
        if (client.epoll >= 0)
            (void)close(client.epoll);
        if (client.wake >= 0)
            (void)close(client.wake);
        return presto_fail_errno(err, failed, NULL, "cannot start a thread");
    }
    return PRESTO_OK;
}

/* ---- who asks ---- */

/* With the lock held. */
static void enter(presto__http_call *one, uint64_t delay_ns) {
    one->is_done = one->is_unwanted = false;
    if (delay_ns == 0) {
        append(one);
    } else {
        one->due_ns = presto__clock_ns() + delay_ns;
        one->next = client.delayed;
        client.delayed = one;
    }
    if (!pthread_equal(pthread_self(), client.thread)) /* that one looks before it waits */
        wake();
}

/* It is in the list still, so the thread has not seen it. */
static bool leave(const presto__http_call *one) {
    for (presto__http_call **at = &client.first; *at != NULL; at = &(*at)->next)
        if (*at == one) {
            *at = one->next;
            if (*at == NULL)
                client.last = at;
            return true;
        }
    return false;
}

/* With the lock held, but not while it waits and asks. */
static presto_status wait_for(presto__http_call *one, presto_error *err) {
    presto_status status = PRESTO_OK;
    while (!one->is_done) {
        uint64_t until_ns = presto__clock_ns() + ASK_NS;
        const struct timespec until = {.tv_sec = (time_t)(until_ns / 1000000000),
                                       .tv_nsec = (long)(until_ns % 1000000000)};
        if (pthread_cond_timedwait(one->waits, &client.lock, &until) != ETIMEDOUT || status < 0)
            continue;
        pthread_mutex_unlock(&client.lock);
        status = presto__stop_check(err);
        pthread_mutex_lock(&client.lock);
        if (status < 0 && !one->is_done) {
            if (leave(one))
                break;
            one->is_unwanted = client.has_unwanted = true;
            wake();
        }
    }
    return status;
}

presto_status presto__http_transfer(const presto__http_request *request,
                                    presto__http_answer *answer_out, presto_error *err) {
    pthread_cond_t done;
    presto__http_call one = {.request = *request, .waits = &done};
    int failed = presto__timed_condition_init(&done);
    if (failed != 0)
        return presto_fail_errno(err, failed, NULL, "cannot make a lock");
    pthread_mutex_lock(&client.lock);
    presto_status status = start(err);
    if (status == PRESTO_OK) {
        enter(&one, 0);
        status = wait_for(&one, err);
    }
    pthread_mutex_unlock(&client.lock);
    pthread_cond_destroy(&done);
    *answer_out = one.answer;
    return status;
}

presto_status presto__http_begin(presto__http_call *call, uint64_t delay_ns, presto_error *err) {
    call->answer = (presto__http_answer){.code = 0};
    call->waits = NULL;
    pthread_mutex_lock(&client.lock);
    presto_status status = start(err);
    if (status == PRESTO_OK)
        enter(call, delay_ns);
    pthread_mutex_unlock(&client.lock);
    return status;
}

void presto__http_cancel(presto__http_call *call) {
    pthread_mutex_lock(&client.lock);
    if (client.curl != NULL && !call->is_done) {
        call->is_unwanted = client.has_unwanted = true;
        wake();
    }
    pthread_mutex_unlock(&client.lock);
}

unsigned presto__http_generation(void) {
    pthread_mutex_lock(&client.lock);
    unsigned generation = client.generation;
    pthread_mutex_unlock(&client.lock);
    return generation;
}
