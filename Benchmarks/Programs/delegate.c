// SPDX-License-Identifier: Apache-2.0

// An app that follows its lifecycle through the C library and answers at once.
//   delegate SLOT [MS]
// With MS, it takes MS milliseconds for didEnterBackground, like an app that saves data. BENCH_REPORT is the report
// page.
#define _GNU_SOURCE
#include "report.h"
#include "torpor_app.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static long milliseconds;

static torpor_result did_enter_background(torpor_app *app, torpor_message *message, void *context)
{
    (void)app, (void)message, (void)context;
    struct timespec time = {.tv_sec = milliseconds / 1000, .tv_nsec = milliseconds % 1000 * 1000000};
    if (milliseconds > 0)
        nanosleep(&time, NULL);
    return TORPOR_DONE;
}

static void report(const char *path, unsigned slot)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    int file = open(path, O_RDWR | O_CLOEXEC);
    struct report_page *page =
        file < 0 ? MAP_FAILED : mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (page == MAP_FAILED)
        exit(111);
    close(file);
    page->slots[slot].started_ns = (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
    page->slots[slot].pid = getpid();
    __atomic_fetch_add(&page->slots[slot].starts, 1, __ATOMIC_SEQ_CST);
    uint32_t count = __atomic_add_fetch(&page->count, 1, __ATOMIC_SEQ_CST);
    if (count == __atomic_load_n(&page->target, __ATOMIC_SEQ_CST))
        syscall(SYS_futex, &page->count, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

int main(int argc, char **argv)
{
    const char *path = getenv("BENCH_REPORT");
    if (argc < 2 || path == NULL)
        return 111;
    milliseconds = argc > 2 ? atol(argv[2]) : 0;
    static const torpor_delegate delegate = {.did_enter_background = did_enter_background};
    torpor_app *app = torpor_app_open(&delegate, NULL, 0);
    if (app == NULL)
        return 111;
    report(path, (unsigned)strtoul(argv[1], NULL, 10));
    struct pollfd watched = {.fd = torpor_app_fd(app), .events = POLLIN};
    for (;;) {
        torpor_app_dispatch(app);
        poll(&watched, 1, -1);
    }
}
