// SPDX-License-Identifier: Apache-2.0

// Removes a container, and what was created for it.

#define _GNU_SOURCE
#include "container.h"

#include <ctype.h>
#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

void begin(struct words *words) {
    // Use cgroupfs: with systemd as cgroup manager, podman would be moved out of the app's cgroup.
    add(words, "podman");
    add(words, "--cgroup-manager=cgroupfs");
}

/* What podman says of a container whose namespaces other containers use, before it lists the IDs of these. */
static const char dependents[] = "dependent containers which must be removed before it: ";

enum {
    /* How long containers that use this one's namespaces may take to end. Their apps end with this container. */
    DEPENDENTS_MS = 15000,
    AGAIN_MS = 200,
    MOST_ROUNDS = 16
};

static int force_removal(const char *id, bool takes_dependents, char *answer, size_t size) {
    struct words words = {0};
    begin(&words);
    add(&words, "rm");
    add(&words, "--force");
    add(&words, "--ignore");
    add(&words, "--volumes");
    add(&words, "--time=0");
    if (takes_dependents) add(&words, "--depend");
    add(&words, id);
    return podman(&words, OUTPUT_FOLLOWED, answer, size, QUERY_SECONDS, NULL);
}

static int64_t milliseconds_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static bool has_container(const char *id) {
    struct words words = {0};
    char answer[64];
    begin(&words);
    add(&words, "container");
    add(&words, "exists");
    add(&words, id);
    return podman(&words, OUTPUT_KEPT, answer, sizeof answer, QUERY_SECONDS, NULL) == 0;
}

/* Waits until the containers with these IDs, separated by ", ", no longer exist. Returns false if it is `end` first,
   or if this process is asked to end. */
static bool outlast(char *ids, int64_t end) {
    char *rest = NULL;
    for (char *id = strtok_r(ids, ", ", &rest); id != NULL; id = strtok_r(NULL, ", ", &rest)) {
        // The list ends with a colon. Its last ID may be cut off.
        bool is_last = id[strspn(id, "0123456789abcdef")] != 0;
        id[strspn(id, "0123456789abcdef")] = 0;
        while (strlen(id) >= 12 && has_container(id)) {
            if (milliseconds_now() >= end || is_asked_to_end() != 0) return false;
            struct pollfd wait = {signals(), POLLIN, 0};
            if (poll(&wait, 1, AGAIN_MS) > 0) note_signals();
        }
        if (is_last) break;
    }
    return true;
}

bool remove_by_id(const char *id) {
    char answer[512], *ids;
    int64_t end = milliseconds_now() + DEPENDENTS_MS;
    int status = force_removal(id, false, answer, sizeof answer);
    // If conmon was killed too, podman fails once, since it does not know the exit status, and then removes: podman 5
    // always, podman 4 if conmon has not ended quite yet (it waits 5 s for the file with the exit status).
    bool has_failed = status > 0 && status <= FAILED && status != NOT_EXECUTED;
    if (has_failed && strstr(answer, dependents) == NULL) status = force_removal(id, false, answer, sizeof answer);
    // Others may remain if the list was too long for the line that is kept.
    for (int round = 0; status != 0 && round < MOST_ROUNDS && (ids = strstr(answer, dependents)) != NULL; round++)
        status = force_removal(id, !outlast(ids + strlen(dependents), end), answer, sizeof answer);
    return status == 0;
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *walk) {
    (void)status, (void)kind, (void)walk;
    remove(path);
    return 0;
}

void remove_pulled(const char *folder) {
    char path[PATH_MAX];
    if (!read_line(folder, "pull", path, sizeof path)) return;
    const char *name = strrchr(path, '/');
    if (name != NULL && strncmp(name + 1, PULL_PREFIX, sizeof PULL_PREFIX - 1) == 0)
        nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
    delete(folder, "pull");
}

/* Whether torpor-container has ended by itself, so that it has waited for conmon, and conmon for the podman that
   removes the container. If it was killed, that podman was killed too, perhaps in the middle. */
static bool has_waited(void) {
    const char *status = getenv("TORPOR_EXIT_STATUS");
    return status != NULL && isdigit((unsigned char)status[0]);
}

bool remove_container(const char *folder) {
    char id[128], bundle[PATH_MAX];
    struct stat status;
    // The files say what is deleted. If the app ran as another user, who has written them, nothing of it is this user's.
    if (!is_ours(folder)) return true;
    remove_pulled(folder);
    if (!undo_run(folder)) return false;
    if (!read_line(folder, "id", id, sizeof id)) return true;
    // podman usually removes the container itself when the container ends (--rm): then nothing is left to do. A podman
    // that was killed may have removed the bundle, but not its record of the container.
    bool is_gone = has_waited() && read_line(folder, "bundle", bundle, sizeof bundle) && stat(bundle, &status) != 0 && errno == ENOENT;
    if (!is_gone && !remove_by_id(id)) return false;
    delete(folder, "id");
    delete(folder, "bundle");
    return true;
}

// Only a clear reply of podman counts: a failed query proves nothing.
bool is_external(const char *name) {
    struct words words = {0};
    char answer[64 * 1024];
    begin(&words);
    add(&words, "container");
    add(&words, "exists");
    add(&words, name);
    if (podman(&words, OUTPUT_KEPT, answer, sizeof answer, QUERY_SECONDS, NULL) != 1) return false;
    struct words list = {0};
    begin(&list);
    add(&list, "ps");
    add(&list, "--all");
    add(&list, "--external");
    add(&list, "--format={{.Names}}");
    addf(&list, "--filter=name=^%s$", name);
    if (podman(&list, OUTPUT_KEPT, answer, sizeof answer, QUERY_SECONDS, NULL) != 0) return false;
    for (char *line = strtok(answer, "\n"); line != NULL; line = strtok(NULL, "\n"))
        if (strcmp(line, name) == 0) return true;
    return false;
}
