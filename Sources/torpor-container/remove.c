// SPDX-License-Identifier: Apache-2.0

// Removes a container, and what was created for it.

#define _GNU_SOURCE
#include "container.h"

#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

void begin(struct words *words) {
    // Use cgroupfs: with systemd as cgroup manager, podman would be moved out of the app's cgroup.
    add(words, "podman");
    add(words, "--cgroup-manager=cgroupfs");
}

bool remove_by_id(const char *id) {
    struct words words = {0};
    begin(&words);
    add(&words, "rm");
    add(&words, "--force");
    add(&words, "--ignore");
    add(&words, "--volumes");
    add(&words, "--time=0");
    add(&words, id);
    char answer[256];
    return podman(&words, OUTPUT_FOLLOWED, answer, sizeof answer, QUERY_SECONDS, NULL) == 0;
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *walk) {
    (void)status, (void)kind, (void)walk;
    remove(path);
    return 0;
}

void remove_pulled(const char *folder) {
    char path[PATH_MAX];
    if (!read_line(folder, "pull", path, sizeof path)) return;
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
    delete(folder, "pull");
}

bool remove_container(const char *folder) {
    char id[128], bundle[PATH_MAX];
    struct stat status;
    remove_pulled(folder);
    if (!undo_run(folder)) return false;
    if (!read_line(folder, "id", id, sizeof id)) return true;
    // podman usually removes the container itself when the container ends (--rm): then nothing is left to do.
    bool is_gone = read_line(folder, "bundle", bundle, sizeof bundle) && stat(bundle, &status) != 0 && errno == ENOENT;
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
