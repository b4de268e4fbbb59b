// SPDX-License-Identifier: Apache-2.0

// Does the harm that its option `does` names, when it is asked or, with the option `at` = "create", when it is made.

#include "policy.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

static char harm[64];

static void segfault(void) { *(volatile int *)16 = 1; }

static void loop(void)
{
    for (volatile unsigned long n = 0;; n++)
        continue;
}

static void allocate(void)
{
    char *memory = malloc(10ull << 30);
    fprintf(stderr, memory == NULL ? "no memory for 10 GB\n" : "10 GB allocated\n");
    if (memory != NULL)
        memset(memory, 1, 10ull << 30);
    // Small pieces, until there are no more.
    while ((memory = malloc(1 << 20)) != NULL)
        memset(memory, 1, 1 << 20);
    fprintf(stderr, "no memory\n");
    abort();
}

static void close_all(void)
{
    for (int fd = 0; fd < 64; fd++)
        close(fd);
}

static void garbage(void)
{
    unsigned char noise[333];
    for (unsigned i = 0; i < sizeof noise; i++)
        noise[i] = (unsigned char)(i * 167 + 13);
    for (int i = 0; i < 3; i++)
        if (write(3, noise, sizeof noise) < 0)
            abort();
}

static void chatter(void)
{
    for (int i = 0; i < 100000; i++)
        fprintf(stderr, "line %d of very many that nobody wants to read at all\n", i);
    fprintf(stderr, "the last line\n");
}

static void write_into_view(const torpor_policy_view *view)
{
    void *page = (void *)((uintptr_t)view->apps & ~(uintptr_t)4095);
    if (mprotect(page, 4096, PROT_READ | PROT_WRITE) < 0)
        perror("mprotect");
    ((volatile torpor_policy_app *)(uintptr_t)view->apps)->priority = 77;
}

static void do_it(const torpor_policy_view *view, const torpor_policy_reply *reply)
{
    if (strcmp(harm, "segfault") == 0)
        segfault();
    else if (strcmp(harm, "abort") == 0) {
        fprintf(stderr, "it cannot go on\n");
        abort();
    } else if (strcmp(harm, "exit") == 0)
        exit(0);
    else if (strcmp(harm, "loop") == 0)
        loop();
    else if (strcmp(harm, "sleep") == 0)
        sleep(3600);
    else if (strcmp(harm, "allocate") == 0)
        allocate();
    else if (strcmp(harm, "close") == 0)
        close_all();
    else if (strcmp(harm, "garbage") == 0)
        garbage();
    else if (strcmp(harm, "chatter") == 0)
        chatter();
    else if (strcmp(harm, "stop") == 0)
        raise(SIGSTOP);
#if defined(__x86_64__)
    else if (strcmp(harm, "x32") == 0)
        // getpid of another interface of this machine, whose numbers mean something else.
        syscall(0x40000000 | 39);
#endif
    else if (strcmp(harm, "view") == 0 && view != NULL)
        write_into_view(view);
    else if (strcmp(harm, "flood") == 0 && reply != NULL)
        for (uint32_t i = 0; i < 10000; i++)
            advise(reply, TORPOR_ADVISE_GOAL, i, TORPOR_STATE_SUSPENDED, 0, "because it wants to");
    else if (strcmp(harm, "wild") == 0 && reply != NULL)
        reply->advise(reply, (const torpor_policy_advice *)(uintptr_t)0x10);
    else if (strcmp(harm, "reason") == 0 && reply != NULL)
        advise(reply, TORPOR_ADVISE_GOAL, 0, 0, 0, (const char *)(uintptr_t)0x10);
}

static void *create(const torpor_policy_options *options, char *error, size_t size)
{
    const torpor_policy_option *does = torpor_policy_option_named(options, "does");
    if (does == NULL) {
        snprintf(error, size, "it does not know what to do");
        return NULL;
    }
    snprintf(harm, sizeof harm, "%s", does->text);
    const torpor_policy_option *at = torpor_policy_option_named(options, "at");
    if (at != NULL && strcmp(at->text, "create") == 0)
        do_it(NULL, NULL);
    return &the_policy;
}

static int32_t decide(void *policy, const torpor_policy_view *view, const torpor_policy_event *event,
                      const torpor_policy_reply *reply)
{
    (void)policy;
    (void)event;
    do_it(view, reply);
    return TORPOR_CONTINUE;
}

POLICY("hostile", create, decide)
