// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import TestAddresses
import Testing

/// gpsd itself, with a receiver whose sentences are a test's own. It ends with this object.
///
/// The receiver is a sender of datagrams, one of the sources that gpsd takes: a line of serial characters, as gpsfake(1)
/// has it, is lost for gpsd whenever the machine is busy.
final class GPSFake {
    let port: UInt16
    private let receiver: UInt16
    private var child: Process?
    private var isPlaying: Monitor<Bool>?

    private static let program = "/usr/sbin/gpsd"

    /// Nil where gpsd is there.
    static let obstacle: String? = File.isExecutable(program) ? nil : "gpsd is not installed: make deps"

    /// Nothing answers at `port` before ``start(_:)``.
    init() throws {
        port = try TestAddress.port()
        receiver = try TestAddress.port()
    }

    deinit { stop() }

    /// Plays these positions, twenty a second, again and again.
    func start(_ positions: [(latitude: Double, longitude: Double)]) throws {
        let process = Process()
        // The thread of a test may block signals, and what it starts inherits that.
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = [
            "--default-signal", Self.program, "-N", "-n", "-S", "\(port)", "udp://127.0.0.1:\(receiver)",
        ]
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        try process.run()
        child = process
        let isPlaying = Monitor(true)
        self.isPlaying = isPlaying
        let sender = try Sender(receiver)
        try WorkerThread.start(named: "receiver") {
            var second = 0
            while isPlaying.withLock({ $0 }) {
                sender.send(Self.sentences(second, positions[second % positions.count]))
                second += 1
                usleep(50_000)
            }
        }
    }

    /// gpsd is there and hears no more.
    func pause() { if let child { kill(child.processIdentifier, SIGSTOP) } }

    /// gpsd is gone.
    func stop() {
        isPlaying?.withLock { $0 = false }
        guard let child else { return }
        kill(child.processIdentifier, SIGKILL)
        child.waitUntilExit()
        self.child = nil
    }

    /// Sends to whoever may listen there.
    private final class Sender: Sendable {
        private let socket: Int32
        private let port: UInt16

        init(_ port: UInt16) throws {
            self.port = port
            socket = Glibc.socket(AF_INET, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
            guard socket >= 0 else { throw Errno(rawValue: errno) }
        }

        deinit { close(socket) }

        func send(_ text: String) {
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_port = port.bigEndian
            address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
            _ = withUnsafePointer(to: &address) { address in
                address.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    sendto(socket, text, text.utf8.count, 0, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
                }
            }
        }
    }

    /// GGA and RMC of NMEA 0183.
    private static func sentences(_ second: Int, _ place: (latitude: Double, longitude: Double)) -> String {
        let time = String(format: "%02d%02d%02d.00", 12 + second / 3600, second / 60 % 60, second % 60)
        let latitude = degrees(place.latitude, 2, "N", "S")
        let longitude = degrees(place.longitude, 3, "E", "W")
        return checked("GPGGA,\(time),\(latitude),\(longitude),1,08,0.9,30.0,M,40.0,M,,")
            + checked("GPRMC,\(time),A,\(latitude),\(longitude),001.0,090.0,010624,,,A")
    }

    private static func degrees(_ value: Double, _ width: Int, _ positive: String, _ negative: String) -> String {
        let whole = Int(abs(value))
        let minutes = (abs(value) - Double(whole)) * 60
        let digits = String(repeating: "0", count: max(0, width - "\(whole)".count)) + "\(whole)"
        return digits + String(format: "%07.4f", minutes) + "," + (value < 0 ? negative : positive)
    }

    private static func checked(_ sentence: String) -> String {
        let sum = sentence.utf8.reduce(UInt8(0)) { $0 ^ $1 }
        return "$" + sentence + String(format: "*%02X", sum) + "\r\n"
    }
}
