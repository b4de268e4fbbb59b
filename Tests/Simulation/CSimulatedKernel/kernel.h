/* SPDX-License-Identifier: Apache-2.0 */

#ifndef SIM_KERNEL_H
#define SIM_KERNEL_H

#include "simulated_kernel.h"

#include <dlfcn.h>
#include <errno.h>

// The C library's own function behind one that is defined here. sim_find_real_functions() finds all of them before the
// first fork; each torpord would search otherwise.
struct sim_real {
    const char *name;
    void **function;
};
#define REAL(name)                                                                                                     \
    ({                                                                                                                 \
        static __typeof__(&name) real;                                                                                 \
        static struct sim_real place __attribute__((section("sim_real"), used, retain)) = {#name, (void **)&real};    \
        if (real == NULL)                                                                                              \
            real = (__typeof__(&name))dlsym(RTLD_NEXT, #name);                                                         \
        real;                                                                                                          \
    })

// A call of torpord: it is counted, and perhaps the last.
void sim_count_call_in(const char *function, int has_changed);
#define sim_count_call() sim_count_call_in(__func__, 0)
// The same after a call that changed something: torpord may end before it sees the result.
#define DONE(result)                                                                                                   \
    ({                                                                                                                 \
        __auto_type done = (result);                                                                                   \
        if (sim_is_torpord) {                                                                                          \
            int error = errno;                                                                                         \
            sim_count_call_in(__func__, 1);                                                                            \
            errno = error;                                                                                             \
        }                                                                                                              \
        done;                                                                                                          \
    })
// Whether the call fails so.
int sim_fails_in(enum sim_fault fault, const char *function);
#define sim_fails(fault) sim_fails_in(fault, __func__)
void sim_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

// Of torpord's descriptors the one that it does not open itself.
enum { SIM_KEEPER_SOCKET = 902 };
// How often the world, if nothing in torpord can run, is chosen among nothing else.
enum { SIM_WORLD_ALONE = 8 };

// What a thread waits for. Times are CLOCK_MONOTONIC.
struct sim_wait {
    int (*is_ready)(struct sim_wait *wait);
    int64_t deadline;  // INT64_MAX: none
    void *one, *other;
    int count, is_signalled;
    int is_descriptors;  // what it waits for may come from other processes
    int epoll;           // the only descriptor of those; 0: not so
};
// Returns 1 when it is ready, 0 at the deadline.
int sim_wait_for(struct sim_wait *wait);
void sim_fire_timers(void);
int64_t sim_timer_deadline(void);
void sim_forget_timer(int fd);
void sim_timer_was_read(int fd);
void sim_yield_to_simulator(void);
void sim_baton_begin(void);
// How many threads torpord has.
int sim_threads(void);

// Paths: where a file of the kernel really is, or -1 and errno. Returns 0: `path` as it is, 1: `to`.
int sim_translate(const char *path, char *to, size_t size);
// Opens a file whose content is made up; -2: it is none of those.
int sim_open_made_up(const char *path);
// Opens one to which triggers are written; -2: it is none of those.
int sim_open_trigger(const char *path);
int sim_is_trigger(int fd);
// What remains of the content of such a file goes to `to`; -2: it is none of those.
ssize_t sim_read_made_up(int fd, void *to, size_t size, off_t offset);
enum { SIM_FROM_WHERE_IT_IS = -1 };  // as an offset
int sim_is_made_up(int fd);
// Closes it; 0: it is none of those, or a file of the real kernel by now.
int sim_close_made_up(int fd);
// Before something else is done with it: a file of the real kernel gets the content.
void sim_make_real(int fd);

#define FAIL(fault, error)                                                                                             \
    do {                                                                                                               \
        if (sim_is_torpord && sim_fails(fault)) {                                                                      \
            errno = (error);                                                                                           \
            return -1;                                                                                                 \
        }                                                                                                              \
    } while (0)

#endif
