// SPDX-License-Identifier: Apache-2.0

// Handles signals, and follows the container after podman has started it.

#define _GNU_SOURCE
#include "container.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int descriptor = -1;
static sigset_t before;
/* The signals that have arrived and were not passed on yet: bit n - 1 stands for signal n. */
static uint64_t waiting;

static uint64_t bit(int number) { return (uint64_t)1 << (number - 1); }

void take_signals(void) {
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS, SIGPIPE, SIGTSTP, SIGTTIN, SIGTTOU};
    sigset_t all;
    sigfillset(&all);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) sigdelset(&all, faults[i]);
    sigprocmask(SIG_BLOCK, &all, &before);
    descriptor = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
}

void leave_signals(void) { sigprocmask(SIG_SETMASK, &before, NULL); }

int signals(void) { return descriptor; }

void note_signals(void) {
    struct signalfd_siginfo infos[16];
    ssize_t count;
    while ((count = read(descriptor, infos, sizeof infos)) > 0)
        for (size_t i = 0; i < (size_t)count / sizeof *infos; i++) {
            int number = (int)infos[i].ssi_signo;
            if (number != SIGCHLD && number != SIGCONT && number > 0 && number <= 64) waiting |= bit(number);
        }
}

int is_asked_to_end(void) {
    // Only these signals ask this process to end. All others mean something only to the program inside the container,
    // or nothing at all.
    for (int number = 1; number <= 64; number++)
        if ((waiting & bit(number)) != 0 && (number == SIGTERM || number == SIGINT || number == SIGQUIT || number >= SIGRTMIN))
            return number;
    return 0;
}

static void pass_on(int first) {
    for (int number = 1; number <= 64; number++)
        if ((waiting & bit(number)) != 0) syscall(SYS_pidfd_send_signal, first, number, NULL, 0);
    waiting = 0;
}

/* Ends this process by the signal that ended conmon. */
static int end_by(int number) {
    struct rlimit none = {0, 0};
    sigset_t set;
    setrlimit(RLIMIT_CORE, &none);
    signal(number, SIG_DFL);
    sigemptyset(&set);
    sigaddset(&set, number);
    raise(number);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    return 128 + number;
}

/* Passes all signals on to the first process in the container (a pidfd, or -1), including those that arrived
   before. When conmon has ended, returns its exit status, which is the container's. */
static int follow(pid_t conmon, int first, const char *message) {
    notify("%s", message);
    for (;;) {
        int status;
        pid_t ended = waitpid(-1, &status, WNOHANG);
        if (ended == conmon) return WIFEXITED(status) ? WEXITSTATUS(status) : end_by(WTERMSIG(status));
        if (ended > 0) continue;
        if (ended < 0 && errno == ECHILD) return fail("has lost conmon, which runs its container");
        pass_on(first);
        struct pollfd wait = {descriptor, POLLIN, 0};
        if (poll(&wait, 1, -1) < 0 && errno != EINTR) return fail("cannot wait for its container");
        note_signals();
    }
}

int follow_anew(const char *name, pid_t conmon, int first, const char *message) {
    char numbers[3][24];
    snprintf(numbers[0], sizeof numbers[0], "%d", (int)conmon);
    snprintf(numbers[1], sizeof numbers[1], "%d", first);
    snprintf(numbers[2], sizeof numbers[2], "%llu", (unsigned long long)waiting);
    if (first >= 0) fcntl(first, F_SETFD, 0);
    restore_environment();
    // Signals stay blocked across execl: those that arrive before the new program reads them stay pending.
    execl("/proc/self/exe", "torpor-container", "follow", name, numbers[0], numbers[1], numbers[2], message, (char *)NULL);
    return follow(conmon, first, message);
}

int follow_words(char **words) {
    take_signals();
    // Set the process's name: after an exec of /proc/self/exe it is "exe".
    prctl(PR_SET_NAME, "torpor-container");
    waiting = strtoull(words[3], NULL, 10);
    return follow((pid_t)atoi(words[1]), atoi(words[2]), words[4]);
}
