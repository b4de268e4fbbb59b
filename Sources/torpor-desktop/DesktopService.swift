// SPDX-License-Identifier: Apache-2.0

import DesktopProtocol
import EventLoop
import Linux
import Varlink

/// Carries out torpord's commands until torpord closes its end of the socket.
///
/// The socket survives a restart of torpord. The next torpord begins with `hello`, and then gets the reports that the
/// previous torpord missed.
final class DesktopService {
    /// The descriptor of the socket to torpord.
    static let socket: Int32 = 3
    /// The longest command in bytes: an alert is much shorter.
    private static let longestCommand = 64 << 10
    /// The most bytes of reports that wait while torpord does not read. Further reports are dropped; after the next
    /// `hello`, those that are still needed are sent again.
    private static let mostWaiting = 1 << 20

    private let loop: EventLoop
    private let messages: MessageChannel
    private let session: Session
    private let screen: NotificationScreen
    private var focus: FocusWatch?
    private var sound: SoundWatch?
    private var source: IOSource?
    private var failure: Errno?

    init(_ loop: EventLoop, _ session: Session) {
        self.loop = loop
        self.session = session
        messages = MessageChannel(Self.socket, limit: Self.longestCommand) {
            ThisProcess.complain("torpor-desktop: \($0)")
        }
        screen = NotificationScreen(loop, bus: session.bus)
        screen.report = { [weak self] in self?.say($0) }
    }

    func run() throws(Errno) {
        try Descriptor.setNonBlocking(Self.socket)
        source = try loop.watch(Self.socket, .readable) { [weak self] events in self?.happened(events) }
        try loop.run()
        if let failure { throw failure }
    }

    private func happened(_ events: IOEvents) {
        if events.contains(.writable) { messages.flush() }
        if events != .writable { read() }
        watch()
    }

    private func watch() { source?.setEvents(messages.wantsToWrite ? [.readable, .writable] : .readable) }

    private func read() {
        do throws(Errno) {
            let commands = try messages.read { json throws(FieldError) in try DesktopCommand(json: json) }
            guard let commands else { return leave() }
            for command in commands { handle(command) }
        } catch {
            // A torpord that ends without having read all reports resets the connection.
            if error == .connectionReset { return leave() }
            failure = error
            loop.stop()
        }
    }

    /// Called when torpord has ended and no other torpord follows.
    private func leave() {
        source?.cancel()
        source = nil
        screen.report = { _ in }
        screen.closeAll { [weak self] in self?.loop.stop() }
    }

    private func say(_ report: DesktopReport) {
        guard messages.waitingBytes < Self.mostWaiting else { return }
        messages.say(report.json)
        watch()
    }

    private func handle(_ command: DesktopCommand) {
        switch command {
        case .hello: screen.greet()
        case .show(let alert): screen.show(alert)
        case .close(let id): screen.close(id)
        case .badge(let entry, let count): screen.badge(entry, count)
        case .follow(let kind): follow(kind)
        case .acknowledge(let id): screen.acknowledge(id)
        case .listen(let isOn): listen(isOn)
        case .raise(let pids): focus?.raise(pids)
        case .ping(let number): say(.pong(number: number))
        }
    }

    private func listen(_ isOn: Bool) {
        if isOn, let sound { return sound.repeatReports() }
        sound = isOn ? SoundWatch(loop, session) { [weak self] in self?.say($0) } : nil
    }

    private func follow(_ kind: DesktopFocus?) {
        // A restarted torpord sends the same command again: repeat the reports instead of reconnecting.
        if let focus, focus.kind == kind { return focus.repeatReports() }
        focus = kind.map { FocusWatch(loop, session, $0) { [weak self] in self?.say($0) } }
    }
}
