// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "host.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

// The system calls of a library that only computes: memory, clocks, reading, its one socket, and exit. Both filters are
// lists of allowed calls, so that calls of later kernels are forbidden; the first filter also allows what opening a
// library takes. There is no way to create sockets, processes or threads, to signal other processes, to send file
// descriptors, or to write anywhere but to the socket and standard error.
//
// The filters do not check paths. Landlock allows few files, and both Landlock and these filters allow only reading.

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#define X32_BIT 0x40000000u
#else
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

// Calls above this are unknown here and fail with ENOSYS, as on an older kernel: libraries try new calls and then
// fall back to older ones.
enum { HIGHEST_KNOWN = 450 };

enum check {
    ALWAYS,
    OPENS_FOR_READING,  // open(2): the flags are the second argument
    OPENS_AT_FOR_READING,
    NOT_EXECUTABLE,     // in the second layer: without PROT_EXEC
    TO_ITSELF,          // the first argument is this process's ID
    READS_OWN_LIMITS,
    OWN_DESCRIPTOR,     // fcntl(2) without signals and locks
    OWN_NAME,           // prctl(2)
};

enum { BOTH = 0, FIRST = 1 };

static const struct rule {
    uint16_t number;
    uint8_t layer;
    uint8_t check;
} rules[] = {
    // System calls on the socket to the parent, the only socket of this process. sendmsg is not allowed, because it
    // could send file descriptors.
    {SYS_recvfrom, BOTH, ALWAYS},
    {SYS_sendto, BOTH, ALWAYS},
    {SYS_write, BOTH, ALWAYS},
    {SYS_writev, BOTH, ALWAYS},
    // System calls for memory.
    {SYS_brk, BOTH, ALWAYS},
    {SYS_mmap, BOTH, NOT_EXECUTABLE},
    {SYS_mprotect, BOTH, NOT_EXECUTABLE},
    {SYS_munmap, BOTH, ALWAYS},
    {SYS_mremap, BOTH, ALWAYS},
    {SYS_madvise, BOTH, ALWAYS},
    // System calls for time, waiting and random numbers.
    {SYS_futex, BOTH, ALWAYS},
    {SYS_clock_gettime, BOTH, ALWAYS},
    {SYS_clock_getres, BOTH, ALWAYS},
    {SYS_clock_nanosleep, BOTH, ALWAYS},
    {SYS_nanosleep, BOTH, ALWAYS},
    {SYS_gettimeofday, BOTH, ALWAYS},
    {SYS_getrandom, BOTH, ALWAYS},
    {SYS_sched_yield, BOTH, ALWAYS},
    {SYS_ppoll, BOTH, ALWAYS},
    {SYS_restart_syscall, BOTH, ALWAYS},
    // System calls that read files.
    {SYS_openat, BOTH, OPENS_AT_FOR_READING},
    {SYS_read, BOTH, ALWAYS},
    {SYS_pread64, BOTH, ALWAYS},
    {SYS_readv, BOTH, ALWAYS},
    {SYS_lseek, BOTH, ALWAYS},
    {SYS_close, BOTH, ALWAYS},
    {SYS_fstat, BOTH, ALWAYS},
    {SYS_newfstatat, BOTH, ALWAYS},
    {SYS_statx, BOTH, ALWAYS},
    {SYS_getdents64, BOTH, ALWAYS},
    {SYS_readlinkat, BOTH, ALWAYS},
    {SYS_faccessat, BOTH, ALWAYS},
#ifdef SYS_faccessat2
    {SYS_faccessat2, BOTH, ALWAYS},
#endif
    {SYS_fcntl, BOTH, OWN_DESCRIPTOR},
    // System calls about the process itself and the machine.
    {SYS_getpid, BOTH, ALWAYS},
    {SYS_getppid, BOTH, ALWAYS},
    {SYS_gettid, BOTH, ALWAYS},
    {SYS_getuid, BOTH, ALWAYS},
    {SYS_geteuid, BOTH, ALWAYS},
    {SYS_getgid, BOTH, ALWAYS},
    {SYS_getegid, BOTH, ALWAYS},
    {SYS_getcwd, BOTH, ALWAYS},
    {SYS_getrusage, BOTH, ALWAYS},
    {SYS_times, BOTH, ALWAYS},
    {SYS_uname, BOTH, ALWAYS},
    {SYS_sysinfo, BOTH, ALWAYS},
    {SYS_sched_getaffinity, BOTH, ALWAYS},
    {SYS_prlimit64, BOTH, READS_OWN_LIMITS},
    {SYS_prctl, BOTH, OWN_NAME},
    // System calls for signals and exit.
    {SYS_rt_sigaction, BOTH, ALWAYS},
    {SYS_rt_sigprocmask, BOTH, ALWAYS},
    {SYS_rt_sigreturn, BOTH, ALWAYS},
    {SYS_sigaltstack, BOTH, ALWAYS},
    {SYS_kill, BOTH, TO_ITSELF},
    {SYS_tgkill, BOTH, TO_ITSELF},
    {SYS_exit, BOTH, ALWAYS},
    {SYS_exit_group, BOTH, ALWAYS},
    // System calls that open a library and install the second layer.
    {SYS_statfs, FIRST, ALWAYS},
    {SYS_fstatfs, FIRST, ALWAYS},
    {SYS_set_robust_list, FIRST, ALWAYS},
    {SYS_seccomp, FIRST, ALWAYS},
    {446 /* landlock_restrict_self */, FIRST, ALWAYS},
#if defined(__x86_64__)
    // Older system calls, which aarch64 does not have.
    {SYS_open, BOTH, OPENS_FOR_READING},
    {SYS_stat, BOTH, ALWAYS},
    {SYS_lstat, BOTH, ALWAYS},
    {SYS_access, BOTH, ALWAYS},
    {SYS_readlink, BOTH, ALWAYS},
    {SYS_getdents, BOTH, ALWAYS},
    {SYS_poll, BOTH, ALWAYS},
    {SYS_pause, BOTH, ALWAYS},
    {SYS_time, BOTH, ALWAYS},
    {SYS_getrlimit, BOTH, ALWAYS},
#endif
};

enum { RULE_COUNT = sizeof rules / sizeof rules[0], LONGEST_RULE = 10, MOST_INSTRUCTIONS = 16 + RULE_COUNT * LONGEST_RULE };

static struct sock_filter program[MOST_INSTRUCTIONS];
static unsigned used;

static void add(uint16_t code, uint32_t value, uint8_t if_true, uint8_t if_false)
{
    program[used++] = (struct sock_filter)BPF_JUMP(code, value, if_true, if_false);
}

static void load(size_t offset) { add(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0); }

// The lower half of an argument: both architectures are little-endian.
static void load_argument(unsigned index) { load(offsetof(struct seccomp_data, args) + 8 * index); }
static void load_upper_half(unsigned index) { load(offsetof(struct seccomp_data, args) + 8 * index + 4); }

static void answer(uint32_t action) { add(BPF_RET | BPF_K, action, 0, 0); }
static void refuse(void) { answer(SECCOMP_RET_ERRNO | 1 /* EPERM */); }

// Refuses a call if the argument has any of these bits, allows the call otherwise.
static void allow_without(unsigned argument, uint32_t bits)
{
    load_argument(argument);
    add(BPF_JMP | BPF_JSET | BPF_K, bits, 0, 1);
    refuse();
    answer(SECCOMP_RET_ALLOW);
}

static void allow_one_of(unsigned argument, const uint32_t *values, unsigned count)
{
    load_argument(argument);
    for (unsigned i = 0; i < count; i++)
        add(BPF_JMP | BPF_JEQ | BPF_K, values[i], (uint8_t)(count - i), 0);
    refuse();
    answer(SECCOMP_RET_ALLOW);
}

static void add_check(enum check check, int layer)
{
    static const uint32_t reading = O_CLOEXEC | O_DIRECTORY | O_NOCTTY | O_NOFOLLOW | O_NONBLOCK;
    static const uint32_t descriptors[] = {F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_DUPFD_CLOEXEC};
    static const uint32_t names[] = {15 /* PR_SET_NAME */, 16 /* PR_GET_NAME */, 0x53564d41 /* PR_SET_VMA */};
    uint32_t self = (uint32_t)getpid();
    switch (check) {
    case ALWAYS:
        answer(SECCOMP_RET_ALLOW);
        break;
    case OPENS_FOR_READING:
        allow_without(1, ~reading);
        break;
    case OPENS_AT_FOR_READING:
        allow_without(2, ~reading);
        break;
    case NOT_EXECUTABLE:
        if (layer == FIRST)
            answer(SECCOMP_RET_ALLOW);
        else
            allow_without(2, PROT_EXEC);
        break;
    case TO_ITSELF:
        allow_one_of(0, &self, 1);
        break;
    case READS_OWN_LIMITS:
        load_argument(0);
        add(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0);
        add(BPF_JMP | BPF_JEQ | BPF_K, self, 0, 4);
        load_argument(2);
        add(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 2);
        load_upper_half(2);
        add(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0);
        refuse();
        answer(SECCOMP_RET_ALLOW);
        break;
    case OWN_DESCRIPTOR:
        allow_one_of(1, descriptors, sizeof descriptors / sizeof descriptors[0]);
        break;
    case OWN_NAME:
        allow_one_of(0, names, sizeof names / sizeof names[0]);
        break;
    }
}

static bool install(int layer)
{
    used = 0;
    load(offsetof(struct seccomp_data, arch));
    add(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0);
    answer(SECCOMP_RET_KILL_PROCESS);
    load(offsetof(struct seccomp_data, nr));
#ifdef X32_BIT
    add(BPF_JMP | BPF_JGE | BPF_K, X32_BIT, 0, 1);
    answer(SECCOMP_RET_KILL_PROCESS);
#endif
    for (unsigned i = 0; i < RULE_COUNT; i++) {
        if (rules[i].layer == FIRST && layer != FIRST)
            continue;
        unsigned jump = used;
        add(BPF_JMP | BPF_JEQ | BPF_K, rules[i].number, 0, 0);
        add_check((enum check)rules[i].check, layer);
        program[jump].jf = (uint8_t)(used - jump - 1);
    }
    // ENOSYS for clone3 makes the C library try clone, whose error means that no thread can be created.
    add(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 1, 0);
    add(BPF_JMP | BPF_JGT | BPF_K, HIGHEST_KNOWN, 0, 1);
    answer(SECCOMP_RET_ERRNO | 38 /* ENOSYS */);
    refuse();
    struct sock_fprog filter = {.len = (unsigned short)used, .filter = program};
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) == 0;
}

bool host_seccomp_first(void) { return install(FIRST); }
bool host_seccomp_second(void) { return install(BOTH); }
