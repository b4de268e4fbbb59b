// SPDX-License-Identifier: Apache-2.0

// Says what it was given: for each event a piece of advice, and at the first event of kind TIMER all of its options.

#include "policy.h"

static struct {
    char text[4096];
} kept;

static const char *const described[] = {
    "greeting", "text",    "hello", "What it says first.", "number", "integer", "0", "Nothing.", NULL,
};

static void *create(const torpor_policy_options *options, char *error, size_t size)
{
    const torpor_policy_option *refuse = torpor_policy_option_named(options, "refuse");
    if (refuse != NULL) {
        snprintf(error, size, "%s", refuse->text);
        return NULL;
    }
    for (uint32_t i = 0; i < options->count; i++) {
        const torpor_policy_option *option = torpor_policy_option_at(options, i);
        size_t used = strlen(kept.text);
        snprintf(kept.text + used, sizeof kept.text - used, "%s=%s/%u/%lld/%g;", option->key, option->text, option->type,
                 (long long)option->integer, option->number);
    }
    return &kept;
}

static int32_t decide(void *policy, const torpor_policy_view *view, const torpor_policy_event *event,
                      const torpor_policy_reply *reply)
{
    if (policy != &kept)
        abort();
    const torpor_policy_app *app = torpor_policy_app_at(view, event->app);
    if (event->kind == TORPOR_EVENT_TIMER) {
        advise(reply, TORPOR_ADVISE_ASK_AGAIN, TORPOR_NO_APP, view->app_count, view->system->now, kept.text);
        // Longer reasons are cut.
        char line[300];
        memset(line, 'x', sizeof line - 1);
        line[sizeof line - 1] = 0;
        advise(reply, 999, 0, 0, INT64_MIN, line);
        advise(reply, TORPOR_ADVISE_ADMIT, 0, 0, 0, "one\ntwo \033[31mred \xff");
    } else if (event->kind != TORPOR_EVENT_PRESSURE) {
        advise(reply, TORPOR_ADVISE_GOAL, event->app, event->to, event->delay,
               app != NULL ? torpor_policy_name(view, app) : NULL);
    }
    return event->from == 1 ? TORPOR_DECIDED : TORPOR_CONTINUE;
}

static void destroy(void *policy)
{
    if (policy == &kept)
        fprintf(stderr, "farewell\n");
}

static const torpor_policy table = {
    .size = sizeof table,
    .abi = TORPOR_POLICY_ABI,
    .minimum_abi = 1,
    .events = TORPOR_EVENT_BIT(TORPOR_EVENT_STATE) | TORPOR_EVENT_BIT(TORPOR_EVENT_TIMER),
    .needs = TORPOR_NEEDS_MEMORY,
    .name = "echo",
    .version = "1.2.3",
    .summary = "Says what it was given.",
    .options = described,
    .create = create,
    .decide = decide,
    .destroy = destroy,
};

const torpor_policy *torpor_policy_entry(uint32_t abi) { return abi >= 1 ? &table : NULL; }
