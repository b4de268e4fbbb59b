// SPDX-License-Identifier: Apache-2.0

import Testing
import Varlink

@testable import DataProtection

@Suite("The edges between locked and unlocked data") struct ProtectionEdgeTests {
    private static func unlocked() -> ProtectionEdge {
        var edge = ProtectionEdge()
        _ = edge.handle(.begun(.unlocked), now: .zero)
        _ = edge.handle(.opened(true), now: .zero)
        return edge
    }

    @Test("a fresh start closes what a loss of power left open, and waits for the unlock")
    func fresh() {
        for recorded in [ProtectionEdge.Recorded.nothing, .locked, .locking] {
            var edge = ProtectionEdge()
            #expect(!edge.hasBegun && edge.handle(.unlock, now: .zero) == [])
            #expect(edge.handle(.begun(recorded), now: .zero) == [.record(.locking), .close])
            #expect(
                edge.handle(.closed(isBusy: false), now: .zero) == [.record(.locked), .announceLocked(isBusy: false)]
            )
            #expect(edge.isLocked && edge.hasBegun && !edge.isUnlocked)
            #expect(edge.handle(.begun(.unlocked), now: .zero) == [])
        }
    }

    @Test("what an earlier torpord had unlocked is opened again, and only the keys decide")
    func recorded() {
        var edge = ProtectionEdge()
        #expect(edge.handle(.begun(.unlocked), now: .zero) == [.open])
        #expect(!edge.isUnlocked)
        #expect(edge.handle(.opened(false), now: .zero) == [.record(.locked), .stayLocked])
        #expect(edge.isLocked)
    }

    @Test("a lock warns first, and closes when all have answered or the deadline is over")
    func lock() {
        var edge = Self.unlocked()
        edge.deadline = .seconds(3)
        #expect(edge.handle(.lock, now: .zero) == [.record(.locking), .warn, .arm(.seconds(3))])
        #expect(!edge.isUnlocked && edge.isLocking && edge.isWarning)
        #expect(edge.handle(.lock, now: .zero) == [])
        var other = edge
        #expect(edge.handle(.answered, now: .zero) == [.disarm, .close])
        #expect(other.handle(.timeout, now: .seconds(3)) == [.close])
        #expect(edge == other && edge.isLocking && !edge.isWarning)
        #expect(edge.handle(.answered, now: .zero) == [] && edge.handle(.timeout, now: .zero) == [])
    }

    @Test("busy files are tried again each second, for ten seconds")
    func busy() {
        var edge = Self.unlocked()
        _ = edge.handle(.lock, now: .zero)
        _ = edge.handle(.answered, now: .zero)
        var tries = 0
        var now = Duration.seconds(1)
        while true {
            let actions = edge.handle(.closed(isBusy: true), now: now)
            if actions == [.record(.locked), .announceLocked(isBusy: true)] { break }
            #expect(actions == [.arm(.seconds(1))])
            now += .seconds(1)
            #expect(edge.handle(.timeout, now: now) == [.close])
            tries += 1
            if tries > 20 { break }
        }
        #expect(tries == 10 && edge.isLocked)
    }

    @Test("an unlock before the files are closed takes the warning back")
    func takenBack() {
        var edge = Self.unlocked()
        _ = edge.handle(.lock, now: .zero)
        #expect(edge.handle(.unlock, now: .zero) == [.disarm, .record(.unlocked), .announceUnlocked])
        #expect(edge.isUnlocked && edge.handle(.timeout, now: .seconds(10)) == [])
    }

    @Test("a wish that comes during a run is carried out after it; the last one counts")
    func duringRuns() {
        var edge = Self.unlocked()
        _ = edge.handle(.lock, now: .zero)
        _ = edge.handle(.answered, now: .zero)
        #expect(edge.handle(.unlock, now: .zero) == [])
        var regretted = edge
        #expect(edge.handle(.closed(isBusy: true), now: .zero) == [.open])
        #expect(regretted.handle(.lock, now: .zero) == [])
        #expect(
            regretted.handle(.closed(isBusy: false), now: .zero) == [.record(.locked), .announceLocked(isBusy: false)]
        )
        // Locked while it is opened: nobody was told that it is open.
        #expect(edge.handle(.lock, now: .zero) == [])
        #expect(edge.handle(.opened(true), now: .zero) == [.record(.locking), .close])
        // Unlocked between two tries.
        _ = edge.handle(.closed(isBusy: true), now: .zero)
        #expect(edge.handle(.unlock, now: .zero) == [.disarm, .open])
        #expect(edge.handle(.unlock, now: .zero) == [])
        #expect(edge.handle(.opened(true), now: .zero) == [.open])
        #expect(edge.handle(.opened(true), now: .zero) == [.record(.unlocked), .announceUnlocked])
    }

    @Test("keys that are added while data is unlocked open the folders that lacked them")
    func moreKeys() {
        var edge = Self.unlocked()
        #expect(edge.handle(.unlock, now: .zero) == [.open] && edge.isUnlocked)
        var locked = edge
        #expect(edge.handle(.opened(false), now: .zero) == [.record(.unlocked), .announceUnlocked])
        // Apps have been using their data all the time, so a lock tells them.
        #expect(locked.handle(.lock, now: .zero) == [])
        #expect(locked.handle(.opened(true), now: .zero).contains(.warn))
    }

    /// The world of torpor-protect and of the timer, which refuses what cannot be.
    private struct World {
        var edge = ProtectionEdge()
        var isRunning = false
        var isArmed = false
        var isOpen = false
        var recorded = ProtectionEdge.Recorded.nothing

        mutating func tell(_ event: ProtectionEdge.Event, _ now: Duration) {
            for action in edge.handle(event, now: now) {
                switch action {
                case .open:
                    #expect(!isRunning)
                    isRunning = true
                case .close:
                    #expect(!isRunning && recorded == .locking, "a kill now would leave folders open")
                    isRunning = true
                case .arm: isArmed = true
                case .disarm: isArmed = false
                case .warn: #expect(isOpen && recorded == .locking)
                case .record(let what): recorded = what
                case .announceUnlocked: #expect(isOpen && recorded == .unlocked)
                case .announceLocked, .stayLocked: #expect(recorded == .locked)
                }
            }
        }
    }

    @Test("whatever comes in whatever order, one run is under way at a time, and the last wish counts")
    func random() {
        var dice = SystemRandomNumberGenerator()
        for _ in 0..<300 {
            var world = World()
            var now = Duration.zero
            var wish: ProtectionEdge.Event?
            world.tell(.begun(ProtectionEdge.Recorded.allCases.randomElement(using: &dice) ?? .nothing), now)
            func step(_ choice: Int, hasWish: Bool) {
                now += .milliseconds(300)
                switch choice {
                case 0 where hasWish:
                    wish = .lock
                    world.tell(.lock, now)
                case 1 where hasWish:
                    wish = .unlock
                    world.tell(.unlock, now)
                case 2 where world.isArmed:
                    world.isArmed = false
                    world.tell(.timeout, now)
                case 3: world.tell(.answered, now)
                case _ where world.isRunning:
                    world.isRunning = false
                    switch world.edge.phase {
                    case .opening:
                        world.isOpen = true
                        world.tell(.opened(true), now)
                    default:
                        world.isOpen = false
                        world.tell(.closed(isBusy: Bool.random(using: &dice)), now)
                    }
                default: break
                }
            }
            for _ in 0..<60 { step(Int.random(in: 0..<6, using: &dice), hasWish: true) }
            for _ in 0..<200 { step(Int.random(in: 2..<6, using: &dice), hasWish: false) }
            #expect(!world.isRunning && !world.edge.isLocking)
            if let wish { #expect(world.edge.isUnlocked == (wish == .unlock)) }
        }
    }

    @Test("a standing is read back from its JSON, and a wrong one is refused")
    func json() throws {
        var standing = FolderStanding(app: "mail", .closed)
        (standing.isEncrypted, standing.isBusy, standing.problem) = (true, true, "why")
        standing.holders = [FileHolder(pid: 7, name: "less", files: ["a", "b"], count: 3)]
        #expect(try FolderStanding(json: JSON.parse(standing.json.serialised())) == standing)
        #expect(throws: (any Error).self) { try FolderStanding(json: ["app": "a", "state": "ajar"]) }
        let folder = ProtectedFolder(app: "mail", mayFallBack: true, user: "nobody", group: "")
        #expect(ProtectedFolder.folders((folder.words + folder.words)[...]) == [folder, folder])
        #expect(ProtectedFolder.folders(["mail", "none", ""]) == nil)
    }
}
