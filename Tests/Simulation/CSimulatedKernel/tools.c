// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "kernel.h"

#include <fcntl.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <signal.h>
#include <unistd.h>

// What the simulator itself needs of the real kernel.

void sim_prepare(char *const arguments[])
{
    static const char *const wanted[] = {"SWIFT_DETERMINISTIC_HASHING=1", "PATH=/usr/bin:/bin", "TZ=UTC",
                                         "MALLOC_ARENA_MAX=1", "TORPOR_SIMULATED=1",
                                         // Once for all seeds, not by each torpord.
                                         "LD_BIND_NOW=1",
                                         // What is freed is used again without a search.
                                         "GLIBC_TUNABLES=glibc.malloc.tcache_count=1000", NULL};
    struct rlimit files = {4096, 4096};
    setrlimit(RLIMIT_NOFILE, &files);
    signal(SIGPIPE, SIG_IGN);
    if (getenv("TORPOR_SIMULATED") != NULL && (personality(0xffffffff) & ADDR_NO_RANDOMIZE))
        return;
    personality(ADDR_NO_RANDOMIZE);
    execve("/proc/self/exe", arguments, (char *const *)wanted);
}

void sim_find_real_functions(void)
{
    extern struct sim_real __start_sim_real[], __stop_sim_real[];
    for (struct sim_real *next = __start_sim_real; next < __stop_sim_real; next++)
        if (*next->function == NULL)
            *next->function = dlsym(RTLD_NEXT, next->name);
}

int sim_fork(void)
{
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    return pid;
}

int sim_wait_any(int *status)
{
    pid_t pid;
    while ((pid = waitpid(-1, status, 0)) < 0 && errno == EINTR) {}
    return pid;
}

void sim_pin(int number)
{
    cpu_set_t able, one;
    if (sched_getaffinity(0, sizeof able, &able) < 0)
        return;
    number %= CPU_COUNT(&able);
    for (int i = 0; i < CPU_SETSIZE; i++) {
        if (!CPU_ISSET(i, &able) || number-- > 0)
            continue;
        CPU_ZERO(&one);
        CPU_SET(i, &one);
        sched_setaffinity(0, sizeof one, &one);
        return;
    }
}

void sim_lock(uint64_t seed)
{
    // A name that goes with the process.
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int length = snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "torpor-simulation/%llu",
                          (unsigned long long)seed);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
    while (fd >= 0 && bind(fd, (struct sockaddr *)&address, size) < 0 && errno == EADDRINUSE)
        usleep(10000);
}

void sim_exit(int status)
{
    fflush(NULL);
    _exit(status);
}
void sim_set_alarm(unsigned seconds) { alarm(seconds); }

void sim_redirect_errors(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd >= 0) {
        dup2(fd, 2);
        close(fd);
    }
}

static int address_of(const char *path, struct sockaddr_un *address)
{
    memset(address, 0, sizeof *address);
    address->sun_family = AF_UNIX;
    if (strlen(path) >= sizeof address->sun_path)
        return -1;
    strcpy(address->sun_path, path);
    return 0;
}

int sim_connect_as(const char *path, int32_t pid)
{
    struct sockaddr_un address;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0 || address_of(path, &address) < 0 || sim_bind_as(fd, pid) < 0
        || connect(fd, (struct sockaddr *)&address, sizeof address) < 0) {
        if (fd >= 0)
            close(fd);
        return -1;
    }
    return fd;
}

int sim_send_as(const char *path, int32_t pid, const char *text)
{
    struct sockaddr_un address;
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int result = fd < 0 || address_of(path, &address) < 0 || sim_bind_as(fd, pid) < 0 ? -1 : 0;
    if (result == 0)
        result = sendto(fd, text, strlen(text), 0, (struct sockaddr *)&address, sizeof address) < 0 ? -1 : 0;
    if (fd >= 0)
        close(fd);
    return result;
}

ssize_t sim_read(int fd, void *to, size_t size) { return read(fd, to, size); }
ssize_t sim_write(int fd, const void *from, size_t size)
{
    ssize_t written = send(fd, from, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    return written < 0 && errno == ENOTSOCK ? write(fd, from, size) : written;
}
int sim_errno(void) { return errno; }
void sim_close(int fd) { if (fd >= 0) close(fd); }
void sim_nonblocking(int fd) { fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK); }
void sim_set(const char *name, const char *value) { setenv(name, value, 1); }
