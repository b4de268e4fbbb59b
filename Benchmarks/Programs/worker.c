// SPDX-License-Identifier: Apache-2.0

// The app that every supervisor runs in the benchmarks: it reports that it runs, then does what its mode says.
//   worker [SLOT [MODE [ARGUMENT]]]
// The digits at the end of SLOT count (s6 passes the service's name to `run`); without SLOT, those at the end of the
// working directory's name (runit starts `run` without arguments). BENCH_REPORT names the report page. Modes:
//   wait                 nothing more (the default)
//   heartbeat MS         READY=1, then WATCHDOG=1 every MS milliseconds (0: without pause), counted on the page
//   ready                READY=1, then nothing more
//   lines BYTES TOTAL    writes lines of BYTES bytes to standard output until TOTAL bytes are written, then waits
//   answer [once]        answers each connection to the socket at descriptor 3 with its pid; once: only the first one,
//                        then exits
//   bomb COUNT           forks COUNT child processes that wait forever, each in its own session, then waits
#define _GNU_SOURCE
#include "report.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static uint64_t now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static _Noreturn void fail(const char *what)
{
    fprintf(stderr, "worker: %s: %s\n", what, strerror(errno));
    exit(111);
}

static struct report_page *report(const char *path, unsigned slot, uint64_t started)
{
    int file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0)
        fail(path);
    struct report_page *page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (page == MAP_FAILED)
        fail("mmap");
    close(file);
    page->slots[slot].started_ns = started;
    page->slots[slot].pid = getpid();
    __atomic_fetch_add(&page->slots[slot].starts, 1, __ATOMIC_SEQ_CST);
    uint32_t count = __atomic_add_fetch(&page->count, 1, __ATOMIC_SEQ_CST);
    if (count == __atomic_load_n(&page->target, __ATOMIC_SEQ_CST))
        syscall(SYS_futex, &page->count, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    return page;
}

static unsigned digits_at_end(const char *text)
{
    size_t begin = strlen(text);
    while (begin > 0 && text[begin - 1] >= '0' && text[begin - 1] <= '9')
        begin--;
    return (unsigned)strtoul(text + begin, NULL, 10);
}

static unsigned slot_of_directory(void)
{
    char path[PATH_MAX];
    if (getcwd(path, sizeof path) == NULL)
        fail("getcwd");
    return digits_at_end(path);
}

static int notify_socket(struct sockaddr_un *address, socklen_t *length)
{
    const char *path = getenv("NOTIFY_SOCKET");
    if (path == NULL || strlen(path) >= sizeof address->sun_path)
        return -1;
    memset(address, 0, sizeof *address);
    address->sun_family = AF_UNIX;
    strcpy(address->sun_path, path);
    if (path[0] == '@')
        address->sun_path[0] = 0;
    *length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path) + (path[0] == '/'));
    return socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
}

static void say(const char *text)
{
    static struct sockaddr_un address;
    static socklen_t length;
    static int socket = -2;
    if (socket == -2)
        socket = notify_socket(&address, &length);
    if (socket >= 0 && sendto(socket, text, strlen(text), MSG_NOSIGNAL, (struct sockaddr *)&address, length) < 0)
        fail(text);
}

static void write_lines(size_t bytes, uint64_t total)
{
    // Writes as many whole lines as fit into 64 KiB at a time, like a program with a buffered stream.
    size_t lines = 65536 / bytes > 0 ? 65536 / bytes : 1;
    char *block = malloc(lines * bytes);
    if (block == NULL || bytes < 12)
        fail("lines");
    uint64_t written = 0, number = 0;
    while (written < total) {
        for (size_t line = 0; line < lines; line++) {
            char *at = block + line * bytes;
            memset(at, 'x', bytes);
            char digits[24];
            int count = snprintf(digits, sizeof digits, "%010llu ", (unsigned long long)number++);
            memcpy(at, digits, (size_t)count);
            at[bytes - 1] = '\n';
        }
        size_t left = lines * bytes;
        if (left > total - written)
            left = (size_t)(total - written);
        const char *from = block;
        while (left > 0) {
            ssize_t count = write(1, from, left);
            if (count < 0 && errno != EINTR)
                fail("write");
            if (count > 0) {
                from += count;
                left -= (size_t)count;
                written += (uint64_t)count;
            }
        }
    }
    free(block);
}

static void answer(int once)
{
    char asked[64], text[16];
    for (;;) {
        int peer = accept4(3, NULL, NULL, SOCK_CLOEXEC);
        if (peer < 0 && (errno == EINTR || errno == ECONNABORTED))
            continue;
        if (peer < 0)
            fail("accept");
        if (read(peer, asked, sizeof asked) > 0) {
            int length = snprintf(text, sizeof text, "%d", (int)getpid());
            if (send(peer, text, (size_t)length, MSG_NOSIGNAL) < 0 && errno != EPIPE)
                fail("send");
        }
        close(peer);
        if (once)
            exit(0);
    }
}

int main(int argc, char **argv)
{
    uint64_t started = now_ns();
    unsigned slot = argc > 1 ? digits_at_end(argv[1]) : slot_of_directory();
    const char *mode = argc > 2 ? argv[2] : "wait";
    const char *path = getenv("BENCH_REPORT");
    if (slot >= REPORT_SLOTS)
        slot = 0;
    struct report_page *page = path != NULL ? report(path, slot, started) : NULL;
    if (strcmp(mode, "ready") == 0)
        say("READY=1");
    if (strcmp(mode, "heartbeat") == 0 && argc > 3) {
        say("READY=1");
        unsigned long period = strtoul(argv[3], NULL, 10);
        struct timespec pause = {(time_t)(period / 1000), (long)(period % 1000) * 1000000};
        // Spread over the period, like a thousand independent programs.
        struct timespec first = {0, (long)(slot * 999983ul * 1000ul % 1000000000ul)};
        nanosleep(&first, NULL);
        for (;;) {
            say("WATCHDOG=1");
            if (page != NULL)
                __atomic_fetch_add(&page->beats, 1, __ATOMIC_RELAXED);
            if (period > 0)
                nanosleep(&pause, NULL);
        }
    }
    if (strcmp(mode, "lines") == 0 && argc > 4)
        write_lines(strtoul(argv[3], NULL, 10), strtoull(argv[4], NULL, 10));
    if (strcmp(mode, "answer") == 0)
        answer(argc > 3);
    if (strcmp(mode, "bomb") == 0 && argc > 3)
        for (unsigned long count = strtoul(argv[3], NULL, 10); count > 0; count--) {
            pid_t child = fork();
            if (child < 0)
                fail("fork");
            if (child == 0) {
                setsid();
                break;
            }
        }
    for (;;)
        pause();
}
