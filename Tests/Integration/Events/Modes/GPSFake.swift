import DaemonHarness
import Foundation
import Linux
import TestAddresses
import Testing

/// gpsd itself, with a receiver played from sentences of a test's own (gpsfake(1)). It ends with this object.
final class GPSFake {
    let port: UInt16
    private var child: Process?
    private let folder: String

    /// Nil where gpsd and gpsfake are there.
    static let obstacle: String? = {
        let programs = ["/usr/bin/gpsfake", "/usr/sbin/gpsd"]
        return programs.allSatisfy(File.isExecutable) ? nil : "gpsd and gpsd-clients are not installed: make deps"
    }()

    /// Nothing answers at `port` before ``start(_:)``.
    init() throws {
        folder = NSTemporaryDirectory() + "torpor-gps-" + UUID().uuidString
        try File.makeDirectories(folder)
        port = try TestAddress.port()
    }

    deinit {
        stop()
        try? File.removeTree(folder)
    }

    /// Plays these positions, twenty a second, again and again, as soon as somebody watches.
    func start(_ positions: [(latitude: Double, longitude: Double)]) throws {
        let text = positions.enumerated().map { Self.sentences($0.offset, $0.element) }.joined()
        try File.write(folder + "/walk.log", "# Date: 2024-06-01\n" + text)
        let process = Process()
        // The thread of a test may block signals, and what it starts inherits that: gpsfake could not be interrupted, and
        // would leave its gpsd behind.
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = [
            "--default-signal", "/usr/bin/gpsfake", "-q", "-c", "0.05", "-P", "\(port)", folder + "/walk.log",
        ]
        // It leaves its control socket there.
        process.environment = ProcessInfo.processInfo.environment.merging(["TMPDIR": folder]) { $1 }
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        try process.run()
        child = process
    }

    /// gpsd is there and hears no more.
    func pause() { if let child { kill(child.processIdentifier, SIGSTOP) } }

    /// gpsd is gone.
    func stop() {
        guard let child else { return }
        let pid = child.processIdentifier
        let children = (try? String(contentsOfFile: "/proc/\(pid)/task/\(pid)/children", encoding: .utf8)) ?? ""
        // It ends its gpsd itself when it is told to end.
        kill(pid, SIGCONT)
        child.interrupt()
        let end = Clock.monotonic() + .seconds(30)
        while child.isRunning, Clock.monotonic() < end { usleep(10_000) }
        if child.isRunning {
            Issue.record("gpsfake did not end when it was interrupted")
            for daemon in children.split(separator: " ").compactMap({ pid_t($0) }) { kill(daemon, SIGKILL) }
            kill(pid, SIGKILL)
        }
        child.waitUntilExit()
        self.child = nil
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
