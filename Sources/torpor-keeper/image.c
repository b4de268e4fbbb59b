// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

// Chooses torpord's executable: the file at its path, or, if that one failed to start, the last program that sent
// SETTLED. That program's file may have been deleted, so the keeper holds a descriptor of it.
//
// A program that failed is identified by its file: as soon as a different file is at the path, the keeper tries that
// file.

static struct torpor_keeper_file good, failed, started;
static bool has_failed, has_started;
static int good_fd = -1;
static bool from_image;

static struct torpor_keeper_file file_of(const struct stat *status)
{
    return (struct torpor_keeper_file){
        .device = (uint64_t)status->st_dev,
        .inode = (uint64_t)status->st_ino,
        .size = (uint64_t)status->st_size,
        .changed_seconds = status->st_mtim.tv_sec,
        .changed_nanoseconds = status->st_mtim.tv_nsec,
    };
}

static bool same(const struct torpor_keeper_file *one, const struct torpor_keeper_file *other)
{
    return memcmp(one, other, sizeof *one) == 0;  // valid, since the structure has no padding
}

int image_choose(const char *path)
{
    struct stat status;
    has_started = stat(path, &status) == 0;
    if (has_started)
        started = file_of(&status);
    from_image = good_fd >= 0 && (!has_started || (has_failed && same(&started, &failed)));
    return from_image ? good_fd : -1;
}

bool image_is_fallback(void)
{
    return from_image;
}

void image_settled(pid_t pid)
{
    char path[64];
    struct stat status;
    if (from_image)
        return;
    has_failed = false;
    snprintf(path, sizeof path, "/proc/%d/exe", (int)pid);
    int fd = open(path, O_PATH | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &status) < 0) {
        if (errno != ENOENT && errno != ESRCH)  // otherwise the process has ended already
            keeper_log("cannot keep torpord's program in case an upgrade fails: %s", strerror(errno));
        if (fd >= 0)
            close(fd);
        return;
    }
    struct torpor_keeper_file file = file_of(&status);
    if (good_fd >= 0)
        close(good_fd);
    good_fd = -1;
    if (has_started && same(&file, &started)) {
        good = file;
        good_fd = fd;
    } else {
        close(fd);  // the executable of a script is its interpreter, not torpord
    }
}

bool image_has_other(void)
{
    return good_fd >= 0 && !from_image && !(has_started && same(&started, &good));
}

bool image_failed(void)
{
    if (!image_has_other())
        return false;
    has_failed = has_started;
    failed = started;
    return true;
}

void image_try_again(void)
{
    has_failed = false;
}

void image_save(struct torpor_keeper_resume *state)
{
    state->image = good_fd;
    state->good = good;
    state->failed = failed;
    state->flags |= (good_fd >= 0 ? TORPOR_RESUME_IMAGE : 0) | (has_failed ? TORPOR_RESUME_FAILED : 0);
}

void image_restore(const struct torpor_keeper_resume *state)
{
    good_fd = state->flags & TORPOR_RESUME_IMAGE ? state->image : -1;
    good = state->good;
    failed = state->failed;
    has_failed = state->flags & TORPOR_RESUME_FAILED;
}
