// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "kernel.h"
#include "registers.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

// Of torpord's threads one runs at a time, the one that has the baton. A thread gives it away only where it waits, or
// at a call that may take long. The main thread, while it waits, chooses what runs next: it itself, another thread, or the
// rest of the world.

enum { THREADS = 64 };

struct thread {
    int is_used, has_run, is_over;
    pthread_t thread;
    sem_t has_begun, may_end;  // of the thread whose variables (__thread) are used
    struct sim_registers registers;
    void *(*body)(void *);
    void *argument;
    struct sim_wait *wait;
};

static struct thread threads[THREADS];
static int threads_end = 1;  // those from here on are free
static __thread int own;
static struct sim_registers main_registers;

void sim_baton_begin(void)
{
    memset(threads, 0, sizeof threads);
    threads_end = 1;
    own = 0;
    main_registers.variables = sim_own_variables();
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
    if (!thread->has_run)
        while (sem_wait(&thread->has_begun) != 0) {}
    thread->has_run = 1;
    sim_switch_registers(&main_registers, &thread->registers);
    if (thread->is_over) {
        sem_post(&thread->may_end);
        pthread_join(thread->thread, NULL);
        sim_free_stack(&thread->registers);
        thread->is_used = 0;
    }
}

static void give_back(void) { sim_switch_registers(&threads[own].registers, &main_registers); }

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
        unsigned world = self != 0 || count != 0 ? 1 : SIM_WORLD_ALONE;
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

// Two semaphores and two switches between threads of the real kernel are a twentieth of a torpord's time. So they all run
// in its main thread, each on a stack and with the variables of its own; those are a real thread's, which does nothing else.
static void begin(void)
{
    struct thread *thread = &threads[own];
    thread->body(thread->argument);
    thread->is_over = 1;
    give_back();
    abort();
}

static void *lend_variables(void *argument)
{
    struct thread *thread = argument;
    own = (int)(thread - threads);
    thread->registers.variables = sim_own_variables();
    sem_post(&thread->has_begun);
    while (sem_wait(&thread->may_end) != 0) {}
    return NULL;
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
        sem_init(&threads[i].has_begun, 0, 0);
        sem_init(&threads[i].may_end, 0, 0);
        if (sim_make_stack(&threads[i].registers, begin) < 0)
            abort();
        // Waited for at its end, so that nothing of it is done beside others.
        pthread_attr_t own_attributes;
        pthread_attr_init(&own_attributes);
        pthread_attr_setstacksize(&own_attributes, 64 << 10);
        int result = REAL(pthread_create)(&threads[i].thread, &own_attributes, lend_variables, &threads[i]);
        pthread_attr_destroy(&own_attributes);
        *thread = threads[i].thread;
        if (result != 0)
            abort();
        return 0;
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
