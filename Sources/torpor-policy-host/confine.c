// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "host.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    LAST_DESCRIPTOR = TORPOR_POLICY_HOST_DIRECTORY,
    MOST_DESCRIPTORS = 32,  // opening a library uses one at a time
};

static void reset_signals(void)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    for (int number = 1; number < NSIG; number++)
        signal(number, SIG_DFL);
    // If no process reads the pipe, output is discarded.
    signal(SIGPIPE, SIG_IGN);
}

static void close_descriptors(void)
{
    // The library's output goes to the same pipe as its errors. Make the pipe non-blocking, so that a full pipe does
    // not block the library.
    dup2(STDERR_FILENO, STDOUT_FILENO);
    fcntl(STDERR_FILENO, F_SETFL, O_NONBLOCK);
    close(STDIN_FILENO);
    int null = open("/dev/null", O_RDONLY);
    if (null > STDIN_FILENO)
        close(null);
    if (close_range(LAST_DESCRIPTOR + 1, ~0u, 0) == 0)
        return;
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return;
    for (int fd = LAST_DESCRIPTOR + 1; (rlim_t)fd < limit.rlim_cur && fd < 1 << 20; fd++)
        close(fd);
}

static void set_limit(int resource, rlim_t value)
{
    struct rlimit limit;
    if (getrlimit((__rlimit_resource_t)resource, &limit) < 0)
        return;
    if (limit.rlim_max == RLIM_INFINITY || value < limit.rlim_max)
        limit.rlim_max = value;
    limit.rlim_cur = limit.rlim_max;
    setrlimit((__rlimit_resource_t)resource, &limit);
}

static void set_limits(uint64_t address_space)
{
    if (address_space != 0)
        set_limit(RLIMIT_AS, address_space);
    set_limit(RLIMIT_CORE, 0);
    set_limit(RLIMIT_FSIZE, 0);
    set_limit(RLIMIT_MEMLOCK, 0);
    set_limit(RLIMIT_MSGQUEUE, 0);
    set_limit(RLIMIT_NOFILE, MOST_DESCRIPTORS);
    set_limit(RLIMIT_NPROC, 0);
}

static void become(uint32_t user, uint32_t group)
{
    if (user == TORPOR_UNKNOWN || (user == getuid() && user == geteuid()))
        return;
    if (group == TORPOR_UNKNOWN)
        host_give_up("LOAD names a user without a group");
    if (setgroups(0, NULL) < 0 || setresgid(group, group, group) < 0 || setresuid(user, user, user) < 0)
        host_refuse("the host process cannot become user %u, group %u: %s; run torpord as root, or let policies run as "
                    "its own user",
                    user, group, strerror(errno));
}

// Switching from root to another user drops the capabilities too. This is for a host that stays root, or that has
// capabilities without being root.
static void drop_capabilities(void)
{
    for (unsigned long capability = 0; prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == 0; capability++)
        continue;
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}};
    syscall(SYS_capset, &header, none);
}

// Whether the parent has ended already, so that PR_SET_PDEATHSIG came too late.
static bool is_alone(void)
{
    struct pollfd socket = {.fd = TORPOR_POLICY_HOST_SOCKET};
    return poll(&socket, 1, 0) > 0 && (socket.revents & POLLHUP) != 0;
}

uint32_t host_confine_first(const struct host_load *load)
{
    uid_t before = getuid();
    reset_signals();
    close_descriptors();
    become(load->user, load->group);
    drop_capabilities();
    // Prevents core dumps, and prevents other processes of this user from reading the memory of this process.
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    // A library in an endless loop would not notice that the parent has ended.
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (is_alone())
        _exit(0);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        host_refuse("the host process cannot give up new privileges: %s", strerror(errno));
    set_limits(load->address_space);

    host_elf_check(load->path);
    host_library_locate(load);
    uint32_t confined = getuid() != before ? TORPOR_CONFINED_USER : 0;
    if (host_landlock_prepare(load->path) && host_landlock_first())
        confined |= TORPOR_CONFINED_LANDLOCK;
    close(TORPOR_POLICY_HOST_DIRECTORY);
    if (host_seccomp_first())
        confined |= TORPOR_CONFINED_SECCOMP;
    return confined;
}

uint32_t host_confine_second(uint32_t confined)
{
    close(TORPOR_POLICY_HOST_LIBRARY);
    if ((confined & TORPOR_CONFINED_LANDLOCK) != 0 && !host_landlock_second())
        confined &= ~TORPOR_CONFINED_LANDLOCK;
    if ((confined & TORPOR_CONFINED_SECCOMP) != 0 && !host_seccomp_second())
        confined &= ~TORPOR_CONFINED_SECCOMP;
    return confined;
}
