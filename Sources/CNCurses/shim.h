/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TORPOR_CNCURSES_H
#define TORPOR_CNCURSES_H

// Without this, <ncurses.h> declares no wide characters.
#ifndef NCURSES_WIDECHAR
#define NCURSES_WIDECHAR 1
#endif
#include <ncurses.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>

// Functions of ncurses.h that Swift cannot call, with the reason for each shim.

/// initscr ends the process if the terminal is unknown, and Swift 6 forbids reading the variables stdout and stdin.
/// Returns 0 if the terminal is unknown.
static inline int torpor_nc_start(const char *terminal) { return newterm(terminal, stdout, stdin) != NULL; }

/// Swift 6 forbids reading the variables stdscr, COLORS and COLOR_PAIRS too.
static inline WINDOW *torpor_nc_screen(void) { return stdscr; }
static inline int torpor_nc_colours(void) { return COLORS; }
static inline int torpor_nc_pairs(void) { return COLOR_PAIRS; }

/// ncurses' attributes are macros with casts.
enum { TORPOR_NC_BOLD = 1, TORPOR_NC_DIM = 2, TORPOR_NC_REVERSE = 4, TORPOR_NC_UNDERLINE = 8 };

/// Draws a character with its combining characters, at most CCHARW_MAX scalars. Written in C, because Swift imports the
/// array in cchar_t as a tuple.
static inline void torpor_nc_put(int row, int column, const uint32_t *scalars, int count, int style, short pair) {
    wchar_t text[CCHARW_MAX + 1] = {0};
    cchar_t cell;
    attr_t attributes = (style & TORPOR_NC_BOLD ? A_BOLD : 0) | (style & TORPOR_NC_DIM ? A_DIM : 0)
        | (style & TORPOR_NC_REVERSE ? A_REVERSE : 0) | (style & TORPOR_NC_UNDERLINE ? A_UNDERLINE : 0);
    for (int index = 0; index < count && index < CCHARW_MAX; index++) text[index] = (wchar_t)scalars[index];
    if (setcchar(&cell, text, attributes, pair, NULL) == OK) mvadd_wch(row, column, &cell);
}

/// Reads a key by wget_wch, which takes a wint_t. Returns KEY_CODE_YES for a function key, OK for a character, or ERR
/// if there is none.
static inline int torpor_nc_key(uint32_t *code) {
    wint_t key = 0;
    int kind = get_wch(&key);
    *code = (uint32_t)key;
    return kind;
}

/// Restores the terminal before a fatal signal ends the process. Written in C, because sigaction's handler is in a
/// union.
static void torpor_nc_fall(int signo) {
    endwin();
    signal(signo, SIG_DFL);
    raise(signo);
}

/// Installs handlers that restore the terminal if the program crashes.
static inline void torpor_nc_restore_on_failure(void) {
    const int signals[] = {SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGSEGV, SIGFPE};
    for (unsigned index = 0; index < sizeof signals / sizeof *signals; index++) signal(signals[index], torpor_nc_fall);
}

#endif
