// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "keeper.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

// The watchdog of torpord's event loop: a timerfd that the keeper and torpord share. torpord arms it when its loop
// begins to work, and disarms it before it sleeps. The keeper arms it when it wakes torpord by a message.

uint32_t watch_milliseconds = 10000;
int watch_fd = -1;

bool watch_start(void)
{
    watch_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    return watch_fd >= 0 && keeper_watch_descriptor(watch_fd, EPOLLIN, EVENT_WATCH, torpord_instance);
}

void watch_stop(void)
{
    if (watch_fd < 0)
        return;
    // torpord's duplicates of the timer may exist longer than torpord. So disarm the timer and remove it from the
    // epoll.
    struct itimerspec none;
    memset(&none, 0, sizeof none);
    timerfd_settime(watch_fd, 0, &none, NULL);
    keeper_close_watched(watch_fd);
    watch_fd = -1;
}

void watch_arm(void)
{
    // Arm the timer before a message is sent, never after: the message may wake torpord, which disarms the timer
    // before it sleeps again.
    struct itimerspec when;
    if (!torpord_greeted || watch_milliseconds == 0 || watch_fd < 0)
        return;
    if (timerfd_gettime(watch_fd, &when) < 0 || when.it_value.tv_sec != 0 || when.it_value.tv_nsec != 0)
        return;
    memset(&when, 0, sizeof when);
    when.it_value.tv_sec = watch_milliseconds / 1000;
    when.it_value.tv_nsec = (long)(watch_milliseconds % 1000) * 1000000;
    timerfd_settime(watch_fd, 0, &when, NULL);
}

/// The first character of a field of /proc/PID/status; 0 if it cannot be read.
static char status_of(pid_t pid, const char *name)
{
    char path[64], text[4096], start[32];
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t size = read(fd, text, sizeof text - 1);
    close(fd);
    if (size <= 0)
        return 0;
    text[size] = 0;
    snprintf(start, sizeof start, "\n%s:\t", name);
    const char *field = strstr(text, start);
    return field == NULL ? 0 : field[strlen(start)];
}

static bool is_traced(pid_t pid)
{
    char tracer = status_of(pid, "TracerPid");
    return tracer != 0 && tracer != '0';
}

/// Arms the timer if torpord is stopped. A loop that hangs has armed it before; but a torpord that was stopped by a
/// signal while it slept has not.
void watch_look(void)
{
    if (torpord_pid > 0 && status_of(torpord_pid, "State") == 'T')
        watch_arm();
}

void watch_fired(void)
{
    uint64_t count;
    if (watch_fd < 0 || read(watch_fd, &count, sizeof count) != sizeof count)
        return;  // torpord has disarmed the timer in time
    if (torpord_pid == 0)
        return;
    if (is_traced(torpord_pid)) {
        watch_arm();
        return;
    }
    torpord_is_stuck();
}
