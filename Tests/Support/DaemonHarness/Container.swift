// SPDX-License-Identifier: Apache-2.0

import Foundation
import Linux
package import Testing
import TorporAPI

/// Namespaces as a container has them, made by unshare(1): whatever is started in them first is their process 1.
package enum Namespaces {
    /// Words to start a program by; nil where this machine allows no such namespaces.
    package static let unshare: [String]? = {
        let program = "/usr/bin/unshare"
        let kinds = ["--pid", "--fork", "--mount-proc", "--mount", "--propagation", "private"]
        for user in [[], ["--user", "--map-root-user"]] {
            if let (code, _) = try? Spawn.run([program] + user + kinds + ["/bin/true"]), code == 0 {
                return [program] + user + kinds
            }
        }
        print("skipped: tests of process 1: no namespaces of processes and mounts can be made here")
        return nil
    }()

    package static var areAllowed: Bool { unshare != nil }

    /// Words to start a program by in the namespace of processes of one that was started so.
    package static func enter(_ pid: Int32) -> [String] {
        // Who is not root has rights over it in the user namespace alone that it belongs to.
        let user = unshare?.contains("--user") ?? false ? ["--user", "--preserve-credentials"] : []
        return ["/usr/bin/nsenter", "--target", "\(pid)"] + user + ["--pid"]
    }
}

/// Runs a scenario with a torpord in a container of its own, which must have ended at the end of it.
///
/// - Parameter before: a line of shell to be run in the container before torpord is.
package func withContainer(
    _ toml: String,
    files: [String: String] = [:],
    environment: [String: String] = [:],
    before: String? = nil,
    at location: SourceLocation = #_sourceLocation,
    _ body: (Daemon) throws -> Void
) throws {
    let unshare = try #require(Namespaces.unshare)
    let shell = before.map { ["/bin/sh", "-c", $0 + "\nexec \"$@\"", "sh"] } ?? []
    let daemon = try Daemon(toml, files: files, environment: environment, wrapper: unshare + shell)
    try body(daemon)
    try daemon.waitForEnd(at: location)
}

extension Daemon {
    /// The container's process 1, by its number outside.
    package func first() throws -> Int32 {
        var found: Int32?
        try eventually("the container has a process 1, and it is the keeper") {
            if let exit = reap() { throw Trouble("the container ended with \(exit): \(log)") }
            found = try ProcFS.children(pid).first
            return found.map { (try? ProcFS.cmdline($0).first)?.hasSuffix("torpor-keeper") ?? false } ?? false
        }
        return try #require(found)
    }

    /// torpord below process 1.
    package func torpordInside() throws -> Int32 {
        let first = try first()
        var found: Int32?
        try eventually("there is a torpord below process 1") {
            found = try ProcFS.children(first).first { pid in
                (try? ProcFS.cmdline(pid).first)?.hasSuffix("/torpord") ?? false
            }
            return found != nil
        }
        return try #require(found)
    }

    /// Waits until the container is gone, and its exit status is this.
    package func expectEnd(_ status: ExitStatus, at location: SourceLocation = #_sourceLocation) throws {
        try waitForEnd(at: location)
        #expect(reap() == status, "\(log.suffix(2000))", sourceLocation: location)
        expectNothingLeft(at: location)
    }
}
