/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TORPOR_CSQLITE_H
#define TORPOR_CSQLITE_H

#include <sqlite3.h>

// Functions of sqlite3.h that Swift cannot call, with the reason for each shim.

/// Swift does not import SQLITE_TRANSIENT, a cast of -1 to a function pointer, which makes SQLite copy the text. NULL
/// binds an empty text.
static inline int torpor_sqlite_bind_text(sqlite3_stmt *statement, int index, const char *text, int length) {
    return sqlite3_bind_text(statement, index, text ? text : "", length, SQLITE_TRANSIENT);
}

/// sqlite3_db_config is variadic. With `on`, closing the last connection does not checkpoint the write-ahead log.
static inline int torpor_sqlite_keep_log_on_close(sqlite3 *database, int on) {
    return sqlite3_db_config(database, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, on, (int *)0);
}

/// sqlite3_config is variadic. Makes SQLite not count its memory, for which it locks a mutex at each allocation. Has no
/// effect once SQLite is in use.
static inline void torpor_sqlite_leave_memory_uncounted(void) { (void)sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); }

#endif
