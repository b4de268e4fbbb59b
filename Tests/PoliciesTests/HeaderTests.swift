// SPDX-License-Identifier: Apache-2.0

import Foundation
import Linux
import PolicyLibraries
import Testing

/// The headers that policies are written against are plain C, in every dialect that a policy's author may use.
struct HeaderTests {
    private static let include = [
        "-I", Libraries.root + "Sources/TorporPolicyABI/include", "-I", Libraries.root + "Sources/CPolicyWire/include",
    ]
    private static let strict = [
        "-Wall", "-Wextra", "-Wshadow", "-Wconversion", "-pedantic", "-Werror", "-fsyntax-only",
    ]

    /// Uses what there is of inline functions and macros, so that they are compiled.
    private static let use = """
        int use(const torpor_policy_view *view, const torpor_policy_options *options, const torpor_policy *policy);
        int use(const torpor_policy_view *view, const torpor_policy_options *options, const torpor_policy *policy)
        {
            const torpor_policy_app *app = torpor_policy_app_at(view, 0);
            if (app == NULL || !TORPOR_POLICY_HAS(policy, destroy) || !TORPOR_POLICY_HAS(app, last_heartbeat)) return 1;
            if (TORPOR_EVENT_BIT(TORPOR_EVENT_EVICTION) == 0 || app->last_use == TORPOR_NEVER) return 2;
            return torpor_policy_has_tag(view, app, torpor_policy_name(view, app))
                + (torpor_policy_option_named(options, "key") != NULL);
        }
        """

    @Test(arguments: [
        ("gcc", "c99", "c"), ("gcc", "c11", "c"), ("gcc", "gnu17", "c"), ("g++", "c++11", "cpp"),
        ("g++", "c++17", "cpp"),
        ("clang", "c99", "c"), ("clang++", "c++20", "cpp"),
    ])
    func theyCompileWithoutAWarning(compiler: String, dialect: String, suffix: String) throws {
        let folder = try Libraries.makeFolder("header")
        for (index, header) in ["torpor_policy.h", "torpor_policy_wire.h"].enumerated() {
            let file = folder + "/use\(index).\(suffix)"
            try File.write(file, "#include \"\(header)\"\n#include \"\(header)\"\n" + Self.use + "\n")
            try Libraries.compile(compiler, ["-std=\(dialect)"] + Self.strict + Self.include + [file])
        }
    }
}
