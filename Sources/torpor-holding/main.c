// SPDX-License-Identifier: Apache-2.0

// torpor-holding AFTER FIRST ELAPSED: tells browsers that an app is starting.
//
// It inherits descriptor 3, a socket: it writes a byte for each connection that it answers, and exits when the other
// end is closed. Descriptor 4 is the page, in which @SECONDS@ stands for how long the app has been starting. The
// app's listening sockets follow from 5 on. A connection that the app has not accepted within AFTER milliseconds
// (FIRST for those already waiting at the start) is accepted here. It gets the page or, if it does not ask for HTML,
// a request to retry. So an app that accepts connections gets all of them, whether it has reported that it is ready
// or not: this program exits as soon as the app accepts its first one.
//
// It keeps no connection alive, does not speak TLS, reads at most 8 KiB of a request in five seconds, and serves at
// most 64 connections. After it has read the page, seccomp lets it only accept, receive, send, wait, and count
// connections.

#define _GNU_SOURCE
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "accepted.h"

enum {
    CONTROL = 3,
    PAGE = 4,
    FIRST_LISTENER = 5,
    MOST_LISTENERS = 64,
    MOST_CLIENTS = 64,
    HEAD_BYTES = 8192,
    HEAD_TIME = 5000,   // ms to receive a request
    SEND_TIME = 5000,   // ms to send a page
    CLOSE_TIME = 1000,  // ms for the client to close
    LOOK_AGAIN = 100,   // ms between two checks of a waiting connection
    ACCEPT_TIME = 20000, // µs that accept may block if the app was faster
    MOST_AT_ONCE = 8    // connections accepted per check: the app may begin to accept at any time
};

static const char marker[] = "@SECONDS@";

struct client {
    int fd;
    const struct listener *listener;
    enum { FREE, READING, SENDING, CLOSING } stage;
    int64_t until;
    size_t read;
    size_t sent;
    char *answer;
    size_t length;
    char head[HEAD_BYTES];
};

static struct listener listeners[MOST_LISTENERS];
static int listener_count;
static struct client clients[MOST_CLIENTS];
static char *page;
static size_t page_bytes;
static int64_t began;
static int is_over; // accept no more: finish the open connections and exit

static int64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

static void alarmed(int number) { (void)number; }

// The number of connections waiting to be accepted; -1: unknown. Only accept makes this number smaller: a connection
// that its client has closed still counts.
static int count_waiting(int fd)
{
    struct tcp_info info = {0};
    socklen_t size = sizeof info;
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) < 0 || info.tcpi_state != TCP_LISTEN)
        return -1;
    return (int)info.tcpi_unacked;
}

// accept(2) blocks if the app was faster: O_NONBLOCK is not set, since it would affect the app's descriptor too. A
// timer's signal ends the call. The timer repeats, since its first signal may come before accept blocks.
static int accept_soon(int fd)
{
    struct itimerval timer = {{.tv_usec = ACCEPT_TIME}, {.tv_usec = ACCEPT_TIME}}, none = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &timer, NULL);
    int client = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    setitimer(ITIMER_REAL, &none, NULL);
    return client;
}

static void let_go(struct client *client)
{
    close(client->fd);
    free(client->answer);
    client->answer = NULL;
    client->stage = FREE;
}

// Whether a header of that name has the text in its value.
static int header_has(const char *head, const char *name, const char *text)
{
    size_t length = strlen(name);
    for (const char *line = strstr(head, "\r\n"); line; line = strstr(line, "\r\n")) {
        line += 2;
        if (strncasecmp(line, name, length) != 0 || line[length] != ':')
            continue;
        const char *end = strstr(line, "\r\n");
        for (const char *at = line + length; end && at < end; at++)
            if (strncasecmp(at, text, strlen(text)) == 0)
                return 1;
    }
    return 0;
}

// Makes the response to a complete request; 0: out of memory.
static int make_answer(struct client *client)
{
    int is_get = strncmp(client->head, "GET ", 4) == 0, is_head = strncmp(client->head, "HEAD ", 5) == 0;
    int wants_page = (is_get || is_head) && header_has(client->head, "accept", "text/html");
    char seconds[24];
    snprintf(seconds, sizeof seconds, "%lld", (long long)((now() - began) / 1000));
    const char *mark = wants_page ? memmem(page, page_bytes, marker, sizeof marker - 1) : NULL;
    size_t body = wants_page ? page_bytes - (mark ? sizeof marker - 1 : 0) + (mark ? strlen(seconds) : 0) : 0;
    char *answer = malloc(1024 + body);
    if (!answer)
        return 0;
    int length = snprintf(
        answer, 1024,
        "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 2\r\nCache-Control: no-store\r\nConnection: close\r\n"
        "X-Content-Type-Options: nosniff\r\n%sContent-Length: %zu\r\n\r\n",
        wants_page ? "Refresh: 2\r\nContent-Type: text/html; charset=utf-8\r\nVary: Accept\r\n"
                     "Content-Security-Policy: default-src 'none'; img-src data:; style-src 'unsafe-inline'\r\n"
                   : "",
        body);
    char *at = answer + length;
    if (wants_page && !is_head) {
        size_t before = mark ? (size_t)(mark - page) : page_bytes;
        memcpy(at, page, before);
        at += before;
        if (mark) {
            memcpy(at, seconds, strlen(seconds));
            at += strlen(seconds);
            size_t after = page_bytes - before - (sizeof marker - 1);
            memcpy(at, mark + sizeof marker - 1, after);
            at += after;
        }
    }
    client->answer = answer;
    client->length = (size_t)(at - answer);
    return 1;
}

static void go_on(struct client *client)
{
    if (client->stage == READING) {
        ssize_t count = recv(client->fd, client->head + client->read, HEAD_BYTES - 1 - client->read, 0);
        if (count < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (count <= 0)
            return let_go(client);
        client->read += (size_t)count;
        client->head[client->read] = 0;
        // A NUL makes the request invalid: close without a response.
        if (strlen(client->head) != client->read)
            return let_go(client);
        // A request that is too long gets its response too: the rest is discarded.
        if (!strstr(client->head, "\r\n\r\n") && client->read < HEAD_BYTES - 1)
            return;
        if (!make_answer(client))
            return let_go(client);
        client->stage = SENDING;
        client->until = now() + SEND_TIME;
    }
    if (client->stage == SENDING) {
        ssize_t count =
            send(client->fd, client->answer + client->sent, client->length - client->sent, MSG_NOSIGNAL);
        if (count < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (count < 0)
            return let_go(client);
        client->sent += (size_t)count;
        if (client->sent < client->length)
            return;
        // Read until the client closes: closing with unread data would reset the connection and lose the response.
        shutdown(client->fd, SHUT_WR);
        client->stage = CLOSING;
        client->until = now() + CLOSE_TIME;
        return;
    }
    char rest[4096];
    ssize_t count = recv(client->fd, rest, sizeof rest, 0);
    if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR))
        let_go(client);
}

static int has_waiting(int fd)
{
    struct pollfd look = {.fd = fd, .events = POLLIN};
    return poll(&look, 1, 0) > 0 && (look.revents & POLLIN);
}

static void take(struct listener *listener)
{
    int taken = 0;
    for (int i = 0; i < MOST_CLIENTS && taken < MOST_AT_ONCE; i++) {
        if (clients[i].stage != FREE)
            continue;
        if (!has_waiting(listener->fd))
            break;
        int fd = accept_soon(listener->fd);
        if (fd < 0)
            break;
        taken++;
        struct client *client = &clients[i];
        client->fd = fd;
        client->listener = listener;
        client->stage = READING;
        client->until = now() + HEAD_TIME;
        client->read = client->sent = 0;
    }
    char news[MOST_AT_ONCE] = {0};
    if (taken > 0)
        send(CONTROL, news, (size_t)taken, MSG_NOSIGNAL | MSG_DONTWAIT);
    // Do not count the connections that this process has accepted as accepted by the app.
    if (listener->waiting >= 0)
        listener->waiting -= taken;
    if (!has_waiting(listener->fd))
        listener->since = 0;
}

// Whether the app has accepted connections that are still open: in that case it runs and is only busy. A connection
// that it accepts and closes between two checks is not seen.
static int has_accepted(const struct listener *listener)
{
    int own = 0;
    for (int i = 0; i < MOST_CLIENTS; i++)
        if (clients[i].stage != FREE)
            own += clients[i].listener == listener || (port(listener) && port(clients[i].listener) == port(listener));
    return count_accepted(listener) > own;
}

// Checks a listener: answers connections that have waited long enough, and sets `is_over` once the app accepts
// connections itself.
static void look_at(struct listener *listener, int64_t after)
{
    struct pollfd look = {.fd = listener->fd, .events = POLLIN};
    int is_readable = poll(&look, 1, 0) > 0;
    // The app has shut the socket down: no more connections will come.
    if (is_readable && (look.revents & (POLLHUP | POLLERR | POLLNVAL))) {
        listener->fd = -1;
        return;
    }
    int waiting = count_waiting(listener->fd);
    // The number can only have fallen because the app has accepted a connection.
    if ((listener->since && !is_readable) || waiting < listener->waiting) {
        is_over = 1;
        return;
    }
    listener->waiting = waiting;
    int64_t time = now();
    if (is_readable && !listener->since)
        listener->since = time;
    else if (is_readable && time - listener->since >= after) {
        if (has_accepted(listener))
            is_over = 1;
        else
            take(listener);
    }
}

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#else
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

// Allows only the system calls that the loop needs.
static int confine(void)
{
    static const uint16_t allowed[] = {
        SYS_accept4, SYS_recvfrom, SYS_sendto, SYS_shutdown, SYS_close, SYS_clock_gettime, SYS_setitimer, SYS_rt_sigreturn,
        SYS_restart_syscall, SYS_exit_group, SYS_brk, SYS_mmap, SYS_munmap, SYS_mremap, SYS_madvise, SYS_ppoll, SYS_futex,
        SYS_getrandom, SYS_getsockopt,
#ifdef SYS_poll
        SYS_poll,
#endif
    };
    enum { COUNT = sizeof allowed / sizeof *allowed };
    struct sock_filter filter[COUNT + 6];
    int at = 0;
    filter[at++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
    filter[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0);
    filter[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    filter[at++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (int i = 0; i < COUNT; i++)
        filter[at++] =
            (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, allowed[i], (uint8_t)(COUNT - i), 0);
    filter[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    filter[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {.len = (unsigned short)at, .filter = filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return -1;
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static int read_page(void)
{
    struct stat status;
    if (fstat(PAGE, &status) < 0 || status.st_size <= 0 || status.st_size > 4 << 20)
        return -1;
    page_bytes = (size_t)status.st_size;
    page = malloc(page_bytes);
    if (!page)
        return -1;
    for (size_t done = 0; done < page_bytes;) {
        ssize_t count = pread(PAGE, page + done, page_bytes - done, (off_t)done);
        if (count <= 0)
            return -1;
        done += (size_t)count;
    }
    close(PAGE);
    return 0;
}

int main(int count, char **words)
{
    if (count != 4) {
        fputs("torpor-holding is started by torpord\n", stderr);
        return 2;
    }
    int64_t after = strtoll(words[1], NULL, 10), first = strtoll(words[2], NULL, 10);
    began = now() - strtoll(words[3], NULL, 10);
    for (int fd = FIRST_LISTENER; listener_count < MOST_LISTENERS; fd++) {
        int listens = 0;
        socklen_t size = sizeof listens;
        if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) < 0 || !listens)
            break;
        struct listener *listener = &listeners[listener_count++];
        listener->fd = fd;
        listener->address_size = sizeof listener->address;
        getsockname(fd, (struct sockaddr *)&listener->address, &listener->address_size);
    }
    // The diagnosis shows whether the app has accepted connections. Without it, a busy app would look like an app that
    // is not ready.
    open_diagnosis();
    struct sigaction action = {.sa_handler = alarmed};
    sigaction(SIGALRM, &action, NULL);
    struct rlimit files = {MOST_LISTENERS + MOST_CLIENTS + 9, MOST_LISTENERS + MOST_CLIENTS + 9};
    setrlimit(RLIMIT_NOFILE, &files);
    prctl(PR_SET_DUMPABLE, 0);
    if (listener_count == 0 || read_page() < 0 || confine() < 0) {
        fprintf(stderr, "torpor-holding: cannot start: %s\n", strerror(errno));
        return 1;
    }
    for (int i = 0; i < listener_count; i++) {
        listeners[i].waiting = count_waiting(listeners[i].fd);
        if (has_waiting(listeners[i].fd))
            listeners[i].since = now() - after + first;
    }
    while (1) {
        struct pollfd polls[1 + MOST_LISTENERS + MOST_CLIENTS];
        struct client *whose[1 + MOST_LISTENERS + MOST_CLIENTS];
        int used = 0;
        int64_t time = now(), next = time + 3600000;
        polls[used++] = (struct pollfd){.fd = is_over ? -1 : CONTROL, .events = POLLIN};
        int are_open = 0;
        for (int i = 0; i < listener_count && !is_over; i++) {
            if (listeners[i].fd < 0)
                continue;
            are_open = 1;
            // Poll a listener with a waiting connection by time: its descriptor would stay readable.
            if (listeners[i].since && next > time + LOOK_AGAIN)
                next = time + LOOK_AGAIN;
            polls[used++] = (struct pollfd){.fd = listeners[i].since ? -1 : listeners[i].fd, .events = POLLIN};
        }
        if (!are_open) {
            is_over = 1;
            next = time + LOOK_AGAIN;
        }
        int first_client = used;
        for (int i = 0; i < MOST_CLIENTS; i++) {
            if (clients[i].stage == FREE)
                continue;
            if (next > clients[i].until)
                next = clients[i].until;
            whose[used] = &clients[i];
            polls[used++] = (struct pollfd){
                .fd = clients[i].fd, .events = clients[i].stage == SENDING ? POLLOUT : POLLIN};
        }
        poll(polls, (nfds_t)used, next > time ? (int)(next - time) : 0);
        // torpord has closed its end, or has exited.
        if (polls[0].revents)
            is_over = 1;
        for (int i = 0; i < listener_count && !is_over; i++)
            if (listeners[i].fd >= 0)
                look_at(&listeners[i], after);
        for (int i = first_client; i < used; i++)
            if (polls[i].revents)
                go_on(whose[i]);
        time = now();
        int are_left = 0;
        for (int i = 0; i < MOST_CLIENTS; i++) {
            if (clients[i].stage != FREE && clients[i].until <= time)
                let_go(&clients[i]);
            are_left |= clients[i].stage != FREE;
        }
        if (is_over && !are_left)
            return 0;
    }
}
