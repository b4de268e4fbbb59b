// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "clinux.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <linux/vm_sockets.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438
#endif
#ifndef SO_MEMINFO
#define SO_MEMINFO 55
#endif

static int number(int fd, int level, int option, int value)
{
    return setsockopt(fd, level, option, &value, sizeof value);
}

static int family_of(int fd)
{
    int family = 0;
    socklen_t size = sizeof family;
    return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &size) < 0 ? -1 : family;
}

// Builds the socket address and returns its length; 0 if the address is invalid.
static socklen_t make_address(const tlx_bind_plan *plan, struct sockaddr_storage *storage)
{
    memset(storage, 0, sizeof *storage);
    if (plan->family == tlx_bind_unix) {
        struct sockaddr_un *to = (struct sockaddr_un *)storage;
        size_t length = strlen(plan->address);
        if (length == 0 || length >= sizeof to->sun_path)
            return 0;
        to->sun_family = AF_UNIX;
        memcpy(to->sun_path, plan->address, length);
        if (plan->address[0] == '@')
            to->sun_path[0] = 0;
        return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length + (plan->address[0] == '@' ? 0 : 1));
    }
    if (plan->family == tlx_bind_ipv4) {
        struct sockaddr_in *to = (struct sockaddr_in *)storage;
        to->sin_family = AF_INET;
        to->sin_port = htons((uint16_t)plan->port);
        return inet_pton(AF_INET, plan->address, &to->sin_addr) == 1 ? sizeof *to : 0;
    }
    if (plan->family == tlx_bind_ipv6) {
        struct sockaddr_in6 *to = (struct sockaddr_in6 *)storage;
        to->sin6_family = AF_INET6;
        to->sin6_port = htons((uint16_t)plan->port);
        if (plan->interface != NULL) {
            to->sin6_scope_id = if_nametoindex(plan->interface);
            if (to->sin6_scope_id == 0)
                to->sin6_scope_id = (uint32_t)strtoul(plan->interface, NULL, 10);
            if (to->sin6_scope_id == 0)
                return 0;
        }
        return inet_pton(AF_INET6, plan->address, &to->sin6_addr) == 1 ? sizeof *to : 0;
    }
    struct sockaddr_vm *to = (struct sockaddr_vm *)storage;
    to->svm_family = AF_VSOCK;
    to->svm_cid = plan->cid;
    to->svm_port = plan->port;
    return sizeof *to;
}

static int set_options(int fd, const tlx_bind_plan *plan)
{
    int is_v6 = plan->family == tlx_bind_ipv6;
    int is_ip = is_v6 || plan->family == tlx_bind_ipv4;
    if (is_ip && number(fd, SOL_SOCKET, SO_REUSEADDR, 1) < 0)
        return -1;
    if (is_v6 && plan->ipv6_only >= 0 && number(fd, IPPROTO_IPV6, IPV6_V6ONLY, plan->ipv6_only) < 0)
        return -1;
    if (plan->reuse_port && number(fd, SOL_SOCKET, SO_REUSEPORT, 1) < 0)
        return -1;
    // At the level IPPROTO_IP, the option IP_FREEBIND applies to IPv6 sockets too.
    if (plan->free_bind && is_ip && number(fd, IPPROTO_IP, IP_FREEBIND, 1) < 0)
        return -1;
    if (plan->transparent && is_ip &&
        number(fd, is_v6 ? IPPROTO_IPV6 : IPPROTO_IP, is_v6 ? IPV6_TRANSPARENT : IP_TRANSPARENT, 1) < 0)
        return -1;
    if (plan->device != NULL &&
        setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, plan->device, (socklen_t)strlen(plan->device)) < 0)
        return -1;
    return 0;
}

int tlx_bound_socket(const tlx_bind_plan *plan, int *stage)
{
    struct sockaddr_storage address;
    static const int families[] = {AF_INET, AF_INET6, AF_VSOCK};
    static const int types[] = {SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET};
    *stage = tlx_stage_make;
    int fd = socket(families[plan->family], types[plan->kind] | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    int error = 0;
    *stage = tlx_stage_option;
    if (set_options(fd, plan) < 0) {
        error = errno;
    } else {
        *stage = tlx_stage_bind;
        socklen_t size = make_address(plan, &address);
        if (size == 0)
            error = plan->interface != NULL ? ENODEV : EINVAL;
        else if (bind(fd, (struct sockaddr *)&address, size) < 0)
            error = errno;
    }
    if (error == 0)
        return fd;
    close(fd);
    errno = error;
    return -1;
}

static int is_bound_there(int fd, const tlx_bind_plan *plan)
{
    static const int types[] = {SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET};
    struct sockaddr_storage wanted, found;
    socklen_t size = make_address(plan, &wanted), found_size = sizeof found;
    int type = 0;
    socklen_t type_size = sizeof type;
    memset(&found, 0, sizeof found);
    return size != 0 && getsockname(fd, (struct sockaddr *)&found, &found_size) == 0 && found_size == size &&
           memcmp(&found, &wanted, size) == 0 && getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_size) == 0 &&
           type == types[plan->kind];
}

static int is_connected(int fd)
{
    struct sockaddr_storage peer;
    socklen_t size = sizeof peer;
    return getpeername(fd, (struct sockaddr *)&peer, &size) == 0;
}

int tlx_copy_bound(int pidfd, int fd, const tlx_bind_plan *plan)
{
    int copy = (int)syscall(SYS_pidfd_getfd, pidfd, fd, 0);
    if (copy < 0)
        return -1;
    // Accepted connections have the same local address as their listening socket, so exclude sockets with a peer.
    if (is_bound_there(copy, plan) && !is_connected(copy))
        return copy;
    close(copy);
    errno = ENOENT;
    return -1;
}

int tlx_set_socket_option(int fd, int option, int value)
{
    int family = family_of(fd);
    switch (option) {
    case tlx_option_keep_alive:
        return number(fd, SOL_SOCKET, SO_KEEPALIVE, value);
    case tlx_option_no_delay:
        return number(fd, IPPROTO_TCP, TCP_NODELAY, value);
    case tlx_option_defer_accept:
        return number(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, value);
    case tlx_option_broadcast:
        return number(fd, SOL_SOCKET, SO_BROADCAST, value);
    case tlx_option_pass_credentials:
        return number(fd, SOL_SOCKET, SO_PASSCRED, value);
    case tlx_option_packet_info:
        return family == AF_INET6 ? number(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, value)
                                  : number(fd, IPPROTO_IP, IP_PKTINFO, value);
    case tlx_option_priority:
        return number(fd, SOL_SOCKET, SO_PRIORITY, value);
    case tlx_option_receive_buffer:
        // The FORCE options can exceed the system's limit, but need CAP_NET_ADMIN. So try them first.
        if (number(fd, SOL_SOCKET, SO_RCVBUFFORCE, value) == 0)
            return 0;
        return number(fd, SOL_SOCKET, SO_RCVBUF, value);
    case tlx_option_send_buffer:
        if (number(fd, SOL_SOCKET, SO_SNDBUFFORCE, value) == 0)
            return 0;
        return number(fd, SOL_SOCKET, SO_SNDBUF, value);
    default:
        errno = ENOPROTOOPT;
        return -1;
    }
}

int tlx_socket_inode_mode(int fd, unsigned int mode) { return fchmod(fd, mode); }

int tlx_set_owner(int fd, uint32_t user, uint32_t group) { return fchownat(fd, "", user, group, AT_EMPTY_PATH); }

static __thread struct {
    bool acts;
    uint32_t user, group, acted;
    long group_count;
    gid_t *groups;
} before;

// setfsuid(2) clears the process's dumpable flag. Without this flag, there would be no core dump of a torpord that
// torpor-keeper aborts, so tlx_act_as_before restores the flag. The original value is stored once for the process,
// because several threads may change credentials at the same time.
static _Atomic int was_dumpable = -1;

static void stay_dumpable(void)
{
    if (was_dumpable == 1)
        prctl(PR_SET_DUMPABLE, 1);
}

// Uses raw system calls, because they apply only to this thread. libc's setgroups() applies to all threads.
int tlx_act_as(uint32_t user, uint32_t group, const uint32_t *groups, size_t count)
{
    int unknown = -1;
    atomic_compare_exchange_strong(&was_dumpable, &unknown, prctl(PR_GET_DUMPABLE));
    before.group_count = syscall(SYS_getgroups, 0, NULL);
    before.groups = before.group_count > 0 ? calloc((size_t)before.group_count, sizeof(gid_t)) : NULL;
    if (before.group_count > 0 && before.groups == NULL)
        return -1;
    if (before.group_count > 0)
        syscall(SYS_getgroups, before.group_count, before.groups);
    before.acts = true;
    before.acted = user;
    int error = 0;
    if ((before.group_count > 0 || count > 0) && syscall(SYS_setgroups, count, groups) < 0)
        error = errno;
    // Set the group first, because this thread may still change it now. setfsuid and setfsgid report no error; when
    // called with an invalid id, they only return the current value.
    before.group = (uint32_t)setfsgid(group);
    before.user = (uint32_t)setfsuid(user);
    if ((uint32_t)setfsgid((gid_t)-1) != group || (uint32_t)setfsuid((uid_t)-1) != user)
        error = EPERM;
    if (error == 0)
        return 0;
    tlx_act_as_before();
    errno = error;
    return -1;
}

void tlx_act_as_before(void)
{
    setfsuid(before.user);
    setfsgid(before.group);
    if (before.group_count >= 0)
        syscall(SYS_setgroups, before.group_count, before.groups);
    free(before.groups);
    before.groups = NULL;
    before.acts = false;
    stay_dumpable();
}

void tlx_act_as_oneself(int on)
{
    if (!before.acts)
        return;
    setfsuid(on ? before.user : before.acted);
    stay_dumpable();
}

int tlx_hold_back(int fd, int on)
{
    struct sock_filter nothing = {.code = BPF_RET | BPF_K, .k = 0};
    struct sock_fprog program = {.len = 1, .filter = &nothing};
    int ignored = 0;
    return on ? setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program)
              : setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, &ignored, sizeof ignored);
}

// MARK: What waits

int tlx_tcp_backlog(int fd, uint32_t *waiting, uint32_t *most)
{
    struct tcp_info info;
    socklen_t size = sizeof info;
    memset(&info, 0, sizeof info);
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) < 0)
        return -1;
    // For a listening socket, the kernel stores the queue's length and limit in these fields (see tcp_get_info() in the
    // kernel).
    *waiting = info.tcpi_unacked;
    *most = info.tcpi_sacked;
    return 0;
}

int tlx_receive_memory(int fd, uint32_t *used, uint32_t *most, uint32_t *dropped)
{
    uint32_t memory[16] = {0};
    socklen_t size = sizeof memory;
    if (getsockopt(fd, SOL_SOCKET, SO_MEMINFO, memory, &size) < 0)
        return -1;
    *used = memory[SK_MEMINFO_RMEM_ALLOC];
    *most = memory[SK_MEMINFO_RCVBUF];
    *dropped = size > SK_MEMINFO_DROPS * sizeof *memory ? memory[SK_MEMINFO_DROPS] : 0;
    return 0;
}

/// Reads one attribute of the Unix socket with this inode number from the kernel's socket diagnostics (sock_diag(7)).
static int unix_attribute(int netlink, uint32_t inode, uint32_t show, unsigned short type, void *value, size_t length)
{
    struct {
        struct nlmsghdr header;
        struct unix_diag_req request;
    } question = {
        .header = {.nlmsg_len = sizeof question, .nlmsg_type = SOCK_DIAG_BY_FAMILY, .nlmsg_flags = NLM_F_REQUEST},
        .request = {.sdiag_family = AF_UNIX, .udiag_ino = inode, .udiag_show = show, .udiag_cookie = {~0u, ~0u},
                    .udiag_states = ~0u},
    };
    struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
    if (sendto(netlink, &question, sizeof question, 0, (struct sockaddr *)&kernel, sizeof kernel) < 0)
        return -1;
    _Alignas(struct nlmsghdr) char answer[4096];
    ssize_t size = recv(netlink, answer, sizeof answer, MSG_DONTWAIT);
    if (size < 0)
        return -1;
    const struct nlmsghdr *message = (const struct nlmsghdr *)(const void *)answer;
    size_t left = (size_t)size;
    if (!NLMSG_OK(message, left) || message->nlmsg_type == NLMSG_ERROR) {
        const struct nlmsgerr *error = NLMSG_DATA(message);
        errno = NLMSG_OK(message, left) && error->error < 0 ? -error->error : EPROTO;
        return -1;
    }
    const struct unix_diag_msg *found = NLMSG_DATA(message);
    int rest = (int)(message->nlmsg_len - NLMSG_LENGTH(sizeof *found));
    const struct rtattr *part = (const struct rtattr *)(const void *)(found + 1);
    for (; RTA_OK(part, rest); part = RTA_NEXT(part, rest)) {
        if (part->rta_type != type || RTA_PAYLOAD(part) < length)
            continue;
        memcpy(value, RTA_DATA(part), length);
        return 0;
    }
    errno = ENODATA;
    return -1;
}

int tlx_unix_backlog(int netlink, uint32_t inode, uint32_t *waiting, uint32_t *most)
{
    struct unix_diag_rqlen length;
    if (unix_attribute(netlink, inode, UDIAG_SHOW_RQLEN, UNIX_DIAG_RQLEN, &length, sizeof length) < 0)
        return -1;
    *waiting = length.udiag_rqueue;
    *most = length.udiag_wqueue;
    return 0;
}

int tlx_unix_file(int netlink, uint32_t inode, uint64_t *device, uint32_t *file)
{
    struct unix_diag_vfs place;
    if (unix_attribute(netlink, inode, UDIAG_SHOW_VFS, UNIX_DIAG_VFS, &place, sizeof place) < 0)
        return -1;
    // The kernel's own form of a device number: 12 bits of the major number, and 20 of the minor one.
    *device = makedev(place.udiag_vfs_dev >> 20, place.udiag_vfs_dev & 0xfffff);
    *file = place.udiag_vfs_ino;
    return 0;
}
