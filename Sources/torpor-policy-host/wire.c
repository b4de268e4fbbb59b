// SPDX-License-Identifier: Apache-2.0

#include "host.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

enum { STATUS_DONE = 0, STATUS_REFUSED = 1, STATUS_WRONG_MESSAGE = 2 };

void (*host_at_end)(void);

static void complain(const char *what)
{
    char line[256];
    int size = snprintf(line, sizeof line, "torpor-policy-host: %s\n", what);
    if (write(STDERR_FILENO, line, (size_t)size < sizeof line ? (size_t)size : sizeof line - 1) < 0)
        return;  // no process reads it
}

const torpor_policy_wire_header *host_receive(size_t *size)
{
    static _Alignas(8) unsigned char buffer[HOST_MESSAGE_ROOM];
    ssize_t got;
    do {
        got = recv(TORPOR_POLICY_HOST_SOCKET, buffer, sizeof buffer, 0);
    } while (got < 0 && errno == EINTR);
    if (got == 0 || (got < 0 && errno == ECONNRESET)) {
        if (host_at_end != NULL)
            host_at_end();
        _exit(STATUS_DONE);
    }
    if (got < 0) {
        complain("there is no socket to be asked over: it is started by torpord and by torpor policy");
        _exit(STATUS_WRONG_MESSAGE);
    }
    if ((size_t)got < sizeof(torpor_policy_wire_header) || (size_t)got > TORPOR_POLICY_WIRE_LIMIT)
        host_give_up("a message of an invalid size");
    *size = (size_t)got;
    return (const torpor_policy_wire_header *)(const void *)buffer;
}

void host_send(const void *message, size_t size)
{
    while (send(TORPOR_POLICY_HOST_SOCKET, message, size, MSG_NOSIGNAL) < 0) {
        if (errno != EINTR)
            _exit(errno == EPIPE || errno == ECONNRESET ? STATUS_DONE : STATUS_WRONG_MESSAGE);
    }
}

void host_refuse(const char *format, ...)
{
    struct {
        torpor_policy_wire_header header;
        char sentence[TORPOR_POLICY_SENTENCE_LIMIT + 1];
    } message = {.header = {.type = TORPOR_POLICY_REFUSED}};
    va_list list;
    va_start(list, format);
    int size = vsnprintf(message.sentence, sizeof message.sentence, format, list);
    va_end(list);
    size_t used = size < 0 ? 0 : (size_t)size < sizeof message.sentence ? (size_t)size : sizeof message.sentence - 1;
    host_send(&message, sizeof message.header + used + 1);
    _exit(STATUS_REFUSED);
}

void host_give_up(const char *what)
{
    complain(what);
    _exit(STATUS_WRONG_MESSAGE);
}
