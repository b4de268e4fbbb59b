// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "host.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

// Landlock as in linux/landlock.h, ABI version 7; rights that an older kernel does not know are left out. What no
// rule allows is forbidden: executing, writing, creating and removing anywhere, TCP, abstract sockets of other
// processes, and signals to other processes.

#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule 445
#define SYS_landlock_restrict_self 446
#endif

#define RULESET_VERSION (1u << 0)
#define RULE_PATH_BENEATH 1
#define FS_READ_FILE (1ull << 2)
#define FS_READ_DIR (1ull << 3)
#define FS_VERSION_1 ((1ull << 13) - 1)
#define FS_REFER (1ull << 13)     // ABI 2
#define FS_TRUNCATE (1ull << 14)  // ABI 3
#define FS_IOCTL_DEV (1ull << 15) // ABI 5
#define NET_TCP 3ull              // ABI 4: bind and connect
#define SCOPE_ALL 3ull            // ABI 6: abstract Unix sockets and signals

struct ruleset {
    uint64_t fs;
    uint64_t net;
    uint64_t scoped;
};

struct path_beneath {
    uint64_t allowed;
    int32_t parent;
} __attribute__((packed));

static int first = -1, second = -1;

// The folders that the dynamic linker and the C library search by default.
static const char *const folders[] = {
    "/lib", "/lib32", "/lib64", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/local/lib", "/usr/local/lib64",
    "/etc/ld.so.cache",
};

// Files that a policy may read while it runs: time zones.
static const char *const zones[] = {"/etc/localtime", "/usr/share/zoneinfo"};

static void allow(int ruleset, int fd, uint64_t rights)
{
    struct stat status;
    if (fstat(fd, &status) < 0)
        return;
    struct path_beneath rule = {.allowed = rights, .parent = fd};
    if (!S_ISDIR(status.st_mode))
        rule.allowed &= ~FS_READ_DIR;
    syscall(SYS_landlock_add_rule, ruleset, RULE_PATH_BENEATH, &rule, 0);
}

static void allow_path(int ruleset, const char *path)
{
    int fd = open(path, O_PATH | O_CLOEXEC);
    if (fd < 0)
        return;
    allow(ruleset, fd, FS_READ_FILE | FS_READ_DIR);
    close(fd);
}

void host_landlock_allow_file(int fd) { allow(first, fd, FS_READ_FILE); }

bool host_landlock_prepare(const char *path)
{
    long version = syscall(SYS_landlock_create_ruleset, NULL, 0, RULESET_VERSION);
    if (version < 1)
        return false;
    struct ruleset all = {.fs = FS_VERSION_1};
    if (version >= 2)
        all.fs |= FS_REFER;
    if (version >= 3)
        all.fs |= FS_TRUNCATE;
    if (version >= 4)
        all.net = NET_TCP;
    if (version >= 5)
        all.fs |= FS_IOCTL_DEV;
    if (version >= 6)
        all.scoped = SCOPE_ALL;
    first = (int)syscall(SYS_landlock_create_ruleset, &all, sizeof all, 0);
    second = (int)syscall(SYS_landlock_create_ruleset, &all, sizeof all, 0);
    if (first < 0 || second < 0)
        return false;
    host_landlock_allow_file(TORPOR_POLICY_HOST_LIBRARY);
    host_folders_allow(path);
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++)
        allow_path(first, folders[i]);
    for (size_t i = 0; i < sizeof zones / sizeof zones[0]; i++) {
        allow_path(first, zones[i]);
        allow_path(second, zones[i]);
    }
    return true;
}

static bool restrict_self(int *ruleset)
{
    bool done = syscall(SYS_landlock_restrict_self, *ruleset, 0) == 0;
    close(*ruleset);
    *ruleset = -1;
    return done;
}

bool host_landlock_first(void) { return restrict_self(&first); }
bool host_landlock_second(void) { return restrict_self(&second); }
