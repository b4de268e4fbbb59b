// SPDX-License-Identifier: Apache-2.0

/* counter PORT: a web server that counts who comes, by one poll loop, as an app of Torpor.
 *
 * It saves the count when it goes to the background, so that it goes on counting where it was after it was evicted, has
 * crashed or the machine was booted; a background task keeps it from being stopped in the middle of an answer. GET /
 * counts, GET /health says whether it is in use (200) or about to go out of it (503), for who hands out the visitors. */
#define _POSIX_C_SOURCE 200809L
#include "torpor_app.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

struct counter {
    int port;
    int listener; /* -1 before the app has its count back. */
    long visits;
    bool active;
    bool ends;
};

static torpor_result save(torpor_app *app, torpor_message *message, void *context)
{
    struct counter *counter = context;
    char text[32];
    int length = snprintf(text, sizeof text, "%ld\n", counter->visits);
    if (torpor_app_save_state(app, text, (size_t)length) == 0)
        return TORPOR_DONE;
    static char problem[256];
    torpor_app_last_error(app, problem, sizeof problem);
    message->text = problem;
    return TORPOR_FAILED;
}

static torpor_result restore(torpor_app *app, torpor_message *message, void *context)
{
    (void)app;
    struct counter *counter = context;
    size_t size;
    char *text = torpor_app_read_state(message, &size);
    if (text == NULL) {
        message->text = strerror(errno);
        return TORPOR_FAILED;
    }
    counter->visits = strtol(text, NULL, 10);
    free(text);
    return TORPOR_DONE;
}

static torpor_result become_active(torpor_app *app, torpor_message *message, void *context)
{
    (void)app;
    (void)message;
    ((struct counter *)context)->active = true;
    return TORPOR_DONE;
}

static torpor_result resign_active(torpor_app *app, torpor_message *message, void *context)
{
    (void)app;
    (void)message;
    ((struct counter *)context)->active = false;
    return TORPOR_DONE;
}

static torpor_result terminate(torpor_app *app, torpor_message *message, void *context)
{
    ((struct counter *)context)->ends = true;
    /* Alone there is nobody to keep it. */
    return torpor_app_supervised(app) ? save(app, message, context) : TORPOR_DONE;
}

static void problem(torpor_app *app, const char *sentence, void *context)
{
    (void)app;
    (void)context;
    fprintf(stderr, "%s\n", sentence);
}

static int listen_on(int port)
{
    struct sockaddr_in address;
    memset(&address, 0, sizeof address);
    address.sin_family = AF_INET;
    address.sin_port = htons((uint16_t)port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) != 0 || listen(fd, 64) != 0) {
        fprintf(stderr, "counter: port %d cannot be listened on: %s\n", port, strerror(errno));
        exit(1);
    }
    return fd;
}

/* Visitors are let in here, after restore_state. */
static torpor_result finish_launching(torpor_app *app, torpor_message *message, void *context)
{
    (void)app;
    (void)message;
    struct counter *counter = context;
    counter->listener = listen_on(counter->port);
    return TORPOR_DONE;
}

static volatile sig_atomic_t terminated;

static void on_signal(int number)
{
    (void)number;
    terminated = 1;
}

static void serve(torpor_app *app, struct counter *counter, int listener)
{
    int visitor = accept(listener, NULL, NULL);
    if (visitor < 0)
        return;
    int64_t task = torpor_app_begin_task(app, "answer a visitor", NULL);
    /* Nobody keeps the others waiting for longer than this. */
    struct timeval patience = {1, 0};
    setsockopt(visitor, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(visitor, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    char request[2048], body[64], reply[256];
    ssize_t length = recv(visitor, request, sizeof request - 1, 0);
    request[length > 0 ? length : 0] = '\0';
    bool health = strncmp(request, "GET /health ", 12) == 0;
    if (health)
        snprintf(body, sizeof body, "%s\n", counter->active ? "active" : "not active");
    else
        snprintf(body, sizeof body, "%ld\n", ++counter->visits);
    int size = snprintf(reply, sizeof reply, "HTTP/1.0 %s\r\nContent-Length: %zu\r\n\r\n%s",
                        health && !counter->active ? "503 Service Unavailable" : "200 OK", strlen(body), body);
    send(visitor, reply, (size_t)size, MSG_NOSIGNAL);
    close(visitor);
    if (task > 0)
        torpor_app_end_task(app, task);
}

int main(int count, char **arguments)
{
    struct counter counter = {.port = count > 1 ? atoi(arguments[1]) : 8080, .listener = -1};
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    const torpor_delegate delegate = {
        .restore_state = restore,
        .did_finish_launching = finish_launching,
        .did_become_active = become_active,
        .will_resign_active = resign_active,
        .did_enter_background = save,
        .will_terminate = terminate,
        .problem = problem,
    };
    torpor_app *app = torpor_app_open(&delegate, &counter, 0);
    if (app == NULL) {
        perror("counter");
        return 1;
    }
    while (!terminated && !counter.ends) {
        struct pollfd watched[2] = {{torpor_app_fd(app), POLLIN, 0}, {counter.listener, POLLIN, 0}};
        if (poll(watched, 2, -1) < 0)
            continue;
        if (watched[0].revents != 0)
            torpor_app_dispatch(app);
        if (watched[1].revents != 0)
            serve(app, &counter, counter.listener);
    }
    torpor_app_close(app);
    return 0;
}
