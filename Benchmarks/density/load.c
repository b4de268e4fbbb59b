// SPDX-License-Identifier: Apache-2.0

// Sends requests to apps, to some constantly and to some now and then, and records each result.
//   load HOT COLD RATE LEAST MOST SECONDS PORT SEED LIMIT RESULTS
// HOT apps (slots from 0) get RATE requests per second each, COLD ones (the slots after them) one every LEAST to MOST
// seconds, both at random; LIMIT is the longest response time in seconds. Requests are sent when they are due,
// whatever happened to earlier ones, and their time counts from then. A slot listens at 127.0.0.1 on PORT plus its
// number; if PORT is 127.0.1.*:PORT, on this port at an address of its own, the first at 127.0.1.1. RESULTS gets a
// line for each request: h or c, slot, due time and duration (µs), result (ok, refused, broken, late), and the pid
// that answered. It is written four times a second; the last line is the CPU time of the whole process.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { SLOTS = 4096, FLIGHTS = 2048, ANSWER = 4096, WRITTEN_EACH = 250000 };

enum stage { FREE, CONNECTING, ANSWERING };

struct flight {
    enum stage stage;
    int slot;
    uint64_t due, limit;
    int app;
    size_t length;
    char answer[ANSWER];
};

static struct flight flights[FLIGHTS];
static uint64_t due[SLOTS];
static int hot, cold, port, queue;
static uint32_t network;  // 0: all slots have one address
static double rate, least, most;
static uint64_t limit, begin, random_state;
static FILE *results;

static uint64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000u + (uint64_t)time.tv_nsec / 1000u;
}

static uint64_t random_number(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

static double random_part(void) { return (double)(random_number() >> 11) / (double)(1ull << 53); }

static uint64_t interval(int slot)
{
    double seconds = slot < hot ? (0.5 + random_part()) / rate : least + random_part() * (most - least);
    return (uint64_t)(seconds * 1e6);
}

static _Noreturn void fail(const char *what)
{
    fprintf(stderr, "load: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void watch(struct flight *flight, int file, uint32_t events, int operation)
{
    struct epoll_event event = {.events = events, .data.u32 = (uint32_t)(flight - flights)};
    epoll_ctl(queue, operation, file, &event);
}

static void finish(struct flight *flight, const char *outcome)
{
    uint64_t end = now();
    int pid = 0;
    flight->answer[flight->length] = 0;
    const char *body = flight->stage == ANSWERING ? strstr(flight->answer, "\npid ") : NULL;
    if (body != NULL)
        pid = atoi(body + 5);
    if (strcmp(outcome, "ok") == 0 && pid == 0)
        outcome = "broken";
    fprintf(results, "%c %d %llu %llu %s %d\n", flight->slot < hot ? 'h' : 'c', flight->slot,
        (unsigned long long)(flight->due - begin), (unsigned long long)(end - flight->due), outcome, pid);
    if (flight->app >= 0)
        close(flight->app);
    flight->stage = FREE;
}

static void connect_app(struct flight *flight)
{
    flight->length = 0;
    flight->app = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    uint32_t slot = (uint32_t)flight->slot;
    struct sockaddr_in address = {.sin_family = AF_INET};
    address.sin_addr.s_addr = htonl(network != 0 ? network + slot + 1 : INADDR_LOOPBACK);
    address.sin_port = htons((uint16_t)(port + (network != 0 ? 0 : flight->slot)));
    flight->stage = CONNECTING;
    if (connect(flight->app, (struct sockaddr *)&address, sizeof address) != 0 && errno != EINPROGRESS)
        finish(flight, "refused");
    else
        watch(flight, flight->app, EPOLLOUT, EPOLL_CTL_ADD);
}

static void start(int slot, uint64_t when)
{
    struct flight *flight = flights;
    while (flight < flights + FLIGHTS && flight->stage != FREE)
        flight++;
    if (flight == flights + FLIGHTS) {
        fprintf(results, "%c %d %llu 0 late 0\n", slot < hot ? 'h' : 'c', slot, (unsigned long long)(when - begin));
        return;
    }
    *flight = (struct flight){.slot = slot, .due = when, .limit = when + limit, .app = -1};
    connect_app(flight);
}

// Reads available bytes; 1: more may come, 0: end, -1: error.
static int take(struct flight *flight, int file)
{
    for (;;) {
        char surplus[4096];
        size_t room = ANSWER - 1 - flight->length;
        ssize_t count = recv(file, room > 0 ? flight->answer + flight->length : surplus, room > 0 ? room : sizeof surplus, 0);
        if (count > 0 && room > 0)
            flight->length += (size_t)count;
        else if (count == 0)
            return 0;
        else if (count < 0)
            return errno == EAGAIN || errno == EINTR ? 1 : -1;
    }
}

static void advance(struct flight *flight, uint32_t events)
{
    int state;
    switch (flight->stage) {
    case CONNECTING: {
        int error = 0;
        socklen_t size = sizeof error;
        getsockopt(flight->app, SOL_SOCKET, SO_ERROR, &error, &size);
        if (error != 0 || (events & EPOLLERR)) {
            finish(flight, "refused");
            return;
        }
        char request[128];
        int length = snprintf(request, sizeof request, "GET /?k=%u HTTP/1.1\r\nHost: app\r\nConnection: close\r\n\r\n",
            (unsigned)(random_number() >> 34));
        flight->stage = ANSWERING;
        watch(flight, flight->app, EPOLLIN, EPOLL_CTL_MOD);
        if (send(flight->app, request, (size_t)length, MSG_NOSIGNAL) != length)
            finish(flight, "broken");
        return;
    }
    case ANSWERING:
        state = take(flight, flight->app);
        if (state != 1)
            finish(flight, state == 0 ? "ok" : "broken");
        return;
    case FREE:
        return;
    }
}

int main(int argc, char **argv)
{
    if (argc != 11) {
        fprintf(stderr, "usage: load HOT COLD RATE LEAST MOST SECONDS PORT SEED LIMIT RESULTS\n");
        return 2;
    }
    hot = atoi(argv[1]), cold = atoi(argv[2]), rate = atof(argv[3]), least = atof(argv[4]), most = atof(argv[5]);
    double seconds = atof(argv[6]);
    port = atoi(argv[7]);
    unsigned third;
    if (sscanf(argv[7], "127.0.%u.*:%d", &third, &port) == 2 && third < 256)
        network = (uint32_t)127 << 24 | third << 8;
    random_state = strtoull(argv[8], NULL, 10) * 0x9e3779b97f4a7c15u + 1;
    limit = (uint64_t)(atof(argv[9]) * 1e6);
    results = fopen(argv[10], "we");
    if (results == NULL || hot + cold > SLOTS)
        fail(argv[10]);
    setvbuf(results, NULL, _IOFBF, 1 << 20);
    // Real-time priority: the load generator uses little CPU, but must run on time even if the machine is overloaded.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    struct sched_param priority = {.sched_priority = 1};
    sched_setscheduler(0, SCHED_FIFO, &priority);
    FILE *adjustment = fopen("/proc/self/oom_score_adj", "we");
    if (adjustment != NULL && (fputs("-1000", adjustment) < 0 || fclose(adjustment) != 0))
        fprintf(stderr, "load: the kernel may choose this when memory is short\n");
    mlockall(MCL_CURRENT | MCL_FUTURE);
    queue = epoll_create1(EPOLL_CLOEXEC);
    begin = now();
    uint64_t written = begin;
    for (int slot = 0; slot < hot + cold; slot++)
        due[slot] = begin + (uint64_t)(random_part() * (slot < hot ? 1 / rate : most) * 1e6);
    uint64_t end = begin + (uint64_t)(seconds * 1e6);
    for (;;) {
        uint64_t time = now(), next = end;
        int open = 0;
        for (int slot = 0; slot < hot + cold && time < end; slot++) {
            while (due[slot] <= time) {
                start(slot, due[slot]);
                due[slot] += interval(slot);
            }
            if (due[slot] < next)
                next = due[slot];
        }
        for (struct flight *flight = flights; flight < flights + FLIGHTS; flight++) {
            if (flight->stage == FREE)
                continue;
            if (flight->limit <= time)
                finish(flight, "late");
            else
                open++;
        }
        if (time >= end && open == 0)
            break;
        if (time - written >= WRITTEN_EACH) {
            fflush(results);
            written = time;
        }
        uint64_t wait = next > time ? next - time : 0;
        if (time >= end || wait > 100000)
            wait = 100000;
        struct timespec timeout = {(time_t)(wait / 1000000), (long)(wait % 1000000) * 1000};
        struct epoll_event events[64];
        int count = epoll_pwait2(queue, events, 64, &timeout, NULL);
        for (int index = 0; index < count; index++)
            advance(&flights[events[index].data.u32], events[index].events);
    }
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    fprintf(results, "cpu %f\n", (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec)
        + (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6);
    return fclose(results) == 0 ? 0 : 1;
}
