// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

// `torpor-keeper --receive`: receives descriptors that apps want to store, on behalf of torpord, which started it. To
// close a file can block, even against SIGKILL, until the program that provides its filesystem answers (FLUSH of
// FUSE). So descriptors that are not known to be harmless never reach torpord or the keeper: this process closes
// them, and no other process waits for it. Nor does torpord remove a datagram with descriptors: its references may be
// the last ones, and to let go of them can block as well, even if they were never opened (RELEASE of FUSE writes back).

enum {
    DATAGRAMS = 3,  // the socket to which apps send
    REQUESTS = 4,   // a SOCK_SEQPACKET socket; each message requests the next datagram's descriptors
};

// Whether a filesystem closes files without asking another process: filesystems on disks and in memory do.
static bool is_local(long type)
{
    static const unsigned local[] = {
        0xEF53u,      // ext2, ext3, ext4
        0x58465342u,  // xfs
        0x9123683Eu,  // btrfs
        0xF2F52010u,  // f2fs
        0xCA451A4Eu,  // bcachefs
        0x2FC12FC1u,  // zfs
        0x01021994u,  // tmpfs
        0x858458F6u,  // ramfs
        0x958458F6u,  // hugetlbfs
        0x73717368u,  // squashfs
        0xE0F5E1E2u,  // erofs
    };
    for (size_t i = 0; i < sizeof local / sizeof *local; i++)
        if ((unsigned)type == local[i])
            return true;
    return false;
}

// Whether the descriptor is a socket whose close blocks at most for SO_LINGER, which a signal interrupts.
static bool is_known_socket(int fd)
{
    static const int known[] = {AF_UNIX,   AF_INET, AF_INET6, AF_NETLINK,
                                AF_PACKET, AF_CAN,  AF_VSOCK, AF_BLUETOOTH};
    int domain;
    socklen_t size = sizeof domain;
    if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) < 0)
        return false;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (domain == known[i])
            return true;
    return false;
}

static bool is_harmless(int fd)
{
    // Objects that belong to no filesystem: their name in /proc/self/fd does not start with a slash.
    static const char *const kinds[] = {
        "pipe:[", "pidfd:[", "mnt:[", "net:[", "pid:[", "user:[", "uts:[", "ipc:[", "time:[", "cgroup:[",
        "anon_inode:[eventfd]", "anon_inode:[timerfd]", "anon_inode:[signalfd]", "anon_inode:[eventpoll]",
        "anon_inode:[pidfd]", "anon_inode:inotify",
    };
    char path[64], name[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(path, name, sizeof name - 1);
    if (length <= 0)
        return false;
    name[length] = 0;
    if (strncmp(name, "socket:[", 8) == 0)
        return is_known_socket(fd);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strncmp(name, kinds[i], strlen(kinds[i])) == 0)
            return true;
    if (fcntl(fd, F_GET_SEALS) >= 0)
        return true;  // a memfd
    // On FUSE, fstatfs asks the filesystem's server and may block. In this process that is acceptable.
    struct statfs status;
    return fstatfs(fd, &status) == 0 && is_local((long)status.f_type);
}

static int opened[TORPOR_KEEPER_DESCRIPTORS];
static unsigned opened_count;

static void close_opened(void)
{
    for (unsigned i = 0; i < opened_count; i++)
        close(opened[i]);
    opened_count = 0;
}

/// Receives the next datagram's descriptors, but leaves it in the queue (MSG_PEEK).
static void open_next(struct torpor_keeper_received *answer)
{
    union {
        struct cmsghdr align;
        // The socket may have SO_PASSCRED and SO_TIMESTAMPNS.
        char bytes[CMSG_SPACE(sizeof opened) + CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(sizeof(struct timespec))];
    } control;
    char none;
    struct iovec part = {.iov_base = &none, .iov_len = sizeof none};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    if (recvmsg(DATAGRAMS, &message, MSG_PEEK | MSG_DONTWAIT | MSG_CMSG_CLOEXEC) < 0) {
        answer->error = (uint32_t)errno;
        return;
    }
    for (struct cmsghdr *head = CMSG_FIRSTHDR(&message); head != NULL; head = CMSG_NXTHDR(&message, head)) {
        if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS)
            continue;
        size_t count = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < count && opened_count < TORPOR_KEEPER_DESCRIPTORS; i++)
            memcpy(&opened[opened_count++], CMSG_DATA(head) + i * sizeof(int), sizeof(int));
    }
    answer->lost = (message.msg_flags & MSG_CTRUNC) != 0;
}

static bool answer_next(void)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof opened)];
    } control;
    struct torpor_keeper_received answer = {0, 0, 0};
    int good[TORPOR_KEEPER_DESCRIPTORS];
    unsigned count = 0;
    open_next(&answer);
    for (unsigned i = 0; i < opened_count; i++)
        if (is_harmless(opened[i]))
            good[count++] = opened[i];
        else
            answer.refused++;
    struct iovec part = {.iov_base = &answer, .iov_len = sizeof answer};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (count > 0) {
        memset(&control, 0, sizeof control);
        message.msg_control = control.bytes;
        message.msg_controllen = CMSG_SPACE(count * sizeof(int));
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(count * sizeof(int));
        memcpy(CMSG_DATA(head), good, count * sizeof(int));
    }
    bool sent = sendmsg(REQUESTS, &message, MSG_NOSIGNAL) >= 0;
    // Close them only after the answer was sent, since closing may block forever.
    close_opened();
    return sent;
}

/// Removes the next datagram, which may block forever: the kernel lets go of its descriptors, without what a close(2) of
/// each would ask a filesystem for.
static bool drop_next(void)
{
    struct torpor_keeper_received answer = {0, 0, 2};
    char none;
    // If torpord has died since, the next one asks another process for the same: two would remove two.
    if (recv(REQUESTS, &none, sizeof none, MSG_PEEK | MSG_DONTWAIT) == 0)
        return false;
    if (recv(DATAGRAMS, &none, sizeof none, MSG_DONTWAIT) < 0)
        answer.error = (uint32_t)errno;
    struct iovec part = {.iov_base = &answer, .iov_len = sizeof answer};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    return sendmsg(REQUESTS, &message, MSG_NOSIGNAL) >= 0;
}

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#else
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

// Drops what the loop below does not need, since it handles data from apps: all capabilities except one, the right to
// execute programs, and all other system calls, which then fail with EPERM. CAP_SYS_RESOURCE stays: without it the
// kernel refuses to pass on descriptors while more than RLIMIT_NOFILE of the user's are in transit in all of its
// processes (ETOOMANYREFS). Restrictions that the kernel does not support are skipped.
static void confine(void)
{
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
    if (syscall(SYS_capget, &header, data) == 0) {
        __u32 kept = data[0].permitted & (1u << CAP_SYS_RESOURCE);
        memset(data, 0, sizeof data);
        data[0].permitted = kept;
        data[0].effective = kept;
        syscall(SYS_capset, &header, data);
    }
    static const uint16_t allowed[] = {
        SYS_recvfrom, SYS_recvmsg, SYS_sendmsg, SYS_getsockopt, SYS_fcntl, SYS_fstatfs, SYS_readlinkat, SYS_close,
        SYS_rt_sigreturn, SYS_restart_syscall, SYS_exit, SYS_exit_group,
#ifdef SYS_readlink
        SYS_readlink,
#endif
    };
    enum { COUNT = sizeof allowed / sizeof *allowed };
    struct sock_filter filter[COUNT + 6];
    unsigned short at = 0;
    filter[at++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
    filter[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0);
    filter[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    filter[at++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (unsigned i = 0; i < COUNT; i++)
        filter[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, allowed[i], (uint8_t)(COUNT - i), 0);
    filter[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
    filter[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {.len = at, .filter = filter};
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static void interrupted(int number) { (void)number; }

/// Makes a signal arrive fifty times a second. Who lets go of a connection last waits for as long as it lingers
/// (SO_LINGER), but no longer than until a signal comes.
static void hurry(void)
{
    struct sigaction action = {.sa_handler = interrupted, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    sigset_t alarm;
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    sigprocmask(SIG_UNBLOCK, &alarm, NULL);
    struct itimerval pace = {{0, 20000}, {0, 20000}};
    setitimer(ITIMER_REAL, &pace, NULL);
}

int receive(void)
{
    prctl(PR_SET_NAME, "torpor-receive");
    syscall(SYS_close_range, REQUESTS + 1, ~0u, 0);
    hurry();
    confine();
    for (;;) {
        char request;
        ssize_t size = recv(REQUESTS, &request, sizeof request, 0);
        if (size < 0 && errno == EINTR)
            continue;
        if (size <= 0 || !(request == TORPOR_RECEIVE_DROP ? drop_next() : answer_next()))
            return 0;
    }
}
