// SPDX-License-Identifier: Apache-2.0

// Tries to get out: once from a constructor, when its library is being opened, and again when it is asked. What it tried
// and what came of it are its advice: kind is 1 for the constructor, 2 for the question, value the errno, 0 for success.
// Should an attempt succeed, on a machine that cannot confine it or because of a mistake, it does no harm: signals are
// 0, nothing is really traced.

#include "policy.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

enum { MOST = 96 };

struct attempt {
    char what[120];
    int error;
};

static struct attempt early[MOST], late[MOST];

static void note(struct attempt **at, const char *what, const char *detail, long result)
{
    int error = result < 0 ? errno : 0;
    snprintf((*at)->what, sizeof (*at)->what, "%s%s%s", what, *detail ? " " : "", detail);
    (*at)->error = error;
    *at += 1;
}

static long try_open(const char *path, int flags)
{
    int fd = open(path, flags, 0644);
    char byte;
    if (fd < 0)
        return -1;
    long result = (flags & O_ACCMODE) == O_RDONLY && (flags & (O_DIRECTORY | O_PATH)) == 0 ? read(fd, &byte, 1) : 0;
    close(fd);
    return result;
}

static void *nothing(void *argument) { return argument; }

static long by_code(int code)
{
    errno = code;
    return code == 0 ? 0 : -1;
}

static long send_descriptor(void)
{
    char byte = 1;
    struct iovec part = {&byte, 1};
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {{0}};
    control.header.cmsg_len = CMSG_LEN(sizeof(int));
    control.header.cmsg_level = SOL_SOCKET;
    control.header.cmsg_type = SCM_RIGHTS;
    int fd = 2;
    memcpy(CMSG_DATA(&control.header), &fd, sizeof fd);
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control.room,
                             .msg_controllen = sizeof control.room};
    return sendmsg(3, &message, 0);
}

static void files(struct attempt **at)
{
    static const char *const reading[] = {"/etc/shadow", "/etc/passwd", "/proc/self/environ", "/proc/1/environ"};
    for (unsigned i = 0; i < sizeof reading / sizeof reading[0]; i++)
        note(at, "read", reading[i], try_open(reading[i], O_RDONLY));
    // What the supervisor keeps beside its policies.
    const char *secret = getenv("TORPOR_TEST_SECRET");
    if (secret != NULL)
        note(at, "read", "secret", try_open(secret, O_RDONLY));
    if (secret != NULL)
        note(at, "write", "secret", try_open(secret, O_WRONLY | O_APPEND));
    if (secret != NULL)
        note(at, "remove", "secret", unlink(secret));
    if (secret != NULL)
        note(at, "chmod", "secret", chmod(secret, 0777));
    note(at, "list", "/", try_open("/", O_RDONLY | O_DIRECTORY));
    note(at, "list", "/etc", try_open("/etc", O_RDONLY | O_DIRECTORY));
    note(at, "make", "/tmp/torpor-attack", try_open("/tmp/torpor-attack", O_WRONLY | O_CREAT | O_EXCL));
    note(at, "make folder", "/tmp/torpor-attack", mkdir("/tmp/torpor-attack", 0755));
    note(at, "make unnamed", "/tmp", try_open("/tmp", O_WRONLY | O_TMPFILE));
    note(at, "link", "/tmp/torpor-attack", symlink("/etc/shadow", "/tmp/torpor-attack"));
    note(at, "write", "/usr/lib", try_open("/usr/lib/torpor-attack", O_WRONLY | O_CREAT));
    note(at, "place", "/", try_open("/", O_PATH));
    note(at, "memory file", "", syscall(SYS_memfd_create, "attack", 0));
    note(at, "mount", "", syscall(SYS_mount, "none", "/tmp/torpor-attack", "tmpfs", 0, NULL));
    note(at, "chroot", "", chroot("/"));
    note(at, "watch files", "", syscall(SYS_inotify_init1, 0));
}

static void network(struct attempt **at)
{
    note(at, "socket", "tcp", socket(AF_INET, SOCK_STREAM, 0));
    note(at, "socket", "tcp6", socket(AF_INET6, SOCK_STREAM, 0));
    note(at, "socket", "udp", socket(AF_INET, SOCK_DGRAM, 0));
    note(at, "socket", "unix", socket(AF_UNIX, SOCK_STREAM, 0));
    note(at, "socket", "netlink", socket(AF_NETLINK, SOCK_RAW, 0));
    int pair[2];
    note(at, "socketpair", "", socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    note(at, "pipe", "", pipe(pair));
    // Descriptor 3 is a socket, but connected to the supervisor alone.
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(80)};
    inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
    note(at, "connect", "tcp", connect(3, (struct sockaddr *)&address, sizeof address));
    note(at, "send descriptor", "", send_descriptor());
    note(at, "io_uring", "", syscall(425, 8, NULL));
}

static void others(struct attempt **at)
{
    note(at, "kill", "parent", kill(getppid(), 0));
    note(at, "kill", "everybody", kill(-1, 0));
    note(at, "kill", "group", kill(0, 0));
    note(at, "tgkill", "parent", syscall(SYS_tgkill, getppid(), getppid(), 0));
    note(at, "tkill", "parent", syscall(SYS_tkill, getppid(), 0));
    note(at, "queue signal", "parent", sigqueue(getppid(), 0, (union sigval){0}));
    note(at, "own signals", "", fcntl(3, F_SETOWN, getppid()));
    note(at, "pidfd", "", syscall(434, getppid(), 0));
    // ESRCH, if it were allowed: it is not traced.
    note(at, "trace", "parent", ptrace(PTRACE_PEEKDATA, getppid(), NULL, NULL));
    char byte;
    struct iovec part = {&byte, 1};
    note(at, "read memory", "parent", syscall(SYS_process_vm_readv, getppid(), &part, 1, &part, 1, 0));
    note(at, "limit", "parent", syscall(SYS_prlimit64, getppid(), RLIMIT_CPU, NULL, &(struct rlimit){0}));
    note(at, "priority", "", setpriority(PRIO_PROCESS, 0, -20));
    note(at, "scheduler", "", sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){1}));
    note(at, "shared memory", "", shmget(IPC_PRIVATE, 4096, 0600));
}

static void processes(struct attempt **at)
{
    pthread_t thread;
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    note(at, "fork", "", child);
    child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
    if (child == 0)
        _exit(0);
    note(at, "clone", "", child);
    note(at, "clone3", "", syscall(435, NULL, 0));
    note(at, "thread", "", by_code(pthread_create(&thread, NULL, nothing, NULL)));
    char *const arguments[] = {(char *)"/bin/true", NULL};
    note(at, "execute", "/bin/true", execv("/bin/true", arguments));
    note(at, "unshare", "", unshare(CLONE_NEWUSER));
    note(at, "namespace", "", syscall(SYS_setns, 3, 0));
}

static void itself(struct attempt **at, const char *library)
{
    struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
    note(at, "raise limit", "", setrlimit(RLIMIT_AS, &limit));
    note(at, "user", "", setresuid(0, 0, 0));
    note(at, "live on", "", prctl(PR_SET_PDEATHSIG, 0));
    note(at, "bpf", "", syscall(SYS_bpf, 0, NULL, 0));
    note(at, "keys", "", syscall(SYS_keyctl, 0, 0, 0, 0, 0));
    note(at, "perf", "", syscall(SYS_perf_event_open, NULL, 0, -1, -1, 0));
    note(at, "page faults", "", syscall(323, 0));
    note(at, "personality", "", syscall(SYS_personality, 0x0040000));
    note(at, "later libraries", "", by_code(dlopen(library, RTLD_NOW) == NULL ? EPERM : 0));
    void *code = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    note(at, "code", "", code == MAP_FAILED ? -1 : 0);
    // These must work: a policy calculates.
    note(at, "allowed: zones", "", try_open("/usr/share/zoneinfo", O_RDONLY | O_DIRECTORY));
    note(at, "allowed: memory", "", malloc(4 << 20) == NULL ? -1 : 0);
    note(at, "allowed: chance", "", syscall(SYS_getrandom, &limit, sizeof limit, 0));
    note(at, "allowed: limits", "", getrlimit(RLIMIT_AS, &limit));
    note(at, "allowed: sleep", "", usleep(1));
    signal(SIGUSR1, SIG_IGN);
    note(at, "allowed: own signal", "", raise(SIGUSR1));
}

static void attack(struct attempt *at, const char *library)
{
    files(&at);
    network(&at);
    others(&at);
    processes(&at);
    itself(&at, library);
}

__attribute__((constructor)) static void begin(void) { attack(early, "libutil.so.1"); }

static void *create(const torpor_policy_options *options, char *error, size_t size)
{
    (void)options;
    (void)error;
    (void)size;
    return &the_policy;
}

static void report(const torpor_policy_reply *reply, uint32_t when, const struct attempt *attempts)
{
    for (unsigned i = 0; i < MOST && attempts[i].what[0] != 0; i++)
        advise(reply, when, TORPOR_NO_APP, (uint32_t)attempts[i].error, 0, attempts[i].what);
}

static int32_t decide(void *policy, const torpor_policy_view *view, const torpor_policy_event *event,
                      const torpor_policy_reply *reply)
{
    (void)policy;
    (void)view;
    (void)event;
    report(reply, 1, early);
    memset(late, 0, sizeof late);
    attack(late, "libanl.so.1");
    report(reply, 2, late);
    return TORPOR_CONTINUE;
}

POLICY("attacker", create, decide)
