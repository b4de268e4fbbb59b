// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "kernel.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

// torpord's process, as the simulator has it. Of both one runs at a time: `turn` says which, and the other waits for it.

enum { SIMULATOR, TORPORD, GONE };
enum { MOST_DESCRIPTORS = 2048 };

static uint32_t turn(void) { return __atomic_load_n(&sim_world->turn, __ATOMIC_SEQ_CST); }

static void give_turn(uint32_t to)
{
    __atomic_store_n(&sim_world->turn, to, __ATOMIC_SEQ_CST);
    REAL(syscall)(SYS_futex, &sim_world->turn, FUTEX_WAKE, 1);
}

static void wait_while(uint32_t whose)
{
    while (turn() == whose)
        REAL(syscall)(SYS_futex, &sim_world->turn, FUTEX_WAIT, whose, NULL);
}

static pid_t child;
static volatile sig_atomic_t has_ended;

void sim_yield_to_simulator(void)
{
    give_turn(SIMULATOR);
    wait_while(SIMULATOR);
}

static void child_ended(int number)
{
    (void)number;
    has_ended = 1;
    __atomic_store_n(&sim_world->turn, GONE, __ATOMIC_SEQ_CST);
}

int sim_start_torpord(void (*body)(void), int keeper_socket)
{
    struct sigaction action = {.sa_handler = child_ended, .sa_flags = SA_RESTART | SA_NOCLDSTOP};
    sigaction(SIGCHLD, &action, NULL);
    has_ended = 0;
    sim_world->turn = SIMULATOR;
    static int32_t count = 20;
    sim_world->torpord = ++count;
    sim_world->calls = 0;
    sim_world->epoll = -1;
    sim_world->made_up = 0;
    fflush(NULL);
    pid_t own = getpid();
    child = fork();
    if (child < 0)
        return -1;
    if (child == 0) {
        signal(SIGCHLD, SIG_DFL);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != own)
            _exit(99);
        // The same numbers each time; above all that it opens itself.
        dup2(keeper_socket, SIM_KEEPER_SOCKET);
        close_range(3, SIM_KEEPER_SOCKET - 1, 0);
        close_range(SIM_KEEPER_SOCKET + 1, ~0u, 0);
        setpgid(0, 0);
        sim_baton_begin();
        wait_while(SIMULATOR);
        sim_is_torpord = 1;
        body();
        _exit(98);
    }
    close(keeper_socket);
    return 0;
}

static int pidfd = -1, copy = -1;
static uint32_t copied;  // sim_world->epolls when the copy was made

static void close_both(void)
{
    if (copy >= 0)
        close(copy);
    if (pidfd >= 0)
        close(pidfd);
    copy = pidfd = -1;
}

// Whether torpord, if it ran, would find nothing to do: two switches between processes would be for nothing. Its epoll is
// looked at from here, which is the same for all but a signalfd (that shows the signals of who looks): after a signal
// torpord looks itself.
static int has_nothing_to_do(void)
{
    if (sim_world->epoll < 0 || sim_world->next_deadline <= sim_world->now)
        return 0;
    if (copy < 0 || copied != sim_world->epolls) {
        close_both();
        pidfd = (int)REAL(syscall)(SYS_pidfd_open, child, 0);
        copy = pidfd < 0 ? -1 : (int)REAL(syscall)(SYS_pidfd_getfd, pidfd, sim_world->epoll, 0);
        copied = sim_world->epolls;
    }
    struct pollfd question = {copy, POLLIN, 0};
    return copy >= 0 && REAL(poll)(&question, 1, 0) == 0;
}

enum sim_stop sim_resume_torpord(int *status)
{
    if (has_nothing_to_do()) {
        // As wait_in_main() does.
        sim_random(SIM_WORLD_ALONE);
        return SIM_WAITS;
    }
    sim_world->epoll = -1;
    sim_world->runs++;
    give_turn(TORPORD);
    // It may have ended while the simulator had its turn.
    if (!has_ended)
        wait_while(TORPORD);
    if (!has_ended)
        return SIM_WAITS;
    close_both();
    while (waitpid(child, status, 0) < 0 && errno == EINTR) {}
    child = 0;
    return SIM_ENDED;
}

void sim_kill_torpord(void)
{
    sim_world->epoll = -1;
    if (child > 0)
        kill(child, SIGKILL);
}
void sim_signal_torpord(int number)
{
    sim_world->epoll = -1;
    if (child > 0)
        kill(child, number);
}

static int compare(const void *one, const void *other) { return *(const int *)one - *(const int *)other; }

int sim_torpord_descriptors(char *list, size_t size)
{
    char path[64], target[256];
    int open[MOST_DESCRIPTORS], count = 0;
    size_t used = 0;
    snprintf(path, sizeof path, "/proc/%d/fd", (int)child);
    DIR *folder = opendir(path);
    if (folder == NULL)
        return 0;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL && count < MOST_DESCRIPTORS;) {
        int fd = atoi(entry->d_name);
        if (fd >= 3)
            open[count++] = fd;
    }
    qsort(open, (size_t)count, sizeof *open, compare);
    for (int i = 0; i < count; i++) {
        char number[16];
        snprintf(number, sizeof number, "%d", open[i]);
        ssize_t length = readlinkat(dirfd(folder), number, target, sizeof target - 1);
        if (length < 0)
            continue;
        target[length] = 0;
        int added = snprintf(list + used, size - used, "%d %s\n", open[i], target);
        if (added > 0 && used + (size_t)added < size)
            used += (size_t)added;
    }
    closedir(folder);
    return count;
}
