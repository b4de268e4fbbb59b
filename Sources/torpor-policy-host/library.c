// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "host.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const torpor_policy *host_policy;
void *host_policy_state;

#define STRING(number) #number
#define DESCRIPTOR_PATH(number) "/proc/self/fd/" STRING(number)
#define LIBRARY DESCRIPTOR_PATH(TORPOR_POLICY_HOST_LIBRARY)

static bool by_path;
static void *library;

void host_library_locate(const struct host_load *load)
{
    struct stat given, found;
    if (fstat(TORPOR_POLICY_HOST_LIBRARY, &given) < 0)
        host_give_up("there is no library to load");
    int fd = open(load->path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    // If the library is opened by its path, it finds other files beside it. Do this only if the file was not replaced
    // since the parent has checked it.
    by_path = fd >= 0 && fstat(fd, &found) == 0 && found.st_dev == given.st_dev && found.st_ino == given.st_ino;
    if (fd < 0 && errno == EACCES) {
        fd = open(LIBRARY, O_RDONLY | O_CLOEXEC);
        if (fd < 0 && errno == EACCES)
            host_refuse("%s may not be read by user %u, whom policies run as: chmod a+r %s", load->path, geteuid(),
                        load->path);
    }
    if (fd >= 0)
        close(fd);
}

// dlerror(3), without the name of the file that was passed to dlopen.
static const char *complaint(const char *name)
{
    const char *text = dlerror();
    if (text == NULL)
        return "the dynamic linker does not say why";
    size_t size = strlen(name);
    return strncmp(text, name, size) == 0 && strncmp(text + size, ": ", 2) == 0 ? text + size + 2 : text;
}

void host_library_open(const struct host_load *load)
{
    const char *name = by_path ? load->path : LIBRARY;
    library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library != NULL)
        return;
    const char *text = complaint(name);
    // The folders named here are those that the first Landlock ruleset allows.
    host_refuse("%s cannot be opened: %s%s", load->path, text,
                strstr(text, "cannot open shared object file") == NULL
                    ? ""
                    : "; the libraries that it needs must lie beside it, in a folder of its RUNPATH, or in /usr/lib");
}

static bool is_name(const char *text, size_t least)
{
    size_t size = strnlen(text, TORPOR_POLICY_NAME_LIMIT + 1);
    return size >= least && size <= TORPOR_POLICY_NAME_LIMIT;
}

static void check(const torpor_policy *policy, const char *path)
{
    if (policy == NULL)
        host_refuse("%s says that it cannot work with this supervisor, which has version %u of the policy interface: "
                    "install a version of the policy that can",
                    path, TORPOR_POLICY_ABI);
    if (!TORPOR_POLICY_HAS(policy, minimum_abi))
        host_refuse("%s describes itself in %u bytes, which hold no version: build it against torpor_policy.h", path,
                    policy->size);
    if (policy->minimum_abi > TORPOR_POLICY_ABI)
        host_refuse("%s needs version %u of the policy interface, and this supervisor has version %u: upgrade Torpor, or "
                    "install a version of the policy for it",
                    path, policy->minimum_abi, TORPOR_POLICY_ABI);
    if (policy->abi == 0)
        host_refuse("%s says that it was built for version 0 of the policy interface, which there never was: set abi to "
                    "TORPOR_POLICY_ABI",
                    path);
    if (!TORPOR_POLICY_HAS(policy, decide) || policy->create == NULL || policy->decide == NULL)
        host_refuse("%s has no create or no decide: a policy needs both", path);
    if (policy->name == NULL || !is_name(policy->name, 1) || (policy->version != NULL && !is_name(policy->version, 0)))
        host_refuse("%s needs a name of 1 to %u bytes, and a version of at most %u", path, TORPOR_POLICY_NAME_LIMIT,
                    TORPOR_POLICY_NAME_LIMIT);
}

static void create(const struct host_load *load)
{
    torpor_policy_options options = {
        .size = sizeof options,
        .count = load->option_count,
        .option_size = sizeof(torpor_policy_option),
        .options = load->options,
    };
    char error[TORPOR_POLICY_SENTENCE_LIMIT + 1] = "";
    host_policy_state = host_policy->create(&options, error, sizeof error);
    if (host_policy_state != NULL)
        return;
    error[sizeof error - 1] = 0;
    if (error[0] == 0)
        host_refuse("%s does not accept its options, and does not say why", load->path);
    host_refuse("%s", error);
}

// Appends a text with its NUL; false if it does not fit.
static bool add(char *message, size_t *used, const char *text, size_t limit)
{
    size_t size = text == NULL ? 0 : strnlen(text, limit);
    if (*used + size + 1 > TORPOR_POLICY_WIRE_LIMIT)
        return false;
    memcpy(message + *used, text == NULL ? "" : text, size);
    *used += size;
    message[(*used)++] = 0;
    return true;
}

static uint32_t add_descriptions(char *message, size_t *used)
{
    uint32_t count = 0;
    if (host_policy->options == NULL)
        return 0;
    while (count < 4 * TORPOR_POLICY_OPTION_LIMIT) {
        size_t before = *used;
        for (uint32_t i = 0; i < 4; i++) {
            const char *text = host_policy->options[count + i];
            if (text == NULL || !add(message, used, text, TORPOR_POLICY_SENTENCE_LIMIT)) {
                *used = before;
                return count;
            }
        }
        count += 4;
    }
    return count;
}

void host_library_start(const struct host_load *load, uint32_t confined)
{
    static char message[TORPOR_POLICY_WIRE_LIMIT];
    const torpor_policy *(*entry)(uint32_t) = NULL;
    *(void **)(&entry) = dlsym(library, TORPOR_POLICY_ENTRY);
    if (entry == NULL)
        host_refuse("%s is a library, but no policy: it has no function " TORPOR_POLICY_ENTRY, load->path);
    host_policy = entry(TORPOR_POLICY_ABI);
    check(host_policy, load->path);
    create(load);
    torpor_policy_wire_loaded loaded = {
        .header = {.type = TORPOR_POLICY_LOADED},
        .abi = host_policy->abi,
        .events = host_policy->events,
        .needs = host_policy->needs,
        .confinement = confined,
    };
    size_t used = sizeof loaded;
    add(message, &used, host_policy->name, TORPOR_POLICY_NAME_LIMIT);
    add(message, &used, host_policy->version, TORPOR_POLICY_NAME_LIMIT);
    add(message, &used, host_policy->summary, TORPOR_POLICY_SENTENCE_LIMIT);
    loaded.descriptions = add_descriptions(message, &used);
    memcpy(message, &loaded, sizeof loaded);
    host_send(message, used);
}
