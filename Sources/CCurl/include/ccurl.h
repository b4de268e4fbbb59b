/* SPDX-License-Identifier: Apache-2.0 */

/* libcurl for Swift, which cannot call variadic functions, and SHA-256 from libcrypto, which libcurl uses. */

#ifndef TORPOR_CCURL_H
#define TORPOR_CCURL_H

#include <curl/curl.h>
#include <stddef.h>
#include <stdint.h>

/* curl_easy_setopt and curl_easy_getinfo are variadic: one function for each type of their last argument. */
CURLcode ccurl_set_long(CURL *easy, CURLoption option, long value);
CURLcode ccurl_set_offset(CURL *easy, CURLoption option, int64_t value);
CURLcode ccurl_set_string(CURL *easy, CURLoption option, const char *value);
CURLcode ccurl_set_list(CURL *easy, CURLoption option, struct curl_slist *list);
CURLcode ccurl_set_buffer(CURL *easy, CURLoption option, char *buffer);
long ccurl_get_long(CURL *easy, CURLINFO info);
int64_t ccurl_get_offset(CURL *easy, CURLINFO info);
/* A value of the handle as text; NULL if there is none. The handle owns the text. */
const char *ccurl_get_string(CURL *easy, CURLINFO info);

typedef size_t (*ccurl_bytes)(char *bytes, size_t size, size_t count, void *context);
typedef int (*ccurl_seek)(void *context, curl_off_t offset, int origin);

/* Macros with casts, which Swift does not import. */
static const unsigned long ccurl_auth_basic = CURLAUTH_BASIC;
static const unsigned long ccurl_auth_digest = CURLAUTH_DIGEST;

/* Callbacks for each header line, for bytes of the body, and for bytes to send (NULL if none are sent). */
CURLcode ccurl_set_callbacks(CURL *easy, void *context, ccurl_bytes header, ccurl_bytes write, ccurl_bytes read,
                             ccurl_seek seek);

/* Makes the sockets of a handle send with DSCP LE (RFC 8622, lower effort). */
CURLcode ccurl_set_lower_effort(CURL *easy);

/* The result of the next finished handle, or -1 if there is none. Swift cannot read CURLMsg, which contains a union. */
int ccurl_next_done(CURLM *multi, CURL **easy);

/* curl_multi_setopt is variadic. */
CURLMcode ccurl_multi_set_long(CURLM *multi, CURLMoption option, long value);

/* Incremental SHA-256. NULL: out of memory. */
typedef struct ccurl_digest ccurl_digest;
ccurl_digest *ccurl_digest_new(void);
void ccurl_digest_reset(ccurl_digest *digest);
void ccurl_digest_update(ccurl_digest *digest, const void *bytes, size_t count);
/* Writes 32 bytes. Afterwards the digest can only be reset or freed. */
void ccurl_digest_finish(ccurl_digest *digest, uint8_t *result);
void ccurl_digest_free(ccurl_digest *digest);

#endif
