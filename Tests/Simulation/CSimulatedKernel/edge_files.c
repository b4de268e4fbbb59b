// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "kernel.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

// Files are real, in a folder of the world's own; what stands in /proc, /sys, /run and /dev is the world's. Calls fail
// as the world has it.

void sim_pause(void);

#define TRANSLATED(path)                                                                                               \
    char place[512];                                                                                                   \
    if (sim_is_torpord && (path)[0] == '/' && sim_translate(path, place, sizeof place))                                \
        path = place;

// Without the folder of the world, so that traces can be compared.
static const char *sim_inside(const char *path)
{
    size_t length = strlen(sim_world->root);
    return strncmp(path, sim_world->root, length) == 0 ? path + length : path;
}

static int open_any(int folder, const char *path, int flags, mode_t mode)
{
    if (!sim_is_torpord)
        return REAL(openat)(folder, path, flags, mode);
    sim_count_call();
    if (sim_fails(SIM_FAULT_DESCRIPTORS)) {
        sim_note("no descriptor for %s", sim_inside(path));
        errno = EMFILE;
        return -1;
    }
    if (path[0] == '/') {
        int fd = (flags & O_ACCMODE) == O_RDWR ? sim_open_trigger(path) : -2;
        if (fd == -2)
            fd = sim_open_made_up(path);
        if (fd != -2)
            return fd;
    }
    TRANSLATED(path);
    // What is there needs no room.
    if (flags & O_CREAT && REAL(faccessat)(folder, path, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
        FAIL(SIM_FAULT_SPACE, ENOSPC);
    return REAL(openat)(folder, path, flags, mode);
}

#define MODE                                                                                                           \
    mode_t mode = 0;                                                                                                   \
    if (flags & (O_CREAT | (O_TMPFILE & ~O_DIRECTORY))) {                                                              \
        va_list list;                                                                                                  \
        va_start(list, flags);                                                                                         \
        mode = va_arg(list, mode_t);                                                                                   \
        va_end(list);                                                                                                  \
    }

int open(const char *path, int flags, ...)
{
    MODE
    return open_any(AT_FDCWD, path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
    MODE
    return open_any(AT_FDCWD, path, flags, mode);
}

int openat(int folder, const char *path, int flags, ...)
{
    MODE
    return open_any(folder, path, flags, mode);
}

int openat64(int folder, const char *path, int flags, ...)
{
    MODE
    return open_any(folder, path, flags, mode);
}

int __open64_2(const char *path, int flags);
int __open64_2(const char *path, int flags) { return open_any(AT_FDCWD, path, flags, 0); }
int __openat64_2(int folder, const char *path, int flags);
int __openat64_2(int folder, const char *path, int flags) { return open_any(folder, path, flags, 0); }

// The folder of torpord's threads: they all look the same.
static DIR *open_threads(void)
{
    char path[512];
    int count = sim_threads();
    int length = snprintf(path, sizeof path, "%s/threads/%d", sim_world->root, count);
    DIR *folder = REAL(opendir)(path);
    if (folder != NULL || errno != ENOENT || REAL(mkdir)(path, 0755) < 0)
        return folder;
    for (int i = 1; i <= count; i++) {
        snprintf(path + length, sizeof path - (size_t)length, "/%d", i);
        REAL(mkdir)(path, 0755);
    }
    path[length] = 0;
    return REAL(opendir)(path);
}

// The folders of a process: it has one thread, and no descriptors that are seen. They are made once for each number.
static int open_folder_of_process(const char *path, DIR **folder)
{
    int pid, end = 0;
    char place[512];
    if (sscanf(path, "/proc/%d/%n", &pid, &end) != 1 || end == 0)
        return 0;
    const char *name = path + end;
    int is_task = strcmp(name, "task") == 0;
    if (!is_task && strcmp(name, "fd") != 0)
        return 0;
    *folder = NULL;
    errno = ENOENT;
    if (sim_find(pid) == NULL)
        return 1;
    int length = snprintf(place, sizeof place, "%s/%s", sim_world->root, is_task ? "tasks" : "none");
    if (is_task)
        length += snprintf(place + length, sizeof place - (size_t)length, "/%d", pid);
    *folder = REAL(opendir)(place);
    if (*folder != NULL || !is_task || REAL(mkdir)(place, 0755) < 0)
        return 1;
    snprintf(place + length, sizeof place - (size_t)length, "/%d", pid);
    REAL(mkdir)(place, 0755);
    place[length] = 0;
    *folder = REAL(opendir)(place);
    return 1;
}

DIR *opendir(const char *path)
{
    if (!sim_is_torpord)
        return REAL(opendir)(path);
    sim_count_call();
    if (sim_fails(SIM_FAULT_DESCRIPTORS)) {
        errno = EMFILE;
        return NULL;
    }
    char own[32];
    int length = snprintf(own, sizeof own, "/proc/%d/", sim_world->torpord);
    if (strncmp(path, own, (size_t)length) == 0) {
        if (strcmp(path + length, "task") == 0)
            return open_threads();
        errno = ENOENT;
        return NULL;
    }
    DIR *folder;
    if (open_folder_of_process(path, &folder))
        return folder;
    TRANSLATED(path);
    return REAL(opendir)(path);
}

#define STAT(name, type)                                                                                               \
    int name(const char *restrict path, type *restrict to)                                                             \
    {                                                                                                                  \
        TRANSLATED(path);                                                                                              \
        return REAL(name)(path, to);                                                                                   \
    }
STAT(stat, struct stat)
STAT(lstat, struct stat)
STAT(stat64, struct stat64)
STAT(lstat64, struct stat64)

int fstatat(int folder, const char *restrict path, struct stat *restrict to, int flags)
{
    TRANSLATED(path);
    return REAL(fstatat)(folder, path, to, flags);
}

int access(const char *path, int mode)
{
    TRANSLATED(path);
    return REAL(access)(path, mode);
}

ssize_t readlink(const char *restrict path, char *restrict to, size_t size)
{
    TRANSLATED(path);
    return REAL(readlink)(path, to, size);
}

int inotify_add_watch(int fd, const char *path, uint32_t mask)
{
    if (!sim_is_torpord)
        return REAL(inotify_add_watch)(fd, path, mask);
    sim_count_call();
    FAIL(SIM_FAULT_SPACE, ENOSPC);
    TRANSLATED(path);
    return REAL(inotify_add_watch)(fd, path, mask);
}

// MARK: Reading and writing

enum kind { OTHER, FILE_ON_DISK, STREAM };

static enum kind kind_of(int fd)
{
    struct stat status;
    if (REAL(fstat)(fd, &status) < 0)
        return OTHER;
    if (S_ISREG(status.st_mode))
        return FILE_ON_DISK;
    return S_ISSOCK(status.st_mode) || S_ISFIFO(status.st_mode) ? STREAM : OTHER;
}

static size_t perhaps_less(size_t size)
{
    return size > 1 && sim_fails(SIM_FAULT_SHORT) ? 1 + sim_random(size - 1) : size;
}

ssize_t read(int fd, void *to, size_t size)
{
    if (!sim_is_torpord)
        return REAL(read)(fd, to, size);
    sim_count_call();
    FAIL(SIM_FAULT_INTERRUPTED, EINTR);
    ssize_t got = sim_read_made_up(fd, to, size, SIM_FROM_WHERE_IT_IS);
    if (got != -2)
        return got;
    got = REAL(read)(fd, to, size);
    if (got == sizeof(uint64_t))
        sim_timer_was_read(fd);
    return got;
}

ssize_t write(int fd, const void *from, size_t size)
{
    if (!sim_is_torpord)
        return REAL(write)(fd, from, size);
    sim_count_call();
    if (sim_is_trigger(fd)) {
        FAIL(SIM_FAULT_INTERRUPTED, EINTR);
        return (ssize_t)size;
    }
    int is_made_up = sim_is_made_up(fd);
    enum kind kind = is_made_up ? FILE_ON_DISK : fd > 2 ? kind_of(fd) : OTHER;
    if (kind == OTHER)
        return REAL(write)(fd, from, size);
    FAIL(SIM_FAULT_INTERRUPTED, EINTR);
    if (kind == FILE_ON_DISK) {
        sim_pause();
        FAIL(SIM_FAULT_SPACE, ENOSPC);
        FAIL(SIM_FAULT_DISK, EIO);
        size = perhaps_less(size);
    } else {
        FAIL(SIM_FAULT_BLOCKED, EAGAIN);
        size = perhaps_less(size);
    }
    return DONE(is_made_up ? (ssize_t)size : REAL(write)(fd, from, size));
}

static ssize_t read_at(int fd, void *to, size_t size, off_t offset)
{
    if (sim_is_torpord) {
        sim_count_call();
        FAIL(SIM_FAULT_INTERRUPTED, EINTR);
        FAIL(SIM_FAULT_DISK, EIO);
        ssize_t got = sim_read_made_up(fd, to, size, offset);
        if (got != -2)
            return got;
    }
    return REAL(pread)(fd, to, size, offset);
}

static ssize_t write_at(int fd, const void *from, size_t size, off_t offset)
{
    if (sim_is_torpord) {
        sim_count_call();
        sim_pause();
        FAIL(SIM_FAULT_INTERRUPTED, EINTR);
        FAIL(SIM_FAULT_SPACE, ENOSPC);
        FAIL(SIM_FAULT_DISK, EIO);
        size = perhaps_less(size);
    }
    return DONE(REAL(pwrite)(fd, from, size, offset));
}

ssize_t pread(int fd, void *to, size_t size, off_t offset) { return read_at(fd, to, size, offset); }
ssize_t pread64(int fd, void *to, size_t size, off64_t offset) { return read_at(fd, to, size, offset); }
ssize_t pwrite(int fd, const void *from, size_t size, off_t offset) { return write_at(fd, from, size, offset); }
ssize_t pwrite64(int fd, const void *from, size_t size, off64_t offset) { return write_at(fd, from, size, offset); }

ssize_t splice(int in, off64_t *in_offset, int out, off64_t *out_offset, size_t size, unsigned flags)
{
    if (sim_is_torpord) {
        sim_count_call();
        FAIL(SIM_FAULT_INTERRUPTED, EINTR);
        FAIL(SIM_FAULT_SPACE, ENOSPC);
        FAIL(SIM_FAULT_DISK, EIO);
        size = perhaps_less(size);
    }
    return DONE(REAL(splice)(in, in_offset, out, out_offset, size, flags));
}

ssize_t tee(int in, int out, size_t size, unsigned flags)
{
    if (sim_is_torpord) {
        sim_count_call();
        FAIL(SIM_FAULT_INTERRUPTED, EINTR);
        size = perhaps_less(size);
    }
    return REAL(tee)(in, out, size, flags);
}

// What the C library's headers make of them with _FORTIFY_SOURCE.
ssize_t __read_chk(int fd, void *to, size_t size, size_t room);
ssize_t __read_chk(int fd, void *to, size_t size, size_t room) { return read(fd, to, size < room ? size : room); }
ssize_t __pread_chk(int fd, void *to, size_t size, off_t offset, size_t room);
ssize_t __pread_chk(int fd, void *to, size_t size, off_t offset, size_t room)
{
    return read_at(fd, to, size < room ? size : room, offset);
}
ssize_t __pread64_chk(int fd, void *to, size_t size, off64_t offset, size_t room);
ssize_t __pread64_chk(int fd, void *to, size_t size, off64_t offset, size_t room)
{
    return read_at(fd, to, size < room ? size : room, offset);
}

#define DISK_CALL(name, parameters, arguments, ...)                                                                    \
    int name parameters                                                                                                \
    {                                                                                                                  \
        if (sim_is_torpord) {                                                                                          \
            sim_count_call();                                                                                               \
            sim_pause();                                                                                               \
            __VA_ARGS__                                                                                                \
        }                                                                                                              \
        return DONE(REAL(name) arguments);                                                                             \
    }

DISK_CALL(fsync, (int fd), (fd), FAIL(SIM_FAULT_DISK, EIO); FAIL(SIM_FAULT_SPACE, ENOSPC);)
DISK_CALL(fdatasync, (int fd), (fd), FAIL(SIM_FAULT_DISK, EIO); FAIL(SIM_FAULT_SPACE, ENOSPC);)
DISK_CALL(ftruncate, (int fd, off_t size), (fd, size), FAIL(SIM_FAULT_SPACE, ENOSPC); FAIL(SIM_FAULT_DISK, EIO);)
DISK_CALL(ftruncate64, (int fd, off64_t size), (fd, size), FAIL(SIM_FAULT_SPACE, ENOSPC);)
DISK_CALL(fallocate, (int fd, int mode, off_t offset, off_t size), (fd, mode, offset, size),
          FAIL(SIM_FAULT_SPACE, ENOSPC);)
DISK_CALL(rename, (const char *from, const char *to), (from, to), FAIL(SIM_FAULT_SPACE, ENOSPC);
          FAIL(SIM_FAULT_DISK, EIO);)
DISK_CALL(unlink, (const char *path), (path), FAIL(SIM_FAULT_DISK, EIO);)
DISK_CALL(unlinkat, (int folder, const char *path, int flags), (folder, path, flags), FAIL(SIM_FAULT_DISK, EIO);)
// EEXIST comes before ENOSPC.
#define IS_THERE(path) (REAL(faccessat)(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
DISK_CALL(mkdir, (const char *path, mode_t mode), (path, mode), if (!IS_THERE(path)) FAIL(SIM_FAULT_SPACE, ENOSPC);)
DISK_CALL(mkfifo, (const char *path, mode_t mode), (path, mode), if (!IS_THERE(path)) FAIL(SIM_FAULT_SPACE, ENOSPC);)
DISK_CALL(symlink, (const char *from, const char *to), (from, to), if (!IS_THERE(to)) FAIL(SIM_FAULT_SPACE, ENOSPC);)

int posix_fallocate(int fd, off_t offset, off_t size)
{
    if (sim_is_torpord) {
        sim_count_call();
        if (sim_fails(SIM_FAULT_SPACE))
            return ENOSPC;
    }
    return REAL(posix_fallocate)(fd, offset, size);
}

// MARK: Descriptors and memory

#define MAKES_DESCRIPTOR(result, name, parameters, arguments)                                                          \
    result name parameters                                                                                             \
    {                                                                                                                  \
        if (sim_is_torpord)                                                                                            \
            sim_count_call();                                                                                               \
        FAIL(SIM_FAULT_DESCRIPTORS, EMFILE);                                                                           \
        return REAL(name) arguments;                                                                                   \
    }

MAKES_DESCRIPTOR(int, memfd_create, (const char *name, unsigned flags), (name, flags))
MAKES_DESCRIPTOR(int, eventfd, (unsigned value, int flags), (value, flags))
MAKES_DESCRIPTOR(int, pipe2, (int fds[2], int flags), (fds, flags))
MAKES_DESCRIPTOR(int, inotify_init1, (int flags), (flags))

int epoll_create1(int flags)
{
    if (sim_is_torpord) {
        sim_count_call();
        sim_world->epolls++;
    }
    FAIL(SIM_FAULT_DESCRIPTORS, EMFILE);
    return REAL(epoll_create1)(flags);
}

int dup(int fd)
{
    if (sim_is_torpord) {
        sim_count_call();
        sim_make_real(fd);
    }
    FAIL(SIM_FAULT_DESCRIPTORS, EMFILE);
    return REAL(dup)(fd);
}

static int control(int fd, int operation, long argument)
{
    if (sim_is_torpord)
        sim_make_real(fd);
    if (sim_is_torpord && operation == F_DUPFD_CLOEXEC) {
        sim_count_call();
        FAIL(SIM_FAULT_DESCRIPTORS, EMFILE);
    }
    return REAL(fcntl)(fd, operation, argument);
}

int fcntl(int fd, int operation, ...)
{
    va_list list;
    va_start(list, operation);
    long argument = va_arg(list, long);
    va_end(list);
    return control(fd, operation, argument);
}

int fcntl64(int fd, int operation, ...)
{
    va_list list;
    va_start(list, operation);
    long argument = va_arg(list, long);
    va_end(list);
    return control(fd, operation, argument);
}

int close(int fd)
{
    if (sim_is_torpord) {
        sim_count_call();
        sim_forget_timer(fd);
        if (sim_close_made_up(fd))
            return 0;
    }
    return REAL(close)(fd);
}

int epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event)
{
    if (sim_is_torpord && operation == EPOLL_CTL_ADD) {
        sim_count_call();
        FAIL(SIM_FAULT_MEMORY, ENOMEM);
    }
    return REAL(epoll_ctl)(epoll, operation, fd, event);
}

static void *map(void *where, size_t size, int protection, int flags, int fd, off_t offset)
{
    if (sim_is_torpord && fd >= 0) {
        sim_count_call();
        sim_make_real(fd);
        if (sim_fails(SIM_FAULT_MEMORY)) {
            errno = ENOMEM;
            return MAP_FAILED;
        }
    }
    return REAL(mmap)(where, size, protection, flags, fd, offset);
}

void *mmap(void *where, size_t size, int protection, int flags, int fd, off_t offset)
{
    return map(where, size, protection, flags, fd, offset);
}

void *mmap64(void *where, size_t size, int protection, int flags, int fd, off64_t offset)
{
    return map(where, size, protection, flags, fd, offset);
}

// Memory is that of the simulator's program: nothing is given back or locked.
int madvise(void *where, size_t size, int advice)
{
    return sim_is_torpord ? 0 : REAL(madvise)(where, size, advice);
}
int mlockall(int flags) { return sim_is_torpord ? 0 : REAL(mlockall)(flags); }
int munlockall(void) { return sim_is_torpord ? 0 : REAL(munlockall)(); }

ssize_t getrandom(void *to, size_t size, unsigned flags)
{
    if (!sim_is_torpord)
        return REAL(getrandom)(to, size, flags);
    for (size_t i = 0; i < size; i++)
        ((uint8_t *)to)[i] = (uint8_t)sim_random(256);
    return (ssize_t)size;
}
