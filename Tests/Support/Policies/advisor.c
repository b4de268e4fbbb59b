// SPDX-License-Identifier: Apache-2.0

// Advises what its options say: rules.N.on (number of an event), .kind, .app (a name; "" for the event's, a number for a
// place), .value, .time, .reason, .times (how often, always if it is missing). The value -1 changes from active to
// background and back each time.

#include "policy.h"

struct rule {
    long long on, kind, value, time, times;
    char app[64], reason[128];
};

static struct {
    struct rule rules[16];
    unsigned count;
    unsigned flips;
} self;

static long long integer(const torpor_policy_options *options, unsigned rule, const char *name, long long missing)
{
    char key[64];
    snprintf(key, sizeof key, "rules.%u.%s", rule, name);
    const torpor_policy_option *option = torpor_policy_option_named(options, key);
    return option == NULL ? missing : option->integer;
}

static void text(const torpor_policy_options *options, unsigned rule, const char *name, char *into, size_t size)
{
    char key[64];
    snprintf(key, sizeof key, "rules.%u.%s", rule, name);
    const torpor_policy_option *option = torpor_policy_option_named(options, key);
    snprintf(into, size, "%s", option == NULL ? "" : option->text);
}

static void *create(const torpor_policy_options *options, char *error, size_t size)
{
    (void)error;
    (void)size;
    for (unsigned i = 0; i < 16 && integer(options, i, "on", -1) >= 0; i++) {
        struct rule *rule = &self.rules[self.count++];
        rule->on = integer(options, i, "on", 0);
        rule->kind = integer(options, i, "kind", 0);
        rule->value = integer(options, i, "value", 0);
        rule->time = integer(options, i, "time", 0);
        rule->times = integer(options, i, "times", INT64_MAX);
        text(options, i, "app", rule->app, sizeof rule->app);
        text(options, i, "reason", rule->reason, sizeof rule->reason);
    }
    return &self;
}

static uint32_t place(const torpor_policy_view *view, const torpor_policy_event *event, const char *name)
{
    if (name[0] == 0) return event->app;
    for (uint32_t i = 0; i < view->app_count; i++) {
        const torpor_policy_app *app = torpor_policy_app_at(view, i);
        if (app != NULL && strcmp(torpor_policy_name(view, app), name) == 0) return i;
    }
    return (uint32_t)strtoul(name, NULL, 10);
}

static int32_t decide(void *policy, const torpor_policy_view *view, const torpor_policy_event *event,
                      const torpor_policy_reply *reply)
{
    (void)policy;
    for (unsigned i = 0; i < self.count; i++) {
        struct rule *rule = &self.rules[i];
        if (rule->on != event->kind || rule->times <= 0) continue;
        rule->times--;
        uint32_t value = (uint32_t)rule->value;
        if (rule->value == -1) value = self.flips++ % 2 == 0 ? TORPOR_STATE_BACKGROUND : TORPOR_STATE_ACTIVE;
        advise(reply, (uint32_t)rule->kind, place(view, event, rule->app), value, rule->time,
               rule->reason[0] == 0 ? NULL : rule->reason);
    }
    return TORPOR_CONTINUE;
}

POLICY("advisor", create, decide)
