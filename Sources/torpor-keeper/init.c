// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "keeper.h"

#include <errno.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// The first process of a container. What the keeper does anywhere is most of what it takes: it reaps whoever comes to
// it, and has its signals blocked and reads them, so that it misses no default actions, which the kernel does not give
// to a first process. What is left is the end: with the first process the kernel kills all others. Those that no app
// answers for (daemons that left their session, whatever somebody runs by the container's manager) are told before.

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
    // All of these are blocked. Who asks again to stop does not want to wait.
    sigset_t wanted;
    sigemptyset(&wanted);
    sigaddset(&wanted, SIGCHLD);
    sigaddset(&wanted, SIGTERM);
    sigaddset(&wanted, SIGINT);
    // Some have their parent outside, and nothing tells of their end.
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
