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
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

struct sim_world *sim_world;
int sim_is_torpord;

static uint64_t next_random(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

uint64_t sim_random(uint64_t below) { return below == 0 ? 0 : next_random(&sim_world->schedule) % below; }

int64_t sim_real_nanoseconds(void)
{
    struct timespec time;
    REAL(clock_gettime)(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

int sim_create(uint64_t seed, const char *root)
{
    struct sim_world *world =
        mmap(NULL, sizeof *world, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (world == MAP_FAILED)
        return -1;
    world->schedule = seed * 2 + 1;
    world->fault_state = seed * 2 + 0x5eed;
    world->now = 5000 * 1000000000ll;
    world->realtime = 1800000000ll * 1000000000;
    world->next_deadline = INT64_MAX;
    world->trace_hash = 0xcbf29ce484222325;
    world->next_ticks = 500000;
    world->has_pressure = seed % 8 != 0;
    snprintf(world->root, sizeof world->root, "%s", root);
    sim_world = world;
    static const char *const folders[] = {"proc", "threads", "tasks", "none", "pidfd"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        char path[256];
        snprintf(path, sizeof path, "%s/%s", root, folders[i]);
        if (mkdir(path, 0755) < 0)
            return -1;
    }
    return 0;
}

void sim_trace(const char *text)
{
    for (const char *next = text;; next++) {
        char byte = *next == 0 ? '\n' : *next;
        sim_world->trace_hash = (sim_world->trace_hash ^ (uint8_t)byte) * 0x100000001b3;
        sim_world->trace[sim_world->trace_size++ % SIM_TRACE] = byte;
        if (*next == 0)
            return;
    }
}

size_t sim_trace_end(char *to, size_t size)
{
    uint64_t end = sim_world->trace_size;
    uint64_t most = end < SIM_TRACE ? end : SIM_TRACE;
    if (most < size)
        size = (size_t)most;
    for (size_t i = 0; i < size; i++)
        to[i] = sim_world->trace[(end - size + i) % SIM_TRACE];
    return size;
}

void sim_note(const char *format, ...)
{
    char text[400];
    int size = snprintf(text, sizeof text, "%lld ", (long long)(sim_world->now / 1000));
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + size, sizeof text - (size_t)size, format, arguments);
    va_end(arguments);
    sim_trace(text);
}

void sim_count_call_in(const char *function, int has_changed)
{
    ++sim_world->calls;
    if (sim_world->kill_at == 0 || sim_world->calls < sim_world->kill_at)
        return;
    if (sim_world->kill_after_change && !has_changed)
        return;
    sim_note("torpord is killed at call %llu, in %s", (unsigned long long)sim_world->calls, function);
    REAL(syscall)(SYS_kill, REAL(syscall)(SYS_getpid), SIGKILL);
}

int sim_fails_in(enum sim_fault fault, const char *function)
{
    uint32_t rate = sim_world->rate[fault];
    if (sim_world->is_calm || rate == 0 || next_random(&sim_world->fault_state) % 65536 >= rate)
        return 0;
    sim_world->faults[fault]++;
    sim_note("fault %d in %s at call %llu", (int)fault, function, (unsigned long long)sim_world->calls);
    return 1;
}

// MARK: Processes

struct sim_process *sim_find(int32_t pid)
{
    for (int i = 0; pid != 0 && i < sim_world->places; i++)
        if (sim_world->processes[i].pid == pid)
            return &sim_world->processes[i];
    return NULL;
}

struct sim_process *sim_at(int index)
{
    return index < SIM_PROCESSES && sim_world->processes[index].pid != 0 ? &sim_world->processes[index] : NULL;
}

static void process_path(char *to, size_t size, const char *folder, const struct sim_process *process)
{
    snprintf(to, size, "%s/%s/%d", sim_world->root, folder, process->pid);
}

struct sim_process *sim_spawn(const char *app, uint32_t incarnation, int32_t parent, int is_helper)
{
    static int32_t last = 100;
    struct sim_process *process = NULL;
    for (int i = 0; i < SIM_PROCESSES && process == NULL; i++)
        if (sim_world->processes[i].pid == 0)
            process = &sim_world->processes[i];
    if (process == NULL)
        return NULL;
    if (process - sim_world->processes >= sim_world->places)
        sim_world->places = (int32_t)(process - sim_world->processes) + 1;
    memset(process, 0, sizeof *process);
    // Numbers are used again soon, as on a machine that has been up for long.
    do
        last = last >= 100 + 3 * SIM_PROCESSES ? 101 : last + 1;
    while (sim_find(last) != NULL);
    process->pid = last;
    process->parent = parent;
    process->session = last;
    process->start = ++sim_world->next_ticks;
    process->state = 'S';
    process->is_helper = (uint8_t)is_helper;
    process->incarnation = incarnation;
    snprintf(process->app, sizeof process->app, "%s", app);
    snprintf(process->comm, sizeof process->comm, "torpor-keeper");
    char path[256];
    struct stat status;
    process_path(path, sizeof path, "pidfd", process);
    mkfifo(path, 0600);
    process->writer = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    fstat(process->writer, &status);
    process->inode = status.st_ino;
    process_path(path, sizeof path, "proc", process);
    mkdir(path, 0755);
    return process;
}

struct sim_process *sim_fork_process(struct sim_process *parent)
{
    struct sim_process *child = sim_spawn(parent->app, parent->incarnation, parent->pid, 0);
    if (child == NULL)
        return NULL;
    child->session = parent->session;
    memcpy(child->comm, parent->comm, sizeof child->comm);
    memcpy(sim_environment(child), sim_environment(parent), parent->environment_size);
    child->environment_size = parent->environment_size;
    return child;
}

void sim_end_process(struct sim_process *process, int code, int status)
{
    if (process->state == 'Z')
        return;
    process->state = 'Z';
    process->code = code;
    process->status = status;
    process->pending = 0;
    ssize_t written = write(process->writer, "x", 1);
    (void)written;
    sim_note("process %d of %s ends: %d %d", process->pid, process->app, code, status);
    for (int i = 0; i < sim_world->places; i++)
        if (sim_world->processes[i].pid != 0 && sim_world->processes[i].parent == process->pid)
            sim_world->processes[i].parent = SIM_KEEPER;
}

void sim_reap(struct sim_process *process)
{
    char path[256];
    process_path(path, sizeof path, "proc", process);
    rmdir(path);
    process_path(path, sizeof path, "pidfd", process);
    unlink(path);
    // An open pidfd still shows that the process has ended: the byte stays in the FIFO.
    close(process->writer);
    process->pid = 0;
}

void sim_send_signal(struct sim_process *process, int number)
{
    const uint64_t stop = 1ull << SIGSTOP;
    if (process->state == 'Z' || number == 0)
        return;
    if (number == SIGCONT) {
        // At once, as in the kernel: it also takes back a stop that was not taken yet.
        process->pending &= ~stop;
        if (process->state == 'T')
            process->state = 'S';
        process->pending |= 1ull << number;
        return;
    }
    if (number == SIGSTOP)
        process->pending &= ~(1ull << SIGCONT);
    process->pending |= 1ull << number;
}

int sim_take_signal(struct sim_process *process)
{
    static const int order[] = {SIGKILL, SIGSTOP};
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        if (process->pending & 1ull << order[i]) {
            process->pending &= ~(1ull << order[i]);
            return order[i];
        }
    if (process->state == 'T')
        return 0;
    for (int number = 1; number < 64; number++)
        if (process->pending & 1ull << number) {
            process->pending &= ~(1ull << number);
            return number;
        }
    return 0;
}

const char *sim_variable(struct sim_process *process, const char *name)
{
    size_t length = strlen(name);
    const char *next = sim_environment(process), *end = next + process->environment_size;
    for (; next < end; next += strlen(next) + 1)
        if (strncmp(next, name, length) == 0 && next[length] == '=')
            return next + length + 1;
    return NULL;
}

int sim_bind_as(int fd, int32_t pid)
{
    static unsigned count;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int size = snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "torpor-sim/%d/%d/%u", (int)getpid(), pid,
                        ++count);
    return bind(fd, (struct sockaddr *)&address, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)size));
}
