/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TORPOR_KEEPER_H
#define TORPOR_KEEPER_H

// The keeper is the parent of torpord and of every app: it launches, reaps and holds, and knows of no states.
// One thread, one epoll. Nothing is allocated after start: all tables are static, so that it can always do its work.
//
//   main.c     start, the loop, signals
//   base.c     what all the others use: the log, the clock, what the loop watches
//   torpord.c  starts torpord, and again when it ends
//   image.c    which program torpord is started from
//   watch.c    the watch over torpord's loop
//   forward.c  signals for torpord; ends the apps when there is none
//   init.c     what the first process of a container does beyond that
//   resume.c   the keeper executes itself again with all that it holds
//   wire.c     messages to torpord: one answer that waits, and a queue of what changed
//   serve.c    messages from torpord
//   table.c    the slots (in a memfd shared with torpord) and the keeper's own half of them
//   launch.c   reads a plan, forks, hears of exec
//   spawn.c    how a child comes to be
//   child.c    what the child does between fork and exec
//   reap.c     waits for everything that ends
//   adopt.c    processes that somebody else launched
//   hold.c     descriptors by name
//   held.c     reads them; what the service manager kept
//   park.c     gives the service manager a copy
//   closer.c   processes of their own that close what apps have stored
//   receive.c  a process of its own that opens what apps send
//   manager.c  NOTIFY_SOCKET and the service manager's watchdog
//   rest.c     gives memory back, and keeps what is left in memory

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base.h"
#include "torpor_keeper_protocol.h"

// torpord.c
extern pid_t torpord_pid;       // 0: none
extern int torpord_socket;      // -1: none
extern bool torpord_greeted;    // this instance has said HELLO
extern uint32_t torpord_instance;
extern char **torpord_arguments;
bool torpord_setup(char **arguments);
void torpord_start(void);
void torpord_said_hello(void);
void torpord_said_bye(bool keep_parked, int status);  // -1: that of its exit
void torpord_said_settled(void);
void torpord_said_handover(bool keeper_too);
bool torpord_takes_signals(int signo);
void torpord_is_stuck(void);
void torpord_ended(int code, int status);
void torpord_set_delay(uint64_t milliseconds);
void torpord_delay_fired(void);
uint64_t torpord_next_delay(void);
void torpord_resume(uint32_t instance, uint64_t delay);

// image.c
int image_choose(const char *path);  // -1: what lies at the path, else the descriptor of what worked before
bool image_is_fallback(void);        // the latter
void image_settled(pid_t pid);
bool image_has_other(void);          // another program than the one that runs has worked before
bool image_failed(void);             // the one that ran did not come up; false: there is no other
void image_try_again(void);          // somebody wants what lies at the path
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
#define FORWARD_HALT (SIGRTMIN + 3)  // systemd(1): what container managers send to its like
#define FORWARD_POWER_OFF (SIGRTMIN + 4)
void forward_signal(int signo);
void forward_settled(void);
bool forward_end_without_torpord(void);  // false: nobody has asked for an end
void forward_torpord_ended(void);
void forward_child_ended(void);  // a child was reaped: a shutdown may be over
void forward_shutdown_over(void);
bool forward_is_shutdown(void);
bool forward_has_asked_to_stop(void);
uint64_t forward_pending(void);
void forward_restore(uint64_t signals);

// init.c
_Noreturn void keeper_exit(int status);  // as PID 1 it ends the rest first: nobody else tells them that it is over

// resume.c
void resume_remember_inherited(void);
bool resume_remember_program(void);
void resume_execute(void);  // comes back when it failed
bool resume_open(const char *number, char **arguments);  // false: has said why not
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
bool wire_can_answer(void);      // false: an answer waits, read no further message
void wire_answer(const void *message, size_t size, const int *fds, unsigned count);
void wire_answer_number(uint32_t type, uint32_t id, uint32_t value);
void wire_tell(uint32_t slot, unsigned what);
void wire_tell_everything(void);  // after WELCOME: what lives, what ended
void wire_flush(void);

// serve.c
void serve_socket(uint32_t events);
void serve_rest(void);           // torpord is dead: what it sent last

// spawn.c
enum {
    SPAWN_LOW = 512,  // what is held lies above; what a child is lent, and the keeper's own, below
    SPAWN_LENT = 8,
};
struct keeper_spawn {
    int report;      // the child's end of the pipe
    int cgroup;      // -1: none
    int pidfd;       // -1: none could be had
    bool shares;     // the child has the keeper's table of descriptors until spawn_unshare
    bool in_cgroup;  // it was born there
};
void spawn_setup(void);
int spawn_raise(int fd);  // the same file above SPAWN_LOW
pid_t spawn_child(struct keeper_spawn *spawn, const int *fds, unsigned count);  // as fork
int spawn_unshare(void);  // errno

// table.c
struct keeper_process {  // the keeper's half of a slot
    int pidfd;
    int exec_pipe;        // -1: exec was heard of
    uint32_t launch_id;   // 0: asked for by a torpord that is gone
    uint32_t hash_next;   // index + 1
    uint8_t tell;         // TELL_…
    bool queued;
    bool reaped;
    bool abandoned;       // a helper whose torpord died: nobody wants its exit
    uint8_t lent_count;   // of descriptors that the child uses until it has a table of its own
    int lent[SPAWN_LENT + 1];
    uint64_t deadline;    // an adopted process that has ended is not waited for longer than this
};
extern struct torpor_keeper_table *table;
extern struct torpor_keeper_slot *table_slots;
extern struct torpor_keeper_orphan *table_orphans;
extern struct keeper_process *table_processes;
extern uint32_t table_used;      // slots below this index were used at least once
extern uint32_t table_living;    // processes that are not reaped yet
extern int table_memfd;
bool table_setup(void);
int table_take_slot(void);       // -1: none is free
void table_free_slot(uint32_t slot);
void table_insert_pid(uint32_t slot);
void table_remove_pid(uint32_t slot);
void table_restore_slot(uint32_t slot, const struct torpor_keeper_resume_process *process);  // in order, from 0
int table_find_pid(pid_t pid);   // -1: not one that was launched here
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
    char **arguments;
    char **environment;
    int standard[3];       // -1: /dev/null
    const int *passed;
    int cgroup;            // -1: none
};
bool launch_request(char *message, size_t size, const int *fds, unsigned count);  // true: it keeps the descriptors
void launch_heard(uint32_t slot);   // the pipe is readable or closed
void launch_finish(uint32_t slot);  // the child is dead: what the pipe says is final
extern uint32_t launch_in_flight;

// child.c
_Noreturn void child_run(struct keeper_plan *plan, const struct keeper_spawn *spawn, pid_t keeper);

// files.c: descriptors, or -1 with errno. They are left open where the child ends or executes soon.
int files_open_trusted(const char *path, int flags, bool *trusted);  // not trusted: nothing was opened
int files_open(const char *path, int flags);
int files_place(int fd, int target);  // 0, or errno

// reap.c
void reap_named(pid_t pid);  // a SIGCHLD said so
void reap_all(void);
int reap_rest(void);         // at the end of each turn; milliseconds after which it wants another, -1: none
bool reap_stat(pid_t pid, uint64_t *start_time, int32_t *session, char comm[16]);

// adopt.c
extern uint32_t adopt_living;
bool adopt_setup(void);
int adopt_request(const struct torpor_keeper_adopt *message, const char *app, int pidfd);  // takes it over at 0
bool adopt_is_living(uint32_t slot);
bool adopt_watch(uint32_t slot);
void adopt_unwatch(uint32_t slot);
void adopt_heard(uint32_t slot);
void adopt_patience_over(void);
int adopt_find_zombie(pid_t pid);  // one that became the keeper's child before it ended; -1: none
void adopt_signal(uint32_t slot, int signo);

// hold.c
void hold_setup(void);
int hold_add(const char *name, const int *fds, unsigned count, bool replace);  // takes them over when it answers 0
int hold_release(const char *name);
int hold_take(const char *name, uint32_t offset, int *fds, unsigned limit, uint32_t *total, unsigned *count);
size_t hold_list(uint32_t *cursor, char *names, size_t size, uint32_t *count);
size_t hold_take_all(struct torpor_keeper_held *held, char *names, size_t size, int *fds, unsigned *fd_count);
int hold_offered(void);   // LISTEN_FDS: what the service manager kept over a restart or listens on (sd_listen_fds(3))
void hold_inherit(void);
struct hold_name;
void hold_each_name(void (*body)(struct hold_name *name));

// manager.c
extern bool manager_present;
void manager_setup(void);
void manager_tell(const char *text, size_t size);
bool manager_send(const char *text, size_t size, int fd);  // false: there is no room now
bool manager_flush(void);                                  // false: something waits
void manager_work(void);                                   // at the end of each turn of the loop
void manager_retry(void);
void manager_watchdog(void);
uint32_t manager_text_count(void);
const char *manager_text(uint32_t index, uint32_t *size);

// closer.c
void closer_take(int fd);         // is closed by a process of its own, once this turn of the loop is over
bool closer_flush(void);          // false: the manager is to be told of something before
bool closer_ended(pid_t pid);     // a child was reaped; false: it was none of these
void closer_leave(void);          // before the keeper ends

// receive.c
int receive(void);

// rest.c
void rest(void);

// park.c
void park_setup(void);
bool park_flush(void);
uint32_t park_ticket(void);              // of all that is to be told by now
bool park_has_told(uint32_t ticket);
void park_leave(bool keep);  // the last thing before a meant end; waits for the manager for a bounded time

#endif
