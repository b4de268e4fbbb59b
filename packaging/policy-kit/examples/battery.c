// SPDX-License-Identifier: Apache-2.0

/*
 * A policy in C: on battery, apps with a tag wait.
 *
 * While the machine runs on battery with less charge than `below` percent, apps with the tag `tag` are not launched by
 * themselves, and those that are active go to the background. What a person asks for is never put off.
 *
 *     gcc -O2 -Wall -Wextra -shared -fPIC -I .../Sources/TorporPolicyABI/include -o libBatteryPolicy.so battery.c
 *
 *     [policies.battery]
 *     path = "libBatteryPolicy.so"
 *     options = { tag = "optional", below = 30 }
 */

#include "torpor_policy.h"

#include <stdio.h>
#include <stdlib.h>

#define MINUTE INT64_C(60000000)

struct battery {
    char tag[64];
    int64_t below;
};

static void *create(const torpor_policy_options *options, char *error, size_t error_size)
{
    struct battery *battery = calloc(1, sizeof *battery);
    if (!battery) return NULL;
    strcpy(battery->tag, "optional");
    battery->below = 20;
    for (uint32_t i = 0; i < options->count; i++) {
        const torpor_policy_option *option = torpor_policy_option_at(options, i);
        if (strcmp(option->key, "tag") == 0) {
            if (option->type != TORPOR_OPTION_STRING || strlen(option->text) >= sizeof battery->tag) {
                snprintf(error, error_size, "tag must be a string of less than 64 bytes");
                goto wrong;
            }
            strcpy(battery->tag, option->text);
        } else if (strcmp(option->key, "below") == 0) {
            if (option->type != TORPOR_OPTION_INTEGER || option->integer < 1 || option->integer > 100) {
                snprintf(error, error_size, "below must be a whole number from 1 to 100: it is %s", option->text);
                goto wrong;
            }
            battery->below = option->integer;
        } else {
            snprintf(error, error_size, "%s is not an option of this policy: there are below, tag", option->key);
            goto wrong;
        }
    }
    return battery;
wrong:
    free(battery);
    return NULL;
}

static int is_low(const struct battery *battery, const torpor_policy_system *system)
{
    return TORPOR_POLICY_HAS(system, battery) && system->power == TORPOR_POWER_BATTERY
        && system->battery != TORPOR_UNKNOWN && system->battery < battery->below;
}

static void advise(
    const torpor_policy_reply *reply, uint32_t kind, uint32_t app, uint32_t value, int64_t time, const char *reason)
{
    torpor_policy_advice advice = {
        .size = sizeof advice, .kind = kind, .app = app, .value = value, .time = time, .reason = reason,
    };
    reply->advise(reply, &advice);
}

static int32_t decide(
    void *policy,
    const torpor_policy_view *view,
    const torpor_policy_event *event,
    const torpor_policy_reply *reply)
{
    const struct battery *battery = policy;
    char reason[64];
    snprintf(reason, sizeof reason, "the battery has less than %lld%%", (long long)battery->below);

    if (event->kind == TORPOR_EVENT_LAUNCH) {
        const torpor_policy_app *app = torpor_policy_app_at(view, event->app);
        if (app && event->reason != TORPOR_LAUNCH_BY_USER && is_low(battery, view->system)
            && torpor_policy_has_tag(view, app, battery->tag)) {
            advise(reply, TORPOR_ADVISE_DELAY, event->app, 0, 5 * MINUTE, reason);
        }
        return TORPOR_CONTINUE;
    }
    for (uint32_t place = 0; is_low(battery, view->system) && place < view->app_count; place++) {
        const torpor_policy_app *app = torpor_policy_app_at(view, place);
        if (app && app->state == TORPOR_STATE_ACTIVE && app->goal == TORPOR_STATE_ACTIVE
            && torpor_policy_has_tag(view, app, battery->tag)) {
            advise(reply, TORPOR_ADVISE_GOAL, place, TORPOR_STATE_BACKGROUND, 0, reason);
        }
    }
    /* Nobody tells when the charge falls. */
    advise(reply, TORPOR_ADVISE_ASK_AGAIN, TORPOR_NO_APP, 0, MINUTE, NULL);
    return TORPOR_CONTINUE;
}

static const char *const options[] = {
    "tag", "string", "\"optional\"", "the tag of the apps that wait",
    "below", "integer", "20", "they wait while the battery has less than this many percent",
    NULL,
};

static const torpor_policy policy = {
    .size = sizeof policy,
    .abi = TORPOR_POLICY_ABI,
    .minimum_abi = 1,
    .events = TORPOR_EVENT_BIT(TORPOR_EVENT_STARTED) | TORPOR_EVENT_BIT(TORPOR_EVENT_LAUNCH)
        | TORPOR_EVENT_BIT(TORPOR_EVENT_TIMER),
    .needs = TORPOR_NEEDS_SYSTEM,
    .name = "battery",
    .version = "1.0",
    .summary = "On battery, apps with a tag wait.",
    .options = options,
    .create = create,
    .decide = decide,
    .destroy = free,
};

const torpor_policy *torpor_policy_entry(uint32_t abi)
{
    (void)abi;
    return &policy;
}
