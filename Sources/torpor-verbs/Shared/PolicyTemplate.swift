// SPDX-License-Identifier: Apache-2.0

import EverydayVerbs

/// The files of a new policy's package. The package can be built without changes, and contains what most policies need.
struct PolicyTemplate {
    let names: PolicyNames
    /// The path of the folder with Torpor's policy kit.
    let kit: String

    var filesInSwift: [(path: String, text: String)] {
        [
            ("Package.swift", package), ("Sources/\(names.type)/\(names.type).swift", swiftSource),
            ("README.md", readme(inC: false)),
        ]
    }

    var filesInC: [(path: String, text: String)] {
        [("Makefile", makefile), ("\(names.name).c", cSource), ("README.md", readme(inC: true))]
    }

    /// The path of the library that the build creates.
    func builtLibrary(inC: Bool) -> String { inC ? names.library : ".build/release/\(names.library)" }

    // MARK: Swift

    private var package: String {
        """
        // swift-tools-version: 6.2

        import PackageDescription

        let package = Package(
            name: "\(names.name)",
            products: [
                .library(name: "\(names.type)", type: .dynamic, targets: ["\(names.type)"])
            ],
            dependencies: [
                .package(name: "policy-kit", path: \(Self.literal(kit)))
            ],
            targets: [
                .target(
                    name: "\(names.type)",
                    dependencies: [.product(name: "TorporPolicyKit", package: "policy-kit")],
                    // Swift need not be installed where the policy runs.
                    linkerSettings: [.unsafeFlags(["-static-stdlib"], .when(configuration: .release))]
                )
            ]
        )

        """
    }

    private var swiftSource: String {
        """
        import TorporPolicyKit

        /// The function that the supervisor looks up.
        @c(torpor_policy_entry)
        public func entry(_ abi: UInt32) -> UnsafePointer<torpor_policy>? { \(names.type).exported(to: abi) }

        /// Suspends apps that have used up their time in the background.
        struct \(names.type): Policy {
            static let description = PolicyDescription(
                name: "\(names.name)",
                version: "0.1.0",
                summary: "Apps in the background are suspended when their time there is used up.",
                events: [.started, .timeUsed],
                options: [
                    OptionDescription("keep", "list of apps", default: "[]", "apps that keep running in the background")
                ]
            )

            let keep: [Selector]

            init(options: Options) throws(PolicyError) {
                keep = try options.selectors("keep")
            }

            mutating func decide(_ event: Event, in view: View, advice: inout Advice) -> Verdict {
                switch event {
                case .started:
                    // Apps that had used up their time before get no event.
                    for app in view.apps {
                        if let end = app.grantEnds, end <= view.now { suspend(app, &advice) }
                    }
                case .timeUsed(let app):
                    suspend(app, &advice)
                default:
                    break
                }
                return .continue
            }

            private func suspend(_ app: App, _ advice: inout Advice) {
                // An app that no event wakes would sleep until a person wakes it.
                guard app.canBeSuspended, !app.isNeverWoken, !app.matches(keep) else { return }
                advice.send(app, to: .suspended, because: "its time in the background is used up")
            }
        }

        """
    }

    // MARK: C

    private var makefile: String {
        """
        # Where torpor_policy.h is.
        INCLUDE ?= \(Self.inMake(kit))/Sources/TorporPolicyABI/include
        CFLAGS ?= -O2 -g -Wall -Wextra

        \(names.library): \(names.name).c
        \t$(CC) $(CFLAGS) -shared -fPIC -I"$(INCLUDE)" -o $@ $<

        .PHONY: clean
        clean:
        \trm -f \(names.library)

        """
    }

    /// The compiler's command line, which the makefile runs.
    var compilation: String {
        let include = kit + "/Sources/TorporPolicyABI/include"
        return "cc -O2 -g -shared -fPIC -I\(ShellWord.quoted(include)) -o \(names.library) \(names.name).c"
    }

    private var cSource: String {
        """
        #include "torpor_policy.h"

        #include <stdio.h>
        #include <stdlib.h>

        /* Suspends apps that have used up their time in the background, except for those with the tag `keep`. */
        struct policy {
            char keep[64];
        };

        static void *create(const torpor_policy_options *options, char *error, size_t error_size)
        {
            struct policy *policy = calloc(1, sizeof *policy);
            if (!policy) return NULL;
            for (uint32_t i = 0; i < options->count; i++) {
                const torpor_policy_option *option = torpor_policy_option_at(options, i);
                if (strcmp(option->key, "keep") != 0) {
                    snprintf(error, error_size, "%s is not an option of this policy: there is keep", option->key);
                    free(policy);
                    return NULL;
                }
                if (option->type != TORPOR_OPTION_STRING || strlen(option->text) >= sizeof policy->keep) {
                    snprintf(error, error_size, "keep must be a string of less than 64 bytes");
                    free(policy);
                    return NULL;
                }
                strcpy(policy->keep, option->text);
            }
            return policy;
        }

        static void suspend(
            const struct policy *policy,
            const torpor_policy_view *view,
            uint32_t place,
            const torpor_policy_reply *reply)
        {
            const torpor_policy_app *app = torpor_policy_app_at(view, place);
            if (!app || app->state != TORPOR_STATE_BACKGROUND || app->edge != TORPOR_EDGE_NONE) return;
            if (app->tasks || app->holds) return;
            /* An app that no event wakes would sleep until a person wakes it. */
            if (app->flags & (TORPOR_APP_REQUIRED | TORPOR_APP_TRACED | TORPOR_APP_NEVER_WOKEN)) return;
            if (policy->keep[0] && torpor_policy_has_tag(view, app, policy->keep)) return;
            torpor_policy_advice advice = {
                .size = sizeof advice,
                .kind = TORPOR_ADVISE_GOAL,
                .app = place,
                .value = TORPOR_STATE_SUSPENDED,
                .reason = "its time in the background is used up",
            };
            reply->advise(reply, &advice);
        }

        static int32_t decide(
            void *context,
            const torpor_policy_view *view,
            const torpor_policy_event *event,
            const torpor_policy_reply *reply)
        {
            if (event->kind == TORPOR_EVENT_TIME_USED) {
                suspend(context, view, event->app, reply);
            } else if (event->kind == TORPOR_EVENT_STARTED) {
                /* Apps that had used up their time before get no event. */
                for (uint32_t place = 0; place < view->app_count; place++) {
                    const torpor_policy_app *app = torpor_policy_app_at(view, place);
                    if (app && app->grant_ends != TORPOR_NEVER && app->grant_ends <= view->system->now)
                        suspend(context, view, place, reply);
                }
            }
            return TORPOR_CONTINUE;
        }

        /* Key, type, default and meaning of each option. */
        static const char *const options[] = {
            "keep", "string", "none", "a tag: apps that have it keep running in the background",
            NULL,
        };

        static const torpor_policy policy = {
            .size = sizeof policy,
            .abi = TORPOR_POLICY_ABI,
            .minimum_abi = 1,
            .events = TORPOR_EVENT_BIT(TORPOR_EVENT_STARTED) | TORPOR_EVENT_BIT(TORPOR_EVENT_TIME_USED),
            .name = "\(names.name)",
            .version = "0.1.0",
            .summary = "Apps in the background are suspended when their time there is used up.",
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

        """
    }

    // MARK: For people

    private func readme(inC: Bool) -> String {
        let built = builtLibrary(inC: inC)
        return """
            # \(names.name)

            A lifecycle policy for Torpor. `torpor help policies`, which is torpor-policy(7), says what a policy sees, is
            asked and can advise.

            ## Build

                \(inC ? "make" : "swift build -c release")
            \(inC ? "\nor, without make:\n\n    " + compilation + "\n" : "")
            ## Check

                torpor policy check \(built)

            ## Use

            Put `\(names.library)` into the directory of policies (`[supervisor] policy_directory`, by default
            `/usr/lib/torpor/policies`):

                install \(built) /usr/lib/torpor/policies

            (`cp` would overwrite the file of a library that is in use, which crashes it.) The library and its folders
            must belong to root or to the supervisor's user, and no other user may write to them. Then, in the
            configuration:

            ```toml
            [supervisor]
            policies = ["\(names.name)"]

            [policies.\(names.name)]
            path = "\(names.library)"
            options = { keep = \(inC ? "\"always\"" : "[\"tag:always\"]") }
            ```

            `torpor apply` loads it, and `torpor policy reload \(names.name)` loads it again after a change. With
            `mode = "advise"` its advice is only logged: `torpor events -f`. What it writes to standard error is in
            torpord's log: `journalctl -u torpord`.

            """
    }

    /// Escapes text for use in a variable of make(1).
    private static func inMake(_ text: String) -> String {
        text.map { $0 == "$" ? "$$" : $0 == "#" ? "\\#" : String($0) }.joined()
    }

    /// The text as a Swift string literal.
    private static func literal(_ text: String) -> String {
        var literal = "\""
        for character in text.unicodeScalars {
            switch character {
            case "\\", "\"": literal += "\\\(character)"
            case let other where other.value < 0x20 || other.value == 0x7F:
                literal += "\\u{\(String(other.value, radix: 16))}"
            default: literal.unicodeScalars.append(character)
            }
        }
        return literal + "\""
    }
}
