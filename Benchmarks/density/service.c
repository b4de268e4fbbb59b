// SPDX-License-Identifier: Apache-2.0

// An app of the measurement `density`: an HTTP server with a data set in memory, in C.
//   service SLOT; the environment says where to listen and what to load (see README.md).
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { RECORDS = 60000, FOUND = 40, WORDS = 64, NAME = 40 };

struct record {
    uint64_t expires, seen;
    char name[NAME];
    char *line;             // as it was read
    uint32_t words[WORDS];  // hashes of its words, for a search
};

static struct record *records;

static _Noreturn void fail(const char *what)
{
    fprintf(stderr, "service: %s: %s\n", what, strerror(errno));
    exit(1);
}

static const char *setting(const char *name)
{
    const char *value = getenv(name);
    if (value == NULL) {
        fprintf(stderr, "service: %s is not set\n", name);
        exit(2);
    }
    return value;
}

static void say(const char *what, int slot)
{
    int starts = open(setting("DENSITY_STARTS"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (starts < 0 || dprintf(starts, "%s %d %d\n", what, slot, (int)getpid()) < 0)
        fail(setting("DENSITY_STARTS"));
    close(starts);
}

static void load(const char *path)
{
    FILE *file = fopen(path, "re");
    records = calloc(RECORDS, sizeof *records);
    if (file == NULL || records == NULL)
        fail(path);
    char *line = NULL;
    size_t size = 0;
    for (int index = 0; index < RECORDS && getline(&line, &size, file) > 0; index++) {
        struct record *record = &records[index];
        record->expires = UINT64_MAX;
        record->line = strdup(line);
        const char *name = strstr(line, "\"name\":\"");
        if (name != NULL)
            sscanf(name + 8, "%39[^\"]", record->name);
        int count = 0;
        uint32_t hash = 2166136261u;
        for (const char *at = line; *at != 0 && count < WORDS; at++) {
            if ((*at | 32) >= 'a' && (*at | 32) <= 'z') {
                hash = (hash ^ (uint8_t)*at) * 16777619u;
            } else if (hash != 2166136261u) {
                record->words[count++] = hash;
                hash = 2166136261u;
            }
        }
    }
    free(line);
    fclose(file);
}

static uint64_t seconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec;
}

// Scans one part of the records for expired ones, as caches do.
static void sweep(int parts)
{
    static int swept;
    uint64_t now = seconds();
    int end = swept + RECORDS / parts;
    if (end > RECORDS)
        end = RECORDS;
    for (; swept < end; swept++)
        if (records[swept].expires < now && records[swept].line[0] == '{')
            records[swept].expires += 86400;
    if (swept == RECORDS)
        swept = 0;
}

static void answer(int connection)
{
    char request[2048], body[FOUND * (NAME + 1) + 32], head[128];
    ssize_t length = recv(connection, request, sizeof request - 1, 0);
    if (length <= 0)
        return;
    request[length] = 0;
    const char *equals = strchr(request, '=');
    uint64_t place = equals != NULL ? strtoull(equals + 1, NULL, 10) : 1;
    int size = snprintf(body, sizeof body, "pid %d\n", (int)getpid());
    // Reads as many records as a page of search results has, anywhere in the data set.
    for (int count = 0; count < FOUND; count++) {
        place = place * 6364136223846793005u + 1442695040888963407u;
        struct record *record = &records[(place >> 33) % RECORDS];
        record->seen++;
        size += snprintf(body + size, sizeof body - (size_t)size, "%s ", record->name);
    }
    int start = snprintf(head, sizeof head,
        "HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n", size);
    send(connection, head, (size_t)start, MSG_NOSIGNAL | MSG_MORE);
    send(connection, body, (size_t)size, MSG_NOSIGNAL);
}

static int listen_at(uint16_t port)
{
    // The supervisor may pass a listening socket.
    const char *passed = getenv("LISTEN_PID");
    if (passed != NULL && atoi(passed) == getpid())
        return 3;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    address.sin_port = htons(port);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) != 0 || listen(listener, 64) != 0)
        fail("listen");
    return listener;
}

int main(int argc, char **argv)
{
    int slot = argc > 1 ? atoi(argv[1]) : 0;
    int parts = atoi(setting("DENSITY_SWEEP"));
    say("begun", slot);
    load(setting("DENSITY_DATA"));
    int listener = listen_at((uint16_t)(atoi(setting("DENSITY_PORT")) + slot));
    say("ready", slot);
    uint64_t swept = seconds();
    for (;;) {
        struct pollfd wait = {.fd = listener, .events = POLLIN};
        if (poll(&wait, 1, parts > 0 ? 1000 : -1) > 0) {
            int connection = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
            if (connection >= 0) {
                answer(connection);
                close(connection);
            }
        }
        if (parts > 0 && seconds() > swept) {
            swept = seconds();
            sweep(parts);
        }
    }
}
