// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "test_app.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

struct truth *truth;
const char *app_name;
const char *incarnation;
const char *test_folder;

static uint64_t random_state;

uint64_t chance(void)
{
    // SplitMix64.
    uint64_t z = (random_state += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

uint64_t between(uint64_t low, uint64_t high)
{
    return high <= low ? low : low + chance() % (high - low + 1);
}

/// The same app and incarnation do the same under the same seed.
void chance_seed(uint64_t salt)
{
    const char *seed = getenv("CHAOS_SEED");
    random_state = (seed ? strtoull(seed, NULL, 10) : 1) ^ salt * 0x9e3779b97f4a7c15;
    for (const char *p = app_name; *p; p++)
        random_state = (random_state ^ (unsigned char)*p) * 0x100000001b3;
    random_state ^= strtoull(incarnation, NULL, 10) << 32;
    chance();
}

uint64_t now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

void sleep_us(uint64_t us)
{
    struct timespec t = {(time_t)(us / 1000000), (long)(us % 1000000) * 1000};
    nanosleep(&t, NULL);
}

static void path_of(char *path, size_t size, const char *name)
{
    snprintf(path, size, "%s/t/%s", test_folder, name);
}

void truth_open(char voice)
{
    char path[512], name[256];
    snprintf(name, sizeof name, "%s.%s.%c", app_name, incarnation, voice);
    path_of(path, sizeof path, name);
    // One incarnation is started once: a second one with its number leaves a mark of its own.
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    for (int i = 2; fd < 0 && errno == EEXIST && i < 100; i++) {
        snprintf(name, sizeof name, "%s.%s.%c.again%d", app_name, incarnation, voice, i);
        path_of(path, sizeof path, name);
        fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    }
    if (fd < 0 || ftruncate(fd, sizeof *truth) < 0) {
        static struct truth none;
        truth = &none;
        return;
    }
    truth = mmap(NULL, sizeof *truth, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    truth->pid = (uint64_t)getpid();
    memcpy(truth->magic, "CHTRUTH1", 8);
}

/// The lock stays with every process of the incarnation (children inherit it) until the last is gone.
void truth_lock(void)
{
    char path[512], name[256];
    snprintf(name, sizeof name, "%s.lock", app_name);
    path_of(path, sizeof path, name);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0)
        truth->two_at_once++;
}

void truth_write_file(const char *name, uint64_t number)
{
    char path[512], text[32];
    path_of(path, sizeof path, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0)
        return;
    int size = snprintf(text, sizeof text, "%llu\n", (unsigned long long)number);
    if (write(fd, text, (size_t)size) != size)
        unlink(path);
    close(fd);
}

bool truth_read_file(const char *name, uint64_t *number)
{
    char path[512], text[32];
    path_of(path, sizeof path, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t size = read(fd, text, sizeof text - 1);
    close(fd);
    if (size <= 0)
        return false;
    text[size] = 0;
    *number = strtoull(text, NULL, 10);
    return true;
}

uint64_t truth_epoch(void)
{
    uint64_t epoch = 0;
    truth_read_file("epoch", &epoch);
    return epoch;
}
