/* SPDX-License-Identifier: Apache-2.0 */

/* torpor_json.h: JSON, as far as messages to an app need it. torpor_app.h includes it. */
#ifndef TORPOR_JSON_H
#define TORPOR_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A JSON value in a message's parameters. Each function below accepts NULL, an absent value, and then returns the
 * same as for a value of the wrong type. So calls can be nested. */
typedef struct torpor_json torpor_json;

/* Parses a JSON text (RFC 8259) of `size` bytes. Returns NULL if the text is not JSON, is nested deeper than 64, has
 * an unpaired surrogate or invalid UTF-8, or if memory is short. Free the result with torpor_json_free, which also
 * frees the values inside. */
torpor_json *torpor_json_read(const char *text, size_t size);
void torpor_json_free(torpor_json *json);

/* The value of a key of an object; NULL if the object lacks the key. If a key occurs twice, its first value. */
const torpor_json *torpor_json_get(const torpor_json *object, const char *key);
/* The number of elements of an array or an object, and the element with an index, from 0. */
size_t torpor_json_count(const torpor_json *json);
const torpor_json *torpor_json_at(const torpor_json *json, size_t index);
/* The key of an element of an object. */
const char *torpor_json_key(const torpor_json *json);
bool torpor_json_is_null(const torpor_json *json);
/* A string in UTF-8, ended by NUL. Stores its length in *length unless length is NULL: the string itself may contain
 * NULs. */
const char *torpor_json_string(const torpor_json *json, size_t *length);
/* A number; `otherwise` for any other value. A number is an integer if it has no fraction and no exponent, and fits. */
int64_t torpor_json_int(const torpor_json *json, int64_t otherwise);
double torpor_json_double(const torpor_json *json, double otherwise);
bool torpor_json_bool(const torpor_json *json, bool otherwise);

#ifdef __cplusplus
}
#endif

#endif
