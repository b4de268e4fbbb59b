// SPDX-License-Identifier: Apache-2.0

public import EventLoop
import Linux
import SystemBus

/// Follows the login manager (systemd-logind, org.freedesktop.login1(5)): whether the machine is about to sleep or
/// has woken, and whether a session is locked.
///
/// Nothing blocks and nothing is required: without a bus or logind, the machine counts as awake and the session as
/// unlocked. Either may come and go at any time; the state is then queried again.
public final class LoginManager {
    /// The parts of logind's state to follow.
    public let subject: Subject
    /// Called when ``state`` has changed.
    public var onChange: (() -> Void)?

    /// The current state.
    public private(set) var state = State()

    let loop: EventLoop
    let address: String
    private(set) var connection: BusConnection?
    private var connectTimer: TimerSource?
    private var connectDelay = LoginManager.firstDelay
    private var connectedAt = Duration.zero
    private var slots: [BusSlot?] = []
    /// logind's unique name: signals of other senders are ignored.
    private(set) var owner: String?
    private var absenceTimer: TimerSource?
    private var sleep: SleepWatch?
    private var session: SessionWatch?
    private var connectTrouble: String?

    static let service = "org.freedesktop.login1"
    static let object = "/org/freedesktop/login1"
    static let manager = "org.freedesktop.login1.Manager"
    private static let busService = "org.freedesktop.DBus"
    private static let firstDelay = Duration.milliseconds(100)
    private static let longestDelay = Duration.seconds(30)
    /// How long a restarted logind may take to return. After this time the state counts as unknown.
    static let absence = Duration.seconds(5)

    /// The parts of logind's state to follow.
    public struct Subject: Hashable, Sendable {
        /// Whether to follow the machine's sleep.
        public var sleep: Bool
        /// Whose lock to follow; nil for none.
        public var session: SessionChoice?

        /// Memberwise initializer.
        public init(sleep: Bool, session: SessionChoice?) {
            self.sleep = sleep
            self.session = session
        }

        /// Whether there is nothing to follow.
        public var isNothing: Bool { !sleep && session == nil }
    }

    /// Selects a session.
    public enum SessionChoice: Hashable, Sendable {
        /// The session that logind reports as this user's display: a graphical one is preferred to a terminal.
        case user(UInt32)
        /// The active session of this seat.
        case seat(String)
        /// The session with this id.
        case id(String)
    }

    /// The known state.
    public struct State: Hashable, Sendable {
        /// Whether logind has reported all of this state, or has been missing for five seconds. Until then, the other
        /// values mean nothing.
        public var isKnown = false
        /// Whether the machine is about to sleep or sleeps; false again when it has woken.
        public var isAsleep = false
        /// The session is locked.
        public var isLocked = false
        /// The id of the session that is followed.
        public var session: String?
        /// The user of the session that is followed.
        public var user: UInt32?
        /// Whether a user has logged in to that session; false for a login screen.
        public var isUsers = false

        /// Creates the state of an awake machine with an unlocked session.
        public init(isKnown: Bool = false) { self.isKnown = isKnown }
    }

    /// Starts to follow logind.
    ///
    /// - Parameter address: a D-Bus address; nil: the system bus.
    public init(_ loop: EventLoop, _ subject: Subject, address: String? = nil) {
        self.loop = loop
        self.subject = subject
        self.address =
            address ?? ThisProcess.environment("DBUS_SYSTEM_BUS_ADDRESS") ?? "unix:path=/run/dbus/system_bus_socket"
        connectTimer = try? loop.timer { [weak self] in self?.connect() }
        absenceTimer = try? loop.timer { [weak self] in self?.isAbsent() }
        missing()
        connect()
    }

    // MARK: The bus

    private func connect() {
        do throws(BusError) {
            let made = try BusConnection(loop, address: address)
            made.onLost = { [weak self] error in self?.lost(error) }
            connection = made
            connectedAt = loop.now
            connectTrouble = nil
            begin(made)
        } catch {
            lost(error)
        }
    }

    private func begin(_ connection: BusConnection) {
        slots = [
            connection.subscribe(
                "type='signal',sender='\(Self.busService)',path='/org/freedesktop/DBus',interface='\(Self.busService)',"
                    + "member='NameOwnerChanged',arg0='\(Self.service)'"
            ) { [weak self] message in
                guard message.sender == Self.busService, message.text() != nil, message.text() != nil else { return }
                self?.appeared(message.text())
            },
            connection.call(
                Self.busService,
                "/org/freedesktop/DBus",
                Self.busService,
                "GetNameOwner",
                [.text(Self.service)]
            ) { [weak self] answer in
                self?.appeared((try? answer.get())?.text())
            },
        ]
    }

    private func lost(_ error: BusError) {
        connectTrouble = error.description
        connection = nil
        disappeared()
        slots = []
        if loop.now - connectedAt > Self.longestDelay { connectDelay = Self.firstDelay }
        connectTimer?.arm(after: connectDelay)
        connectDelay = min(connectDelay * 2, Self.longestDelay)
    }

    // MARK: logind

    private func appeared(_ name: String?) {
        guard let name, !name.isEmpty else { return disappeared() }
        guard name != owner, let connection else { return }
        owner = name
        if subject.sleep {
            // Keep the inhibitor lock that the earlier instance of logind granted, until the new instance has granted
            // one.
            sleep = SleepWatch(self, connection, keeping: sleep?.inhibitor)
        }
        if let choice = subject.session { session = SessionWatch(self, connection, choice) }
        changed()
    }

    private func disappeared() {
        guard owner != nil || state.isKnown else { return }
        owner = nil
        // Keep the inhibitor lock: a restarted logind recognises it.
        sleep?.stop()
        session = nil
        missing()
    }

    /// Called when logind is missing. If it stays missing for ``absence``, resets the state.
    private func missing() {
        guard absenceTimer?.deadline == nil else { return }
        absenceTimer?.arm(after: Self.absence)
    }

    private func isAbsent() {
        absenceTimer?.disarm()
        if owner == nil { (sleep, session) = (nil, nil) }
        guard owner == nil || !isAnswered else { return }
        publish(State(isKnown: true))
    }

    private var isAnswered: Bool {
        owner != nil && (sleep?.isKnown ?? true) && (session?.isKnown ?? true)
    }

    /// Handles a change that logind has reported.
    func changed() {
        // While logind restarts, keep the previous state until the new one is complete.
        guard isAnswered else { return }
        absenceTimer?.disarm()
        var new = State(isKnown: true)
        new.isAsleep = sleep?.isAsleep ?? false
        new.isLocked = session?.isLocked ?? false
        new.session = session?.name
        new.user = session?.user
        new.isUsers = session?.isUsers ?? false
        publish(new)
    }

    private func publish(_ new: State) {
        guard new != state else { return }
        state = new
        onChange?()
    }

    /// Whether logind itself sent a message.
    func isFromLogind(_ message: BusMessage) -> Bool { owner != nil && message.sender == owner }

    // MARK: Sleep

    /// When the machine will sleep even if this process does not release the inhibitor lock; nil if the sleep is not
    /// delayed, or if the machine is not about to sleep.
    public var sleepsAt: Duration? { sleep?.sleepsAt }

    /// Releases the inhibitor lock: this process no longer delays the sleep.
    public func letSleep() { sleep?.letSleep() }

    // MARK: For persons

    /// The state in half a sentence.
    public var description: String {
        guard owner != nil else { return connection?.isReady == true ? "not there" : "no bus" }
        var parts: [String] = []
        if let sleep {
            let waits = sleep.longestDelay.map { "waits up to \($0.microseconds / 1000) ms before it sleeps" }
            parts.append(sleep.inhibitor == nil ? "reports sleep" : "reports sleep, and " + (waits ?? "waits"))
        }
        if let session {
            let lock = session.isLocked ? "locked" : "not locked"
            parts.append(session.name.map { "session \($0), \(lock)" } ?? "no session")
        }
        return parts.joined(separator: "; ")
    }

    /// Whether logind is present.
    public var isThere: Bool { owner != nil }

    /// What is missing, as the end of a sentence; nil if nothing is missing.
    public var trouble: String? {
        guard owner != nil else {
            let reason = connectTrouble.map { " (\($0))" } ?? ""
            return connection?.isReady == true
                ? "no logind is on the bus" : "the system's bus \(address) does not answer\(reason)"
        }
        return sleep?.trouble ?? session?.trouble
    }
}
