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
                edge.handle(.closed(.whole), now: .zero) == [.record(.locked), .announceLocked(isBusy: false)]
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
        #expect(edge.handle(.opened(false), now: .zero) == [.record(.locking), .close])
        #expect(edge.handle(.closed(.whole), now: .zero) == [.record(.locked), .stayLocked])
        #expect(edge.isLocked)
    }

    @Test("an unlock without keys closes again what it has opened; a lock or an unlock in between counts")
    func undone() {
        var edge = ProtectionEdge()
        _ = edge.handle(.begun(.locked), now: .zero)
        _ = edge.handle(.closed(.whole), now: .zero)
        #expect(edge.handle(.unlock, now: .zero) == [.open])
        #expect(edge.handle(.opened(false), now: .zero) == [.record(.locking), .close] && edge.isLocking)
        var (locked, unlocked) = (edge, edge)
        #expect(edge.handle(.closed(.busy), now: .zero) == [.arm(.seconds(1))])
        _ = edge.handle(.timeout, now: .seconds(1))
        #expect(edge.handle(.closed(.busy), now: .seconds(10)) == [.record(.locked), .stayLocked])
        _ = locked.handle(.lock, now: .zero)
        #expect(locked.handle(.closed(.whole), now: .zero) == [.record(.locked), .announceLocked(isBusy: false)])
        _ = unlocked.handle(.unlock, now: .zero)
        #expect(unlocked.handle(.closed(.whole), now: .zero) == [.open])
    }

    @Test("data never counts as locked after a run that left a folder open: it is said, and tried until it is closed")
    func failedRuns() {
        var edge = Self.unlocked()
        _ = edge.handle(.lock, now: .zero)
        _ = edge.handle(.answered, now: .zero)
        var now = Duration.seconds(1)
        #expect(edge.handle(.closed(.failed), now: now) == [.arm(.seconds(1))])
        now = .seconds(12)
        #expect(edge.handle(.timeout, now: now) == [.close])
        #expect(edge.handle(.closed(.failed), now: now) == [.announceFailure, .arm(.seconds(10))])
        for _ in 0..<5 {
            now += .seconds(10)
            #expect(edge.isLocking && !edge.isLocked && edge.isOverdue)
            #expect(edge.handle(.timeout, now: now) == [.close])
            #expect(edge.handle(.closed(.failed), now: now) == [.arm(.seconds(10))])
        }
        var regretted = edge
        #expect(regretted.handle(.unlock, now: now) == [.disarm, .open])
        _ = edge.handle(.timeout, now: now)
        #expect(edge.handle(.closed(.whole), now: now) == [.record(.locked), .announceLocked(isBusy: false)])
        #expect(edge.isLocked && !edge.isOverdue)
    }

    @Test("what an earlier torpord had unlocked is in use: a lock during its first run tells apps")
    func takenOver() {
        var edge = ProtectionEdge()
        _ = edge.handle(.begun(.unlocked), now: .zero)
        #expect(edge.handle(.lock, now: .zero) == [.record(.locking)] && edge.isLocking && !edge.isUnlocked)
        var without = edge
        #expect(edge.handle(.opened(true), now: .zero).contains(.warn))
        #expect(without.handle(.opened(false), now: .zero) == [.record(.locking), .close])
    }

    @Test("a lock during a run is recorded when it comes, and taken back by an unlock")
    func recordedWish() {
        var edge = ProtectionEdge()
        _ = edge.handle(.begun(.locked), now: .zero)
        _ = edge.handle(.closed(.whole), now: .zero)
        _ = edge.handle(.unlock, now: .zero)
        #expect(edge.handle(.lock, now: .zero) == [.record(.locking)] && edge.isLocking)
        #expect(edge.handle(.unlock, now: .zero) == [.record(.locked)] && !edge.isLocking)
        var other = Self.unlocked()
        _ = other.handle(.unlock, now: .zero)
        #expect(other.isUnlocked && other.handle(.lock, now: .zero) == [.record(.locking)] && !other.isUnlocked)
        #expect(other.handle(.unlock, now: .zero) == [.record(.unlocked)] && other.isUnlocked)
    }

    @Test("before a sleep apps have no longer than the machine waits, also if they were told before")
    func soon() {
        var edge = Self.unlocked()
        var told = edge
        #expect(edge.handle(.lockSoon(.seconds(2)), now: .zero) == [.record(.locking), .warn, .arm(.seconds(2))])
        #expect(edge.handle(.lockSoon(.seconds(30)), now: .zero) == [])
        _ = told.handle(.lock, now: .zero)
        #expect(told.handle(.lockSoon(.seconds(2)), now: .seconds(1)) == [.arm(.seconds(2))])
        #expect(told.handle(.lockSoon(.seconds(2)), now: .seconds(2)) == [])
        var opening = Self.unlocked()
        _ = opening.handle(.unlock, now: .zero)
        _ = opening.handle(.lockSoon(.seconds(3)), now: .zero)
        #expect(opening.handle(.opened(true), now: .seconds(1)).last == .arm(.seconds(2)))
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
            let actions = edge.handle(.closed(.busy), now: now)
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
        #expect(edge.handle(.closed(.busy), now: .zero) == [.open])
        #expect(regretted.handle(.lock, now: .zero) == [])
        #expect(
            regretted.handle(.closed(.whole), now: .zero) == [.record(.locked), .announceLocked(isBusy: false)]
        )
        // Locked while it is opened: nobody was told that it is open.
        #expect(edge.handle(.lock, now: .zero) == [.record(.locking)])
        #expect(edge.handle(.opened(true), now: .zero) == [.record(.locking), .close])
        // Unlocked between two tries.
        _ = edge.handle(.closed(.busy), now: .zero)
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
        #expect(locked.handle(.lock, now: .zero) == [.record(.locking)])
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
                case .announceFailure: #expect(recorded == .locking && edge.isLocking)
                case .announceLocked, .stayLocked: #expect(!isOpen && recorded == .locked)
                }
            }
        }
    }

    private static let outcomes: [ProtectionEdge.Closed] = [.whole, .busy, .failed]

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
                        // While nobody wishes anything more, there are keys.
                        world.tell(.opened(!hasWish || Bool.random(using: &dice)), now)
                    default:
                        let outcome = Self.outcomes.randomElement(using: &dice) ?? .whole
                        if outcome != .failed { world.isOpen = false }
                        world.tell(.closed(outcome), now)
                    }
                default: break
                }
            }
            for _ in 0..<60 { step(Int.random(in: 0..<6, using: &dice), hasWish: true) }
            for _ in 0..<200 { step(Int.random(in: 2..<6, using: &dice), hasWish: false) }
            // A run may fail for ever.
            if world.edge.isOverdue { continue }
            #expect(!world.isRunning && !world.edge.isLocking)
            if let wish, wish == .lock { #expect(!world.edge.isUnlocked) }
        }
    }

    @Test("a standing is read back from its JSON, and a wrong one is refused")
    func json() throws {
        var standing = FolderStanding(app: "mail", .closed)
        (standing.isEncrypted, standing.isBusy, standing.problem) = (true, true, "why")
        #expect(try FolderStanding(json: JSON.parse(standing.json.serialised())) == standing)
        #expect(throws: (any Error).self) { try FolderStanding(json: ["app": "a", "state": "ajar"]) }
        let folder = ProtectedFolder(app: "mail", mayFallBack: true, user: "nobody", group: "")
        #expect(ProtectedFolder.folders((folder.words + folder.words)[...]) == [folder, folder])
        #expect(ProtectedFolder.folders(["mail", "none", ""]) == nil)
    }

    @Test("lines count as soon as they are whole: those of one that was ended, and all that is found of one process")
    func answers() throws {
        func bytes(_ lines: [JSON]) -> [UInt8] { lines.flatMap { Array($0.serialised()) + [UInt8(ascii: "\n")] } }
        let (mail, notes) = (FolderStanding(app: "mail", .closed), FolderStanding(app: "notes", .closed))
        let first = FileHolder(pid: 7, name: "less", files: ["a"], count: 1, cgroup: "/x")
        let second = FileHolder(pid: 7, name: "less", files: ["b"], count: 2)
        let lines = [
            mail.json, notes.json, ProtectionAnswer.line("notes", first), ProtectionAnswer.line("notes", second),
            ProtectionAnswer.line("other", first),
        ]
        let ended = try ProtectionAnswer(bytes(lines) + Array(#"{"app": "mail", "hol"#.utf8))
        #expect(!ended.isWhole && ended.standings.map(\.app) == ["mail", "notes"])
        let holder = FileHolder(pid: 7, name: "less", files: ["a", "b"], count: 3, cgroup: "/x")
        #expect(ended.standings[0] == mail && ended.standings[1].holders == [holder] && ended.standings[1].isBusy)
        #expect(try ProtectionAnswer(bytes(lines + [ProtectionAnswer.end])).isWhole)
        #expect(try ProtectionAnswer(Array("no such folder\n".utf8)).standings.isEmpty)
        #expect(throws: (any Error).self) { try ProtectionAnswer(Array("{}\n".utf8)) }
    }
}
