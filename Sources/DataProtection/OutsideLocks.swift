// SPDX-License-Identifier: Apache-2.0

/// Decides when data is locked because the session is locked or the machine sleeps, and when data is unlocked again.
/// Both are followed separately: if a user has unlocked data by hand while the session was locked, a sleep still locks
/// it. This type does no I/O: the caller carries out the wishes, and stores ``recorded`` for the next torpord.
public struct OutsideLocks: Hashable, Sendable {
    /// The state of the session and of the machine, as logind reports it.
    public struct State: Hashable, Sendable {
        /// Whether the session is locked.
        public var isLocked: Bool
        /// Whether the machine sleeps or is about to.
        public var isAsleep: Bool
        /// Whether there is a session that could be unlocked.
        public var hasSession: Bool
        /// The user of that session; nil if that is not known yet.
        public var user: UInt32?
        /// Whether the session belongs to a user who has logged in; false for a login screen, which is a session too.
        public var isUsers = true

        /// Memberwise initializer.
        public init(isLocked: Bool, isAsleep: Bool, hasSession: Bool, user: UInt32?) {
            (self.isLocked, self.isAsleep, self.hasSession, self.user) = (isLocked, isAsleep, hasSession, user)
        }
    }

    /// What to do after a change of the session or the machine.
    public enum Wish: Hashable, Sendable { case lock, unlock }

    /// What torpord stores for the next torpord.
    public struct Recorded: Hashable, Sendable {
        /// Whether the session's lock has locked data, and the unlock that follows its end was not carried out yet.
        public var session: Bool
        /// Whether the machine's sleep has locked data, and the unlock that follows its end was not carried out yet.
        public var sleep: Bool
        /// The user of the session at the time of that lock; nil if unknown.
        public var user: UInt32?

        /// Memberwise initializer.
        public init(session: Bool, sleep: Bool, user: UInt32? = nil) {
            (self.session, self.sleep, self.user) = (session, sleep, user)
        }
    }

    private enum Hold: Hashable {
        case none
        case holds
        /// The lock has ended and has requested an unlock, which was not carried out yet.
        case ends
    }

    private var session: Hold
    private var sleep: Hold
    /// The previous state; nil if this torpord has seen none.
    private var last: State?
    /// Whether a torpord of this boot has followed the session before. If so, only changes of the session count.
    private var isKnown: Bool
    /// The user of the session at the time of the last lock; nil if no torpord of this boot has seen a lock.
    private var user: UInt32?

    /// Continues with what an earlier torpord of this boot has recorded.
    public init(_ recorded: Recorded, isKnown: Bool) {
        session = recorded.session ? .holds : .none
        sleep = recorded.sleep ? .holds : .none
        user = recorded.user
        self.isKnown = isKnown
    }

    /// What torpord must store now for the next torpord.
    public var recorded: Recorded { Recorded(session: session != .none, sleep: sleep != .none, user: user) }

    /// Handles a state that logind has reported, and returns what to do. `session` and `sleep`: whether each of them is
    /// configured to lock data (`lock_with`).
    public mutating func follow(_ now: State, session usesSession: Bool, sleep usesSleep: Bool) -> Wish? {
        let (before, isFirst) = (last, !isKnown)
        last = now
        isKnown = true
        var (locks, ends) = (false, false)
        let isHeld = session == .holds || sleep == .holds
        // If the session has ended, if a login screen or another user's session has taken its place, or if logind does
        // not answer, a lock remains: none of these means that the user has unlocked the session.
        let isReturned = now.hasSession && now.isUsers && !isOthers(now.user)
        func step(_ hold: inout Hold, _ isOn: Bool, _ was: Bool?, _ isUsed: Bool, _ mayEnd: Bool) {
            if !isUsed {
                hold = .none
            } else if isOn {
                let isNew = was.map { !$0 } ?? (hold != .holds)
                if isNew || isFirst || hold == .none { locks = true }
                hold = .holds
            } else if hold == .holds, mayEnd {
                hold = .ends
                ends = true
            }
        }
        step(&session, now.isLocked, before?.isLocked, usesSession, isReturned)
        step(&sleep, now.isAsleep, before?.isAsleep, usesSleep, isReturned || !usesSession)
        // After a boot, data is locked while no user has a session: the first login ends that lock.
        if isFirst, usesSession, !now.isLocked, !(now.hasSession && now.isUsers) { session = .holds }
        // If the machine sleeps while a login screen is shown, keep the user whose session was locked: that user must
        // unlock.
        if session == .holds || sleep == .holds, now.isUsers, !isHeld || user == nil { user = now.user }
        if locks { return .lock }
        guard session != .holds, sleep != .holds else { return nil }
        return ends || isFirst && now.hasSession && now.isUsers ? .unlock : nil
    }

    /// Called when data was unlocked, no matter by whom. If a lock has ended and requested an unlock, that request is
    /// fulfilled too.
    public mutating func isUnlocked() {
        if last?.isLocked != true { session = .none }
        if last?.isAsleep != true { sleep = .none }
    }

    /// Called when a requested unlock has failed. It is not requested again.
    public mutating func staysLocked() {
        if session == .ends { session = .none }
        if sleep == .ends { sleep = .none }
    }

    private func isOthers(_ other: UInt32?) -> Bool {
        if let other, let user { other != user } else { false }
    }
}
