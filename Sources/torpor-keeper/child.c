// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

// The child between fork and exec. It makes only system calls. Each step is a stage that a failure names. Steps that
// need the keeper's rights (cgroup, limits, priority) come before the change of user. chdir comes after that change,
// since perhaps only the app's user may enter the directory.

struct report {
    uint32_t stage;
    uint32_t error;
};

_Noreturn static void fail(int report, uint32_t stage, int error)
{
    struct report message = {stage, (uint32_t)error};
    ssize_t ignored = write(report, &message, sizeof message);
    (void)ignored;
    _exit(255);
}

static size_t decimal(char *to, uint64_t value, bool negative)
{
    char digits[24];
    size_t count = 0, used = 0;
    do
        digits[count++] = (char)('0' + value % 10);
    while ((value /= 10) != 0);
    if (negative)
        to[used++] = '-';
    while (count > 0)
        to[used++] = digits[--count];
    to[used] = 0;
    return used;
}

// torpord has reserved ten digits after the "=" of the variable.
static void write_pid(char **environment, const char *prefix)
{
    size_t length = strlen(prefix);
    for (; *environment != NULL; environment++)
        if (strncmp(*environment, prefix, length) == 0 && strlen(*environment + length) >= 10)
            decimal(*environment + length, (uint64_t)getpid(), false);
}

static int write_file(int directory, const char *path, const char *text, size_t size)
{
    int fd = openat(directory, path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return errno;
    int error = write(fd, text, size) < 0 ? errno : 0;
    close(fd);
    return error;
}

// Moves a descriptor above the target numbers, so that dup2 does not overwrite it: to `above` or higher.
static int move_up(int *fd, int above)
{
    int moved = fcntl(*fd, F_DUPFD_CLOEXEC, above);
    if (moved < 0)
        return errno;
    *fd = moved;
    return 0;
}

// Moves descriptors to their numbers: standard descriptors to 0…2, passed ones from 3 on, then the report pipe and, if
// there are any, the cgroup's directory and the ruleset; closes all others. This step precedes all that may block: a
// blocked child must not hold copies of other launches' pipes.
static int place_descriptors(struct keeper_plan *plan, int *report, int *cgroup, int *ruleset)
{
    enum { OWN = 3 };  // the report pipe, the cgroup's directory, the ruleset
    int *own[OWN] = {report, cgroup, ruleset};
    int count = 3 + (int)plan->head->passed_count;
    int sources[3 + TORPOR_KEEPER_DESCRIPTORS];
    int error = 0;
    for (int i = 0; i < OWN; i++)
        if (*own[i] >= 0 && (error = move_up(own[i], count + OWN)) != 0)
            return error;
    for (int i = 0; i < count; i++) {
        int fd = i < 3 ? plan->standard[i] : plan->passed[i - 3];
        if (fd < 0 && (fd = open("/dev/null", O_RDWR | O_CLOEXEC)) < 0)
            return errno;
        sources[i] = fd;
        if (fd < count + OWN && (error = move_up(&sources[i], count + OWN)) != 0)
            return error;
    }
    for (int i = 0; i < count; i++)
        if (dup2(sources[i], i) < 0)
            return errno;
    int next = count;
    for (int i = 0; i < OWN; i++) {
        if (*own[i] < 0)
            continue;
        if (dup3(*own[i], next, O_CLOEXEC) < 0)
            return errno;
        *own[i] = next++;
    }
    // Before Linux 5.9 there is no close_range. Then close-on-exec, which all of the keeper's descriptors have,
    // closes them.
    syscall(SYS_close_range, (unsigned)next, ~0u, 0);
    return 0;
}

static void set_limits(struct keeper_plan *plan, int report)
{
    bool nofile = false;
    for (uint32_t i = 0; i < plan->head->limit_count; i++) {
        struct rlimit limit = {.rlim_cur = plan->limits[i].soft, .rlim_max = plan->limits[i].hard};
        if (setrlimit((int)plan->limits[i].resource, &limit) < 0)
            fail(report, TORPOR_STAGE_LIMITS, errno);
        nofile = nofile || plan->limits[i].resource == RLIMIT_NOFILE;
    }
    if (!nofile && keeper_nofile_hard != 0) {
        struct rlimit limit = {.rlim_cur = keeper_nofile_soft, .rlim_max = keeper_nofile_hard};
        if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
            fail(report, TORPOR_STAGE_LIMITS, errno);
    }
}

static void set_priority(const struct torpor_keeper_launch *head, int report)
{
    if ((head->flags & TORPOR_LAUNCH_NICE) && setpriority(PRIO_PROCESS, 0, head->nice) < 0)
        fail(report, TORPOR_STAGE_PRIORITY, errno);
    if (head->flags & TORPOR_LAUNCH_OOM) {
        char text[24];
        int64_t value = head->oom_score_adjust;
        size_t size = decimal(text, (uint64_t)(value < 0 ? -value : value), value < 0);
        int error = write_file(AT_FDCWD, "/proc/self/oom_score_adj", text, size);
        if (error != 0)
            fail(report, TORPOR_STAGE_OOM, error);
    }
}

static void set_user(struct keeper_plan *plan, int report)
{
    const struct torpor_keeper_launch *head = plan->head;
    if (!(head->flags & TORPOR_LAUNCH_USER))
        return;
    if (geteuid() != 0 && head->user == geteuid() && head->group == getegid())
        return;  // already this user: nothing to change, and no permission for setgroups
    if (setgroups(head->group_count, (const gid_t *)plan->groups) < 0)
        fail(report, TORPOR_STAGE_GROUPS, errno);
    if (setresgid(head->group, head->group, head->group) < 0)
        fail(report, TORPOR_STAGE_GROUP, errno);
    if (setresuid(head->user, head->user, head->user) < 0)
        fail(report, TORPOR_STAGE_USER, errno);
}

static void open_file(const char **path, int target, int flags, uint32_t stage, bool is_app, bool follows, int report)
{
    if (*path == NULL)
        return;
    bool may = true;
    int fd = is_app ? files_open(*path, flags) : files_open_trusted(*path, flags, follows, &may);
    if (!may)
        return;  // open it later, as the app's user
    int error = fd < 0 ? errno : files_place(fd, target);
    if (error != 0)
        fail(report, stage, error);
    *path = NULL;
}

// Opens the files of the launch plan. Called twice. The first call opens files on trusted paths, with the keeper's
// rights. The second call opens all other files, as the app's user and in the app's sandbox, since the app itself could
// have put a symlink there. If the keeper runs as the same user as the app, a symlink of that user is not trusted
// either: it could lead out of the sandbox.
static void open_files(struct keeper_plan *plan, bool is_app, int report)
{
    bool follows = plan->filter_count == 0;
    open_file(&plan->input_file, 0, O_RDONLY, TORPOR_STAGE_INPUT, is_app, follows, report);
    open_file(&plan->error_file, 2, O_WRONLY | O_CREAT | O_APPEND, TORPOR_STAGE_ERROR, is_app, follows, report);
}

// The child is killed if the keeper dies. Until exec, nothing shows which app the child belongs to, so the next
// keeper could launch the app twice.
static void tie_to_keeper(pid_t keeper)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != keeper)
        _exit(255);
}

// Gives the child its own descriptor table and reports that: then the keeper can close the descriptors that the child
// used until now.
static void unshare_descriptors(int report)
{
    struct report message = {TORPOR_STAGE_NONE, 0};
    int error = spawn_unshare();
    if (error != 0)
        fail(report, TORPOR_STAGE_DESCRIPTORS, error);
    if (write(report, &message, sizeof message) < 0)
        _exit(255);
}

_Noreturn void child_run(struct keeper_plan *plan, const struct keeper_spawn *spawn, pid_t keeper)
{
    int report = spawn->report;
    const struct torpor_keeper_launch *head = plan->head;
    if (spawn->shares)
        unshare_descriptors(report);
    tie_to_keeper(keeper);
    if (setsid() < 0)
        fail(report, TORPOR_STAGE_SESSION, errno);
    keeper_reset_signals();
    int cgroup = spawn->in_cgroup ? -1 : plan->cgroup;
    int ruleset = plan->ruleset;
    int error = place_descriptors(plan, &report, &cgroup, &ruleset);
    if (error != 0)
        fail(report, TORPOR_STAGE_DESCRIPTORS, error);
    if (cgroup >= 0 && (error = write_file(cgroup, "cgroup.procs", "0", 1)) != 0)
        fail(report, TORPOR_STAGE_CGROUP, error);
    open_files(plan, false, report);
    set_limits(plan, report);
    set_priority(head, report);
    if ((error = sandbox_leave_ipc(plan)) != 0)
        fail(report, TORPOR_STAGE_SANDBOX, error);
    set_user(plan, report);
    tie_to_keeper(keeper);  // changing the user has reset PR_SET_PDEATHSIG
    if (head->flags & TORPOR_LAUNCH_UMASK)
        umask(head->umask & 0777);
    if ((head->flags & TORPOR_LAUNCH_DIRECTORY) && chdir(plan->directory) < 0)
        fail(report, TORPOR_STAGE_DIRECTORY, errno);
    if ((error = sandbox_enter(plan, ruleset)) != 0)
        fail(report, TORPOR_STAGE_SANDBOX, error);
    open_files(plan, true, report);
    if (head->flags & TORPOR_LAUNCH_LISTEN_PID)
        write_pid(plan->environment, "LISTEN_PID=");
    if (head->flags & TORPOR_LAUNCH_WATCHDOG_PID)
        write_pid(plan->environment, "WATCHDOG_PID=");
    prctl(PR_SET_PDEATHSIG, 0);
    execve(plan->executable, plan->arguments, plan->environment);
    error = errno;
    // ELIBACC tells torpord that the program exists, but the interpreter named in its first line or its ELF header does
    // not.
    if (error == ENOENT && access(plan->executable, F_OK) == 0)
        error = ELIBACC;
    fail(report, TORPOR_STAGE_EXEC, error);
}
