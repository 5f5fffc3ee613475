/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A web server for benchmarks of reading over a network: files of a folder in ranges, with a round
 * trip and a bandwidth per connection that are played, in one thread that takes little of the
 * machine which measures.
 *
 *   range-server FOLDER [ROUND_TRIP_MS [MB_PER_S_PER_CONNECTION]]
 *
 * Prints its port. Ends with its standard input, and then prints how many requests there were, how
 * many connections, and how many bytes were sent.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MOST_CONNECTIONS 2048
#define MOST_REQUEST 8192
#define MOST_FILES 4096
#define PIECE ((size_t)256 << 10)

typedef struct file {
    char *name;
    int fd;
    struct stat info;
} file;

typedef struct connection {
    int fd; /* -1: free */
    char request[MOST_REQUEST];
    size_t request_bytes;
    char head[512];
    size_t head_bytes, head_sent;
    int from;
    off_t at, end;
    uint64_t due_ns; /* the answer begins */
    bool answers;
    bool is_full; /* the socket takes no more for now */
    uint64_t sent;
} connection;

static connection connections[MOST_CONNECTIONS];
static size_t connection_count;
static file files[MOST_FILES];
static size_t file_count;
static uint64_t requests, accepted, bytes_sent, round_trip_ns;
static double bytes_per_s;

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static const file *find_file(const char *name) {
    for (size_t i = 0; i < file_count; i++)
        if (strcmp(files[i].name, name) == 0)
            return &files[i];
    file found = {.fd = open(name, O_RDONLY | O_CLOEXEC)};
    if (found.fd < 0 || file_count == MOST_FILES || fstat(found.fd, &found.info) != 0 ||
        !S_ISREG(found.info.st_mode)) {
        if (found.fd >= 0)
            close(found.fd);
        return NULL;
    }
    found.name = strdup(name);
    files[file_count] = found;
    return &files[file_count++];
}

/* A request is whole: prepare its answer. */
static void answer(connection *one) {
    char name[1024] = "";
    uint64_t first = 0, last = UINT64_MAX;
    requests++;
    (void)sscanf(one->request, "%*s /%1023[^ ?]", name);
    const char *range = strcasestr(one->request, "\nrange: bytes=");
    if (range != NULL)
        (void)sscanf(range + strlen("\nrange: bytes="), "%" SCNu64 "-%" SCNu64, &first, &last);
    const file *found = strstr(name, "..") != NULL ? NULL : find_file(name);
    uint64_t size = found == NULL ? 0 : (uint64_t)found->info.st_size;
    one->at = one->end = 0;
    if (found == NULL) {
        snprintf(one->head, sizeof one->head,
                 "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
    } else if (first >= size) {
        snprintf(one->head, sizeof one->head,
                 "HTTP/1.1 416 Range\r\nContent-Range: bytes */%ju\r\nContent-Length: 0\r\n\r\n",
                 (uintmax_t)size);
    } else {
        last = last < size ? last : size - 1;
        one->from = found->fd;
        one->at = (off_t)first;
        one->end = (off_t)last + 1;
        snprintf(one->head, sizeof one->head,
                 "HTTP/1.1 206 Partial Content\r\nETag: \"%jx-%jx\"\r\n"
                 "Last-Modified: Fri, 27 Nov 2026 08:00:00 GMT\r\n"
                 "Content-Range: bytes %ju-%ju/%ju\r\nContent-Length: %ju\r\n\r\n",
                 (uintmax_t)found->info.st_ino, (uintmax_t)size, (uintmax_t)first, (uintmax_t)last,
                 (uintmax_t)size, (uintmax_t)(last - first + 1));
    }
    one->head_bytes = strlen(one->head);
    one->head_sent = 0;
    one->sent = 0;
    one->due_ns = now_ns() + round_trip_ns;
    one->answers = true;
}

static void end(connection *one) {
    close(one->fd);
    one->fd = -1;
}

static void take(connection *one) {
    if (one->answers)
        return;
    ssize_t got =
        recv(one->fd, one->request + one->request_bytes, MOST_REQUEST - 1 - one->request_bytes, 0);
    if (got <= 0) {
        if (got == 0 || errno != EAGAIN)
            end(one);
        return;
    }
    one->request_bytes += (size_t)got;
    one->request[one->request_bytes] = '\0';
    if (strstr(one->request, "\r\n\r\n") == NULL)
        return;
    one->request_bytes = 0;
    answer(one);
}

/* Send what may be sent by now. Returns when there will be more; UINT64_MAX: the socket says. */
static uint64_t give(connection *one, uint64_t now) {
    if (!one->answers || one->is_full)
        return UINT64_MAX;
    if (now < one->due_ns)
        return one->due_ns;
    while (one->head_sent < one->head_bytes) {
        int more = one->at < one->end ? MSG_MORE : 0;
        ssize_t sent = send(one->fd, one->head + one->head_sent, one->head_bytes - one->head_sent,
                            MSG_NOSIGNAL | more);
        if (sent <= 0) {
            end(one);
            return UINT64_MAX;
        }
        one->head_sent += (size_t)sent;
    }
    while (one->at < one->end) {
        size_t piece = (size_t)(one->end - one->at) < PIECE ? (size_t)(one->end - one->at) : PIECE;
        if (bytes_per_s > 0) {
            double may = bytes_per_s * (double)(now - one->due_ns) * 1e-9 - (double)one->sent;
            size_t whole = piece < 16384 ? piece : 16384;
            if (may < (double)whole)
                return now + 500000;
            if ((double)piece > may)
                piece = (size_t)may;
        }
        ssize_t sent = sendfile(one->fd, one->from, &one->at, piece);
        if (sent < 0 && errno == EAGAIN) {
            one->is_full = true;
            return UINT64_MAX;
        }
        if (sent <= 0) {
            end(one);
            return UINT64_MAX;
        }
        one->sent += (size_t)sent;
        bytes_sent += (size_t)sent;
    }
    one->answers = false;
    return UINT64_MAX;
}

static void welcome(int epoll, int listener) {
    int fd;
    while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        size_t i = 0;
        while (i < connection_count && connections[i].fd >= 0)
            i++;
        if (i == MOST_CONNECTIONS) {
            close(fd);
            continue;
        }
        if (i == connection_count)
            connection_count++;
        connections[i] = (connection){.fd = fd};
        const int yes = 1;
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
        struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET,
                                    .data.ptr = &connections[i]};
        (void)epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
        accepted++;
    }
}

int main(int argc, char **argv) {
    if (argc < 2 || chdir(argv[1]) != 0) {
        fprintf(stderr, "usage: range-server FOLDER [ROUND_TRIP_MS [MB_PER_S]]\n");
        return 2;
    }
    (void)signal(SIGPIPE, SIG_IGN); /* clients hang up */
    round_trip_ns = argc > 2 ? (uint64_t)(atof(argv[2]) * 1e6) : 0;
    bytes_per_s = argc > 3 ? atof(argv[3]) * 1e6 : 0;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof address;
    if (bind(listener, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(listener, 1024) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &bytes) != 0)
        return 1;
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = &listener};
    (void)epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event);
    event = (struct epoll_event){.events = EPOLLIN, .data.ptr = NULL};
    (void)epoll_ctl(epoll, EPOLL_CTL_ADD, STDIN_FILENO, &event);
    for (bool goes_on = true; goes_on;) {
        struct epoll_event events[256];
        uint64_t now = now_ns(), next = UINT64_MAX;
        for (size_t i = 0; i < connection_count; i++) {
            uint64_t when = connections[i].fd < 0 ? UINT64_MAX : give(&connections[i], now);
            next = when < next ? when : next;
        }
        uint64_t later = now_ns();
        uint64_t wait_ns = next == UINT64_MAX ? 1000000000 : next > later ? next - later : 0;
        struct timespec wait = {.tv_sec = (time_t)(wait_ns / 1000000000),
                                .tv_nsec = (long)(wait_ns % 1000000000)};
        int count = epoll_pwait2(epoll, events, 256, &wait, NULL);
        for (int i = 0; i < count; i++) {
            if (events[i].data.ptr == NULL) {
                char byte;
                goes_on = read(STDIN_FILENO, &byte, 1) > 0;
            } else if (events[i].data.ptr == &listener) {
                welcome(epoll, listener);
            } else {
                connection *one = events[i].data.ptr;
                one->is_full = one->is_full && (events[i].events & EPOLLOUT) == 0;
                if (one->fd >= 0 && (events[i].events & (EPOLLIN | EPOLLHUP)) != 0)
                    take(one);
            }
        }
    }
    printf("{\"requests\": %ju, \"connections\": %ju, \"bytes\": %ju}\n", (uintmax_t)requests,
           (uintmax_t)accepted, (uintmax_t)bytes_sent);
    return 0;
}
