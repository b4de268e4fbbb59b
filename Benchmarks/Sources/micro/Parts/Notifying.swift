// SPDX-License-Identifier: Apache-2.0

import Glibc
import Lifecycle
import Linux
import Notify

extension Part {
    /// This includes the sender's own instructions for its system call.
    static let notify = Part(
        name: "notify",
        what: "a WATCHDOG=1 is read from an app's socket, taken apart and reaches the app's state"
    ) {
        let fleet = try Fleet()
        let path = Scratch.path("notify")
        let socket = try NotifySocket(path: SharedPath(path))
        let sender = Glibc.socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0)
        guard connectSocket(sender, path) else { throw WentWrong("cannot connect to \(path)") }
        let beat = Array("WATCHDOG=1".utf8)
        return { count in
            for number in 0..<count {
                guard send(sender, beat, beat.count, 0) == beat.count else { throw WentWrong("cannot send") }
                fleet.now += .microseconds(10)
                guard let received = socket.peek(), received.pid == getpid(),
                    received.message.fields.contains(.watchdogPing)
                else { throw WentWrong("the beat did not arrive") }
                fleet.take(.heartbeat, of: number % Fleet.size)
                socket.drop(received)
            }
        }
    }
}

/// Connects a Unix socket.
func connectSocket(_ socket: Int32, _ path: String) -> Bool {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8.prefix($0.count - 1)) }
    let size = socklen_t(MemoryLayout<sockaddr_un>.size)
    return withUnsafePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(socket, $0, size) == 0 }
    }
}
