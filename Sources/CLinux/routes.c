// SPDX-License-Identifier: Apache-2.0

#include "clinux.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int netlink_socket(unsigned groups)
{
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
    if (fd < 0)
        return -1;
    struct sockaddr_nl here = {.nl_family = AF_NETLINK, .nl_groups = groups};
    if (bind(fd, (struct sockaddr *)&here, sizeof here) < 0) {
        int problem = errno;
        close(fd);
        errno = problem;
        return -1;
    }
    return fd;
}

int tlx_route_socket(void) { return netlink_socket(RTMGRP_IPV4_ROUTE | RTMGRP_IPV6_ROUTE); }

int tlx_link_socket(void) { return netlink_socket(RTMGRP_LINK); }

int tlx_link_news(int fd)
{
    char buffer[16 << 10];
    int is_news = 0;
    for (int turn = 0; turn < 64; turn++) {
        struct sockaddr_nl from = {0};
        socklen_t size = sizeof from;
        ssize_t count = recvfrom(fd, buffer, sizeof buffer, 0, (struct sockaddr *)&from, &size);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0 && errno != ENOBUFS)
            return errno == EAGAIN ? is_news : -1;
        // Treat lost messages as a change. Trust a message only if the kernel sent it (port 0).
        if (count < 0 || from.nl_pid == 0)
            is_news = 1;
    }
    return is_news;
}

// Whether a netlink message announces a new route to other machines.
static int is_way(const struct nlmsghdr *message)
{
    // Skip routes that replace an existing one, because every renewal of an address lease replaces routes.
    if (message->nlmsg_type != RTM_NEWROUTE || message->nlmsg_flags & NLM_F_REPLACE || message->nlmsg_len < NLMSG_LENGTH(sizeof(struct rtmsg)))
        return 0;
    const struct rtmsg *route = NLMSG_DATA(message);
    // Skip cloned routes, and fe80::/64, which every interface has, including those of containers.
    if (route->rtm_type != RTN_UNICAST || route->rtm_flags & RTM_F_CLONED)
        return 0;
    int left = (int)(message->nlmsg_len - NLMSG_LENGTH(sizeof *route));
    for (const struct rtattr *part = RTM_RTA(route); RTA_OK(part, left); part = RTA_NEXT(part, left)) {
        const unsigned char *to = RTA_DATA(part);
        if (part->rta_type != RTA_DST || route->rtm_family != AF_INET6 || RTA_PAYLOAD(part) < 16)
            continue;
        // Skip ::1, which belongs to the loopback interface and is no route to another machine.
        if ((to[0] == 0xfe && (to[1] & 0xc0) == 0x80) || memcmp(to, &in6addr_loopback, 16) == 0)
            return 0;
    }
    return 1;
}

int tlx_route_news(int fd)
{
    _Alignas(struct nlmsghdr) char buffer[16 << 10];
    int is_news = 0;
    for (int turn = 0; turn < 64; turn++) {
        struct sockaddr_nl from = {0};
        socklen_t size = sizeof from;
        ssize_t count = recvfrom(fd, buffer, sizeof buffer, 0, (struct sockaddr *)&from, &size);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0 && errno == ENOBUFS) {
            // Messages were lost. One of them may have announced a new route, so report a new route.
            is_news = 1;
            continue;
        }
        if (count < 0)
            return errno == EAGAIN ? is_news : -1;
        // Trust only messages from the kernel (port 0).
        if (count == 0 || from.nl_pid != 0)
            continue;
        unsigned left = (unsigned)count;
        for (struct nlmsghdr *message = (struct nlmsghdr *)buffer; NLMSG_OK(message, left);
             message = NLMSG_NEXT(message, left))
            is_news |= is_way(message);
    }
    return is_news;
}
