// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "keeper.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <unistd.h>

// Only the keeper talks to the service manager. torpord cannot: with NotifyAccess=main the manager would ignore a
// child's READY=1, and its watchdog would abort the keeper.

bool manager_present;

static struct sockaddr_un address;
static socklen_t address_size;
static int manager_fd = -1;
static int watchdog_fd = -1;

// The most messages that wait because the socket of the service manager is full. Messages about held descriptors are
// not among them: park.c derives those from its own queue.
enum { TEXTS = 16 };
enum { PAUSE_FIRST = 1, PAUSE_LAST = 500 };  // milliseconds between retries

static struct text {
    size_t size;
    char bytes[TORPOR_KEEPER_MANAGER_LIMIT];
} texts[TEXTS];
static uint32_t text_first, text_count;
static int retry_fd = -1;
static bool retry_armed;
static unsigned pause_next = PAUSE_FIRST;
static bool is_deaf;

static void setup_watchdog(void)
{
    const char *usec = getenv("WATCHDOG_USEC");
    const char *pid = getenv("WATCHDOG_PID");
    if (usec == NULL || (pid != NULL && strtol(pid, NULL, 10) != (long)getpid()))
        return;
    unsigned long long half = strtoull(usec, NULL, 10) / 2;
    if (half == 0)
        return;
    struct timespec interval = {(time_t)(half / 1000000), (long)(half % 1000000) * 1000};
    struct itimerspec when = {interval, interval};
    watchdog_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (watchdog_fd < 0 || timerfd_settime(watchdog_fd, 0, &when, NULL) < 0
        || !keeper_watch_descriptor(watchdog_fd, EPOLLIN, EVENT_MANAGER, 0))
        keeper_log("cannot answer the service manager's watchdog: %s", strerror(errno));
}

void manager_setup(void)
{
    const char *path = getenv("NOTIFY_SOCKET");
    if (path == NULL || (path[0] != '/' && path[0] != '@') || path[1] == 0)
        return;
    size_t length = strlen(path);
    if (length >= sizeof address.sun_path) {
        keeper_log("NOTIFY_SOCKET is longer than a socket address can be: the service manager is not notified");
        return;
    }
    address.sun_family = AF_UNIX;
    memcpy(address.sun_path, path, length);
    if (path[0] == '@')
        address.sun_path[0] = 0;
    address_size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length + (path[0] == '@' ? 0 : 1));
    retry_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (retry_fd >= 0 && keeper_watch_descriptor(retry_fd, EPOLLIN, EVENT_MANAGER_RETRY, 0))
        manager_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (manager_fd < 0) {
        keeper_log("cannot reach the service manager: %s", strerror(errno));
        return;
    }
    manager_present = true;
    park_setup();
    setup_watchdog();
}

bool manager_send(const char *text, size_t size, int fd)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec part = {.iov_base = (void *)text, .iov_len = size};
    struct msghdr message = {
        .msg_name = &address, .msg_namelen = address_size, .msg_iov = &part, .msg_iovlen = 1};
    if (fd >= 0) {
        memset(&control, 0, sizeof control);
        message.msg_control = control.bytes;
        message.msg_controllen = sizeof control.bytes;
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(sizeof fd);
        memcpy(CMSG_DATA(head), &fd, sizeof fd);
    }
    for (;;) {
        if (sendmsg(manager_fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) {
            pause_next = PAUSE_FIRST;
            is_deaf = false;
            return true;
        }
        if (errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM || errno == ETOOMANYREFS)
            return false;
        if (errno != EINTR) {
            if (!is_deaf)
                keeper_log("cannot notify the service manager: %s", strerror(errno));
            is_deaf = true;
            return true;  // an error that a retry would not change: drop the message
        }
    }
}

void manager_tell(const char *text, size_t size)
{
    if (manager_fd < 0 || size == 0 || size > TORPOR_KEEPER_MANAGER_LIMIT)
        return;
    if (text_count == 0 && manager_send(text, size, -1))
        return;
    if (text_count == TEXTS) {
        keeper_log("the service manager reads no notifications: %.*s is dropped", (int)strcspn(text, "\n"), text);
        return;
    }
    struct text *one = &texts[(text_first + text_count++) % TEXTS];
    one->size = size;
    memcpy(one->bytes, text, size);
}

static bool flush_texts(void)
{
    for (; text_count > 0; text_count--, text_first = (text_first + 1) % TEXTS)
        if (!manager_send(texts[text_first].bytes, texts[text_first].size, -1))
            return false;
    return true;
}

bool manager_flush(void)
{
    bool told = manager_fd < 0 || (flush_texts() && park_flush());
    return closer_flush() && told;
}

void manager_work(void)
{
    if (retry_armed || manager_flush())
        return;
    struct itimerspec when = {.it_value = {0, (long)pause_next * 1000000}};
    retry_armed = timerfd_settime(retry_fd, 0, &when, NULL) == 0;
    pause_next = pause_next * 2 > PAUSE_LAST ? PAUSE_LAST : pause_next * 2;
}

void manager_retry(void)
{
    uint64_t count;
    if (read(retry_fd, &count, sizeof count) == sizeof count)
        retry_armed = false;  // the retry follows at the end of this turn of the loop
}

void manager_watchdog(void)
{
    uint64_t count;
    if (read(watchdog_fd, &count, sizeof count) != sizeof count)
        return;
    manager_tell("WATCHDOG=1", 10);
    watch_look();  // checked here, since the keeper is awake anyway
}

uint32_t manager_text_count(void)
{
    return text_count;
}

const char *manager_text(uint32_t index, uint32_t *size)
{
    struct text *one = &texts[(text_first + index) % TEXTS];
    *size = (uint32_t)one->size;
    return one->bytes;
}
