// SPDX-License-Identifier: Apache-2.0

/// One inner part: what it is called, and how to make something that does it `count` times.
///
/// Only what `count` repeats is compared, as the difference of two runs with different counts: whatever making it costs
/// drops out.
struct Part: Sendable {
    /// Its name on the command line and in the baseline.
    let name: String
    /// What one operation is, in a sentence.
    let what: String
    /// The two counts, few and many.
    var counts = (few: 1_000, many: 5_000)
    /// Makes it, and gives what repeats it.
    let make: @Sendable () throws -> (_ count: Int) throws -> Void

    static let all = [
        transition, notify, timer, varlinkStatus, varlinkList, launchPlan, policyQuestion, policyQuestionSilent,
        policyView, policyChain,
    ]

    static func named(_ name: String) -> Part? { all.first { $0.name == name } }
}

/// A part that did not do what it should: its instructions would mean nothing.
struct WentWrong: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}
