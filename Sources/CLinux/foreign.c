// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "clinux.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <linux/unix_diag.h>
#include <linux/vm_sockets.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438
#endif
#ifndef UDIAG_SHOW_NAME
#define UDIAG_SHOW_NAME 1
#endif

// MARK: Sockets of other processes

int tlx_pidfd_getfd(int pidfd, int fd) { return (int)syscall(SYS_pidfd_getfd, pidfd, fd, 0); }

// The FNV-1a hash of a name. Its top bit is set, so that it is never 0 and never equal to a port number.
uint64_t tlx_place_of_name(const char *name, size_t length)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)name[i]) * UINT64_C(0x100000001b3);
    return hash | UINT64_C(1) << 63;
}

// Copies a name, and replaces control characters in it, because a terminal could interpret them.
static void copy_readable(char *to, size_t room, const char *name, size_t length)
{
    size_t count = length < room - 1 ? length : room - 1;
    for (size_t i = 0; i < count; i++)
        to[i] = (unsigned char)name[i] < 32 || name[i] == 127 ? '?' : name[i];
    to[count] = 0;
}

static uint64_t describe(const struct sockaddr_storage *address, socklen_t size, char text[tlx_address_text])
{
    char host[INET6_ADDRSTRLEN] = "";
    text[0] = 0;
    switch (address->ss_family) {
    case AF_INET: {
        const struct sockaddr_in *v4 = (const void *)address;
        inet_ntop(AF_INET, &v4->sin_addr, host, sizeof host);
        snprintf(text, tlx_address_text, "%s:%u", host, ntohs(v4->sin_port));
        return ntohs(v4->sin_port);
    }
    case AF_INET6: {
        const struct sockaddr_in6 *v6 = (const void *)address;
        inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof host);
        snprintf(text, tlx_address_text, "[%s]:%u", host, ntohs(v6->sin6_port));
        return ntohs(v6->sin6_port);
    }
    case AF_UNIX: {
        const struct sockaddr_un *local = (const void *)address;
        size_t start = offsetof(struct sockaddr_un, sun_path);
        if (size <= start)
            return 0;
        size_t length = size - start;
        if (local->sun_path[0] == 0) {
            text[0] = '@';
            copy_readable(text + 1, tlx_address_text - 1, local->sun_path + 1, length - 1);
        } else {
            length = strnlen(local->sun_path, length);
            copy_readable(text, tlx_address_text, local->sun_path, length);
        }
        return tlx_place_of_name(local->sun_path, length);
    }
    case AF_VSOCK: {
        const struct sockaddr_vm *vm = (const void *)address;
        snprintf(text, tlx_address_text, "vsock:%u:%u", vm->svm_cid, vm->svm_port);
        return (uint64_t)vm->svm_port | UINT64_C(1) << 62;
    }
    default: return 0;
    }
}

static int option(int fd, int name)
{
    int value = 0;
    socklen_t size = sizeof value;
    return getsockopt(fd, SOL_SOCKET, name, &value, &size) < 0 ? -1 : value;
}

#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71
#endif

// The kernel's number for the network namespace of a socket; 0 if the kernel does not report it.
static uint64_t network_of(int fd)
{
    uint64_t value = 0;
    socklen_t size = sizeof value;
    return getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, &value, &size) < 0 ? 0 : value;
}

// The number is cached, because this process never changes its network namespace.
static uint64_t own_network(void)
{
    static _Atomic uint64_t known;
    if (known != 0)
        return known;
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return 0;
    known = network_of(fd);
    close(fd);
    return known;
}

int tlx_socket_facts_of(int fd, tlx_socket_facts *to)
{
    struct sockaddr_storage address;
    socklen_t size = sizeof address;
    memset(to, 0, sizeof *to);
    int type = option(fd, SO_TYPE);
    if (type < 0 || getsockname(fd, (struct sockaddr *)&address, &size) < 0)
        return -1;
    switch (address.ss_family) {
    case AF_INET:
    case AF_INET6: to->family = tlx_family_internet; break;
    case AF_UNIX: to->family = tlx_family_unix; break;
    case AF_VSOCK: to->family = tlx_family_vsock; break;
    default: to->family = tlx_family_other; break;
    }
    to->type = type == SOCK_STREAM ? 0 : type == SOCK_DGRAM ? 1 : type == SOCK_SEQPACKET ? 2 : 3;
    to->listens = option(fd, SO_ACCEPTCONN) == 1;
    if (to->listens && to->family == tlx_family_internet) {
        uint64_t own = own_network();
        to->is_elsewhere = own != 0 && network_of(fd) != own;
    }
    to->place = describe(&address, size, to->local);
    size = sizeof address;
    if (!to->listens && getpeername(fd, (struct sockaddr *)&address, &size) == 0) {
        to->is_connected = 1;
        describe(&address, size, to->remote);
    }
    return 0;
}

// Reads the times of a TCP connection from tcp_info, as far as the kernel reports them.
static void take_times(const void *from, size_t size, tlx_socket_traffic *to)
{
    struct tcp_info info;
    memset(&info, 0, sizeof info);
    memcpy(&info, from, size < sizeof info ? size : sizeof info);
    uint32_t sent = info.tcpi_last_data_sent, received = info.tcpi_last_data_recv;
    if (size >= offsetof(struct tcp_info, tcpi_last_data_recv) + sizeof info.tcpi_last_data_recv)
        to->milliseconds = sent < received ? sent : received;
    if (size < offsetof(struct tcp_info, tcpi_bytes_sent) + sizeof info.tcpi_bytes_sent ||
        info.tcpi_bytes_received == 0)
        return;
    to->received = received;
    // Until the first byte is sent, tcpi_last_data_sent is the time since the connection was opened.
    if (info.tcpi_bytes_sent == 0 || received < sent)
        to->unanswered = received;
    else if (received == sent)
        to->tied = received;
}

int tlx_socket_traffic_of(int fd, tlx_socket_traffic *to)
{
    int count = 0;
    struct tcp_info info;
    socklen_t size = sizeof info;
    to->unread = ioctl(fd, SIOCINQ, &count) < 0 ? 0 : (uint32_t)count;
    to->unsent = ioctl(fd, SIOCOUTQ, &count) < 0 ? 0 : (uint32_t)count;
    to->milliseconds = to->received = to->unanswered = to->tied = UINT32_MAX;
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0)
        take_times(&info, size, to);
    return 0;
}

// MARK: Queues of all sockets

int tlx_queue_ask(int netlink, int kind)
{
    struct {
        struct nlmsghdr header;
        union {
            struct inet_diag_req_v2 inet;
            struct unix_diag_req local;
        } request;
    } question;
    struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
    memset(&question, 0, sizeof question);
    question.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
    question.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
    if (kind == tlx_queue_unix) {
        question.header.nlmsg_len = NLMSG_LENGTH(sizeof question.request.local);
        question.request.local.sdiag_family = AF_UNIX;
        question.request.local.udiag_states = UINT32_MAX;
        question.request.local.udiag_show =
            UDIAG_SHOW_NAME | UDIAG_SHOW_VFS | UDIAG_SHOW_PEER | UDIAG_SHOW_RQLEN;
    } else {
        int is_tcp = kind == tlx_queue_tcp4 || kind == tlx_queue_tcp6;
        question.header.nlmsg_len = NLMSG_LENGTH(sizeof question.request.inet);
        question.request.inet.sdiag_family = kind == tlx_queue_tcp6 || kind == tlx_queue_udp6 ? AF_INET6 : AF_INET;
        question.request.inet.sdiag_protocol = is_tcp ? IPPROTO_TCP : IPPROTO_UDP;
        question.request.inet.idiag_states =
            is_tcp ? 1 << tlx_tcp_established | 1 << tlx_tcp_close_wait | 1 << tlx_tcp_listening : UINT32_MAX;
        if (is_tcp)
            question.request.inet.idiag_ext = 1 << (INET_DIAG_INFO - 1) | 1 << (INET_DIAG_SKMEMINFO - 1);
    }
    return sendto(netlink, &question, question.header.nlmsg_len, 0, (struct sockaddr *)&kernel, sizeof kernel) < 0
               ? -1
               : 0;
}

static const tlx_socket_traffic no_traffic = {
    .milliseconds = UINT32_MAX, .received = UINT32_MAX, .unanswered = UINT32_MAX, .tied = UINT32_MAX};

static void take_inet(const struct nlmsghdr *message, int kind, tlx_socket_queue *to)
{
    const struct inet_diag_msg *found = NLMSG_DATA(message);
    *to = (tlx_socket_queue){
        .inode = found->idiag_inode,
        .unread = found->idiag_rqueue,
        .place = ntohs(found->id.idiag_sport),
        .cookie = (uint64_t)found->id.idiag_cookie[1] << 32 | found->id.idiag_cookie[0],
        .state = found->idiag_state,
        .family = tlx_family_internet,
        .type = kind == tlx_queue_tcp4 || kind == tlx_queue_tcp6 ? 0 : 1,
        .traffic = no_traffic,
    };
    if (to->type != 0 || to->state == tlx_tcp_listening)
        return;
    to->traffic.unread = found->idiag_rqueue;
    to->traffic.unsent = found->idiag_wqueue;
    int left = (int)(message->nlmsg_len - NLMSG_LENGTH(sizeof *found));
    const struct rtattr *part = (const struct rtattr *)(const void *)(found + 1);
    for (; RTA_OK(part, left); part = RTA_NEXT(part, left)) {
        if (part->rta_type == INET_DIAG_INFO)
            take_times(RTA_DATA(part), RTA_PAYLOAD(part), &to->traffic);
        uint32_t memory[SK_MEMINFO_WMEM_QUEUED + 1];
        if (part->rta_type == INET_DIAG_SKMEMINFO && RTA_PAYLOAD(part) >= sizeof memory) {
            memcpy(memory, RTA_DATA(part), sizeof memory);
            // This is the kernel's own condition for a writable socket (sk_stream_is_writeable).
            uint32_t queued = memory[SK_MEMINFO_WMEM_QUEUED], room = memory[SK_MEMINFO_SNDBUF];
            to->is_full = queued > room || room - queued < queued >> 1;
        }
    }
}

static void take_unix(const struct nlmsghdr *message, tlx_socket_queue *to)
{
    const struct unix_diag_msg *found = NLMSG_DATA(message);
    *to = (tlx_socket_queue){
        .inode = found->udiag_ino,
        .state = found->udiag_state,
        .family = tlx_family_unix,
        .type = found->udiag_type == SOCK_STREAM ? 0 : found->udiag_type == SOCK_DGRAM ? 1 : 2,
        .traffic = no_traffic,
    };
    int left = (int)(message->nlmsg_len - NLMSG_LENGTH(sizeof *found));
    const struct rtattr *part = (const struct rtattr *)(const void *)(found + 1);
    for (; RTA_OK(part, left); part = RTA_NEXT(part, left)) {
        if (part->rta_type == UNIX_DIAG_NAME) {
            size_t length = RTA_PAYLOAD(part);
            const char *name = RTA_DATA(part);
            if (length > 0)
                to->place = tlx_place_of_name(name, name[0] ? strnlen(name, length) : length);
        }
        if (part->rta_type == UNIX_DIAG_PEER && RTA_PAYLOAD(part) >= sizeof to->peer)
            memcpy(&to->peer, RTA_DATA(part), sizeof to->peer);
        if (part->rta_type == UNIX_DIAG_VFS && RTA_PAYLOAD(part) >= sizeof(struct unix_diag_vfs)) {
            struct unix_diag_vfs file;
            memcpy(&file, RTA_DATA(part), sizeof file);
            to->file = (uint64_t)file.udiag_vfs_dev << 32 | file.udiag_vfs_ino;
        }
        if (part->rta_type == UNIX_DIAG_RQLEN && RTA_PAYLOAD(part) >= sizeof(struct unix_diag_rqlen)) {
            struct unix_diag_rqlen queue;
            memcpy(&queue, RTA_DATA(part), sizeof queue);
            to->unread = queue.udiag_rqueue;
            if (found->udiag_state != tlx_tcp_listening)
                to->traffic.unread = queue.udiag_rqueue;
        }
    }
}

ssize_t tlx_queue_answer(int netlink, int kind, tlx_socket_queue *to, int *is_last)
{
    *is_last = 0;
    _Alignas(struct nlmsghdr) char answer[32 << 10];
    struct sockaddr_nl from;
    ssize_t size;
    do {
        socklen_t from_size = sizeof from;
        size = recvfrom(netlink, answer, sizeof answer, MSG_DONTWAIT, (struct sockaddr *)&from, &from_size);
    } while (size >= 0 && from.nl_pid != 0);
    if (size < 0)
        return -1;
    size_t left = (size_t)size, count = 0;
    size_t least = kind == tlx_queue_unix ? sizeof(struct unix_diag_msg) : sizeof(struct inet_diag_msg);
    for (const struct nlmsghdr *message = (const struct nlmsghdr *)(const void *)answer; NLMSG_OK(message, left);
         message = NLMSG_NEXT(message, left)) {
        if (message->nlmsg_type == NLMSG_DONE || message->nlmsg_type == NLMSG_ERROR) {
            int error = 0;
            if (message->nlmsg_len >= NLMSG_LENGTH(sizeof error))
                memcpy(&error, NLMSG_DATA(message), sizeof error);
            if (error < 0) {
                errno = -error;
                return -1;
            }
            *is_last = 1;
            break;
        }
        if (message->nlmsg_type != SOCK_DIAG_BY_FAMILY || message->nlmsg_len < NLMSG_LENGTH(least) ||
            count == tlx_queue_piece)
            continue;
        if (kind == tlx_queue_unix)
            take_unix(message, &to[count++]);
        else
            take_inet(message, kind, &to[count++]);
    }
    return (ssize_t)count;
}
