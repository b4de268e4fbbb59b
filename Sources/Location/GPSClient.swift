// SPDX-License-Identifier: Apache-2.0

public import EventLoop
import Linux
import Varlink

/// A client of gpsd(8), the service for GPS receivers. It runs on the loop and never blocks.
///
/// gpsd switches receivers on only while it has clients: releasing this object disconnects from it. If gpsd is
/// missing or goes away, the client reconnects after 1 s, then 2 s, up to a minute.
///
/// While gpsd is not running, any local user can listen at its port and send false positions: on this machine, only a
/// server of a trusted user is read. A server on another machine is trusted because the user configured its address.
public final class GPSClient {
    /// Called with each position.
    public var onFix: ((Position) -> Void)?
    /// Called when no position has come for ``patience``: no receiver has a position, or gpsd does not answer.
    public var onSilence: (() -> Void)?

    /// Called when the server's user is not trusted, with the reason from ``trouble``. Called only once until a
    /// trusted server answers.
    public var onDistrust: ((String) -> Void)?

    /// gpsd's version; nil while not connected.
    public private(set) var release: String?
    /// The number of GPS receivers that gpsd has.
    public private(set) var receivers = 0
    /// When the last position came; nil if that was more than ``patience`` ago.
    public private(set) var lastFix: Duration?
    /// Why gpsd does not answer; nil if it does.
    public private(set) var trouble: String?
    /// The address of gpsd.
    public let address: String
    /// The TCP port of gpsd.
    public let port: UInt16

    /// Users whose server on this machine is trusted.
    public let trusted: Set<UInt32>

    private let loop: EventLoop
    private var isTrusted = false
    private var hasToldDistrust = false
    private var socket: Descriptor?
    private var source: IOSource?
    private var retry: TimerSource?
    private var silence: TimerSource?
    private var delay = GPSClient.firstDelay
    private var input: [UInt8] = []

    /// After this time without a new position, the old one no longer counts.
    public static let patience = Duration.seconds(10)
    private static let firstDelay = Duration.seconds(1)
    private static let longestDelay = Duration.seconds(60)
    /// gpsd's own limit of a report is 10,240 bytes (GPS_JSON_RESPONSE_MAX).
    private static let longestLine = 64 << 10
    private static let command = "?WATCH={\"enable\":true,\"json\":true};\n"

    /// Starts to connect to a numeric address.
    ///
    /// - Parameter trusted: users whose server on this machine is trusted.
    public init(_ loop: EventLoop, address: String, port: UInt16, trusted: Set<UInt32>) {
        self.loop = loop
        self.trusted = trusted
        self.address = address
        self.port = port
        retry = try? loop.timer { [weak self] in self?.connect() }
        silence = try? loop.timer { [weak self] in self?.isSilent() }
        // Also report silence if no position ever arrives.
        silence?.arm(after: Self.patience)
        connect()
    }

    deinit {
        source?.cancel()
        retry?.cancel()
        silence?.cancel()
    }

    private func connect() {
        retry?.disarm()
        do throws(Errno) {
            let made = try Sockets.connectTCP(address: address, port: port)
            socket = made
            source = try loop.watch(made.raw, .writable) { [weak self] _ in self?.connected() }
        } catch {
            lost("\(error)")
        }
    }

    private func connected() {
        guard let socket else { return }
        if let error = Sockets.pendingError(socket.raw) { return lost("\(error)") }
        source?.cancel()
        do throws(Errno) {
            // The command is short enough for the send buffer of a new connection.
            _ = try Descriptor.write(socket.raw, Array(Self.command.utf8))
            source = try loop.watch(socket.raw, .readable) { [weak self] _ in self?.readable() }
        } catch {
            lost("\(error)")
        }
    }

    private func lost(_ reason: String) {
        source?.cancel()
        source = nil
        socket = nil
        isTrusted = false
        input = []
        release = nil
        receivers = 0
        trouble = reason
        retry?.arm(after: delay)
        delay = min(delay * 2, Self.longestDelay)
    }

    private func readable() {
        guard let socket else { return }
        do throws(Errno) {
            guard let bytes = try Descriptor.read(socket.raw, maximum: 16 << 10) else { return }
            guard !bytes.isEmpty else { return lost("it closed the connection") }
            // Check the peer only now: before the server writes, it may not have accepted the connection, so its user
            // is unknown.
            guard isTrusted || trustPeer(socket.raw) else { return }
            input += bytes
        } catch {
            return lost("\(error)")
        }
        // Report only the last of several positions: earlier ones are outdated.
        var fix: Position?
        var rest = input[...]
        while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
            if let report = GPSReport(line: rest[..<end]) { take(report, &fix) }
            rest = rest[(end + 1)...]
        }
        input = Array(rest)
        guard input.count <= Self.longestLine else { return lost("the server at this address is not gpsd") }
        if let fix { found(fix) }
    }

    /// Whether the server's user is trusted; if not, the connection is closed.
    private func trustPeer(_ socket: Int32) -> Bool {
        let who: String
        switch Sockets.peer(ofTCP: socket) {
        case .elsewhere:
            isTrusted = true
            return true
        case .user(let user):
            isTrusted = trusted.contains(user)
            if isTrusted { return true }
            who = "user \(user) runs the server there"
        case .unknown: who = "the kernel does not say which user runs the server there"
        }
        let reason = "\(who), and only root, the user gpsd and torpord's own user are trusted"
        lost(reason)
        if !hasToldDistrust { onDistrust?(reason) }
        hasToldDistrust = true
        return false
    }

    private func take(_ report: GPSReport, _ fix: inout Position?) {
        switch report {
        case .version(let release):
            self.release = release
            trouble = nil
            hasToldDistrust = false
            delay = Self.firstDelay
        case .devices(let count): receivers = count
        case .fix(let position): fix = position
        case .error(let text): trouble = text
        case .noFix, .other: break
        }
    }

    private func found(_ position: Position) {
        lastFix = loop.now
        silence?.arm(after: Self.patience)
        onFix?(position)
    }

    private func isSilent() {
        silence?.disarm()
        lastFix = nil
        onSilence?()
    }
}
