// SPDX-License-Identifier: Apache-2.0

// Runs podman: prepares its environment, reads its output, and sends messages to torpord.

#define _GNU_SOURCE
#include "container.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* How many descriptors torpord has passed to the app, from number 3 on. */
static int passed;
static struct sockaddr_un notify_address;
static socklen_t notify_length;

void prepare_environment(void) {
    const char *socket = getenv("NOTIFY_SOCKET");
    if (socket != NULL && (socket[0] == '/' || socket[0] == '@') && strlen(socket) < sizeof notify_address.sun_path) {
        notify_address.sun_family = AF_UNIX;
        strcpy(notify_address.sun_path, socket);
        notify_length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(socket) + (socket[0] == '/'));
        if (socket[0] == '@') notify_address.sun_path[0] = 0;
    }
    // podman and crun must not see NOTIFY_SOCKET: they would send messages themselves, or wait until the container
    // sends one.
    unsetenv("NOTIFY_SOCKET");
    unsetenv("WATCHDOG_PID");
    const char *count = getenv("LISTEN_FDS");
    if (count != NULL) passed = atoi(count);
    if (passed < 0 || passed > 4096) passed = 0;
    // Rootless podman keeps its data of the current boot in XDG_RUNTIME_DIR, which is not set without a login
    // session.
    char folder[64];
    struct stat status;
    snprintf(folder, sizeof folder, "/run/user/%u", (unsigned)geteuid());
    if (geteuid() != 0 && getenv("XDG_RUNTIME_DIR") == NULL && stat(folder, &status) == 0 &&
        status.st_uid == geteuid())
        setenv("XDG_RUNTIME_DIR", folder, 1);
}

void write_variables(const char *path) {
    extern char **environ;
    static const char prefix[] = "TORPOR_INSIDE_";
    int fd = -1;
    for (char **entry = environ; *entry != NULL;) {
        if (strncmp(*entry, prefix, sizeof prefix - 1) != 0) {
            entry++;
            continue;
        }
        if (fd < 0) fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd >= 0) dprintf(fd, "%s\n", *entry + sizeof prefix - 1);
        // unsetenv moves the next variable to this place, so do not advance the pointer.
        char name[512];
        size_t length = strcspn(*entry, "=");
        if (length >= sizeof name) {
            entry++;
            continue;
        }
        memcpy(name, *entry, length);
        name[length] = 0;
        if (unsetenv(name) != 0) entry++;
    }
    if (fd >= 0) close(fd);
}

void leave_to_container(void) {
    if (passed > 0) syscall(SYS_close_range, 3, 2 + passed, 0);
    passed = 0;
}

void restore_environment(void) {
    if (notify_length == 0) return;
    char socket[sizeof notify_address.sun_path + 1] = "@";
    bool is_abstract = notify_address.sun_path[0] == 0;
    snprintf(socket + is_abstract, sizeof socket - is_abstract, "%s", notify_address.sun_path + is_abstract);
    setenv("NOTIFY_SOCKET", socket, 1);
}

void notify(const char *format, ...) {
    if (notify_length == 0) return;
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return;
    while (sendto(fd, text, strlen(text), MSG_NOSIGNAL, (struct sockaddr *)&notify_address, notify_length) < 0 &&
           errno == EINTR) continue;
    close(fd);
}

int fail(const char *format, ...) {
    char text[768];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    for (char *c = text; *c != 0; c++)
        if ((unsigned char)*c < ' ') *c = ' ';
    dprintf(2, "torpor-container: %s\n", text);
    notify("STATUS=%s", text);
    return FAILED;
}

void add(struct words *words, const char *word) {
    if (words->count + 2 > words->room) {
        words->room = words->room * 2 + 32;
        words->all = realloc(words->all, words->room * sizeof *words->all);
        if (words->all == NULL) exit(fail("has no memory to start its container"));
    }
    words->all[words->count++] = strdup(word);
    words->all[words->count] = NULL;
    if (words->all[words->count - 1] == NULL) exit(fail("has no memory to start its container"));
}

void addf(struct words *words, const char *format, ...) {
    char *text = NULL;
    va_list arguments;
    va_start(arguments, format);
    if (vasprintf(&text, format, arguments) < 0) exit(fail("has no memory to start its container"));
    va_end(arguments);
    add(words, text);
    free(text);
}

/* Runs in the child between fork and exec. `write_end` is the child's end of the pipe that the parent reads, or
   -1. */
static void become(struct words *words, enum output output, int write_end, bool passes) {
    // If this process ends, let the kernel kill podman, because no process would wait for the container that podman
    // starts. torpord then runs `torpor-container remove`, which deletes what podman has begun.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    leave_signals();
    if (passes && passed > 0) {
        // podman supports systemd's socket activation: it passes the descriptors on to the container and sets
        // LISTEN_FDS there.
        char pid[16];
        snprintf(pid, sizeof pid, "%d", (int)getpid());
        setenv("LISTEN_PID", pid, 1);
    } else {
        unsetenv("LISTEN_FDS");
        unsetenv("LISTEN_PID");
        if (passed > 0) syscall(SYS_close_range, 3, 2 + passed, 0);
    }
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null >= 0) dup2(null, 0);
    if (output == OUTPUT_KEPT) {
        dup2(write_end, 1);
        if (null >= 0) dup2(null, 2);
    } else if (output == OUTPUT_FOLLOWED) {
        dup2(write_end, 2);
        if (null >= 0) dup2(null, 1);
    }
    execvp(words->all[0], words->all);
    _exit(NOT_EXECUTED);
}

static int64_t milliseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Splits the output of a command into lines, and keeps the last line. */
struct lines {
    char text[512];
    size_t used;
};

static void take(struct lines *lines, const char *bytes, size_t count, char *last, size_t size, void (*line)(const char *)) {
    for (size_t i = 0; i < count; i++) {
        if (bytes[i] != '\n' && bytes[i] != '\r') {
            if (lines->used + 1 < sizeof lines->text) lines->text[lines->used++] = bytes[i];
            continue;
        }
        lines->text[lines->used] = 0;
        if (lines->used > 0) {
            dprintf(2, "%s\n", lines->text);
            snprintf(last, size, "%s", lines->text);
            if (line != NULL) line(lines->text);
        }
        lines->used = 0;
    }
}

int podman(struct words *words, enum output output, char *answer, size_t size, long seconds, void (*line)(const char *)) {
    enum { AFTER_TERM_MS = 5000 };
    int ends[2] = {-1, -1};
    if (answer != NULL) answer[0] = 0;
    if (output != OUTPUT_PASSED && pipe2(ends, O_CLOEXEC) != 0) return -1;
    pid_t child = fork();
    if (child < 0) return -1;
    if (child == 0) become(words, output, ends[1], output == OUTPUT_PASSED);
    if (ends[1] >= 0) close(ends[1]);
    int pidfd = (int)syscall(SYS_pidfd_open, child, 0);
    int64_t end = seconds > 0 ? milliseconds() + seconds * 1000 : INT64_MAX;
    bool is_late = false, is_asked = false;
    size_t used = 0;
    struct lines lines = {.used = 0};
    bool is_open = ends[0] >= 0;
    // Wait for podman itself to end, not for the end of the pipe: a process that podman leaves running keeps the pipe
    // open.
    while (pidfd >= 0) {
        if (line != NULL) line(NULL);
        struct pollfd waits[3] = {{pidfd, POLLIN, 0}, {is_open ? ends[0] : -1, POLLIN, 0}, {signals(), POLLIN, 0}};
        // If this process is asked to end, terminate a pull, which takes long. Other commands are brief and change
        // podman's records, so let them finish.
        if (output == OUTPUT_FOLLOWED && line != NULL && is_asked_to_end() != 0 && !is_asked) {
            is_asked = true;
            kill(child, SIGTERM);
            end = milliseconds() + AFTER_TERM_MS;
        }
        int64_t left = end - milliseconds();
        if (left <= 0 && !is_late) {
            is_late = true;
            kill(child, SIGKILL);
        }
        int ready = poll(waits, 3, left <= 0 || left > 1000 ? 1000 : (int)left);
        if (ready < 0 && errno != EINTR) break;
        if (waits[2].revents != 0) note_signals();
        if (is_open && waits[1].revents != 0) {
            char bytes[4096];
            ssize_t count = read(ends[0], bytes, sizeof bytes);
            if (count <= 0) {
                is_open = count < 0 && (errno == EINTR || errno == EAGAIN);
            } else if (output == OUTPUT_FOLLOWED) {
                take(&lines, bytes, (size_t)count, answer, size, line);
            } else {
                size_t some = (size_t)count < size - 1 - used ? (size_t)count : size - 1 - used;
                memcpy(answer + used, bytes, some);
                used += some;
                answer[used] = 0;
            }
            continue;
        }
        if (waits[0].revents != 0) break;
    }
    if (pidfd >= 0) close(pidfd);
    if (ends[0] >= 0) close(ends[0]);
    int status;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR) return -1;
    if (is_late) return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
