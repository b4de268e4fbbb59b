// SPDX-License-Identifier: Apache-2.0

import Foundation
package import Testing

/// A booted machine that tests drive from outside: a container, or one in emulation.
package protocol Machine: AnyObject {
    /// How much longer things take there than on this machine.
    var slowness: Int { get }
    /// Runs a shell's script as root and waits for its end.
    func run(_ script: String, within seconds: Int) throws -> Answer
    /// What is said of the machine when a test fails.
    var console: String { get }
}

extension Machine {
    /// Runs a script; a minute is its bound.
    @discardableResult
    package func run(_ script: String) throws -> Answer { try run(script, within: 60 * slowness) }

    /// Runs a script that must succeed; gives what it wrote.
    @discardableResult
    package func done(
        _ script: String,
        within seconds: Int = 60,
        at location: SourceLocation = #_sourceLocation
    ) throws -> String {
        let answer = try run(script, within: seconds * slowness)
        if !answer.ok {
            Issue.record("exit status \(answer.status) of: \(script)\n\(answer.output)", sourceLocation: location)
            throw Trouble("\(script) failed")
        }
        return answer.text
    }

    /// Writes a file.
    package func write(_ path: String, _ text: String, executable: Bool = false) throws {
        let folder = (path as NSString).deletingLastPathComponent
        let data = Data(text.utf8).base64EncodedString()
        try done(
            "mkdir -p '\(folder)' && echo '\(data)' | base64 -d >'\(path)'"
                + (executable ? " && chmod 755 '\(path)'" : "")
        )
    }

    /// What is in a file; nothing where there is none.
    package func read(_ path: String) throws -> String {
        let answer = try run("cat '\(path)'")
        return answer.ok ? answer.output : ""
    }

    /// Looks until it is so, or fails with what the machine's journal has of Torpor.
    package func eventually(
        _ what: @autoclosure () -> String,
        within seconds: Double = 15,
        at location: SourceLocation = #_sourceLocation,
        _ isSo: () throws -> Bool
    ) throws {
        let end = Date() + seconds * Double(slowness)
        while try !isSo() {
            guard Date() < end else {
                let what = what()
                Issue.record("it did not come to be that \(what)\n\(state())", sourceLocation: location)
                throw Trouble("waited in vain until \(what)")
            }
            usleep(20_000)
        }
    }

    /// Of use to whoever reads of a failure.
    package func state() -> String {
        let script = """
            systemctl --no-pager --full status torpord torpor-apps.scope 2>&1 | head -40
            torpor list 2>&1
            journalctl --no-pager -o short-precise -n 40 2>&1
            """
        return ((try? run(script, within: 20 * slowness))?.output ?? "") + console
    }
}
