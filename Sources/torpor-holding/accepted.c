// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "accepted.h"

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <string.h>
#include <sys/un.h>

static int diagnosis = -1; // a connection to the kernel that lists sockets

void open_diagnosis(void) { diagnosis = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG); }

// Whether a socket in the kernel's reply is an accepted connection to the listener: only accepted ones have an inode.
static int is_accepted(const struct nlmsghdr *message, const struct listener *listener)
{
    if (listener->address.ss_family == AF_UNIX) {
        const struct unix_diag_msg *found = NLMSG_DATA(message);
        const struct sockaddr_un *own = (const struct sockaddr_un *)&listener->address;
        size_t length = listener->address_size - offsetof(struct sockaddr_un, sun_path);
        int rest = (int)(message->nlmsg_len - NLMSG_LENGTH(sizeof *found));
        for (const struct rtattr *part = (const struct rtattr *)(found + 1); RTA_OK(part, rest);
             part = RTA_NEXT(part, rest)) {
            if (part->rta_type != UNIX_DIAG_NAME || !found->udiag_ino)
                continue;
            size_t size = RTA_PAYLOAD(part);
            // Either of the two names that are compared may end with a NUL.
            while (size > 1 && ((const char *)RTA_DATA(part))[size - 1] == 0)
                size--;
            size_t wanted = length;
            while (wanted > 1 && own->sun_path[wanted - 1] == 0)
                wanted--;
            return size == wanted && memcmp(RTA_DATA(part), own->sun_path, size) == 0;
        }
        return 0;
    }
    const struct inet_diag_msg *found = NLMSG_DATA(message);
    return found->idiag_inode != 0;
}

in_port_t port(const struct listener *listener)
{
    if (listener->address.ss_family == AF_INET)
        return ((const struct sockaddr_in *)&listener->address)->sin_port;
    if (listener->address.ss_family == AF_INET6)
        return ((const struct sockaddr_in6 *)&listener->address)->sin6_port;
    return 0;
}

int count_accepted(const struct listener *listener)
{
    int family = listener->address.ss_family;
    struct {
        struct nlmsghdr head;
        union {
            struct inet_diag_req_v2 inet;
            struct unix_diag_req local;
        } body;
    } request = {.head = {
        .nlmsg_type = SOCK_DIAG_BY_FAMILY, .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP}};
    if (family == AF_UNIX) {
        request.head.nlmsg_len = NLMSG_LENGTH(sizeof request.body.local);
        request.body.local = (struct unix_diag_req){
            .sdiag_family = AF_UNIX, .udiag_states = 1 << TCP_ESTABLISHED, .udiag_show = UDIAG_SHOW_NAME};
    } else if (family == AF_INET || family == AF_INET6) {
        request.head.nlmsg_len = NLMSG_LENGTH(sizeof request.body.inet);
        request.body.inet = (struct inet_diag_req_v2){
            .sdiag_family = (uint8_t)family, .sdiag_protocol = IPPROTO_TCP,
            .idiag_states = 1 << TCP_ESTABLISHED | 1 << TCP_CLOSE_WAIT};
        request.body.inet.id.idiag_sport = port(listener);
    } else {
        return -1;
    }
    if (diagnosis < 0 || send(diagnosis, &request, request.head.nlmsg_len, MSG_DONTWAIT) < 0)
        return -1;
    int count = 0;
    static char bytes[32768] __attribute__((aligned(8)));
    while (1) {
        ssize_t size = recv(diagnosis, bytes, sizeof bytes, MSG_DONTWAIT);
        if (size <= 0)
            return -1;
        int rest = (int)size;
        for (const struct nlmsghdr *message = (const struct nlmsghdr *)bytes; NLMSG_OK(message, rest);
             message = NLMSG_NEXT(message, rest)) {
            if (message->nlmsg_type == NLMSG_DONE)
                return count;
            if (message->nlmsg_type == NLMSG_ERROR)
                return -1;
            count += is_accepted(message, listener);
        }
    }
}
