// SPDX-License-Identifier: Apache-2.0

// Tries one kind of access after the other, and writes the result of each into FILE: `sandbox-probe FILE WORD…`. A word
// is an access, with its argument after the first colon; FILE gets a line for each, "WORD=ERRNO", in which 0 is success.
// After the word `stay` it waits for a signal; without, it exits.

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdbool.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mount.h>
#include <sys/msg.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

static int result(int value) { return value < 0 ? errno : 0; }

static int opened(const char *path, int flags)
{
    int fd = open(path, flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0600);
    if (fd < 0)
        return errno;
    close(fd);
    return 0;
}

static int in_child(int (*body)(const char *), const char *argument)
{
    pid_t pid = fork();
    if (pid < 0)
        return errno;
    if (pid == 0)
        _exit(body(argument));
    int status;
    if (waitpid(pid, &status, 0) < 0)
        return errno;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static int executed(const char *path)
{
    char *arguments[] = {(char *)path, NULL}, *environment[] = {NULL};
    execve(path, arguments, environment);
    return errno;
}

static int unshared(const char *flags)
{
    return result(unshare((int)strtol(flags, NULL, 16)));
}

static int cloned(const char *flags)
{
    long pid = syscall(SYS_clone, (unsigned long)strtol(flags, NULL, 16) | SIGCHLD, 0, 0, 0, 0);
    if (pid == 0)
        _exit(0);
    if (pid > 0)
        waitpid((pid_t)pid, NULL, 0);
    return result((int)pid);
}

static int made_socket(int family, int type)
{
    int fd = socket(family, type | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return errno;
    close(fd);
    return 0;
}

static int used_port(const char *port, bool binds)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return errno;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const struct sockaddr *any = (const struct sockaddr *)&address;
    int error = result(binds ? bind(fd, any, sizeof address) : connect(fd, any, sizeof address));
    close(fd);
    return error;
}

static int connected(const char *path, bool is_abstract)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = strlen(path);
    if (length + 2 > sizeof address.sun_path)
        return ENAMETOOLONG;
    memcpy(address.sun_path + (is_abstract ? 1 : 0), path, length);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return errno;
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length + 1);
    int error = result(connect(fd, (const struct sockaddr *)&address, size));
    close(fd);
    return error;
}

static int made_file(const char *path)
{
    int error = opened(path, O_WRONLY | O_CREAT | O_EXCL);
    if (error == 0)
        unlink(path);
    return error;
}

static int made_folder(const char *path)
{
    int error = result(mkdir(path, 0700));
    if (error == 0)
        rmdir(path);
    return error;
}

static int changed_mode(const char *path)
{
    struct stat status;
    return stat(path, &status) < 0 ? errno : result(chmod(path, status.st_mode & 07777));
}

// Moves a file into another folder, and back.
static int moved(const char *path)
{
    char other[4096];
    snprintf(other, sizeof other, "%s", path);
    char *name = strrchr(other, '/');
    if (name == NULL)
        return EINVAL;
    snprintf(name, sizeof other - (size_t)(name - other), "/sub/moved");
    int error = result(rename(path, other));
    return error == 0 ? result(rename(other, path)) : error;
}

static int rooted(const char *path) { return result(chroot(path)); }

// Sets the priority and the processors of another process as they are.
static int scheduled(const char *pid)
{
    unsigned long processors[128];
    pid_t other = (pid_t)atoi(pid);
    errno = 0;
    int priority = getpriority(PRIO_PROCESS, (id_t)other);
    if (priority == -1 && errno != 0)
        return errno;
    if (setpriority(PRIO_PROCESS, (id_t)other, priority) < 0)
        return errno;
    long size = syscall(SYS_sched_getaffinity, other, sizeof processors, processors);
    return size < 0 ? errno : result((int)syscall(SYS_sched_setaffinity, other, (unsigned long)size, processors));
}

// A system call as a 32-bit program makes it: getpid.
static int called_as_i386(void)
{
#ifdef __x86_64__
    long value;
    __asm__ volatile("int $0x80" : "=a"(value) : "a"(20L) : "memory", "r8", "r9", "r10", "r11");
    return value > 0 ? 0 : (int)-value;
#else
    return ENOSYS;
#endif
}

static int try(const char *word, const char *argument)
{
    struct termios terminal;
    struct {
        unsigned words[30];
    } ring = {{0}};
    if (strcmp(word, "read") == 0)
        return opened(argument, O_RDONLY);
    if (strcmp(word, "write") == 0)
        return opened(argument, O_WRONLY);
    if (strcmp(word, "list") == 0)
        return opened(argument, O_RDONLY | O_DIRECTORY);
    if (strcmp(word, "create") == 0)
        return made_file(argument);
    if (strcmp(word, "mkdir") == 0)
        return made_folder(argument);
    if (strcmp(word, "truncate") == 0)
        return result(truncate(argument, 0));
    if (strcmp(word, "stat") == 0)
        return result(access(argument, F_OK));
    if (strcmp(word, "chmod") == 0)
        return changed_mode(argument);
    if (strcmp(word, "exec") == 0)
        return in_child(executed, argument);
    if (strcmp(word, "unix") == 0)
        return connected(argument, false);
    if (strcmp(word, "abstract") == 0)
        return connected(argument, true);
    if (strcmp(word, "tcp") == 0)
        return made_socket(AF_INET, SOCK_STREAM);
    if (strcmp(word, "udp") == 0)
        return made_socket(AF_INET, SOCK_DGRAM);
    if (strcmp(word, "tcp6") == 0)
        return made_socket(AF_INET6, SOCK_STREAM);
    if (strcmp(word, "family") == 0)
        return made_socket(atoi(argument), SOCK_DGRAM);
    if (strcmp(word, "connect") == 0)
        return used_port(argument, false);
    if (strcmp(word, "bind") == 0)
        return used_port(argument, true);
    if (strcmp(word, "ring") == 0)
        return result((int)syscall(SYS_io_uring_setup, 0, &ring));
    if (strcmp(word, "signal") == 0)
        return result(kill(atoi(argument), 0));
    if (strcmp(word, "unshare") == 0)
        return in_child(unshared, argument);
    if (strcmp(word, "clone") == 0)
        return cloned(argument);
    if (strcmp(word, "keyctl") == 0)
        return result((int)syscall(SYS_keyctl, 0, -3, 0));
    if (strcmp(word, "move") == 0)
        return moved(argument);
    // Whoever may mount is told that there is no such filesystem.
    if (strcmp(word, "mount") == 0)
        return result(mount("none", argument, "no-filesystem", 0, NULL));
    if (strcmp(word, "chroot") == 0)
        return in_child(rooted, argument);
    if (strcmp(word, "trace") == 0)
        return result((int)ptrace(PTRACE_SEIZE, atoi(argument), NULL, NULL));
    if (strcmp(word, "schedule") == 0)
        return scheduled(argument);
    if (strcmp(word, "i386") == 0)
        return called_as_i386();
    if (strcmp(word, "module") == 0)
        return result((int)syscall(SYS_init_module, NULL, 0, ""));
    // What others have made, by its key, or what is made here.
    if (strcmp(word, "shm") == 0)
        return result(shmget((key_t)atoi(argument), 0, 0));
    if (strcmp(word, "sem") == 0)
        return result(semget((key_t)atoi(argument), 0, 0));
    if (strcmp(word, "msg") == 0)
        return result(msgget((key_t)atoi(argument), 0));
    if (strcmp(word, "queue") == 0)
        return result((int)syscall(SYS_mq_open, argument, O_RDONLY | O_CLOEXEC, 0, NULL));
    if (strcmp(word, "makeshm") == 0)
        return result(shmget((key_t)atoi(argument), 4096, IPC_CREAT | IPC_EXCL | 0666));
    if (strcmp(word, "makesem") == 0)
        return result(semget((key_t)atoi(argument), 1, IPC_CREAT | IPC_EXCL | 0666));
    if (strcmp(word, "makemsg") == 0)
        return result(msgget((key_t)atoi(argument), IPC_CREAT | IPC_EXCL | 0666));
    if (strcmp(word, "makequeue") == 0)
        return result((int)syscall(SYS_mq_open, argument, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666, NULL));
    if (strcmp(word, "dropqueue") == 0)
        return result((int)syscall(SYS_mq_unlink, argument));
    if (strcmp(word, "terminal") == 0) {
        int fd = open(argument, O_RDWR | O_NOCTTY | O_CLOEXEC);
        return fd < 0 ? errno : result(ioctl(fd, TCGETS, &terminal));
    }
    return 9999;
}

int main(int count, char **words)
{
    bool stays = false;
    if (count < 2)
        return 2;
    char name[4096];
    snprintf(name, sizeof name, "%s.new", words[1]);
    FILE *file = fopen(name, "we");
    if (file == NULL) {
        perror(name);
        return 3;
    }
    for (int i = 2; i < count; i++) {
        if (strcmp(words[i], "stay") == 0) {
            stays = true;
            continue;
        }
        char word[32];
        const char *colon = strchr(words[i], ':');
        size_t length = colon == NULL ? strlen(words[i]) : (size_t)(colon - words[i]);
        snprintf(word, sizeof word, "%.*s", (int)length, words[i]);
        fprintf(file, "%s=%d\n", words[i], try(word, colon == NULL ? "" : colon + 1));
    }
    if (fclose(file) != 0 || rename(name, words[1]) < 0) {
        perror(words[1]);
        return 4;
    }
    while (stays)
        pause();
    return 0;
}
