// SPDX-License-Identifier: Apache-2.0

/// What a policy says of its options when it is tried.
public struct PolicyFinding: Sendable, Hashable {
    /// Why the policy refuses its options: an error of the configuration. Nil if the policy accepts them, or if that
    /// is unknown.
    public var refusal: String?
    /// Why the policy cannot be used on this machine, though its options may be right; nil if it can be used.
    public var obstacle: String?
    /// The names, patterns and tags by which the options select apps; empty if they are unknown.
    public var selectors: [PolicySelector] = []

    /// Creates the finding of a policy; without arguments, of one without any problem.
    public init(
        refusal: String? = nil,
        obstacle: String? = nil,
        selectors: [(option: String, text: String)] = []
    ) {
        self.refusal = refusal
        self.obstacle = obstacle
        self.selectors = selectors.map { PolicySelector(option: $0.option, text: $0.text) }
    }
}
