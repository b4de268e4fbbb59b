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

// Files that a launch names. The child opens them itself: what hangs there holds up nobody else, and nobody here ever
// closes them.
//
// With whose rights? Where nobody but root and the keeper's user can have led the path anywhere, with the keeper's: such
// files are often root's. Anywhere else as the app's user, so that whoever may write to a folder on the way, and puts a
// link there, gets nothing by it that the app could not have had by itself.

#define MOST_LINKS 40
#define OPEN_ALWAYS (O_NONBLOCK | O_NOCTTY | O_CLOEXEC)

struct place {
    bool is_trusted;  // only root and the keeper's user can change it, or have another in its place
    bool is_link;
    bool is_folder;
    bool is_sticky;   // anybody may add to it, and has what is their own there
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
    // Anybody may write to a link: only its owner, or that of its folder, can have another in its place. A file of more
    // than one name may be anybody's doing.
    place.is_trusted = (status.st_uid == 0 || status.st_uid == geteuid())
                       && (place.is_link || place.is_sticky || !(status.st_mode & (S_IWGRP | S_IWOTH)))
                       && (S_ISDIR(status.st_mode) || status.st_nlink == 1);
    return place;
}

// The links of procfs are no paths, and of FUSE whoever has mounted it says whose what is.
static bool has_paths(int folder)
{
    struct statfs status;
    return fstatfs(folder, &status) == 0 && status.f_type != PROC_SUPER_MAGIC && status.f_type != FUSE_SUPER_MAGIC;
}

// What stands behind a link's name comes after what the link stands for.
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

// The folder that a path leads to and the name in it, each step of which only root and the keeper's user can have made;
// -1 where that is not so. Between a look at a folder and the next step from it nothing can change: it is open.
static int trusted_folder(const char *path, char name[NAME_MAX + 1], bool *is_there)
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
        // Whoever has a file or a link of root's in a folder of their own can move it to a sticky one; a folder they cannot
        // (rename(2)).
        if (here.is_sticky && !there.is_folder)
            return -1;
        if (there.is_link) {
            if (!there.is_trusted || ++links > MOST_LINKS || !follow(found, rest, sizeof rest, &next))
                return -1;
            close(found);
            found = rest[0] == '/' ? open("/", O_PATH | O_DIRECTORY | O_CLOEXEC) : folder;
        } else if (is_last) {
            // Whoever's it is: nobody else can have put it there.
            return folder;
        }
        if (found != folder)
            close(folder);
        folder = found;
    }
    return -1;
}

int files_open_trusted(const char *path, int flags, bool *trusted)
{
    char name[NAME_MAX + 1];
    for (int tries = 0;; tries++) {
        bool is_there = false;
        int folder = trusted_folder(path, name, &is_there), fd = -1;
        *trusted = folder >= 0;
        if (folder < 0)
            return -1;
        // What was not there is made: nobody else's may come there first.
        if (is_there || (flags & O_CREAT))
            fd = openat(folder, name, flags | (is_there ? 0 : O_EXCL) | O_NOFOLLOW | OPEN_ALWAYS, 0640);
        else
            errno = ENOENT;
        int error = errno;
        close(folder);
        // Another app that writes to it too has made it meanwhile: looked at again.
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
    // Non-blocking was the open alone: of a FIFO without a writer.
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) < 0 || dup2(fd, target) < 0)
        return errno;
    close(fd);
    return 0;
}
