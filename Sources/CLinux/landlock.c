// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "clinux.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

// Copied from linux/landlock.h (ABI version 6), because libc's headers may lack it. The code requests only rights that
// the running kernel supports.

#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule 445
#define SYS_landlock_restrict_self 446
#endif

#define FS_EXECUTE (1ull << 0)
#define FS_WRITE_FILE (1ull << 1)
#define FS_READ_FILE (1ull << 2)
#define FS_READ_DIR (1ull << 3)
#define FS_REMOVE_DIR (1ull << 4)
#define FS_REMOVE_FILE (1ull << 5)
#define FS_MAKE_DIR (1ull << 7)
#define FS_MAKE_REG (1ull << 8)
#define FS_VERSION_1 ((1ull << 13) - 1)
#define FS_REFER (1ull << 13)     // ABI 2
#define FS_TRUNCATE (1ull << 14)  // ABI 3
#define FS_IOCTL_DEV (1ull << 15) // ABI 5
#define SCOPE_ABSTRACT 1ull       // ABI 6: abstract Unix sockets
#define SCOPE_SIGNALS 2ull        // ABI 6
#define FS_OF_FILES (FS_EXECUTE | FS_WRITE_FILE | FS_READ_FILE | FS_TRUNCATE)

struct ruleset {
    uint64_t fs;
    uint64_t net;
    uint64_t scoped;
};

struct path_beneath {
    uint64_t allowed;
    int32_t parent;
} __attribute__((packed));

static int allow(int ruleset, const char *path, uint64_t rights)
{
    int fd = open(path, O_PATH | O_CLOEXEC);
    if (fd < 0)
        return 0;
    struct stat status;
    struct path_beneath rule = {.allowed = rights, .parent = fd};
    int result = fstat(fd, &status);
    if (result == 0 && !S_ISDIR(status.st_mode))
        rule.allowed &= FS_OF_FILES;
    if (result == 0)
        result = (int)syscall(SYS_landlock_add_rule, ruleset, 1, &rule, 0);
    close(fd);
    return result;
}

long tlx_landlock_version(void) { return syscall(SYS_landlock_create_ruleset, NULL, 0, 1u); }

int tlx_landlock_ruleset(uint64_t files, uint64_t network, uint64_t scoped)
{
    struct ruleset all = {.fs = files, .net = network, .scoped = scoped};
    // A kernel accepts a structure that is larger than its own if the additional bytes are zero.
    return (int)syscall(SYS_landlock_create_ruleset, &all, sizeof all, 0);
}

int tlx_landlock_allow(int ruleset, int fd, uint64_t rights)
{
    struct path_beneath rule = {.allowed = rights, .parent = fd};
    return (int)syscall(SYS_landlock_add_rule, ruleset, 1, &rule, 0);
}

int tlx_landlock_allow_port(int ruleset, uint16_t port, uint64_t rights)
{
    struct {
        uint64_t allowed;
        uint64_t port;
    } rule = {rights, port};
    return (int)syscall(SYS_landlock_add_rule, ruleset, 2, &rule, 0);
}

int tlx_confine(const char *const *paths, size_t count, size_t writable, size_t executable, int abstract)
{
    long version = tlx_landlock_version();
    if (version < 1)
        return version < 0 && errno != ENOSYS && errno != EOPNOTSUPP && errno != EPERM ? -1 : 0;
    struct ruleset all = {.fs = FS_VERSION_1};
    uint64_t read = FS_READ_FILE | FS_READ_DIR;
    uint64_t write = read | FS_WRITE_FILE | FS_REMOVE_DIR | FS_REMOVE_FILE | FS_MAKE_DIR | FS_MAKE_REG;
    if (version >= 2) {
        all.fs |= FS_REFER;
        write |= FS_REFER;
    }
    if (version >= 3) {
        all.fs |= FS_TRUNCATE;
        write |= FS_TRUNCATE;
    }
    if (version >= 5)
        all.fs |= FS_IOCTL_DEV;
    if (version >= 6)
        all.scoped = SCOPE_SIGNALS | (abstract ? 0 : SCOPE_ABSTRACT);
    int ruleset = (int)syscall(SYS_landlock_create_ruleset, &all, sizeof all, 0);
    if (ruleset < 0)
        return -1;
    int result = 0;
    for (size_t i = 0; i < count && result == 0; i++)
        result = allow(ruleset, paths[i], i < writable ? read : i < executable ? write : read | FS_EXECUTE);
    if (result == 0)
        result = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (result == 0)
        result = (int)syscall(SYS_landlock_restrict_self, ruleset, 0);
    int failure = errno;
    close(ruleset);
    errno = failure;
    return result == 0 ? 1 : -1;
}
