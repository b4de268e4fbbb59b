/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TORPOR_CMICROHTTPD_H
#define TORPOR_CMICROHTTPD_H

#include <microhttpd.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

// Functions of microhttpd.h that Swift cannot call, with the reason for each shim.

/// A decoded NUL would cut the path short and so name another resource: leave such a path encoded, so that it matches
/// none.
static inline size_t torpor_http_unescape(void *context, struct MHD_Connection *connection, char *text) {
    (void)context, (void)connection;
    return strstr(text, "%00") ? strlen(text) : MHD_http_unescape(text);
}

/// MHD_start_daemon is variadic. Serves `socket`, and closes it at the end, on one thread that uses epoll; requests
/// may be suspended. `timeout` is in seconds without traffic. `context` is passed to all three callbacks. On failure
/// it returns NULL and sets errno.
static inline struct MHD_Daemon *torpor_http_start(
    int socket, unsigned int connections, unsigned int timeout, MHD_AccessHandlerCallback handler,
    MHD_RequestCompletedCallback completed, MHD_NotifyConnectionCallback connected, void *context) {
    return MHD_start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_ITC | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, handler, context,
        MHD_OPTION_LISTEN_SOCKET, (MHD_socket)socket, MHD_OPTION_CONNECTION_LIMIT, connections,
        MHD_OPTION_CONNECTION_TIMEOUT, timeout, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_NOTIFY_COMPLETED, completed,
        context, MHD_OPTION_NOTIFY_CONNECTION, connected, context, MHD_OPTION_UNESCAPE_CALLBACK, torpor_http_unescape, NULL, MHD_OPTION_END);
}

/// What a request's headers say about its host and its end: how many such headers there are, whether the transfer
/// coding is chunked, and whether a header is malformed (its name is not a token, its value contains control
/// characters, or it is not on one line).
typedef struct {
    int hosts, lengths, codings, is_chunked, is_malformed, origins, sites;
} torpor_http_framing;

/// Whether a header has this name. libmicrohttpd appends a continuation line to the name if the value is empty: so a
/// longer name that begins with this one is malformed.
static inline int torpor_http_is(torpor_http_framing *framing, const char *key, size_t size, const char *name) {
    size_t length = strlen(name);
    if (size < length || strncasecmp(key, name, length) != 0)
        return 0;
    if (size > length)
        framing->is_malformed = 1;
    return size == length;
}

static inline enum MHD_Result torpor_http_count(void *context, enum MHD_ValueKind kind, const char *key, size_t key_size,
                                                const char *value, size_t value_size) {
    torpor_http_framing *framing = context;
    (void)kind;
    if (!value)
        value_size = 0;
    if (key_size == 0)
        framing->is_malformed = 1;
    for (size_t i = 0; i < key_size; i++) {
        char c = key[i];
        // A token of RFC 9110, 5.6.2.
        if (!((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
              (c != 0 && strchr("!#$%&'*+-.^_`|~", c))))
            framing->is_malformed = 1;
    }
    for (size_t i = 0; i < value_size; i++)
        if (((unsigned char)value[i] < ' ' && value[i] != '\t') || value[i] == 0x7f)
            framing->is_malformed = 1;
    framing->hosts += key_size == 4 && strncasecmp(key, "host", 4) == 0;
    framing->origins += key_size == 6 && strncasecmp(key, "origin", 6) == 0;
    framing->sites += key_size == 14 && strncasecmp(key, "sec-fetch-site", 14) == 0;
    framing->lengths += torpor_http_is(framing, key, key_size, "content-length");
    if (torpor_http_is(framing, key, key_size, "transfer-encoding")) {
        ++framing->codings;
        framing->is_chunked = value_size == 7 && strncasecmp(value, "chunked", 7) == 0;
    }
    return MHD_YES;
}

/// The state of a check of a request's head, line by line: the place where the next header must begin.
typedef struct {
    const char *next;
    int is_malformed;
} torpor_http_lines;

static inline enum MHD_Result torpor_http_line(void *context, enum MHD_ValueKind kind, const char *key, size_t key_size,
                                               const char *value, size_t value_size) {
    torpor_http_lines *lines = context;
    (void)kind;
    if (key != lines->next || !value || value <= key + key_size) {
        lines->is_malformed = 1;
        return MHD_NO;
    }
    // libmicrohttpd has replaced the colon by a NUL. Only blanks may follow before the value.
    for (const char *between = key + key_size + 1; between < value; between++)
        if (*between != ' ' && *between != '\t')
            lines->is_malformed = 1;
    lines->next = value + value_size + 2;
    return MHD_YES;
}

/// Whether the head of the request has a line that is not among its headers, or does not end with CRLF. Such lines
/// matter because libmicrohttpd 0.9 parses them wrongly without reporting it: it takes a line with an empty name as the
/// end of the head, and the bytes after it as another request; it appends a continuation line to the header's name; and
/// it accepts LF or CR alone as the end of a line, and NUL as the end of a value. But libmicrohttpd leaves the received
/// head in memory unchanged, from `method` to the end of the last line, and the headers point into it. So each header
/// must begin two bytes after the end of the previous one, and the last must end four bytes before the end of the head.
/// Later versions of libmicrohttpd reject such heads themselves in strict mode, and may store the head differently.
static inline int torpor_http_has_other_lines(struct MHD_Connection *connection, const char *method,
                                              const char *version) {
    if (strncmp(MHD_get_version(), "0.9.", 4) != 0)
        return 0;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    torpor_http_lines lines = {version + strlen(version) + 2, 0};
    MHD_get_connection_values_n(connection, MHD_HEADER_KIND, torpor_http_line, &lines);
    return lines.is_malformed || !info || lines.next + 2 != method + info->header_size;
}

/// Counts the headers that state the host and the end of a request. A lookup by name would return only the first header
/// of that name, which is also the only one that libmicrohttpd uses, even in its strictest mode. This is written in C
/// because Swift cannot combine the values of the C enum MHD_ValueKind. `method` and `version` are the arguments of the
/// request handler.
static inline torpor_http_framing torpor_http_framing_of(struct MHD_Connection *connection, const char *method,
                                                         const char *version) {
    torpor_http_framing framing = {0, 0, 0, 0, 0, 0, 0};
    MHD_get_connection_values_n(connection, MHD_HEADER_KIND, torpor_http_count, &framing);
    if (torpor_http_has_other_lines(connection, method, version))
        framing.is_malformed = 1;
    return framing;
}

/// MHD_get_connection_info is variadic. Returns what the callback for new connections stored in `socket_context`.
static inline void *torpor_http_context(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info ? info->socket_context : NULL;
}

/// MHD_get_connection_info is variadic. Shuts down the socket; the daemon then closes the connection.
static inline void torpor_http_cut(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    if (info) shutdown(info->connect_fd, SHUT_RDWR);
}

#endif
