// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "keeper.h"

#include <string.h>
#include <sys/wait.h>

// The keeper forwards its signals to torpord. A signal that arrives while torpord is being replaced waits until the
// next torpord sends SETTLED. A SIGTERM or SIGINT that torpord has received is forwarded to the next torpord too, if
// torpord died for another reason before it had stopped. If torpord is not running and will not be started at once, the
// keeper itself terminates the apps.
//
// Container managers also use other signals to stop a container: the image's STOPSIGNAL (SIGQUIT), SIGPWR for LXC, or
// the signals for containers with systemd. torpord gets all of them as SIGTERM.

static uint64_t pending;      // signals to forward later: 1 << number
static uint64_t passed_on;    // signals that the running torpord has received
static int shutdown_signal;   // not 0: the keeper has sent SIGTERM to every child

enum { SHUTDOWN_GRACE = 5000 };

static const uint64_t stops = UINT64_C(1) << SIGTERM | UINT64_C(1) << SIGINT;

bool forward_is_shutdown(void)
{
    return shutdown_signal != 0;
}

bool forward_has_asked_to_stop(void)
{
    return (passed_on & stops) != 0;
}

uint64_t forward_pending(void)
{
    return pending;
}

void forward_restore(uint64_t signals)
{
    pending = signals;
}

static void signal_children(int signo)
{
    for (uint32_t slot = 0; slot < table_used; slot++)
        if (adopt_is_living(slot)) {
            adopt_signal(slot, signo);
            adopt_signal(slot, SIGCONT);
        } else if (table_slots[slot].pid > 0
                   && (table_slots[slot].state == TORPOR_SLOT_LAUNCHING
                       || table_slots[slot].state == TORPOR_SLOT_RUNNING)) {
            kill(-table_slots[slot].pid, signo);  // it leads a session; until reaped, its pid is not reused
            kill(-table_slots[slot].pid, SIGCONT);
        }
}

static bool is_zombie(pid_t pid)
{
    siginfo_t info;
    memset(&info, 0, sizeof info);
    return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid;
}

static void shut_down(int signo)
{
    keeper_log("<5>asked to stop while there is no torpord: sending SIGTERM to the apps");
    shutdown_signal = signo;
    signal_children(SIGTERM);
    torpord_set_delay(SHUTDOWN_GRACE);
    forward_child_ended();
}

/// Without torpord, carries out a stop that a torpord did not finish. Called if torpord keeps dying.
bool forward_end_without_torpord(void)
{
    if ((pending & stops) == 0)
        return false;
    shut_down(SIGTERM);
    return true;
}

static int meaning(int signo)
{
    bool is_end = signo == SIGQUIT || signo == SIGPWR || signo == FORWARD_HALT || signo == FORWARD_POWER_OFF;
    return is_end ? SIGTERM : signo;
}

void forward_signal(int signo)
{
    signo = meaning(signo);
    if (torpord_pid > 0) {
        if (!torpord_takes_signals(signo) || is_zombie(torpord_pid)) {
            pending |= UINT64_C(1) << signo;
            return;
        }
        passed_on |= UINT64_C(1) << signo;
        if (signo != SIGWINCH)
            watch_arm();  // every signal but SIGWINCH wakes torpord's event loop
        kill(torpord_pid, signo);
        return;
    }
    if ((signo != SIGTERM && signo != SIGINT) || shutdown_signal != 0)
        return;
    shut_down(signo);
}

/// Forwards the signals that had to wait: after SETTLED torpord handles signals.
void forward_settled(void)
{
    for (int signo = 1; signo < 64; signo++)
        if (pending & UINT64_C(1) << signo) {
            passed_on |= UINT64_C(1) << signo;
            kill(torpord_pid, signo);
        }
    pending = 0;
}

/// Notes a stop that the dead torpord had not finished, to forward it to the next torpord.
void forward_torpord_ended(void)
{
    pending |= passed_on & stops;
    passed_on = 0;
}

void forward_shutdown_over(void)
{
    signal_children(SIGKILL);
    park_leave(false);
    keeper_exit(0);
}

void forward_child_ended(void)
{
    if (shutdown_signal != 0 && torpord_pid == 0 && table_living + adopt_living == 0) {
        park_leave(false);
        keeper_exit(0);
    }
}
