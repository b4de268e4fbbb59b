/* SPDX-License-Identifier: Apache-2.0 */

#pragma once

#include <stddef.h>
#include <stdint.h>

// TOML 1.0, parsed by toml++ into plain structures that Swift can read.
// The document owns everything; ctoml_free frees it.

#ifdef __cplusplus
extern "C" {
#endif

typedef enum ctoml_type {
    CTOML_TABLE = 0,
    CTOML_ARRAY = 1,
    CTOML_STRING = 2,
    CTOML_INTEGER = 3,
    CTOML_FLOAT = 4,
    CTOML_BOOLEAN = 5,
    CTOML_DATE = 6,
    CTOML_TIME = 7,
    CTOML_DATE_TIME = 8,        // with an offset
    CTOML_LOCAL_DATE_TIME = 9,  // without an offset
} ctoml_type;

typedef struct ctoml_node {
    ctoml_type type;
    // The value's position: lines from 1, columns from 1 in characters; 0 if unknown.
    uint32_t line;
    uint32_t column;
    // The key's position, for a member of a table.
    uint32_t key_line;
    uint32_t key_column;
    // The key of a member of a table, else NULL. It may contain NUL.
    const char *key;
    size_t key_length;
    // The bytes of a string, or a date or time in the form of RFC 3339. They may contain NUL.
    const char *text;
    size_t text_length;
    int64_t integer;  // also 0 or 1 for a boolean
    double real;
    // Members of a table in the file's order, or elements of an array.
    size_t count;
    const struct ctoml_node *children;
} ctoml_node;

typedef struct ctoml_document {
    // Whether the text is valid; if not, the root is empty and `error` is the reason.
    int valid;
    ctoml_node root;
    const char *error;
    size_t error_length;
    uint32_t error_line;
    uint32_t error_column;
} ctoml_document;

// Parses UTF-8. Never returns NULL: if memory runs out, the program aborts.
ctoml_document *ctoml_parse(const char *bytes, size_t length);
void ctoml_free(ctoml_document *document);

#ifdef __cplusplus
}
#endif
