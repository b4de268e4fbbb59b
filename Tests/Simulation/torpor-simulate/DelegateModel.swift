// SPDX-License-Identifier: Apache-2.0

import CSimulatedKernel
import Varlink

/// The delegate of one run: one connection that hears messages, one on which they are answered, one for all else.
final class DelegateModel {
    private struct Message {
        let id: Int64
        let name: String
        /// The number of the mail in it.
        let mail: Int?
    }

    private let path: String
    private let pid: Int32
    private let incarnation: UInt32
    private let ledger: MailLedger
    private var attached: Connection?
    private var answers: Connection?
    private var calls: Connection?
    /// Calls over `calls` that are not answered.
    private var asked: [String] = []
    private var lastID: Int64 = 0
    private var unanswered: [Message] = []
    /// The answer to the first of them is under way.
    private var isAnswering = false
    private var tasks: [Int64] = []
    /// Something that must not be.
    private(set) var problem: String?

    init(path: String, pid: Int32, incarnation: UInt32, ledger: MailLedger) {
        self.path = path
        self.pid = pid
        self.incarnation = incarnation
        self.ledger = ledger
    }

    func close() {
        attached?.close()
        answers?.close()
        calls?.close()
    }

    var isAttached: Bool { attached != nil && attached?.hasEnded == false }
    var hasUnanswered: Bool { !unanswered.isEmpty }

    /// Connects where it is not connected, and reads what came. Returns whether anything happened.
    func receive() -> Bool {
        var acted = receiveMessages()
        for reply in answers?.receive() ?? [] where isAnswering {
            acted = true
            isAnswering = false
            let message = unanswered.removeFirst()
            let error = reply["error"]?.stringValue
            if let mail = message.mail, error == nil || error?.hasSuffix("AlreadyAnswered") == true {
                ledger.answered(mail)
            }
        }
        // The answer, or its receipt, is lost with the connection: it is given again.
        if answers?.hasEnded == true {
            answers = nil
            isAnswering = false
            acted = true
        }
        for reply in calls?.receive() ?? [] {
            acted = true
            guard !asked.isEmpty else {
                problem = "is answered what it did not ask: \(reply)"
                break
            }
            let method = asked.removeFirst()
            if method == "BeginTask", let token = reply["parameters"]?["token"]?.intValue { tasks.append(token) }
        }
        if calls?.hasEnded == true {
            calls = nil
            asked = []
            tasks = []
            acted = true
        }
        return acted
    }

    private func receiveMessages() -> Bool {
        var acted = false
        if !isAttached {
            guard let made = Connection(path, as: pid) else { return false }
            attached = made
            // Another torpord, perhaps: what was sent to the one before is gone.
            answers?.close()
            answers = nil
            isAnswering = false
            acted = true
            made.send([
                "method": "io.torpor.App.Attach", "more": true,
                "parameters": ["incarnation": .int(Int64(incarnation)), "after": .int(lastID)],
            ])
        }
        for reply in attached?.receive() ?? [] {
            acted = true
            if let error = reply["error"]?.stringValue {
                if error.hasSuffix("AlreadyAttached") { attached?.close() }
                continue
            }
            guard let message = reply["parameters"]?["message"], let id = message["id"]?.intValue,
                let name = message["name"]?.stringValue
            else { continue }
            if id <= lastID { problem = "is told message \(id) (\(name)) after it had \(lastID)" }
            lastID = max(id, lastID)
            var mail: Int?
            if name == "didReceiveEvent", let parameters = message["parameters"],
                let number = parameters["payload"]?["n"]?.intValue
            {
                mail = Int(number)
                let id = parameters["id"]?.intValue
                problem = ledger.told(Int(number), id: id, run: incarnation, faults: Simulation.faultCount) ?? problem
            }
            unanswered.append(Message(id: id, name: name, mail: mail))
        }
        return acted
    }

    /// Answers what it was told first. Returns whether it did.
    func answer() -> Bool {
        guard let first = unanswered.first, !isAnswering else { return false }
        if answers == nil { answers = Connection(path, as: pid) }
        guard let answers else { return false }
        isAnswering = true
        if let mail = first.mail { ledger.answering(mail) }
        answers.send([
            "method": "io.torpor.App.Answer",
            "parameters": ["id": .int(first.id), "result": "done"],
        ])
        return true
    }

    /// Calls something that apps call at any time.
    func call(_ choice: Int) {
        if calls == nil { calls = Connection(path, as: pid) }
        guard let calls, asked.count < 4 else { return }
        let (method, parameters): (String, JSON) =
            switch choice % 8 {
            case 0, 1: ("BeginTask", ["name": "work"])
            case 2, 3:
                if let token = tasks.popLast() {
                    ("EndTask", ["token": .int(token)])
                } else {
                    ("BackgroundTime", .emptyObject)
                }
            case 4: ("SaveState", ["data": "c3RhdGU="])
            case 5: ("State", .emptyObject)
            case 6: ("DiscardState", .emptyObject)
            default: ("Subscribe", ["topic": .string("extra\(choice % 3)"), "coalesce": "all"])
            }
        asked.append(method)
        calls.send(["method": .string("io.torpor.App." + method), "parameters": parameters])
    }

    /// What is not answered, in words; nil where everything is.
    var open: String? { asked.isEmpty ? nil : asked.joined(separator: ", ") }
}
