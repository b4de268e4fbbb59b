// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "host.h"

#include <dirent.h>
#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// A library names the folders of the libraries that it needs: its own folder, or that of Swift. It could also name
// /etc or a home directory: so it may not read those folders, only the shared objects in them.

enum { MOST_FILES = 4096 };

static unsigned allowed;

static bool is_library_name(const char *name)
{
    const char *end = strstr(name, ".so");
    return end != NULL && (end[3] == 0 || end[3] == '.');
}

static void allow_file(int folder, const char *name)
{
    int fd = openat(folder, name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return;
    struct stat status;
    char magic[SELFMAG];
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && pread(fd, magic, sizeof magic, 0) == sizeof magic
        && memcmp(magic, ELFMAG, SELFMAG) == 0 && allowed < MOST_FILES) {
        host_landlock_allow_file(fd);
        allowed += 1;
    }
    close(fd);
}

static void allow_folder(int folder)
{
    if (folder < 0)
        return;
    DIR *directory = fdopendir(folder);
    if (directory == NULL) {
        close(folder);
        return;
    }
    const struct dirent *entry;
    while ((entry = readdir(directory)) != NULL)
        if (is_library_name(entry->d_name))
            allow_file(dirfd(directory), entry->d_name);
    closedir(directory);
}

// ld.so(8): $ORIGIN is the folder of the library; $LIB and $PLATFORM are not replaced here.
static bool expand(const char *element, size_t size, const char *origin, char *path)
{
    size_t used = 0;
    for (size_t i = 0; i < size;) {
        size_t token = size - i >= 7 && memcmp(element + i, "$ORIGIN", 7) == 0      ? 7
                       : size - i >= 9 && memcmp(element + i, "${ORIGIN}", 9) == 0 ? 9
                                                                                   : 0;
        size_t length = token != 0 ? strlen(origin) : 1;
        if (used + length >= PATH_MAX)
            return false;
        memcpy(path + used, token != 0 ? origin : element + i, length);
        used += length;
        i += token != 0 ? token : 1;
    }
    path[used] = 0;
    return path[0] == '/';
}

static void allow_list(const char *list, const char *origin)
{
    static char path[PATH_MAX];
    while (true) {
        size_t size = strcspn(list, ":");
        if (expand(list, size, origin, path))
            allow_folder(open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        if (list[size] == 0)
            return;
        list += size + 1;
    }
}

void host_folders_allow(const char *path)
{
    static char origin[PATH_MAX], runpath[PATH_MAX];
    allow_folder(openat(TORPOR_POLICY_HOST_DIRECTORY, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const char *slash = strrchr(path, '/');
    size_t size = slash == NULL || slash == path ? 0 : (size_t)(slash - path);
    if (size >= sizeof origin)
        return;
    memcpy(origin, path, size);
    origin[size] = 0;
    if (host_elf_runpath(runpath, sizeof runpath))
        allow_list(runpath, origin);
    const char *configured = getenv("LD_LIBRARY_PATH");
    if (configured != NULL)
        allow_list(configured, origin);
}
