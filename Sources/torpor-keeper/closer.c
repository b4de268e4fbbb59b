// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

// The last close of a descriptor that an app has stored, or of a socket that an app has a copy of, may block: a
// lingering TCP socket, a file that keeps an unmounted filesystem of the app's alive, or a Unix socket with such
// descriptors in its queue. So neither the keeper nor the service manager may close it last: a forked child does, the
// closer. It inherits all such descriptors that were released in a turn of the loop. The keeper closes its own copies,
// waits until the manager has handled the messages that remove its copies, and closes a pipe, the gate. Then the closer
// closes the descriptors. How the keeper knows what the manager has handled: a manager closes the pipe that comes with
// a message (BARRIER=1 of sd_notify(3)) when it has read that message.

enum { CLOSERS = 64, OFTEN = 5000 };  // maximum number of closers; microseconds between signals

static KEEPER_TABLE int graves[TORPOR_KEEPER_HELD_COUNT];
static uint32_t grave_count;

static struct closer {
    pid_t pid;        // 0: free
    int gate;         // the pipe's end that the keeper closes; -1: closed
    uint32_t ticket;  // the messages that the manager must have read before
    uint64_t since;   // when the gate was closed, in milliseconds
} closers[CLOSERS];

// If there are so many that no other has room, it stays open: to close it here could block forever.
void closer_take(int fd)
{
    if (grave_count < TORPOR_KEEPER_HELD_COUNT)
        graves[grave_count++] = fd;
}

// Whether no closer has made progress for long. An app can cause that: for example, a file in the queue of its socket
// may wait for the app's own filesystem. What is released then stays open in the keeper, so the keeper accepts nothing
// more that apps have created.
bool closer_is_stuck(void)
{
    static uint32_t patience = 10000;  // milliseconds
    static bool is_patience_known;
    if (!is_patience_known)
        keeper_take_milliseconds("TORPOR_CLOSER_PATIENCE_MS", &patience);
    is_patience_known = true;
    uint64_t now = keeper_now_milliseconds();
    for (struct closer *closer = closers; closer < closers + CLOSERS; closer++)
        if (closer->pid == 0 || closer->gate >= 0 || now - closer->since < patience)
            return false;
    return true;
}

// Closing a TCP socket may block for a time that the socket's creator has set (SO_LINGER). A signal ends that, so send
// one regularly.
static void close_graves(bool promptly)
{
    struct itimerval often = {{0, OFTEN}, {0, OFTEN}}, never = {{0, 0}, {0, 0}};
    if (promptly)
        setitimer(ITIMER_REAL, &often, NULL);
    for (uint32_t i = 0; i < grave_count; i++)
        close(graves[i]);
    if (promptly)
        setitimer(ITIMER_REAL, &never, NULL);
    grave_count = 0;
}

static int by_value(const void *one, const void *other)
{
    int a = *(const int *)one, b = *(const int *)other;
    return a < b ? -1 : a > b;
}

static _Noreturn void run(int gate)
{
    char none;
    prctl(PR_SET_NAME, "torpor-closer");
    setsid();
    // Close all other descriptors. If this process hangs, it must not keep any other descriptor open.
    qsort(graves, grave_count, sizeof *graves, by_value);
    unsigned next = 0;
    bool is_past_gate = false;
    for (uint32_t i = 0; i <= grave_count; i++) {
        bool is_gate = !is_past_gate && (i == grave_count || graves[i] > gate);
        unsigned keep = (unsigned)(is_gate ? gate : i < grave_count ? graves[i] : gate);
        if (keep > next)
            syscall(SYS_close_range, next, keep - 1, 0);
        if (keep >= next)
            next = keep + 1;
        if (is_gate) {
            is_past_gate = true;
            if (i < grave_count)
                i--;
        }
    }
    syscall(SYS_close_range, next, ~0u, 0);
    while (read(gate, &none, 1) < 0 && errno == EINTR)
        continue;
    close_graves(true);
    _exit(0);
}

static void start(bool leaves)
{
    struct closer *closer = closers, unknown;
    int gate[2];
    while (closer < closers + CLOSERS && closer->pid != 0)
        closer++;
    if (closer == closers + CLOSERS && !leaves)
        return;  // all are in use: retry when a closer has ended
    if (closer == closers + CLOSERS)
        closer = &unknown;
    // If no process can be created, close the descriptors here, though that may block: if they stayed open, they
    // could use up the limit that prevents new processes.
    if (pipe2(gate, O_CLOEXEC) < 0) {
        close_graves(true);
        return;
    }
    pid_t pid = fork();
    if (pid == 0)
        run(gate[0]);
    close(gate[0]);
    if (pid < 0) {
        close(gate[1]);
        close_graves(true);
        return;
    }
    *closer = (struct closer){pid, gate[1], park_ticket(), 0};
    close_graves(false);
}

bool closer_flush(void)
{
    bool all = true;
    if (grave_count > 0)
        start(false);
    for (struct closer *closer = closers; closer < closers + CLOSERS; closer++) {
        if (closer->pid == 0 || closer->gate < 0)
            continue;
        if (manager_present && (!park_has_told(closer->ticket) || !manager_send("BARRIER=1", 9, closer->gate))) {
            all = false;
            continue;
        }
        close(closer->gate);
        closer->gate = -1;
        closer->since = keeper_now_milliseconds();
    }
    return all;
}

bool closer_ended(pid_t pid)
{
    for (struct closer *closer = closers; closer < closers + CLOSERS; closer++)
        if (closer->pid == pid) {
            if (closer->gate >= 0)
                close(closer->gate);
            closer->pid = 0;
            return true;
        }
    return false;
}

void closer_leave(void)
{
    if (grave_count > 0)
        start(true);
    close_graves(true);  // descriptors for which no closer could be created
}
