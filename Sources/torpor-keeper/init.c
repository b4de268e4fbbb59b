// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "keeper.h"

#include <errno.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// The keeper as the first process of a container (PID 1). The keeper fulfils most duties of PID 1 anyway: it reaps
// every process that is reparented to it, and it reads its signals, so it does not need default actions, which PID 1
// does not have. One duty is left: when PID 1 ends, the kernel kills all other processes. So the keeper first asks
// processes that belong to no app (daemons in their own session, processes started through the container manager) to
// terminate.

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
    // These signals are blocked, so that sigtimedwait can read them. A second request to stop ends the wait.
    sigset_t wanted;
    sigemptyset(&wanted);
    sigaddset(&wanted, SIGCHLD);
    sigaddset(&wanted, SIGTERM);
    sigaddset(&wanted, SIGINT);
    // A process whose parent is outside the container ends without a SIGCHLD: so check again and again.
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
