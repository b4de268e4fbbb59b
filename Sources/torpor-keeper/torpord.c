#define _GNU_SOURCE
#include "keeper.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include <fcntl.h>

// torpord may die or be replaced at any instant. What its end means:
//   it said BYE                             the end was meant: the keeper exits with its status
//   no torpord has ever said HELLO          it could not start (configuration): the keeper exits with its status
//   else                                    it is started again: at once, then after 100 ms, doubling up to 10 s

enum { ENVIRONMENT_LIMIT = 4096, SOCKET_BUFFER = 1 << 20 };
enum { DELAY_FIRST = 100, STABLE_AFTER = 10000, ABORT_GRACE = 2000, SHUTDOWN_GRACE = 5000 };

pid_t torpord_pid;
int torpord_socket = -1;
bool torpord_greeted;
uint32_t torpord_instance;
uint32_t torpord_watch_milliseconds = 10000;
int torpord_watch_fd = -1;

static char **torpord_arguments;
static char *environment[ENVIRONMENT_LIMIT + 4];
static char fd_variable[48];
static char pid_variable[48];
static bool greeted_ever, said_bye, stuck;
static uint64_t started_at;
static uint64_t next_delay;  // 0: the next restart is immediate
static uint32_t delay_cap = 10000;
static int delay_fd = -1;
static int shutdown_signal;  // not 0: every child was told to end

static void set_delay(uint64_t milliseconds)
{
    struct itimerspec when = {.it_value = {(time_t)(milliseconds / 1000), (long)(milliseconds % 1000) * 1000000}};
    timerfd_settime(delay_fd, 0, &when, NULL);
}

/// A number of milliseconds up to an hour from the environment, if there is one.
static void take_milliseconds(const char *name, uint32_t *value)
{
    const char *text = getenv(name);
    if (text == NULL || *text == 0)
        return;
    char *end;
    unsigned long number = strtoul(text, &end, 10);
    if (*end == 0 && number <= 3600000)
        *value = (uint32_t)number;
    else
        keeper_log("%s=%s is no number of milliseconds up to an hour: %u is used", name, text, *value);
}

bool torpord_setup(char **arguments)
{
    static const char *const removed[] = {
        "NOTIFY_SOCKET=", "WATCHDOG_USEC=", "WATCHDOG_PID=", "LISTEN_FDS=", "LISTEN_PID=", "LISTEN_FDNAMES=",
        "TORPOR_KEEPER_FD=", "TORPOR_KEEPER_PID=",
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
    snprintf(pid_variable, sizeof pid_variable, "TORPOR_KEEPER_PID=%d", (int)getpid());
    take_milliseconds("TORPOR_LOOP_WATCHDOG_MS", &torpord_watch_milliseconds);
    take_milliseconds("TORPOR_RESTART_DELAY_CAP_MS", &delay_cap);
    delay_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    return delay_fd >= 0 && keeper_watch_descriptor(delay_fd, EPOLLIN, EVENT_DELAY, 0);
}

static void close_instance(void)
{
    if (torpord_socket >= 0)
        keeper_close_watched(torpord_socket);
    if (torpord_watch_fd >= 0) {
        // The timer's other descriptors may outlive torpord: it must not fire, nor stay in the epoll.
        struct itimerspec none;
        memset(&none, 0, sizeof none);
        timerfd_settime(torpord_watch_fd, 0, &none, NULL);
        keeper_close_watched(torpord_watch_fd);
    }
    torpord_socket = -1;
    torpord_watch_fd = -1;
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
    } else {
        keeper_log("starting it again in %llu ms", (unsigned long long)delay);
        set_delay(delay);
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
        setsockopt(pair[i], SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size);  // beyond wmem_max, where allowed
        setsockopt(pair[i], SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
    }
    torpord_watch_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (torpord_watch_fd < 0 || !keeper_watch_descriptor(torpord_watch_fd, EPOLLIN, EVENT_WATCH, torpord_instance))
        goto failed;
    if (fcntl(pair[0], F_SETFL, O_NONBLOCK) < 0
        || !keeper_watch_descriptor(pair[0], EPOLLIN, EVENT_SOCKET, torpord_instance))
        goto failed;
    torpord_socket = pair[0];
    said_bye = stuck = false;
    started_at = keeper_now_milliseconds();
    snprintf(fd_variable, sizeof fd_variable, "TORPOR_KEEPER_FD=%d", pair[1]);
    pid_t pid = fork();
    if (pid == 0) {
        setpgid(0, 0);
        keeper_reset_signals();
        fcntl(pair[1], F_SETFD, 0);
        execve(torpord_arguments[0], torpord_arguments, environment);
        keeper_log("could not run %s: %s", torpord_arguments[0], strerror(errno));
        _exit(errno == ENOENT ? 127 : 126);
    }
    if (pid < 0)
        goto failed;
    torpord_pid = pid;
    close(pair[1]);
    return;

failed:
    keeper_log("cannot start torpord: %s", strerror(errno));
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

void torpord_said_bye(void)
{
    said_bye = true;
}

void torpord_arm_watch(void)
{
    // Before a message is sent, never after: torpord disarms before it sleeps, and the message wakes it.
    struct itimerspec when;
    if (!torpord_greeted || torpord_watch_milliseconds == 0 || torpord_watch_fd < 0)
        return;
    if (timerfd_gettime(torpord_watch_fd, &when) < 0 || when.it_value.tv_sec != 0 || when.it_value.tv_nsec != 0)
        return;
    memset(&when, 0, sizeof when);
    when.it_value.tv_sec = torpord_watch_milliseconds / 1000;
    when.it_value.tv_nsec = (long)(torpord_watch_milliseconds % 1000) * 1000000;
    timerfd_settime(torpord_watch_fd, 0, &when, NULL);
}

static bool is_traced(pid_t pid)
{
    char path[64], text[4096];
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t size = read(fd, text, sizeof text - 1);
    close(fd);
    if (size <= 0)
        return false;
    text[size] = 0;
    const char *field = strstr(text, "\nTracerPid:\t");
    return field != NULL && field[12] != '0';
}

void torpord_watch_fired(void)
{
    uint64_t count;
    if (torpord_watch_fd < 0 || read(torpord_watch_fd, &count, sizeof count) != sizeof count)
        return;  // torpord was quicker
    if (torpord_pid == 0 || stuck)
        return;
    if (is_traced(torpord_pid)) {
        torpord_arm_watch();
        return;
    }
    keeper_log("torpord (pid %d) has not moved for %u ms: ended with SIGABRT, it is started again", (int)torpord_pid,
               torpord_watch_milliseconds);
    stuck = true;
    kill(torpord_pid, SIGABRT);
    kill(torpord_pid, SIGCONT);
    set_delay(ABORT_GRACE);
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
            kill(-table_slots[slot].pid, signo);  // each leads a session; it is not reaped, so its number is its own
            kill(-table_slots[slot].pid, SIGCONT);
        }
}

void torpord_delay_fired(void)
{
    uint64_t count;
    if (read(delay_fd, &count, sizeof count) != sizeof count)
        return;
    if (shutdown_signal != 0) {
        signal_children(SIGKILL);
        keeper_exit(0);
    } else if (torpord_pid == 0) {
        torpord_start();
    } else if (stuck) {
        kill(torpord_pid, SIGKILL);
    }
}

void torpord_ended(int code, int status)
{
    int answer = code == CLD_EXITED ? status : 128 + status;
    bool bye = said_bye;
    torpord_pid = 0;
    serve_rest();  // a BYE, or descriptors to be held, may still wait in the socket
    bye = bye || said_bye;
    close_instance();
    set_delay(0);
    for (uint32_t slot = 0; slot < table_used; slot++) {
        struct torpor_keeper_slot *record = &table_slots[slot];
        table_processes[slot].launch_id = 0;
        if (record->state == TORPOR_SLOT_FAILED && table_processes[slot].reaped)
            record->state = TORPOR_SLOT_EXITED;  // its torpord was not told: the next one is
        if (!(record->flags & TORPOR_LAUNCH_HELPER) || record->state == TORPOR_SLOT_FREE)
            continue;
        if (record->state == TORPOR_SLOT_EXITED) {
            table_free_slot(slot);
            continue;
        }
        table_processes[slot].abandoned = true;
        kill(-record->pid, SIGKILL);
        kill(record->pid, SIGKILL);  // it may not have made its session yet
    }
    if (bye || !greeted_ever)
        keeper_exit(answer);
    if (shutdown_signal != 0) {
        torpord_child_ended();
        return;
    }
    if (code == CLD_EXITED)
        keeper_log("torpord exited with status %d; the apps run on", status);
    else
        keeper_log("torpord was ended by signal %d (%s); the apps run on", status, strsignal(status));
    if (keeper_now_milliseconds() - started_at >= STABLE_AFTER)
        next_delay = 0;
    start_later();
}

void torpord_forward(int signo)
{
    if (torpord_pid > 0) {
        kill(torpord_pid, signo);
        return;
    }
    if (signo != SIGTERM && signo != SIGINT && signo != SIGQUIT)
        return;
    keeper_log("asked to end while there is no torpord: the apps get SIGTERM");
    shutdown_signal = signo;
    signal_children(SIGTERM);
    set_delay(SHUTDOWN_GRACE);
    torpord_child_ended();
}

void torpord_child_ended(void)
{
    if (shutdown_signal != 0 && torpord_pid == 0 && table_living + adopt_living == 0)
        keeper_exit(0);
}
