// SPDX-License-Identifier: Apache-2.0

/* Reads JSON from standard input, texts with their length on a line before each: prints each on a line, "invalid" for what
 * is none. With --random SEED COUNT: changes texts at random and reads them, for a build with sanitizers. As a target of
 * libFuzzer with -DFUZZER. */
#include "../torpor_app.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t visit(const torpor_json *json)
{
    size_t all = 1, length;
    const char *string = torpor_json_string(json, &length);
    if (string != NULL && string[length] != '\0')
        abort();
    torpor_json_int(json, 0);
    torpor_json_double(json, 0);
    torpor_json_bool(json, false);
    for (size_t index = 0; index < torpor_json_count(json) && index < 64; index++) {
        const torpor_json *element = torpor_json_at(json, index);
        if (torpor_json_key(element) != NULL && torpor_json_get(json, torpor_json_key(element)) == NULL)
            abort();
        all += visit(element);
    }
    return all;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    torpor_json *json = torpor_json_read((const char *)data, size);
    if (json != NULL)
        visit(json);
    torpor_json_free(json);
    return 0;
}

#ifndef FUZZER
static void print_string(const char *string, size_t length)
{
    putchar('"');
    for (size_t index = 0; index < length; index++) {
        unsigned char byte = (unsigned char)string[index];
        if (byte < 0x20 || byte == '"' || byte == '\\')
            printf("\\u%04x", byte);
        else
            putchar(byte);
    }
    putchar('"');
}

static void print(const torpor_json *json)
{
    size_t length, count = torpor_json_count(json);
    const char *string = torpor_json_string(json, &length);
    if (string != NULL)
        print_string(string, length);
    else if (torpor_json_is_null(json))
        printf("null");
    else if (torpor_json_bool(json, false) || !torpor_json_bool(json, true))
        printf(torpor_json_bool(json, false) ? "true" : "false");
    else if (torpor_json_int(json, 7) == torpor_json_int(json, 8))
        printf("%lld", (long long)torpor_json_int(json, 0));
    else if (torpor_json_double(json, 7) == torpor_json_double(json, 8))
        printf("%.17g", torpor_json_double(json, 0));
    else {
        /* An empty object cannot be told from an empty array, and need not be. */
        bool object = count > 0 && torpor_json_key(torpor_json_at(json, 0)) != NULL;
        putchar(object ? '{' : '[');
        for (size_t index = 0; index < count; index++) {
            const torpor_json *element = torpor_json_at(json, index);
            if (index > 0)
                putchar(',');
            if (object) {
                print_string(torpor_json_key(element), strlen(torpor_json_key(element)));
                putchar(':');
            }
            print(element);
        }
        putchar(object ? '}' : ']');
    }
}

static uint64_t state;

static uint64_t next_random(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static void read_random(long count)
{
    static const char *const seeds[] = {
        "{\"parameters\":{\"message\":{\"id\":1,\"name\":\"didEnterBackground\",\"deadline_ms\":5000,\"parameters\":{}}},"
        "\"continues\":true}",
        "[1,-2.5e3,\"\\ud83d\\ude00\\u00e9\\n\",[[[{\"a\":null}]]],true,false]",
        "{\"error\":\"io.torpor.App.NotInFlight\",\"parameters\":{\"id\":1,\"expected\":null,\"message\":\"\xc3\xa4\"}}",
    };
    static const char special[] = "\"\\{}[],:0123456789eE+-.truefalsn\x80\xc3\xed\xf4\xff\0\x1f u/";
    char text[1024];
    for (long round = 0; round < count; round++) {
        const char *seed = seeds[next_random() % 3];
        size_t size = strlen(seed);
        memcpy(text, seed, size);
        for (uint64_t changes = next_random() % 6; changes > 0 && size > 1; changes--) {
            size_t at = next_random() % size;
            switch (next_random() % 4) {
            case 0: text[at] = special[next_random() % (sizeof special - 1)]; break;
            case 1: text[at] = (char)next_random(); break;
            case 2: memmove(text + at, text + at + 1, size - at - 1), size--; break;
            default: size = at + 1;
            }
        }
        /* A copy of just this size, so that a sanitizer sees every byte too far. */
        char *copy = malloc(size);
        memcpy(copy, text, size);
        LLVMFuzzerTestOneInput((const uint8_t *)copy, size);
        free(copy);
    }
}

int main(int count, char **arguments)
{
    if (count == 4 && strcmp(arguments[1], "--random") == 0) {
        state = strtoull(arguments[2], NULL, 10) | 1;
        read_random(atol(arguments[3]));
        return 0;
    }
    long size;
    while (scanf("%ld", &size) == 1 && size >= 0) {
        getchar();
        /* A copy of just this size, so that a sanitizer sees every byte too far. */
        char *text = malloc((size_t)size + (size == 0));
        if (fread(text, 1, (size_t)size, stdin) != (size_t)size)
            return 1;
        torpor_json *json = torpor_json_read(text, (size_t)size);
        if (json != NULL)
            print(json);
        else
            printf("invalid");
        putchar('\n');
        torpor_json_free(json);
        free(text);
    }
    return 0;
}
#endif
