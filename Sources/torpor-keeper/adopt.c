// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

// Adopts the processes that a lost keeper had launched. They are not this keeper's children, so waitid(2) does not
// return their exit status. Instead the kernel returns it for a pidfd (PIDFD_GET_INFO, Linux 6.15), once the real
// parent has reaped the process: then the pidfd reports POLLHUP. On an older kernel, or if the parent does not reap
// in time, the exit status is unknown.
//
// If the parent of an adopted process dies, the process may become the keeper's child. Then the keeper reaps it like
// any other.

enum { REAP_PATIENCE = 1000 };

#ifndef P_PIDFD
#define P_PIDFD 3
#endif
#ifndef PIDFD_SIGNAL_PROCESS_GROUP
#define PIDFD_SIGNAL_PROCESS_GROUP (1u << 2)
#endif

// struct pidfd_info of <linux/pidfd.h> in its first version (Linux 6.13); later kernels fill only the part that fits.
struct info {
    uint64_t mask;
    uint64_t cgroup;
    uint32_t ids[11];
    int32_t exit_code;
};
_Static_assert(sizeof(struct info) == 64, "PIDFD_INFO_SIZE_VER0");
#define GET_INFO _IOWR(0xFF, 11, struct info)
#define INFO_EXIT (UINT64_C(1) << 3)

uint32_t adopt_living;

static int patience_fd = -1;
static bool patience_armed;
static bool info_missing;

bool adopt_setup(void)
{
    info_missing = getenv("TORPOR_KEEPER_TEST_NO_PIDFD_INFO") != NULL;
    patience_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    return patience_fd >= 0 && keeper_watch_descriptor(patience_fd, EPOLLIN, EVENT_ADOPT_PATIENCE, 0);
}

// The pid that a pidfd refers to; -1 if the process was reaped, -2 if the descriptor is not a pidfd.
static int pid_of(int pidfd)
{
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", pidfd);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -2;
    ssize_t size = read(fd, text, sizeof text - 1);
    close(fd);
    text[size > 0 ? size : 0] = 0;
    const char *field = strstr(text, "\nPid:\t");
    return field == NULL ? -2 : atoi(field + 6);
}

bool adopt_is_living(uint32_t slot)
{
    return slot < table_used && table_slots[slot].state == TORPOR_SLOT_RUNNING
           && (table_slots[slot].flags & TORPOR_LAUNCH_ADOPTED);
}

bool adopt_watch(uint32_t slot)
{
    if (!keeper_watch_descriptor(table_processes[slot].pidfd, EPOLLIN, EVENT_ADOPTED, slot))
        return false;
    adopt_living++;
    return true;
}

// torpord has duplicates of the pidfd: close(2) alone would not remove it from the epoll.
void adopt_unwatch(uint32_t slot)
{
    epoll_ctl(keeper_epoll, EPOLL_CTL_DEL, table_processes[slot].pidfd, NULL);
    table_processes[slot].deadline = 0;
    adopt_living--;
}

int adopt_request(const struct torpor_keeper_adopt *message, const char *app, int pidfd)
{
    int pid = pid_of(pidfd);
    size_t length = strlen(app);
    if (pid == -2)
        return EBADF;
    if (length == 0 || length >= TORPOR_KEEPER_APP_BYTES || message->pid <= 0 || (pid != -1 && pid != message->pid))
        return EINVAL;
    if (pid == (int)torpord_pid || pid == (int)getpid() || (pid != -1 && table_find_pid(pid) >= 0))
        return EEXIST;
    for (uint32_t slot = 0; adopt_living > 0 && slot < table_used; slot++)
        if (adopt_is_living(slot) && table_slots[slot].pid == message->pid
            && table_slots[slot].start_time == message->start_time)
            return EEXIST;
    int slot = table_take_slot();
    if (slot < 0)
        return ENOSPC;
    struct torpor_keeper_slot *record = &table_slots[slot];
    memcpy(record->app, app, length + 1);
    record->pid = message->pid;
    record->incarnation = message->incarnation;
    record->start_time = message->start_time;
    record->flags = TORPOR_LAUNCH_ADOPTED;
    record->state = TORPOR_SLOT_RUNNING;
    table_processes[slot].pidfd = pidfd;
    if (adopt_watch((uint32_t)slot))
        return 0;
    int error = errno;
    table_processes[slot].pidfd = -1;  // the caller still owns it
    table_free_slot((uint32_t)slot);
    return error;
}

static void finish(uint32_t slot, int code, int status)
{
    struct torpor_keeper_slot *record = &table_slots[slot];
    adopt_unwatch(slot);
    table_processes[slot].reaped = true;
    record->code = code;
    record->status = status;
    record->ended_microseconds = keeper_now_milliseconds() * 1000;
    record->state = TORPOR_SLOT_EXITED;
    wire_tell(slot, TELL_EXITED);
    forward_child_ended();
}

// Whether the process became the keeper's child and is a zombie; the pidfd rules out another process with the same
// pid.
static bool is_our_zombie(uint32_t slot)
{
    siginfo_t info;
    memset(&info, 0, sizeof info);
    return waitid((idtype_t)P_PIDFD, (id_t)table_processes[slot].pidfd, &info, WEXITED | WNOHANG | WNOWAIT) == 0
           && info.si_pid == table_slots[slot].pid;
}

int adopt_find_zombie(pid_t pid)
{
    for (uint32_t slot = 0; adopt_living > 0 && slot < table_used; slot++)
        if (adopt_is_living(slot) && table_slots[slot].pid == pid && is_our_zombie(slot))
            return (int)slot;
    return -1;
}

static bool finish_by_info(uint32_t slot)
{
    struct info info;
    memset(&info, 0, sizeof info);
    info.mask = INFO_EXIT;
    if (info_missing || ioctl(table_processes[slot].pidfd, GET_INFO, &info) < 0 || !(info.mask & INFO_EXIT))
        return false;
    if (WIFEXITED(info.exit_code))
        finish(slot, CLD_EXITED, WEXITSTATUS(info.exit_code));
    else
        finish(slot, WCOREDUMP(info.exit_code) ? CLD_DUMPED : CLD_KILLED, WTERMSIG(info.exit_code));
    return true;
}

static void arm_patience(uint64_t milliseconds)
{
    struct itimerspec when = {
        .it_value = {(time_t)(milliseconds / 1000), (long)(milliseconds % 1000) * 1000000 + (milliseconds == 0)}};
    patience_armed = timerfd_settime(patience_fd, 0, &when, NULL) == 0;
}

void adopt_heard(uint32_t slot)
{
    // The event may belong to a process that used this slot earlier in the same turn of the loop: poll the pidfd
    // itself.
    if (!adopt_is_living(slot))
        return;
    struct pollfd now = {.fd = table_processes[slot].pidfd, .events = POLLIN};
    if (poll(&now, 1, 0) <= 0 || now.revents == 0)
        return;
    if (finish_by_info(slot))
        return;
    if (is_our_zombie(slot)) {
        reap_all();
        return;
    }
    if (info_missing || (now.revents & POLLHUP)) {
        finish(slot, 0, 0);
        return;
    }
    // The process is a zombie until its parent reaps it. Then the kernel reports POLLHUP, which need not be requested.
    struct epoll_event wanted = {.events = 0, .data.u64 = (uint64_t)EVENT_ADOPTED << 32 | slot};
    if (epoll_ctl(keeper_epoll, EPOLL_CTL_MOD, table_processes[slot].pidfd, &wanted) < 0) {
        finish(slot, 0, 0);
        return;
    }
    if (table_processes[slot].deadline == 0)
        table_processes[slot].deadline = keeper_now_milliseconds() + REAP_PATIENCE;
    if (!patience_armed)
        arm_patience(REAP_PATIENCE);
}

void adopt_patience_over(void)
{
    uint64_t count, now = keeper_now_milliseconds(), next = 0;
    if (read(patience_fd, &count, sizeof count) != sizeof count)
        return;
    patience_armed = false;
    for (uint32_t slot = 0; slot < table_used; slot++) {
        uint64_t deadline = table_processes[slot].deadline;
        if (!adopt_is_living(slot) || deadline == 0)
            continue;
        if (deadline > now)
            next = next == 0 || deadline < next ? deadline : next;
        else if (!finish_by_info(slot))
            finish(slot, 0, 0);
    }
    if (next != 0)
        arm_patience(next - now);
}

void adopt_signal(uint32_t slot, int signo)
{
    // Signals the process group that the process leads. Before Linux 6.9, signals only that process, since the group's
    // id may have been reused.
    int pidfd = table_processes[slot].pidfd;
    if (syscall(SYS_pidfd_send_signal, pidfd, signo, NULL, PIDFD_SIGNAL_PROCESS_GROUP) < 0 && errno == EINVAL)
        syscall(SYS_pidfd_send_signal, pidfd, signo, NULL, 0);
}
