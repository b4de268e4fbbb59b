// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import DataProtection

@Suite("What locks data from outside") struct OutsideLocksTests {
    private typealias State = OutsideLocks.State

    private static func fresh() -> OutsideLocks {
        var locks = OutsideLocks(OutsideLocks.Recorded(session: false, sleep: false), isKnown: true)
        #expect(locks.say(awake) == nil)
        return locks
    }

    private static let awake = State(isLocked: false, isAsleep: false, hasSession: true, user: 1000)
    private static let locked = State(isLocked: true, isAsleep: false, hasSession: true, user: 1000)
    private static let asleep = State(isLocked: false, isAsleep: true, hasSession: true, user: 1000)
    private static let both = State(isLocked: true, isAsleep: true, hasSession: true, user: 1000)
    private static let gone = State(isLocked: false, isAsleep: false, hasSession: false, user: nil)
    private static let greeter = State(isLocked: false, isAsleep: false, hasSession: true, user: 120)

    @Test("a sleep locks what a person has unlocked by hand while the session was locked")
    func byHand() {
        var locks = Self.fresh()
        #expect(locks.say(Self.locked) == .lock)
        locks.isUnlocked()
        #expect(locks.say(Self.both) == .lock)
        #expect(locks.say(Self.both) == nil)
        // The session is still locked: the end of the sleep unlocks nothing.
        #expect(locks.say(Self.locked) == nil)
        #expect(locks.say(Self.awake) == .unlock)
    }

    @Test("an unlock that was asked for is asked for by the next torpord, until it is carried out or was in vain")
    func kept() {
        var locks = Self.fresh()
        _ = locks.say(Self.locked)
        #expect(locks.say(Self.awake) == .unlock && locks.say(Self.awake) == nil)
        #expect(locks.recorded == OutsideLocks.Recorded(session: true, sleep: false, user: 1000))
        var next = OutsideLocks(locks.recorded, isKnown: true)
        #expect(next.say(Self.awake) == .unlock)
        next.isUnlocked()
        locks.staysLocked()
        for one in [next, locks] { #expect(!one.recorded.session && !one.recorded.sleep) }
        // What still locks is known to the next one, which has nothing to do.
        _ = next.say(Self.locked)
        var other = OutsideLocks(next.recorded, isKnown: true)
        #expect(other.say(Self.locked) == nil && other.say(Self.awake) == .unlock)
    }

    @Test("a session that is gone, or another user's, unlocks nothing, and a sleep after it locks again")
    func gone() {
        for end in [Self.gone, Self.greeter] {
            for lock in [Self.locked, Self.asleep] {
                var locks = Self.fresh()
                #expect(locks.say(lock) == .lock && locks.say(end) == nil)
                locks.isUnlocked()
                var again = end
                again.isAsleep = true
                #expect(locks.say(again) == .lock)
            }
        }
    }

    @Test("a machine that sleeps at the login screen is unlocked by the user who was locked, not by that screen")
    func loginScreen() {
        var locks = Self.fresh()
        var asleep = Self.greeter
        asleep.isAsleep = true
        let steps: [(State, OutsideLocks.Wish?)] = [
            (Self.locked, .lock), (Self.greeter, nil), (asleep, .lock), (Self.greeter, nil), (Self.gone, nil),
            (Self.locked, .lock), (Self.awake, .unlock),
        ]
        for (state, wish) in steps { #expect(locks.say(state) == wish) }
    }

    @Test("a rule that is taken away unlocks nothing, and one that is added counts at once")
    func rules() {
        var locks = Self.fresh()
        _ = locks.say(Self.locked)
        #expect(locks.follow(Self.locked, session: false, sleep: true) == nil)
        #expect(locks.follow(Self.awake, session: false, sleep: true) == nil)
        #expect(locks.follow(Self.locked, session: false, sleep: true) == nil)
        #expect(locks.say(Self.locked) == .lock)
    }

    @Test("a session that is found unlocked after a boot unlocks, one that is locked does not")
    func boot() {
        for (state, wish) in [
            (Self.awake, OutsideLocks.Wish.unlock), (Self.locked, .lock), (Self.both, .lock), (Self.gone, nil),
        ] {
            var locks = OutsideLocks(OutsideLocks.Recorded(session: false, sleep: false), isKnown: false)
            #expect(locks.say(state) == wish)
        }
    }

    @Test("the login screen of a boot unlocks nothing, and the first login after it does, whichever torpord sees it")
    func login() {
        var screen = Self.greeter
        screen.isUsers = false
        for first in [screen, Self.gone] {
            for isReplaced in [false, true] {
                var locks = OutsideLocks(OutsideLocks.Recorded(session: false, sleep: false), isKnown: false)
                #expect(locks.say(first) == nil && locks.say(screen) == nil)
                if isReplaced { locks = OutsideLocks(locks.recorded, isKnown: true) }
                #expect(locks.say(screen) == nil && locks.say(Self.awake) == .unlock)
            }
        }
    }

    @Test("a torpord that comes after the lock knows whose session it was, and takes no login screen for it")
    func crashAtLogin() {
        var screen = Self.greeter
        screen.isUsers = false
        for other in [Self.greeter, screen] {
            for lock in [Self.locked, Self.asleep] {
                var locks = Self.fresh()
                #expect(locks.say(lock) == .lock)
                #expect(locks.recorded.user == 1000)
                var next = OutsideLocks(locks.recorded, isKnown: true)
                #expect(next.say(other) == nil && next.say(Self.awake) == .unlock)
            }
        }
        // Its user is not known, as from an older torpord: a login screen still unlocks nothing.
        var old = OutsideLocks(OutsideLocks.Recorded(session: true, sleep: false), isKnown: true)
        #expect(old.say(screen) == nil && old.say(Self.awake) == .unlock)
    }
}

extension OutsideLocks {
    fileprivate mutating func say(_ state: State) -> Wish? { follow(state, session: true, sleep: true) }
}
