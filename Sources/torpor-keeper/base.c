// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "base.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int keeper_epoll = -1;
char **keeper_environment;
uint64_t keeper_nofile_soft;
uint64_t keeper_nofile_hard;

/// Whether standard error is the stream of systemd's journal that JOURNAL_STREAM names (systemd.exec(5)).
static bool is_journal(void)
{
    static int known = -1;
    if (known < 0) {
        unsigned long long device = 0, inode = 0;
        struct stat status;
        const char *text = getenv("JOURNAL_STREAM");
        known = text != NULL && sscanf(text, "%llu:%llu", &device, &inode) == 2
                && fstat(STDERR_FILENO, &status) == 0 && status.st_dev == device && status.st_ino == inode;
    }
    return known;
}

/// Logs one line. A format may start with a priority of sd-daemon(3), such as "<6>" (information).
void keeper_log(const char *format, ...)
{
    bool journal = is_journal();
    char priority = '4';
    if (format[0] == '<' && format[1] >= '0' && format[1] <= '7' && format[2] == '>') {
        priority = format[1];
        format += 3;
    }
    char line[512];
    // The journal adds the program's name by itself.
    int used = journal ? snprintf(line, sizeof line, "<%c>", priority) : snprintf(line, sizeof line, "torpor-keeper: ");
    va_list list;
    va_start(list, format);
    int more = vsnprintf(line + used, sizeof line - (size_t)used - 1, format, list);
    va_end(list);
    if (more < 0)
        return;
    used += more;
    if (used > (int)sizeof line - 2)
        used = (int)sizeof line - 2;
    line[used++] = '\n';
    // Never block: a full journal must not keep the keeper from reaping processes.
    ssize_t written = journal ? send(STDERR_FILENO, line, (size_t)used, MSG_DONTWAIT | MSG_NOSIGNAL)
                              : write(STDERR_FILENO, line, (size_t)used);
    if (written < 0)
        return;  // the pipe has no reader: the line is lost
}

uint64_t keeper_now_milliseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/// Reads milliseconds (at most an hour) from an environment variable, if it is set.
void keeper_take_milliseconds(const char *name, uint32_t *value)
{
    const char *text = getenv(name);
    if (text == NULL || *text == 0)
        return;
    char *end;
    unsigned long number = strtoul(text, &end, 10);
    if (*end == 0 && number <= 3600000)
        *value = (uint32_t)number;
    else
        keeper_log("%s=%s is not a number of milliseconds up to an hour: using %u", name, text, *value);
}

bool keeper_watch_descriptor(int fd, uint32_t events, enum keeper_event event, uint32_t index)
{
    struct epoll_event wanted = {.events = events, .data.u64 = (uint64_t)event << 32 | index};
    return epoll_ctl(keeper_epoll, EPOLL_CTL_ADD, fd, &wanted) == 0;
}

/// close(2) is not enough: a child that has not yet called exec has a copy, so epoll would report the descriptor
/// forever.
void keeper_close_watched(int fd)
{
    epoll_ctl(keeper_epoll, EPOLL_CTL_DEL, fd, NULL);
    close(fd);
}

/// Excludes the table from the memory that children get (MADV_DONTFORK), except for parts of pages at its ends.
void keeper_keep_from_children(void *table, size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uintptr_t first = ((uintptr_t)table + page - 1) / page * page, end = ((uintptr_t)table + size) / page * page;
    if (first < end)
        madvise((void *)first, end - first, MADV_DONTFORK);
}

// The signals that were ignored when the keeper started. They are read and reset by the raw system call: sigaction()
// refuses signals 32 and 33, which may be ignored too. On all architectures that Swift supports, the kernel's struct
// begins with the handler; all zeros mean SIG_DFL, no flags, no mask.
static uint64_t ignored;  // 1 << (number - 1); the keeper itself installs no handler for them

void keeper_note_ignored(void)
{
    for (int signo = 1; signo < 65; signo++) {
        uint64_t action[8] = {0};
        if (syscall(SYS_rt_sigaction, signo, NULL, action, sizeof(uint64_t)) == 0
            && (uintptr_t)action[0] == (uintptr_t)SIG_IGN)
            ignored |= 1ull << (signo - 1);
    }
}

/// Restores all default actions and unblocks all signals: ignored signals would stay ignored across exec.
void keeper_reset_signals(void)
{
    static const uint64_t plain[8];
    for (int signo = 1; signo < 65; signo++)
        if (ignored >> (signo - 1) & 1)
            syscall(SYS_rt_sigaction, signo, plain, NULL, sizeof(uint64_t));
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}
