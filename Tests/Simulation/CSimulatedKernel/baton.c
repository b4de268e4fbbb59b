// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "kernel.h"

#include <pthread.h>
#include <semaphore.h>
#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <sys/syscall.h>
#include <fcntl.h>

// Of torpord's threads one runs at a time, the one that has the baton. A thread gives it away only where it waits, or
// at a call that may take long. The main thread, while it waits, chooses what runs next: it itself, another thread, or the
// rest of the world.

// How often the world, if nothing in torpord can run, is chosen among nothing else.
enum { THREADS = 64, WORLD_ALONE = 8, MOST_DESCRIPTORS = 2048 };

struct thread {
    int is_used, is_over;
    pthread_t thread;
    sem_t turn;
    void *(*body)(void *);
    void *argument;
    struct sim_wait *wait;
};

static struct thread threads[THREADS];
static int threads_end = 1;  // those from here on are free
static __thread int own;
static sem_t main_turn;
static int to_simulator = -1, from_simulator = -1;

void sim_baton_begin(void)
{
    sem_init(&main_turn, 0, 0);
    memset(threads, 0, sizeof threads);
    threads_end = 1;
    own = 0;
}

int sim_threads(void)
{
    int count = 1;
    for (int i = 1; i < threads_end; i++)
        count += threads[i].is_used && !threads[i].is_over;
    return count;
}

static int is_due(const struct sim_wait *wait) { return wait->deadline <= sim_world->now; }

static int may_go_on(struct thread *thread)
{
    if (!thread->is_used || thread->is_over)
        return 0;
    return thread->wait == NULL || is_due(thread->wait) || thread->wait->is_ready(thread->wait);
}

static void run(int index)
{
    struct thread *thread = &threads[index];
    sim_note("thread %d runs", index);
    sem_post(&thread->turn);
    while (sem_wait(&main_turn) != 0) {}
    if (thread->is_over) {
        pthread_join(thread->thread, NULL);
        thread->is_used = 0;
    }
}

static void give_back(void)
{
    sem_post(&main_turn);
    while (sem_wait(&threads[own].turn) != 0) {}
}

static int64_t soonest(int64_t deadline)
{
    int64_t timers = sim_timer_deadline();
    if (timers < deadline)
        deadline = timers;
    for (int i = 1; i < threads_end; i++)
        if (threads[i].is_used && threads[i].wait != NULL && threads[i].wait->deadline < deadline)
            deadline = threads[i].wait->deadline;
    return deadline;
}

// The descriptor that has to be looked at to know whether a thread can run again before the next deadline; -1: more than
// one has to be. What threads do to each other does not happen while none runs.
static int only_epoll(const struct sim_wait *wait)
{
    for (int i = 1; i < threads_end; i++)
        if (threads[i].is_used && threads[i].wait != NULL && threads[i].wait->is_descriptors)
            return -1;
    return wait->epoll > 0 ? wait->epoll : -1;
}

static int wait_in_main(struct sim_wait *wait)
{
    for (;;) {
        sim_fire_timers();
        int is_ready = wait->is_ready(wait), expired = is_due(wait);
        int able[THREADS], count = 0;
        for (int i = 1; i < threads_end; i++)
            if (may_go_on(&threads[i]))
                able[count++] = i;
        unsigned self = is_ready || expired ? 6 : 0;
        unsigned others = (unsigned)count * 3;
        unsigned world = self != 0 || count != 0 ? 1 : WORLD_ALONE;
        unsigned choice = (unsigned)sim_random(self + others + world);
        if (choice < self)
            return is_ready;
        if (choice < self + others) {
            run(able[(choice - self) / 3]);
            continue;
        }
        sim_world->next_deadline = soonest(wait->deadline);
        sim_world->is_ready = self != 0 || count != 0;
        sim_world->threads = (uint32_t)count;
        sim_world->epoll = self == 0 && count == 0 ? only_epoll(wait) : -1;
        sim_yield_to_simulator();
    }
}

int sim_wait_for(struct sim_wait *wait)
{
    if (own == 0)
        return wait_in_main(wait);
    for (;;) {
        if (wait->is_ready(wait))
            return 1;
        if (is_due(wait))
            return 0;
        threads[own].wait = wait;
        give_back();
        threads[own].wait = NULL;
    }
}

// Somewhere inside a call that may take long, in a thread that others do not wait for.
static void pause_perhaps(void)
{
    if (own != 0 && sim_random(4) == 0)
        give_back();
}

void sim_pause(void);
void sim_pause(void) { pause_perhaps(); }

// MARK: Threads

static void *begin(void *argument)
{
    struct thread *thread = argument;
    own = (int)(thread - threads);
    while (sem_wait(&thread->turn) != 0) {}
    void *result = thread->body(thread->argument);
    thread->is_over = 1;
    sem_post(&main_turn);
    return result;
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *), void *argument)
{
    if (!sim_is_torpord)
        return REAL(pthread_create)(thread, attributes, body, argument);
    sim_count_call();
    // It does not fail here: a torpord without its store's thread stores nothing as long as it lives.
    for (int i = 1; i < THREADS; i++) {
        if (threads[i].is_used)
            continue;
        if (i >= threads_end)
            threads_end = i + 1;
        threads[i] = (struct thread){.is_used = 1, .body = body, .argument = argument};
        sem_init(&threads[i].turn, 0, 0);
        // Waited for at its end, so that nothing of it is done beside others.
        pthread_attr_t own_attributes;
        pthread_attr_init(&own_attributes);
        pthread_attr_setstacksize(&own_attributes, 1 << 20);
        int result = REAL(pthread_create)(&threads[i].thread, &own_attributes, begin, &threads[i]);
        pthread_attr_destroy(&own_attributes);
        *thread = threads[i].thread;
        if (result != 0)
            threads[i].is_used = 0;
        return result;
    }
    return EAGAIN;
}

static int lock_is_free(struct sim_wait *wait)
{
    if (REAL(pthread_mutex_trylock)(wait->one) != 0)
        return 0;
    REAL(pthread_mutex_unlock)(wait->one);
    return 1;
}

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    if (!sim_is_torpord)
        return REAL(pthread_mutex_lock)(mutex);
    int result;
    while ((result = REAL(pthread_mutex_trylock)(mutex)) == EBUSY) {
        struct sim_wait wait = {.is_ready = lock_is_free, .deadline = INT64_MAX, .one = mutex};
        sim_wait_for(&wait);
    }
    return result;
}

static int is_signalled(struct sim_wait *wait) { return wait->is_signalled; }

static int wait_for_condition(pthread_cond_t *condition, pthread_mutex_t *mutex, int64_t deadline)
{
    sim_count_call();
    struct sim_wait wait = {.is_ready = is_signalled, .deadline = deadline, .one = condition};
    REAL(pthread_mutex_unlock)(mutex);
    // The main thread's wait must be found by those that signal.
    extern struct sim_wait *sim_main_condition;
    if (own == 0)
        sim_main_condition = &wait;
    int result = sim_wait_for(&wait);
    if (own == 0)
        sim_main_condition = NULL;
    pthread_mutex_lock(mutex);
    return result ? 0 : ETIMEDOUT;
}

struct sim_wait *sim_main_condition;

int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
    if (!sim_is_torpord) {
        static int (*real)(pthread_cond_t *, pthread_mutex_t *);
        if (real == NULL)
            real = (__typeof__(real))dlvsym(RTLD_NEXT, "pthread_cond_wait", "GLIBC_2.3.2");
        return real(condition, mutex);
    }
    return wait_for_condition(condition, mutex, INT64_MAX);
}

int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *time)
{
    if (!sim_is_torpord)
        abort();
    return wait_for_condition(condition, mutex, (int64_t)time->tv_sec * 1000000000 + time->tv_nsec);
}

static int wake_waiters(pthread_cond_t *condition)
{
    if (sim_main_condition != NULL && sim_main_condition->one == condition)
        sim_main_condition->is_signalled = 1;
    for (int i = 1; i < threads_end; i++)
        if (threads[i].is_used && threads[i].wait != NULL && threads[i].wait->is_ready == is_signalled
            && threads[i].wait->one == condition)
            threads[i].wait->is_signalled = 1;
    return 0;
}

int pthread_cond_broadcast(pthread_cond_t *condition)
{
    return sim_is_torpord ? wake_waiters(condition) : 0;
}

int pthread_cond_signal(pthread_cond_t *condition)
{
    return sim_is_torpord ? wake_waiters(condition) : 0;
}

// MARK: The simulator's side

static pid_t child;
static int to_child = -1, from_child = -1, empty_file = -1;

void sim_yield_to_simulator(void)
{
    char byte = 'w';
    if (REAL(write)(to_simulator, &byte, 1) != 1 || REAL(read)(from_simulator, &byte, 1) != 1)
        _exit(99);
}

int sim_start_torpord(void (*body)(void), int keeper_socket)
{
    int down[2], up[2];
    if (pipe2(down, O_CLOEXEC) < 0 || pipe2(up, O_CLOEXEC) < 0)
        return -1;
    if (empty_file < 0)
        empty_file = memfd_create("made-up", MFD_CLOEXEC);
    static int32_t count = 20;
    sim_world->torpord = ++count;
    sim_world->calls = 0;
    sim_world->epoll = -1;
    fflush(NULL);
    child = fork();
    if (child < 0)
        return -1;
    if (child == 0) {
        // The same numbers each time; above all that it opens itself.
        dup2(down[0], SIM_FROM_SIMULATOR);
        dup2(up[1], SIM_TO_SIMULATOR);
        dup2(keeper_socket, SIM_KEEPER_SOCKET);
        dup3(empty_file, SIM_EMPTY_FILE, O_CLOEXEC);
        close_range(3, SIM_FROM_SIMULATOR - 1, 0);
        close_range(SIM_EMPTY_FILE + 1, ~0u, 0);
        fcntl(SIM_FROM_SIMULATOR, F_SETFD, FD_CLOEXEC);
        fcntl(SIM_TO_SIMULATOR, F_SETFD, FD_CLOEXEC);
        from_simulator = SIM_FROM_SIMULATOR;
        to_simulator = SIM_TO_SIMULATOR;
        setpgid(0, 0);
        sim_baton_begin();
        char byte;
        if (read(from_simulator, &byte, 1) != 1)
            _exit(99);
        sim_is_torpord = 1;
        body();
        _exit(98);
    }
    close(down[0]);
    close(up[1]);
    to_child = down[1];
    from_child = up[0];
    close(keeper_socket);
    return 0;
}

static int pidfd = -1, copy = -1;
static uint32_t copied;  // sim_world->epolls when the copy was made

static void close_both(void)
{
    if (copy >= 0)
        close(copy);
    if (pidfd >= 0)
        close(pidfd);
    copy = pidfd = -1;
}

// Whether torpord, if it ran, would find nothing to do: two switches between processes would be for nothing. Its epoll is
// looked at from here, which is the same for all but a signalfd (that shows the signals of who looks): after a signal
// torpord looks itself.
static int has_nothing_to_do(void)
{
    if (sim_world->epoll < 0 || sim_world->next_deadline <= sim_world->now)
        return 0;
    if (copy < 0 || copied != sim_world->epolls) {
        close_both();
        pidfd = (int)REAL(syscall)(SYS_pidfd_open, child, 0);
        copy = pidfd < 0 ? -1 : (int)REAL(syscall)(SYS_pidfd_getfd, pidfd, sim_world->epoll, 0);
        copied = sim_world->epolls;
    }
    struct pollfd question = {copy, POLLIN, 0};
    return copy >= 0 && REAL(poll)(&question, 1, 0) == 0;
}

enum sim_stop sim_resume_torpord(int *status)
{
    if (has_nothing_to_do()) {
        // As wait_in_main() does.
        sim_random(WORLD_ALONE);
        return SIM_WAITS;
    }
    sim_world->epoll = -1;
    sim_world->runs++;
    char byte = 'g';
    ssize_t written = write(to_child, &byte, 1);
    (void)written;
    if (read(from_child, &byte, 1) == 1)
        return SIM_WAITS;
    close_both();
    close(to_child);
    close(from_child);
    while (waitpid(child, status, 0) < 0 && errno == EINTR) {}
    child = 0;
    return SIM_ENDED;
}

void sim_kill_torpord(void)
{
    sim_world->epoll = -1;
    if (child > 0)
        kill(child, SIGKILL);
}
void sim_signal_torpord(int number)
{
    sim_world->epoll = -1;
    if (child > 0)
        kill(child, number);
}

static int compare(const void *one, const void *other) { return *(const int *)one - *(const int *)other; }

int sim_torpord_descriptors(char *list, size_t size)
{
    char path[64], target[256];
    int open[MOST_DESCRIPTORS], count = 0;
    size_t used = 0;
    snprintf(path, sizeof path, "/proc/%d/fd", (int)child);
    DIR *folder = opendir(path);
    if (folder == NULL)
        return 0;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL && count < MOST_DESCRIPTORS;) {
        int fd = atoi(entry->d_name);
        if (fd >= 3 && fd != SIM_FROM_SIMULATOR && fd != SIM_TO_SIMULATOR && fd != SIM_EMPTY_FILE)
            open[count++] = fd;
    }
    qsort(open, (size_t)count, sizeof *open, compare);
    for (int i = 0; i < count; i++) {
        char number[16];
        snprintf(number, sizeof number, "%d", open[i]);
        ssize_t length = readlinkat(dirfd(folder), number, target, sizeof target - 1);
        if (length < 0)
            continue;
        target[length] = 0;
        int added = snprintf(list + used, size - used, "%d %s\n", open[i], target);
        if (added > 0 && used + (size_t)added < size)
            used += (size_t)added;
    }
    closedir(folder);
    return count;
}
