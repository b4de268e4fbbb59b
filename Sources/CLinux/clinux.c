// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "clinux.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/kcmp.h>
#include <linux/magic.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/xattr.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef MADV_COLD
#define MADV_COLD 20
#endif
#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT 21
#endif

// MARK: Processes

int tlx_pidfd_open(pid_t pid, unsigned int flags) { return (int)syscall(SYS_pidfd_open, pid, flags); }

int tlx_pidfd_send_signal(int pidfd, int signo) {
    return (int)syscall(SYS_pidfd_send_signal, pidfd, signo, NULL, 0);
}

int tlx_pidfd_kill_group(int pidfd) {
    const unsigned int process_group = 1u << 2;  // PIDFD_SIGNAL_PROCESS_GROUP
    return (int)syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, process_group);
}

int tlx_close_range(unsigned int first, unsigned int last, int flags) { return close_range(first, last, flags); }

int tlx_wifexited(int status) { return WIFEXITED(status); }
int tlx_wexitstatus(int status) { return WEXITSTATUS(status); }
int tlx_wifsignaled(int status) { return WIFSIGNALED(status); }
int tlx_wtermsig(int status) { return WTERMSIG(status); }
int tlx_wcoredump(int status) { return WCOREDUMP(status) != 0; }

int tlx_prctl(int option, unsigned long argument) { return prctl(option, argument, 0UL, 0UL, 0UL); }

// The first argument, 1, is IOPRIO_WHO_PROCESS, which here means one thread.
int tlx_io_priority(int thread) { return (int)syscall(SYS_ioprio_get, 1, thread); }
int tlx_set_io_priority(int thread, int priority) { return (int)syscall(SYS_ioprio_set, 1, thread, priority); }

long tlx_attribute(const char *path, const char *name, void *value, unsigned long size)
{
    return getxattr(path, name, value, size);
}

long tlx_attribute_names(const char *path, char *names, unsigned long size) { return listxattr(path, names, size); }

int tlx_set_attribute(const char *path, const char *name, const void *value, unsigned long size)
{
    return setxattr(path, name, value, size, 0);
}

int tlx_synchronise_filesystem(int fd) { return syncfs(fd); }

static void interrupted(int signo) { (void)signo; }

static void handle_alarm(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = interrupted;
    sigaction(SIGALRM, &action, NULL);
}

void tlx_promptly(int begins) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    static __thread timer_t timer;
    static __thread int state;  // 1: this thread has a timer, -1: creating it failed
    if (state == 0 && begins) {
        struct sigevent event;
        memset(&event, 0, sizeof event);
        event.sigev_notify = SIGEV_THREAD_ID;
        event.sigev_signo = SIGALRM;
        event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
        pthread_once(&once, handle_alarm);
        state = tlx_signal_block(SIGALRM, 0) == 0 && timer_create(CLOCK_MONOTONIC, &event, &timer) == 0 ? 1 : -1;
    }
    if (state != 1)
        return;
    struct itimerspec often;
    memset(&often, 0, sizeof often);
    if (begins)
        often.it_interval.tv_nsec = often.it_value.tv_nsec = 5000000;
    timer_settime(timer, 0, &often, NULL);
}

int tlx_signal_block(int signo, int block) {
    sigset_t set;
    sigemptyset(&set);
    if (sigaddset(&set, signo) < 0)
        return -1;
    int error = pthread_sigmask(block ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
    if (error == 0)
        return 0;
    errno = error;
    return -1;
}

int tlx_signal_disposition(int signo, int ignore) {
    struct sigaction action = {.sa_handler = ignore ? SIG_IGN : SIG_DFL};
    return sigaction(signo, &action, NULL);
}

static volatile int signal_counter = -1;

static void count_signal(int signo) {
    (void)signo;
    int before = errno;
    uint64_t one = 1;
    ssize_t written = write(signal_counter, &one, sizeof one);
    (void)written;
    errno = before;
}

int tlx_signal_count(int signo, int eventfd) {
    signal_counter = eventfd;
    struct sigaction action = {.sa_handler = count_signal, .sa_flags = SA_RESTART};
    return sigaction(signo, &action, NULL);
}

int tlx_sigrtmin(void) { return SIGRTMIN; }
int tlx_sigrtmax(void) { return SIGRTMAX; }

int tlx_get_limit(int resource, uint64_t *soft, uint64_t *hard) {
    struct rlimit limit;
    if (getrlimit((__rlimit_resource_t)resource, &limit) < 0)
        return -1;
    *soft = limit.rlim_cur;
    *hard = limit.rlim_max;
    return 0;
}

int tlx_set_limit(int resource, uint64_t soft, uint64_t hard) {
    struct rlimit limit = {.rlim_cur = soft, .rlim_max = hard};
    return setrlimit((__rlimit_resource_t)resource, &limit);
}

// MARK: Processors

int tlx_processor(void)
{
    return sched_getcpu();
}

int tlx_bind(pid_t pid, int processor)
{
    // A cpu_set_t has no bit for a processor number of CPU_SETSIZE or more.
    if (processor < 0 || processor >= CPU_SETSIZE) {
        errno = EINVAL;
        return -1;
    }
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(processor, &set);
    return sched_setaffinity(pid, sizeof set, &set);
}

// MARK: Memory

const int tlx_madv_cold = MADV_COLD, tlx_madv_pageout = MADV_PAGEOUT;

int tlx_memfd_create(const char *name) { return memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING); }

int tlx_memfd_seal(int fd) {
    int size = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
    if (fcntl(fd, F_ADD_SEALS, size | F_SEAL_FUTURE_WRITE) == 0) return 0;
    return errno == EINVAL ? fcntl(fd, F_ADD_SEALS, size) : -1;
}

int tlx_memfd_bound(int fd) { return fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL); }

ssize_t tlx_process_madvise(int pidfd, const struct iovec *ranges, size_t count, int advice) {
    return syscall(SYS_process_madvise, pidfd, ranges, count, advice, 0);
}

int tlx_process_mrelease(int pidfd) {
    // process_mrelease(2) has this number on all architectures. Headers before Linux 5.15 do not define it.
    return (int)syscall(448, pidfd, 0);
}

// MARK: Pipes

ssize_t tlx_splice(int in, int64_t *in_offset, int out, int64_t *out_offset, size_t size) {
    return splice(in, in_offset, out, out_offset, size, SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
}

ssize_t tlx_tee(int in, int out, size_t size) { return tee(in, out, size, SPLICE_F_NONBLOCK); }
int tlx_pipe_size(int fd) { return fcntl(fd, F_GETPIPE_SZ); }
int tlx_set_pipe_size(int fd, int size) { return fcntl(fd, F_SETPIPE_SZ, size); }

int tlx_readable_bytes(int fd) {
    int count = 0;
    return ioctl(fd, FIONREAD, &count) < 0 ? -1 : count;
}

int tlx_pipe(int fds[2], int nonblocking) { return pipe2(fds, O_CLOEXEC | (nonblocking ? O_NONBLOCK : 0)); }

// MARK: Waiting

int tlx_timerfd(void) { return timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK); }

int tlx_clock_watch_arm(int fd) {
    struct itimerspec never = {.it_value = {.tv_sec = (time_t)1 << 40}};
    int result = timerfd_settime(fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &never, NULL);
    // ECANCELED means that the clock was set since the last call. The timer is armed nevertheless (timerfd_settime(2),
    // "NOTES").
    return result < 0 && errno == ECANCELED ? 0 : result;
}

int tlx_clock_watch(void) {
    int fd = timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (fd >= 0 && tlx_clock_watch_arm(fd) < 0) {
        int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

int tlx_timerfd_set(int fd, int64_t nanoseconds) {
    struct itimerspec spec = {
        .it_value = {.tv_sec = nanoseconds / 1000000000, .tv_nsec = nanoseconds % 1000000000}};
    return timerfd_settime(fd, TFD_TIMER_ABSTIME, &spec, NULL);
}

int tlx_eventfd(void) { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }

const uint32_t tlx_epollin = EPOLLIN, tlx_epollout = EPOLLOUT, tlx_epollhup = EPOLLHUP, tlx_epollrdhup = EPOLLRDHUP,
               tlx_epollerr = EPOLLERR, tlx_epollet = EPOLLET, tlx_epollpri = EPOLLPRI;

int tlx_epoll_create(void) { return epoll_create1(EPOLL_CLOEXEC); }

int tlx_epoll_ctl(int epoll, int operation, int fd, uint32_t events, uint64_t data) {
    struct epoll_event event = {.events = events, .data.u64 = data};
    int op = operation == 1 ? EPOLL_CTL_ADD : operation == 2 ? EPOLL_CTL_DEL : EPOLL_CTL_MOD;
    return epoll_ctl(epoll, op, fd, &event);
}

int tlx_epoll_wait(int epoll, tlx_epoll_event *events, int capacity, int timeout_ms) {
    struct epoll_event got[256];
    int count = epoll_wait(epoll, got, capacity < 256 ? capacity : 256, timeout_ms);
    for (int i = 0; i < count; i++) {
        events[i].events = got[i].events;
        events[i].data = got[i].data.u64;
    }
    return count;
}

// MARK: Memory

void tlx_heap_settings(void)
{
    mallopt(M_ARENA_MAX, 1);
    // Setting these thresholds explicitly also keeps glibc from adjusting them dynamically.
    mallopt(M_MMAP_THRESHOLD, 128 << 10);
    mallopt(M_TRIM_THRESHOLD, 128 << 10);
}

void tlx_heap_keep(int keeps) { mallopt(M_TRIM_THRESHOLD, keeps ? 4 << 20 : 128 << 10); }

// Drops the pages of a writable segment to which this process has never written. They are read from the file again when
// they are used.
static void release_unwritten(int pagemap, uintptr_t start, uintptr_t end, uintptr_t page)
{
    uint64_t entries[128];
    while (start < end) {
        size_t count = (end - start) / page < 128 ? (end - start) / page : 128;
        ssize_t size = pread(pagemap, entries, count * sizeof *entries, (off_t)(start / page * sizeof *entries));
        if (size <= 0)
            return;
        count = (size_t)size / sizeof *entries;
        for (size_t i = 0; i < count; i++, start += page)
            if ((entries[i] >> 63 & 1) != 0 && (entries[i] >> 61 & 1) != 0)
                madvise((void *)start, page, MADV_DONTNEED);
    }
}

#ifndef MADV_DONTNEED_LOCKED
#define MADV_DONTNEED_LOCKED 24
#endif

// Drops what was read of each segment: the writable ones only if `context` is a descriptor of pagemap.
static int release_segments(struct dl_phdr_info *object, size_t size, void *context)
{
    (void)size;
    int pagemap = *(int *)context;
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        if (segment->p_type != PT_LOAD)
            continue;
        uintptr_t start = object->dlpi_addr + segment->p_vaddr;
        uintptr_t end = (start + segment->p_filesz) & ~(page - 1);
        start = (start + page - 1) & ~(page - 1);
        if (start >= end)
            continue;
        // In a writable segment, keep the pages that were written to: dropping such a page would replace its content
        // with the file's.
        if ((segment->p_flags & PF_W) != 0) {
            if (pagemap >= 0)
                release_unwritten(pagemap, start, end, page);
        } else if (madvise((void *)start, end - start, MADV_DONTNEED_LOCKED) < 0) {
            // Before Linux 5.18, only pages that are not locked.
            madvise((void *)start, end - start, MADV_DONTNEED);
        }
    }
    return 0;
}

void tlx_release_pages(void)
{
    malloc_trim(0);
    int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    dl_iterate_phdr(release_segments, &pagemap);
    if (pagemap >= 0)
        close(pagemap);
}

void tlx_wait_released(int fd)
{
    int none = -1;
    struct pollfd entry = {.fd = fd, .events = POLLIN};
    dl_iterate_phdr(release_segments, &none);
    poll(&entry, 1, -1);
}

int tlx_lock_memory(void)
{
    struct rlimit before, none;
    if (getrlimit(RLIMIT_MEMLOCK, &before) < 0)
        return -1;
    // With a limit of 0, mlockall succeeds only if the process may exceed limits (CAP_IPC_LOCK). Other ways to test for
    // this capability give wrong results in some containers.
    none = before;
    none.rlim_cur = 0;
    int is_bound = before.rlim_cur != RLIM_INFINITY;
    if (is_bound && setrlimit(RLIMIT_MEMLOCK, &none) < 0)
        return -1;
    int result = mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT);
    int error = errno;
    if (is_bound)
        setrlimit(RLIMIT_MEMLOCK, &before);
    errno = error;
    return result;
}

int tlx_unlock_memory(void) { return munlockall(); }

void tlx_touch_heap(size_t size)
{
    volatile char *memory = malloc(size);
    if (memory == NULL)
        return;
    for (size_t i = 0; i < size; i += 4096)
        memory[i] = 0;
    free((void *)memory);
}

// MARK: Files

const int tlx_o_path = O_PATH;

int tlx_open_path_cached(const char *path, int follow)
{
    // struct open_how and RESOLVE_CACHED, copied from linux/openat2.h, because that header conflicts with older libc
    // headers.
    struct {
        uint64_t flags, mode, resolve;
    } how = {O_PATH | O_CLOEXEC | (follow ? 0 : O_NOFOLLOW), 0, 0x20};
    return (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how);
}

int tlx_flock(int fd, int kind) {
    return flock(fd, kind == 0 ? LOCK_UN : (kind == 1 ? LOCK_SH : LOCK_EX) | LOCK_NB);
}

unsigned int tlx_major(uint64_t device) { return major(device); }
unsigned int tlx_minor(uint64_t device) { return minor(device); }

int tlx_rename_exclusive(const char *from, const char *to) {
    return renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE);
}

int tlx_open_beneath(int folder, const char *name, int flags, int same_device)
{
    // RESOLVE_BENEATH, RESOLVE_NO_SYMLINKS and RESOLVE_NO_XDEV of linux/openat2.h. With O_PATH, openat2 rejects flags
    // that have no effect, such as O_NOCTTY. Without O_PATH, this function opens only regular files and folders, so
    // O_NOCTTY is not needed.
    struct {
        uint64_t flags, mode, resolve;
    } how = {(uint64_t)(flags | O_CLOEXEC | O_NOFOLLOW), 0, 0x08 | 0x04 | (same_device ? 0x01 : 0)};
    int fd = (int)syscall(SYS_openat2, folder, name, &how, sizeof how);
    if (fd >= 0 || (errno != ENOSYS && errno != EPERM))
        return fd;
    if (strchr(name, '/') != NULL || strcmp(name, "..") == 0) {
        errno = EXDEV;
        return -1;
    }
    return openat(folder, name, (int)how.flags);
}

int tlx_rename_absent(int from_folder, const char *from, int to_folder, const char *to)
{
    if (renameat2(from_folder, from, to_folder, to, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -1;
    if (linkat(from_folder, from, to_folder, to, 0) < 0)
        return -1;
    return unlinkat(from_folder, from, 0);
}

int tlx_punch(int fd)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return -1;
    return st.st_size == 0 ? 0 : fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, st.st_size);
}

int tlx_same_file(int one, int other) {
    pid_t self = getpid();
    long order = syscall(SYS_kcmp, self, self, KCMP_FILE, one, other);
    return order < 0 ? -1 : order == 0;
}

const void *tlx_memrchr(const void *bytes, int byte, size_t count) { return memrchr(bytes, byte, count); }

void tlx_store_release(uint32_t *to, uint32_t value)
{
    __atomic_store_n(to, value, __ATOMIC_RELEASE);
}

int tlx_is_made_up(int fd) {
    struct statfs fs;
    if (fstatfs(fd, &fs) < 0)
        return -1;
    return fs.f_type == FUSE_SUPER_MAGIC;
}

void tlx_begin_writing(int fd, off_t offset, off_t count)
{
    sync_file_range(fd, offset, count, SYNC_FILE_RANGE_WRITE);
}

int tlx_is_memory(const char *path)
{
    struct statfs fs;
    if (statfs(path, &fs) < 0)
        return -1;
    return fs.f_type == 0x01021994 || fs.f_type == (__typeof__(fs.f_type))0x858458f6;  // TMPFS_MAGIC, RAMFS_MAGIC
}
