// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "keeper.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

// The sandbox of a launch. torpord has made the ruleset and the filter: the keeper knows no permission, and looks into
// neither.

#ifndef SYS_landlock_restrict_self
#define SYS_landlock_restrict_self 446
#endif

_Static_assert(sizeof(struct torpor_keeper_instruction) == sizeof(struct sock_filter), "sock_filter");
_Static_assert(offsetof(struct torpor_keeper_instruction, if_true) == offsetof(struct sock_filter, jt), "sock_filter");
_Static_assert(offsetof(struct torpor_keeper_instruction, value) == offsetof(struct sock_filter, k), "sock_filter");

// The filter is last, since it may forbid what comes before it.
int sandbox_enter(const struct keeper_plan *plan, int ruleset)
{
    if (plan->filter_count == 0)
        return 0;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return errno;
    if (ruleset >= 0 && syscall(SYS_landlock_restrict_self, ruleset, 0) < 0)
        return errno;
    struct sock_fprog program = {
        .len = (unsigned short)plan->filter_count,
        .filter = (struct sock_filter *)plan->filter,
    };
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0 ? errno : 0;
}
