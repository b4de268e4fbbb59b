// SPDX-License-Identifier: Apache-2.0

import Foundation
import Linux
import Testing

/// What stands for the service manager: a socket, and what it was told.
final class Manager {
    let path = NSTemporaryDirectory() + "torpor-notify-\(UUID().uuidString.prefix(8))"
    let socket: Descriptor
    private(set) var texts: [String] = []
    /// Inodes by name, as after what was told so far.
    private(set) var store: [String: UInt64] = [:]
    private var kept: [String: Descriptor] = [:]
    /// What came with BARRIER=1, open until it is let go of.
    var barriers: [Descriptor] = []

    init() throws { socket = try Sockets.bindDatagram(path: path) }

    deinit { try? File.remove(path) }

    var environment: [String: String] { ["NOTIFY_SOCKET": path] }

    /// Reads what is there.
    func read() throws {
        while let message = try Sockets.receive(socket.raw, maximum: 9000) {
            let text = String(decoding: message.bytes, as: UTF8.self)
            texts.append(text)
            let fields = Dictionary(
                text.split(separator: "\n").map { line in
                    let parts = line.split(separator: "=", maxSplits: 1).map(String.init)
                    return (parts[0], parts.count > 1 ? parts[1] : "")
                },
                uniquingKeysWith: { $1 }
            )
            if fields == ["BARRIER": "1"] { barriers += message.descriptors }
            guard let name = fields["FDNAME"] else { continue }
            if fields["FDSTOREREMOVE"] == "1" {
                kept[name] = nil
                #expect(store.removeValue(forKey: name) != nil, "removes what was never given: \(name)")
            } else {
                #expect(fields["FDSTORE"] == "1" && fields["FDPOLL"] == "0" && message.descriptors.count == 1)
                #expect(store[name] == nil, "given twice without being removed: \(name)")
                guard let descriptor = message.descriptors.first else { continue }
                store[name] = try File.status(descriptor: descriptor.raw).inode
                kept[name] = descriptor
            }
        }
    }
}
