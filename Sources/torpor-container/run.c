// SPDX-License-Identifier: Apache-2.0

// Starts a container, and removes it.

#define _GNU_SOURCE
#include "container.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { PODMAN_SECONDS = 60, EXTENSION_SECONDS = 15 };

/* Whether podman still has a record of a container with this name and this app's label. That happens if podman is
   killed while it removes the container. */
static bool is_half_removed(const struct order *order) {
    struct words words = {0};
    char answer[1024];
    begin(&words);
    add(&words, "ps");
    add(&words, "--all");
    add(&words, "--format={{.Names}}");
    addf(&words, "--filter=label=io.torpor.app=%s", order->owner);
    if (podman(&words, OUTPUT_KEPT, answer, sizeof answer, QUERY_SECONDS, NULL) != 0) return false;
    for (char *line = strtok(answer, "\n"); line != NULL; line = strtok(NULL, "\n"))
        if (strcmp(line, order->name) == 0) return true;
    return false;
}

/* Frees the container's name: removes a container with this name if it is this app's or if podman has only its
   files. Returns false if it is another app's container or cannot be removed. */
static bool claim_name(const struct order *order, bool *has_changed) {
    struct words words = {0};
    char answer[1024];
    begin(&words);
    add(&words, "container");
    add(&words, "inspect");
    add(&words, "--format={{.ID}} {{index .Config.Labels \"io.torpor.app\"}}");
    add(&words, order->name);
    if (podman(&words, OUTPUT_KEPT, answer, sizeof answer, QUERY_SECONDS, NULL) != 0) {
        // podman cannot inspect the container: it was killed while it removed the container (then the record has this
        // app's label) or while it created the container (then podman has only files of that name).
        if ((is_half_removed(order) || is_external(order->name)) && remove_by_id(order->name)) *has_changed = true;
        return true;
    }
    answer[strcspn(answer, "\n")] = 0;
    char *owner = strchr(answer, ' ');
    if (owner == NULL || strcmp(owner + 1, order->owner) != 0) return false;
    *owner = 0;
    *has_changed = true;
    return remove_by_id(answer);
}

/* Whether a word is an option of podman. The options of the program inside come after the image. */
static bool is_option(const struct order *order, const char *word) {
    return word != NULL && strcmp(word, order->image) != 0;
}

/* Creates the networks that the container's options name, unless they exist. Returns false on failure, after it
   has reported the reason. */
static bool make_networks(const struct order *order, bool *has_changed) {
    static const char *const modes[] = {"bridge", "container", "host", "none", "ns", "pasta", "private", "slirp4netns"};
    static const char option[] = "--network=";
    for (char **word = order->arguments; is_option(order, *word); word++) {
        if (strncmp(*word, option, sizeof option - 1) != 0) continue;
        char name[256];
        snprintf(name, sizeof name, "%s", *word + sizeof option - 1);
        name[strcspn(name, ":")] = 0;
        bool is_mode = false;
        for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) is_mode |= strcmp(name, modes[i]) == 0;
        if (is_mode) continue;
        for (int round = 0; round < 2; round++) {
            struct words words = {0};
            char answer[512];
            begin(&words);
            add(&words, "network");
            add(&words, round == 0 ? "exists" : "create");
            add(&words, name);
            int status = podman(&words, round == 0 ? OUTPUT_KEPT : OUTPUT_FOLLOWED, answer, sizeof answer, QUERY_SECONDS, NULL);
            if (status == 0) *has_changed |= round == 1;
            if (status == 0) break;
            // The network is missing (first round), or another app has created it since the check (second round):
            // neither is a failure.
            if (round == 0 || strstr(answer, "already") != NULL) continue;
            fail("could not create the network %s: %s", name, strncmp(answer, "Error: ", 7) == 0 ? answer + 7 : answer);
            return false;
        }
    }
    return true;
}

/* Whether the image exists on this machine. `facts` receives the image's stop signal (may be empty), a space, and
   the image's digest. */
static bool has_image(const char *image, char *facts, size_t size) {
    struct words words = {0};
    begin(&words);
    add(&words, "image");
    add(&words, "inspect");
    add(&words, "--format={{.Config.StopSignal}} {{.Digest}}");
    add(&words, image);
    int status = podman(&words, OUTPUT_KEPT, facts, size, QUERY_SECONDS, NULL);
    if (status == NOT_EXECUTED) exit(fail("needs podman, which is not on the PATH"));
    facts[strcspn(facts, "\n")] = 0;
    return status == 0;
}

/* The progress of a pull. */
static const char *pulled_image;
static unsigned layers_begun, layers_done;
static time_t said;

static void follow_pull(const char *line) {
    if (line != NULL && strncmp(line, "Copying blob", 12) == 0) {
        if (strstr(line, "done") != NULL || strstr(line, "skipped") != NULL) layers_done++;
        else layers_begun++;
        said = 0;
    }
    time_t now = time(NULL);
    if (now == said) return;
    said = now;
    if (layers_done > 0)
        notify("EXTEND_TIMEOUT_USEC=%d000000\nSTATUS=pulling %s: %u layers copied", EXTENSION_SECONDS, pulled_image, layers_done);
    else if (layers_begun > 0)
        notify("EXTEND_TIMEOUT_USEC=%d000000\nSTATUS=pulling %s: copying %u layers", EXTENSION_SECONDS, pulled_image, layers_begun);
    else notify("EXTEND_TIMEOUT_USEC=%d000000\nSTATUS=pulling %s", EXTENSION_SECONDS, pulled_image);
}

/* Runs `podman pull` with a folder for its temporary files, and removes the folder afterwards: if podman is
   killed, it leaves image layers there. */
static int run_pull(const struct order *order, char *last, size_t size) {
    struct words words = {0};
    begin(&words);
    add(&words, "pull");
    add(&words, order->image);
    pulled_image = order->image;
    const char *usual = getenv("TMPDIR") != NULL ? strdup(getenv("TMPDIR")) : NULL;
    char folder[PATH_MAX];
    bool has_folder = snprintf(folder, sizeof folder, "%s/" PULL_PREFIX "XXXXXX", usual != NULL ? usual : "/var/tmp") < PATH_MAX &&
                      mkdtemp(folder) != NULL;
    // Write down the folder's path: if this process is killed together with podman, `torpor-container remove` deletes
    // the folder.
    if (has_folder) write_line(order->folder, "pull", folder);
    if (has_folder) setenv("TMPDIR", folder, 1);
    int status = podman(&words, OUTPUT_FOLLOWED, last, size, order->pull_seconds, follow_pull);
    if (!has_folder) return status;
    remove_pulled(order->folder);
    if (usual != NULL) setenv("TMPDIR", usual, 1);
    else unsetenv("TMPDIR");
    return status;
}

/* Pulls the image if the configuration requires that. Returns true if the image exists afterwards. */
static bool pull(const struct order *order, char *facts, size_t size) {
    bool is_there = has_image(order->image, facts, size);
    if (is_there && (strcmp(order->pull, "missing") == 0 || strcmp(order->pull, "never") == 0)) return true;
    if (strcmp(order->pull, "never") == 0) {
        fail("has no image %s here, and pull = \"never\": fetch it with ‘podman pull’", order->image);
        return false;
    }
    char last[512];
    int status = run_pull(order, last, sizeof last);
    notify("STATUS=");
    if (is_asked_to_end() != 0) return false;
    if (status == 0) return has_image(order->image, facts, size);
    if (is_there && strcmp(order->pull, "newer") == 0) return true;
    const char *reason = strncmp(last, "Error: ", 7) == 0 ? last + 7 : last;
    if (status == -1)
        fail("could not pull %s within %ld s (container.pull_timeout)", order->image, order->pull_seconds);
    else if (status == NOT_EXECUTED) fail("needs podman, which is not on the PATH");
    else fail("could not pull %s: %s", order->image, reason[0] != 0 ? reason : "podman gave no reason");
    return false;
}

/* Whether this process may raise its resource limits (CAP_SYS_RESOURCE). */
static bool may_raise_limits(void) {
    char line[256];
    unsigned long long effective = 0;
    FILE *file = fopen("/proc/self/status", "re");
    if (file == NULL) return true;
    while (fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "CapEff: %llx", &effective) == 1) break;
    fclose(file);
    return effective >> 24 & 1; /* CAP_SYS_RESOURCE */
}

static bool has_limit(const struct order *order, const char *name) {
    char option[64];
    size_t length = (size_t)snprintf(option, sizeof option, "--ulimit=%s=", name);
    for (char **word = order->arguments; is_option(order, *word); word++)
        if (strncmp(*word, option, length) == 0) return true;
    return false;
}

/* Passes this process's limits on descriptors and processes to podman. podman's own defaults are higher than root
   may set without CAP_SYS_RESOURCE, so the launch would fail. */
static void keep_limits(struct words *words, const struct order *order) {
    if (geteuid() != 0 || may_raise_limits()) return;
    struct rlimit files, processes;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && !has_limit(order, "nofile"))
        addf(words, "--ulimit=nofile=%llu:%llu", (unsigned long long)files.rlim_cur, (unsigned long long)files.rlim_max);
    // podman itself never sets more than 32768, so do not pass more.
    if (getrlimit(RLIMIT_NPROC, &processes) == 0 && !has_limit(order, "nproc")) {
        unsigned long long most = processes.rlim_max < 32768 ? processes.rlim_max : 32768;
        addf(words, "--ulimit=nproc=%llu:%llu", most, most);
    }
}

/* Stores the path of the folder in which podman keeps the running container, which is an argument of conmon (-b).
   podman removes that folder together with the container. */
static void note_bundle(const char *folder, const char *conmon) {
    char path[64], words[4096];
    snprintf(path, sizeof path, "/proc/%s/cmdline", conmon);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    ssize_t count = read(fd, words, sizeof words - 1);
    close(fd);
    if (count <= 0) return;
    words[count] = 0;
    for (char *word = words; word < words + count; word += strlen(word) + 1) {
        if (strcmp(word, "-b") != 0) continue;
        word += strlen(word) + 1;
        if (word < words + count) write_line(folder, "bundle", word);
        return;
    }
}

/* Finds the path of cgroup.procs in a process's cgroup (version 2). Returns false if there is none. */
static bool cgroup_of(const char *process, char *path, size_t size) {
    char name[64], line[PATH_MAX];
    snprintf(name, sizeof name, "/proc/%s/cgroup", process);
    FILE *file = fopen(name, "re");
    if (file == NULL) return false;
    bool is_found = false;
    while (!is_found && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, "0::", 3) != 0) continue;
        line[strcspn(line, "\n")] = 0;
        struct stat status;
        for (int i = 0; i < 2 && !is_found; i++) {
            int length = snprintf(path, size, "/sys/fs/cgroup%s%s/cgroup.procs", i == 0 ? "" : "/unified", line + 3);
            is_found = length > 0 && (size_t)length < size && stat(path, &status) == 0;
        }
    }
    fclose(file);
    return is_found;
}

/* Moves helpers that serve all containers of this user from the app's cgroup to the cgroup of torpor-keeper, the
   parent of this process. Without systemd, they start in the cgroup of the app whose container came first, and
   would be frozen and killed with that app. These helpers are aardvark-dns, which resolves names in podman's
   networks, and rootless podman's pause process (catatonit, or podman itself), which keeps its user namespace. */
static void free_common_helpers(void) {
    static const char *const names[] = {"aardvark-dns", "catatonit", "podman pause"};
    char own[PATH_MAX + 64], other[PATH_MAX + 64], parent[16], line[32], comm[32];
    snprintf(parent, sizeof parent, "%d", (int)getppid());
    if (!cgroup_of("self", own, sizeof own) || !cgroup_of(parent, other, sizeof other)) return;
    FILE *file = fopen(own, "re");
    if (file == NULL) return;
    while (fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\n")] = 0;
        char folder[64];
        snprintf(folder, sizeof folder, "/proc/%s", line);
        if (!read_line(folder, "comm", comm, sizeof comm)) continue;
        bool is_common = false;
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) is_common |= strcmp(comm, names[i]) == 0;
        if (!is_common) continue;
        // Ignore a program of the same name inside a container: it has another root directory than this process.
        struct stat root, theirs;
        char path[80];
        snprintf(path, sizeof path, "%s/root", folder);
        if (stat("/", &root) != 0 || stat(path, &theirs) != 0) continue;
        if (root.st_dev != theirs.st_dev || root.st_ino != theirs.st_ino) continue;
        int fd = open(other, O_WRONLY | O_CLOEXEC);
        if (fd < 0) continue;
        dprintf(fd, "%s", line);
        close(fd);
    }
    fclose(file);
}

/* Removes what prevents the start of the container, and creates what it needs. Returns 1 if anything was changed,
   so that the start can be retried; 0 if not; -1 if the container cannot be started, after the reason was
   reported. */
static int make_way(const struct order *order) {
    bool has_changed = false;
    if (!claim_name(order, &has_changed)) {
        fail("cannot be named %s, as another container is: remove that one (‘podman rm %s’) or write another name in container",
             order->name, order->name);
        return -1;
    }
    if (!make_networks(order, &has_changed)) return -1;
    return has_changed ? 1 : 0;
}

static int run(const struct order *order) {
    char answer[16];
    struct words words = {0};
    begin(&words);
    add(&words, "run");
    add(&words, "--pull=never");
    addf(&words, "--cidfile=%s/id", order->folder);
    addf(&words, "--conmon-pidfile=%s/conmon", order->folder);
    addf(&words, "--pidfile=%s/first", order->folder);
    keep_limits(&words, order);
    for (char **word = order->arguments; *word != NULL; word++) add(&words, *word);
    char path[PATH_MAX];
    if (place(path, order->folder, "variables")) write_variables(path);
    delete(order->folder, "id");
    delete(order->folder, "conmon");
    delete(order->folder, "first");
    // The time that podman takes does not count as the app's launch, so extend the launch deadline until the
    // container runs.
    if (order->launch_ms > 0) notify("EXTEND_TIMEOUT_USEC=%d000000", PODMAN_SECONDS);
    note_run(order->folder, order->name);
    // podman's output goes where the container's output goes, so that its error messages are in the app's log.
    return podman(&words, OUTPUT_PASSED, answer, sizeof answer, 0, NULL);
}

int start_container(const struct order *order) {
    char path[PATH_MAX], conmon[32], first[32], facts[192];
    take_signals();
    if (!place(path, order->folder, "claimed")) return fail("cannot keep its container's ID in %s: the path is too long", order->folder);
    if (!remove_container(order->folder)) return fail("could not remove the container of its last run: see its log");
    struct stat status;
    // Remove what prevents the start, such as an old container of the same name, only before the first launch since the
    // machine was booted. To save time, later launches do this only if they fail.
    if (stat(path, &status) != 0) {
        if (make_way(order) < 0) return FAILED;
        write_line(order->folder, "claimed", order->name);
    }
    if (!pull(order, facts, sizeof facts)) return is_asked_to_end() != 0 ? 128 + is_asked_to_end() : FAILED;
    if (is_asked_to_end() != 0) return 128 + is_asked_to_end();
    int ended = run(order);
    if (ended > 128 && !undo_run(order->folder)) return fail("could not remove what a podman left that was killed: see its log");
    if (ended != 0 && ended != NOT_EXECUTED) {
        // A network may have been removed, or a killed podman may have left something behind. If this can be put right,
        // start the container once more.
        int way = make_way(order);
        if (way < 0) return FAILED;
        if (way > 0) ended = run(order);
    }
    if (ended == NOT_EXECUTED) return fail("needs podman, which is not on the PATH");
    if (ended != 0) return fail("could not be started by podman");
    delete(order->folder, "variables");
    forget_run(order->folder);
    leave_to_container();
    if (!read_line(order->folder, "conmon", conmon, sizeof conmon)) return fail("was started, but podman did not say which process is conmon");
    // If the program inside the container has ended already, the first process of the container no longer exists, and
    // conmon, podman's monitor of the container, is a zombie or about to become one.
    int pidfd = read_line(order->folder, "first", first, sizeof first) ? (int)syscall(SYS_pidfd_open, atoi(first), 0) : -1;
    note_bundle(order->folder, conmon);
    free_common_helpers();
    char message[256];
    int length = snprintf(message, sizeof message, "X_TORPOR_CONTAINER=%s%s", facts, order->says_ready ? "\nREADY=1" : "");
    if (order->launch_ms > 0 && !order->says_ready && length > 0 && (size_t)length < sizeof message)
        snprintf(message + length, sizeof message - (size_t)length, "\nEXTEND_TIMEOUT_USEC=%ld000", order->launch_ms);
    return follow_anew(order->name, (pid_t)atoi(conmon), pidfd, message);
}
