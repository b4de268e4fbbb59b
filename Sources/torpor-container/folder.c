// SPDX-License-Identifier: Apache-2.0

// Small files in the app's folder.

#define _GNU_SOURCE
#include "container.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool is_ours(const char *folder) {
    struct stat status;
    return lstat(folder, &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == geteuid();
}

bool place(char *path, const char *folder, const char *name) {
    return snprintf(path, PATH_MAX, "%s/%s", folder, name) < PATH_MAX;
}

bool read_line(const char *folder, const char *name, char *text, size_t size) {
    char path[PATH_MAX];
    if (!place(path, folder, name)) return false;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) return false;
    ssize_t count = read(fd, text, size - 1);
    close(fd);
    if (count <= 0) return false;
    text[count] = 0;
    text[strcspn(text, "\n")] = 0;
    return text[0] != 0;
}

void write_line(const char *folder, const char *name, const char *text) {
    char path[PATH_MAX];
    if (!place(path, folder, name)) return;
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) return;
    dprintf(fd, "%s\n", text);
    close(fd);
}

void delete(const char *folder, const char *name) {
    char path[PATH_MAX];
    if (place(path, folder, name)) unlink(path);
}
