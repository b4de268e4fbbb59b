// SPDX-License-Identifier: Apache-2.0

// Limits the machine's memory while its standard input is open:
//   bound AVAILABLE SWAP ALGORITHM SECONDS [FILE MEBIBYTES]
// Of the available memory, AVAILABLE MiB are left: the rest goes into a balloon of unused huge pages. A zram device
// of SWAP MiB is the swap; FILE adds a swap file of MEBIBYTES MiB, used when zram is full. Standard output gets
// "ready DEVICE", "given BYTES" for the part of the balloon given back to the rest of the machine, and "broken-off
// SENTENCE" if it gives up.
//
// The rest of the machine comes first:
// - Programs already running are locked in memory with their libraries, so that their code is never read again.
// - If processes outside of the measured container need more memory than at the start, the balloon shrinks within
//   a quarter of a second, and grows again later: what is available inside stays the same.
// - If all tasks have waited for memory for most of 8 s, it writes "stalled TIME", so that the harness can end the
//   turn. After 40 s of that, and after SECONDS in all, it gives everything back.
// - When its input or the process itself ends, balloon, swap and device are removed, even after SIGKILL: a second
//   process does it. The kernel's OOM killer never chooses either of them.
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/swap.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { STEP = 64 << 20, STALL_SECONDS = 8, STALLED = 60, GIVE_UP = 40, MOST_FILE = 128 << 20, MOST_LOCKED = 1 << 30 };

#define HUGE_PAGES "/proc/sys/vm/nr_hugepages"

static long device = -1;
static char device_path[64];
static const char *swap_file;
static pid_t guardian;
static int to_guardian = -1;
static long old_page_cluster = -1, old_huge_pages = -1;
static uint64_t huge_page;

static _Noreturn void fail(const char *what);

static int write_text(const char *path, const char *text)
{
    int file = open(path, O_WRONLY | O_CLOEXEC);
    if (file < 0)
        return -1;
    ssize_t count = write(file, text, strlen(text));
    close(file);
    return count == (ssize_t)strlen(text) ? 0 : -1;
}

static long read_number(const char *path)
{
    char text[64] = "";
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return -1;
    ssize_t count = read(file, text, sizeof text - 1);
    close(file);
    return count > 0 ? atol(text) : -1;
}

static uint64_t meminfo(const char *name)
{
    char text[4096];
    int file = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
    ssize_t count = file >= 0 ? read(file, text, sizeof text - 1) : -1;
    if (file >= 0)
        close(file);
    if (count <= 0)
        return 0;
    text[count] = 0;
    const char *found = strstr(text, name);
    return found != NULL ? strtoull(found + strlen(name) + 1, NULL, 10) << 10 : 0;
}

// Removes everything. Each step runs even if others fail.
static void give_all_back(void)
{
    char path[96], text[32];
    if (old_huge_pages >= 0) {
        snprintf(text, sizeof text, "%ld", old_huge_pages);
        write_text(HUGE_PAGES, text);
    }
    if (swap_file != NULL) {
        for (int try = 0; try < 20 && swapoff(swap_file) != 0 && errno != EINVAL && errno != ENOENT; try++)
            usleep(100000);
        unlink(swap_file);
    }
    if (device >= 0) {
        for (int try = 0; try < 20 && swapoff(device_path) != 0 && errno != EINVAL; try++)
            usleep(100000);
        snprintf(path, sizeof path, "/sys/block/zram%ld/reset", device);
        for (int try = 0; try < 50 && write_text(path, "1") != 0; try++)
            usleep(100000);
        snprintf(text, sizeof text, "%ld", device);
        for (int try = 0; try < 50 && write_text("/sys/class/zram-control/hot_remove", text) != 0; try++)
            usleep(100000);
    }
    if (old_page_cluster >= 0) {
        snprintf(text, sizeof text, "%ld", old_page_cluster);
        write_text("/proc/sys/vm/page-cluster", text);
    }
}

// A second process removes everything when this one is gone, however it ended: it sees the end of a pipe.
static void start_guardian(void)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0 || (guardian = fork()) < 0)
        fail("no guardian");
    if (guardian > 0) {
        close(ends[0]);
        to_guardian = ends[1];
        return;
    }
    close(ends[1]);
    // Close its copies: a reader of this program's output must see the end without waiting for the guardian.
    close(0), close(1);
    signal(SIGINT, SIG_IGN), signal(SIGTERM, SIG_IGN), signal(SIGHUP, SIG_IGN);
    prctl(PR_SET_NAME, "guardian");
    mlockall(MCL_CURRENT | MCL_FUTURE);
    char byte;
    while (read(ends[0], &byte, 1) < 0 && errno == EINTR)
        continue;
    give_all_back();
    _exit(0);
}

static _Noreturn void leave(int status)
{
    fflush(stdout);
    close(to_guardian);
    if (guardian > 0)
        waitpid(guardian, NULL, 0);
    exit(status);
}

static _Noreturn void fail(const char *what)
{
    printf("broken-off %s: %s\n", what, strerror(errno));
    leave(1);
}

// --- swap

static void make_swap(long mebibytes, const char *algorithm)
{
    char path[128], text[64];
    snprintf(path, sizeof path, "/sys/block/zram%ld/comp_algorithm", device);
    if (write_text(path, algorithm) != 0)
        fail(algorithm);
    snprintf(path, sizeof path, "/sys/block/zram%ld/disksize", device);
    snprintf(text, sizeof text, "%ldM", mebibytes);
    if (write_text(path, text) != 0)
        fail(path);
    // The node may appear a moment later, or never if there is neither udev nor devtmpfs.
    for (int try = 0; try < 50 && access(device_path, F_OK) != 0; try++)
        usleep(20000);
    char command[160];
    snprintf(command, sizeof command, "mkswap %s >/dev/null", device_path);
    if (system(command) != 0)
        fail(command);
    // With zram, reading neighbouring pages gains nothing; on a disk it does.
    if (swap_file == NULL)
        write_text("/proc/sys/vm/page-cluster", "0");
    if (swapon(device_path, 100 | SWAP_FLAG_PREFER) != 0)
        fail(device_path);
}

static void make_swap_file(long mebibytes)
{
    int file = open(swap_file, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file < 0 || posix_fallocate(file, 0, (off_t)mebibytes << 20) != 0)
        fail(swap_file);
    close(file);
    char command[PATH_MAX + 64];
    snprintf(command, sizeof command, "mkswap '%s' >/dev/null", swap_file);
    if (system(command) != 0 || swapon(swap_file, 10 | SWAP_FLAG_PREFER) != 0)
        fail(swap_file);
}

// --- what else runs

// The measured container is one of scripts/systemd-container, whose cgroup has this name.
static bool is_measured(const char *pid)
{
    char path[300], text[4096];
    snprintf(path, sizeof path, "/proc/%s/cgroup", pid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t count = file >= 0 ? read(file, text, sizeof text - 1) : -1;
    if (file >= 0)
        close(file);
    if (count <= 0)
        return true;
    text[count] = 0;
    return strstr(text, "/torpor-systemd-") != NULL;
}

// Anonymous and shared memory of all processes outside of the container, including swap.
static uint64_t needed_by_others(void)
{
    uint64_t sum = 0;
    DIR *folder = opendir("/proc");
    if (folder == NULL)
        return 0;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        if (!isdigit((unsigned char)entry->d_name[0]) || atoi(entry->d_name) == guardian
            || is_measured(entry->d_name))
            continue;
        char path[280], text[4096];
        snprintf(path, sizeof path, "/proc/%s/status", entry->d_name);
        int file = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t count = file >= 0 ? read(file, text, sizeof text - 1) : -1;
        if (file >= 0)
            close(file);
        if (count <= 0)
            continue;
        text[count] = 0;
        const char *names[] = {"\nRssAnon:", "\nVmSwap:"};
        for (int index = 0; index < 2; index++) {
            const char *found = strstr(text, names[index]);
            if (found != NULL)
                sum += strtoull(found + strlen(names[index]), NULL, 10) << 10;
        }
    }
    closedir(folder);
    return sum + meminfo("Shmem");
}

struct file_identity {
    dev_t device;
    ino_t inode;
};

// Locks each executable or library that a process has mapped, once.
static void lock_programs(void)
{
    static struct file_identity known[4096];
    int count = 0;
    uint64_t locked = 0;
    DIR *folder = opendir("/proc");
    if (folder == NULL)
        return;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        if (!isdigit((unsigned char)entry->d_name[0]))
            continue;
        char path[280], line[PATH_MAX + 128];
        snprintf(path, sizeof path, "/proc/%s/maps", entry->d_name);
        FILE *maps = fopen(path, "re");
        while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
            char *name = strchr(line, '/');
            if (name == NULL || strstr(line, " r-xp ") == NULL)
                continue;
            name[strcspn(name, "\n")] = 0;
            struct stat status;
            int file = open(name, O_RDONLY | O_CLOEXEC);
            bool is_new = file >= 0 && fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0
                && status.st_size <= MOST_FILE;
            for (int index = 0; is_new && index < count; index++)
                is_new = known[index].inode != status.st_ino || known[index].device != status.st_dev;
            if (is_new && count < 4096 && locked + (uint64_t)status.st_size <= MOST_LOCKED) {
                void *memory = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_SHARED, file, 0);
                if (memory != MAP_FAILED && mlock(memory, (size_t)status.st_size) == 0)
                    locked += (uint64_t)status.st_size;
                known[count++] = (struct file_identity){status.st_dev, status.st_ino};
            }
            if (file >= 0)
                close(file);
        }
        if (maps != NULL)
            fclose(maps);
    }
    closedir(folder);
    fprintf(stderr, "bound: %d programs and libraries of %llu MiB are locked\n", count,
        (unsigned long long)(locked >> 20));
}

// --- the balloon

// Resizes the balloon. The kernel takes unused huge pages from free memory at once, without touching or swapping
// them.
static uint64_t resize(uint64_t wish)
{
    char text[32];
    snprintf(text, sizeof text, "%llu", (unsigned long long)(wish / huge_page));
    // Fragmented memory must be compacted first, perhaps more than once.
    for (int try = 0; try < 5; try++) {
        write_text(HUGE_PAGES, text);
        if (read_number(HUGE_PAGES) >= (long)(wish / huge_page))
            break;
        write_text("/proc/sys/vm/compact_memory", "1");
    }
    return (uint64_t)read_number(HUGE_PAGES) * huge_page;
}

// Microseconds since boot during which all tasks waited for memory (PSI "full").
static uint64_t stall_time(void)
{
    char text[256] = "";
    int file = open("/proc/pressure/memory", O_RDONLY | O_CLOEXEC);
    ssize_t count = file >= 0 ? read(file, text, sizeof text - 1) : -1;
    if (file >= 0)
        close(file);
    const char *full = count > 0 ? strstr(text, "full ") : NULL;
    const char *total = full != NULL ? strstr(full, "total=") : NULL;
    return total != NULL ? strtoull(total + 6, NULL, 10) : 0;
}

// Percentage of the last STALL_SECONDS in which all tasks waited; called four times a second.
static int stall_part(void)
{
    static struct {
        uint64_t stall, at;
    } looks[STALL_SECONDS * 4];
    static unsigned count;
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    uint64_t at = (uint64_t)time.tv_sec * 1000000 + (uint64_t)time.tv_nsec / 1000, stall = stall_time();
    unsigned place = count++ % (STALL_SECONDS * 4);
    int part = count > STALL_SECONDS * 4 ? (int)((stall - looks[place].stall) * 100 / (at - looks[place].at)) : 0;
    looks[place].stall = stall, looks[place].at = at;
    return part;
}

static volatile sig_atomic_t is_asked_to_end;
static void end_soon(int number) { is_asked_to_end = number; }

int main(int argc, char **argv)
{
    if (argc != 5 && argc != 7) {
        fprintf(stderr, "usage: bound AVAILABLE SWAP ALGORITHM SECONDS [FILE MEBIBYTES]\n");
        return 2;
    }
    uint64_t available = strtoull(argv[1], NULL, 10) << 20;
    long seconds = atol(argv[4]);
    struct sigaction action = {.sa_handler = end_soon};
    sigaction(SIGINT, &action, NULL), sigaction(SIGTERM, &action, NULL), sigaction(SIGHUP, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
    setvbuf(stdout, NULL, _IOLBF, 0);
    write_text("/proc/self/oom_score_adj", "-1000");
    huge_page = meminfo("Hugepagesize");
    old_huge_pages = read_number(HUGE_PAGES);
    if (huge_page == 0 || old_huge_pages < 0) {
        errno = ENOSYS;
        fail("the balloon is of huge pages, and this kernel has none");
    }
    // Set everything that the guardian needs before it is forked.
    old_page_cluster = read_number("/proc/sys/vm/page-cluster");
    device = read_number("/sys/class/zram-control/hot_add");
    if (device < 0)
        fail("no zram device can be made (/sys/class/zram-control/hot_add)");
    snprintf(device_path, sizeof device_path, "/dev/zram%ld", device);
    if (argc == 7)
        swap_file = argv[5];
    start_guardian();
    lock_programs();
    mlockall(MCL_CURRENT | MCL_FUTURE);
    make_swap(atol(argv[2]), argv[3]);
    if (swap_file != NULL)
        make_swap_file(atol(argv[6]));
    // Several times: MemAvailable is an estimate, and caches shrink in the process.
    uint64_t size = (uint64_t)old_huge_pages * huge_page;
    for (int try = 0; try < 3; try++) {
        uint64_t left = meminfo("MemAvailable");
        if (left + size < available + STEP) {
            errno = ENOMEM;
            fail("less is available than is to be left");
        }
        size = resize(left + size - available);
    }
    // If memory is too fragmented for huge pages, locked ordinary pages replace them.
    uint64_t left = meminfo("MemAvailable");
    if (left > available + STEP) {
        size_t rest = left - available;
        if (mmap(NULL, rest, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0) == MAP_FAILED)
            fail("the balloon does not come to its size");
        fprintf(stderr, "bound: %zu MiB are not huge pages\n", rest >> 20);
    }
    uint64_t whole = size, before = needed_by_others();
    printf("ready %s %llu\n", device_path, (unsigned long long)size);
    time_t end = time(NULL) + seconds, moved = time(NULL);
    bool is_said = false;
    const char *reason = NULL;
    while (reason == NULL && is_asked_to_end == 0) {
        struct pollfd input = {.fd = 0, .events = POLLIN};
        char byte;
        if (poll(&input, 1, 250) > 0 && read(0, &byte, 1) <= 0)
            break;
        // Shrink at once, grow only by larger steps.
        int64_t more = ((int64_t)needed_by_others() - (int64_t)before) / STEP * STEP;
        uint64_t wish = more < (int64_t)whole ? (uint64_t)((int64_t)whole - more) : 0;
        if (wish < size || wish >= size + 2 * STEP) {
            size = resize(wish);
            printf("given %lld\n", (long long)whole - (long long)size);
        }
        if (stall_part() < STALLED) {
            moved = time(NULL);
            is_said = false;
        } else if (!is_said) {
            printf("stalled %ld\n", (long)time(NULL));
            is_said = true;
        }
        if (time(NULL) - moved >= GIVE_UP)
            reason = "all tasks have waited for memory, and nobody has ended what is measured";
        if (time(NULL) > end)
            reason = "its time is over";
    }
    if (reason != NULL)
        printf("broken-off %s\n", reason);
    leave(reason != NULL);
}
