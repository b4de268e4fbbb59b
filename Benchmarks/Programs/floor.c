// SPDX-License-Identifier: Apache-2.0

// The cost of the kernel alone: the least that a program can do to launch, restart, stop and continue processes.
//   floor launch COUNT -- PROGRAM [ARGUMENT…]     a bare posix_spawn loop; {} in an argument becomes the number
//   floor restart ROUNDS -- PROGRAM [ARGUMENT…]   SIGKILL, waitpid, posix_spawn; nanoseconds of each to its report
//   floor suspend ROUNDS -- PROGRAM [ARGUMENT…]   SIGSTOP, waitpid(WUNTRACED), and T in /proc; then SIGCONT
// Prints numbers, one per line. After `launch` it waits for a line on standard input, or its end, and ends its
// children.
#define _GNU_SOURCE
#include "report.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static uint64_t now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static _Noreturn void fail(const char *what)
{
    fprintf(stderr, "floor: %s: %s\n", what, strerror(errno));
    exit(111);
}

static pid_t launch(char **arguments, unsigned number)
{
    char digits[16], *actual[32];
    snprintf(digits, sizeof digits, "%u", number);
    size_t count = 0;
    for (; arguments[count] != NULL && count < 31; count++)
        actual[count] = strcmp(arguments[count], "{}") == 0 ? digits : arguments[count];
    actual[count] = NULL;
    pid_t pid;
    int error = posix_spawn(&pid, actual[0], NULL, NULL, actual, environ);
    if (error != 0) {
        errno = error;
        fail(actual[0]);
    }
    return pid;
}

static void end(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static volatile struct report_slot *first_slot(void)
{
    const char *path = getenv("BENCH_REPORT");
    int file = path != NULL ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (file < 0)
        fail("BENCH_REPORT");
    struct report_page *page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (page == MAP_FAILED)
        fail("mmap");
    return &page->slots[0];
}

static void measure_launch(unsigned count, char **arguments)
{
    pid_t *children = calloc(count, sizeof *children);
    if (children == NULL)
        fail("calloc");
    for (unsigned number = 0; number < count; number++)
        children[number] = launch(arguments, number);
    char line[16];
    if (read(0, line, sizeof line) < 0)
        fail("read");
    for (unsigned number = 0; number < count; number++)
        kill(children[number], SIGTERM);
    for (unsigned number = 0; number < count; number++)
        waitpid(children[number], NULL, 0);
    free(children);
}

static void measure_restart(unsigned rounds, char **arguments)
{
    volatile struct report_slot *slot = first_slot();
    pid_t pid = launch(arguments, 0);
    for (unsigned round = 0; round < rounds; round++) {
        struct timespec pause = {0, 1000000};
        while (slot->pid != pid)
            nanosleep(&pause, NULL);
        nanosleep(&pause, NULL);
        uint64_t killed = now_ns();
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        pid = launch(arguments, 0);
        while (slot->pid != pid)
            nanosleep(&pause, NULL);
        printf("%llu\n", (unsigned long long)(slot->started_ns - killed));
    }
    end(pid);
}

static char state_of(int stat)
{
    char text[256];
    ssize_t count = pread(stat, text, sizeof text - 1, 0);
    if (count <= 0)
        fail("/proc/PID/stat");
    text[count] = 0;
    char *name = strrchr(text, ')');
    return name != NULL && name[1] == ' ' ? name[2] : '?';
}

static void measure_suspend(unsigned rounds, char **arguments)
{
    volatile struct report_slot *slot = first_slot();
    pid_t pid = launch(arguments, 0);
    struct timespec pause = {0, 1000000};
    while (slot->pid != pid)
        nanosleep(&pause, NULL);
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    int stat = open(path, O_RDONLY | O_CLOEXEC);
    if (stat < 0)
        fail(path);
    for (unsigned round = 0; round < rounds; round++) {
        nanosleep(&pause, NULL);
        uint64_t asked = now_ns();
        kill(pid, SIGSTOP);
        waitpid(pid, NULL, WUNTRACED);
        while (state_of(stat) != 'T')
            ;
        uint64_t stopped = now_ns();
        kill(pid, SIGCONT);
        while (state_of(stat) == 'T')
            ;
        printf("%llu %llu\n", (unsigned long long)(stopped - asked), (unsigned long long)(now_ns() - stopped));
    }
    close(stat);
    end(pid);
}

int main(int argc, char **argv)
{
    if (argc < 5 || strcmp(argv[3], "--") != 0) {
        fprintf(stderr, "usage: floor launch|restart|suspend COUNT -- PROGRAM [ARGUMENT...]\n");
        return 2;
    }
    unsigned count = (unsigned)strtoul(argv[2], NULL, 10);
    if (strcmp(argv[1], "launch") == 0)
        measure_launch(count, argv + 4);
    else if (strcmp(argv[1], "restart") == 0)
        measure_restart(count, argv + 4);
    else if (strcmp(argv[1], "suspend") == 0)
        measure_suspend(count, argv + 4);
    else
        return 2;
    return 0;
}
