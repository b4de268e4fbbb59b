// SPDX-License-Identifier: Apache-2.0

/// A measured part: its name, and how to make something that repeats its operation `count` times.
///
/// The result is the difference of two runs with different counts, so that the cost of the setup cancels out.
struct Part: Sendable {
    /// Its name on the command line and in the baseline.
    let name: String
    /// One operation, as a sentence.
    let what: String
    /// The counts of the two runs.
    var counts = (few: 1_000, many: 5_000)
    /// Sets the part up, and returns what repeats its operation.
    let make: @Sendable () throws -> (_ count: Int) throws -> Void

    static let all = [
        transition, notify, timer, varlinkStatus, varlinkList, launchPlan, policyQuestion, policyQuestionSilent,
        policyView, policyChain,
    ]

    static func named(_ name: String) -> Part? { all.first { $0.name == name } }
}

/// A part that did not do its work: its count would be meaningless.
struct WentWrong: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}
