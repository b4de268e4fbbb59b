// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "keeper.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

// The sandbox of a launch. torpord has made the ruleset and the filter: the keeper knows no permissions, and examines
// neither the ruleset nor the filter.

#ifndef SYS_landlock_restrict_self
#define SYS_landlock_restrict_self 446
#endif

_Static_assert(sizeof(struct torpor_keeper_instruction) == sizeof(struct sock_filter), "sock_filter");
_Static_assert(offsetof(struct torpor_keeper_instruction, if_true) == offsetof(struct sock_filter, jt), "sock_filter");
_Static_assert(offsetof(struct torpor_keeper_instruction, value) == offsetof(struct sock_filter, k), "sock_filter");

// Also log denials that happen after the exec (needs Linux 6.15).
#define LOG_NEW_EXEC (1u << 1)

// Making a namespace needs CAP_SYS_ADMIN, which a user's supervisor and root in most containers lack. Some kernels have
// no IPC namespaces at all. In these cases continue: torpord reports that the app is not confined in this respect. But
// fail if there are too many namespaces: otherwise another user could make that many on purpose, so that the app is not
// confined.
int sandbox_leave_ipc(const struct keeper_plan *plan)
{
    if (plan->filter_count == 0 || !(plan->head->flags & TORPOR_LAUNCH_OWN_IPC) || unshare(CLONE_NEWIPC) == 0)
        return 0;
    return errno == EPERM || errno == EINVAL || errno == ENOSYS ? 0 : errno;
}

// Capabilities of root over the whole machine, which no permission gives. With CAP_PERFMON or CAP_SYS_ADMIN a process
// reads the environment of all others in spite of Landlock (Linux 6.15, mm_access() in kernel/fork.c), with
// CAP_SYS_RAWIO the kernel's memory (/proc/kcore), with CAP_SYSLOG its log (/proc/kmsg). With CAP_SYS_RESOURCE it raises
// its own limits, and with CAP_SYS_NICE it takes the processors by realtime scheduling. With the others it configures
// the network and audit by netlink.
static const int of_machine[] = {
    CAP_NET_ADMIN, CAP_SYS_RAWIO, CAP_SYS_ADMIN, CAP_SYS_NICE, CAP_SYS_RESOURCE,
    CAP_AUDIT_CONTROL, CAP_SYSLOG, CAP_AUDIT_READ, CAP_PERFMON,
};

// Under PR_SET_NO_NEW_PRIVS an exec gives no capability back, also not to root (capabilities(7)).
static int give_up_capabilities(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
    if (syscall(SYS_capget, &header, data) < 0)
        return errno;
    for (size_t i = 0; i < sizeof of_machine / sizeof of_machine[0]; i++) {
        struct __user_cap_data_struct *word = &data[CAP_TO_INDEX(of_machine[i])];
        word->effective &= ~CAP_TO_MASK(of_machine[i]);
        word->permitted &= ~CAP_TO_MASK(of_machine[i]);
        word->inheritable &= ~CAP_TO_MASK(of_machine[i]);
    }
    return syscall(SYS_capset, &header, data) < 0 ? errno : 0;
}

static int restrict_self(const struct keeper_plan *plan, int ruleset)
{
    if (plan->head->flags & TORPOR_LAUNCH_LOG_DENIALS) {
        if (syscall(SYS_landlock_restrict_self, ruleset, LOG_NEW_EXEC) == 0)
            return 0;
        if (errno != EINVAL)
            return errno;
    }
    return syscall(SYS_landlock_restrict_self, ruleset, 0) < 0 ? errno : 0;
}

// Install the filter last, since it may forbid the steps before it.
int sandbox_enter(const struct keeper_plan *plan, int ruleset)
{
    if (plan->filter_count == 0)
        return 0;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return errno;
    int error = give_up_capabilities();
    if (error == 0 && ruleset >= 0)
        error = restrict_self(plan, ruleset);
    if (error != 0)
        return error;
    struct sock_fprog program = {
        .len = (unsigned short)plan->filter_count,
        .filter = (struct sock_filter *)plan->filter,
    };
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0 ? errno : 0;
}
