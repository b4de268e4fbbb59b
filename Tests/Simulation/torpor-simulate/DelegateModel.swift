// SPDX-License-Identifier: Apache-2.0

import CSimulatedKernel
import Varlink

/// The delegate of one run: one connection that hears messages, one on which they are answered.
final class DelegateModel {
    private let path: String
    private let pid: Int32
    private let incarnation: UInt32
    private var attached: Connection?
    private var answers: Connection?
    private var lastID: Int64 = 0
    private var unanswered: [(id: Int64, name: String)] = []
    /// The first of them is answered, and nobody has said so yet.
    private var isAsked = false
    /// What was told wrongly.
    private(set) var problem: String?
    /// How many torpords it has spoken to.
    private var connections = 0

    init(path: String, pid: Int32, incarnation: UInt32) {
        self.path = path
        self.pid = pid
        self.incarnation = incarnation
    }

    func close() {
        attached?.close()
        answers?.close()
    }

    var hasWork: Bool { attached == nil || attached?.hasEnded == true || !unanswered.isEmpty }

    /// Connects where it is not connected, and takes what it is told.
    func hear() {
        if attached == nil || attached?.hasEnded == true {
            attached = Connection(path, as: pid)
            answers?.close()
            answers = nil
            guard let attached else { return }
            connections += 1
            attached.send([
                "method": "io.torpor.App.Attach", "more": true,
                "parameters": ["incarnation": .int(Int64(incarnation)), "after": .int(lastID)],
            ])
        }
        for reply in attached?.receive() ?? [] {
            if let error = reply["error"]?.stringValue {
                if error.hasSuffix("AlreadyAttached") { attached?.close() }
                continue
            }
            guard let message = reply["parameters"]?["message"], let id = message["id"]?.intValue,
                let name = message["name"]?.stringValue
            else { continue }
            if id <= lastID { problem = "is told message \(id) (\(name)) after it had \(lastID)" }
            lastID = max(id, lastID)
            unanswered.append((id, name))
        }
        for _ in answers?.receive() ?? [] where !unanswered.isEmpty && isAsked {
            unanswered.removeFirst()
            isAsked = false
        }
        // The answer, or what was said to it, is lost with the connection: it is given again.
        if answers?.hasEnded == true {
            answers = nil
            isAsked = false
        }
    }

    /// Answers what it was told first.
    func answer() {
        guard !unanswered.isEmpty, !isAsked else { return }
        if answers == nil { answers = Connection(path, as: pid) }
        guard let answers else { return }
        isAsked = true
        answers.send([
            "method": "io.torpor.App.Answer",
            "parameters": ["id": .int(unanswered[0].id), "result": "done"],
        ])
    }
}
