// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

// A launch takes a slot before it forks, so that every process has a record from its first moment. The child reports
// through a close-on-exec pipe that the event loop reads: an exec that hangs on a dead filesystem blocks nothing
// else.

uint32_t launch_in_flight;

static char *arguments[TORPOR_KEEPER_STRINGS + 1];
static char *environment[TORPOR_KEEPER_STRINGS + 1];

struct reader {
    char *next;
    char *end;
};

static char *take_string(struct reader *reader)
{
    char *end = reader->next < reader->end ? memchr(reader->next, 0, (size_t)(reader->end - reader->next)) : NULL;
    if (end == NULL)
        return NULL;
    char *string = reader->next;
    reader->next = end + 1;
    return string;
}

static bool take_bytes(struct reader *reader, void *to, size_t size)
{
    if ((size_t)(reader->end - reader->next) < size)
        return false;
    memcpy(to, reader->next, size);
    reader->next += size;
    return true;
}

// A sandbox without instructions is refused, because it would confine nothing.
static bool take_filter(struct reader *reader, struct keeper_plan *plan)
{
    return take_bytes(reader, &plan->filter_count, sizeof plan->filter_count) && plan->filter_count > 0
           && plan->filter_count <= TORPOR_KEEPER_FILTER_LIMIT
           && take_bytes(reader, plan->filter, sizeof *plan->filter * plan->filter_count);
}

static bool take_strings(struct reader *reader, char **to, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if ((to[i] = take_string(reader)) == NULL)
            return false;
    to[count] = NULL;
    return true;
}

// Returns 0, or an errno if the launch plan is invalid.
static int read_plan(struct keeper_plan *plan, char *message, size_t size, const int *fds, unsigned fd_count)
{
    const struct torpor_keeper_launch *head = (const struct torpor_keeper_launch *)message;
    struct reader reader = {message + sizeof *head, message + size};
    if (size < sizeof *head)
        return EINVAL;
    if (size > TORPOR_KEEPER_PLAN_LIMIT || head->limit_count > TORPOR_KEEPER_LIMIT_LIMIT
        || head->group_count > TORPOR_KEEPER_GROUP_LIMIT || head->argument_count > TORPOR_KEEPER_STRINGS
        || head->environment_count > TORPOR_KEEPER_STRINGS)
        return E2BIG;
    plan->head = head;
    plan->input_file = plan->error_file = NULL;
    plan->filter_count = 0;
    plan->arguments = arguments;
    plan->environment = environment;
    if (!take_bytes(&reader, plan->limits, sizeof *plan->limits * head->limit_count)
        || !take_bytes(&reader, plan->groups, sizeof *plan->groups * head->group_count)
        || ((head->flags & TORPOR_LAUNCH_SANDBOX) && !take_filter(&reader, plan))
        || (plan->app = take_string(&reader)) == NULL || (plan->executable = take_string(&reader)) == NULL
        || (plan->directory = take_string(&reader)) == NULL
        || ((head->flags & TORPOR_LAUNCH_INPUT_FILE) && (plan->input_file = take_string(&reader)) == NULL)
        || ((head->flags & TORPOR_LAUNCH_ERROR_FILE) && (plan->error_file = take_string(&reader)) == NULL)
        || !take_strings(&reader, arguments, head->argument_count)
        || !take_strings(&reader, environment, head->environment_count) || reader.next != reader.end)
        return EINVAL;
    size_t name = strlen(plan->app);
    if (name == 0 || name >= TORPOR_KEEPER_APP_BYTES || plan->executable[0] == 0 || head->argument_count == 0)
        return EINVAL;
    if ((plan->input_file != NULL && (plan->input_file[0] != '/' || (head->flags & TORPOR_LAUNCH_STDIN)))
        || (plan->error_file != NULL && (plan->error_file[0] != '/' || (head->flags & TORPOR_LAUNCH_STDERR))))
        return EINVAL;
    unsigned used = 0;
    for (unsigned i = 0; i < 3; i++) {
        bool given = head->flags & (TORPOR_LAUNCH_STDIN << i);
        if (given && used >= fd_count)
            return EBADF;
        plan->standard[i] = given ? fds[used++] : -1;
    }
    bool has_cgroup = head->flags & TORPOR_LAUNCH_CGROUP, has_ruleset = head->flags & TORPOR_LAUNCH_RULESET;
    if (has_ruleset && plan->filter_count == 0)
        return EINVAL;
    unsigned wanted = (has_cgroup ? 1 : 0) + (has_ruleset ? 1 : 0);
    if (head->passed_count > TORPOR_KEEPER_DESCRIPTORS || fd_count - used != head->passed_count + wanted)
        return EBADF;
    plan->passed = fds + used;
    plan->ruleset = has_ruleset ? plan->passed[head->passed_count] : -1;
    plan->cgroup = has_cgroup ? fds[fd_count - 1] : -1;
    return 0;
}

static void refuse(uint32_t id, uint32_t stage, int error)
{
    struct torpor_keeper_failure message = {{TORPOR_KEEPER_LAUNCH_FAILED, id}, stage, (uint32_t)error};
    wire_answer(&message, sizeof message, NULL, 0);
}

// Closes the descriptors lent to the child: it has its own copies now, or has ended.
static void take_back(struct keeper_process *process)
{
    for (unsigned i = 0; i < process->lent_count; i++)
        close(process->lent[i]);
    process->lent_count = 0;
}

bool launch_request(char *message, size_t size, const int *fds, unsigned count)
{
    static struct keeper_plan plan;
    uint32_t id = ((struct torpor_keeper_header *)message)->id;
    int error = read_plan(&plan, message, size, fds, count);
    if (error != 0) {
        refuse(id, TORPOR_STAGE_PLAN, error);
        return false;
    }
    if (launch_in_flight >= TORPOR_KEEPER_IN_FLIGHT) {
        refuse(id, TORPOR_STAGE_SLOT, EAGAIN);
        return false;
    }
    int slot = table_take_slot();
    if (slot < 0) {
        refuse(id, TORPOR_STAGE_SLOT, ENOSPC);
        return false;
    }
    struct torpor_keeper_slot *record = &table_slots[slot];
    struct keeper_process *process = &table_processes[slot];
    memcpy(record->app, plan.app, strlen(plan.app) + 1);
    record->incarnation = plan.head->incarnation;
    record->flags = plan.head->flags & ~(uint32_t)TORPOR_LAUNCH_ADOPTED;
    record->state = TORPOR_SLOT_LAUNCHING;

    int pipe_fds[2] = {-1, -1};
    pid_t pid = -1;
    if (pipe2(pipe_fds, O_CLOEXEC | O_NONBLOCK) < 0
        || !keeper_watch_descriptor(pipe_fds[0], EPOLLIN, EVENT_EXEC, (uint32_t)slot))
        goto failed;
    pid_t keeper = getpid();
    struct keeper_spawn spawn = {.report = pipe_fds[1], .cgroup = plan.cgroup};
    pid = spawn_child(&spawn, fds, count);
    if (pid == 0)
        child_run(&plan, &spawn, keeper);
    if (pid < 0)
        goto failed;
    if (spawn.shares) {
        memcpy(process->lent, fds, sizeof *fds * count);
        process->lent[count] = pipe_fds[1];
        process->lent_count = (uint8_t)(count + 1);
    } else {
        close(pipe_fds[1]);
    }
    record->pid = pid;
    table_insert_pid((uint32_t)slot);
    process->launch_id = id;
    process->exec_pipe = pipe_fds[0];
    launch_in_flight++;
    // The child is not reaped yet, so its pid is valid. If there is no pidfd, since no descriptor is free, the app
    // could never be signalled safely: kill the child, and let the launch fail.
    process->pidfd = spawn_raise(spawn.pidfd);
    if (process->pidfd < 0) {
        record->stage = TORPOR_STAGE_FORK;
        record->error = (uint32_t)errno;
        kill(pid, SIGKILL);
    }
    int32_t session;
    char comm[16];
    reap_stat(pid, &record->start_time, &session, comm);
    return spawn.shares;

failed:
    error = errno;
    if (pipe_fds[0] >= 0)
        keeper_close_watched(pipe_fds[0]);
    if (pipe_fds[1] >= 0)
        close(pipe_fds[1]);
    table_free_slot((uint32_t)slot);
    refuse(id, TORPOR_STAGE_FORK, error);
    return false;
}

// Reads the child's report. Unless `final`, the pipe may deliver more later.
static void hear(uint32_t slot, bool final)
{
    struct keeper_process *process = &table_processes[slot];
    struct torpor_keeper_slot *record = &table_slots[slot];
    if (slot >= table_used || process->exec_pipe < 0)
        return;  // the child was reaped in the same turn of the loop
    uint32_t report[2];
    ssize_t size;
    do
        size = read(process->exec_pipe, report, sizeof report);
    while (size < 0 && errno == EINTR);
    if (size < 0 && errno == EAGAIN && !final)
        return;
    take_back(process);
    if (size == sizeof report && report[0] == TORPOR_STAGE_NONE)
        return;  // the child has its own descriptor table; the end of the pipe follows
    keeper_close_watched(process->exec_pipe);
    process->exec_pipe = -1;
    launch_in_flight--;
    if (record->stage == TORPOR_STAGE_NONE && size == sizeof report) {
        record->stage = report[0];
        record->error = report[1];
    }
    if (record->stage != TORPOR_STAGE_NONE) {
        record->state = TORPOR_SLOT_FAILED;  // torpord is notified when the child is reaped
        return;
    }
    record->state = TORPOR_SLOT_RUNNING;
    if (!process->abandoned)
        wire_tell(slot, TELL_LAUNCHED);
}

void launch_heard(uint32_t slot)
{
    hear(slot, false);
}

void launch_finish(uint32_t slot)
{
    // Read twice: the message that the child has its own descriptor table, and the rest. There may be no end of file,
    // since other children that are being launched may still have the pipe's write end.
    for (int i = 0; i < 2 && table_processes[slot].exec_pipe >= 0; i++)
        hear(slot, true);
}
