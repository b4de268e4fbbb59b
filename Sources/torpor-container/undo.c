// SPDX-License-Identifier: Apache-2.0

// Undoes a `podman run` that was killed before the container ran. Until a network namespace is set up, podman keeps
// no record of it, so `podman rm` does not remove what a killed podman has made: the namespace in /run/netns with its
// pair of interfaces, and the rules of iptables or nftables for published ports. These rules would send connections
// for the next container's ports to the old container's address.

#define _GNU_SOURCE
#include "container.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <limits.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* The folder of podman's network namespaces; for rootless podman, another one. */
static char namespaces[PATH_MAX - NAME_MAX - 1] = "/run/netns";
/* The prefix of the names of podman's network namespaces. */
static const char prefix[] = "netns-";

enum {
    MOST_NAMESPACES = 16,
    MOST_ADDRESSES = 16,
    /* How many milliseconds other podman processes may take to finish setting up their networks. */
    OTHERS_MS = 10000,
    /* A podman process older than this is not setting up a network: it follows a container, or is a service. */
    OLD_SECONDS = 60,
};

/* Finds the folder of rootless podman's network namespaces. Returns false if it is not known. */
static bool use_rootless_namespaces(void) {
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    return runtime != NULL && snprintf(namespaces, sizeof namespaces, "%s/netns", runtime) < (int)sizeof namespaces;
}

void note_run(const char *folder, const char *name) {
    char path[PATH_MAX];
    if (geteuid() != 0 && !use_rootless_namespaces()) namespaces[0] = 0;
    if (place(path, folder, "namespaces")) {
        FILE *file = fopen(path, "we");
        DIR *entries = opendir(namespaces);
        for (struct dirent *entry; file != NULL && entries != NULL && (entry = readdir(entries)) != NULL;)
            fprintf(file, "%s\n", entry->d_name);
        if (entries != NULL) closedir(entries);
        if (file != NULL) fclose(file);
    }
    write_line(folder, "begun", name);
}

void forget_run(const char *folder) {
    delete(folder, "begun");
    delete(folder, "namespaces");
}

/* Whether the file `namespaces` contains this name, so that the namespace existed before. */
static bool was_there(const char *folder, const char *name) {
    char path[PATH_MAX], line[NAME_MAX + 2];
    FILE *file = place(path, folder, "namespaces") ? fopen(path, "re") : NULL;
    bool is_found = file == NULL;
    while (!is_found && fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\n")] = 0;
        is_found = strcmp(line, name) == 0;
    }
    if (file != NULL) fclose(file);
    return is_found;
}

/* Calls a function with the ID of each process until it returns true. Returns whether it has returned true. */
static bool any_process(bool (*is_it)(const char *pid, void *with), void *with) {
    DIR *entries = opendir("/proc");
    bool is_found = false;
    for (struct dirent *entry; !is_found && entries != NULL && (entry = readdir(entries)) != NULL;)
        if (isdigit((unsigned char)entry->d_name[0])) is_found = is_it(entry->d_name, with);
    if (entries != NULL) closedir(entries);
    return is_found;
}

static bool is_in_namespace(const char *pid, void *with) {
    struct stat status;
    const struct stat *other = with;
    char path[PATH_MAX];
    snprintf(path, sizeof path, "/proc/%s/ns/net", pid);
    return stat(path, &status) == 0 && status.st_dev == other->st_dev && status.st_ino == other->st_ino;
}

/* Whether a network namespace is left over: it is new since `podman run` began, and no process is in it. A file
   without a mounted namespace counts too: podman was about to mount one there. */
static bool is_left(const char *folder, const char *name) {
    char path[PATH_MAX];
    struct stat status;
    snprintf(path, sizeof path, "%s/%s", namespaces, name);
    return strncmp(name, prefix, sizeof prefix - 1) == 0 && !was_there(folder, name) && stat(path, &status) == 0 &&
           !any_process(is_in_namespace, &status);
}

/* pidfds of other podman processes of this user that may be setting up a network. */
struct others {
    struct pollfd all[64];
    nfds_t count;
    long now;
};

/* Whether a process is an ancestor of this one, such as the `podman unshare` that has started it. */
static bool is_ancestor(int pid) {
    char folder[64], stat[1024];
    for (int other = (int)getppid(); other > 1;) {
        if (other == pid) return true;
        snprintf(folder, sizeof folder, "/proc/%d", other);
        const char *end = read_line(folder, "stat", stat, sizeof stat) ? strrchr(stat, ')') : NULL;
        if (end == NULL || sscanf(end + 1, " %*c %d", &other) != 1) return false;
    }
    return false;
}

static bool note_other(const char *pid, void *with) {
    struct others *others = with;
    struct stat status;
    char folder[PATH_MAX], comm[32], stat[1024];
    snprintf(folder, sizeof folder, "/proc/%s", pid);
    // Each user's podman has a folder of namespaces of its own.
    if (lstat(folder, &status) != 0 || status.st_uid != geteuid()) return false;
    if (!read_line(folder, "comm", comm, sizeof comm) || strcmp(comm, "podman") != 0) return false;
    if (is_ancestor(atoi(pid))) return false;
    if (!read_line(folder, "stat", stat, sizeof stat)) return false;
    // Field 22 is the start time. Field 2, the name, may contain spaces, so count from its closing parenthesis.
    char *field = strrchr(stat, ')');
    for (int i = 2; i < 22 && field != NULL; i++) field = strchr(field + 1, ' ');
    if (field == NULL || others->now - strtol(field, NULL, 10) / sysconf(_SC_CLK_TCK) > OLD_SECONDS) return false;
    int fd = (int)syscall(SYS_pidfd_open, atoi(pid), 0);
    if (fd >= 0) others->all[others->count++] = (struct pollfd){fd, POLLIN, 0};
    return others->count == sizeof others->all / sizeof *others->all;
}

/* Waits until the podman processes that run now have ended. Returns false if one of them takes too long. */
static bool outlast_others(void) {
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    struct others others = {.now = now.tv_sec};
    bool has_ended = !any_process(note_other, &others);
    long end = now.tv_sec * 1000 + now.tv_nsec / 1000000 + OTHERS_MS;
    for (nfds_t i = 0; i < others.count; i++) {
        clock_gettime(CLOCK_BOOTTIME, &now);
        long left = end - now.tv_sec * 1000 - now.tv_nsec / 1000000;
        has_ended = has_ended && poll(&others.all[i], 1, left > 0 ? (int)left : 0) == 1;
        close(others.all[i].fd);
    }
    return has_ended;
}

/* Reads the addresses in a network namespace, each with a colon, as iptables prints them before a port. Returns
   their number. */
static int addresses_in(const char *path, char addresses[][ADDRESS_SIZE]) {
    int ends[2], count = 0;
    if (pipe2(ends, O_CLOEXEC) != 0) return 0;
    pid_t child = fork();
    if (child == 0) {
        struct ifaddrs *all = NULL;
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0 || setns(fd, CLONE_NEWNET) != 0 || getifaddrs(&all) != 0) _exit(1);
        for (struct ifaddrs *one = all; one != NULL; one = one->ifa_next) {
            char text[INET6_ADDRSTRLEN];
            if (one->ifa_addr == NULL || (one->ifa_flags & IFF_LOOPBACK) != 0) continue;
            if (one->ifa_addr->sa_family == AF_INET) {
                inet_ntop(AF_INET, &((struct sockaddr_in *)(void *)one->ifa_addr)->sin_addr, text, sizeof text);
                dprintf(ends[1], "%s:\n", text);
            } else if (one->ifa_addr->sa_family == AF_INET6) {
                inet_ntop(AF_INET6, &((struct sockaddr_in6 *)(void *)one->ifa_addr)->sin6_addr, text, sizeof text);
                dprintf(ends[1], "[%s]:\n", text);
            }
        }
        _exit(0);
    }
    close(ends[1]);
    FILE *file = fdopen(ends[0], "r");
    while (child > 0 && file != NULL && count < MOST_ADDRESSES && fgets(addresses[count], ADDRESS_SIZE, file) != NULL) {
        addresses[count][strcspn(addresses[count], "\n")] = 0;
        if (addresses[count][0] != 0) count++;
    }
    if (file != NULL) fclose(file);
    if (child > 0) waitpid(child, NULL, 0);
    return count;
}

/* Deletes one rule of the table nat, given as `-S` prints it: `-A CHAIN …`, with quotes around words that contain
   spaces. */
static void delete_rule(const char *program, char *rule) {
    struct words words = {0};
    add(&words, program);
    add(&words, "--wait");
    add(&words, "--table=nat");
    add(&words, "-D");
    for (char *next = rule + 3; *next != 0;) {
        bool is_quoted = *next == '"';
        char *word = is_quoted ? next + 1 : next;
        char *end = word + strcspn(word, is_quoted ? "\"" : " ");
        next = *end == 0 ? end : end + 1;
        *end = 0;
        if (*word != 0) add(&words, word);
    }
    char answer[64];
    podman(&words, OUTPUT_KEPT, answer, sizeof answer, QUERY_SECONDS, NULL);
}

/* Deletes the rules that netavark made for a container: those of iptables that contain its ID (may be NULL), and those
   that send connections to its addresses. */
static void delete_rules(const char *id, char addresses[][ADDRESS_SIZE], int count) {
    static const char *const programs[] = {"iptables", "ip6tables"};
    static char rules[1 << 20];
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        struct words words = {0};
        add(&words, programs[i]);
        add(&words, "--wait");
        add(&words, "--table=nat");
        add(&words, "-S");
        if (podman(&words, OUTPUT_KEPT, rules, sizeof rules, QUERY_SECONDS, NULL) != 0) continue;
        char *rest = NULL;
        for (char *rule = strtok_r(rules, "\n", &rest); rule != NULL; rule = strtok_r(NULL, "\n", &rest)) {
            if (strncmp(rule, "-A NETAVARK", 11) != 0) continue;
            const char *target = strstr(rule, " --to-destination ");
            bool is_its = id != NULL && strstr(rule, id) != NULL;
            for (int n = 0; n < count && target != NULL; n++)
                is_its |= strncmp(target + strlen(" --to-destination "), addresses[n], strlen(addresses[n])) == 0;
            if (is_its) delete_rule(programs[i], rule);
        }
    }
    delete_nftables_rules(addresses, count);
}

/* Removes the network namespaces that the killed `podman run` made, and the rules for a container with this ID
   (NULL if unknown). */
static void remove_network(const char *folder, const char *id) {
    char names[MOST_NAMESPACES][NAME_MAX + 1];
    int count = 0;
    DIR *entries = opendir(namespaces);
    for (struct dirent *entry; entries != NULL && count < MOST_NAMESPACES && (entry = readdir(entries)) != NULL;)
        if (is_left(folder, entry->d_name)) snprintf(names[count++], sizeof names[0], "%s", entry->d_name);
    if (entries != NULL) closedir(entries);
    // A new namespace without a process may also belong to another podman that has just made it: wait until that podman
    // has finished.
    if (count == 0 || !outlast_others()) return delete_rules(id, NULL, 0);
    for (int i = 0; i < count; i++) {
        char path[sizeof namespaces + NAME_MAX + 2], addresses[MOST_ADDRESSES][ADDRESS_SIZE];
        if (!is_left(folder, names[i])) continue;
        snprintf(path, sizeof path, "%s/%.*s", namespaces, NAME_MAX, names[i]);
        delete_rules(id, addresses, addresses_in(path, addresses));
        umount2(path, MNT_DETACH);
        unlink(path);
    }
}

bool remove_rootless_network(const char *folder) {
    if (!is_ours(folder) || !use_rootless_namespaces()) return false;
    remove_network(folder, NULL);
    return true;
}

/* Removes the network namespaces that a killed rootless `podman run` made. They are mounted in podman's own mount
   namespace, where this program is started again. */
static void remove_in_podmans_namespace(const char *folder) {
    char self[PATH_MAX], answer[256];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length <= 0 || !use_rootless_namespaces()) return;
    self[length] = 0;
    bool is_any_new = false;
    DIR *entries = opendir(namespaces);
    for (struct dirent *entry; entries != NULL && (entry = readdir(entries)) != NULL;)
        is_any_new |= strncmp(entry->d_name, prefix, sizeof prefix - 1) == 0 && !was_there(folder, entry->d_name);
    if (entries != NULL) closedir(entries);
    if (!is_any_new) return;
    struct words words = {0};
    begin(&words);
    add(&words, "unshare");
    add(&words, self);
    add(&words, "rootless");
    add(&words, folder);
    podman(&words, OUTPUT_KEPT, answer, sizeof answer, QUERY_SECONDS, NULL);
}

/* Unmounts everything in a container's folders. Otherwise the shm of a killed podman stays mounted, and podman
   cannot delete the folder that contains it. */
static void unmount_all(const char *id) {
    char line[2 * PATH_MAX], point[PATH_MAX];
    FILE *file = fopen("/proc/self/mountinfo", "re");
    if (file == NULL) return;
    while (fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "%*s %*s %*s %*s %4095s", point) == 1 && strstr(point, id) != NULL) umount2(point, MNT_DETACH);
    fclose(file);
}

bool undo_run(const char *folder) {
    char name[512], owner[PATH_MAX], answer[1024];
    if (!read_line(folder, "begun", name, sizeof name)) return true;
    // Get the path of the app's folder, which contains this folder: that path is the label of the app's container.
    snprintf(owner, sizeof owner, "%s", folder);
    char *slash = strrchr(owner, '/');
    if (slash != NULL) *slash = 0;
    struct words words = {0};
    begin(&words);
    add(&words, "ps");
    add(&words, "--all");
    add(&words, "--no-trunc");
    add(&words, "--format={{.ID}}");
    addf(&words, "--filter=label=io.torpor.app=%s", owner);
    if (podman(&words, OUTPUT_KEPT, answer, sizeof answer, QUERY_SECONDS, NULL) != 0) return false;
    // Use only the first line of the answer: there is at most one container, since its name can be used only once.
    answer[strcspn(answer, "\n")] = 0;
    bool is_root = geteuid() == 0, is_removed = true;
    if (answer[0] != 0) {
        if (is_root) unmount_all(answer);
        is_removed = remove_by_id(answer);
    }
    if (is_external(name)) is_removed &= remove_by_id(name);
    if (is_root) remove_network(folder, answer[0] != 0 ? answer : NULL);
    else remove_in_podmans_namespace(folder);
    if (is_removed) forget_run(folder);
    return is_removed;
}
