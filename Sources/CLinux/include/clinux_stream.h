#pragma once

#include <stddef.h>
#include <stdint.h>

// memfd_create and memrchr need _GNU_SOURCE; open and fcntl are variadic, which Swift cannot call; struct stat is
// reduced to what is used, at fixed widths. Each returns 0 or more, or -errno; EINTR is repeated here.

struct clinux_stream_status {
    uint64_t device;
    uint64_t inode;
    uint64_t size;
    uint64_t links;
    int64_t modified_seconds;
    uint32_t mode;
    uint32_t uid;
    uint32_t gid;
    uint64_t rdev;
};

int clinux_stream_open(const char *path, int flags, uint32_t mode);
int clinux_stream_memory(const char *name);
int clinux_stream_make_fifo(const char *path, uint32_t mode);
int clinux_stream_status(int fd, struct clinux_stream_status *out);
int clinux_stream_path_status(const char *path, struct clinux_stream_status *out);
int clinux_stream_readable(int fd);  // FIONREAD
int clinux_stream_is_nonblocking(int fd);
const void *clinux_stream_last_newline(const void *bytes, size_t count);  // memrchr
// A connection to the journal as sd_journal_stream_fd(3) makes it.
int clinux_stream_journal(const char *path, size_t length, const char *header, size_t header_length);
