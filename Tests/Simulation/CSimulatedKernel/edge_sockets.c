// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "kernel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

// Sockets are real. The peer is identified by the name to which a process of the world binds its end
// (sim_bind_as).

static int32_t pid_named(const struct sockaddr_un *address, socklen_t size)
{
    char text[sizeof address->sun_path + 1] = "";
    size_t offset = offsetof(struct sockaddr_un, sun_path) + 1;
    if (size <= offset || address->sun_path[0] != 0)
        return SIM_STRANGER;
    memcpy(text, address->sun_path + 1, size - offset);
    int real, pid;
    return sscanf(text, "torpor-sim/%d/%d/", &real, &pid) == 2 ? pid : SIM_STRANGER;
}

int socket(int family, int type, int protocol)
{
    if (!sim_is_torpord)
        return REAL(socket)(family, type, protocol);
    sim_count_call();
    if (family != AF_UNIX) {
        errno = EAFNOSUPPORT;
        return -1;
    }
    FAIL(SIM_FAULT_DESCRIPTORS, EMFILE);
    return REAL(socket)(family, type, protocol);
}

int socketpair(int family, int type, int protocol, int fds[2])
{
    if (sim_is_torpord)
        sim_count_call();
    FAIL(SIM_FAULT_DESCRIPTORS, EMFILE);
    return REAL(socketpair)(family, type, protocol, fds);
}

int bind(int fd, const struct sockaddr *address, socklen_t size)
{
    if (sim_is_torpord)
        sim_count_call();
    FAIL(SIM_FAULT_SPACE, ENOSPC);
    return REAL(bind)(fd, address, size);
}

int connect(int fd, const struct sockaddr *address, socklen_t size)
{
    if (!sim_is_torpord)
        return REAL(connect)(fd, address, size);
    sim_count_call();
    const struct sockaddr_un *name = (const struct sockaddr_un *)address;
    // Only what the world has: the journal and buses are not there.
    if (name->sun_family != AF_UNIX || strncmp(name->sun_path, sim_world->root, strlen(sim_world->root)) != 0) {
        errno = ENOENT;
        return -1;
    }
    return REAL(connect)(fd, address, size);
}

int accept4(int fd, struct sockaddr *restrict address, socklen_t *restrict size, int flags)
{
    if (sim_is_torpord) {
        sim_count_call();
        FAIL(SIM_FAULT_INTERRUPTED, EINTR);
        FAIL(SIM_FAULT_DESCRIPTORS, EMFILE);
        FAIL(SIM_FAULT_BLOCKED, ECONNABORTED);
    }
    return REAL(accept4)(fd, address, size, flags);
}

int getsockopt(int fd, int level, int option, void *restrict value, socklen_t *restrict size)
{
    if (!sim_is_torpord || level != SOL_SOCKET || option != SO_PEERCRED)
        return REAL(getsockopt)(fd, level, option, value, size);
    struct sockaddr_un name;
    socklen_t length = sizeof name;
    int result = REAL(getsockopt)(fd, level, option, value, size);
    if (result < 0 || REAL(getpeername)(fd, (struct sockaddr *)&name, &length) < 0)
        return result;
    ((struct ucred *)value)->pid = pid_named(&name, length);
    return 0;
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    if (sim_is_torpord) {
        sim_count_call();
        FAIL(SIM_FAULT_INTERRUPTED, EINTR);
        FAIL(SIM_FAULT_BLOCKED, EAGAIN);
        FAIL(SIM_FAULT_MEMORY, ENOBUFS);
        sim_world->messages++;
    }
    return DONE(REAL(sendmsg)(fd, message, flags));
}

ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
    if (!sim_is_torpord)
        return REAL(recvmsg)(fd, message, flags);
    sim_count_call();
    FAIL(SIM_FAULT_INTERRUPTED, EINTR);
    FAIL(SIM_FAULT_BLOCKED, EAGAIN);
    struct sockaddr_un name;
    int has_room = message->msg_name == NULL;
    if (has_room) {
        message->msg_name = &name;
        message->msg_namelen = sizeof name;
    }
    ssize_t got = REAL(recvmsg)(fd, message, flags);
    int32_t pid = got >= 0 && has_room ? pid_named(&name, message->msg_namelen) : SIM_STRANGER;
    if (has_room) {
        message->msg_name = NULL;
        message->msg_namelen = 0;
    }
    if (got < 0)
        return got;
    for (struct cmsghdr *part = CMSG_FIRSTHDR(message); part != NULL; part = CMSG_NXTHDR(message, part))
        if (part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_CREDENTIALS)
            ((struct ucred *)CMSG_DATA(part))->pid = pid;
    return got;
}
