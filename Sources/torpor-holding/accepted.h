// SPDX-License-Identifier: Apache-2.0

// Counts accepted connections to a listening socket with sock_diag(7).

#pragma once

#include <netinet/in.h>
#include <stdint.h>
#include <sys/socket.h>

struct listener {
    int fd;
    int64_t since; // when a waiting connection was first seen, in ms; 0: none waits
    int waiting;   // connections waiting at the last check; -1: unknown
    struct sockaddr_storage address;
    socklen_t address_size;
};

// Opens the netlink socket. Call it before seccomp forbids new sockets.
void open_diagnosis(void);

// A TCP listener's port in network order; 0 for other sockets.
in_port_t port(const struct listener *listener);

// The number of accepted and still open connections to the listener, or to its port at another address; -1: unknown.
int count_accepted(const struct listener *listener);
