// SPDX-License-Identifier: Apache-2.0

import EventLoop
import Linux
import SystemBus

/// Finds the chosen session, searches again whenever sessions come and go, and follows whether the session is locked:
/// by its `LockedHint`, which the screen locker sets, and by logind's lock and unlock signals.
final class SessionWatch {
    private unowned let manager: LoginManager
    private let connection: BusConnection
    private let choice: LoginManager.SessionChoice

    /// Whether logind has answered.
    private(set) var isKnown = false
    /// Whether the session is locked.
    private(set) var isLocked = false
    /// The session's id; nil if there is none.
    private(set) var name: String?
    /// The user whose session it is; nil while that is not known.
    private(set) var user: UInt32?
    /// Whether a user has logged in to the session; false for a login screen, and while that is not known.
    private(set) var isUsers = false
    /// Why the chosen session is not followed; nil if it is followed, or if the user has no session, which is normal.
    private(set) var trouble: String?

    private var arrivals: [BusSlot?] = []
    /// The pending request.
    private var search: BusSlot?
    /// The user or seat that the session belongs to.
    private var holder: (path: String, changes: BusSlot?)?
    /// The session, and the subscriptions to it.
    private var followed: (id: String, path: String, slots: [BusSlot?])?
    /// The pending request for the session's `LockedHint`.
    private var hint: BusSlot?
    /// The pending request for the session's `User`.
    private var userQuestion: BusSlot?
    /// The pending request for the session's `Class`.
    private var classQuestion: BusSlot?

    private static let session = "org.freedesktop.login1.Session"

    init(_ manager: LoginManager, _ connection: BusConnection, _ choice: LoginManager.SessionChoice) {
        self.manager = manager
        self.connection = connection
        self.choice = choice
        for member in ["SessionNew", "SessionRemoved"] {
            let rule =
                "type='signal',sender='\(LoginManager.service)',path='\(LoginManager.object)',"
                + "interface='\(LoginManager.manager)',member='\(member)'"
            let slot = connection.subscribe(rule) { [weak self] message in
                guard let self, self.manager.isFromLogind(message) else { return }
                self.find()
            }
            arrivals.append(slot)
        }
        find()
    }

    // MARK: Which session

    private func find() {
        switch choice {
        case .user(let number):
            find("GetUser", .number(number), "org.freedesktop.login1.User", "Display")
        case .seat(let name):
            find("GetSeat", .text(name), "org.freedesktop.login1.Seat", "ActiveSession")
        case .id(let id):
            search = call("GetSession", .text(id)) { [weak self] path in
                self?.settle(path.map { (id, $0) })
            }
        }
    }

    /// Finds the session that is named by a property of a user or of a seat.
    private func find(_ method: String, _ argument: BusArgument, _ interface: String, _ property: String) {
        search = call(method, argument) { [weak self] path in
            guard let self else { return }
            guard let path else { return self.settle(nil) }
            if self.holder?.path != path {
                let changes = self.changes(of: path, interface) { [weak self] message in
                    if message.change(of: property).isNamed { self?.find() }
                }
                self.holder = (path, changes)
            }
            self.search = self.connection.get(LoginManager.service, path, interface, property) { [weak self] answer in
                let reference = (try? answer.get())?.reference()
                self?.settle(reference)
            }
        }
    }

    private func call(_ method: String, _ argument: BusArgument, _ answer: @escaping (String?) -> Void) -> BusSlot? {
        connection.call(
            LoginManager.service,
            LoginManager.object,
            LoginManager.manager,
            method,
            [argument]
        ) { [weak self] result in
            switch result {
            case .success(let message):
                self?.trouble = nil
                answer(message.path())
            case .failure(let error):
                if case .user = self?.choice {} else { self?.trouble = "no session is followed: \(error)" }
                answer(nil)
            }
        }
    }

    // MARK: Its lock

    private func settle(_ session: (id: String, path: String)?) {
        guard let session else {
            (name, isLocked, followed, hint) = (nil, false, nil, nil)
            (user, userQuestion, isUsers, classQuestion) = (nil, nil, false, nil)
            return known()
        }
        guard followed?.path != session.path else {
            if name == nil { askForHint(session.path) }
            return known()
        }
        name = session.id
        var slots: [BusSlot?] = [
            changes(of: session.path, Self.session) { [weak self] message in
                let change = message.change(of: "LockedHint")
                guard change.isNamed else { return }
                if let value = change.value { self?.locked(value) } else { self?.askForHint(session.path) }
            }
        ]
        for (member, isLocked) in [("Lock", true), ("Unlock", false)] {
            let rule =
                "type='signal',sender='\(LoginManager.service)',path='\(session.path)',"
                + "interface='\(Self.session)',member='\(member)'"
            let slot = connection.subscribe(rule) { [weak self] message in
                guard let self, self.manager.isFromLogind(message) else { return }
                self.locked(isLocked)
            }
            slots.append(slot)
        }
        followed = (session.id, session.path, slots)
        isUsers = false
        // Ask for the class before `LockedHint`, so that it is known when the answer about the lock arrives.
        classQuestion = connection.get(LoginManager.service, session.path, Self.session, "Class") {
            [weak self] answer in
            guard let self, let kind = (try? answer.get())?.variant("s", { $0.text() }) else { return }
            // The other classes are `greeter`, `lock-screen`, `background` and `manager`.
            self.isUsers = kind.utf8.starts(with: "user".utf8)
            if self.isKnown { self.manager.changed() }
        }
        userQuestion = connection.get(LoginManager.service, session.path, Self.session, "User") {
            [weak self] answer in
            guard let self, case .success(let message) = answer else { return }
            self.user = message.userNumber()
            if self.isKnown { self.manager.changed() }
        }
        askForHint(session.path)
    }

    private func askForHint(_ path: String) {
        hint = connection.get(LoginManager.service, path, Self.session, "LockedHint") { [weak self] answer in
            guard let self else { return }
            if let isLocked = (try? answer.get())?.variant("b", { $0.boolean() }) { return self.locked(isLocked) }
            // It is unknown whether the session is locked. An unknown session must not count as unlocked, so treat it
            // as missing until its next signal.
            hint = nil
            name = nil
            trouble = "the session's LockedHint cannot be read"
            known()
        }
    }

    private func locked(_ isLocked: Bool) {
        // Drop a pending request: its answer would be older than this signal.
        hint = nil
        self.isLocked = isLocked
        name = followed?.id
        known()
    }

    private func known() {
        isKnown = true
        manager.changed()
    }

    private func changes(of path: String, _ interface: String, _ handler: @escaping (BusMessage) -> Void) -> BusSlot? {
        let rule =
            "type='signal',sender='\(LoginManager.service)',path='\(path)',"
            + "interface='org.freedesktop.DBus.Properties',member='PropertiesChanged',arg0='\(interface)'"
        return connection.subscribe(rule) { [weak self] message in
            guard let self, self.manager.isFromLogind(message) else { return }
            handler(message)
        }
    }
}
