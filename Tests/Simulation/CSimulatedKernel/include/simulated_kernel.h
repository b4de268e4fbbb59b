/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TORPOR_SIMULATED_KERNEL_H
#define TORPOR_SIMULATED_KERNEL_H

// The kernel of the simulation (docs/internals.md, "The simulation"). The simulator and each torpord share one world in
// memory: what torpord asks of the kernel is answered in its own process (edge_*.c), what happens by itself is chosen by
// the simulator while torpord waits.

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    SIM_PROCESSES = 96,
    SIM_ENVIRONMENT = 6144,
    SIM_TRACE = 1 << 19,
    SIM_KEEPER = 10,    // the keeper's pid
    SIM_STRANGER = 0,   // clients of the control socket: outside of the pid namespace
};

enum sim_fault {
    SIM_FAULT_DESCRIPTORS,  // EMFILE, ENFILE
    SIM_FAULT_SPACE,        // ENOSPC
    SIM_FAULT_DISK,         // EIO
    SIM_FAULT_INTERRUPTED,  // EINTR
    SIM_FAULT_BLOCKED,      // EAGAIN, though there was something
    SIM_FAULT_MEMORY,       // ENOMEM, ENOBUFS
    SIM_FAULT_SIGNAL,       // EPERM for a signal
    SIM_FAULT_SHORT,        // fewer bytes than there are
    SIM_FAULTS,
};

struct sim_process {
    int32_t pid;      // 0: this place is free
    int32_t parent, session;
    uint64_t start;   // clock ticks after boot
    uint64_t inode;   // of the FIFO that stands for its pidfd
    char state;       // S, T or Z, as in /proc/PID/stat
    uint8_t is_helper;
    uint32_t incarnation;
    uint64_t pending; // signals that it has not taken yet: 1 << number
    int32_t code, status;
    int writer;       // the simulator's end of the FIFO
    char comm[16];
    char app[64];
    uint32_t environment_size;
};

struct sim_world {
    int64_t now;              // CLOCK_MONOTONIC, nanoseconds
    int64_t realtime;         // what CLOCK_REALTIME is ahead of it
    uint64_t schedule, fault_state;  // states of the random numbers: for the order of things, for faults
    int64_t next_deadline;    // of what torpord waits for; INT64_MAX: nothing
    uint64_t calls;           // that torpord made
    uint64_t kill_at;         // the call from which on it is killed; 0: none
    uint32_t kill_after_change;  // at the next one that has changed something, not at any
    uint64_t boot;            // counts boots
    uint32_t is_calm;         // no fault from now on
    uint32_t has_pressure;    // the kernel reports memory pressure (PSI); torpord polls without that
    uint32_t rate[SIM_FAULTS];  // of 65536 calls
    uint64_t faults[SIM_FAULTS];
    uint64_t next_ticks;
    int32_t torpord;          // its pid
    uint32_t turn;            // which of the two processes runs, torpord or the simulator (torpord.c)
    uint32_t made_up;         // files of /proc that torpord has open
    int32_t is_ready;         // torpord gave way although it had something to do
    uint32_t threads;         // of torpord, that have something to do
    int32_t epoll;            // torpord's, by which alone it can have something to do before its deadline; -1: none
    uint64_t runs;            // counts how often torpord ran: nothing of it comes in between
    uint64_t messages;        // counts those that torpord sent, to whomever
    uint32_t epolls;          // counts those that were made: a number may be used again
    uint64_t trace_hash, trace_size;
    char root[128];           // what stands before /proc and such
    char trace[SIM_TRACE];
    int32_t places;           // the processes from here on are free
    struct sim_process processes[SIM_PROCESSES];
    char environments[SIM_PROCESSES][SIM_ENVIRONMENT];  // apart: they would be far from each other otherwise
};

extern struct sim_world *sim_world;
extern int sim_is_torpord;

static inline struct sim_world *sim_state(void) { return sim_world; }
static inline char *sim_environment(const struct sim_process *process)
{
    return sim_world->environments[process - sim_world->processes];
}

// Makes the world. `root`: a folder of its own on a file system in memory.
int sim_create(uint64_t seed, const char *root);
uint64_t sim_random(uint64_t below);
void sim_trace(const char *text);
// The end of what happened, as far as it fits; returns how many bytes.
size_t sim_trace_end(char *to, size_t size);
int64_t sim_real_nanoseconds(void);

// Processes.
struct sim_process *sim_find(int32_t pid);
struct sim_process *sim_at(int index);
struct sim_process *sim_fork_process(struct sim_process *parent);
struct sim_process *sim_spawn(const char *app, uint32_t incarnation, int32_t parent, int is_helper);
void sim_end_process(struct sim_process *process, int code, int status);
void sim_reap(struct sim_process *process);
// The next signal that the process takes, 0 when none is pending.
int sim_take_signal(struct sim_process *process);
void sim_send_signal(struct sim_process *process, int number);
const char *sim_variable(struct sim_process *process, const char *name);
// Binds a socket to the name by which torpord learns that this process is its peer.
int sim_bind_as(int fd, int32_t pid);

// torpord. `body` runs in the child. Returns 0; the child waits for sim_resume_torpord.
enum sim_stop { SIM_WAITS, SIM_ENDED };
int sim_start_torpord(void (*body)(void), int keeper_socket);
// Lets it run until it waits or is gone; in that case *status is that of waitpid(2).
enum sim_stop sim_resume_torpord(int *status);
void sim_kill_torpord(void);
void sim_signal_torpord(int number);
int sim_torpord_descriptors(char *list, size_t size);

// The keeper.
enum sim_event_kind { SIM_EVENT_NONE, SIM_EVENT_LAUNCH, SIM_EVENT_BYE, SIM_EVENT_HANDOVER, SIM_EVENT_SETTLED };
struct sim_event {
    enum sim_event_kind kind;
    int32_t pid;
    int status;
    int input, output, error;       // of a launch, the simulator's by now; -1 none
    int passed[16];
    uint32_t passed_count;
    char executable[256];
};
int sim_keeper_begin(void);                    // a socket for the next torpord, or -1
int sim_keeper_turn(struct sim_event *event);  // reads one message; 1: something was read
int sim_keeper_has_request(void);
void sim_keeper_exec(int32_t pid, uint32_t stage, uint32_t error);  // exec came, or failed
void sim_keeper_exited(struct sim_process *process);                // reaps it
void sim_keeper_torpord_ended(void);
int sim_keeper_held(char *list, size_t size);
int sim_keeper_is_launching(int32_t pid);
void sim_keeper_reset(void);  // another keeper: nothing is held, and no slot is taken

// Tools of the simulator.
void sim_prepare(char *const arguments[]);
void sim_find_real_functions(void);
// Puts the code of this program where fork(2) shares it.
void sim_move_code(void);
int sim_fork(void);
int sim_wait_any(int *status);
// From now on only this processor is used, of those that may be: of two that wait for each other one runs at a time.
void sim_pin(int number);
// Makes the types and conformances of Swift that this program names, which each torpord would otherwise do by itself.
void sim_warm_up_types(void);
void sim_lock(uint64_t seed);  // waits while another run has the same seed, and so the same folder
void sim_exit(int status) __attribute__((noreturn));
void sim_set_alarm(unsigned seconds);
void sim_redirect_errors(const char *path);
int sim_connect_as(const char *path, int32_t pid);
int sim_send_as(const char *path, int32_t pid, const char *text);
ssize_t sim_read(int fd, void *to, size_t size);
ssize_t sim_write(int fd, const void *from, size_t size);
int sim_errno(void);
void sim_close(int fd);
void sim_nonblocking(int fd);
void sim_set(const char *name, const char *value);

#endif
