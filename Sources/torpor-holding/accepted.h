// SPDX-License-Identifier: Apache-2.0

// How many connections to a listening socket have been accepted, as the kernel lists sockets.

#pragma once

#include <netinet/in.h>
#include <stdint.h>
#include <sys/socket.h>

struct listener {
    int fd;
    int64_t since; // when it was first seen with a connection that waits; 0: there is none
    int waiting;   // how many waited at the last look; -1: it cannot be known
    struct sockaddr_storage address;
    socklen_t address_size;
};

// Connects to the kernel: before seccomp.
void open_diagnosis(void);

// A TCP listener's port, in network order; 0 for another.
in_port_t port(const struct listener *listener);

// How many connections to the listener, or to its port at another address, are accepted and still open; -1: it cannot be
// known.
int count_accepted(const struct listener *listener);
