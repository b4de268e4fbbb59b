// SPDX-License-Identifier: Apache-2.0

// Deletes the rules of nftables that netavark (since 1.10, where it is told or built to use nftables) made for the
// published ports of a container.
//
// netavark's table is `inet netavark`. For each published port, the chain of the network has a rule that sends
// connections to the container's address (dnat), and rules that mark connections from this machine and from the
// network. The chain NETAVARK-HOSTPORT-DNAT has a rule that jumps to the network's chain. netavark deletes a network's
// chain together with the last container, which fails while a rule still jumps to it.

#define _GNU_SOURCE
#include "container.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_RULES = 8192 };

struct rule {
    const char *chain, *text, *handle;
    /* The length of the conditions at the beginning of a rule with dnat, and where the rule sends connections; NULL
       for other rules. */
    size_t conditions;
    const char *target;
    bool is_deleted;
};

static struct rule rules[MOST_RULES];

/* Reads what `nft --handle list table` printed: a line for each rule, with `# handle NUMBER` at its end. Returns the
   number of rules. */
static size_t read_rules(char *listing) {
    static const char handle[] = " # handle ", to_v4[] = " dnat ip to ", to_v6[] = " dnat ip6 to ";
    const char *chain = NULL;
    size_t count = 0;
    char *rest = NULL;
    for (char *next = strtok_r(listing, "\n", &rest); next != NULL && count < MOST_RULES;
         next = strtok_r(NULL, "\n", &rest)) {
        char *line = next + strspn(next, " \t");
        char *end = strstr(line, handle);
        if (end == NULL) continue;
        *end = 0;
        if (strncmp(line, "chain ", 6) == 0) {
            line[6 + strcspn(line + 6, " ")] = 0;
            chain = line + 6;
            continue;
        }
        if (chain == NULL || line[strlen(line) - 1] == '{') continue;
        struct rule *rule = &rules[count++];
        *rule = (struct rule){.chain = chain, .text = line, .handle = end + strlen(handle)};
        const char *dnat = strstr(line, to_v4);
        if (dnat != NULL) rule->target = dnat + strlen(to_v4);
        else if ((dnat = strstr(line, to_v6)) != NULL) rule->target = dnat + strlen(to_v6);
        if (dnat != NULL) rule->conditions = (size_t)(dnat - line);
    }
    return count;
}

static bool leads_to(const struct rule *rule, char addresses[][ADDRESS_SIZE], int count) {
    for (int i = 0; rule->target != NULL && i < count; i++)
        if (strncmp(rule->target, addresses[i], strlen(addresses[i])) == 0) return true;
    return false;
}

/* Whether a rule only prepares connections for a rule with dnat: it marks them, or jumps to that rule's chain. */
static bool prepares(const struct rule *rule, const struct rule *other) {
    const char *jump = strstr(rule->text, " jump ");
    if (jump == NULL) return false;
    size_t length = (size_t)(jump - rule->text), conditions = other->conditions;
    const char *target = jump + strlen(" jump ");
    if (strcmp(rule->chain, "NETAVARK-HOSTPORT-DNAT") == 0)
        return strcmp(target, other->chain) == 0 && length == conditions &&
               strncmp(rule->text, other->text, length) == 0;
    // A rule that marks has one more condition, before the others: where connections come from.
    return strcmp(rule->chain, other->chain) == 0 && strcmp(target, "NETAVARK-HOSTPORT-SETMARK") == 0 &&
           length > conditions && jump[-(long)conditions - 1] == ' ' &&
           strncmp(jump - conditions, other->text, conditions) == 0;
}

/* Whether another container has a rule with the same conditions in the same chain. */
static bool is_taken_over(const struct rule *rule, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (!rules[i].is_deleted && rules[i].target != NULL && rules[i].conditions == rule->conditions &&
            strcmp(rules[i].chain, rule->chain) == 0 && strncmp(rules[i].text, rule->text, rule->conditions) == 0)
            return true;
    return false;
}

static void delete_one(struct rule *rule) {
    static const char *const command[] = {"nft", "delete", "rule", "inet", "netavark"};
    struct words words = {0};
    char answer[64];
    for (size_t i = 0; i < sizeof command / sizeof *command; i++) add(&words, command[i]);
    add(&words, rule->chain);
    add(&words, "handle");
    add(&words, rule->handle);
    podman(&words, OUTPUT_KEPT, answer, sizeof answer, QUERY_SECONDS, NULL);
    rule->is_deleted = true;
}

void delete_nftables_rules(char addresses[][ADDRESS_SIZE], int count) {
    static const char *const command[] = {"nft", "--handle", "list", "table", "inet", "netavark"};
    static char listing[1 << 20];
    struct words words = {0};
    if (count == 0) return;
    for (size_t i = 0; i < sizeof command / sizeof *command; i++) add(&words, command[i]);
    if (podman(&words, OUTPUT_KEPT, listing, sizeof listing, QUERY_SECONDS, NULL) != 0) return;
    size_t total = read_rules(listing);
    for (size_t i = 0; i < total; i++)
        if (leads_to(&rules[i], addresses, count)) delete_one(&rules[i]);
    for (size_t i = 0; i < total; i++) {
        if (!leads_to(&rules[i], addresses, count) || is_taken_over(&rules[i], total)) continue;
        for (size_t n = 0; n < total; n++)
            if (!rules[n].is_deleted && prepares(&rules[n], &rules[i])) delete_one(&rules[n]);
    }
}
