// SPDX-License-Identifier: Apache-2.0

// torpor-container start FOLDER NAME OWNER IMAGE PULL PULL-SECONDS LAUNCH-MS READY -- ARGUMENT...
// torpor-container follow NAME CONMON FIRST WAITING MESSAGE
// torpor-container remove FOLDER
// torpor-container rootless FOLDER
//
// `start` is the main process of an app that podman runs in a container. It removes what an earlier run left behind,
// pulls the image if PULL (missing, always, newer, never) requires that, and runs `podman run --detach` with the
// arguments. Then it reports that the container runs (X_TORPOR_CONTAINER, with the stop signal that the image names;
// also READY=1 if READY is 1) and replaces itself by `follow`. `follow` is now the parent of conmon. It passes on
// signals to the first process in the container, waits for conmon, and exits with conmon's status, which is the
// container's.
//
// During a pull, `start` extends the launch's deadline (EXTEND_TIMEOUT_USEC), for PULL-SECONDS at most (0: no limit).
// If LAUNCH-MS is not 0, podman then has 60 s, and after that the program inside has LAUNCH-MS to become ready. If
// anything fails before the container runs, `start` exits with 125, as podman does.
//
// `remove` deletes the container that `start` has created, unless podman has already done so.
//
// `rootless` is the part of `remove` that must run where rootless podman mounts its network namespaces.
//
// FOLDER belongs to the app's user, and is kept until the machine shuts down or the app gets another user. Its files:
// `id` contains the container's ID; `bundle` the path of the folder that podman removes together with the container;
// `pull` the path of the folder for the temporary files of a pull in progress. `begun` exists while `podman run` runs,
// and `namespaces` lists the network namespaces that podman had before. OWNER is a label of the container: a container
// of the same NAME with another owner is never touched.

#include "container.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int usage(void) {
    fputs("torpor-container is started by torpord\n", stderr);
    return 2;
}

int main(int count, char **words) {
    prepare_environment();
    if (count == 7 && strcmp(words[1], "follow") == 0) return follow_words(words + 2);
    if (count == 3 && strcmp(words[1], "remove") == 0) return remove_container(words[2]) ? 0 : FAILED;
    if (count == 3 && strcmp(words[1], "rootless") == 0) return remove_rootless_network(words[2]) ? 0 : FAILED;
    if (count < 11 || strcmp(words[1], "start") != 0 || strcmp(words[10], "--") != 0) return usage();
    struct order order = {
        .folder = words[2],
        .name = words[3],
        .owner = words[4],
        .image = words[5],
        .pull = words[6],
        .pull_seconds = strtol(words[7], NULL, 10),
        .launch_ms = strtol(words[8], NULL, 10),
        .says_ready = strcmp(words[9], "1") == 0,
        .arguments = words + 11,
    };
    return start_container(&order);
}
