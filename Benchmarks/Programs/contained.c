// SPDX-License-Identifier: Apache-2.0

// A server in a container: contained PORT. It answers each request with the number of requests that this process has had.
#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void end(int number)
{
    (void)number;
    _exit(0);
}

int main(int count, char **words)
{
    // The first process of a container ends by no signal that it does not handle.
    signal(SIGTERM, end);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_ANY)};
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
    if (count < 2 || listener < 0)
        return 2;
    address.sin_port = htons((in_port_t)atoi(words[1]));
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) != 0 || listen(listener, 64) != 0)
        return 1;
    for (long requests = 1;; requests++) {
        int client = accept(listener, NULL, NULL);
        char text[1024], body[32];
        if (client < 0)
            return 1;
        if (read(client, text, sizeof text) > 0) {
            snprintf(body, sizeof body, "%ld", requests);
            dprintf(client, "HTTP/1.0 200 OK\r\nContent-Length: %zu\r\n\r\n%s", strlen(body), body);
        }
        close(client);
    }
}
