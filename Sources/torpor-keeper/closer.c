// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// The last close of a descriptor that an app has stored, or of a socket that an app has a copy of, may block: a
// lingering TCP socket, a file that keeps an unmounted filesystem of the app's alive, or a Unix socket with such
// descriptors in its queue. So neither the keeper nor the service manager may close it last: a forked child does, the
// closer. It inherits all such descriptors that were released in a turn of the loop. The keeper closes its own copies,
// waits until the manager has handled the messages that remove its copies, and closes a pipe, the gate. Then the closer
// closes the descriptors. How the keeper knows what the manager has handled: a manager closes the pipe that comes with
// a message (BARRIER=1 of sd_notify(3)) when it has read that message.
//
// Each descriptor has an owner: the app that has stored it, or the user who has sent it. An owner whose descriptors
// block their closers gets only a few at a time, apart from those of others, so that it delays only itself. It gets more
// if so many descriptors wait that they would use up the keeper's own: each further closer takes all that wait. What a
// user sends ends at last at what the kernel lets all processes of that user have in transit (RLIMIT_NOFILE, which
// systemd sets to 524288), since what waits in a closer counts too.

enum {
    CLOSERS = 256,        // the maximum number of closers
    OF_OWNER = 4,         // the number of closers that one owner may keep busy
    OF_OWNER_MORE = 32,   // the same if very many descriptors wait
    OF_OWNER_EVER = 128,  // the same if as many wait as the keeper can have of one owner
    VERY_MANY = 1024,
    MOST = 16384,          // of one owner, in the keeper
    MOST_SHARE = 8,        // or this part of the descriptors that the keeper may open, if that is less
    OFTEN = 5000,          // microseconds between signals
    LEAVE_TURNS = 100,     // how often the keeper looks at its exit whether they have ended
    LEAVE_LOOK = 1000000,  // nanoseconds between these looks
};

struct grave {
    int fd;
    uint32_t owner;
};
static KEEPER_TABLE struct grave graves[TORPOR_KEEPER_HELD_COUNT];
static uint32_t grave_count;

static struct closer {
    pid_t pid;        // 0: free
    int gate;         // the pipe's end that the keeper closes; -1: closed
    uint32_t ticket;  // the messages that the manager must have read before
    uint64_t since;   // when the gate was closed, in milliseconds
} closers[CLOSERS];

// For each closer the owner of the descriptor that it closes now; 0: unknown. The closers write it.
static volatile uint32_t *owners_now;

uint32_t closer_owner(const char *name)
{
    uint32_t hash = 2166136261u;  // FNV-1a
    // The kind and the owner, as in store/web/000001pdb and discard/1000.
    for (int slashes = 0; *name != 0 && (*name != '/' || ++slashes < 2); name++)
        hash = (hash ^ (uint8_t)*name) * 16777619u;
    return hash != 0 ? hash : 1;
}

// If there are so many that no other has room, it stays open: to close it here could block forever.
void closer_take(int fd, uint32_t owner)
{
    if (grave_count < TORPOR_KEEPER_HELD_COUNT)
        graves[grave_count++] = (struct grave){fd, owner};
}

static bool is_blocked(const struct closer *closer, uint64_t patience)
{
    return closer->pid != 0 && closer->gate < 0 && keeper_now_milliseconds() - closer->since >= patience;
}

// How many closers are busy with the owner's descriptors for at least this time.
static unsigned busy_with(uint32_t owner, uint64_t patience)
{
    unsigned count = 0;
    if (owners_now != NULL)
        for (unsigned i = 0; i < CLOSERS; i++)
            count += closers[i].pid != 0 && owners_now[i] == owner && (patience == 0 || is_blocked(closers + i, patience));
    return count;
}

// Whether the owner's closers, or all closers, have made no progress for long. An app can cause that: for example, a
// file in the queue of its socket may wait for the app's own filesystem. What is released then stays open in the keeper,
// so the keeper accepts nothing more of that owner.
bool closer_is_stuck(uint32_t owner)
{
    static uint32_t patience = 10000;  // milliseconds
    static bool is_patience_known;
    if (!is_patience_known)
        keeper_take_milliseconds("TORPOR_CLOSER_PATIENCE_MS", &patience);
    is_patience_known = true;
    if (busy_with(owner, patience) >= OF_OWNER)
        return true;
    for (struct closer *closer = closers; closer < closers + CLOSERS; closer++)
        if (!is_blocked(closer, patience))
            return false;
    return true;
}

// Closing a TCP socket may block for a time that the socket's creator has set (SO_LINGER). A signal ends that, so send
// one regularly. `now`: where to write the owner; NULL in the keeper.
static void close_graves(uint32_t first, bool promptly, volatile uint32_t *now)
{
    struct itimerval often = {{0, OFTEN}, {0, OFTEN}}, never = {{0, 0}, {0, 0}};
    if (promptly)
        setitimer(ITIMER_REAL, &often, NULL);
    for (uint32_t i = first; i < grave_count; i++) {
        if (now != NULL)
            *now = graves[i].owner;
        close(graves[i].fd);
    }
    if (promptly)
        setitimer(ITIMER_REAL, &never, NULL);
    grave_count = first;
}

static int by_value(const void *one, const void *other)
{
    int a = ((const struct grave *)one)->fd, b = ((const struct grave *)other)->fd;
    return a < b ? -1 : a > b;
}

// Closes the descriptors from `first` on.
static _Noreturn void run(int gate, uint32_t first, volatile uint32_t *now)
{
    char none;
    prctl(PR_SET_NAME, "torpor-closer");
    setsid();
    // Close all other descriptors. If this process hangs, it must not keep any other descriptor open.
    qsort(graves + first, grave_count - first, sizeof *graves, by_value);
    unsigned next = 0;
    bool is_past_gate = false;
    for (uint32_t i = first; i <= grave_count; i++) {
        bool is_gate = !is_past_gate && (i == grave_count || graves[i].fd > gate);
        unsigned keep = (unsigned)(is_gate ? gate : i < grave_count ? graves[i].fd : gate);
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
    close_graves(first, true, now);
    _exit(0);
}

// Starts a closer for the descriptors from `first` on. Returns false if it must be tried again when a closer has ended.
static bool start(uint32_t first, bool leaves)
{
    struct closer *closer = closers, unknown;
    int gate[2];
    if (owners_now == NULL) {
        void *shared = mmap(NULL, CLOSERS * sizeof *owners_now, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        owners_now = shared == MAP_FAILED ? NULL : shared;
    }
    while (closer < closers + CLOSERS && closer->pid != 0)
        closer++;
    if (closer == closers + CLOSERS && !leaves)
        return false;
    volatile uint32_t *now = closer == closers + CLOSERS || owners_now == NULL ? NULL : owners_now + (closer - closers);
    if (closer == closers + CLOSERS)
        closer = &unknown;
    if (now != NULL) {
        *now = graves[first].owner;
        for (uint32_t i = first; i < grave_count; i++)
            if (graves[i].owner != *now)
                *now = 0;
    }
    // If no process can be created, close the descriptors here, though that may block: if they stayed open, they
    // could use up the limit that prevents new processes.
    if (pipe2(gate, O_CLOEXEC) < 0) {
        close_graves(first, true, NULL);
        return true;
    }
    pid_t pid = fork();
    if (pid == 0)
        run(gate[0], first, now);
    close(gate[0]);
    if (pid < 0) {
        close(gate[1]);
        close_graves(first, true, NULL);
        return true;
    }
    *closer = (struct closer){pid, gate[1], park_ticket(), 0};
    close_graves(first, false, NULL);
    return true;
}

// Moves the descriptors of an owner to the end, or with 0 those of all owners that keep no closer busy. Returns where they
// begin.
static uint32_t gather(uint32_t owner)
{
    uint32_t first = grave_count, last = 0;
    bool is_last_busy = false;
    for (uint32_t i = grave_count; i-- > 0;) {
        // Most that wait are of few owners, one after the other.
        if (owner == 0 && graves[i].owner != last) {
            last = graves[i].owner;
            is_last_busy = busy_with(last, 0) > 0;
        }
        if (owner != 0 ? graves[i].owner != owner : is_last_busy)
            continue;
        struct grave one = graves[--first];
        graves[first] = graves[i];
        graves[i] = one;
    }
    return first;
}

// Whether an owner that keeps this number of closers busy gets another for the descriptors that wait.
static bool gets_another(unsigned busy, uint32_t waiting)
{
    struct rlimit limit;
    if (busy < OF_OWNER || waiting < VERY_MANY)
        return busy < OF_OWNER;
    if (busy < OF_OWNER_MORE || busy >= OF_OWNER_EVER)
        return busy < OF_OWNER_MORE;
    return waiting >= MOST || (getrlimit(RLIMIT_NOFILE, &limit) == 0 && waiting >= limit.rlim_cur / MOST_SHARE);
}

static void start_all(void)
{
    uint32_t first = gather(0);
    if (first < grave_count && !start(first, false))
        return;
    // Only descriptors of busy owners are left. Those that have to wait come first.
    for (uint32_t waiting = 0; waiting < grave_count;) {
        uint32_t owner = graves[waiting].owner;
        first = gather(owner);
        if (gets_another(busy_with(owner, 0), grave_count - first)) {
            if (!start(first, false))
                return;
            continue;
        }
        // Move them to the front.
        for (; first < grave_count; first++, waiting++) {
            struct grave one = graves[waiting];
            graves[waiting] = graves[first];
            graves[first] = one;
        }
    }
}

bool closer_flush(void)
{
    bool all = true;
    if (grave_count > 0)
        start_all();
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

// Closers usually end at once. Waits a moment for them, so that nothing is left of a keeper that has ended: neither a
// process nor the address of a socket.
static void wait_briefly(void)
{
    for (unsigned turn = 0; turn < LEAVE_TURNS; turn++) {
        bool all = true;
        for (struct closer *closer = closers; closer < closers + CLOSERS; closer++)
            if (closer->pid != 0 && waitpid(closer->pid, NULL, WNOHANG) == 0)
                all = false;
            else
                closer->pid = 0;
        if (all)
            return;
        nanosleep(&(struct timespec){0, LEAVE_LOOK}, NULL);
    }
}

void closer_leave(bool ends)
{
    if (grave_count > 0)
        start(0, true);
    close_graves(0, true, NULL);  // descriptors for which no closer could be created
    // A closer goes on when the manager has closed its copies. When the keeper ends, the manager kills what is left of the
    // service, so wait a moment until the manager has read all messages. If it reads none, leave the closers to it.
    bool is_told = !manager_present;
    for (unsigned turn = 0; ends && !is_told && turn < LEAVE_TURNS; turn++) {
        is_told = closer_flush();
        if (!is_told)
            nanosleep(&(struct timespec){0, LEAVE_LOOK}, NULL);
    }
    if (!is_told)
        return;
    for (struct closer *closer = closers; closer < closers + CLOSERS; closer++)
        if (closer->pid != 0 && closer->gate >= 0) {
            close(closer->gate);
            closer->gate = -1;
        }
    wait_briefly();
}
