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

// Only the keeper speaks to the service manager: with NotifyAccess=main a child's READY=1 would be ignored, and it is
// the keeper that the manager's watchdog would abort.

bool manager_present;

static struct sockaddr_un address;
static socklen_t address_size;
static int manager_fd = -1;
static int watchdog_fd = -1;

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
        keeper_log("NOTIFY_SOCKET is longer than a socket address can be: the service manager is not told anything");
        return;
    }
    address.sun_family = AF_UNIX;
    memcpy(address.sun_path, path, length);
    if (path[0] == '@')
        address.sun_path[0] = 0;
    address_size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length + (path[0] == '@' ? 0 : 1));
    manager_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (manager_fd < 0) {
        keeper_log("cannot speak to the service manager: %s", strerror(errno));
        return;
    }
    manager_present = true;
    setup_watchdog();
}

void manager_tell(const char *text, size_t size)
{
    if (manager_fd < 0 || size == 0 || size > TORPOR_KEEPER_MANAGER_LIMIT)
        return;
    if (sendto(manager_fd, text, size, MSG_NOSIGNAL, (struct sockaddr *)&address, address_size) < 0)
        keeper_log("the service manager was not told: %s", strerror(errno));
}

void manager_watchdog(void)
{
    uint64_t count;
    if (read(watchdog_fd, &count, sizeof count) == sizeof count)
        manager_tell("WATCHDOG=1", 10);
}
