#pragma once

#include <stddef.h>
#include <stdint.h>

// The CMSG macros are not visible to Swift, and SCM_CREDENTIALS needs _GNU_SOURCE.

// SCM_MAX_FD of the kernel: more descriptors than this never come in one datagram.
#define CLINUX_DATAGRAM_MAX_DESCRIPTORS 253

struct clinux_datagram {
    size_t length;         // bytes written to the buffer
    int32_t truncated;     // the datagram was longer than the buffer
    int32_t lost_control;  // descriptors or credentials did not fit, or the table of open files is full
    int32_t has_credentials;
    int32_t pid;
    uint32_t uid;
    uint32_t gid;
    int32_t descriptor_count;
    int32_t descriptors[CLINUX_DATAGRAM_MAX_DESCRIPTORS];  // close-on-exec, the caller's from here on
};

// One datagram without waiting; 0, or the errno (EAGAIN: none waits).
int clinux_datagram_receive(int fd, void *buffer, size_t capacity, struct clinux_datagram *out);

// Binds a datagram socket with SO_PASSCRED, non-blocking and close-on-exec; *fd, and 0 or the errno.
int clinux_datagram_bind(const char *path, size_t length, int receive_buffer, int *fd);

// Sends to a bound path, with descriptors; 0, or the errno.
int clinux_datagram_send(const char *path, size_t length, const void *bytes, size_t count, const int *fds, int fd_count);

// Whether both are the same open file (kcmp KCMP_FILE): 1, 0, or -errno.
int clinux_same_file(int a, int b);
