// SPDX-License-Identifier: Apache-2.0

/* torpor_app.c: see torpor_app.h. In this order: reading JSON, writing text, connections, answers, messages, calls that
 * wait for their reply, tasks and state, and the app itself.
 *
 * There are three connections, each made when it is needed. On the first, Attach streams the messages. The second
 * carries the answers to messages, and no thread waits for the replies to them. The third carries calls whose callers
 * wait for the reply; the app's tasks belong to this connection.
 *
 * There are two locks. `lock` guards the structure, and is never held during a function of the delegate or a wait.
 * `call_lock` is held by the thread that waits on the third connection. A thread that needs both takes call_lock first.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "torpor_app.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <locale.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* The longest reply that is accepted from a supervisor, in bytes. */
#define LONGEST_REPLY ((size_t)4 << 20)
/* How long before the end of the time for tasks they expire, if the supervisor is too old to say it: the default of
 * expiry_warning. */
#define EXPIRY_WARNING_MS 5000
/* How deep JSON may be nested. */
#define DEEPEST 64
/* How long calls wait for a supervisor, in milliseconds: far longer than the replacement of a supervisor takes. */
#define CALL_MS 10000
/* How long calls that save a state wait, in milliseconds: the state is written to a disk first, which may be slow. */
#define SAVE_MS 60000
/* The shortest and the longest delay between two attempts to connect, in milliseconds. The delay doubles each time. */
#define FIRST_RETRY_MS 10
#define LAST_RETRY_MS 1000
/* The most bytes that SaveState accepts as data: 512 KiB in Base64. */
#define LONGEST_DATA ((size_t)384 << 10)

/* ---- JSON that is read ------------------------------------------------------------------------------------------- */

enum kind { KIND_NULL, KIND_BOOL, KIND_INT, KIND_DOUBLE, KIND_STRING, KIND_ARRAY, KIND_OBJECT };

struct torpor_json {
    enum kind kind;
    const char *key;    /* The key of this member of an object. */
    const char *string; /* Points into the document's text. */
    size_t length;      /* The bytes of the string, or the number of elements. */
    int64_t integer;
    double number;
    torpor_json *first, *next;
};

/* Allocated by torpor_json_read: the outermost value, and the text that contains the strings. */
struct document {
    torpor_json top;
    char *text;
};

struct reader {
    char *at;
    char *end; /* Points to a NUL. */
    int depth;
};

static void free_below(torpor_json *json)
{
    torpor_json *child = json->first;
    while (child != NULL) {
        torpor_json *next = child->next;
        free_below(child);
        free(child);
        child = next;
    }
}

void torpor_json_free(torpor_json *json)
{
    if (json == NULL)
        return;
    struct document *document = (struct document *)(void *)json;
    free_below(json);
    free(document->text);
    free(document);
}

/* The bytes of the UTF-8 sequence at `text`; 0 if invalid (RFC 3629: no surrogates, no overlong forms). */
static int sequence_length(const char *text, const char *end)
{
    const unsigned char *at = (const unsigned char *)text;
    ptrdiff_t left = end - text;
    if (at[0] < 0x80)
        return 1;
    int length = at[0] >= 0xf0 ? 4 : at[0] >= 0xe0 ? 3 : 2;
    if (at[0] < 0xc2 || at[0] > 0xf4 || left < length)
        return 0;
    for (int index = 1; index < length; index++)
        if ((at[index] & 0xc0) != 0x80)
            return 0;
    if ((at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xed && at[1] > 0x9f) || (at[0] == 0xf0 && at[1] < 0x90)
        || (at[0] == 0xf4 && at[1] > 0x8f))
        return 0;
    return length;
}

static void skip_space(struct reader *reader)
{
    while (*reader->at == ' ' || *reader->at == '\t' || *reader->at == '\n' || *reader->at == '\r')
        reader->at++;
}

/* Reads four hexadecimal digits; -1 for any other text. */
static long read_hex(struct reader *reader)
{
    long value = 0;
    for (int index = 0; index < 4; index++) {
        char digit = *reader->at;
        int add;
        if (digit >= '0' && digit <= '9')
            add = digit - '0';
        else if (digit >= 'a' && digit <= 'f')
            add = digit - 'a' + 10;
        else if (digit >= 'A' && digit <= 'F')
            add = digit - 'A' + 10;
        else
            return -1;
        value = value * 16 + add;
        reader->at++;
    }
    return value;
}

/* Reads an escaped character after `\u`, and writes its UTF-8, which is shorter than the escape. */
static bool read_escaped(struct reader *reader, char **out)
{
    long point = read_hex(reader);
    if (point < 0 || (point >= 0xdc00 && point < 0xe000))
        return false;
    if (point >= 0xd800 && point < 0xdc00) {
        if (reader->at[0] != '\\' || reader->at[1] != 'u')
            return false;
        reader->at += 2;
        long low = read_hex(reader);
        if (low < 0xdc00 || low >= 0xe000)
            return false;
        point = 0x10000 + ((point - 0xd800) << 10) + (low - 0xdc00);
    }
    if (point < 0x80) {
        *(*out)++ = (char)point;
        return true;
    }
    int more = point < 0x800 ? 1 : point < 0x10000 ? 2 : 3;
    static const int leads[] = {0, 0xc0, 0xe0, 0xf0};
    *(*out)++ = (char)(leads[more] | (point >> (6 * more)));
    for (int left = more - 1; left >= 0; left--)
        *(*out)++ = (char)(0x80 | ((point >> (6 * left)) & 0x3f));
    return true;
}

/* Reads a string from its opening quote, and decodes it in place. */
static bool read_string(struct reader *reader, const char **string, size_t *length)
{
    if (*reader->at != '"')
        return false;
    char *out = ++reader->at;
    *string = out;
    for (;;) {
        unsigned char byte = (unsigned char)*reader->at;
        if (byte == '"')
            break;
        if (byte < 0x20)
            return false; /* This includes the NUL at the end. */
        if (byte != '\\') {
            int size = sequence_length(reader->at, reader->end);
            if (size == 0)
                return false;
            while (size-- > 0)
                *out++ = *reader->at++;
            continue;
        }
        reader->at++;
        static const char escapes[] = "\"\\/bfnrt";
        static const char meanings[] = "\"\\/\b\f\n\r\t";
        char escape = *reader->at;
        if (escape == 'u') {
            reader->at++;
            if (!read_escaped(reader, &out))
                return false;
            continue;
        }
        const char *found = escape == '\0' ? NULL : strchr(escapes, escape);
        if (found == NULL)
            return false;
        *out++ = meanings[found - escapes];
        reader->at++;
    }
    reader->at++;
    *length = (size_t)(out - *string);
    *out = '\0';
    return true;
}

/* Converts a number. strtod(3) expects the decimal point of the locale, which may not be a full stop. */
static bool to_double(const char *start, size_t length, double *number)
{
    char text[400];
    if (length >= sizeof text)
        return false;
    memcpy(text, start, length);
    text[length] = '\0';
    char *point = strchr(text, '.');
    const char *local = localeconv()->decimal_point;
    if (point != NULL && local != NULL && local[0] != '\0' && local[1] == '\0')
        *point = local[0];
    *number = strtod(text, NULL);
    return true;
}

static bool read_digits(struct reader *reader)
{
    char *start = reader->at;
    while (*reader->at >= '0' && *reader->at <= '9')
        reader->at++;
    return reader->at > start;
}

static bool read_number(struct reader *reader, torpor_json *json)
{
    char *start = reader->at;
    bool whole = true;
    if (*reader->at == '-')
        reader->at++;
    char first = *reader->at;
    if (!read_digits(reader) || (first == '0' && reader->at - start > (*start == '-' ? 2 : 1)))
        return false;
    if (*reader->at == '.') {
        whole = false;
        reader->at++;
        if (!read_digits(reader))
            return false;
    }
    if (*reader->at == 'e' || *reader->at == 'E') {
        whole = false;
        reader->at++;
        if (*reader->at == '+' || *reader->at == '-')
            reader->at++;
        if (!read_digits(reader))
            return false;
    }
    json->kind = KIND_DOUBLE;
    if (!to_double(start, (size_t)(reader->at - start), &json->number))
        return false;
    if (whole) {
        /* strtoll(3) stops in time: the number is always followed by a byte that is not a digit. */
        errno = 0;
        long long value = strtoll(start, NULL, 10);
        if (errno == 0) {
            json->kind = KIND_INT;
            json->integer = value;
        }
    }
    return true;
}

static bool read_word(struct reader *reader, const char *word)
{
    size_t length = strlen(word);
    if (strncmp(reader->at, word, length) != 0)
        return false;
    reader->at += length;
    return true;
}

static bool read_value(struct reader *reader, torpor_json *json);

/* Reads the elements of an array or an object, after its opening bracket. */
static bool read_elements(struct reader *reader, torpor_json *json)
{
    char close = json->kind == KIND_OBJECT ? '}' : ']';
    torpor_json **last = &json->first;
    skip_space(reader);
    if (*reader->at == close) {
        reader->at++;
        return true;
    }
    for (;;) {
        torpor_json *element = calloc(1, sizeof *element);
        if (element == NULL)
            return false;
        *last = element;
        last = &element->next;
        json->length++;
        skip_space(reader);
        if (json->kind == KIND_OBJECT) {
            size_t length;
            if (!read_string(reader, &element->key, &length))
                return false;
            skip_space(reader);
            if (*reader->at != ':')
                return false;
            reader->at++;
        }
        if (!read_value(reader, element))
            return false;
        skip_space(reader);
        char next = *reader->at;
        if (next != ',' && next != close)
            return false;
        reader->at++;
        if (next == close)
            return true;
    }
}

static bool read_value(struct reader *reader, torpor_json *json)
{
    skip_space(reader);
    switch (*reader->at) {
    case 'n':
        json->kind = KIND_NULL;
        return read_word(reader, "null");
    case 't':
        json->kind = KIND_BOOL;
        json->integer = 1;
        return read_word(reader, "true");
    case 'f':
        json->kind = KIND_BOOL;
        return read_word(reader, "false");
    case '"':
        json->kind = KIND_STRING;
        return read_string(reader, &json->string, &json->length);
    case '[':
    case '{':
        json->kind = *reader->at++ == '{' ? KIND_OBJECT : KIND_ARRAY;
        if (++reader->depth > DEEPEST || !read_elements(reader, json))
            return false;
        reader->depth--;
        return true;
    default:
        return read_number(reader, json);
    }
}

torpor_json *torpor_json_read(const char *text, size_t size)
{
    struct document *document = calloc(1, sizeof *document);
    if (document == NULL || size == SIZE_MAX || (document->text = malloc(size + 1)) == NULL) {
        free(document);
        return NULL;
    }
    if (size > 0)
        memcpy(document->text, text, size);
    document->text[size] = '\0';
    struct reader reader = {document->text, document->text + size, 0};
    bool good = read_value(&reader, &document->top);
    if (good)
        skip_space(&reader);
    if (!good || reader.at != reader.end) {
        torpor_json_free(&document->top);
        return NULL;
    }
    return &document->top;
}

const torpor_json *torpor_json_get(const torpor_json *object, const char *key)
{
    if (object == NULL || object->kind != KIND_OBJECT)
        return NULL;
    for (const torpor_json *element = object->first; element != NULL; element = element->next)
        if (strcmp(element->key, key) == 0)
            return element;
    return NULL;
}

size_t torpor_json_count(const torpor_json *json)
{
    return json != NULL && (json->kind == KIND_ARRAY || json->kind == KIND_OBJECT) ? json->length : 0;
}

const torpor_json *torpor_json_at(const torpor_json *json, size_t index)
{
    if (index >= torpor_json_count(json))
        return NULL;
    const torpor_json *element = json->first;
    while (index-- > 0)
        element = element->next;
    return element;
}

const char *torpor_json_key(const torpor_json *json) { return json != NULL ? json->key : NULL; }

bool torpor_json_is_null(const torpor_json *json) { return json == NULL || json->kind == KIND_NULL; }

const char *torpor_json_string(const torpor_json *json, size_t *length)
{
    bool is_string = json != NULL && json->kind == KIND_STRING;
    if (length != NULL)
        *length = is_string ? json->length : 0;
    return is_string ? json->string : NULL;
}

int64_t torpor_json_int(const torpor_json *json, int64_t otherwise)
{
    return json != NULL && json->kind == KIND_INT ? json->integer : otherwise;
}

double torpor_json_double(const torpor_json *json, double otherwise)
{
    return json != NULL && (json->kind == KIND_INT || json->kind == KIND_DOUBLE) ? json->number : otherwise;
}

bool torpor_json_bool(const torpor_json *json, bool otherwise)
{
    return json != NULL && json->kind == KIND_BOOL ? json->integer != 0 : otherwise;
}

/* ---- Text that is written ---------------------------------------------------------------------------------------- */

/* A buffer that grows. After memory was short once, it stays broken. */
struct text {
    char *bytes;
    size_t used, size;
    bool broken;
};

static bool make_room(struct text *text, size_t more)
{
    if (text->broken || more > SIZE_MAX / 4 || text->used > SIZE_MAX / 4)
        return false;
    if (text->used + more <= text->size)
        return true;
    size_t size = text->size < 128 ? 128 : text->size;
    while (size < text->used + more)
        size *= 2;
    char *bytes = realloc(text->bytes, size);
    if (bytes == NULL) {
        text->broken = true;
        return false;
    }
    text->bytes = bytes;
    text->size = size;
    return true;
}

static void put_bytes(struct text *text, const char *bytes, size_t count)
{
    if (!make_room(text, count))
        return;
    memcpy(text->bytes + text->used, bytes, count);
    text->used += count;
}

static void put(struct text *text, const char *bytes) { put_bytes(text, bytes, strlen(bytes)); }

static void put_int(struct text *text, int64_t value)
{
    char digits[32];
    int length = snprintf(digits, sizeof digits, "%lld", (long long)value);
    put_bytes(text, digits, (size_t)length);
}

/* Appends a JSON string. Invalid UTF-8 is replaced by U+FFFD. */
static void put_string(struct text *text, const char *string)
{
    const char *end = string + strlen(string);
    put(text, "\"");
    while (string < end) {
        int length = sequence_length(string, end);
        unsigned char byte = (unsigned char)*string;
        if (length == 0) {
            put(text, "\xef\xbf\xbd");
            length = 1;
        } else if (byte < 0x20 || byte == '"' || byte == '\\') {
            char escape[8];
            snprintf(escape, sizeof escape, "\\u%04x", byte);
            put(text, escape);
        } else {
            put_bytes(text, string, (size_t)length);
        }
        string += length;
    }
    put(text, "\"");
}

static void put_base64(struct text *text, const unsigned char *bytes, size_t size)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t at = 0; at < size; at += 3) {
        size_t left = size - at;
        uint32_t three = (uint32_t)bytes[at] << 16;
        if (left > 1)
            three |= (uint32_t)bytes[at + 1] << 8;
        if (left > 2)
            three |= bytes[at + 2];
        char four[4] = {digits[three >> 18], digits[(three >> 12) & 63], left > 1 ? digits[(three >> 6) & 63] : '=',
                        left > 2 ? digits[three & 63] : '='};
        put_bytes(text, four, 4);
    }
}

/* Begins a call. The caller adds the parameters, and then calls finish_call. */
static struct text start_call(const char *method)
{
    struct text call = {NULL, 0, 0, false};
    put(&call, "{\"method\":\"io.torpor.App.");
    put(&call, method);
    put(&call, "\",\"parameters\":{");
    return call;
}

/* Ends a call: appends the text after the parameters, and the NUL. */
static void finish_call(struct text *call, bool more)
{
    put(call, more ? "},\"more\":true}" : "}}");
    put_bytes(call, "", 1);
}

/* ---- Connections ------------------------------------------------------------------------------------------------- */

struct stream {
    int fd; /* -1 if not connected. */
    pid_t opener;
    dev_t device; /* These two identify the socket: another thread may have reused fd when a child is forked. */
    ino_t inode;
    struct text in;
    size_t searched; /* `in` has no NUL before this position. */
    struct text out;
};

struct answer {
    struct answer *next;
    int64_t id;
    bool sent;   /* Whether it was sent over the present connection. */
    bool resent; /* Whether it was sent over an earlier connection, whose reply may have been lost. */
    bool is_unhandled;
    unsigned declines;
    torpor_fetched fetched;
    size_t size;
    char *call;
};

struct task {
    struct task *next;
    int64_t token;
};

/* The sources of events of the epoll descriptor. */
enum source { OF_TIMER, OF_WAKE, OF_MESSAGES, OF_ANSWERS, OF_CALLS };

struct torpor_app {
    torpor_app *next_open; /* In the list of the apps that this process has opened. */
    pthread_mutex_t lock, call_lock;
    torpor_delegate delegate;
    void *context;
    bool receives; /* Whether the process gets messages: no TORPOR_NO_MESSAGES. */
    char *path;    /* The path of the socket; NULL without a supervisor. */
    int epoll, timer, wake;
    pthread_t thread;
    bool has_thread, stops;

    struct stream messages, answers, calls;
    bool attached;    /* The supervisor has accepted Attach on this connection. */
    bool refused;     /* The supervisor does not permit Attach for this process. */
    bool complained;  /* Whether an error was reported since the last successful Attach. */
    bool told_alone;  /* Without a supervisor: the delegate got the launch messages. */
    int retry_ms;     /* The delay before the next attempt to connect. */
    int64_t incarnation, after;
    struct answer *first_answer;
    struct task *tasks;
    int64_t last_token; /* The last token given to a task without a supervisor. */
    unsigned owed;      /* Replies on `calls` still to come whose callers have given up. */
    unsigned files;     /* How many names of state files were used. */
    pid_t process;      /* The process that has opened the app. */
    bool told_forked;   /* Whether this process, a forked child, was told that the app is not its own. */
    char error[512];
};

static int64_t now_ms(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

static void nap(int milliseconds)
{
    struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000L};
    nanosleep(&time, NULL);
}

static void close_stream(struct stream *stream)
{
    /* A forked child may have a copy of the descriptor. Without shutdown, the supervisor would see the end of the
     * connection only when all copies are closed. The child itself must not shut down its parent's connection. */
    if (stream->fd >= 0 && stream->opener == getpid())
        shutdown(stream->fd, SHUT_RDWR);
    if (stream->fd >= 0)
        close(stream->fd);
    free(stream->in.bytes);
    free(stream->out.bytes);
    memset(stream, 0, sizeof *stream);
    stream->fd = -1;
}

/* All apps that are open. Taken for moments alone, never with another lock or during a wait. */
static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;
static torpor_app *first_open;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

static void lock_open(void) { pthread_mutex_lock(&open_lock); }
static void unlock_open(void) { pthread_mutex_unlock(&open_lock); }

static void close_copy(struct stream *stream)
{
    struct stat status;
    if (stream->fd < 0 || fstat(stream->fd, &status) != 0)
        return;
    if (status.st_dev == stream->device && status.st_ino == stream->inode)
        close(stream->fd);
    stream->fd = -1;
}

/* In a forked child, which has its parent's connections too. As long as it kept them, the supervisor would take a dead
 * parent for the app's delegate, and for the owner of its tasks. Only calls that a signal handler may make are allowed
 * here. */
static void close_copies(void)
{
    for (torpor_app *app = first_open; app != NULL; app = app->next_open) {
        close_copy(&app->messages);
        close_copy(&app->answers);
        close_copy(&app->calls);
    }
    unlock_open();
}

static int fork_error;

static void watch_forks(void) { fork_error = pthread_atfork(lock_open, unlock_open, close_copies); }

/* Adds an app to the list. Returns 0 or an errno. */
static int note_open(torpor_app *app)
{
    pthread_once(&fork_once, watch_forks);
    if (fork_error != 0)
        return fork_error;
    lock_open();
    app->next_open = first_open;
    first_open = app;
    unlock_open();
    return 0;
}

static void forget_open(torpor_app *app)
{
    lock_open();
    torpor_app **at = &first_open;
    while (*at != NULL && *at != app)
        at = &(*at)->next_open;
    if (*at != NULL)
        *at = app->next_open;
    unlock_open();
}

static void watch(torpor_app *app, int operation, int fd, uint32_t events, enum source source)
{
    struct epoll_event event;
    memset(&event, 0, sizeof event);
    event.events = events;
    event.data.u32 = source;
    epoll_ctl(app->epoll, operation, fd, &event);
}

/* Connects without waiting; if the supervisor's queue is full, this fails and is tried again. Returns 0 or -errno. */
static int connect_stream(torpor_app *app, struct stream *stream, uint32_t events, enum source source)
{
    struct sockaddr_un address;
    memset(&address, 0, sizeof address);
    address.sun_family = AF_UNIX;
    if (strlen(app->path) >= sizeof address.sun_path)
        return -ENAMETOOLONG;
    strcpy(address.sun_path, app->path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    if (connect(fd, (const struct sockaddr *)&address, sizeof address) != 0) {
        int error = errno;
        close(fd);
        return -error;
    }
    struct stat status;
    if (fstat(fd, &status) != 0) {
        int error = errno;
        close(fd);
        return -error;
    }
    stream->device = status.st_dev;
    stream->inode = status.st_ino;
    stream->opener = getpid();
    stream->fd = fd;
    watch(app, EPOLL_CTL_ADD, fd, events, source);
    return 0;
}

/* Sends as much of the waiting data as the socket accepts. Returns 0 or -errno; 0 also if the socket is full. */
static int flush(struct stream *stream)
{
    struct text *out = &stream->out;
    if (out->broken)
        return -ENOMEM;
    size_t sent = 0;
    int result = 0;
    while (sent < out->used) {
        ssize_t count = send(stream->fd, out->bytes + sent, out->used - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0) {
            result = errno == EAGAIN ? 0 : -errno;
            break;
        }
        sent += (size_t)count;
    }
    if (sent > 0 && sent < out->used)
        memmove(out->bytes, out->bytes + sent, out->used - sent);
    out->used -= sent;
    return result;
}

/* Reads all data that has arrived. Returns 0 or -errno; -EPIPE if the supervisor has closed the connection. */
static int fill(struct stream *stream)
{
    for (;;) {
        if (stream->in.used > LONGEST_REPLY)
            return -EMSGSIZE;
        if (!make_room(&stream->in, 4096))
            return -ENOMEM;
        ssize_t count = recv(stream->fd, stream->in.bytes + stream->in.used, stream->in.size - stream->in.used,
                             MSG_DONTWAIT);
        if (count == 0)
            return -EPIPE;
        if (count > 0) {
            stream->in.used += (size_t)count;
            continue;
        }
        if (errno != EINTR)
            return errno == EAGAIN ? 0 : -errno;
    }
}

/* Takes the next complete reply. Returns 1 and sets *reply; 0 if there is none yet; -EPROTO if it is no JSON object. */
static int next_reply(struct stream *stream, torpor_json **reply)
{
    struct text *in = &stream->in;
    if (in->used == stream->searched)
        return 0;
    char *end = memchr(in->bytes + stream->searched, '\0', in->used - stream->searched);
    if (end == NULL) {
        stream->searched = in->used;
        return 0;
    }
    size_t length = (size_t)(end - in->bytes);
    *reply = torpor_json_read(in->bytes, length);
    in->used -= length + 1;
    memmove(in->bytes, end + 1, in->used);
    stream->searched = 0;
    if (*reply != NULL && (*reply)->kind == KIND_OBJECT)
        return 1;
    torpor_json_free(*reply);
    *reply = NULL;
    return -EPROTO;
}

/* ---- Errors ------------------------------------------------------------------------------------------------------ */

/* Stores a sentence for torpor_app_last_error, and returns the code. */
__attribute__((format(printf, 3, 4))) static int fail(torpor_app *app, int code, const char *format, ...)
{
    char text[sizeof app->error];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    pthread_mutex_lock(&app->lock);
    memcpy(app->error, text, sizeof text);
    pthread_mutex_unlock(&app->lock);
    return code;
}

static int no_memory(torpor_app *app) { return fail(app, -ENOMEM, "There is no memory for a call to the supervisor."); }

/* Whether this process has opened the app. A forked child has copies of the connections: what it read there would be
 * missing in its parent, and what it sent would count as its parent's. */
static bool is_own(const torpor_app *app) { return app->process == getpid(); }

/* Called in a forked child that uses its parent's app: stores the error, reports it once, and returns -ECHILD. Takes no
 * lock, since a thread that the child does not have may hold it. */
static int refuse_child(torpor_app *app)
{
    snprintf(app->error, sizeof app->error,
             "This torpor_app belongs to process %ld, from which this one was forked: open one of its own.",
             (long)app->process);
    if (app->told_forked)
        return -ECHILD;
    app->told_forked = true;
    /* The child's loop would spin on messages for its parent: give its descriptor an empty epoll, which is never
     * readable. */
    int empty = epoll_create1(EPOLL_CLOEXEC);
    if (empty >= 0) {
        dup3(empty, app->epoll, O_CLOEXEC);
        close(empty);
    }
    if (app->delegate.problem == NULL)
        fprintf(stderr, "torpor: %s\n", app->error);
    else
        app->delegate.problem(app, app->error, app->context);
    return -ECHILD;
}

void torpor_app_last_error(torpor_app *app, char *text, size_t size)
{
    if (!is_own(app)) {
        snprintf(text, size, "%s", app->error);
        return;
    }
    pthread_mutex_lock(&app->lock);
    snprintf(text, size, "%s", app->error);
    pthread_mutex_unlock(&app->lock);
}

/* Reports an error to the delegate. Call with `lock` held; it is released during the delegate's function. */
__attribute__((format(printf, 2, 3))) static void complain(torpor_app *app, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (app->delegate.problem == NULL) {
        fprintf(stderr, "torpor: %s\n", text);
        return;
    }
    pthread_mutex_unlock(&app->lock);
    app->delegate.problem(app, text, app->context);
    pthread_mutex_lock(&app->lock);
}

/* The last part of the error's name, such as AlreadyAnswered for io.torpor.App.AlreadyAnswered; NULL for no error. */
static const char *error_of(const torpor_json *reply)
{
    const char *name = torpor_json_string(torpor_json_get(reply, "error"), NULL);
    const char *dot = name != NULL ? strrchr(name, '.') : NULL;
    return dot != NULL ? dot + 1 : name;
}

/* The sentence that describes the reply's error; without one, the error's name. */
static const char *sentence_of(const torpor_json *reply)
{
    const torpor_json *parameters = torpor_json_get(reply, "parameters");
    const char *message = torpor_json_string(torpor_json_get(parameters, "message"), NULL);
    return message != NULL ? message : torpor_json_string(torpor_json_get(reply, "error"), NULL);
}

/* The word that says why a call failed; NULL for none. */
static const char *reason_of(const torpor_json *reply)
{
    return torpor_json_string(torpor_json_get(torpor_json_get(reply, "parameters"), "reason"), NULL);
}

/* The errno of an error, by its name. `reason` says more about Failed: a word, or NULL. */
static int code_of(const char *error, const char *reason)
{
    static const struct {
        const char *name;
        int code;
    } codes[] = {
        {"unknown", -ENOENT},         {"invalid", -EINVAL},      {"not-permitted", -EPERM}, {"full", -ENOSPC},
        {"NotPermitted", -EPERM},     {"UnknownTask", -ENOENT},  {"NoHandler", -ENOENT},  {"TooLarge", -EFBIG},       {"Failed", -EIO},
        {"UnknownApp", -ENOENT},      {"NotSubscribed", -EOPNOTSUPP}, {"MailboxFull", -ENOSPC},
        {"InvalidParameter", -EINVAL}, {"MethodNotFound", -ENOSYS}, {"InterfaceNotFound", -ENOSYS},
        {"MethodNotImplemented", -ENOSYS},
    };
    const char *names[] = {strcmp(error, "Failed") == 0 ? reason : NULL, error};
    for (size_t which = 0; which < 2; which++)
        for (size_t index = 0; names[which] != NULL && index < sizeof codes / sizeof codes[0]; index++)
            if (strcmp(codes[index].name, names[which]) == 0)
                return codes[index].code;
    return -EPROTO;
}

/* ---- Answers ----------------------------------------------------------------------------------------------------- */

static void retry_later(torpor_app *app)
{
    struct itimerspec when;
    memset(&when, 0, sizeof when);
    when.it_value.tv_sec = app->retry_ms / 1000;
    when.it_value.tv_nsec = app->retry_ms % 1000 * 1000000L;
    timerfd_settime(app->timer, 0, &when, NULL);
    app->retry_ms = app->retry_ms * 2 > LAST_RETRY_MS ? LAST_RETRY_MS : app->retry_ms * 2;
}

static void drop_answers_stream(torpor_app *app)
{
    close_stream(&app->answers);
    for (struct answer *answer = app->first_answer; answer != NULL; answer = answer->next) {
        answer->resent = answer->resent || answer->sent;
        answer->sent = false;
    }
}

/* Sends the waiting answers. Connects first if there is no connection. Call with `lock` held. */
static void send_answers(torpor_app *app)
{
    if (!app->attached || app->first_answer == NULL)
        return;
    if (app->answers.fd < 0 && connect_stream(app, &app->answers, EPOLLIN, OF_ANSWERS) != 0) {
        retry_later(app);
        return;
    }
    for (struct answer *answer = app->first_answer; answer != NULL; answer = answer->next) {
        if (answer->sent)
            continue;
        put_bytes(&app->answers.out, answer->call, answer->size);
        answer->sent = true;
    }
    if (flush(&app->answers) != 0) {
        drop_answers_stream(app);
        retry_later(app);
        return;
    }
    watch(app, EPOLL_CTL_MOD, app->answers.fd, app->answers.out.used > 0 ? EPOLLIN | EPOLLOUT : EPOLLIN, OF_ANSWERS);
}

static void put_declined(struct text *call, unsigned declines)
{
    static const struct {
        unsigned bit;
        const char *name;
    } names[] = {
        {TORPOR_DECLINES_URL, "\"url\""},
        {TORPOR_DECLINES_RESTORATION, "\"restoration\""},
        {TORPOR_DECLINES_SNAPSHOT, "\"snapshot\""},
    };
    const char *comma = "";
    put(call, ",\"declines\":[");
    for (size_t index = 0; index < sizeof names / sizeof names[0]; index++) {
        if ((declines & names[index].bit) == 0)
            continue;
        put(call, comma);
        put(call, names[index].name);
        comma = ",";
    }
    put(call, "]");
}

static bool is_result(torpor_result result)
{
    return result == TORPOR_DONE || result == TORPOR_FAILED || result == TORPOR_LATER || result == TORPOR_UNHANDLED;
}

/* The word for a result in an answer. TORPOR_LATER stands for a request for more time. */
static const char *word_of(torpor_result result)
{
    switch (result) {
    case TORPOR_DONE: return "done";
    case TORPOR_UNHANDLED: return "unhandled";
    case TORPOR_LATER: return "pending";
    case TORPOR_FAILED: break;
    }
    return "failed";
}

/* Queues an answer, and sends it at once if possible. Call with `lock` held. */
static int queue_answer(torpor_app *app, int64_t id, torpor_result result, const char *text, int64_t expected_ms,
                        unsigned declines, torpor_fetched fetched)
{
    static const char *const found[] = {NULL, "new-data", "no-data", "failed"};
    if (!is_own(app))
        return refuse_child(app);
    if (app->path == NULL)
        return 0;
    struct text call = start_call("Answer");
    put(&call, "\"id\":");
    put_int(&call, id);
    put(&call, ",\"result\":\"");
    put(&call, word_of(result));
    put(&call, "\"");
    if (text != NULL) {
        put(&call, ",\"text\":");
        put_string(&call, text);
    }
    if (expected_ms >= 0) {
        put(&call, ",\"expected_ms\":");
        put_int(&call, expected_ms);
    }
    if (declines != 0)
        put_declined(&call, declines);
    if (fetched > TORPOR_FETCHED_UNKNOWN && fetched <= TORPOR_FETCHED_FAILED) {
        put(&call, ",\"fetch\":");
        put_string(&call, found[fetched]);
    }
    finish_call(&call, false);
    struct answer *answer = calloc(1, sizeof *answer);
    if (answer == NULL || call.broken) {
        free(answer);
        free(call.bytes);
        return -ENOMEM;
    }
    answer->id = id;
    answer->call = call.bytes;
    answer->size = call.used;
    answer->is_unhandled = result == TORPOR_UNHANDLED;
    answer->declines = declines;
    answer->fetched = fetched;
    struct answer **last = &app->first_answer;
    while (*last != NULL)
        last = &(*last)->next;
    *last = answer;
    send_answers(app);
    return 0;
}

/* Reads the replies to answers. They arrive in the order of the answers, so each one concludes the first answer. */
static void read_answers(torpor_app *app)
{
    int state = app->answers.fd < 0 ? 0 : fill(&app->answers);
    torpor_json *reply = NULL;
    int got;
    while (app->answers.fd >= 0 && (got = next_reply(&app->answers, &reply)) != 0) {
        struct answer *answer = app->first_answer;
        if (got < 0 || answer == NULL || !answer->sent) {
            torpor_json_free(reply);
            state = -EPROTO;
            break;
        }
        app->first_answer = answer->next;
        const char *error = error_of(reply);
        if (error != NULL && strcmp(error, "InvalidParameter") == 0 && answer->is_unhandled) {
            /* An older supervisor does not know the word "unhandled": answer that the message is done. */
            if (queue_answer(app, answer->id, TORPOR_DONE, NULL, -1, answer->declines, answer->fetched) != 0)
                complain(app, "There was no memory for the answer to message %lld.", (long long)answer->id);
        } else if (error != NULL && strcmp(error, "AlreadyAnswered") == 0) {
            if (!answer->resent)
                complain(app, "Message %lld was answered twice: the first answer counts.", (long long)answer->id);
        } else if (error != NULL)
            complain(app, "The answer to message %lld was not taken: %s", (long long)answer->id, sentence_of(reply));
        free(answer->call);
        free(answer);
        torpor_json_free(reply);
        reply = NULL;
    }
    if (state != 0) {
        drop_answers_stream(app);
        if (app->attached && app->first_answer != NULL)
            retry_later(app);
    }
}

static int answer_later(torpor_app *app, int64_t id, torpor_result result, const char *text, unsigned declines,
                        torpor_fetched fetched)
{
    if (result == TORPOR_LATER || !is_result(result))
        return fail(app, -EINVAL,
                    "An answer is TORPOR_DONE, TORPOR_UNHANDLED or TORPOR_FAILED; torpor_app_pending asks for more time.");
    if (!is_own(app))
        return refuse_child(app);
    pthread_mutex_lock(&app->lock);
    int code = queue_answer(app, id, result, text, -1, declines, fetched);
    pthread_mutex_unlock(&app->lock);
    return code == 0 ? 0 : no_memory(app);
}

int torpor_app_answer(torpor_app *app, int64_t id, torpor_result result, const char *text, unsigned declines)
{
    return answer_later(app, id, result, text, declines, TORPOR_FETCHED_UNKNOWN);
}

int torpor_app_answer_fetch(torpor_app *app, int64_t id, torpor_result result, const char *text,
                            torpor_fetched fetched)
{
    return answer_later(app, id, result, text, 0, fetched);
}

int torpor_app_pending(torpor_app *app, int64_t id, int64_t expected_ms, const char *text)
{
    if (!is_own(app))
        return refuse_child(app);
    pthread_mutex_lock(&app->lock);
    int code = queue_answer(app, id, TORPOR_LATER, text, expected_ms, 0, TORPOR_FETCHED_UNKNOWN);
    pthread_mutex_unlock(&app->lock);
    return code == 0 ? 0 : no_memory(app);
}

/* ---- Messages ---------------------------------------------------------------------------------------------------- */

/* The app's function for a message; NULL if there is none. *for_others: whether another app may handle the message. */
static torpor_handler *handler_of(const torpor_delegate *delegate, const char *name, bool *for_others)
{
    const struct {
        const char *name;
        torpor_handler *handler;
        bool for_others;
    } handlers[] = {
        {"willFinishLaunching", delegate->will_finish_launching, false},
        {"restoreState", delegate->restore_state, false},
        {"didFinishLaunching", delegate->did_finish_launching, false},
        {"openURL", delegate->open_url, true},
        {"didBecomeActive", delegate->did_become_active, false},
        {"willResignActive", delegate->will_resign_active, false},
        {"didEnterBackground", delegate->did_enter_background, false},
        {"willEnterForeground", delegate->will_enter_foreground, false},
        {"resumed", delegate->resumed, false},
        {"taskExpiring", delegate->task_expiring, false},
        {"didReceiveMemoryWarning", delegate->did_receive_memory_warning, false},
        {"performFetch", delegate->perform_fetch, false},
        {"willTerminate", delegate->will_terminate, false},
        {"sceneWillConnect", delegate->scene_will_connect, false},
        {"sceneDidBecomeActive", delegate->scene_did_become_active, false},
        {"sceneWillResignActive", delegate->scene_will_resign_active, false},
        {"sceneDidEnterBackground", delegate->scene_did_enter_background, false},
        {"sceneWillEnterForeground", delegate->scene_will_enter_foreground, false},
        {"sceneDidDisconnect", delegate->scene_did_disconnect, false},
        {"didDiscardScenes", delegate->did_discard_scenes, false},
        {"settingsDidChange", delegate->settings_did_change, false},
        {"identityDidChange", delegate->identity_did_change, false},
        {"refresh", delegate->refresh, false},
        {"willContinueActivity", delegate->will_continue_activity, false},
        {"continueActivity", delegate->continue_activity, true},
        {"didFailToContinueActivity", delegate->did_fail_to_continue_activity, false},
        {"activityWasContinued", delegate->activity_was_continued, false},
        {"significantTimeChange", delegate->significant_time_change, false},
        {"protectedDataWillBecomeUnavailable", delegate->protected_data_will_become_unavailable, false},
        {"protectedDataDidBecomeAvailable", delegate->protected_data_did_become_available, false},
        {"handleEventsForBackgroundTransfer", delegate->handle_events_for_background_transfer, false},
        {"transferDidFinish", delegate->transfer_did_finish, false},
        {"transferNeedsLogin", delegate->transfer_needs_login, false},
        {"didReceiveLocalNotification", delegate->did_receive_local_notification, false},
        {"didReceiveEvent", delegate->did_receive_event, true},
        {"didReceiveNotification", delegate->did_receive_notification, true},
        {"didReceiveRemoteNotification", delegate->did_receive_remote_notification, true},
    };
    *for_others = true;
    for (size_t index = 0; index < sizeof handlers / sizeof handlers[0]; index++) {
        if (strcmp(handlers[index].name, name) != 0)
            continue;
        *for_others = handlers[index].for_others;
        if (handlers[index].handler != NULL)
            return handlers[index].handler;
    }
    return delegate->other;
}

/* Calls the app's function and sends its answer. Call with `lock` held; it is released during the function. */
static void deliver(torpor_app *app, torpor_message *message)
{
    bool for_others;
    torpor_handler *handler = handler_of(&app->delegate, message->name, &for_others);
    torpor_result result = TORPOR_UNHANDLED;
    if (handler != NULL) {
        pthread_mutex_unlock(&app->lock);
        result = handler(app, message, app->context);
        pthread_mutex_lock(&app->lock);
    }
    if (result == TORPOR_LATER)
        return;
    if (result == TORPOR_UNHANDLED && !for_others)
        result = TORPOR_DONE;
    const char *text = message->text;
    char unknown[128];
    if (!is_result(result)) {
        snprintf(unknown, sizeof unknown, "The function for %s returned %d, which is no torpor_result.", message->name,
                 (int)result);
        complain(app, "%s", unknown);
        /* Another app, or people, may still handle it. */
        result = for_others ? TORPOR_UNHANDLED : TORPOR_FAILED;
        text = for_others ? NULL : unknown;
    }
    if (queue_answer(app, message->id, result, text, -1, message->declines, message->fetched) == -ENOMEM)
        complain(app, "There was no memory for the answer to %s.", message->name);
}

/* Delivers the messages of a launch into the foreground to a program without a supervisor. */
static int launch_alone(torpor_app *app)
{
    static const char *const names[] = {"willFinishLaunching", "didFinishLaunching", "didBecomeActive"};
    torpor_json *parameters = torpor_json_read("{\"options\":{}}", 14);
    app->told_alone = true;
    for (int index = 0; index < 3 && is_own(app); index++) {
        torpor_message message = {index + 1, names[index], -1, parameters, NULL, 0, TORPOR_FETCHED_UNKNOWN};
        deliver(app, &message);
    }
    torpor_json_free(parameters);
    return 3;
}

/* Closes the connections, and reconnects later. No data is lost, as when a supervisor that is replaced closes them. */
static void drop_connections(torpor_app *app)
{
    close_stream(&app->messages);
    drop_answers_stream(app);
    app->attached = false;
    if (!app->refused)
        retry_later(app);
}

static void attach(torpor_app *app)
{
    int state = connect_stream(app, &app->messages, EPOLLIN, OF_MESSAGES);
    if (state == 0) {
        struct text call = start_call("Attach");
        if (app->incarnation > 0) {
            put(&call, "\"incarnation\":");
            put_int(&call, app->incarnation);
            put(&call, ",\"after\":");
            put_int(&call, app->after);
            put(&call, ",\"tasks\":[");
            for (struct task *task = app->tasks; task != NULL; task = task->next) {
                put_int(&call, task->token);
                put(&call, task->next != NULL ? "," : "");
            }
            put(&call, "]");
        }
        finish_call(&call, true);
        app->messages.out = call;
        state = flush(&app->messages);
    }
    if (state == 0) {
        if (app->messages.out.used > 0)
            watch(app, EPOLL_CTL_MOD, app->messages.fd, EPOLLIN | EPOLLOUT, OF_MESSAGES);
        return;
    }
    /* The supervisor waits for this process, and nothing else would say why it does not come. */
    if (state == -EACCES && !app->complained) {
        app->complained = true;
        complain(app,
                 "%s cannot be opened (%s): this process is user %ld, and only the user that the app has in the "
                 "configuration may open it. Set `user` there instead of changing it in the program.",
                 app->path, strerror(EACCES), (long)geteuid());
    }
    drop_connections(app);
}

static void claim_tasks(torpor_app *app);

/* Handles the first reply to Attach. */
static void did_attach(torpor_app *app, const torpor_json *situation)
{
    int64_t incarnation = torpor_json_int(torpor_json_get(situation, "incarnation"), 0);
    if (incarnation != app->incarnation) {
        app->incarnation = incarnation;
        app->after = 0;
    }
    app->attached = true;
    app->complained = false;
    app->retry_ms = FIRST_RETRY_MS;
    send_answers(app);
    claim_tasks(app);
    if (app->delegate.attached != NULL) {
        pthread_mutex_unlock(&app->lock);
        app->delegate.attached(app, situation, app->context);
        pthread_mutex_lock(&app->lock);
    }
}

/* Handles a reply to Attach. Returns 1 if a message was handled, 0 if not, -1 to close the connection. */
static int take_reply(torpor_app *app, const torpor_json *reply)
{
    const char *error = error_of(reply);
    if (error != NULL) {
        app->refused = strcmp(error, "NotPermitted") == 0;
        if (!app->complained) {
            app->complained = true;
            complain(app, "The supervisor does not take this process as the app's delegate: %s", sentence_of(reply));
        }
        return -1;
    }
    const torpor_json *parameters = torpor_json_get(reply, "parameters");
    const torpor_json *message = torpor_json_get(parameters, "message");
    bool ends = !torpor_json_bool(torpor_json_get(reply, "continues"), false);
    if (torpor_json_is_null(message)) {
        if (!app->attached)
            did_attach(app, parameters);
        return ends ? -1 : 0;
    }
    torpor_message given;
    memset(&given, 0, sizeof given);
    given.id = torpor_json_int(torpor_json_get(message, "id"), 0);
    given.name = torpor_json_string(torpor_json_get(message, "name"), NULL);
    given.deadline_ms = torpor_json_int(torpor_json_get(message, "deadline_ms"), -1);
    given.parameters = torpor_json_get(message, "parameters");
    if (!app->attached || given.name == NULL || given.id <= 0) {
        complain(app, "The supervisor sent a message that cannot be read: reconnecting.");
        return -1;
    }
    if (given.id <= app->after)
        return ends ? -1 : 0;
    app->after = given.id;
    deliver(app, &given);
    return ends ? -1 : 1;
}

static int read_messages(torpor_app *app)
{
    int handled = 0;
    /* An earlier event of this dispatch may have closed the connection. */
    if (app->messages.fd < 0)
        return 0;
    int state = app->messages.out.used > 0 ? flush(&app->messages) : 0;
    if (state == 0) {
        watch(app, EPOLL_CTL_MOD, app->messages.fd, app->messages.out.used > 0 ? EPOLLIN | EPOLLOUT : EPOLLIN,
              OF_MESSAGES);
        state = fill(&app->messages);
    }
    torpor_json *reply = NULL;
    int got;
    while ((got = next_reply(&app->messages, &reply)) == 1) {
        int result = take_reply(app, reply);
        torpor_json_free(reply);
        if (result < 0) {
            state = -EPIPE;
            break;
        }
        handled += result;
        /* The function has forked, and this is the child: what else was read is for the parent. */
        if (!is_own(app))
            return handled;
    }
    if (got < 0 && !app->complained) {
        app->complained = true;
        complain(app, "The supervisor sent invalid JSON: reconnecting.");
    }
    if (got < 0 || state != 0)
        drop_connections(app);
    return handled;
}

/* ---- Calls that wait for their reply ----------------------------------------------------------------------------- */

/* Waits until the connection can be read or written. Returns 0, or -errno; -ETIMEDOUT if `until` (ms) comes first. */
static int wait_for(int fd, short events, int64_t until)
{
    for (;;) {
        int64_t left = until - now_ms();
        struct pollfd watched = {fd, events, 0};
        int count = poll(&watched, 1, left > 0 ? (int)(left > INT_MAX ? INT_MAX : left) : 0);
        if (count > 0)
            return 0;
        if (count < 0 && errno != EINTR)
            return -errno;
        if (count == 0)
            return -ETIMEDOUT;
    }
}

/* Sends a call and reads its reply. Call with call_lock held. If the reply does not arrive in time, the next call reads
 * and drops it. */
static int transact(torpor_app *app, const struct text *call, int64_t until, torpor_json **reply)
{
    size_t sent = 0;
    while (sent < call->used) {
        ssize_t count = send(app->calls.fd, call->bytes + sent, call->used - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (count >= 0) {
            sent += (size_t)count;
            continue;
        }
        if (errno == EINTR)
            continue;
        if (errno != EAGAIN)
            return -errno;
        int state = wait_for(app->calls.fd, POLLOUT, until);
        /* A call that was sent in part cannot be withdrawn, so the connection must be closed. */
        if (state != 0)
            return sent > 0 ? -EPIPE : state;
    }
    for (;;) {
        int got = next_reply(&app->calls, reply);
        if (got < 0)
            return got;
        if (got > 0 && app->owed == 0)
            return 0;
        if (got > 0) {
            app->owed--;
            torpor_json_free(*reply);
            *reply = NULL;
            continue;
        }
        int state = wait_for(app->calls.fd, POLLIN, until);
        if (state == -ETIMEDOUT)
            app->owed++;
        if (state != 0)
            return state;
        state = fill(&app->calls);
        if (state != 0
            && (app->calls.in.used == 0 || memchr(app->calls.in.bytes, '\0', app->calls.in.used) == NULL))
            return state;
    }
}

static bool is_broken(struct stream *stream)
{
    char byte;
    ssize_t count = recv(stream->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR);
}

static struct text claim_call(torpor_app *app)
{
    struct text call = start_call("ClaimTasks");
    put(&call, "\"tokens\":[");
    pthread_mutex_lock(&app->lock);
    for (struct task *task = app->tasks; task != NULL; task = task->next) {
        put_int(&call, task->token);
        put(&call, task->next != NULL ? "," : "");
    }
    bool any = app->tasks != NULL;
    pthread_mutex_unlock(&app->lock);
    put(&call, "]");
    finish_call(&call, false);
    if (!any)
        call.used = 0;
    return call;
}

/* Makes the third connection if there is none, and moves the tasks to it. Call with call_lock held. */
static int prepare_calls(torpor_app *app, int64_t until)
{
    if (app->calls.fd >= 0 && is_broken(&app->calls))
        close_stream(&app->calls);
    if (app->calls.fd >= 0)
        return 0;
    app->owed = 0;
    int state = connect_stream(app, &app->calls, EPOLLRDHUP | EPOLLONESHOT, OF_CALLS);
    if (state != 0)
        return state;
    struct text call = claim_call(app);
    torpor_json *reply = NULL;
    if (call.broken)
        state = -ENOMEM;
    else if (call.used > 0)
        state = transact(app, &call, until, &reply);
    torpor_json_free(reply);
    free(call.bytes);
    if (state != 0)
        close_stream(&app->calls);
    return state;
}

/* Moves tasks to a new connection if theirs is broken. Call with `lock` held; it is released for a while. */
static void claim_tasks(torpor_app *app)
{
    if (app->tasks == NULL)
        return;
    pthread_mutex_unlock(&app->lock);
    /* A thread that holds call_lock waits on the connection, and notices itself if it is broken. */
    int state = pthread_mutex_trylock(&app->call_lock);
    if (state == 0) {
        state = prepare_calls(app, now_ms() + 1000);
        pthread_mutex_unlock(&app->call_lock);
    }
    pthread_mutex_lock(&app->lock);
    if (state != 0)
        retry_later(app);
    else
        app->retry_ms = FIRST_RETRY_MS;
}

/* Makes a call, and repeats it over a new connection if the connection breaks: every call in this file may be repeated.
 * Completes and frees `call`. On success stores the reply in *reply, which the caller frees; reply may be NULL. Call
 * with call_lock held. */
static int call_held(torpor_app *app, struct text *call, int milliseconds, torpor_json **reply)
{
    int64_t until = now_ms() + milliseconds;
    torpor_json *got = NULL;
    finish_call(call, false);
    int state = call->broken ? -ENOMEM : -EPIPE;
    while (state != 0 && state != -ENOMEM) {
        state = prepare_calls(app, until);
        if (state == 0) {
            state = transact(app, call, until, &got);
            if (state != 0 && state != -ETIMEDOUT)
                close_stream(&app->calls);
        }
        if (state == 0 || now_ms() >= until)
            break;
        nap(FIRST_RETRY_MS);
    }
    free(call->bytes);
    if (state == -ENOMEM)
        return no_memory(app);
    if (state != 0)
        return fail(app, state, "The supervisor at %s does not answer: %s.", app->path, strerror(-state));
    const char *error = error_of(got);
    if (error != NULL) {
        state = fail(app, code_of(error, reason_of(got)), "%s", sentence_of(got));
        torpor_json_free(got);
        return state;
    }
    if (reply != NULL)
        *reply = got;
    else
        torpor_json_free(got);
    return 0;
}

static int call_and_wait(torpor_app *app, struct text *call, int milliseconds, torpor_json **reply)
{
    if (!is_own(app)) {
        free(call->bytes);
        return refuse_child(app);
    }
    pthread_mutex_lock(&app->call_lock);
    int state = call_held(app, call, milliseconds, reply);
    pthread_mutex_unlock(&app->call_lock);
    return state;
}

/* ---- Tasks ------------------------------------------------------------------------------------------------------- */

static int64_t remaining_of(const torpor_json *reply)
{
    return torpor_json_int(torpor_json_get(torpor_json_get(reply, "parameters"), "remaining_ms"), -1);
}

/* Adds a task to the list. With a supervisor, call with call_lock held, so that a new connection gets the task too. */
static void note_task(torpor_app *app, struct task *task)
{
    pthread_mutex_lock(&app->lock);
    if (task->token == 0)
        task->token = ++app->last_token;
    task->next = app->tasks;
    app->tasks = task;
    pthread_mutex_unlock(&app->lock);
}

int64_t torpor_app_begin_task(torpor_app *app, const char *name, int64_t *remaining_ms)
{
    if (!is_own(app))
        return refuse_child(app);
    struct task *task = calloc(1, sizeof *task);
    if (task == NULL)
        return no_memory(app);
    if (remaining_ms != NULL)
        *remaining_ms = -1;
    if (app->path == NULL) {
        note_task(app, task);
        return task->token;
    }
    struct text call = start_call("BeginTask");
    put(&call, "\"name\":");
    put_string(&call, name);
    torpor_json *reply = NULL;
    pthread_mutex_lock(&app->call_lock);
    int64_t state = call_held(app, &call, CALL_MS, &reply);
    if (state == 0) {
        task->token = torpor_json_int(torpor_json_get(torpor_json_get(reply, "parameters"), "token"), 0);
        if (remaining_ms != NULL)
            *remaining_ms = remaining_of(reply);
        torpor_json_free(reply);
        state = task->token > 0 ? task->token : fail(app, -EPROTO, "The supervisor gave the task no token.");
    }
    if (state > 0)
        note_task(app, task);
    else
        free(task);
    pthread_mutex_unlock(&app->call_lock);
    return state;
}

int torpor_app_end_task(torpor_app *app, int64_t token)
{
    if (!is_own(app))
        return refuse_child(app);
    pthread_mutex_lock(&app->lock);
    struct task **at = &app->tasks;
    while (*at != NULL && (*at)->token != token)
        at = &(*at)->next;
    struct task *found = *at;
    if (found != NULL)
        *at = found->next;
    pthread_mutex_unlock(&app->lock);
    if (found == NULL)
        return fail(app, -ENOENT, "There is no task %lld of this process.", (long long)token);
    free(found);
    if (app->path == NULL)
        return 0;
    struct text call = start_call("EndTask");
    put(&call, "\"token\":");
    put_int(&call, token);
    int state = call_and_wait(app, &call, CALL_MS, NULL);
    return state == -ENOENT ? 0 : state;
}

int torpor_app_background_time(torpor_app *app, int64_t *remaining_ms)
{
    *remaining_ms = -1;
    if (app->path == NULL)
        return 0;
    struct text call = start_call("BackgroundTime");
    torpor_json *reply = NULL;
    int state = call_and_wait(app, &call, CALL_MS, &reply);
    if (state == 0)
        *remaining_ms = remaining_of(reply);
    torpor_json_free(reply);
    return state;
}

int torpor_app_is_expiring(torpor_app *app)
{
    if (app->path == NULL)
        return 0;
    struct text call = start_call("BackgroundTime");
    torpor_json *reply = NULL;
    int state = call_and_wait(app, &call, CALL_MS, &reply);
    if (state == 0) {
        int64_t left = remaining_of(reply);
        const torpor_json *parameters = torpor_json_get(reply, "parameters");
        int64_t warning = torpor_json_int(torpor_json_get(parameters, "expiry_warning_ms"), EXPIRY_WARNING_MS);
        state = left >= 0 && left <= warning ? 1 : 0;
    }
    torpor_json_free(reply);
    return state;
}

/* Replaces the value `top` by `below`, a value inside it, and frees all other values inside. */
static void keep_only(torpor_json *top, torpor_json *below)
{
    torpor_json kept = *below;
    below->first = NULL;
    free_below(top);
    *top = kept;
    top->next = NULL;
    top->key = NULL;
}

/* Makes a call, and returns a member of the reply's parameters; NULL on failure. `lack` says that it has none. */
static torpor_json *call_for(torpor_app *app, struct text *call, const char *member, const char *lack)
{
    torpor_json *reply = NULL;
    if (call_and_wait(app, call, CALL_MS, &reply) < 0) {
        torpor_json_free(reply);
        return NULL;
    }
    /* The cast is safe: this function owns the reply. */
    torpor_json *value = (torpor_json *)torpor_json_get(torpor_json_get(reply, "parameters"), member);
    if (value == NULL) {
        torpor_json_free(reply);
        fail(app, -EPROTO, "%s", lack);
        return NULL;
    }
    keep_only(reply, value);
    return reply;
}

/* ---- Other apps -------------------------------------------------------------------------------------------------- */

/* Makes a random token for a request: a request that is repeated on another connection is carried out only once. */
static int new_token(torpor_app *app, char token[17])
{
    uint64_t number = 0;
    if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
        return fail(app, -errno, "Random numbers cannot be read: %s.", strerror(errno));
    snprintf(token, 17, "%016llx", (unsigned long long)number);
    return 0;
}

int torpor_app_open_url(torpor_app *app, const char *url)
{
    if (app->path == NULL)
        return fail(app, -ENOTCONN, "The program runs without a supervisor, which would open the URL.");
    char token[17];
    int state = new_token(app, token);
    if (state < 0)
        return state;
    struct text call = start_call("OpenURL");
    put(&call, "\"url\":");
    put_string(&call, url);
    put(&call, ",\"token\":");
    put_string(&call, token);
    return call_and_wait(app, &call, CALL_MS, NULL);
}

int torpor_app_can_open(torpor_app *app, const char *scheme)
{
    if (app->path == NULL)
        return 0;
    struct text call = start_call("CanOpen");
    put(&call, "\"scheme\":");
    put_string(&call, scheme);
    torpor_json *reply = NULL;
    int state = call_and_wait(app, &call, CALL_MS, &reply);
    if (state == 0)
        state = torpor_json_bool(torpor_json_get(torpor_json_get(reply, "parameters"), "can"), false) ? 1 : 0;
    torpor_json_free(reply);
    return state;
}

/* Whether a text is JSON. */
static bool is_json(const char *text)
{
    torpor_json *value = torpor_json_read(text, strlen(text));
    bool is_read = value != NULL;
    torpor_json_free(value);
    return is_read;
}

int64_t torpor_app_post(torpor_app *app, const char *to, const char *topic, const char *payload, unsigned flags)
{
    if (app->path == NULL)
        return fail(app, -ENOTCONN, "The program runs without a supervisor, which would post the message.");
    if (payload != NULL && !is_json(payload))
        return fail(app, -EINVAL, "The payload is not JSON.");
    char token[17];
    int state = new_token(app, token);
    if (state < 0)
        return state;
    struct text call = start_call("Post");
    put(&call, "\"app\":");
    put_string(&call, to);
    put(&call, ",\"topic\":");
    put_string(&call, topic);
    if (payload != NULL) {
        put(&call, ",\"payload\":");
        put(&call, payload);
    }
    if ((flags & TORPOR_TOPIC_URGENT) != 0)
        put(&call, ",\"urgent\":true");
    put(&call, ",\"token\":");
    put_string(&call, token);
    torpor_json *reply = NULL;
    state = call_and_wait(app, &call, CALL_MS, &reply);
    int64_t number = state;
    if (state == 0)
        number = torpor_json_int(torpor_json_get(torpor_json_get(reply, "parameters"), "id"), 0);
    torpor_json_free(reply);
    return number;
}

int torpor_app_subscribe(torpor_app *app, const char *topic, const char *coalesce, unsigned flags)
{
    if (app->path == NULL)
        return 0;
    struct text call = start_call("Subscribe");
    put(&call, "\"topic\":");
    put_string(&call, topic);
    if (coalesce != NULL) {
        put(&call, ",\"coalesce\":");
        put_string(&call, coalesce);
    }
    if ((flags & TORPOR_TOPIC_URGENT) != 0)
        put(&call, ",\"urgent\":true");
    if ((flags & TORPOR_TOPIC_KEEP) != 0)
        put(&call, ",\"keep\":true");
    return call_and_wait(app, &call, CALL_MS, NULL);
}

int torpor_app_unsubscribe(torpor_app *app, const char *topic)
{
    if (app->path == NULL)
        return 0;
    struct text call = start_call("Subscribe");
    put(&call, "\"topic\":");
    put_string(&call, topic);
    put(&call, ",\"end\":true");
    return call_and_wait(app, &call, CALL_MS, NULL);
}

torpor_json *torpor_app_take(torpor_app *app, int64_t max, bool keep, const int64_t *done, size_t count)
{
    if (app->path == NULL) {
        torpor_json *none = torpor_json_read("[]", 2);
        if (none == NULL)
            fail(app, -ENOMEM, "There is no memory.");
        return none;
    }
    struct text call = start_call("Take");
    put(&call, "\"keep\":");
    put(&call, keep ? "true" : "false");
    if (max > 0) {
        put(&call, ",\"max\":");
        put_int(&call, max);
    }
    for (size_t index = 0; index < count; index++) {
        put(&call, index == 0 ? ",\"done\":[" : ",");
        put_int(&call, done[index]);
    }
    if (count > 0)
        put(&call, "]");
    return call_for(app, &call, "mail", "The supervisor gave no messages.");
}

/* ---- Transfers --------------------------------------------------------------------------------------------------- */

static int no_transfers(torpor_app *app)
{
    return fail(app, -ENOTCONN, "The program runs without a supervisor, which would transfer files.");
}

int64_t torpor_app_start_transfer(torpor_app *app, const char *direction, const char *url, const char *file,
                                  const char *session, unsigned flags)
{
    if (app->path == NULL)
        return no_transfers(app);
    char token[17];
    int64_t state = new_token(app, token);
    if (state < 0)
        return state;
    struct text call = start_call("StartTransfer");
    put(&call, "\"direction\":");
    put_string(&call, direction);
    put(&call, ",\"url\":");
    put_string(&call, url);
    put(&call, ",\"file\":");
    put_string(&call, file);
    if (session != NULL) {
        put(&call, ",\"session\":");
        put_string(&call, session);
    }
    put(&call, flags & TORPOR_TRANSFER_DISCRETIONARY ? ",\"discretionary\":true" : ",\"discretionary\":false");
    put(&call, flags & TORPOR_TRANSFER_SILENT ? ",\"events\":false" : ",\"events\":true");
    put(&call, ",\"token\":");
    put_string(&call, token);
    torpor_json *reply = NULL;
    state = call_and_wait(app, &call, CALL_MS, &reply);
    if (state == 0) {
        state = torpor_json_int(torpor_json_get(torpor_json_get(reply, "parameters"), "id"), 0);
        if (state <= 0)
            state = fail(app, -EPROTO, "The supervisor gave the transfer no number.");
    }
    torpor_json_free(reply);
    return state;
}

int torpor_app_cancel_transfer(torpor_app *app, int64_t id)
{
    if (app->path == NULL)
        return no_transfers(app);
    struct text call = start_call("CancelTransfer");
    put(&call, "\"id\":");
    put_int(&call, id);
    return call_and_wait(app, &call, CALL_MS, NULL);
}

int torpor_app_answer_login(torpor_app *app, int64_t id, const char *user, const char *password)
{
    if (app->path == NULL)
        return no_transfers(app);
    struct text call = start_call("AnswerLogin");
    put(&call, "\"id\":");
    put_int(&call, id);
    if (user == NULL) {
        put(&call, ",\"cancel\":true");
    } else {
        put(&call, ",\"user\":");
        put_string(&call, user);
        put(&call, ",\"password\":");
        put_string(&call, password != NULL ? password : "");
    }
    return call_and_wait(app, &call, CALL_MS, NULL);
}

/* ---- Alerts ------------------------------------------------------------------------------------------------------ */

static int no_alerts(torpor_app *app)
{
    return fail(app, -ENOTCONN, "The program runs without a supervisor, which would show alerts.");
}

static void put_member(struct text *call, const char *name, const char *string)
{
    if (string == NULL)
        return;
    put(call, ",");
    put_string(call, name);
    put(call, ":");
    put_string(call, string);
}

int torpor_app_schedule_alert(torpor_app *app, const torpor_alert_request *alert)
{
    if (app->path == NULL)
        return no_alerts(app);
    if (alert->actions != NULL && !is_json(alert->actions))
        return fail(app, -EINVAL, "The actions are not JSON.");
    if (alert->payload != NULL && !is_json(alert->payload))
        return fail(app, -EINVAL, "The payload is not JSON.");
    char token[17];
    int state = new_token(app, token);
    if (state < 0)
        return state;
    struct text call = start_call("ScheduleAlert");
    put(&call, "\"title\":");
    put_string(&call, alert->title != NULL ? alert->title : "");
    put_member(&call, "id", alert->id);
    put_member(&call, "body", alert->body);
    put_member(&call, "at", alert->at);
    put_member(&call, "time_zone", alert->time_zone);
    put_member(&call, "calendar", alert->calendar);
    put_member(&call, "urgency", alert->urgency);
    put_member(&call, "sound", alert->sound);
    put_member(&call, "url", alert->url);
    if (alert->after_ms != 0) {
        put(&call, ",\"after_ms\":");
        put_int(&call, alert->after_ms);
    }
    if (alert->actions != NULL) {
        put(&call, ",\"actions\":");
        put(&call, alert->actions);
    }
    if (alert->payload != NULL) {
        put(&call, ",\"payload\":");
        put(&call, alert->payload);
    }
    put(&call, alert->wake ? ",\"wake\":true" : ",\"wake\":false");
    put_member(&call, "token", token);
    return call_and_wait(app, &call, CALL_MS, NULL);
}

int torpor_app_cancel_alert(torpor_app *app, const char *id)
{
    if (app->path == NULL)
        return no_alerts(app);
    struct text call = start_call("CancelAlert");
    if (id != NULL) {
        put(&call, "\"ids\":[");
        put_string(&call, id);
        put(&call, "]");
    }
    return call_and_wait(app, &call, CALL_MS, NULL);
}

int torpor_app_set_badge(torpor_app *app, int64_t count)
{
    if (app->path == NULL)
        return no_alerts(app);
    struct text call = start_call("SetBadge");
    put(&call, "\"count\":");
    put_int(&call, count);
    return call_and_wait(app, &call, CALL_MS, NULL);
}

/* ---- Permissions ------------------------------------------------------------------------------------------------- */

static int permission_state(torpor_app *app, const torpor_json *state)
{
    const char *word = torpor_json_string(state, NULL);
    if (word != NULL && strcmp(word, "allow") == 0)
        return TORPOR_PERMISSION_ALLOW;
    if (word != NULL && strcmp(word, "deny") == 0)
        return TORPOR_PERMISSION_DENY;
    if (word != NULL && strcmp(word, "ask") == 0)
        return TORPOR_PERMISSION_ASK;
    return fail(app, -EPROTO, "The supervisor gave no state of the permission.");
}

int torpor_app_permission(torpor_app *app, const char *name)
{
    if (app->path == NULL)
        return TORPOR_PERMISSION_ALLOW;
    struct text call = start_call("Permissions");
    torpor_json *reply = NULL;
    int state = call_and_wait(app, &call, CALL_MS, &reply);
    if (state == 0) {
        const torpor_json *found = NULL;
        const torpor_json *all = torpor_json_get(torpor_json_get(reply, "parameters"), "permissions");
        for (size_t index = 0; index < torpor_json_count(all); index++) {
            const torpor_json *one = torpor_json_at(all, index);
            const char *its = torpor_json_string(torpor_json_get(one, "name"), NULL);
            if (its != NULL && strcmp(its, name) == 0)
                found = one;
        }
        state = found != NULL
                    ? permission_state(app, torpor_json_get(found, "state"))
                    : fail(app, -ENOENT, "The configuration declares no such permission for the app.");
    }
    torpor_json_free(reply);
    return state;
}

int torpor_app_request_permission(torpor_app *app, const char *name, torpor_question *question)
{
    if (question != NULL)
        *question = (torpor_question){false, 0};
    if (app->path == NULL)
        return TORPOR_PERMISSION_ALLOW;
    struct text call = start_call("RequestPermission");
    put(&call, "\"name\":");
    put_string(&call, name);
    torpor_json *reply = NULL;
    int state = call_and_wait(app, &call, CALL_MS, &reply);
    if (state == 0) {
        const torpor_json *parameters = torpor_json_get(reply, "parameters");
        state = permission_state(app, torpor_json_get(parameters, "state"));
        if (question != NULL) {
            question->asked = torpor_json_bool(torpor_json_get(parameters, "asked"), false);
            question->next_at = torpor_json_int(torpor_json_get(parameters, "next_at"), 0);
        }
    }
    torpor_json_free(reply);
    return state;
}

int torpor_app_set_needs_refresh(torpor_app *app, const char *const *names, size_t count)
{
    if (app->path == NULL)
        return 0;
    struct text call = start_call("SetNeedsRefresh");
    put(&call, "\"names\":[");
    for (size_t index = 0; index < count; index++) {
        if (index > 0)
            put(&call, ",");
        put_string(&call, names[index]);
    }
    put(&call, "]");
    return call_and_wait(app, &call, SAVE_MS, NULL);
}

/* ---- Activities -------------------------------------------------------------------------------------------------- */

int torpor_app_set_activity(torpor_app *app, const torpor_current_activity *activity)
{
    if (app->path == NULL)
        return 0;
    if (activity->payload != NULL && !is_json(activity->payload))
        return fail(app, -EINVAL, "The payload is not JSON.");
    struct text call = start_call("SetActivity");
    put(&call, "\"type\":");
    put_string(&call, activity->type != NULL ? activity->type : "");
    if (activity->title != NULL) {
        put(&call, ",\"title\":");
        put_string(&call, activity->title);
    }
    if (activity->payload != NULL) {
        put(&call, ",\"payload\":");
        put(&call, activity->payload);
    }
    if (activity->url != NULL) {
        put(&call, ",\"url\":");
        put_string(&call, activity->url);
    }
    if (activity->needs_state)
        put(&call, ",\"state\":true");
    return call_and_wait(app, &call, CALL_MS, NULL);
}

int torpor_app_end_activity(torpor_app *app)
{
    if (app->path == NULL)
        return 0;
    struct text call = start_call("EndActivity");
    return call_and_wait(app, &call, CALL_MS, NULL);
}

/* ---- Settings ---------------------------------------------------------------------------------------------------- */

static int no_settings(torpor_app *app)
{
    return fail(app, -ENOTCONN, "The program runs without a supervisor, which would know its settings.");
}

torpor_json *torpor_app_settings(torpor_app *app)
{
    if (app->path == NULL) {
        no_settings(app);
        return NULL;
    }
    struct text call = start_call("Settings");
    return call_for(app, &call, "settings", "The supervisor gave no settings.");
}

int torpor_app_set_setting(torpor_app *app, const char *name, const char *json)
{
    if (app->path == NULL)
        return no_settings(app);
    if (json != NULL && !is_json(json))
        return fail(app, -EINVAL, "The value is not JSON.");
    struct text call = start_call("SetSettings");
    put(&call, json != NULL ? "\"values\":{" : "\"unset\":[");
    put_string(&call, name);
    if (json != NULL) {
        put(&call, ":");
        put(&call, json);
    }
    put(&call, json != NULL ? "}" : "]");
    torpor_json *reply = NULL;
    int state = call_and_wait(app, &call, CALL_MS, &reply);
    if (state == 0)
        state = torpor_json_count(torpor_json_get(torpor_json_get(reply, "parameters"), "changed")) > 0 ? 1 : 0;
    torpor_json_free(reply);
    return state;
}

/* ---- State ------------------------------------------------------------------------------------------------------- */

static int no_supervisor(torpor_app *app)
{
    return fail(app, -ENOTCONN, "The program runs without a supervisor, which would keep its state.");
}

/* Appends the parameter `scene`, the last one of a call. Appends nothing for NULL: the call is about the app itself. */
static void put_scene(struct text *call, const char *scene)
{
    if (scene == NULL)
        return;
    put(call, ",\"scene\":");
    put_string(call, scene);
}

static int save_file(torpor_app *app, const char *member, const char *scene, const char *name)
{
    if (app->path == NULL)
        return no_supervisor(app);
    struct text call = start_call(member);
    put(&call, "\"file\":");
    put_string(&call, name);
    put_scene(&call, scene);
    return call_and_wait(app, &call, SAVE_MS, NULL);
}

int torpor_app_save_state_file(torpor_app *app, const char *name) { return save_file(app, "SaveState", NULL, name); }

int torpor_app_save_snapshot_file(torpor_app *app, const char *name)
{
    return save_file(app, "SaveSnapshot", NULL, name);
}

int torpor_app_save_scene_state_file(torpor_app *app, const char *scene, const char *name)
{
    return save_file(app, "SaveState", scene, name);
}

int torpor_app_save_scene_snapshot_file(torpor_app *app, const char *scene, const char *name)
{
    return save_file(app, "SaveSnapshot", scene, name);
}

/* Writes all bytes and closes the descriptor. Returns 0 or -errno. */
static int write_out(int fd, const char *bytes, size_t size)
{
    int state = 0;
    while (size > 0 && state == 0) {
        ssize_t count = write(fd, bytes, size);
        if (count >= 0) {
            bytes += count;
            size -= (size_t)count;
        } else if (errno != EINTR) {
            state = -errno;
        }
    }
    if (close(fd) != 0 && state == 0)
        state = -errno;
    return state;
}

static int save_large(torpor_app *app, const char *member, const char *scene, const void *bytes, size_t size)
{
    const char *directory = getenv("TORPOR_STATE_DIRECTORY");
    if (directory == NULL)
        return fail(app, -EFBIG, "%zu bytes have to go through a file, but TORPOR_STATE_DIRECTORY is not set.", size);
    pthread_mutex_lock(&app->lock);
    unsigned number = app->files++;
    pthread_mutex_unlock(&app->lock);
    char name[64], path[PATH_MAX];
    snprintf(name, sizeof name, ".torpor-state-%ld-%u", (long)getpid(), number);
    if (snprintf(path, sizeof path, "%s/%s", directory, name) >= (int)sizeof path)
        return fail(app, -ENAMETOOLONG, "TORPOR_STATE_DIRECTORY is too long a path.");
    /* Remove a file that an earlier process with the same pid may have left. */
    unlink(path);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    int state = fd < 0 ? -errno : write_out(fd, bytes, size);
    if (state != 0)
        fail(app, state, "The state cannot be written to %s: %s.", path, strerror(-state));
    else
        state = save_file(app, member, scene, name);
    unlink(path);
    return state;
}

static int save(torpor_app *app, const char *member, const char *scene, const void *bytes, size_t size)
{
    if (!is_own(app))
        return refuse_child(app);
    if (app->path == NULL)
        return no_supervisor(app);
    if (size > LONGEST_DATA)
        return save_large(app, member, scene, bytes, size);
    struct text call = start_call(member);
    put(&call, "\"data\":\"");
    put_base64(&call, bytes, size);
    put(&call, "\"");
    put_scene(&call, scene);
    return call_and_wait(app, &call, SAVE_MS, NULL);
}

int torpor_app_save_state(torpor_app *app, const void *bytes, size_t size)
{
    return save(app, "SaveState", NULL, bytes, size);
}

int torpor_app_save_snapshot(torpor_app *app, const void *bytes, size_t size)
{
    return save(app, "SaveSnapshot", NULL, bytes, size);
}

int torpor_app_save_scene_state(torpor_app *app, const char *scene, const void *bytes, size_t size)
{
    return save(app, "SaveState", scene, bytes, size);
}

int torpor_app_save_scene_snapshot(torpor_app *app, const char *scene, const void *bytes, size_t size)
{
    return save(app, "SaveSnapshot", scene, bytes, size);
}

static int discard(torpor_app *app, const char *member, const char *scene)
{
    if (app->path == NULL)
        return no_supervisor(app);
    struct text call = start_call(member);
    if (scene != NULL) {
        put(&call, "\"scene\":");
        put_string(&call, scene);
    }
    return call_and_wait(app, &call, SAVE_MS, NULL);
}

int torpor_app_discard_state(torpor_app *app) { return discard(app, "DiscardState", NULL); }

int torpor_app_discard_snapshot(torpor_app *app) { return discard(app, "DiscardSnapshot", NULL); }

int torpor_app_discard_scene_state(torpor_app *app, const char *scene) { return discard(app, "DiscardState", scene); }

int torpor_app_discard_scene_snapshot(torpor_app *app, const char *scene)
{
    return discard(app, "DiscardSnapshot", scene);
}

static const char *text_of(const torpor_json *object, const char *key)
{
    return torpor_json_string(torpor_json_get(object, key), NULL);
}

/* The path of the saved state that a message names: the app's state, or that of one of its scenes. */
static const char *archive_of(const torpor_message *message)
{
    const char *path = text_of(message->parameters, "path");
    return path != NULL ? path : text_of(torpor_json_get(message->parameters, "state"), "path");
}

void *torpor_app_read_state(const torpor_message *message, size_t *size)
{
    const char *path = archive_of(message);
    if (path == NULL) {
        errno = EINVAL;
        return NULL;
    }
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    struct text text = {NULL, 0, 0, false};
    for (;;) {
        /* One more byte for the NUL. */
        if (!make_room(&text, 65537)) {
            errno = ENOMEM;
            break;
        }
        ssize_t count = read(fd, text.bytes + text.used, text.size - text.used - 1);
        if (count == 0) {
            text.bytes[text.used] = '\0';
            *size = text.used;
            close(fd);
            return text.bytes;
        }
        if (count > 0)
            text.used += (size_t)count;
        else if (errno != EINTR)
            break;
    }
    int error = errno;
    free(text.bytes);
    close(fd);
    errno = error;
    return NULL;
}

/* ---- What belongs to messages ------------------------------------------------------------------------------------ */

const char *torpor_message_url(const torpor_message *message) { return text_of(message->parameters, "url"); }

const char *torpor_message_source(const torpor_message *message) { return text_of(message->parameters, "source"); }

const char *torpor_message_media_type(const torpor_message *message) { return text_of(message->parameters, "type"); }

const char *torpor_message_reason(const torpor_message *message) { return text_of(message->parameters, "reason"); }

double torpor_message_gap(const torpor_message *message)
{
    return torpor_json_double(torpor_json_get(message->parameters, "gap_s"), 0);
}

const torpor_json *torpor_message_options(const torpor_message *message)
{
    return torpor_json_get(message->parameters, "options");
}

torpor_task torpor_message_task(const torpor_message *message)
{
    torpor_task task = {
        torpor_json_int(torpor_json_get(message->parameters, "token"), 0),
        text_of(message->parameters, "name"),
        torpor_json_int(torpor_json_get(message->parameters, "remaining_ms"), -1),
    };
    return task;
}

torpor_level torpor_message_level(const torpor_message *message)
{
    const char *level = text_of(message->parameters, "level");
    if (level != NULL && strcmp(level, "critical") == 0)
        return TORPOR_LEVEL_CRITICAL;
    return level != NULL && strcmp(level, "limit") == 0 ? TORPOR_LEVEL_LIMIT : TORPOR_LEVEL_WARNING;
}

torpor_mail torpor_message_mail(const torpor_message *message)
{
    const torpor_json *parameters = message->parameters;
    torpor_mail mail = {
        torpor_json_int(torpor_json_get(parameters, "id"), 0),
        text_of(parameters, "topic"),
        text_of(parameters, "key"),
        torpor_json_get(parameters, "payload"),
        text_of(parameters, "sender"),
        torpor_json_int(torpor_json_get(parameters, "count"), 1),
        torpor_json_int(torpor_json_get(parameters, "first_at"), 0),
        torpor_json_int(torpor_json_get(parameters, "last_at"), 0),
    };
    return mail;
}

torpor_transfer torpor_message_transfer(const torpor_message *message)
{
    const torpor_json *parameters = message->parameters;
    torpor_transfer transfer = {
        torpor_json_int(torpor_json_get(parameters, "transfer"), 0),
        text_of(parameters, "session"),
        text_of(parameters, "url"),
        text_of(parameters, "path"),
        torpor_json_int(torpor_json_get(parameters, "bytes"), 0),
        torpor_json_int(torpor_json_get(parameters, "status"), -1),
        text_of(parameters, "sha256"),
        text_of(parameters, "error"),
        text_of(parameters, "realm"),
        text_of(parameters, "scheme"),
    };
    return transfer;
}

torpor_alert torpor_message_alert(const torpor_message *message)
{
    const torpor_json *parameters = message->parameters;
    torpor_alert alert = {
        text_of(parameters, "alert"),
        torpor_json_int(torpor_json_get(parameters, "scheduled_at"), 0),
        torpor_json_get(parameters, "payload"),
        text_of(parameters, "action"),
        text_of(parameters, "activation_token"),
    };
    return alert;
}

const char *torpor_message_changed(const torpor_message *message, size_t index)
{
    const torpor_json *names = torpor_json_get(torpor_json_get(message->parameters, "payload"), "changed");
    return torpor_json_string(torpor_json_at(names, index), NULL);
}

const char *torpor_message_path(const torpor_message *message)
{
    const char *path = archive_of(message);
    return path != NULL ? path : text_of(torpor_json_get(message->parameters, "payload"), "path");
}

torpor_scene torpor_message_scene(const torpor_message *message)
{
    const torpor_json *options = torpor_message_options(message);
    const torpor_json *state = torpor_json_get(message->parameters, "state");
    const torpor_json *session = torpor_json_get(options, "session");
    const char *name = text_of(message->parameters, "scene");
    torpor_scene scene = {
        name != NULL ? name : text_of(options, "scene"),
        session != NULL && session->kind == KIND_OBJECT ? session : NULL,
        torpor_json_bool(torpor_json_get(options, "foreground"), false),
        torpor_json_bool(torpor_json_get(options, "new"), false),
        text_of(state, "path"),
        torpor_json_int(torpor_json_get(state, "bytes"), 0),
        text_of(options, "cgroup"),
    };
    return scene;
}

const char *torpor_message_discarded(const torpor_message *message, size_t index)
{
    const torpor_json *names = torpor_json_get(torpor_json_get(message->parameters, "payload"), "names");
    return torpor_json_string(torpor_json_at(names, index), NULL);
}

const char *torpor_message_refresh(const torpor_message *message, size_t index)
{
    return torpor_message_discarded(message, index);
}

torpor_activity torpor_message_activity(const torpor_message *message)
{
    const torpor_json *parameters = message->parameters;
    const char *type = text_of(parameters, "type");
    const char *title = text_of(parameters, "title");
    torpor_activity activity = {
        type != NULL ? type : "",
        title != NULL ? title : "",
        torpor_json_get(parameters, "payload"),
        text_of(parameters, "url"),
        text_of(parameters, "source"),
        text_of(parameters, "reason"),
        text_of(parameters, "by"),
    };
    return activity;
}

torpor_time_change torpor_message_time_change(const torpor_message *message)
{
    const torpor_json *payload = torpor_json_get(message->parameters, "payload");
    torpor_time_change change = {
        torpor_json_bool(torpor_json_get(payload, "clock"), false),
        text_of(payload, "time_zone"),
        torpor_json_int(torpor_json_get(payload, "utc_offset_s"), TORPOR_SAME_OFFSET),
        text_of(payload, "day"),
    };
    return change;
}

/* ---- The app ----------------------------------------------------------------------------------------------------- */

torpor_app *torpor_app_open(const torpor_delegate *delegate, void *context, unsigned flags)
{
    if (delegate == NULL && (flags & TORPOR_NO_MESSAGES) == 0) {
        errno = EINVAL;
        return NULL;
    }
    torpor_app *app = calloc(1, sizeof *app);
    if (app == NULL)
        return NULL;
    const char *path = getenv("TORPOR_APP_SOCKET");
    if (path != NULL && path[0] != '\0' && (app->path = strdup(path)) == NULL) {
        free(app);
        return NULL;
    }
    if (delegate != NULL)
        app->delegate = *delegate;
    app->context = context;
    app->receives = (flags & TORPOR_NO_MESSAGES) == 0;
    app->messages.fd = app->answers.fd = app->calls.fd = -1;
    app->retry_ms = FIRST_RETRY_MS;
    app->process = getpid();
    pthread_mutex_init(&app->lock, NULL);
    pthread_mutex_init(&app->call_lock, NULL);
    app->epoll = epoll_create1(EPOLL_CLOEXEC);
    app->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    app->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int error = app->epoll < 0 || app->timer < 0 || app->wake < 0 ? errno : note_open(app);
    if (error != 0) {
        torpor_app_close(app);
        errno = error;
        return NULL;
    }
    watch(app, EPOLL_CTL_ADD, app->timer, EPOLLIN, OF_TIMER);
    watch(app, EPOLL_CTL_ADD, app->wake, EPOLLIN, OF_WAKE);
    /* Fire the timer at once, so that the first dispatch connects. */
    struct itimerspec soon;
    memset(&soon, 0, sizeof soon);
    soon.it_value.tv_nsec = 1;
    timerfd_settime(app->timer, 0, &soon, NULL);
    return app;
}

void torpor_app_close(torpor_app *app)
{
    if (app == NULL)
        return;
    /* A forked child does not have the thread. */
    if (app->has_thread && is_own(app)) {
        pthread_mutex_lock(&app->lock);
        app->stops = true;
        pthread_mutex_unlock(&app->lock);
        uint64_t one = 1;
        while (write(app->wake, &one, sizeof one) < 0 && errno == EINTR) {
        }
        pthread_join(app->thread, NULL);
    }
    forget_open(app);
    close_stream(&app->messages);
    close_stream(&app->answers);
    close_stream(&app->calls);
    while (app->first_answer != NULL) {
        struct answer *answer = app->first_answer;
        app->first_answer = answer->next;
        free(answer->call);
        free(answer);
    }
    while (app->tasks != NULL) {
        struct task *task = app->tasks;
        app->tasks = task->next;
        free(task);
    }
    const int descriptors[] = {app->epoll, app->timer, app->wake};
    for (int index = 0; index < 3; index++)
        if (descriptors[index] >= 0)
            close(descriptors[index]);
    pthread_mutex_destroy(&app->lock);
    pthread_mutex_destroy(&app->call_lock);
    free(app->path);
    free(app);
}

bool torpor_app_supervised(const torpor_app *app) { return app->path != NULL; }

int torpor_app_fd(const torpor_app *app) { return app->epoll; }

/* Called when the timer has fired: repeats whatever has failed, such as connecting. */
static int try_again(torpor_app *app)
{
    uint64_t count;
    if (read(app->timer, &count, sizeof count) < 0)
        return 0;
    if (app->path == NULL)
        return app->told_alone || !app->receives ? 0 : launch_alone(app);
    if (app->receives && !app->refused && app->messages.fd < 0) {
        attach(app);
        return 0;
    }
    send_answers(app);
    claim_tasks(app);
    return 0;
}

int torpor_app_dispatch(torpor_app *app)
{
    struct epoll_event events[8];
    int handled = 0;
    if (!is_own(app))
        return refuse_child(app);
    int count = epoll_wait(app->epoll, events, 8, 0);
    pthread_mutex_lock(&app->lock);
    for (int index = 0; index < count && is_own(app); index++) {
        switch ((enum source)events[index].data.u32) {
        case OF_TIMER:
            handled += try_again(app);
            break;
        case OF_WAKE:
            break;
        case OF_MESSAGES:
            handled += read_messages(app);
            break;
        case OF_ANSWERS:
            read_answers(app);
            if ((events[index].events & EPOLLOUT) != 0)
                send_answers(app);
            break;
        case OF_CALLS:
            retry_later(app);
            break;
        }
    }
    pthread_mutex_unlock(&app->lock);
    return handled;
}

static void *run(void *argument)
{
    torpor_app *app = argument;
    for (;;) {
        pthread_mutex_lock(&app->lock);
        bool stops = app->stops;
        pthread_mutex_unlock(&app->lock);
        if (stops)
            return NULL;
        struct pollfd watched = {app->epoll, POLLIN, 0};
        poll(&watched, 1, -1);
        if (torpor_app_dispatch(app) == -ECHILD)
            return NULL;
    }
}

int torpor_app_start(torpor_app *app)
{
    if (!is_own(app))
        return refuse_child(app);
    if (app->has_thread)
        return fail(app, -EBUSY, "The library's thread has been started before.");
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&app->thread, NULL, run, app);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error != 0)
        return fail(app, -error, "No thread can be started for the supervisor's messages: %s.", strerror(error));
    app->has_thread = true;
    return 0;
}

int torpor_app_notify(const char *state)
{
    const char *path = getenv("NOTIFY_SOCKET");
    if (path == NULL || path[0] == '\0')
        return 0;
    struct sockaddr_un address;
    memset(&address, 0, sizeof address);
    address.sun_family = AF_UNIX;
    size_t length = strlen(path);
    if (length >= sizeof address.sun_path)
        return -ENAMETOOLONG;
    memcpy(address.sun_path, path, length);
    /* The name of an abstract socket. */
    if (path[0] == '@')
        address.sun_path[0] = '\0';
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length + (path[0] == '@' ? 0 : 1));
    ssize_t sent;
    do
        sent = sendto(fd, state, strlen(state), MSG_NOSIGNAL, (const struct sockaddr *)&address, size);
    while (sent < 0 && errno == EINTR);
    int result = sent < 0 ? -errno : 0;
    close(fd);
    return result;
}
