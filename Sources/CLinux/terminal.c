// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "clinux.h"

#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>
#include <wchar.h>

static locale_t utf8;
static pthread_once_t utf8_once = PTHREAD_ONCE_INIT;

static void make_utf8(void) { utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0); }

int tlx_columns(uint32_t scalar) {
    pthread_once(&utf8_once, make_utf8);
    if (utf8 == (locale_t)0)
        return 1;
    locale_t before = uselocale(utf8);
    int width = wcwidth((wchar_t)scalar);
    uselocale(before);
    return width;
}

int tlx_adopt_locale(void) {
    if (setlocale(LC_CTYPE, "") == NULL)
        return 0;
    return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

int tlx_terminal_size(int fd, int *rows, int *columns) {
    struct winsize size = {0};
    if (ioctl(fd, TIOCGWINSZ, &size) < 0)
        return -1;
    if (size.ws_row == 0 || size.ws_col == 0) {
        errno = ENOTTY;
        return -1;
    }
    *rows = size.ws_row;
    *columns = size.ws_col;
    return 0;
}

static const int terminal_signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT, SIGWINCH};

static void fill(sigset_t *set) {
    sigemptyset(set);
    for (size_t index = 0; index < sizeof terminal_signals / sizeof *terminal_signals; index++)
        sigaddset(set, terminal_signals[index]);
}

int tlx_terminal_signals(void) {
    sigset_t set;
    fill(&set);
    if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
        return -1;
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

int tlx_next_signal(int fd) {
    struct signalfd_siginfo info;
    ssize_t size = read(fd, &info, sizeof info);
    if (size < 0)
        return -1;
    return size == sizeof info ? (int)info.ssi_signo : 0;
}

void tlx_take_signal(int signo) {
    struct sigaction action = {.sa_handler = SIG_DFL}, before;
    sigset_t one, mask;
    sigaction(signo, &action, &before);
    sigemptyset(&one);
    sigaddset(&one, signo);
    raise(signo);
    // The pending signal takes effect when it is unblocked here. If it stops the process, this call returns when the
    // process is continued.
    sigprocmask(SIG_UNBLOCK, &one, &mask);
    sigprocmask(SIG_SETMASK, &mask, NULL);
    sigaction(signo, &before, NULL);
}

int tlx_set_echo(int fd, int on)
{
    struct termios now;
    if (tcgetattr(fd, &now) < 0)
        return -1;
    // While the echo is off, keys send no signals either (ISIG), because a signal that ended the process would leave
    // the terminal without echo.
    if (on)
        now.c_lflag |= ECHO | ISIG;
    else
        now.c_lflag &= ~(tcflag_t)(ECHO | ISIG);
    return tcsetattr(fd, TCSAFLUSH, &now);
}
