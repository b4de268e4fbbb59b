// SPDX-License-Identifier: Apache-2.0

import Archives
package import Engine
import EventSources
package import Lifecycle
import Linux
package import Processes
package import TorporAPI

/// The supervisor's own data about an app, as the recovery file stores it after the core's state of that app.
package struct AppRecord {
    /// The process that was launched; nil while there is none.
    var leader: Identity?
    /// The main process: `leader`, unless the app has named another process (MAINPID).
    package var main: Identity?
    package var launchedAt: Duration?
    package var errno: Int32?
    var isReloading = false
    /// Whether the app has a cgroup of its own.
    var hasCgroup = false
    /// The digest of an older configuration, with which the app was launched; 0 if that configuration is unknown. Nil
    /// if the app was launched with the configuration in force. If the app has gone down, the digest is that of its last
    /// run (``AppRuntime/lastLaunchDigest``).
    package var outdatedDigest: UInt64?
    package var wasCutShort = false
    package var tokens = TakenTokens()
    package var lastExit: LastExit?
    var missedDeadline: Deadline?
    /// The state that a user has last requested for the app; nil if no user has, or if the request no longer counts.
    package var goalOfPerson: Goal?
    package var status: String?
    package var times = StateTimes()
    /// The state whose resource profile was last applied to the app; nil if none was applied.
    var profileState: AppState?
    package var launch = LaunchMoments()
    var missedMessage: Message?
    var restoration: Restoration?
    /// Whether a user has stopped the app in such a way that its next launch gets the saved state.
    var keepsState = false
    /// Whether a policy has sent the app away from the foreground (``AppRuntime/sentAwayBy``).
    package var isSentAway = false
    /// Whether another process, or the kernel, killed the app while it was suspended (``AppRuntime/wasKilledAsleep``).
    package var wasKilledAsleep = false
    /// Whether the event that last woke the app came over a socket whose traffic the kernel does not report
    /// (``Incarnation/wasWokenUntraced``).
    package var wasWokenUntraced = false
    /// What torpor-container has last reported; nil for an app without a container.
    var container: ContainerRun?
    /// Whether the last stop of the app ends with this boot (``PersistedApp/isStoppedUntilBoot``).
    package var isStoppedUntilBoot = false

    /// The size of an app's whole record in bytes: the supervisor's fields, the core's fields, and the times of
    /// `restartLimit` restarts.
    package static func bytes(restartLimit: Int) -> Int {
        453 + AppMachine.laterBytes + AppMachine.wakeBytes + ChannelRecord.bytes + StateTimes.recordBytes
            + LaunchMoments.recordBytes + Coordinator.waitBytes + ListeningSockets.recordBytes
            + 4 * min(AppMachine.recordedLedger, max(0, restartLimit) + 1)
    }

    package init(of app: AppRuntime) {
        let run = app.run
        leader = run.tree?.leader
        main = run.tree?.main
        launchedAt = run.launchedAt
        errno = run.saidErrno
        isReloading = run.isReloading
        hasCgroup = run.tree?.cgroupPath != nil
        outdatedDigest = app.outdatedDigest
        wasCutShort = app.wasCutShort ?? false
        tokens = app.tokens
        lastExit = app.lastExit
        missedDeadline = run.missed?.deadline
        goalOfPerson = app.kept.goalOfPerson
        status = run.statusText
        times = app.times
        profileState = run.profileState
        launch = LaunchMoments(of: run.timeline)
        missedMessage = run.missed?.message
        restoration = app.restoration
        keepsState = app.keepsStateWhenStopped == true
        isSentAway = app.sentAwayBy != nil
        wasKilledAsleep = app.wasKilledAsleep == true
        wasWokenUntraced = run.wasWokenUntraced
        container = run.tree?.isContainer == true ? run.container ?? ContainerRun() : nil
        isStoppedUntilBoot = app.kept.isStoppedUntilBoot
    }

    package func encode(into record: inout RecordWriter) {
        Self.put(leader, into: &record)
        Self.put(main, into: &record)
        record.put(launchedAt)
        record.put(errno ?? 0)
        var flags: UInt8 = isReloading ? 1 : 0
        // Flag 2 is not used, because it had another meaning in earlier versions.
        if status != nil { flags |= 4 }
        if hasCgroup { flags |= 8 }
        if goalOfPerson != nil { flags |= 16 }
        if outdatedDigest != nil { flags |= 32 }
        if wasCutShort { flags |= 64 }
        // Flag 128 says that a second byte of flags follows.
        var more = (container == nil ? 0 : 1) | (times.asleep == .zero ? 0 : 2) as UInt8
        if keepsState { more |= 4 }
        // Flag 8 says that a digest follows. Records of earlier versions have no digest.
        if let outdatedDigest, outdatedDigest != 0 { more |= 8 }
        if isSentAway { more |= 16 }
        if wasKilledAsleep { more |= 32 }
        if wasWokenUntraced { more |= 64 }
        if isStoppedUntilBoot { more |= 128 }
        if more != 0 { flags |= 128 }
        record.put(flags)
        tokens.encode(into: &record)
        record.put(lastExit != nil)
        if let lastExit {
            record.put(lastExit.reason)
            record.put(lastExit.code ?? .min)
            record.put(lastExit.signal ?? "")
            record.put(lastExit.at ?? 0)
        }
        record.put(missedDeadline)
        if let goalOfPerson { record.put(goalOfPerson.rawValue) }
        if more != 0 { record.put(more) }
        if let container { container.encode(into: &record) }
        if times.asleep != .zero { record.put(times.asleep.microseconds) }
        if more & 8 != 0 { record.put(outdatedDigest ?? 0) }
        // The status text is the only field that may be long, so cut it to the space that is left.
        if let status { record.put(status, leaving: Self.bytesBehindStatus) }
        times.encode(into: &record)
        record.put(Self.code(of: profileState))
        launch.encode(into: &record)
        record.put(Self.code(of: missedMessage))
        record.put(restoration?.rawValue ?? 0)
    }

    package init(from record: inout RecordReader) {
        leader = Self.identity(from: &record)
        main = Self.identity(from: &record)
        launchedAt = record.takeOptionalTime()
        let number = record.take(Int32.self)
        errno = number == 0 ? nil : number
        let flags = record.take(UInt8.self)
        isReloading = flags & 1 != 0
        hasCgroup = flags & 8 != 0
        wasCutShort = flags & 64 != 0
        tokens = TakenTokens(from: &record)
        if record.takeFlag() {
            var exit = LastExit(reason: record.takeText())
            let code = record.take(Int32.self)
            exit.code = code == .min ? nil : code
            let signal = record.takeText()
            exit.signal = signal.isEmpty ? nil : signal
            let at = record.take(Int64.self)
            exit.at = at == 0 ? nil : at
            lastExit = exit
        }
        missedDeadline = record.takeDeadline()
        if flags & 16 != 0 { goalOfPerson = Goal(rawValue: record.takeText()) }
        let more = flags & 128 != 0 ? record.take(UInt8.self) : 0
        if more & 1 != 0 { container = ContainerRun(from: &record) }
        keepsState = more & 4 != 0
        isSentAway = more & 16 != 0
        wasKilledAsleep = more & 32 != 0
        wasWokenUntraced = more & 64 != 0
        isStoppedUntilBoot = more & 128 != 0
        let asleep = more & 2 != 0 ? Duration.microseconds(record.take(Int64.self)) : .zero
        let digest = more & 8 != 0 ? record.take(UInt64.self) : 0
        outdatedDigest = flags & 32 != 0 ? digest : nil
        if flags & 4 != 0 { status = record.takeText() }
        times = StateTimes(from: &record)
        times.asleep = max(.zero, asleep)
        profileState = Self.state(of: record.take(UInt8.self))
        launch = LaunchMoments(from: &record)
        let message = record.take(UInt8.self)
        missedMessage = message > 0 ? Message(number: message - 1) : nil
        restoration = Restoration(rawValue: record.take(UInt8.self))
    }

    /// The number of bytes of the record that follow the status text. The text is cut so that they fit.
    private static let bytesBehindStatus =
        StateTimes.recordBytes + 1 + LaunchMoments.recordBytes + 2 + AppMachine.laterBytes + AppMachine.wakeBytes
        + ChannelRecord.bytes + Coordinator.waitBytes + ListeningSockets.recordBytes

    private static func code(of message: Message?) -> UInt8 {
        message.map { $0.number + 1 } ?? 0
    }

    /// Takes over what was recorded after the record was written (``Supervisor/recordProfile(of:)``).
    mutating func amend(_ code: UInt8?) {
        if let code { profileState = Self.state(of: code) ?? profileState }
    }

    private static func state(of code: UInt8) -> AppState? {
        AppState.allCases.first { code > 0 && Self.code(of: $0) == code }
    }

    /// The code of a state whose profile was applied; 0 for none.
    static func code(of state: AppState?) -> UInt8 {
        switch state {
        case nil, .notRunning: 0
        case .inactive: 1
        case .active: 2
        case .background: 3
        case .suspended: 4
        }
    }

    /// Copies the fields of the record to an app.
    func restore(_ app: AppRuntime) {
        app.run.launchedAt = launchedAt
        app.run.saidErrno = errno
        app.run.isReloading = isReloading
        if wasCutShort { app.wasCutShort = true }
        app.tokens = tokens
        app.lastExit = lastExit
        app.run.missed = missedDeadline.map { MissedDeadline($0, at: $0.at, message: missedMessage) }
        app.kept.goalOfPerson = goalOfPerson
        app.kept.isStoppedUntilBoot = isStoppedUntilBoot
        app.run.statusText = status
        app.run.container = container
        app.times = times
        app.restoration = restoration
        if keepsState { app.keepsStateWhenStopped = true }
        if isSentAway { app.sentAwayBy = "" }
        if wasKilledAsleep { app.wasKilledAsleep = true }
        if wasWokenUntraced { app.run.wasWokenUntraced = true }
    }

    private static func put(_ identity: Identity?, into record: inout RecordWriter) {
        record.put(identity?.pid ?? 0)
        record.put(identity?.startTime ?? 0)
    }

    private static func identity(from record: inout RecordReader) -> Identity? {
        let pid = record.take(Int32.self)
        let start = record.take(UInt64.self)
        return pid > 0 ? Identity(pid: pid, startTime: start) : nil
    }
}
