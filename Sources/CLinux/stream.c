#define _GNU_SOURCE
#include "clinux_stream.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

int clinux_stream_open(const char *path, int flags, uint32_t mode) {
    int fd;
    do {
        fd = open(path, flags | O_CLOEXEC, (mode_t)mode);
    } while (fd < 0 && errno == EINTR);
    return fd < 0 ? -errno : fd;
}

int clinux_stream_memory(const char *name) {
    int fd = memfd_create(name, MFD_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

int clinux_stream_make_fifo(const char *path, uint32_t mode) {
    return mkfifo(path, (mode_t)mode) < 0 ? -errno : 0;
}

static void reduce(const struct stat *from, struct clinux_stream_status *out) {
    out->device = from->st_dev;
    out->inode = from->st_ino;
    out->size = from->st_size < 0 ? 0 : (uint64_t)from->st_size;
    out->links = from->st_nlink;
    out->modified_seconds = from->st_mtim.tv_sec;
    out->mode = from->st_mode;
    out->uid = from->st_uid;
    out->gid = from->st_gid;
    out->rdev = from->st_rdev;
}

int clinux_stream_status(int fd, struct clinux_stream_status *out) {
    struct stat status;
    if (fstat(fd, &status) < 0) return -errno;
    reduce(&status, out);
    return 0;
}

int clinux_stream_path_status(const char *path, struct clinux_stream_status *out) {
    struct stat status;
    if (lstat(path, &status) < 0) return -errno;
    reduce(&status, out);
    return 0;
}

int clinux_stream_readable(int fd) {
    int count = 0;
    return ioctl(fd, FIONREAD, &count) < 0 ? -errno : count;
}

int clinux_stream_is_nonblocking(int fd) {
    int flags = fcntl(fd, F_GETFL);
    return flags < 0 ? -errno : (flags & O_NONBLOCK) != 0;
}

const void *clinux_stream_last_newline(const void *bytes, size_t count) {
    return memrchr(bytes, '\n', count);
}

int clinux_stream_journal(const char *path, size_t length, const char *header, size_t header_length) {
    struct sockaddr_un address;
    memset(&address, 0, sizeof address);
    address.sun_family = AF_UNIX;
    if (length == 0 || length >= sizeof address.sun_path) return -ENAMETOOLONG;
    memcpy(address.sun_path, path, length);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return -errno;
    // A journal that does not accept must not hold the loop up.
    struct timeval limit = {.tv_usec = 200000};
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    int error = 0;
    if (connect(fd, (struct sockaddr *)&address, sizeof address) < 0) {
        error = errno;
    } else {
        shutdown(fd, SHUT_RD);
        size_t done = 0;
        while (done < header_length && !error) {
            ssize_t sent = send(fd, header + done, header_length - done, MSG_NOSIGNAL);
            if (sent < 0 && errno != EINTR) error = errno;
            if (sent > 0) done += (size_t)sent;
        }
    }
    if (error) {
        close(fd);
        return -error;
    }
    limit.tv_usec = 0;
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    return fd;
}
