/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TORPOR_KEEPER_H
#define TORPOR_KEEPER_H

// The keeper is the parent of torpord and of every app: it launches and reaps processes and holds descriptors, but
// knows nothing of app states. It has one thread and one epoll. All tables are static: after its start the keeper
// never allocates memory, so it cannot fail for lack of it.
//
//   main.c     start, the loop, signals
//   base.c     used by all others: the log, the clock, the descriptors of the event loop
//   torpord.c  starts and restarts torpord
//   image.c    chooses torpord's executable
//   watch.c    the watchdog of torpord's event loop
//   forward.c  forwards signals to torpord; without torpord, terminates the apps
//   init.c     further duties as the first process of a container
//   resume.c   executes the keeper's program again, keeping all its state
//   wire.c     messages to torpord: one pending answer, and a queue of changed slots
//   serve.c    messages from torpord
//   table.c    the slots (in a memfd shared with torpord) and the keeper's private part of them
//   launch.c   reads a launch plan, forks, waits for exec
//   spawn.c    creates a child process
//   child.c    what the child does between fork and exec
//   sandbox.c  gives up rights for good, as the plan says
//   reap.c     reaps all processes that end
//   adopt.c    processes that another program launched
//   hold.c     stores descriptors by name
//   held.c     reads them; inherits those that the service manager stored
//   park.c     copies them to the service manager
//   closer.c   child processes that close sockets, and descriptors stored by apps
//   receive.c  a separate process that receives descriptors from apps
//   manager.c  NOTIFY_SOCKET and the service manager's watchdog
//   rest.c     frees memory when idle, and locks the rest

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base.h"
#include "torpor_keeper_protocol.h"

// torpord.c
extern pid_t torpord_pid;       // 0: not running
extern int torpord_socket;      // -1: not running
extern bool torpord_greeted;    // this instance has sent HELLO
extern uint32_t torpord_instance;
extern char **torpord_arguments;
bool torpord_setup(char **arguments);
void torpord_start(void);
void torpord_said_hello(void);
void torpord_said_bye(bool keep_parked, int status);  // status -1: use torpord's exit status
void torpord_said_settled(void);
void torpord_said_handover(bool keeper_too);
bool torpord_takes_signals(int signo);
void torpord_is_stuck(void);
void torpord_closed(void);       // torpord has closed its end of the socket
void torpord_ended(int code, int status);
void torpord_set_delay(uint64_t milliseconds);
void torpord_delay_fired(void);
uint64_t torpord_next_delay(void);
void torpord_resume(uint32_t instance, uint64_t delay);

// image.c
int image_choose(const char *path);  // -1: the program at the path; else a descriptor of one that worked before
bool image_is_fallback(void);        // image_choose took the program that worked before
void image_settled(pid_t pid);
bool image_has_other(void);          // a program other than the running one has worked before
bool image_failed(void);             // the running program failed to start; false: there is no other
void image_try_again(void);          // try the program at the path again
void image_save(struct torpor_keeper_resume *state);
void image_restore(const struct torpor_keeper_resume *state);

// watch.c
extern uint32_t watch_milliseconds;
extern int watch_fd;
bool watch_start(void);
void watch_stop(void);
void watch_arm(void);
void watch_look(void);
void watch_fired(void);

// forward.c
#define FORWARD_HALT (SIGRTMIN + 3)  // systemd(1): container managers send it to an init
#define FORWARD_POWER_OFF (SIGRTMIN + 4)
void forward_signal(int signo);
void forward_settled(void);
bool forward_end_without_torpord(void);  // false: no stop was requested from torpord
void forward_torpord_ended(void);
void forward_child_ended(void);  // a child was reaped: the shutdown may be complete
void forward_shutdown_over(void);
bool forward_is_shutdown(void);
bool forward_has_asked_to_stop(void);
uint64_t forward_pending(void);
void forward_restore(uint64_t signals);

// init.c
_Noreturn void keeper_exit(int status);  // as PID 1 it first terminates all other processes

// resume.c
void resume_remember_inherited(void);
bool resume_remember_program(void);
void resume_execute(void);  // returns only on failure
bool resume_open(const char *number, char **arguments);  // false: failed, and the reason was logged
void resume_restore(void);
int resume_accepts(const char *version);

// wire.c
enum {
    TELL_TABLE = 1 << 0,
    TELL_LAUNCHED = 1 << 1,
    TELL_FAILED = 1 << 2,
    TELL_EXITED = 1 << 3,
};
void wire_setup(void);
void wire_reset(void);
bool wire_can_answer(void);      // false: an answer still waits for room: read no further message
void wire_answer(const void *message, size_t size, const int *fds, unsigned count);
void wire_answer_number(uint32_t type, uint32_t id, uint32_t value);
void wire_tell(uint32_t slot, unsigned what);
void wire_tell_everything(uint32_t spoken);  // after WELCOME: sends all living processes and all exits
void wire_flush(void);

// serve.c
void serve_socket(uint32_t events);
void serve_rest(void);           // reads the last messages of a torpord that has ended

// spawn.c
enum {
    SPAWN_LOW = 512,  // held descriptors are numbered from here; the keeper's own, and those lent to children, below
    SPAWN_LENT = 8,
};
struct keeper_spawn {
    int report;      // the child's end of the pipe
    int cgroup;      // -1: none
    int pidfd;       // -1: none
    bool shares;     // the child uses the keeper's descriptor table until spawn_unshare
    bool in_cgroup;  // created in its cgroup
};
void spawn_setup(void);
int spawn_raise(int fd);  // moves a descriptor to SPAWN_LOW or above
pid_t spawn_child(struct keeper_spawn *spawn, const int *fds, unsigned count);  // returns as fork does
int spawn_unshare(void);  // gives the child its own table; returns 0 or errno

// table.c
struct keeper_process {  // the keeper's private part of a slot
    int pidfd;
    int exec_pipe;        // -1: exec was reported
    uint32_t launch_id;   // 0: requested by an earlier torpord
    uint32_t hash_next;   // index + 1
    uint8_t tell;         // TELL_…
    bool queued;
    bool reaped;
    bool abandoned;       // a helper whose torpord has ended: its exit is not reported
    uint8_t lent_count;   // how many descriptors the child uses until it has its own table
    int lent[SPAWN_LENT + 1];
    uint64_t deadline;    // how long to wait for the exit status of an adopted process
};
extern struct torpor_keeper_table *table;
extern struct torpor_keeper_slot *table_slots;
extern struct torpor_keeper_orphan *table_orphans;
extern struct keeper_process *table_processes;
extern uint32_t table_used;      // slots from this index on were never used
extern uint32_t table_living;    // processes that are not reaped yet
extern int table_memfd;
bool table_setup(void);
int table_take_slot(void);       // -1: none is free
void table_free_slot(uint32_t slot);
void table_insert_pid(uint32_t slot);
void table_remove_pid(uint32_t slot);
void table_restore_slot(uint32_t slot, const struct torpor_keeper_resume_process *process);  // in order from 0
int table_find_pid(pid_t pid);   // -1: the keeper has not launched it
int table_find_session(pid_t session);
struct torpor_keeper_orphan *table_next_orphan(void);

// launch.c
struct keeper_plan {
    const struct torpor_keeper_launch *head;
    const char *app;
    const char *executable;
    const char *directory;
    const char *input_file;  // NULL: none
    const char *error_file;
    struct torpor_keeper_limit limits[TORPOR_KEEPER_LIMIT_LIMIT];
    uint32_t groups[TORPOR_KEEPER_GROUP_LIMIT];
    uint32_t filter_count;   // 0: no sandbox
    struct torpor_keeper_instruction filter[TORPOR_KEEPER_FILTER_LIMIT];
    char **arguments;
    char **environment;
    int standard[3];       // -1: /dev/null
    const int *passed;
    int ruleset;           // of Landlock; -1: none
    int cgroup;            // -1: none
};
bool launch_request(char *message, size_t size, const int *fds, unsigned count);  // true: it owns the descriptors now
void launch_heard(uint32_t slot);   // call it when the slot's pipe is readable or closed
void launch_finish(uint32_t slot);  // call it when the child has ended: reads the rest of the pipe
extern uint32_t launch_in_flight;

// child.c
_Noreturn void child_run(struct keeper_plan *plan, const struct keeper_spawn *spawn, pid_t keeper);

// sandbox.c
int sandbox_leave_ipc(const struct keeper_plan *plan);  // needs the keeper's rights; returns 0 or errno
int sandbox_enter(const struct keeper_plan *plan, int ruleset);  // returns 0 or errno; there is no way back

// files.c: these functions return a descriptor, or -1 with errno. They may leak descriptors, since the child soon ends
// or executes. files_open_trusted opens nothing if the path is not trusted, or if it contains a symlink that `follows`
// does not permit.
int files_open_trusted(const char *path, int flags, bool follows, bool *trusted);
int files_open(const char *path, int flags);
int files_place(int fd, int target);  // returns 0 or errno

// reap.c
void reap_named(pid_t pid);  // call it for a SIGCHLD with this pid
void reap_all(void);
int reap_rest(void);         // call it at the end of each turn; returns milliseconds until the next call, or -1
bool reap_stat(pid_t pid, uint64_t *start_time, int32_t *session, char comm[16]);

// adopt.c
extern uint32_t adopt_living;
bool adopt_setup(void);
int adopt_request(const struct torpor_keeper_adopt *message, const char *app, int pidfd);  // 0: it owns the pidfd now
bool adopt_is_living(uint32_t slot);
bool adopt_watch(uint32_t slot);
void adopt_unwatch(uint32_t slot);
void adopt_heard(uint32_t slot);
void adopt_patience_over(void);
int adopt_find_zombie(pid_t pid);  // the slot of an ended adopted process that became the keeper's child; -1: none
void adopt_signal(uint32_t slot, int signo);

// hold.c
void hold_setup(void);
int hold_add(const char *name, const int *fds, unsigned count, bool replace);  // on 0 it owns the descriptors
int hold_release(const char *name);
int hold_take(const char *name, uint32_t offset, int *fds, unsigned limit, uint32_t *total, unsigned *count);
size_t hold_list(uint32_t *cursor, char *names, size_t size, uint32_t *count);
size_t hold_take_all(struct torpor_keeper_held *held, char *names, size_t size, int *fds, unsigned *fd_count);
int hold_offered(void);   // LISTEN_FDS: how many descriptors the service manager has passed
void hold_inherit(void);
struct hold_name;
void hold_each_name(void (*body)(struct hold_name *name));

// manager.c
extern bool manager_present;
void manager_setup(void);
void manager_tell(const char *text, size_t size);
bool manager_send(const char *text, size_t size, int fd);  // false: the manager's socket has no room now
bool manager_flush(void);                                  // false: messages are still queued
void manager_work(void);                                   // call it at the end of each turn of the loop
void manager_retry(void);
void manager_watchdog(void);
uint32_t manager_text_count(void);
const char *manager_text(uint32_t index, uint32_t *size);

// closer.c
uint32_t closer_owner(const char *name);     // the owner of descriptors that are held under this name
void closer_take(int fd, uint32_t owner);    // has the descriptor closed by a separate process
bool closer_is_stuck(uint32_t owner);        // whether the owner's wait for others, so that no more should be taken
bool closer_flush(void);          // false: the manager must first read its messages
bool closer_ended(pid_t pid);     // call it when a child was reaped; false: it is no closer
void closer_leave(bool ends);     // call it before the keeper ends, or is replaced (ends: false)

// receive.c
int receive(void);

// rest.c
void rest_soon(void);
void rest_if_due(void);  // call it just before the loop waits: what runs afterwards brings its pages back

// park.c
void park_setup(void);
bool park_flush(void);
uint32_t park_ticket(void);              // stands for all messages that are queued now
bool park_has_told(uint32_t ticket);
void park_leave(bool keep);  // last step before an exit; waits for the manager, up to a limit

#endif
