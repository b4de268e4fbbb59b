// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "test_app.h"

#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

// Options, in any mixture:
//   --period US       a burst of lines every so often, at random between half and one and a half of it (10000)
//   --burst N         lines of a burst, 1 to N (1)
//   --padding N       bytes that a line may be longer (60)
//   --both            writes to standard error too, as a voice of its own
//   --tree            has a child, and a grandchild in a session of its own, who both write
//   --ready MS        waits 0 to MS, then sends READY=1
//   --beat MS         WATCHDOG=1 and STATUS=<number> so often
//   --store           gives a descriptor into keeping and looks whether it comes back
//   --life LOW-HIGH   ends after so many milliseconds: an exit status, a signal, or success
//   --oneshot N       writes N lines and exits with 0
//   --slow MS         goes on for so long after SIGTERM
//   --stubborn        does not hear SIGTERM
//   --hook MS         sleeps 0 to MS and exits with 0: for before_start
//   --decoy FILE [--name NAME] [--pid PID]
//   --nest PROGRAM ARGUMENT…   starts a program and reaps it and all orphans, as an init does, until none is left;
//                              with TPNOCGROUPS=1 in the environment it sees no cgroups, where root may hide them

static struct {
    uint64_t period, burst, ready, beat, life_low, life_high, slow, hook, oneshot;
    bool both, tree, store, stubborn, has_ready, has_hook;
} options = {.period = 10000, .burst = 1};

static struct truth *own_truth;
static struct truth *error_truth;
static volatile sig_atomic_t terminated;

static void on_pipe(int number)
{
    (void)number;
    truth->sigpipes++;
}

static void on_abort(int number)
{
    own_truth->aborts++;
    signal(number, SIG_DFL);
    raise(number);
}

static void on_terminate(int number)
{
    (void)number;
    own_truth->terminations++;
    terminated = 1;
}

static void handle(int number, void (*handler)(int))
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    sigaction(number, &action, NULL);
}

/// A descendant that writes until it is ended.
_Noreturn static void descend(char voice)
{
    truth_open(voice);
    own_truth = truth;
    chance_seed((uint64_t)voice);
    for (;;) {
        say(STDOUT_FILENO, voice);
        sleep_us(between(options.period / 2, options.period * 3 / 2));
    }
}

static void make_tree(void)
{
    pid_t child = fork();
    if (child == 0)
        descend('c');
    pid_t middle = fork();
    if (middle == 0) {
        pid_t grandchild = fork();
        if (grandchild == 0) {
            setsid();
            descend('g');
        }
        _exit(0);
    }
    while (waitpid(middle, NULL, 0) < 0 && errno == EINTR)
        ;
}

_Noreturn static void die(void)
{
    switch (between(0, 5)) {
    case 0: _exit(0);
    case 1: _exit((int)between(1, 99));
    case 2: signal(SIGSEGV, SIG_DFL); raise(SIGSEGV); break;
    case 3: raise(SIGKILL); break;
    case 4: signal(SIGHUP, SIG_DFL); raise(SIGHUP); break;
    default: exit(1);
    }
    _exit(1);
}

static void read_options(int count, char **words)
{
    static const struct option names[] = {
        {"period", 1, 0, 'p'}, {"burst", 1, 0, 'b'}, {"padding", 1, 0, 'a'}, {"both", 0, 0, 'B'}, {"tree", 0, 0, 't'},
        {"ready", 1, 0, 'r'}, {"beat", 1, 0, 'w'}, {"store", 0, 0, 's'}, {"life", 1, 0, 'l'}, {"oneshot", 1, 0, 'o'},
        {"slow", 1, 0, 'S'}, {"stubborn", 0, 0, 'u'}, {"hook", 1, 0, 'h'}, {"decoy", 1, 0, 'd'}, {"name", 1, 0, 'n'},
        {"pid", 1, 0, 'P'}, {0, 0, 0, 0},
    };
    const char *decoy = NULL, *name = "decoy";
    int wanted_pid = 0;
    for (int c; (c = getopt_long(count, words, "", names, NULL)) != -1;) {
        uint64_t number = optarg ? strtoull(optarg, NULL, 10) : 0;
        switch (c) {
        case 'p': options.period = number; break;
        case 'b': options.burst = number; break;
        case 'a': line_padding = number > 1500 ? 1500 : (unsigned)number; break;
        case 'B': options.both = true; break;
        case 't': options.tree = true; break;
        case 'r': options.has_ready = true; options.ready = number; break;
        case 'w': options.beat = number; break;
        case 's': options.store = true; break;
        case 'l': {
            char *dash = strchr(optarg, '-');
            options.life_low = number;
            options.life_high = dash ? strtoull(dash + 1, NULL, 10) : number;
            break;
        }
        case 'o': options.oneshot = number; break;
        case 'S': options.slow = number; break;
        case 'u': options.stubborn = true; break;
        case 'h': options.has_hook = true; options.hook = number; break;
        case 'd': decoy = optarg; break;
        case 'n': name = optarg; break;
        case 'P': wanted_pid = atoi(optarg); break;
        default: exit(2);
        }
    }
    if (decoy != NULL)
        exit(decoy_main(decoy, name, wanted_pid));
}

/// Unmounts them for this process and those below it.
static void hide_cgroups(void)
{
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return;
    for (int round = 0; round < 64; round++) {
        FILE *mounts = fopen("/proc/self/mounts", "re");
        char line[4096], path[2048] = "", type[64];
        bool found = false;
        // The last one first: others may be below it.
        while (mounts != NULL && fgets(line, sizeof line, mounts) != NULL) {
            char here[2048];
            if (sscanf(line, "%*s %2047s %63s", here, type) == 2 && strncmp(type, "cgroup", 6) == 0) {
                strcpy(path, here);
                found = true;
            }
        }
        if (mounts != NULL)
            fclose(mounts);
        if (!found || umount2(path, MNT_DETACH) < 0)
            return;
    }
}

/// Orphans come here and not to the machine's init, which may take its time, or never reap at all in a container.
static int nest(char **words)
{
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (getenv("TPNOCGROUPS") != NULL)
        hide_cgroups();
    pid_t program = fork();
    if (program == 0) {
        execv(words[0], words);
        _exit(127);
    }
    int result = 0, status;
    for (pid_t pid; (pid = waitpid(-1, &status, 0)) > 0 || errno == EINTR;)
        if (pid == program)
            result = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return result;
}

int main(int count, char **words)
{
    if (count > 2 && strcmp(words[1], "--nest") == 0)
        return nest(words + 2);
    read_options(count, words);
    app_name = getenv("TORPOR_APP");
    incarnation = getenv("TORPOR_INCARNATION");
    test_folder = getenv("TPTEST");
    if (app_name == NULL || incarnation == NULL || test_folder == NULL) {
        fprintf(stderr, "TORPOR_APP, TORPOR_INCARNATION and TPTEST must be set\n");
        return 2;
    }
    chance_seed(0);
    if (options.has_hook) {
        sleep_us(between(0, options.hook * 1000));
        return 0;
    }
    if (options.both) {
        truth_open('e');
        error_truth = truth;
    }
    truth_open('m');
    own_truth = truth;
    truth_lock();
    handle(SIGPIPE, on_pipe);
    handle(SIGABRT, on_abort);
    if (options.slow > 0)
        handle(SIGTERM, on_terminate);
    if (options.stubborn)
        signal(SIGTERM, SIG_IGN);
    if (options.tree)
        make_tree();
    for (uint64_t i = 0; i < options.oneshot; i++)
        say(STDOUT_FILENO, 'm');
    if (options.oneshot > 0)
        return 0;
    if (options.store)
        store_check();
    if (options.has_ready) {
        say(STDOUT_FILENO, 'm');
        sleep_us(between(0, options.ready * 1000));
        truth->ready = 1;
        notify_send("READY=1", -1, true);
    }
    uint64_t born = now_us(), life = between(options.life_low, options.life_high) * 1000;
    uint64_t next_beat = 0, ended = 0;
    for (;;) {
        uint64_t now = now_us();
        if (life > 0 && now - born >= life)
            die();
        if (terminated && ended == 0)
            ended = now;
        if (ended != 0 && now - ended >= options.slow * 1000)
            return 0;
        if (options.beat > 0 && now >= next_beat) {
            char text[64];
            snprintf(text, sizeof text, "WATCHDOG=1\nSTATUS=%llu", (unsigned long long)truth->status_number + 1);
            if (notify_send(text, -1, false))
                truth->status_number++;
            next_beat = now + options.beat * 1000;
        }
        for (uint64_t i = between(1, options.burst); i > 0; i--) {
            say(STDOUT_FILENO, 'm');
            if (options.both) {
                truth = error_truth;
                say(STDERR_FILENO, 'e');
                truth = own_truth;
            }
        }
        sleep_us(between(options.period / 2, options.period * 3 / 2));
    }
}
