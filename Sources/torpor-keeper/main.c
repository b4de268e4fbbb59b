// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { RESERVED_DESCRIPTORS = 16384 };

static int signal_fd = -1;

static const int forwarded[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGQUIT, SIGWINCH, SIGPWR};

static void interrupt(int signo) { (void)signo; }

// Signals are blocked and read from a descriptor. This also works as PID 1, which has no default actions of signals.
static bool take_signals(void)
{
    sigset_t wanted;
    sigemptyset(&wanted);
    for (size_t i = 0; i < sizeof forwarded / sizeof *forwarded; i++)
        sigaddset(&wanted, forwarded[i]);
    sigaddset(&wanted, FORWARD_HALT);
    sigaddset(&wanted, FORWARD_POWER_OFF);
    sigaddset(&wanted, SIGCHLD);
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &action, NULL);
    sigaction(SIGTTOU, &action, NULL);  // SIGTTOU must not stop a keeper that logs to the terminal from the background
    action.sa_handler = SIG_DFL;
    for (size_t i = 0; i < sizeof forwarded / sizeof *forwarded; i++)
        sigaction(forwarded[i], &action, NULL);  // if a signal is ignored, it is lost even while it is blocked
    sigaction(FORWARD_HALT, &action, NULL);
    sigaction(FORWARD_POWER_OFF, &action, NULL);
    action.sa_flags = SA_NOCLDSTOP;
    sigaction(SIGCHLD, &action, NULL);
    action.sa_flags = 0;
    action.sa_handler = interrupt;
    sigaction(SIGALRM, &action, NULL);  // its handler does nothing: the signal only interrupts system calls
    keeper_note_ignored();
    if (sigprocmask(SIG_SETMASK, &wanted, NULL) < 0)
        return false;
    signal_fd = signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
    return signal_fd >= 0 && keeper_watch_descriptor(signal_fd, EPOLLIN, EVENT_SIGNAL, 0);
}

static void read_signals(void)
{
    struct signalfd_siginfo infos[16];
    for (;;) {
        ssize_t size = read(signal_fd, infos, sizeof infos);
        if (size <= 0)
            break;
        for (size_t i = 0; i < (size_t)size / sizeof *infos; i++) {
            if (infos[i].ssi_signo == SIGCHLD)
                reap_named((pid_t)infos[i].ssi_pid);
            else
                forward_signal((int)infos[i].ssi_signo);
        }
    }
}

static void raise_descriptor_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return;
    keeper_nofile_soft = limit.rlim_cur;
    keeper_nofile_hard = limit.rlim_max;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

// Enlarges the descriptor table in advance: while a child shares the table, each growth would wait for all
// processors.
static void reserve_descriptors(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return;
    int last = limit.rlim_cur < RESERVED_DESCRIPTORS ? (int)limit.rlim_cur - 1 : RESERVED_DESCRIPTORS - 1;
    int fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, last);
    if (fd >= 0)
        close(fd);
}

static void loop(void)
{
    struct epoll_event events[64];
    int timeout = -1;
    for (;;) {
        rest_if_due();
        int count = epoll_wait(keeper_epoll, events, 64, timeout);
        if (count < 0) {
            if (errno == EINTR)
                continue;
            keeper_log("epoll_wait: %s", strerror(errno));
            keeper_exit(1);
        }
        for (int i = 0; i < count; i++) {
            uint32_t index = (uint32_t)events[i].data.u64;
            switch ((enum keeper_event)(events[i].data.u64 >> 32)) {
            case EVENT_SIGNAL: read_signals(); break;
            case EVENT_SOCKET:
                if (index == torpord_instance)
                    serve_socket(events[i].events);
                break;
            case EVENT_WATCH:
                if (index == torpord_instance)
                    watch_fired();
                break;
            case EVENT_DELAY: torpord_delay_fired(); break;
            case EVENT_MANAGER: manager_watchdog(); break;
            case EVENT_MANAGER_RETRY: manager_retry(); break;
            case EVENT_EXEC: launch_heard(index); break;
            case EVENT_ADOPTED: adopt_heard(index); break;
            case EVENT_ADOPT_PATIENCE: adopt_patience_over(); break;
            }
        }
        wire_flush();
        timeout = reap_rest();
        manager_work();
    }
}

static void open_standard_descriptors(void)
{
    int fd;
    do
        fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd > STDERR_FILENO)
        close(fd);
}

/// The process does nothing: it only keeps the apps' scope alive (Sources/Supervisor/Session/AppsScope.swift), and
/// holds no resources.
static int placeholder(void)
{
    prctl(PR_SET_NAME, "torpor-scope");
    setsid();
    if (chdir("/") < 0)
        return 1;
    syscall(SYS_close_range, 0, ~0u, 0);
    open_standard_descriptors();
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGTERM, SIG_DFL);
    for (;;)
        pause();
}

int main(int count, char **arguments, char **environment)
{
    if (count == 3 && strcmp(arguments[1], "--accepts") == 0)
        return resume_accepts(arguments[2]);
    if (count == 2 && strcmp(arguments[1], "--placeholder") == 0)
        return placeholder();
    if (count == 2 && strcmp(arguments[1], "--receive") == 0)
        return receive();
    bool resuming = count >= 4 && strncmp(arguments[1], "--resume", 8) == 0;
    if (count < 2 || (arguments[1][0] == '-' && !resuming)) {
        fprintf(stderr, "usage: torpor-keeper TORPORD [ARGUMENT…]\n"
                        "       torpor-keeper --accepts VERSION\n"
                        "       torpor-keeper --placeholder\n"
                        "       torpor-keeper --receive\n"
                        "torpord starts its keeper by itself: run torpord instead.\n");
        return 2;
    }
    open_standard_descriptors();
    keeper_environment = environment;
    if (!resuming)
        resume_remember_inherited();
    else if (!resume_open(arguments[2], arguments))
        return 1;
    syscall(SYS_close_range, 3, ~0u, CLOSE_RANGE_CLOEXEC);
    raise_descriptor_limit();
    reserve_descriptors();
    keeper_epoll = epoll_create1(EPOLL_CLOEXEC);
    if (keeper_epoll < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1) < 0 || !take_signals() || !table_setup()
        || !adopt_setup() || !resume_remember_program()) {
        keeper_log("<3>cannot start: %s", strerror(errno));
        return 1;
    }
    spawn_setup();
    hold_setup();
    wire_setup();
    manager_setup();
    if (resuming)
        resume_restore();
    else
        hold_inherit();
    if (!torpord_setup(arguments + (resuming ? 3 : 1))) {
        keeper_log("<3>cannot start: %s", strerror(errno));
        return 1;
    }
    if (resuming)
        reap_all();
    torpord_start();
    loop();
}
