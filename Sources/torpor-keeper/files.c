// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

// Files that a launch names. The child opens them itself: a hanging filesystem then blocks nothing else, and the
// keeper never closes them.
//
// If only root and the keeper's user can have created the path's components, they are opened with the keeper's
// rights, since such files are often root's. Otherwise they are opened as the app's user: then a user who puts a
// symlink on the path gains nothing that the app could not do itself.

#define MOST_LINKS 40
#define OPEN_ALWAYS (O_NONBLOCK | O_NOCTTY | O_CLOEXEC)

struct place {
    bool is_trusted;  // only root and the keeper's user can change or replace the file
    bool is_link;
    bool is_folder;
    bool is_sticky;   // every user may add files, which then belong to that user
};

static struct place look(int fd)
{
    struct stat status;
    struct place place = {false, false, false, false};
    if (fstat(fd, &status) < 0)
        return place;
    place.is_link = S_ISLNK(status.st_mode);
    place.is_folder = S_ISDIR(status.st_mode);
    place.is_sticky = place.is_folder && (status.st_mode & S_ISVTX) && (status.st_mode & (S_IWGRP | S_IWOTH));
    // A symlink has mode 0777, but only its owner or its folder's owner can replace it. A file with several hard
    // links could have been linked here by any user.
    place.is_trusted = (status.st_uid == 0 || status.st_uid == geteuid())
                       && (place.is_link || place.is_sticky || !(status.st_mode & (S_IWGRP | S_IWOTH)))
                       && (S_ISDIR(status.st_mode) || status.st_nlink == 1);
    return place;
}

// Whether the folder's entries can be trusted as paths. Links in procfs are not paths, and on FUSE the user that
// mounted it decides who owns files.
static bool has_paths(int folder)
{
    struct statfs status;
    return fstatfs(folder, &status) == 0 && status.f_type != PROC_SUPER_MAGIC && status.f_type != FUSE_SUPER_MAGIC;
}

// Puts a symlink's target before the rest of the path.
static bool follow(int link, char *rest, size_t room, char **next)
{
    char target[PATH_MAX];
    ssize_t size = readlinkat(link, "", target, sizeof target);
    size_t behind = strlen(*next) + 1;
    if (size <= 0 || (size_t)size == sizeof target || (size_t)size + behind > room)
        return false;
    memmove(rest + size, *next, behind);
    memcpy(rest, target, (size_t)size);
    *next = rest;
    return true;
}

// The last folder of a path and the name in it, if only root and the keeper's user can have created each component;
// otherwise -1. Each folder stays open from its check to the next step, so another user cannot replace it in between.
static int trusted_folder(const char *path, bool follows, char name[NAME_MAX + 1], bool *is_there)
{
    static char rest[2 * PATH_MAX];
    size_t length = strlen(path);
    int links = 0, folder = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct place here, there;
    if (length >= PATH_MAX)
        return -1;
    memcpy(rest, path, length + 1);
    for (char *next = rest; folder >= 0 && (here = look(folder)).is_trusted && has_paths(folder);) {
        next += strspn(next, "/");
        length = strcspn(next, "/");
        if (length == 0 || length > NAME_MAX || (length == 2 && memcmp(next, "..", 2) == 0))
            return -1;
        memcpy(name, next, length);
        name[length] = 0;
        next += length;
        if (strcmp(name, ".") == 0)
            continue;
        bool is_last = next[strspn(next, "/")] == 0;
        int found = openat(folder, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        *is_there = found >= 0;
        if (found < 0)
            return is_last && errno == ENOENT && !here.is_sticky ? folder : -1;
        there = look(found);
        // A user can move a file or symlink that root owns from a folder of that user into a sticky folder. The
        // kernel refuses this for a directory (rename(2)).
        if (here.is_sticky && !there.is_folder)
            return -1;
        if (there.is_link) {
            if (!follows || !there.is_trusted || ++links > MOST_LINKS || !follow(found, rest, sizeof rest, &next))
                return -1;
            close(found);
            found = rest[0] == '/' ? open("/", O_PATH | O_DIRECTORY | O_CLOEXEC) : folder;
        } else if (is_last) {
            // The file's owner does not matter: no other user can have put the file there.
            return folder;
        }
        if (found != folder)
            close(folder);
        folder = found;
    }
    return -1;
}

int files_open_trusted(const char *path, int flags, bool follows, bool *trusted)
{
    char name[NAME_MAX + 1];
    for (int tries = 0;; tries++) {
        bool is_there = false;
        int folder = trusted_folder(path, follows, name, &is_there), fd = -1;
        *trusted = folder >= 0;
        if (folder < 0)
            return -1;
        // A missing file is created with O_EXCL: another user's file must not get there first.
        if (is_there || (flags & O_CREAT))
            fd = openat(folder, name, flags | (is_there ? 0 : O_EXCL) | O_NOFOLLOW | OPEN_ALWAYS, 0640);
        else
            errno = ENOENT;
        int error = errno;
        close(folder);
        // EEXIST: another app that writes to the same file has just created it. Check the file again.
        if (fd >= 0 || error != EEXIST || tries == MOST_LINKS) {
            errno = error;
            return fd;
        }
    }
}

int files_open(const char *path, int flags)
{
    return open(path, flags | OPEN_ALWAYS, 0640);
}

int files_place(int fd, int target)
{
    // O_NONBLOCK was needed only to open the file, which may be a FIFO without a writer.
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) < 0 || dup2(fd, target) < 0)
        return errno;
    close(fd);
    return 0;
}
