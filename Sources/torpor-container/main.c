// SPDX-License-Identifier: Apache-2.0

// torpor-container start FOLDER NAME OWNER IMAGE PULL PULL-SECONDS LAUNCH-MS READY -- ARGUMENT...
// torpor-container follow NAME CONMON FIRST WAITING MESSAGE
// torpor-container remove FOLDER
//
// `start` is the main process of an app that podman runs in a container. It removes what an earlier run left, pulls the
// image if PULL (missing, always, newer, never) asks for it, and runs `podman run --detach` with the arguments. Then it says
// that the container runs (X_TORPOR_CONTAINER, with the stop signal that the image names), with READY=1 if READY is 1, and
// becomes `follow`, which waits for conmon, its child by now: it exits as conmon does, which exits as the container does.
// Signals that it gets are for the first process inside. While it pulls it extends the launch's deadline (EXTEND_TIMEOUT_USEC), for
// PULL-SECONDS at most (0: without limit); afterwards podman has LAUNCH-MS (0: unchanged). If anything fails before the
// container runs it exits with 125, as podman does.
//
// `remove` deletes the container that `start` made, unless podman has done so already.
//
// FOLDER is the app's, and is kept while the machine runs: `id` is the container's, `bundle` has the path of the folder
// that podman removes with it, `pull` that of the temporary files of a pull under way. OWNER is a label of the container: another's of the same NAME is never touched.

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
