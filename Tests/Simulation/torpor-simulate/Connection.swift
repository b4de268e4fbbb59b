// SPDX-License-Identifier: Apache-2.0

import CSimulatedKernel
import Varlink

/// A connection of a client or an app, which never waits.
final class Connection {
    private(set) var fd: Int32
    private var incoming: [UInt8] = []
    private var outgoing: [UInt8] = []
    /// How often torpord had run when everything was read.
    private var emptyAt = UInt64.max
    /// The other end is gone.
    private(set) var hasEnded = false
    /// Something that is no JSON came.
    private(set) var isGarbled = false

    /// How many are open.
    nonisolated(unsafe) private(set) static var open = 0

    /// Fails when nothing listens at `path`.
    init?(_ path: String, as pid: Int32) {
        fd = sim_connect_as(path, pid)
        if fd < 0 { return nil }
        Connection.open += 1
    }

    func close() {
        if fd >= 0 { Connection.open -= 1 }
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
        let runs = sim_state().pointee.runs
        if emptyAt == runs { return [] }
        while fd >= 0 {
            let count = withUnsafeTemporaryAllocation(byteCount: 65_536, alignment: 1) { buffer in
                let count = sim_read(fd, buffer.baseAddress, buffer.count)
                if count > 0 { incoming += buffer[..<count] }
                return count
            }
            if count > 0 { continue }
            if count == 0 || sim_errno() != 11 { close() } else { emptyAt = runs }
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
