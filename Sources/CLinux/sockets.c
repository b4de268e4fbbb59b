// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "clinux.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#ifndef SO_PEERGROUPS
#define SO_PEERGROUPS 59
#endif

_Static_assert(sizeof(struct ucred) == sizeof(tlx_credentials), "tlx_credentials has the layout of struct ucred");

ssize_t tlx_receive(int fd, void *buffer, size_t size, int *fds, size_t *fd_count, tlx_credentials *credentials,
                    int *truncated, int64_t *nanoseconds, int peek) {
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int) * 253) + CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(sizeof(struct timespec))];
    } control;
    size_t without_fds = CMSG_SPACE(sizeof(struct ucred)) + (nanoseconds ? CMSG_SPACE(sizeof(struct timespec)) : 0);
    struct iovec part = {.iov_base = buffer, .iov_len = size};
    size_t capacity = *fd_count, count = 0;
    // If no descriptors are wanted, provide no space for them. The kernel then drops them itself, without close(2) and
    // so without a FUSE FLUSH, which could block. Only a TCP socket with SO_LINGER and unsent data, which its sender
    // has already closed, may still block.
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes,
                             .msg_controllen = capacity > 0 ? sizeof control.bytes : without_fds};
    *fd_count = 0;
    *truncated = 0;
    memset(credentials, 0, sizeof *credentials);
    credentials->uid = credentials->gid = (uint32_t)-1;
    ssize_t got = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC | (peek ? MSG_PEEK : 0));
    if (got < 0)
        return -1;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c)) {
        if (c->cmsg_level != SOL_SOCKET)
            continue;
        if (c->cmsg_type == SCM_TIMESTAMPNS && nanoseconds && c->cmsg_len >= CMSG_LEN(sizeof(struct timespec))) {
            struct timespec time;
            memcpy(&time, CMSG_DATA(c), sizeof time);
            *nanoseconds = (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
        }
        if (c->cmsg_type == SCM_CREDENTIALS && c->cmsg_len >= CMSG_LEN(sizeof(struct ucred)))
            memcpy(credentials, CMSG_DATA(c), sizeof *credentials);
        if (c->cmsg_type == SCM_RIGHTS) {
            size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
            for (size_t i = 0; i < n; i++) {
                int received;
                memcpy(&received, CMSG_DATA(c) + i * sizeof(int), sizeof received);
                if (count < capacity) {
                    fds[count++] = received;
                } else {
                    close(received);
                    *truncated |= 2;
                }
            }
        }
    }
    *fd_count = count;
    if (message.msg_flags & MSG_TRUNC)
        *truncated |= 1;
    if (message.msg_flags & MSG_CTRUNC)
        *truncated |= 2;
    return got;
}

int tlx_stamp(int fd, int is_on) {
    return setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &is_on, sizeof is_on);
}

ssize_t tlx_read_plain(int fd, void *buffer, size_t size, int *has_descriptors) {
    struct iovec part = {.iov_base = buffer, .iov_len = size};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    *has_descriptors = 0;
    // The kernel looks no further than to the first data with descriptors, and says with MSG_CTRUNC that there is no
    // room for them. They stay in the queue, so the kernel's reference is not the last one.
    ssize_t size_of_plain = recvmsg(fd, &message, MSG_PEEK | MSG_DONTWAIT);
    if (size_of_plain <= 0)
        return size_of_plain;
    if (message.msg_flags & MSG_CTRUNC) {
        *has_descriptors = 1;
        return 0;
    }
    return recv(fd, buffer, (size_t)size_of_plain, MSG_DONTWAIT);
}

int tlx_read_urgent_inline(int fd) {
    int one = 1;
    return setsockopt(fd, SOL_SOCKET, SO_OOBINLINE, &one, sizeof one);
}

int tlx_drop(int fd) {
    char none;
    return recv(fd, &none, 0, MSG_DONTWAIT) < 0 ? -1 : 0;
}

ssize_t tlx_send(int fd, const void *buffer, size_t size, const int *fds, size_t fd_count, int wait) {
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int) * 253)];
    } control;
    struct iovec part = {.iov_base = (void *)buffer, .iov_len = size};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (fd_count > 253) {
        errno = E2BIG;
        return -1;
    }
    if (fd_count > 0) {
        memset(&control, 0, sizeof control);
        message.msg_control = control.bytes;
        message.msg_controllen = CMSG_SPACE(sizeof(int) * fd_count);
        struct cmsghdr *c = CMSG_FIRSTHDR(&message);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int) * fd_count);
        memcpy(CMSG_DATA(c), fds, sizeof(int) * fd_count);
    }
    return sendmsg(fd, &message, MSG_NOSIGNAL | (wait ? 0 : MSG_DONTWAIT));
}

static int unix_address(struct sockaddr_un *address, socklen_t *size, const char *path, size_t length) {
    memset(address, 0, sizeof *address);
    address->sun_family = AF_UNIX;
    if (length == 0) {
        errno = EINVAL;
        return -1;
    }
    if (length >= sizeof address->sun_path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(address->sun_path, path, length);
    if (path[0] == '@')
        address->sun_path[0] = 0;
    *size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length + (path[0] == '@' ? 0 : 1));
    return 0;
}

int tlx_peer_credentials(int fd, tlx_credentials *credentials) {
    socklen_t size = sizeof *credentials;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, credentials, &size);
}

int tlx_peer_groups(int fd, uint32_t *groups, size_t capacity) {
    socklen_t size = (socklen_t)(capacity * sizeof *groups);
    int result = getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &size);
    if (result < 0 && errno != ERANGE)
        return -1;
    return (int)(size / sizeof *groups);
}

int tlx_unix_bind(int fd, const char *path, size_t length) {
    struct sockaddr_un address;
    socklen_t size;
    if (unix_address(&address, &size, path, length) < 0)
        return -1;
    return bind(fd, (struct sockaddr *)&address, size);
}

int tlx_unix_connect(int fd, const char *path, size_t length) {
    struct sockaddr_un address;
    socklen_t size;
    if (unix_address(&address, &size, path, length) < 0)
        return -1;
    return connect(fd, (struct sockaddr *)&address, size);
}

static int socket_type(int kind) {
    return (kind == 0 ? SOCK_STREAM : kind == 1 ? SOCK_DGRAM : SOCK_SEQPACKET) | SOCK_CLOEXEC;
}

int tlx_unix_socket(int kind, int non_blocking) {
    return socket(AF_UNIX, socket_type(kind) | (non_blocking ? SOCK_NONBLOCK : 0), 0);
}
int tlx_unix_pair(int kind, int fds[2]) { return socketpair(AF_UNIX, socket_type(kind), 0, fds); }
int tlx_accept(int fd) { return accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK); }

static int tcp_address(struct sockaddr_storage *storage, socklen_t *size, const char *address, uint16_t port) {
    memset(storage, 0, sizeof *storage);
    struct sockaddr_in *v4 = (struct sockaddr_in *)storage;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)storage;
    if (inet_pton(AF_INET, address, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons(port);
        *size = sizeof *v4;
        return 0;
    }
    if (inet_pton(AF_INET6, address, &v6->sin6_addr) == 1) {
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons(port);
        *size = sizeof *v6;
        return 0;
    }
    errno = EINVAL;
    return -1;
}

static int close_keeping_errno(int fd) {
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}

int tlx_tcp_connect(const char *address, uint16_t port) {
    struct sockaddr_storage storage;
    socklen_t size;
    if (tcp_address(&storage, &size, address, port) < 0)
        return -1;
    int fd = socket(storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    if (connect(fd, (struct sockaddr *)&storage, size) < 0 && errno != EINPROGRESS)
        return close_keeping_errno(fd);
    return fd;
}

int tlx_tcp_listen(const char *address, uint16_t port, int backlog, int reuse_port) {
    struct sockaddr_storage storage;
    socklen_t size;
    int one = 1;
    if (tcp_address(&storage, &size, address, port) < 0)
        return -1;
    int fd = socket(storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) < 0 ||
        (reuse_port && setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof one) < 0) ||
        bind(fd, (struct sockaddr *)&storage, size) < 0 || listen(fd, backlog) < 0)
        return close_keeping_errno(fd);
    return fd;
}

int tlx_socket_error(int fd) {
    int error = 0;
    socklen_t size = sizeof error;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0)
        return -1;
    return error;
}

int tlx_tcp_port(int fd) {
    struct sockaddr_storage storage;
    socklen_t size = sizeof storage;
    if (getsockname(fd, (struct sockaddr *)&storage, &size) < 0)
        return -1;
    if (storage.ss_family == AF_INET)
        return ntohs(((struct sockaddr_in *)&storage)->sin_port);
    if (storage.ss_family == AF_INET6)
        return ntohs(((struct sockaddr_in6 *)&storage)->sin6_port);
    errno = EAFNOSUPPORT;
    return -1;
}

// MARK: Socket diagnostics

int tlx_diagnostics_socket(void) { return socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG); }

struct elsewhere {
    int pidfd;
    int netlink;
    int error;
};

static void *open_elsewhere(void *argument)
{
    struct elsewhere *one = argument;
    one->netlink = setns(one->pidfd, CLONE_NEWNET) == 0 ? tlx_diagnostics_socket() : -1;
    one->error = errno;
    return NULL;
}

int tlx_diagnostics_socket_of(int pidfd)
{
    struct elsewhere one = {.pidfd = pidfd, .netlink = -1};
    pthread_t thread;
    sigset_t all, before;
    // Block all signals, because this thread must not handle signals of the process.
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&thread, NULL, open_elsewhere, &one);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error == 0)
        pthread_join(thread, NULL);
    errno = error ? error : one.error;
    return one.netlink;
}

static void take_attributes(const struct nlmsghdr *message, tlx_tcp_socket *to)
{
    const struct inet_diag_msg *found = NLMSG_DATA(message);
    int left = (int)(message->nlmsg_len - NLMSG_LENGTH(sizeof *found));
    const struct rtattr *part = (const struct rtattr *)(const void *)(found + 1);
    for (; RTA_OK(part, left); part = RTA_NEXT(part, left)) {
        struct tcp_info info;
        size_t needed = offsetof(struct tcp_info, tcpi_last_data_recv) + sizeof info.tcpi_last_data_recv;
        if (part->rta_type == INET_DIAG_SKV6ONLY && RTA_PAYLOAD(part) >= 1)
            to->is_v6_only = *(const uint8_t *)RTA_DATA(part);
        if (part->rta_type != INET_DIAG_INFO || found->idiag_state != tlx_tcp_established ||
            RTA_PAYLOAD(part) < needed)
            continue;
        memcpy(&info, RTA_DATA(part), needed);
        to->milliseconds = info.tcpi_last_data_sent < info.tcpi_last_data_recv ? info.tcpi_last_data_sent
                                                                               : info.tcpi_last_data_recv;
    }
}

static tlx_tcp_end tcp_end(const struct inet_diag_msg *found, const uint32_t address[4], uint16_t port)
{
    uint64_t words[4] = {0, 0, 0xffff, ntohl(address[0])};
    for (int i = 0; i < 4 && found->idiag_family == AF_INET6; i++)
        words[i] = ntohl(address[i]);
    return (tlx_tcp_end){
        .high = words[0] << 32 | words[1], .low = words[2] << 32 | words[3], .port = ntohs(port)};
}

int tlx_tcp_ask(int netlink, int version, uint32_t states)
{
    struct {
        struct nlmsghdr header;
        struct inet_diag_req_v2 request;
    } question = {
        .header = {.nlmsg_len = sizeof question,
                   .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                   .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
        .request = {.sdiag_family = version == 6 ? AF_INET6 : AF_INET,
                    .sdiag_protocol = IPPROTO_TCP,
                    .idiag_ext = states & 1 << tlx_tcp_established ? 1 << (INET_DIAG_INFO - 1) : 0,
                    .idiag_states = states},
    };
    struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
    return sendto(netlink, &question, sizeof question, 0, (struct sockaddr *)&kernel, sizeof kernel) < 0 ? -1 : 0;
}

// Converts an address to the format of inet_diag. Returns 0 for other address families.
static int diagnostics_address(const struct sockaddr_storage *from, uint32_t address[4], uint16_t *port)
{
    memset(address, 0, 4 * sizeof *address);
    if (from->ss_family == AF_INET) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)from;
        memcpy(address, &v4->sin_addr, sizeof v4->sin_addr);
        *port = v4->sin_port;
        return 1;
    }
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)from;
    if (from->ss_family != AF_INET6)
        return 0;
    memcpy(address, &v6->sin6_addr, sizeof v6->sin6_addr);
    *port = v6->sin6_port;
    return 1;
}

static int is_loopback(int family, const uint32_t address[4])
{
    if (family == AF_INET)
        return ntohl(address[0]) >> 24 == 127;
    struct in6_addr v6;
    memcpy(&v6, address, sizeof v6);
    return IN6_IS_ADDR_LOOPBACK(&v6) || (IN6_IS_ADDR_V4MAPPED(&v6) && ntohl(address[3]) >> 24 == 127);
}

int tlx_tcp_peer_user(int fd, uint32_t *user)
{
    struct sockaddr_storage own, other;
    socklen_t own_size = sizeof own, other_size = sizeof other;
    struct {
        struct nlmsghdr header;
        struct inet_diag_req_v2 request;
    } question = {
        .header = {.nlmsg_len = sizeof question, .nlmsg_type = SOCK_DIAG_BY_FAMILY, .nlmsg_flags = NLM_F_REQUEST},
        .request = {.sdiag_protocol = IPPROTO_TCP,
                    .idiag_states = UINT32_MAX,
                    .id = {.idiag_cookie = {INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE}}},
    };
    struct inet_diag_sockid *id = &question.request.id;
    if (getsockname(fd, (struct sockaddr *)&own, &own_size) < 0 ||
        getpeername(fd, (struct sockaddr *)&other, &other_size) < 0)
        return -1;
    // Search for the peer's socket, whose local address is this socket's remote address.
    if (!diagnostics_address(&other, id->idiag_src, &id->idiag_sport) ||
        !diagnostics_address(&own, id->idiag_dst, &id->idiag_dport)) {
        errno = EAFNOSUPPORT;
        return -1;
    }
    // A connection within this machine has the same address at both ends, or one in 127.0.0.0/8.
    if (memcmp(id->idiag_src, id->idiag_dst, sizeof id->idiag_src) != 0 && !is_loopback(other.ss_family, id->idiag_src))
        return 0;
    question.request.sdiag_family = (uint8_t)other.ss_family;
    int netlink = tlx_diagnostics_socket();
    if (netlink < 0)
        return -1;
    struct sockaddr_nl kernel = {.nl_family = AF_NETLINK}, from = {0};
    socklen_t from_size = sizeof from;
    _Alignas(struct nlmsghdr) char answer[4096];
    ssize_t size = sendto(netlink, &question, sizeof question, 0, (struct sockaddr *)&kernel, sizeof kernel);
    // The kernel queues its answer before sendto returns, so do not block. No other process can send to this new
    // socket.
    if (size >= 0)
        size = recvfrom(netlink, answer, sizeof answer, MSG_DONTWAIT, (struct sockaddr *)&from, &from_size);
    if (size < 0)
        return close_keeping_errno(netlink);
    close(netlink);
    const struct nlmsghdr *message = (const struct nlmsghdr *)(const void *)answer;
    errno = ENOENT;
    if (from.nl_pid != 0 || !NLMSG_OK(message, (size_t)size) || message->nlmsg_type != SOCK_DIAG_BY_FAMILY ||
        message->nlmsg_len < NLMSG_LENGTH(sizeof(struct inet_diag_msg)))
        return -1;
    const struct inet_diag_msg *found = NLMSG_DATA(message);
    // If the connection does not exist, the kernel returns the listening socket instead. If no process has the
    // connection open, the kernel reports root as its user.
    if (found->id.idiag_sport != id->idiag_sport || found->id.idiag_dport != id->idiag_dport || found->idiag_inode == 0)
        return -1;
    *user = found->idiag_uid;
    return 1;
}

ssize_t tlx_tcp_answer(int netlink, tlx_tcp_socket *to, int *is_last)
{
    *is_last = 0;
    // The kernel fills the reader's buffer up to this size. Each socket takes more than 64 bytes in it.
    _Alignas(struct nlmsghdr) char answer[32 << 10];
    struct sockaddr_nl from;
    ssize_t size;
    do {
        socklen_t from_size = sizeof from;
        // The kernel queues the next part of the answer when the previous one is read. If no part is queued, no further
        // one will come, and a blocking read would never return.
        size = recvfrom(netlink, answer, sizeof answer, MSG_DONTWAIT, (struct sockaddr *)&from, &from_size);
    } while (size >= 0 && from.nl_pid != 0);
    if (size < 0)
        return -1;
    size_t left = (size_t)size;
    size_t count = 0;
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
        if (message->nlmsg_type != SOCK_DIAG_BY_FAMILY ||
            message->nlmsg_len < NLMSG_LENGTH(sizeof(struct inet_diag_msg)) || count == tlx_tcp_piece)
            continue;
        const struct inet_diag_msg *found = NLMSG_DATA(message);
        tlx_tcp_socket *next = &to[count++];
        *next = (tlx_tcp_socket){
            .inode = found->idiag_inode,
            .milliseconds = found->idiag_state == tlx_tcp_time_wait ? found->idiag_expires : UINT32_MAX,
            .local = tcp_end(found, found->id.idiag_src, found->id.idiag_sport),
            .remote = tcp_end(found, found->id.idiag_dst, found->id.idiag_dport),
            .state = found->idiag_state,
        };
        take_attributes(message, next);
    }
    return (ssize_t)count;
}
