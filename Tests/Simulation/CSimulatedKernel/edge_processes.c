// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "kernel.h"

#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

// Processes, as the world has them.

pid_t getpid(void) { return sim_is_torpord ? sim_world->torpord : REAL(getpid)(); }
pid_t getppid(void) { return sim_is_torpord ? SIM_KEEPER : REAL(getppid)(); }

// The process behind a descriptor that was opened as its pidfd, gone or not; *is_pidfd says whether it is one.
static struct sim_process *behind(int fd)
{
    struct stat status;
    if (REAL(fstat)(fd, &status) < 0 || !S_ISFIFO(status.st_mode))
        return NULL;
    for (int i = 0; i < sim_world->places; i++)
        if (sim_world->processes[i].pid != 0 && sim_world->processes[i].inode == status.st_ino)
            return &sim_world->processes[i];
    return NULL;
}

static int open_pidfd(int32_t pid)
{
    FAIL(SIM_FAULT_DESCRIPTORS, EMFILE);
    char path[256];
    struct sim_process *process = sim_find(pid);
    if (process == NULL) {
        errno = ESRCH;
        return -1;
    }
    snprintf(path, sizeof path, "%s/pidfd/%d", sim_world->root, pid);
    return REAL(open)(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
}

static int signal_process(struct sim_process *process, int number)
{
    if (process == NULL) {
        errno = ESRCH;
        return -1;
    }
    // A process that torpord could stop can be continued: it cannot change its user while it is stopped.
    if (number != SIGCONT)
        FAIL(SIM_FAULT_SIGNAL, EPERM);
    sim_note("signal %d to %d", number, process->pid);
    sim_send_signal(process, number);
    // It may have stopped before the call returns.
    if (number == SIGSTOP && process->state == 'S' && sim_random(2) == 0) {
        process->pending &= ~(1ull << SIGSTOP);
        process->state = 'T';
    }
    return 0;
}

int kill(pid_t pid, int number)
{
    if (!sim_is_torpord)
        return REAL(kill)(pid, number);
    sim_count_call();
    return signal_process(sim_find(pid < 0 ? -pid : pid), number);
}

static long open_at_2(const char *path, uint64_t flags, uint64_t mode, uint64_t resolve, int folder)
{
    struct {
        uint64_t flags, mode, resolve;
    } how = {flags, mode, resolve};
    char place[512];
    if (path[0] == '/' && sim_translate(path, place, sizeof place))
        path = place;
    return REAL(syscall)(SYS_openat2, folder, path, &how, sizeof how);
}

long syscall(long number, ...)
{
    va_list list;
    long a[6];
    va_start(list, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(list, long);
    va_end(list);
    if (!sim_is_torpord)
        return REAL(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    sim_count_call();
    switch (number) {
    case SYS_pidfd_open:
        return open_pidfd((int32_t)a[0]);
    case SYS_pidfd_send_signal:
        return signal_process(behind((int)a[0]), (int)a[1]);
    case SYS_openat2: {
        FAIL(SIM_FAULT_DESCRIPTORS, EMFILE);
        uint64_t *how = (uint64_t *)a[2];
        return open_at_2((const char *)a[1], how[0], how[1], how[2], (int)a[0]);
    }
    case SYS_pidfd_getfd:
    case SYS_process_madvise:
    case 448:  // process_mrelease
        errno = EPERM;
        return -1;
    case SYS_ioprio_get:
    case SYS_ioprio_set:
        return 0;
    default:
        return REAL(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    }
}

int waitid(idtype_t kind, id_t id, siginfo_t *info, int options)
{
    if (!sim_is_torpord)
        return REAL(waitid)(kind, id, info, options);
    errno = ECHILD;
    return -1;
}

int execve(const char *path, char *const arguments[], char *const environment[])
{
    if (!sim_is_torpord)
        return REAL(execve)(path, arguments, environment);
    sim_note("torpord executes %s", path);
    REAL(_exit)(97);
}

// Most are read at once and closed: their content stays here, and their numbers are none of the real kernel's, which gives
// the lowest that is free.
enum { CONTENTS = 8, CONTENT_BYTES = 8192, FIRST_MADE_UP = 3000, MOST_FDS = 4096 };

static struct content {
    size_t size, next;
    int is_used, is_real;  // real: the kernel has a file with this number by now
    char text[CONTENT_BYTES];
} contents[CONTENTS];
static uint8_t is_trigger[MOST_FDS];

static int real_descriptor_with(const char *text, size_t size)
{
    int fd = REAL(memfd_create)("made-up", MFD_CLOEXEC);
    if (fd < 0)
        return -1;
    if (size > 0 && REAL(write)(fd, text, size) != (ssize_t)size)
        abort();
    lseek(fd, 0, SEEK_SET);
    return fd;
}

static int descriptor_with(const char *text, size_t size)
{
    int place = 0;
    while (place < CONTENTS && contents[place].is_used)
        place++;
    if (place == CONTENTS || size > CONTENT_BYTES)
        return real_descriptor_with(text, size);
    contents[place].is_used = 1;
    contents[place].is_real = 0;
    contents[place].size = size;
    contents[place].next = 0;
    memcpy(contents[place].text, text, size);
    sim_world->made_up++;
    return FIRST_MADE_UP + place;
}

static struct content *content(int fd)
{
    if (fd < FIRST_MADE_UP || fd >= FIRST_MADE_UP + CONTENTS)
        return NULL;
    struct content *content_behind = &contents[fd - FIRST_MADE_UP];
    return content_behind->is_used && !content_behind->is_real ? content_behind : NULL;
}

int sim_is_made_up(int fd) { return content(fd) != NULL; }

ssize_t sim_read_made_up(int fd, void *to, size_t size, off_t offset)
{
    struct content *content_behind = content(fd);
    if (content_behind == NULL)
        return -2;
    size_t from = offset == SIM_FROM_WHERE_IT_IS ? content_behind->next : (size_t)offset;
    size_t left = from < content_behind->size ? content_behind->size - from : 0;
    if (size > left)
        size = left;
    memcpy(to, content_behind->text + from, size);
    if (offset == SIM_FROM_WHERE_IT_IS)
        content_behind->next += size;
    return (ssize_t)size;
}

int sim_close_made_up(int fd)
{
    if (fd >= 0 && fd < MOST_FDS)
        is_trigger[fd] = 0;
    struct content *content_behind = content(fd);
    if (content_behind == NULL) {
        if (fd >= FIRST_MADE_UP && fd < FIRST_MADE_UP + CONTENTS)
            contents[fd - FIRST_MADE_UP].is_used = 0;
        return 0;
    }
    content_behind->is_used = 0;
    sim_world->made_up--;
    return 1;
}

void sim_make_real(int fd)
{
    struct content *content_behind = content(fd);
    if (content_behind == NULL)
        return;
    int made = real_descriptor_with(content_behind->text, content_behind->size);
    if (made < 0)
        return;
    lseek(made, (off_t)content_behind->next, SEEK_SET);
    dup3(made, fd, O_CLOEXEC);
    REAL(close)(made);
    content_behind->is_real = 1;
    sim_world->made_up--;
}

static int made_up(const char *format, ...) __attribute__((format(printf, 1, 2)));
static int made_up(const char *format, ...)
{
    char text[2048];
    va_list list;
    va_start(list, format);
    int size = vsnprintf(text, sizeof text, format, list);
    va_end(list);
    return descriptor_with(text, (size_t)size);
}

static int open_of_process(int32_t pid, const char *file)
{
    struct sim_process *process = sim_find(pid);
    struct sim_process own = {.pid = pid, .state = 'S', .session = pid, .parent = 1, .start = (uint64_t)pid};
    if (process == NULL && (pid == SIM_KEEPER || pid == sim_world->torpord)) {
        process = &own;
        snprintf(own.comm, sizeof own.comm, pid == SIM_KEEPER ? "torpor-keeper" : "torpord");
    }
    if (process == NULL) {
        errno = ENOENT;
        return -1;
    }
    char task[64];
    int length = snprintf(task, sizeof task, "task/%d/", pid);
    if (strncmp(file, task, (size_t)length) == 0)
        file += length;
    if (strcmp(file, "stat") == 0)
        return made_up("%d (%s) %c %d %d %d 0 -1 4194560 1 0 0 0 3 2 0 0 20 0 1 0 %llu 1000000 250 18446744073709551615\n",
                       pid, process->comm, process->state, process->parent, process->session, process->session,
                       (unsigned long long)process->start);
    if (strcmp(file, "status") == 0)
        return made_up("Name:\t%s\nState:\t%c\nPid:\t%d\nPPid:\t%d\nTracerPid:\t0\nUid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\n"
                       "VmRSS:\t1000 kB\nVmSwap:\t0 kB\nThreads:\t1\nSigPnd:\t%016llx\nShdPnd:\t0000000000000000\n",
                       process->comm, process->state, pid, process->parent,
                       (unsigned long long)(process->pending >> 1));
    if (strcmp(file, "environ") == 0)
        return process->state == 'Z' || process == &own
                   ? made_up("%s", "")
                   : descriptor_with(sim_environment(process), process->environment_size);
    if (strcmp(file, "cgroup") == 0)
        return made_up("0::/\n");
    if (strcmp(file, "cmdline") == 0 || strcmp(file, "comm") == 0)
        return made_up("%s\n", process->comm);
    if (strcmp(file, "children") == 0) {
        char text[1024] = "";
        size_t used = 0;
        for (int i = 0; i < sim_world->places && used + 16 < sizeof text; i++)
            if (sim_world->processes[i].pid != 0 && sim_world->processes[i].parent == pid)
                used += (size_t)snprintf(text + used, sizeof text - used, "%d ", sim_world->processes[i].pid);
        return descriptor_with(text, used);
    }
    if (strcmp(file, "schedstat") == 0)
        return made_up("1000000 1000 10\n");
    if (strcmp(file, "oom_score_adj") == 0)
        return made_up("0\n");
    if (strcmp(file, "timerslack_ns") == 0)
        return made_up("50000\n");
    if (strcmp(file, "autogroup") == 0)
        return made_up("/autogroup-1 nice 0\n");
    if (strcmp(file, "smaps_rollup") == 0)
        return made_up("Rss: 1000 kB\nPss: 900 kB\nSwapPss: 0 kB\n");
    if (strcmp(file, "wchan") == 0)
        return made_up("0");
    errno = ENOENT;
    return -1;
}

// The memory of the world is never short: what stands for a trigger is a descriptor that never becomes ready.
int sim_open_trigger(const char *path)
{
    if (strcmp(path, "/proc/pressure/memory") != 0 || !sim_world->has_pressure)
        return -2;
    int fd = REAL(timerfd_create)(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (fd >= 0 && fd < MOST_FDS)
        is_trigger[fd] = 1;
    return fd;
}

int sim_is_trigger(int fd) { return fd >= 0 && fd < MOST_FDS && is_trigger[fd]; }

int sim_open_made_up(const char *path)
{
    if (strncmp(path, "/proc/", 6) != 0)
        return -2;
    const char *rest = path + 6;
    if (*rest >= '0' && *rest <= '9') {
        char *end;
        long pid = strtol(rest, &end, 10);
        return open_of_process((int32_t)pid, *end == '/' ? end + 1 : end);
    }
    if (strncmp(rest, "self/fdinfo/", 12) == 0) {
        struct sim_process *process = behind(atoi(rest + 12));
        if (process != NULL)
            return made_up("pos:\t0\nPid:\t%d\n", process->pid);
        return -2;
    }
    if (strcmp(rest, "self/mountinfo") == 0)
        return made_up("22 1 0:21 / /proc rw - proc proc rw\n");
    if (strcmp(rest, "self/cgroup") == 0)
        return made_up("0::/\n");
    if (strncmp(rest, "self/", 5) == 0 || strncmp(rest, "thread-self/", 12) == 0)
        return -2;
    if (strcmp(rest, "meminfo") == 0)
        return made_up("MemTotal:       16000000 kB\nMemFree:        12000000 kB\nMemAvailable:   14000000 kB\n"
                       "SwapTotal:             0 kB\nSwapFree:              0 kB\n");
    if (strncmp(rest, "pressure/", 9) == 0 && sim_world->has_pressure)
        return made_up("some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"
                       "full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n");
    if (strcmp(rest, "sys/kernel/random/boot_id") == 0)
        return made_up("00000000-0000-0000-0000-%012llu\n", (unsigned long long)sim_world->boot);
    if (strcmp(rest, "sys/kernel/hostname") == 0)
        return made_up("simulated\n");
    if (strcmp(rest, "locks") == 0 || strcmp(rest, "swaps") == 0 || strcmp(rest, "mounts") == 0)
        return made_up("%s", "");
    if (strcmp(rest, "loadavg") == 0)
        return made_up("0.10 0.10 0.10 1/100 1000\n");
    errno = ENOENT;
    return -1;
}

int sim_translate(const char *path, char *to, size_t size)
{
    static const char *const real[] = {"/proc/self", "/proc/thread-self", "/dev/null", "/dev/shm", "/dev/urandom"};
    static const char *const made_up[] = {"/proc", "/sys", "/run", "/dev", "/var"};
    for (size_t i = 0; i < sizeof real / sizeof *real; i++)
        if (strncmp(path, real[i], strlen(real[i])) == 0)
            return 0;
    for (size_t i = 0; i < sizeof made_up / sizeof *made_up; i++) {
        size_t length = strlen(made_up[i]);
        if (strncmp(path, made_up[i], length) == 0 && (path[length] == '/' || path[length] == 0)) {
            snprintf(to, size, "%s%s", sim_world->root, path);
            return 1;
        }
    }
    return 0;
}
