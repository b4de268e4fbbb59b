// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "clinux.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

// The types of the kernel's audit records about Landlock (Documentation/admin-guide/LSM/landlock.rst). libc's headers
// may not define them.
#define LANDLOCK_ACCESS 1423
#define LANDLOCK_DOMAIN 1424
#define READLOG (1u << 0)  // AUDIT_NLGRP_READLOG (1) as a bit mask
#define ROOM (1 << 20)     // receive buffer in bytes

static int audit_socket(void)
{
    return socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_AUDIT);
}

int tlx_audit_listen(void)
{
    // Let the kernel drop all records that are not about Landlock, so that they neither wake torpord nor fill the
    // socket's buffer.
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_H | BPF_ABS, offsetof(struct nlmsghdr, nlmsg_type)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htons(LANDLOCK_ACCESS), 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htons(LANDLOCK_DOMAIN), 0, 1),
        BPF_STMT(BPF_RET | BPF_K, ~0u),
        BPF_STMT(BPF_RET | BPF_K, 0),
    };
    struct sock_fprog filter = {.len = sizeof steps / sizeof *steps, .filter = steps};
    int fd = audit_socket(), room = ROOM;
    if (fd < 0)
        return -1;
    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room) < 0)
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    // Attach the filter before joining the multicast group, so that no other record is queued in between.
    struct sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = READLOG};
    if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter) == 0
        && bind(fd, (const struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}

ssize_t tlx_audit_next(int fd, uint16_t *type, char *text, size_t size)
{
    struct nlmsghdr head;
    struct sockaddr_nl from;
    struct iovec parts[] = {{&head, sizeof head}, {text, size}};
    memset(&from, 0, sizeof from);
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2, .msg_name = &from, .msg_namelen = sizeof from};
    ssize_t got;
    do
        got = recvmsg(fd, &message, MSG_DONTWAIT);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return -1;
    // Use the size of the datagram instead of nlmsg_len, whose meaning in audit records differs from netlink(7). Accept
    // only datagrams from the kernel (port 0).
    bool is_own = from.nl_family != AF_NETLINK || from.nl_pid == 0;
    if ((size_t)got < sizeof head || !is_own) {
        *type = 0;
        return 0;
    }
    *type = head.nlmsg_type;
    return got - (ssize_t)sizeof head;
}

int tlx_audit_enabled(int patience)
{
    int fd = audit_socket();
    if (fd < 0)
        return -1;
    struct {
        struct nlmsghdr head;
        struct audit_status status;
    } message;
    memset(&message, 0, sizeof message);
    message.head = (struct nlmsghdr){.nlmsg_len = NLMSG_LENGTH(0), .nlmsg_type = AUDIT_GET, .nlmsg_flags = NLM_F_REQUEST};
    int result = -1;
    if (send(fd, &message.head, NLMSG_LENGTH(0), 0) >= 0) {
        struct pollfd wanted = {.fd = fd, .events = POLLIN};
        errno = ETIMEDOUT;
        if (poll(&wanted, 1, patience) > 0) {
            ssize_t got = recv(fd, &message, sizeof message, MSG_DONTWAIT);
            const struct nlmsgerr *failure = (const struct nlmsgerr *)&message.status;
            if (got >= (ssize_t)(sizeof message.head + 8) && message.head.nlmsg_type == AUDIT_GET)
                result = message.status.enabled != 0;
            else if (got >= (ssize_t)(sizeof message.head + sizeof failure->error)
                     && message.head.nlmsg_type == NLMSG_ERROR)
                errno = -failure->error;
        }
    }
    int error = errno;
    close(fd);
    errno = error;
    return result;
}
