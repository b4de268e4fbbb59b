// SPDX-License-Identifier: Apache-2.0

import Foundation
import Linux
import Testing

@testable import ControlService
@testable import Engine
@testable import Supervisor

@Suite("The catalogue of messages")
struct CatalogueTests {
    private struct Entry {
        var id: String
        var headers: [String: String] = [:]
        var text = ""
    }

    private static let path = String(#filePath).components(separatedBy: "/Tests/")[0] + "/systemd/torpor.catalog"

    private func entries() throws -> [Entry] {
        var entries: [Entry] = []
        var isHead = false
        for line in try String(contentsOfFile: Self.path, encoding: .utf8).components(separatedBy: "\n") {
            if line.hasPrefix("-- ") {
                entries.append(Entry(id: String(line.dropFirst(3))))
                isHead = true
            } else if entries.isEmpty {
                #expect(line.isEmpty || line.hasPrefix("#"))
            } else if isHead, line.isEmpty {
                isHead = false
            } else if isHead {
                let parts = line.components(separatedBy: ": ")
                entries[entries.count - 1].headers[parts[0]] = parts.dropFirst().joined(separator: ": ")
            } else {
                entries[entries.count - 1].text += line + "\n"
            }
        }
        return entries
    }

    @Test("explains everything that can happen, and nothing else, once")
    func complete() throws {
        let explained = try entries().map(\.id)
        #expect(Set(explained) == Set(EventKind.allCases.map(\.rawValue)))
        #expect(Set(explained).count == explained.count)
    }

    @Test("has ids that are 128 random bits")
    func ids() {
        for kind in EventKind.allCases {
            let digits = Array(kind.rawValue)
            #expect(digits.count == 32 && digits.allSatisfy { $0.isHexDigit && !$0.isUppercase })
            // Version 4 of RFC 9562.
            #expect(digits[12] == "4" && "89ab".contains(digits[16]), "\(kind)")
        }
    }

    @Test("has a subject, an explanation and a manual page for each, and uses fields that entries have")
    func texts() throws {
        let known: Set = [
            "TORPOR_APP", "TORPOR_STATE", "TORPOR_PREVIOUS_STATE", "TORPOR_TRANSITION", "TORPOR_REASON",
            "TORPOR_INCARNATION", "OBJECT_PID",
        ]
        for entry in try entries() {
            let kind = try #require(EventKind(rawValue: entry.id))
            #expect(!(entry.headers["Subject"] ?? "").isEmpty, "\(kind)")
            #expect(entry.headers["Documentation"]?.hasPrefix("man:") ?? false, "\(kind)")
            #expect(entry.headers["Defined-By"] == "torpor", "\(kind)")
            #expect(entry.text.trimmingCharacters(in: .whitespacesAndNewlines).count > 40, "\(kind)")
            let all = (entry.headers["Subject"] ?? "") + entry.text
            let fields = all.matches(of: /@([A-Z_]+)@/).map { String($0.output.1) }
            #expect(Set(fields).isSubset(of: known), "\(kind)")
            #expect(all.filter { $0 == "@" }.count == 2 * fields.count, "\(kind)")
        }
    }

    @Test("is what journalctl takes", .enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/journalctl")))
    func journalctl() throws {
        let root = NSTemporaryDirectory() + "torpor-catalogue-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: root) }
        for folder in ["/usr/lib/systemd/catalog", "/var/lib/systemd/catalog"] {
            try FileManager.default.createDirectory(atPath: root + folder, withIntermediateDirectories: true)
        }
        try FileManager.default.copyItem(atPath: Self.path, toPath: root + "/usr/lib/systemd/catalog/torpor.catalog")
        let update = try output("--root=" + root, "--update-catalog")
        #expect(update.isEmpty)
        let list = try output("--root=" + root, "--list-catalog")
        let lines = list.split(separator: "\n")
        #expect(lines.count == EventKind.allCases.count)
        #expect(lines.allSatisfy { $0.contains(" torpor: ") })
    }

    /// Everything that journalctl says, errors too.
    private func output(_ arguments: String...) throws -> String {
        let (read, write) = try Descriptor.pipe()
        let child = try ChildProcess(
            "/usr/bin/journalctl",
            arguments: ["journalctl"] + arguments,
            environment: ["SYSTEMD_COLORS=0", "SYSTEMD_LOG_LEVEL=info"],
            descriptors: [(1, write.raw), (2, write.raw)]
        )
        write.close()
        let output = String(decoding: try File.read(descriptor: read.raw), as: UTF8.self)
        #expect(WaitStatus.exitCode(child.reap()) == 0, "\(output)")
        return output
    }
}
