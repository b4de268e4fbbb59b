// SPDX-License-Identifier: Apache-2.0

/// What was posted to apps, and what became of it.
final class MailLedger {
    enum Outcome {
        /// The sender has no answer.
        case open
        /// torpord has answered that it is on the disk.
        case accepted
        /// torpord has refused it.
        case refused
        /// The sender's connection ended before the answer.
        case unknown
    }

    struct Mail {
        let app: AppModel
        var outcome = Outcome.open
        /// The runs that were told it.
        var runs: [UInt32] = []
        /// How many calls had failed when it was told last.
        var faults: UInt64 = 0
        /// A run has sent an answer, which torpord may have read.
        var mayBeAnswered = false
        /// A run has the receipt of its answer.
        var isAnswered = false
        /// The app left the configuration since it was posted: its mailbox went along.
        var isForgotten = false
    }

    private(set) var mails: [Mail] = []
    /// The number of the newest mail that a run was told.
    private var newest: [String: Int64] = [:]

    /// A number for something that is posted.
    func post(to app: AppModel) -> Int {
        mails.append(Mail(app: app))
        return mails.count - 1
    }

    func resolve(_ number: Int, _ outcome: Outcome) { mails[number].outcome = outcome }

    func answering(_ number: Int) { mails[number].mayBeAnswered = true }

    func answered(_ number: Int) { mails[number].isAnswered = true }

    func forget(_ app: AppModel) {
        for number in mails.indices where mails[number].app === app { mails[number].isForgotten = true }
    }

    /// A run was told it; returns what is wrong about that.
    func told(_ number: Int, id: Int64?, run: UInt32, faults: UInt64) -> String? {
        guard mails.indices.contains(number) else { return "is told mail \(number), which was never posted" }
        let mail = mails[number]
        mails[number].runs.append(run)
        mails[number].faults = faults
        let app = mail.app.name
        if mail.outcome == .refused { return "is told mail \(number), which was refused" }
        if mail.isAnswered { return "is told mail \(number) again, which it has answered" }
        // A torpord that could not write down what it told is followed by one that tells it again.
        if mail.runs.contains(run), faults == mail.faults { return "is told mail \(number) twice in run \(run)" }
        let key = "\(app) \(run)"
        if let id {
            if id <= newest[key] ?? 0, !mail.runs.contains(run) {
                return "is told mail \(id) after mail \(newest[key] ?? 0)"
            }
            newest[key] = id
        }
        return nil
    }
}
