/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TORPOR_CMICROHTTPD_H
#define TORPOR_CMICROHTTPD_H

#include <microhttpd.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

// What Swift cannot call of microhttpd.h. One reason per shim.

/// A NUL would end the path where it stands, and lead to what is before it: such a text stays as it was written, and leads
/// nowhere.
static inline size_t torpor_http_unescape(void *context, struct MHD_Connection *connection, char *text) {
    (void)context, (void)connection;
    return strstr(text, "%00") ? strlen(text) : MHD_http_unescape(text);
}

/// MHD_start_daemon is variadic. Serves `socket`, which it closes at its end, on one thread of its own that sleeps in
/// epoll; requests may be suspended. `timeout` in seconds without anything sent. `context` goes to all three callbacks.
/// NULL: errno says why.
static inline struct MHD_Daemon *torpor_http_start(
    int socket, unsigned int connections, unsigned int timeout, MHD_AccessHandlerCallback handler,
    MHD_RequestCompletedCallback completed, MHD_NotifyConnectionCallback connected, void *context) {
    return MHD_start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_ITC | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, handler, context,
        MHD_OPTION_LISTEN_SOCKET, (MHD_socket)socket, MHD_OPTION_CONNECTION_LIMIT, connections,
        MHD_OPTION_CONNECTION_TIMEOUT, timeout, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_NOTIFY_COMPLETED, completed,
        context, MHD_OPTION_NOTIFY_CONNECTION, connected, context, MHD_OPTION_UNESCAPE_CALLBACK, torpor_http_unescape, NULL, MHD_OPTION_END);
}

static inline enum MHD_Result torpor_http_count_host(void *count, enum MHD_ValueKind kind, const char *key,
                                                     const char *value) {
    (void)kind, (void)value;
    if (key && strcasecmp(key, "host") == 0)
        ++*(int *)count;
    return MHD_YES;
}

/// The kind is an enum, of which Swift makes no flags. How many headers Host there are: a lookup sees the first one alone.
static inline int torpor_http_hosts(struct MHD_Connection *connection) {
    int count = 0;
    MHD_get_connection_values(connection, MHD_HEADER_KIND, torpor_http_count_host, &count);
    return count;
}

/// MHD_get_connection_info is variadic. What the callback for new connections has put at its `socket_context`.
static inline void *torpor_http_context(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info ? info->socket_context : NULL;
}

/// MHD_get_connection_info is variadic. Shuts a connection's socket down, which its daemon then finds and closes.
static inline void torpor_http_cut(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    if (info) shutdown(info->connect_fd, SHUT_RDWR);
}

#endif
