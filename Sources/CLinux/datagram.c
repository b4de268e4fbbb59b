#define _GNU_SOURCE
#include "clinux_datagram.h"

#include <errno.h>
#include <linux/kcmp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

int clinux_datagram_receive(int fd, void *buffer, size_t capacity, struct clinux_datagram *out) {
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(sizeof(int) * CLINUX_DATAGRAM_MAX_DESCRIPTORS)];
    } control;
    struct iovec vector = {buffer, capacity};
    struct msghdr message = {
        .msg_iov = &vector,
        .msg_iovlen = 1,
        .msg_control = &control,
        .msg_controllen = sizeof control,
    };
    out->length = 0;
    out->truncated = 0;
    out->lost_control = 0;
    out->has_credentials = 0;
    out->descriptor_count = 0;
    ssize_t got;
    do {
        got = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    } while (got < 0 && errno == EINTR);
    if (got < 0) return errno;
    out->length = (size_t)got;
    out->truncated = (message.msg_flags & MSG_TRUNC) != 0;
    out->lost_control = (message.msg_flags & MSG_CTRUNC) != 0;
    for (struct cmsghdr *item = CMSG_FIRSTHDR(&message); item; item = CMSG_NXTHDR(&message, item)) {
        if (item->cmsg_level != SOL_SOCKET) continue;
        if (item->cmsg_type == SCM_CREDENTIALS && item->cmsg_len == CMSG_LEN(sizeof(struct ucred))) {
            struct ucred sender;
            memcpy(&sender, CMSG_DATA(item), sizeof sender);
            out->has_credentials = 1;
            out->pid = sender.pid;
            out->uid = sender.uid;
            out->gid = sender.gid;
        } else if (item->cmsg_type == SCM_RIGHTS) {
            size_t count = (item->cmsg_len - CMSG_LEN(0)) / sizeof(int);
            const unsigned char *data = CMSG_DATA(item);
            for (size_t i = 0; i < count; i++) {
                int received;
                memcpy(&received, data + i * sizeof(int), sizeof received);
                if (out->descriptor_count < CLINUX_DATAGRAM_MAX_DESCRIPTORS) {
                    out->descriptors[out->descriptor_count++] = received;
                } else {
                    close(received);
                    out->lost_control = 1;
                }
            }
        }
    }
    return 0;
}

static int make_address(const char *path, size_t length, struct sockaddr_un *address, socklen_t *size) {
    memset(address, 0, sizeof *address);
    address->sun_family = AF_UNIX;
    if (length == 0 || length >= sizeof address->sun_path) return ENAMETOOLONG;
    memcpy(address->sun_path, path, length);
    *size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length + 1);
    return 0;
}

int clinux_datagram_bind(const char *path, size_t length, int receive_buffer, int *out) {
    struct sockaddr_un address;
    socklen_t size;
    int error = make_address(path, length, &address, &size);
    if (error) return error;
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return errno;
    int on = 1;
    if (setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof on) < 0 ||
        bind(fd, (struct sockaddr *)&address, size) < 0) {
        error = errno;
        close(fd);
        return error;
    }
    // A larger queue is a kindness, not a need.
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    *out = fd;
    return 0;
}

int clinux_datagram_send(
    const char *path, size_t length, const void *bytes, size_t count, const int *fds, int fd_count) {
    struct sockaddr_un address;
    socklen_t size;
    int error = make_address(path, length, &address, &size);
    if (error) return error;
    if (fd_count < 0 || fd_count > CLINUX_DATAGRAM_MAX_DESCRIPTORS) return EINVAL;
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return errno;
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int) * CLINUX_DATAGRAM_MAX_DESCRIPTORS)];
    } control;
    struct iovec vector = {(void *)bytes, count};
    struct msghdr message = {.msg_name = &address, .msg_namelen = size, .msg_iov = &vector, .msg_iovlen = 1};
    if (fd_count > 0) {
        memset(&control, 0, sizeof control);
        message.msg_control = &control;
        message.msg_controllen = CMSG_SPACE(sizeof(int) * (size_t)fd_count);
        struct cmsghdr *item = CMSG_FIRSTHDR(&message);
        item->cmsg_level = SOL_SOCKET;
        item->cmsg_type = SCM_RIGHTS;
        item->cmsg_len = CMSG_LEN(sizeof(int) * (size_t)fd_count);
        memcpy(CMSG_DATA(item), fds, sizeof(int) * (size_t)fd_count);
    }
    ssize_t sent;
    do {
        sent = sendmsg(fd, &message, MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    error = sent < 0 ? errno : 0;
    close(fd);
    return error;
}

int clinux_same_file(int a, int b) {
    pid_t self = getpid();
    long order = syscall(SYS_kcmp, self, self, KCMP_FILE, a, b);
    if (order < 0) return -errno;
    return order == 0;
}
