// SPDX-License-Identifier: Apache-2.0

import CSimulatedKernel
import Varlink

/// A connection of a client or an app, which never waits.
final class Connection {
    private(set) var fd: Int32
    private var incoming: [UInt8] = []
    private var outgoing: [UInt8] = []
    /// The other end is gone.
    private(set) var hasEnded = false
    /// Something that is no JSON came.
    private(set) var isGarbled = false

    /// nil when nobody listens.
    init?(_ path: String, as pid: Int32) {
        fd = sim_connect_as(path, pid)
        if fd < 0 { return nil }
    }

    func close() {
        sim_close(fd)
        fd = -1
        hasEnded = true
    }

    func send(_ call: JSON) {
        outgoing += call.serialised() + [0]
        flush()
    }

    private func flush() {
        guard fd >= 0, !outgoing.isEmpty else { return }
        let count = outgoing.withUnsafeBytes { sim_write(fd, $0.baseAddress, $0.count) }
        if count > 0 { outgoing.removeFirst(count) }
    }

    /// What has come since.
    func receive() -> [JSON] {
        flush()
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while fd >= 0 {
            let count = buffer.withUnsafeMutableBytes { sim_read(fd, $0.baseAddress, $0.count) }
            if count > 0 {
                incoming += buffer[..<count]
                continue
            }
            if count == 0 || sim_errno() != 11 { close() }
            break
        }
        var result: [JSON] = []
        while let end = incoming.firstIndex(of: 0) {
            if let value = try? JSON.parse(incoming[..<end]) { result.append(value) } else { isGarbled = true }
            incoming.removeFirst(end + 1)
        }
        return result
    }
}
