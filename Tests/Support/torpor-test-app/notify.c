// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "test_app.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/// Sends one datagram. With `wait` it tries until it is taken; without, a full queue or an absent listener (the test
/// took keeper and torpord away) is nothing. Says whether it went.
bool notify_send(const char *text, int fd, bool wait)
{
    const char *path = getenv("NOTIFY_SOCKET");
    if (path == NULL || strlen(path) >= sizeof((struct sockaddr_un *)0)->sun_path)
        return false;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strcpy(address.sun_path, path);
    struct iovec data = {(void *)text, strlen(text)};
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control;
    memset(&control, 0, sizeof control);
    struct msghdr message = {
        .msg_name = &address,
        .msg_namelen = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path) + 1),
        .msg_iov = &data,
        .msg_iovlen = 1,
    };
    if (fd >= 0) {
        message.msg_control = &control;
        message.msg_controllen = sizeof control;
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof fd);
        memcpy(CMSG_DATA(header), &fd, sizeof fd);
    }
    for (;;) {
        int socket_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        ssize_t sent = sendmsg(socket_fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
        int error = errno;
        close(socket_fd);
        if (sent >= 0)
            return true;
        bool absent = error == ECONNREFUSED || error == ENOENT;
        if (error != EAGAIN && error != EINTR && !absent) {
            truth->notify_errors++;
            truth->last_error = (uint64_t)error;
            return false;
        }
        if (!wait)
            return false;
        sleep_us(2000);
    }
}

/// Returns when everything sent before it was handled.
void notify_barrier(void)
{
    int ends[2];
    if (pipe2(ends, 02000000) < 0)  // O_CLOEXEC
        return;
    notify_send("BARRIER=1", ends[1], true);
    close(ends[1]);
    struct pollfd entry = {ends[0], 0, 0};
    while (poll(&entry, 1, -1) < 0 && errno == EINTR)
        ;
    close(ends[0]);
}

static bool is_ours(int fd)
{
    char text[64] = "", expected[64];
    snprintf(expected, sizeof expected, "kept for %s", app_name);
    return pread(fd, text, sizeof text - 1, 0) == (ssize_t)strlen(expected) && strcmp(text, expected) == 0;
}

/// The first incarnation gives a memory file into keeping; every later one must find it among LISTEN_FDS, unless
/// keeper and torpord were taken away together since: then only the apps themselves could have kept it.
void store_check(void)
{
    char name[256];
    snprintf(name, sizeof name, "%s.stored", app_name);
    uint64_t stored_in = 0;
    bool was_stored = truth_read_file(name, &stored_in) && stored_in == truth_epoch();
    const char *names = getenv("LISTEN_FDNAMES"), *count = getenv("LISTEN_FDS"), *pid = getenv("LISTEN_PID");
    bool found = false, whole = false;
    if (names != NULL && count != NULL && pid != NULL && atoi(pid) == getpid()) {
        int index = 0;
        for (const char *p = names; *p && index < atoi(count); index++) {
            size_t size = strcspn(p, ":");
            if (size == 4 && memcmp(p, "kept", 4) == 0) {
                whole = !found && is_ours(3 + index);
                found = true;
            }
            p += size + (p[size] == ':');
        }
    }
    if (whole)
        truth->stored_back++;
    if ((found && !whole) || (was_stored && !found))
        truth->stored_lost++;
    if (found)
        return;
    uint64_t epoch = truth_epoch();
    int memory = memfd_create("kept", MFD_CLOEXEC);
    char text[64];
    int size = snprintf(text, sizeof text, "kept for %s", app_name);
    if (memory < 0 || write(memory, text, (size_t)size) != size)
        return;
    notify_send("FDSTORE=1\nFDNAME=kept", memory, true);
    close(memory);
    notify_barrier();
    truth_write_file(name, epoch);
}
