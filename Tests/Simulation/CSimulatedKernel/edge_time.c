// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "kernel.h"

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

// Clocks, timers and waiting, in the world's time. A timerfd is an eventfd that is written to when its time has come.

enum { TIMERS = 64, READING_TAKES = 200 };

static struct timer {
    int fd, is_fired;  // fired: it may have to be read
    int64_t deadline;
} timers[TIMERS];
static int timers_end;  // those from here on are free

static int64_t nanoseconds(const struct timespec *time)
{
    return (int64_t)time->tv_sec > INT64_MAX / 1000000000 - 1 ? INT64_MAX
                                                              : (int64_t)time->tv_sec * 1000000000 + time->tv_nsec;
}

int clock_gettime(clockid_t clock, struct timespec *time)
{
    if (!sim_is_torpord)
        return REAL(clock_gettime)(clock, time);
    // Time passes only here, so that a loop that polls the clock reaches its deadline.
    int64_t now = sim_world->now += READING_TAKES;
    if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)
        now += sim_world->realtime;
    time->tv_sec = now / 1000000000;
    time->tv_nsec = now % 1000000000;
    return 0;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone)
{
    if (!sim_is_torpord)
        return REAL(gettimeofday)(time, zone);
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    time->tv_sec = now.tv_sec;
    time->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *result)
{
    if (!sim_is_torpord)
        return REAL(time)(result);
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (result != NULL)
        *result = now.tv_sec;
    return now.tv_sec;
}

static struct timer *find_timer(int fd)
{
    for (int i = 0; i < timers_end; i++)
        if (timers[i].fd == fd)
            return &timers[i];
    return NULL;
}

int timerfd_create(int clock, int flags)
{
    if (!sim_is_torpord)
        return REAL(timerfd_create)(clock, flags);
    sim_count_call();
    FAIL(SIM_FAULT_DESCRIPTORS, EMFILE);
    struct timer *timer = find_timer(0);
    if (timer == NULL && timers_end < TIMERS)
        timer = &timers[timers_end++];
    int fd = REAL(eventfd)(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (timer != NULL)
        *timer = (struct timer){.fd = fd > 0 ? fd : 0, .deadline = INT64_MAX};
    return fd;
}

int timerfd_settime(int fd, int flags, const struct itimerspec *new, struct itimerspec *old)
{
    if (!sim_is_torpord)
        return REAL(timerfd_settime)(fd, flags, new, old);
    struct timer *timer = find_timer(fd);
    if (timer == NULL)
        return 0;
    uint64_t count;
    if (timer->is_fired) {
        ssize_t got = REAL(read)(fd, &count, sizeof count);
        (void)got;
    }
    timer->is_fired = 0;
    int64_t value = nanoseconds(&new->it_value);
    if (value == 0)
        timer->deadline = INT64_MAX;
    else if (flags & TFD_TIMER_ABSTIME)
        timer->deadline = value;
    else
        timer->deadline = sim_world->now + value;
    return 0;
}

void sim_timer_was_read(int fd)
{
    struct timer *timer = fd > 0 ? find_timer(fd) : NULL;
    if (timer != NULL)
        timer->is_fired = 0;
}

void sim_forget_timer(int fd)
{
    struct timer *timer = find_timer(fd);
    if (timer != NULL && fd > 0)
        timer->fd = 0;
}

void sim_fire_timers(void)
{
    const uint64_t one = 1;
    for (int i = 0; i < timers_end; i++)
        if (timers[i].fd != 0 && timers[i].deadline <= sim_world->now) {
            timers[i].deadline = INT64_MAX;
            timers[i].is_fired = 1;
            ssize_t written = REAL(write)(timers[i].fd, &one, sizeof one);
            (void)written;
        }
}

int64_t sim_timer_deadline(void)
{
    int64_t soonest = INT64_MAX;
    for (int i = 0; i < timers_end; i++)
        if (timers[i].fd != 0 && timers[i].deadline < soonest)
            soonest = timers[i].deadline;
    return soonest;
}

// A thread's own alarm, against calls that hang: nothing hangs here.
int timer_create(clockid_t clock, struct sigevent *restrict event, timer_t *restrict timer)
{
    if (!sim_is_torpord)
        return REAL(timer_create)(clock, event, timer);
    errno = EAGAIN;
    return -1;
}

// MARK: Waiting

static int64_t deadline_after(int milliseconds)
{
    return milliseconds < 0 ? INT64_MAX : sim_world->now + (int64_t)milliseconds * 1000000;
}

static int poll_is_ready(struct sim_wait *wait)
{
    return wait->one == NULL ? 0 : REAL(poll)(wait->one, (nfds_t)wait->count, 0) != 0;
}

int poll(struct pollfd *fds, nfds_t count, int timeout)
{
    if (!sim_is_torpord)
        return REAL(poll)(fds, count, timeout);
    sim_count_call();
    FAIL(SIM_FAULT_INTERRUPTED, EINTR);
    if (timeout != 0) {
        struct sim_wait wait = {
            .is_ready = poll_is_ready, .deadline = deadline_after(timeout), .one = fds, .count = (int)count,
            .is_descriptors = 1};
        sim_wait_for(&wait);
    }
    return REAL(poll)(fds, count, 0);
}

int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask)
{
    if (!sim_is_torpord)
        return REAL(ppoll)(fds, count, timeout, mask);
    return poll(fds, count, timeout == NULL ? -1 : (int)(nanoseconds(timeout) / 1000000));
}

static int sleep_until(int64_t deadline)
{
    struct sim_wait wait = {.is_ready = poll_is_ready, .deadline = deadline};
    return sim_wait_for(&wait);
}

int nanosleep(const struct timespec *wish, struct timespec *rest)
{
    if (!sim_is_torpord)
        return REAL(nanosleep)(wish, rest);
    sim_count_call();
    sleep_until(sim_world->now + nanoseconds(wish));
    return 0;
}

int usleep(useconds_t time)
{
    if (!sim_is_torpord)
        return REAL(usleep)(time);
    sim_count_call();
    sleep_until(sim_world->now + (int64_t)time * 1000);
    return 0;
}

int sched_yield(void)
{
    if (!sim_is_torpord)
        return REAL(sched_yield)();
    sim_count_call();
    // Others get a processor: what was sent may arrive.
    for (int i = 0; i < sim_world->places; i++) {
        struct sim_process *process = sim_at(i);
        if (process != NULL && process->state == 'S' && process->pending & 1ull << SIGSTOP && sim_random(3) == 0) {
            process->pending &= ~(1ull << SIGSTOP);
            process->state = 'T';
        }
    }
    return 0;
}

struct epoll_question {
    int epoll, capacity, count;
    struct epoll_event *events;
};

static int epoll_is_ready(struct sim_wait *wait)
{
    struct epoll_event one;
    struct epoll_question *question = wait->one;
    return REAL(epoll_wait)(question->epoll, &one, 1, 0) > 0;
}

int epoll_wait(int epoll, struct epoll_event *events, int capacity, int timeout)
{
    if (!sim_is_torpord)
        return REAL(epoll_wait)(epoll, events, capacity, timeout);
    sim_count_call();
    struct epoll_question question = {.epoll = epoll};
    if (timeout != 0) {
        struct sim_wait wait = {.is_ready = epoll_is_ready, .deadline = deadline_after(timeout), .one = &question,
                                .is_descriptors = 1, .epoll = epoll};
        sim_wait_for(&wait);
    }
    FAIL(SIM_FAULT_INTERRUPTED, EINTR);
    int count = REAL(epoll_wait)(epoll, events, capacity, 0);
    // In any order.
    for (int i = count - 1; i > 0; i--) {
        int other = (int)sim_random((uint64_t)i + 1);
        struct epoll_event kept = events[i];
        events[i] = events[other];
        events[other] = kept;
    }
    return count;
}

int epoll_pwait2(int epoll, struct epoll_event *events, int capacity, const struct timespec *timeout,
                 const sigset_t *mask)
{
    if (!sim_is_torpord)
        return REAL(epoll_pwait2)(epoll, events, capacity, timeout, mask);
    return epoll_wait(epoll, events, capacity, timeout == NULL ? -1 : (int)(nanoseconds(timeout) / 1000000));
}
