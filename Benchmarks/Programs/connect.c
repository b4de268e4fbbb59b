// SPDX-License-Identifier: Apache-2.0

// Connects to a Unix socket and passes the connection through another one:
//   connect TO RECEIVER
// systemd refuses a peer whose process it cannot see, such as one outside of its container. So this program runs
// inside, and the harness uses the connection.
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

static int connected(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path)
        return -1;
    strcpy(address.sun_path, path);
    int file = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return file >= 0 && connect(file, (struct sockaddr *)&address, sizeof address) == 0 ? file : -1;
}

int main(int argc, char **argv)
{
    int given = argc == 3 ? connected(argv[1]) : -1;
    int receiver = given >= 0 ? connected(argv[2]) : -1;
    if (receiver < 0) {
        fprintf(stderr, "connect: %s\n", argc == 3 ? strerror(errno) : "usage: connect TO RECEIVER");
        return 1;
    }
    char byte = 1;
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    control.head.cmsg_level = SOL_SOCKET;
    control.head.cmsg_type = SCM_RIGHTS;
    control.head.cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(&control.head), &given, sizeof given);
    return sendmsg(receiver, &message, 0) == 1 ? 0 : 1;
}
