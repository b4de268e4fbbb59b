// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "test_app.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

unsigned line_padding = 60;

/// `APP INCARNATION VOICE NUMBER padding.` in one write of less than PIPE_BUF: the kernel takes all of it or nothing.
void say(int fd, char voice)
{
    char line[2048];
    uint64_t number = truth->attempted + 1;
    int size = snprintf(line, 256, "%s %s %c %llu ", app_name, incarnation, voice, (unsigned long long)number);
    unsigned padding = (unsigned)between(0, line_padding);
    memset(line + size, 'a' + (int)(number % 26), padding);
    size += (int)padding;
    line[size++] = '.';
    line[size++] = '\n';
    truth->attempted = number;
    ssize_t written;
    do
        written = write(fd, line, (size_t)size);
    while (written < 0 && errno == EINTR);
    if (written == size) {
        truth->accepted = number;
        return;
    }
    truth->last_error = (uint64_t)errno;
    if (written < 0 && errno == EPIPE)
        truth->broken_pipes++;
    else
        truth->other_errors++;
    truth->attempted = truth->accepted;  // nothing of it was taken: the number is free
}
