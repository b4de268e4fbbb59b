/* SPDX-License-Identifier: Apache-2.0 */
/* Loaded into a program (LD_PRELOAD): kills it before its KILL_AT-th call that changes the disk. Without KILL_AT it writes
 * the number of these calls to the file KILL_COUNT. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static void step(void)
{
    static int count, at = -1, file = -1;
    if (at < 0) {
        const char *wanted = getenv("KILL_AT"), *path = getenv("KILL_COUNT");
        at = wanted ? atoi(wanted) : 0;
        if (path) file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    }
    count++;
    if (count == at) kill(getpid(), SIGKILL);
    if (file >= 0) {
        char text[16];
        int length = snprintf(text, sizeof text, "%d\n", count);
        if (pwrite(file, text, (size_t)length, 0) < 0) abort();
    }
}

#define STEP(result, name, parameters, arguments)                                   \
    result name parameters                                                          \
    {                                                                               \
        static result(*real) parameters;                                            \
        if (!real) real = (result(*) parameters)dlsym(RTLD_NEXT, #name);            \
        step();                                                                     \
        return real arguments;                                                      \
    }

STEP(int, mkdir, (const char *path, mode_t mode), (path, mode))
STEP(int, mkdirat, (int folder, const char *path, mode_t mode), (folder, path, mode))
STEP(int, rename, (const char *from, const char *to), (from, to))
STEP(int, renameat2, (int a, const char *from, int b, const char *to, unsigned flags), (a, from, b, to, flags))
STEP(int, symlink, (const char *target, const char *path), (target, path))
STEP(int, symlinkat, (const char *target, int folder, const char *path), (target, folder, path))
STEP(int, unlink, (const char *path), (path))
STEP(int, rmdir, (const char *path), (path))
STEP(int, fsync, (int fd), (fd))
STEP(int, chmod, (const char *path, mode_t mode), (path, mode))
STEP(int, fchmod, (int fd, mode_t mode), (fd, mode))
STEP(ssize_t, write, (int fd, const void *bytes, size_t count), (fd, bytes, count))
