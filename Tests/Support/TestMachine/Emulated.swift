// SPDX-License-Identifier: Apache-2.0

import Foundation

/// A machine in emulation with a kernel of its own: scripts/emulated-machine. It ends when nobody has it any more, at
/// the latest with the process of the tests.
package final class Emulated: Machine {
    /// What is booted, where `make test-vm` made it.
    package static var folder: String? { ProcessInfo.processInfo.environment["TORPOR_VM"] }

    package let slowness = 6
    private let folder: String
    private let script: Program
    private let path: String
    private let port: Int32
    private var unread: [UInt8] = []
    private var number = 0

    package init() throws {
        guard let folder = Emulated.folder else { throw Trouble("TORPOR_VM is not set") }
        self.folder = folder
        path = NSTemporaryDirectory() + "vm-\(UUID().uuidString.prefix(8))"
        script = try Program([Sources.path("scripts/emulated-machine"), "run", folder, path])
        port = try Emulated.connect(path, script)
        while try line(within: 240) != "ready" {}
    }

    deinit { end() }

    /// Ends it and waits until nothing of it is left.
    package func end() {
        close(port)
        script.closeInput()
        let limit = Date() + 20
        while script.ended() == nil, Date() < limit { usleep(10_000) }
    }

    package var console: String {
        let text = (try? String(contentsOfFile: folder + "/console", encoding: .utf8)) ?? ""
        return String(text.suffix(2000))
    }

    private static func connect(_ path: String, _ script: Program) throws -> Int32 {
        let limit = Date() + 20
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        let port = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        while true {
            let result = withUnsafePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    Foundation.connect(port, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
                }
            }
            if result == 0 { return port }
            guard script.ended() == nil, Date() < limit else { throw Trouble("no machine: \(script.text)") }
            usleep(10_000)
        }
    }

    /// The next line from the serial port.
    private func line(within seconds: Int) throws -> String {
        let limit = Date() + Double(seconds)
        while true {
            if let end = unread.firstIndex(of: 10) {
                let line = String(decoding: unread[..<end], as: UTF8.self)
                unread.removeSubrange(...end)
                return line.trimmingCharacters(in: .whitespacesAndNewlines)
            }
            var entry = pollfd(fd: port, events: Int16(POLLIN), revents: 0)
            guard Date() < limit else { throw Trouble("the machine said nothing for \(seconds) s\n\(console)") }
            guard poll(&entry, 1, 500) > 0 else { continue }
            var bytes = [UInt8](repeating: 0, count: 65536)
            let count = Foundation.read(port, &bytes, bytes.count)
            guard count > 0 else { throw Trouble("the machine ended: \(script.text)\n\(console)") }
            unread += bytes[..<count]
        }
    }

    package func run(_ script: String, within seconds: Int) throws -> Answer {
        number += 1
        // The port has room for 4,096 characters a line: a longer script goes there in pieces.
        let text = Data(script.utf8).base64EncodedString()
        guard text.utf8.count > 3000 else { return try ask(text, within: seconds) }
        _ = try ask(Data(": >/run/long".utf8).base64EncodedString(), within: seconds)
        var rest = Substring(text)
        while !rest.isEmpty {
            let piece = "printf %s '\(rest.prefix(1800))' >>/run/long"
            rest = rest.dropFirst(1800)
            _ = try ask(Data(piece.utf8).base64EncodedString(), within: seconds)
        }
        return try ask(
            Data("base64 -d </run/long >/run/long.script; sh /run/long.script".utf8).base64EncodedString(),
            within: seconds
        )
    }

    private func ask(_ script: String, within seconds: Int) throws -> Answer {
        number += 1
        let bytes = Array("\(number) \(script)\n".utf8)
        var sent = 0
        while sent < bytes.count {
            let count = bytes[sent...].withUnsafeBytes { send(port, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            guard count > 0 else { throw Trouble("the machine takes nothing: \(console)") }
            sent += count
        }
        let limit = Date() + Double(seconds)
        while true {
            let words = try line(within: max(1, Int(limit.timeIntervalSinceNow))).split(separator: " ")
            guard let first = words.first, first == "\(number)", words.count >= 2, let status = Int32(words[1]) else {
                continue
            }
            let output = words.count > 2 ? Data(base64Encoded: String(words[2])) ?? Data() : Data()
            return Answer(status: status, output: String(decoding: output, as: UTF8.self))
        }
    }
}
