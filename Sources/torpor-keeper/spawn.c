// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

// A fork copies every descriptor and the child closes them again: with thousands held, that is most of a launch's
// cost. So held descriptors are numbered above SPAWN_LOW. The child starts with the keeper's own table and then
// copies only the part below. Until the child reports that it has done so, descriptors lent to it stay open in the
// keeper.
//
// The child is created in its cgroup: to write to cgroup.procs instead makes every fork and exec of the machine wait.

static bool cannot_clone;  // clone3 is missing or forbidden
static bool cannot_share;  // the child cannot copy the descriptor table (before Linux 5.9)

void spawn_setup(void)
{
    // In tests, this variable simulates an older kernel, which lacks clone3.
    cannot_clone = getenv("TORPOR_KEEPER_TEST_FORK") != NULL;
    // An empty range closes nothing, and the table is not shared here: this only tests whether the kernel supports
    // the flag.
    cannot_share = getenv("TORPOR_KEEPER_TEST_NO_UNSHARE") != NULL
                   || syscall(SYS_close_range, ~0u, ~0u, CLOSE_RANGE_UNSHARE) < 0;
}

int spawn_raise(int fd)
{
    if (fd < 0 || fd >= SPAWN_LOW)
        return fd;
    int raised = fcntl(fd, F_DUPFD_CLOEXEC, SPAWN_LOW);
    if (raised < 0)
        return fd;  // a low number is only slower
    close(fd);
    return raised;
}

static pid_t clone_child(uint64_t flags, int cgroup, int *pidfd)
{
    struct clone_args args;
    memset(&args, 0, sizeof args);
    args.flags = flags | CLONE_PIDFD;
    args.exit_signal = SIGCHLD;
    args.pidfd = (uint64_t)(uintptr_t)pidfd;
    if (flags & CLONE_INTO_CGROUP)
        args.cgroup = (uint64_t)cgroup;
    return (pid_t)syscall(SYS_clone3, &args, sizeof args);
}

static bool is_low(int report, const int *fds, unsigned count)
{
    if (count > SPAWN_LENT || report >= SPAWN_LOW)
        return false;
    for (unsigned i = 0; i < count; i++)
        if (fds[i] >= SPAWN_LOW)
            return false;
    return true;
}

pid_t spawn_child(struct keeper_spawn *spawn, const int *fds, unsigned count)
{
    pid_t pid;
    spawn->pidfd = -1;
    if (!cannot_clone) {
        // Set this before the clone, since the child gets a copy.
        spawn->shares = !cannot_share && is_low(spawn->report, fds, count);
        uint64_t files = spawn->shares ? CLONE_FILES : 0;
        spawn->in_cgroup = spawn->cgroup >= 0;
        if (spawn->in_cgroup && (pid = clone_child(files | CLONE_INTO_CGROUP, spawn->cgroup, &spawn->pidfd)) >= 0)
            return pid;
        spawn->in_cgroup = false;  // the child then moves itself into the cgroup, or reports the error
        if ((pid = clone_child(files, -1, &spawn->pidfd)) >= 0)
            return pid;
        cannot_clone = errno == ENOSYS || errno == EPERM || errno == EINVAL;
    }
    spawn->shares = spawn->in_cgroup = false;
    pid = fork();
    if (pid > 0)
        spawn->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    return pid;
}

int spawn_unshare(void)
{
    return syscall(SYS_close_range, SPAWN_LOW, ~0u, CLOSE_RANGE_UNSHARE) < 0 ? errno : 0;
}
