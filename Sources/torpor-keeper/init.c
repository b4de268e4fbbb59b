// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "keeper.h"

#include <errno.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// The first process of a container (PID 1). Most of its duties the keeper always fulfils: it reaps every process that
// is reparented to it, and reads its signals, so it does not rely on default actions, which PID 1 does not have. What
// remains is the end: when PID 1 ends, the kernel kills all other processes. So those that belong to no app (daemons
// in their own session, processes started through the container manager) are asked to terminate first.

enum { STRAYS_GRACE = 2000, LOOK_AGAIN = 20 };

static bool is_alone(void)
{
    while (waitpid(-1, NULL, WNOHANG) > 0)
        continue;
    return kill(-1, 0) < 0 && errno == ESRCH;
}

static void end_strays(void)
{
    if (getpid() != 1 || is_alone())
        return;
    kill(-1, SIGTERM);
    kill(-1, SIGCONT);
    // All of these are blocked. A second request to stop ends the wait.
    sigset_t wanted;
    sigemptyset(&wanted);
    sigaddset(&wanted, SIGCHLD);
    sigaddset(&wanted, SIGTERM);
    sigaddset(&wanted, SIGINT);
    // Processes whose parent is outside the container end without a SIGCHLD, so look repeatedly.
    const struct timespec pause = {0, LOOK_AGAIN * 1000000L};
    uint64_t end = keeper_now_milliseconds() + STRAYS_GRACE;
    while (!is_alone() && keeper_now_milliseconds() < end) {
        int signo = sigtimedwait(&wanted, NULL, &pause);
        if (signo == SIGTERM || signo == SIGINT)
            break;
    }
}

_Noreturn void keeper_exit(int status)
{
    end_strays();
    _exit(status);
}
