// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "keeper.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include <fcntl.h>

// torpord may die or be replaced at any time. Why it ended, and what the keeper does then:
//   it sent BYE                             intended: the keeper exits with the status that it sent
//   no torpord has ever sent HELLO          it could not start (configuration): the keeper exits with its status
//   it sent HANDOVER, after SETTLED         if asked, the keeper executes itself; the next torpord is started at once
//   otherwise                               it is restarted: at once, then after 100 ms, doubling up to 10 s
// If torpord ends before SETTLED, and another program worked before, torpord's program has failed. Then the other
// program is started again (image.c), even if torpord has sent BYE without having been asked to stop.

enum { ENVIRONMENT_LIMIT = 4096, SOCKET_BUFFER = 1 << 20 };
enum { DELAY_FIRST = 100, STABLE_AFTER = 10000, ABORT_GRACE = 2000 };
enum { EXIT_GRACE = 5000, EXIT_LOOK = 1000 };

pid_t torpord_pid;
int torpord_socket = -1;
bool torpord_greeted;
uint32_t torpord_instance;

char **torpord_arguments;
static char *environment[ENVIRONMENT_LIMIT + 4];
static char fd_variable[48];
static char pid_variable[48];
static char ended_variable[48];
static bool greeted_ever, said_bye, stuck, settled, closed;
static int bye_status = -1;  // -1: use torpord's exit status
static bool handing_over, replacing_keeper, keep_parked;
static uint64_t started_at;
static uint64_t ended_at;  // when the last torpord ended that had sent HELLO; 0: not known
static uint64_t next_delay;  // 0: the next restart is immediate
static uint32_t delay_cap = 10000;
static int delay_fd = -1;

void torpord_set_delay(uint64_t milliseconds)
{
    struct itimerspec when = {.it_value = {(time_t)(milliseconds / 1000), (long)(milliseconds % 1000) * 1000000}};
    timerfd_settime(delay_fd, 0, &when, NULL);
}

bool torpord_setup(char **arguments)
{
    static const char *const removed[] = {
        "NOTIFY_SOCKET=", "WATCHDOG_USEC=", "WATCHDOG_PID=", "LISTEN_FDS=", "LISTEN_PID=", "LISTEN_FDNAMES=",
        "FDSTORE=", "TORPOR_KEEPER_FD=", "TORPOR_KEEPER_PID=", "TORPOR_KEEPER_ENDED_MS=",
    };
    size_t used = 0;
    torpord_arguments = arguments;
    for (char **entry = keeper_environment; *entry != NULL && used < ENVIRONMENT_LIMIT; entry++) {
        bool keep = true;
        for (size_t i = 0; i < sizeof removed / sizeof *removed; i++)
            if (strncmp(*entry, removed[i], strlen(removed[i])) == 0)
                keep = false;
        if (keep)
            environment[used++] = *entry;
    }
    environment[used++] = fd_variable;
    environment[used++] = pid_variable;
    environment[used++] = ended_variable;
    snprintf(pid_variable, sizeof pid_variable, "TORPOR_KEEPER_PID=%d", (int)getpid());
    keeper_take_milliseconds("TORPOR_LOOP_WATCHDOG_MS", &watch_milliseconds);
    keeper_take_milliseconds("TORPOR_RESTART_DELAY_CAP_MS", &delay_cap);
    delay_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    return delay_fd >= 0 && keeper_watch_descriptor(delay_fd, EPOLLIN, EVENT_DELAY, 0);
}

static void close_instance(void)
{
    if (torpord_socket >= 0)
        keeper_close_watched(torpord_socket);
    watch_stop();
    torpord_socket = -1;
    torpord_greeted = false;
    wire_reset();
}

static void start_later(void)
{
    uint64_t delay = next_delay;
    next_delay = delay == 0 ? DELAY_FIRST : delay * 2;
    if (next_delay > delay_cap)
        next_delay = delay_cap;
    if (delay == 0) {
        torpord_start();
    } else if (forward_end_without_torpord()) {
        return;
    } else {
        keeper_log("<6>starting it again in %llu ms", (unsigned long long)delay);
        torpord_set_delay(delay);
    }
}

void torpord_start(void)
{
    int pair[2] = {-1, -1};
    int size = SOCKET_BUFFER;
    torpord_instance++;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        goto failed;
    for (int i = 0; i < 2; i++) {
        setsockopt(pair[i], SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
        setsockopt(pair[i], SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size);  // may exceed wmem_max, if permitted
        setsockopt(pair[i], SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
    }
    if (!watch_start())
        goto failed;
    if (fcntl(pair[0], F_SETFL, O_NONBLOCK) < 0
        || !keeper_watch_descriptor(pair[0], EPOLLIN, EVENT_SOCKET, torpord_instance))
        goto failed;
    torpord_socket = pair[0];
    said_bye = stuck = settled = closed = handing_over = replacing_keeper = false;
    started_at = keeper_now_milliseconds();
    snprintf(fd_variable, sizeof fd_variable, "TORPOR_KEEPER_FD=%d", pair[1]);
    snprintf(ended_variable, sizeof ended_variable, "TORPOR_KEEPER_ENDED_MS=%llu", (unsigned long long)ended_at);
    int image = image_choose(torpord_arguments[0]);
    pid_t pid = fork();
    if (pid == 0) {
        setpgid(0, 0);
        keeper_reset_signals();
        fcntl(pair[1], F_SETFD, 0);
        if (image >= 0)
            syscall(SYS_execveat, image, "", torpord_arguments, environment, AT_EMPTY_PATH);
        else
            execve(torpord_arguments[0], torpord_arguments, environment);
        keeper_log("<3>could not run %s: %s", torpord_arguments[0], strerror(errno));
        _exit(errno == ENOENT ? 127 : 126);
    }
    if (pid < 0)
        goto failed;
    torpord_pid = pid;
    close(pair[1]);
    return;

failed:
    keeper_log("<3>cannot start torpord: %s", strerror(errno));
    if (pair[0] >= 0 && pair[0] != torpord_socket)
        keeper_close_watched(pair[0]);
    if (pair[1] >= 0)
        close(pair[1]);
    close_instance();
    if (!greeted_ever)
        keeper_exit(1);
    next_delay = next_delay == 0 ? DELAY_FIRST : next_delay;
    start_later();
}

void torpord_said_hello(void)
{
    torpord_greeted = true;
    greeted_ever = true;
}

void torpord_said_bye(bool keep, int status)
{
    said_bye = true;
    keep_parked = keep;
    bye_status = status;
}

void torpord_said_settled(void)
{
    if (settled || !torpord_greeted || torpord_pid == 0)
        return;
    settled = true;
    image_settled(torpord_pid);
    forward_settled();
}

void torpord_said_handover(bool keeper_too)
{
    if (!settled)
        return;  // a torpord that hands over at each start must be restarted with a delay
    handing_over = true;
    replacing_keeper = keeper_too;
}

/// A signal would kill a torpord that does not handle signals yet. But before the first HELLO a torpord has done
/// nothing, and may hang while it reads its configuration: then it may be stopped.
bool torpord_takes_signals(int signo)
{
    return !handing_over && (settled || (!greeted_ever && (signo == SIGTERM || signo == SIGINT)));
}

void torpord_is_stuck(void)
{
    if (stuck)
        return;
    keeper_log("<3>torpord (pid %d) has not responded for %u ms: sent SIGABRT, restarting it", (int)torpord_pid,
               watch_milliseconds);
    stuck = true;
    kill(torpord_pid, SIGABRT);
    kill(torpord_pid, SIGCONT);
    torpord_set_delay(ABORT_GRACE);
}

uint64_t torpord_next_delay(void)
{
    return next_delay;
}

void torpord_resume(uint32_t instance, uint64_t delay)
{
    torpord_instance = instance;
    next_delay = delay;
    greeted_ever = true;
    ended_at = keeper_now_milliseconds();  // the torpord before, which has this keeper executed, ran until now
}

/// Called when torpord has closed its end of the socket: it exits. What a client has sent to it may keep its exit
/// waiting for ever: a descriptor with the last reference to a file whose filesystem does not answer.
void torpord_closed(void)
{
    closed = true;
    torpord_set_delay(EXIT_GRACE);
}

/// Whether the process may still execute something. One that exits gives up its memory before its descriptors.
static bool has_memory(pid_t pid)
{
    char path[64], text[4096];
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *tasks = opendir(path);
    if (tasks == NULL)
        return true;  // not known
    bool has = false;
    for (struct dirent *task; !has && (task = readdir(tasks)) != NULL;) {
        if (task->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "/proc/%d/task/%.16s/status", (int)pid, task->d_name);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t size = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
        if (fd >= 0)
            close(fd);
        text[size > 0 ? size : 0] = 0;
        has = size > 0 && strstr(text, "\nVmSize:") != NULL;
    }
    closedir(tasks);
    return has;
}

void torpord_delay_fired(void)
{
    uint64_t count;
    if (read(delay_fd, &count, sizeof count) != sizeof count)
        return;
    if (forward_is_shutdown()) {
        forward_shutdown_over();
    } else if (torpord_pid == 0) {
        torpord_start();
    } else if (closed && greeted_ever && !has_memory(torpord_pid)) {
        keeper_log("<4>torpord (pid %d) has ended, but something that a client has sent to it keeps its exit waiting",
                   (int)torpord_pid);
        torpord_ended(CLD_KILLED, SIGKILL);
    } else {
        if (stuck)
            kill(torpord_pid, SIGKILL);
        if (closed)
            torpord_set_delay(EXIT_LOOK);
    }
}

// Kills the helpers of a torpord that has ended, and forgets which launches it expected an answer for.
static void disown(void)
{
    for (uint32_t slot = 0; slot < table_used; slot++) {
        struct torpor_keeper_slot *record = &table_slots[slot];
        table_processes[slot].launch_id = 0;
        if (record->state == TORPOR_SLOT_FAILED && table_processes[slot].reaped)
            record->state = TORPOR_SLOT_EXITED;  // the next torpord is notified instead
        if (!(record->flags & TORPOR_LAUNCH_HELPER) || record->state == TORPOR_SLOT_FREE)
            continue;
        if (record->state == TORPOR_SLOT_EXITED) {
            table_free_slot(slot);
            continue;
        }
        table_processes[slot].abandoned = true;
        kill(-record->pid, SIGKILL);
        kill(record->pid, SIGKILL);  // the helper may not have called setsid() yet
    }
}

void torpord_ended(int code, int status)
{
    torpord_pid = 0;
    if (torpord_greeted)
        ended_at = keeper_now_milliseconds();
    serve_rest();  // the socket may still contain a BYE, or descriptors to hold
    close_instance();
    torpord_set_delay(0);
    disown();
    bool asked = forward_has_asked_to_stop();
    bool refuses = !settled && !asked && image_has_other();
    if (!greeted_ever || (said_bye && !refuses)) {
        park_leave(keep_parked || !greeted_ever);
        if (said_bye && bye_status >= 0)
            keeper_exit(bye_status);
        keeper_exit(code == CLD_EXITED ? status : 128 + status);
    }
    forward_torpord_ended();
    if (forward_is_shutdown()) {
        forward_child_ended();
        return;
    }
    if (handing_over) {
        next_delay = 0;
        image_try_again();
        if (replacing_keeper)
            resume_execute();  // returns only if it failed
        torpord_start();
        return;
    }
    if (code == CLD_EXITED)
        keeper_log("torpord exited with status %d; the apps keep running", status);
    else
        keeper_log("torpord was ended by signal %d (%s); the apps keep running", status, strsignal(status));
    if (!settled && !asked && image_failed())
        keeper_log("<3>%s ended before it had recovered: starting the program that worked before instead",
                   torpord_arguments[0]);
    if (keeper_now_milliseconds() - started_at >= STABLE_AFTER)
        next_delay = 0;
    start_later();
}
