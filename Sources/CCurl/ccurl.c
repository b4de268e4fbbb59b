// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "ccurl.h"

#include <netinet/in.h>
#include <netinet/ip.h>
#include <openssl/evp.h>
#include <sys/socket.h>

CURLcode ccurl_set_long(CURL *easy, CURLoption option, long value) { return curl_easy_setopt(easy, option, value); }

CURLcode ccurl_set_offset(CURL *easy, CURLoption option, int64_t value)
{
    return curl_easy_setopt(easy, option, (curl_off_t)value);
}

CURLcode ccurl_set_string(CURL *easy, CURLoption option, const char *value)
{
    return curl_easy_setopt(easy, option, value);
}

CURLcode ccurl_set_list(CURL *easy, CURLoption option, struct curl_slist *list)
{
    return curl_easy_setopt(easy, option, list);
}

CURLcode ccurl_set_buffer(CURL *easy, CURLoption option, char *buffer)
{
    return curl_easy_setopt(easy, option, buffer);
}

long ccurl_get_long(CURL *easy, CURLINFO info)
{
    long value = 0;
    curl_easy_getinfo(easy, info, &value);
    return value;
}

int64_t ccurl_get_offset(CURL *easy, CURLINFO info)
{
    curl_off_t value = 0;
    curl_easy_getinfo(easy, info, &value);
    return value;
}

const char *ccurl_get_string(CURL *easy, CURLINFO info)
{
    char *value = NULL;
    curl_easy_getinfo(easy, info, &value);
    return value;
}

CURLcode ccurl_set_callbacks(CURL *easy, void *context, ccurl_bytes header, ccurl_bytes write, ccurl_bytes read,
                             ccurl_seek seek)
{
    CURLcode result = curl_easy_setopt(easy, CURLOPT_HEADERDATA, context);
    if (result == CURLE_OK)
        result = curl_easy_setopt(easy, CURLOPT_WRITEDATA, context);
    if (result == CURLE_OK)
        result = curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, header);
    if (result == CURLE_OK)
        result = curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, write);
    if (result != CURLE_OK || read == NULL)
        return result;
    result = curl_easy_setopt(easy, CURLOPT_READDATA, context);
    if (result == CURLE_OK)
        result = curl_easy_setopt(easy, CURLOPT_READFUNCTION, read);
    if (result == CURLE_OK)
        result = curl_easy_setopt(easy, CURLOPT_SEEKDATA, context);
    if (result == CURLE_OK)
        result = curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, seek);
    return result;
}

static int lower_effort(void *context, curl_socket_t fd, curlsocktype purpose)
{
    (void)context;
    (void)purpose;
    // DSCP 000001, shifted left past the two ECN bits. A socket is either IPv4 or IPv6, so one of the two calls always
    // fails.
    int class = 1 << 2;
    setsockopt(fd, IPPROTO_IP, IP_TOS, &class, sizeof class);
    setsockopt(fd, IPPROTO_IPV6, IPV6_TCLASS, &class, sizeof class);
    return CURL_SOCKOPT_OK;
}

CURLcode ccurl_set_lower_effort(CURL *easy) { return curl_easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, lower_effort); }

int ccurl_next_done(CURLM *multi, CURL **easy)
{
    int left;
    for (CURLMsg *message; (message = curl_multi_info_read(multi, &left)) != NULL;) {
        if (message->msg != CURLMSG_DONE)
            continue;
        *easy = message->easy_handle;
        return (int)message->data.result;
    }
    return -1;
}

CURLMcode ccurl_multi_set_long(CURLM *multi, CURLMoption option, long value)
{
    return curl_multi_setopt(multi, option, value);
}

ccurl_digest *ccurl_digest_new(void)
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    if (context != NULL)
        EVP_DigestInit_ex(context, EVP_sha256(), NULL);
    return (ccurl_digest *)context;
}

void ccurl_digest_reset(ccurl_digest *digest) { EVP_DigestInit_ex((EVP_MD_CTX *)digest, EVP_sha256(), NULL); }

void ccurl_digest_update(ccurl_digest *digest, const void *bytes, size_t count)
{
    EVP_DigestUpdate((EVP_MD_CTX *)digest, bytes, count);
}

void ccurl_digest_finish(ccurl_digest *digest, uint8_t *result)
{
    unsigned int size = 32;
    EVP_DigestFinal_ex((EVP_MD_CTX *)digest, result, &size);
}

void ccurl_digest_free(ccurl_digest *digest) { EVP_MD_CTX_free((EVP_MD_CTX *)digest); }
