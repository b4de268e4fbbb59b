// SPDX-License-Identifier: Apache-2.0

// Counts the user-mode instructions of a running process by single-stepping, for processes that valgrind cannot run
// and machines without hardware counters. A million steps take two or three seconds.
//   steps PID
// It prints "ready", counts the thread PID (no other threads or children) until its standard input has a line or
// ends, detaches and prints the count. An instruction with a repeat prefix counts once.
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t is_over;

static void over(int number)
{
    (void)number;
    is_over = 1;
}

static _Noreturn void fail(const char *what)
{
    fprintf(stderr, "steps: %s: %s\n", what, strerror(errno));
    exit(111);
}

// A separate process watches standard input, since the tracer blocks in waitpid.
static void watch_input(pid_t tracer)
{
    pid_t watcher = fork();
    if (watcher < 0)
        fail("fork");
    if (watcher > 0)
        return;
    char line[16];
    ssize_t count = read(0, line, sizeof line);
    (void)count;
    // Repeatedly: a signal that arrives just before the tracer blocks would be lost.
    while (getppid() == tracer && kill(tracer, SIGUSR1) == 0)
        usleep(5000);
    _exit(0);
}

// Whether the last step's trap is still pending: after a detach, it would kill the process.
static bool has_trap_pending(pid_t pid)
{
    char path[64], line[256];
    snprintf(path, sizeof path, "/proc/%d/status", pid);
    FILE *file = fopen(path, "re");
    unsigned long long pending = 0;
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, "SigPnd:", 7) == 0)
            pending = strtoull(line + 7, NULL, 16);
    if (file != NULL)
        fclose(file);
    return pending >> (SIGTRAP - 1) & 1;
}

int main(int argc, char **argv)
{
    pid_t pid = argc == 2 ? (pid_t)strtol(argv[1], NULL, 10) : 0;
    if (pid <= 0) {
        fprintf(stderr, "usage: steps PID\n");
        return 2;
    }
    struct sigaction action = {.sa_handler = over};
    for (size_t i = 0; i < 4; i++)
        sigaction((int[]){SIGUSR1, SIGTERM, SIGINT, SIGHUP}[i], &action, NULL);
    if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) < 0 || ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) < 0)
        fail("ptrace");
    watch_input(getpid());
    unsigned long long count = 0;
    unsigned long last = 0;
    bool asked = false, is_draining = false, is_first = true;
    for (;;) {
        int status;
        if (is_over && !asked) {
            // Stops it even if it sleeps in the kernel.
            ptrace(PTRACE_INTERRUPT, pid, NULL, NULL);
            asked = true;
        }
        if (waitpid(pid, &status, __WALL) < 0) {
            if (errno == EINTR)
                continue;
            fail("waitpid");
        }
        if (!WIFSTOPPED(status)) {
            fprintf(stderr, "steps: process %d ended\n", pid);
            return 1;
        }
        bool is_event = status >> 16 != 0;
        int number = is_event || WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
        if (!is_event && number == 0) {
            unsigned long at = (unsigned long)ptrace(PTRACE_PEEKUSER, pid, offsetof(struct user_regs_struct, rip), 0);
            count += at != last;
            last = at;
        }
        if (is_first) {
            puts("ready");
            fflush(stdout);
            is_first = false;
        }
        if (asked && (is_event || is_draining)) {
            if (is_event && has_trap_pending(pid)) {
                is_draining = true;
                ptrace(PTRACE_CONT, pid, NULL, 0);
                continue;
            }
            ptrace(PTRACE_DETACH, pid, NULL, number);
            break;
        }
        if (ptrace(PTRACE_SINGLESTEP, pid, NULL, number) < 0)
            fail("ptrace");
    }
    printf("%llu\n", count);
    return 0;
}
