// SPDX-License-Identifier: Apache-2.0

import Linux

/// Loads a policy in a process of its own and ends it again, only to learn what the policy says of its options. Blocks
/// until the policy is loaded.
package enum PolicyProbe {
    /// What became of the policy.
    package enum Outcome: Sendable {
        case accepted(PolicyDescription)
        /// The policy refuses its options, for this reason.
        case refusesOptions(String)
        /// The library cannot be used, for this reason.
        case unusable(String)
        /// The policy could not be tried.
        case unknown

        /// Why the policy refuses its options; nil if it accepts them, or if that is unknown.
        package var refusal: String? {
            if case .refusesOptions(let sentence) = self { sentence } else { nil }
        }

        /// Why the library cannot be used; nil if it can be used, or if that is unknown.
        package var obstacle: String? {
            if case .unusable(let sentence) = self { sentence } else { nil }
        }

        /// The texts in the policy's `options` by which it selects apps, each with the option's path; empty if the
        /// policy was not accepted.
        package func selectors(in options: [PolicyOption]) -> [(option: String, text: String)] {
            if case .accepted(let policy) = self { PolicyProbe.selectors(in: options, of: policy) } else { [] }
        }
    }

    /// How torpor-policy-host begins the reasons that concern the machine. Those that concern the library begin with
    /// its path.
    private static let reasonsOfMachine = [
        "the host process ", "this torpor-policy-host ", "the view ", "there is no memory ",
    ]

    /// Tries a policy with its options.
    package static func run(
        _ path: String,
        _ options: [PolicyOption],
        _ settings: HostProcess.Settings
    ) -> Outcome {
        guard let view = try? PolicyView() else { return .unknown }
        let library: TrustedLibrary
        do throws(PolicyFailure) {
            library = try LibraryTrust.open(path)
        } catch {
            return .unusable("\(error)")
        }
        do throws(PolicyFailure) {
            let process = try HostProcess(
                library: library,
                options: options,
                view: view.descriptor,
                viewSize: view.size,
                settings: settings
            )
            defer { process.close() }
            return .accepted(process.description)
        } catch {
            guard case .refused(let sentence) = error else {
                if case .notStarted = error { return .unknown }
                return .unusable("\(error)")
            }
            let isOfOptions =
                sentence.hasPrefix(library.path)
                ? sentence.hasPrefix(library.path + " does not accept its options")
                : !reasonsOfMachine.contains { sentence.hasPrefix($0) }
            return isOfOptions ? .refusesOptions(sentence) : .unusable(sentence)
        }
    }

    /// The texts in the options by which the policy selects apps, each with the option's path: those of options that
    /// the policy describes as a list of apps.
    private static func selectors(
        in options: [PolicyOption],
        of policy: PolicyDescription
    ) -> [(option: String, text: String)] {
        let lists = policy.options.filter { $0.type == "list of apps" }.map { parts($0.key) }
        return options.compactMap { option in
            guard case .string(let text) = option.value else { return nil }
            let parts = Self.parts(option.key)
            let list = lists.first { list in
                // The element's index is missing if the list is a single string.
                (parts.count == list.count || parts.count == list.count + 1)
                    && zip(list, parts).allSatisfy { $0 == "*" || $0 == $1 }
            }
            return list.map { (option: parts.prefix($0.count).joined(separator: "."), text: text) }
        }
    }

    private static func parts(_ key: String) -> [String] { key.split(separator: ".").map(String.init) }
}
