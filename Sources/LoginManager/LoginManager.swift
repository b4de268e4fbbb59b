// SPDX-License-Identifier: Apache-2.0

public import EventLoop
import Linux
import SystemBus

/// What the login manager (systemd-logind, org.freedesktop.login1(5)) tells of the machine and of one of its sessions: that
/// the machine is about to sleep, that it woke, that the session was locked or unlocked.
///
/// Nothing here waits, and nothing is needed: where there is no bus or no logind, the machine never sleeps and no session
/// is locked, as far as can be told. Either may come, go and come back at any time; what is the case is then asked anew.
public final class LoginManager {
    /// What is followed.
    public let subject: Subject
    /// Something of ``state`` is otherwise than before.
    public var onChange: (() -> Void)?

    /// What is the case.
    public private(set) var state = State()

    let loop: EventLoop
    private let address: String
    private(set) var connection: BusConnection?
    private var connectTimer: TimerSource?
    private var connectDelay = LoginManager.firstDelay
    private var connectedAt = Duration.zero
    private var slots: [BusSlot?] = []
    /// logind's unique name: who else sends its signals is not listened to.
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
    /// logind is back within this time when it is only started again; after that nobody says what is the case.
    static let absence = Duration.seconds(5)

    /// What of logind is followed.
    public struct Subject: Hashable, Sendable {
        /// Whether the machine sleeps.
        public var sleep: Bool
        /// Whether a session is locked; nil for none.
        public var session: SessionChoice?

        /// What is followed.
        public init(sleep: Bool, session: SessionChoice?) {
            self.sleep = sleep
            self.session = session
        }

        /// Whether there is anything to follow.
        public var isNothing: Bool { !sleep && session == nil }
    }

    /// Which session.
    public enum SessionChoice: Hashable, Sendable {
        /// The one that logind takes for the display of this user: a graphical one before one on a terminal.
        case user(UInt32)
        /// The one in front at this seat.
        case seat(String)
        /// The one of this identifier.
        case id(String)
    }

    /// What is known.
    public struct State: Hashable, Sendable {
        /// Whether all of this was said by logind, or nobody has answered for five seconds: before that nothing follows
        /// from it.
        public var isKnown = false
        /// The machine is about to sleep, or sleeps; false again when it has woken.
        public var isAsleep = false
        /// The session is locked.
        public var isLocked = false
        /// The session that is followed.
        public var session: String?

        /// Nothing is the case.
        public init(isKnown: Bool = false) { self.isKnown = isKnown }
    }

    /// Begins to follow.
    ///
    /// - Parameter address: a D-Bus address; the system's bus where nothing is said.
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
            // What an earlier one was told to wait for, this one waits for as well.
            sleep = SleepWatch(self, connection, keeping: sleep?.inhibitor)
        }
        if let choice = subject.session { session = SessionWatch(self, connection, choice) }
        changed()
    }

    private func disappeared() {
        guard owner != nil || state.isKnown else { return }
        owner = nil
        // The inhibitor stays: logind finds it again when it is only started again.
        sleep?.stop()
        session = nil
        missing()
    }

    /// Nobody answers: if that stays so, nothing is the case.
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

    /// Something was said by logind.
    func changed() {
        // What was the case stays so until all is known anew.
        guard isAnswered else { return }
        absenceTimer?.disarm()
        var new = State(isKnown: true)
        new.isAsleep = sleep?.isAsleep ?? false
        new.isLocked = session?.isLocked ?? false
        new.session = session?.name
        publish(new)
    }

    private func publish(_ new: State) {
        guard new != state else { return }
        state = new
        onChange?()
    }

    /// Whether a message is logind's own.
    func isFromLogind(_ message: BusMessage) -> Bool { owner != nil && message.sender == owner }

    // MARK: Sleep

    /// When the machine sleeps whatever is said here; nil when it does not wait, or is not about to sleep.
    public var sleepsAt: Duration? { sleep?.sleepsAt }

    /// As far as this process is concerned the machine may sleep now.
    public func letSleep() { sleep?.letSleep() }

    // MARK: For persons

    /// How things stand, in half a sentence.
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

    /// Whether there is a logind to follow.
    public var isThere: Bool { owner != nil }

    /// What is missing, in half a sentence; nil when nothing is.
    public var trouble: String? {
        guard owner != nil else {
            let reason = connectTrouble.map { " (\($0))" } ?? ""
            return connection?.isReady == true
                ? "no logind is on the bus" : "the system's bus \(address) does not answer\(reason)"
        }
        return sleep?.trouble ?? session?.trouble
    }
}
