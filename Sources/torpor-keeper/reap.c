// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

// The keeper is a subreaper: processes that an app leaves behind become its children. A zombie no longer has an
// environment, so the keeper finds an orphan's app by the orphan's session: each app leads a session of its own, which
// its descendants keep. The keeper also records the orphan's cgroup, to help torpord.

static ssize_t read_proc(pid_t pid, const char *file, char *text, size_t size)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, file);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    ssize_t got = read(fd, text, size - 1);
    close(fd);
    text[got > 0 ? got : 0] = 0;
    return got;
}

bool reap_stat(pid_t pid, uint64_t *start_time, int32_t *session, char comm[16])
{
    char text[1024];
    if (read_proc(pid, "stat", text, sizeof text) <= 0)
        return false;
    char *open = strchr(text, '('), *close = strrchr(text, ')');
    if (open == NULL || close == NULL || close < open)
        return false;
    size_t length = (size_t)(close - open) - 1;
    if (length > 15)
        length = 15;
    memset(comm, 0, 16);
    memcpy(comm, open + 1, length);
    char *next = close + 1;
    for (int field = 3; field <= 22; field++) {
        next += strspn(next, " ");
        if (field == 6)
            *session = (int32_t)strtol(next, NULL, 10);
        if (field == 22)
            *start_time = strtoull(next, NULL, 10);
        next += strcspn(next, " ");
    }
    return true;
}

static uint64_t microseconds(struct timeval time)
{
    return (uint64_t)time.tv_sec * 1000000 + (uint64_t)time.tv_usec;
}

static void note_cgroup(pid_t pid, char *to, size_t size)
{
    char text[4096];
    if (read_proc(pid, "cgroup", text, sizeof text) <= 0)
        return;
    for (char *line = text; line != NULL && *line != 0;) {
        char *end = strchr(line, '\n');
        if (end != NULL)
            *end = 0;
        if (strncmp(line, "0::", 3) == 0) {
            size_t length = strlen(line + 3);
            const char *path = line + 3 + (length >= size ? length - size + 1 : 0);
            memcpy(to, path, strlen(path) + 1);
            return;
        }
        line = end == NULL ? NULL : end + 1;
    }
}

static void note_orphan(pid_t pid, const siginfo_t *info)
{
    struct rusage usage;
    siginfo_t ended;
    struct torpor_keeper_orphan *orphan = table_next_orphan();
    orphan->pid = pid;
    reap_stat(pid, &orphan->start_time, &orphan->session, orphan->comm);
    note_cgroup(pid, orphan->cgroup, sizeof orphan->cgroup);
    int slot = orphan->session > 0 ? table_find_session(orphan->session) : -1;
    if (slot >= 0) {
        orphan->attributed = 1;
        orphan->incarnation = table_slots[slot].incarnation;
        memcpy(orphan->app, table_slots[slot].app, sizeof orphan->app);
    }
    orphan->code = info->si_code;
    orphan->status = info->si_status;
    memset(&usage, 0, sizeof usage);
    syscall(SYS_waitid, P_PID, pid, &ended, WEXITED | WNOHANG, &usage);
    orphan->user_microseconds = microseconds(usage.ru_utime);
    orphan->system_microseconds = microseconds(usage.ru_stime);
    orphan->max_resident_bytes = (uint64_t)usage.ru_maxrss * 1024;
}

static void note_exit(uint32_t slot, const siginfo_t *info)
{
    struct torpor_keeper_slot *record = &table_slots[slot];
    struct keeper_process *process = &table_processes[slot];
    struct rusage usage;
    siginfo_t ended;
    launch_finish(slot);
    memset(&usage, 0, sizeof usage);
    syscall(SYS_waitid, P_PID, record->pid, &ended, WEXITED | WNOHANG, &usage);
    table_remove_pid(slot);
    process->reaped = true;
    record->code = info->si_code;
    record->status = info->si_status;
    record->user_microseconds = microseconds(usage.ru_utime);
    record->system_microseconds = microseconds(usage.ru_stime);
    record->max_resident_bytes = (uint64_t)usage.ru_maxrss * 1024;
    record->ended_microseconds = keeper_now_milliseconds() * 1000;
    if (process->abandoned) {
        table_free_slot(slot);
    } else if (record->state == TORPOR_SLOT_FAILED && process->launch_id != 0) {
        wire_tell(slot, TELL_FAILED);
    } else {
        record->state = TORPOR_SLOT_EXITED;
        wire_tell(slot, TELL_EXITED);
    }
}

// Reaps one process that has ended and records its status; false if there is none.
static bool reap(idtype_t kind, pid_t pid)
{
    siginfo_t info;
    memset(&info, 0, sizeof info);
    if (waitid(kind, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || info.si_pid == 0)
        return false;
    int slot = table_find_pid(info.si_pid);
    if (slot < 0 && (slot = adopt_find_zombie(info.si_pid)) >= 0)
        adopt_unwatch((uint32_t)slot);
    if (closer_ended(info.si_pid)) {
        siginfo_t ended;
        waitid(P_PID, (id_t)info.si_pid, &ended, WEXITED | WNOHANG);
    } else if (info.si_pid == torpord_pid) {
        siginfo_t ended;
        waitid(P_PID, (id_t)info.si_pid, &ended, WEXITED | WNOHANG);
        torpord_ended(info.si_code, info.si_status);
    } else if (slot >= 0) {
        note_exit((uint32_t)slot, &info);
        forward_child_ended();
    } else {
        note_orphan(info.si_pid, &info);
    }
    return true;
}

// waitid(P_ALL) visits every living child: 12 us with a thousand, 0.2 ms with five thousand. So the keeper first
// reaps the child that SIGCHLD names. Other children may have ended too, since the kernel coalesces signals: they are
// reaped after torpord was notified, and if there are many children, at most every few milliseconds.
enum { FEW_CHILDREN = 256, LOOK_EVERY_MILLISECONDS = 10 };

static bool look_is_due;
static uint64_t looked_at;

void reap_named(pid_t pid)
{
    reap(P_PID, pid);
    look_is_due = true;
}

void reap_all(void)
{
    look_is_due = false;
    looked_at = keeper_now_milliseconds();
    while (reap(P_ALL, 0))
        continue;
}

int reap_rest(void)
{
    if (!look_is_due)
        return -1;
    uint64_t now = keeper_now_milliseconds();
    if (table_living > FEW_CHILDREN && now < looked_at + LOOK_EVERY_MILLISECONDS)
        return (int)(looked_at + LOOK_EVERY_MILLISECONDS - now);
    reap_all();
    wire_flush();
    return -1;
}
