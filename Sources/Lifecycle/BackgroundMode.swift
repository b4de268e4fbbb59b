// SPDX-License-Identifier: Apache-2.0

/// A reason for which an app may run, or is woken, while it is not in use. The raw values are those of `background_modes`.
public enum BackgroundMode: String, Sendable, Hashable, CaseIterable {
    /// It plays or records sound.
    case audio
    /// It follows where the machine is.
    case location
    /// It keeps connections on which it is called.
    case voip
    /// It is given time now and then to fetch something new.
    case fetch
    /// It speaks with an accessory.
    case externalAccessory = "external-accessory"
    /// It uses Bluetooth devices.
    case bluetoothCentral = "bluetooth-central"
    /// It is a Bluetooth device for others.
    case bluetoothPeripheral = "bluetooth-peripheral"
    /// It hears messages that are pushed to it from outside.
    case remoteNotification = "remote-notification"

    /// Whether it does something yet; the others are accepted, and `torpor check` warns of them.
    public var isBuilt: Bool {
        switch self {
        case .audio, .location, .voip, .fetch, .bluetoothCentral, .bluetoothPeripheral, .remoteNotification: true
        case .externalAccessory: false
        }
    }

    /// Its place in a set.
    var bit: UInt16 {
        switch self {
        case .audio: 1
        case .location: 2
        case .voip: 4
        case .fetch: 8
        case .externalAccessory: 16
        case .bluetoothCentral: 32
        case .bluetoothPeripheral: 64
        case .remoteNotification: 128
        }
    }
}

/// Some background modes. Bits are in records: a bit never changes its meaning.
public struct BackgroundModes: OptionSet, Sendable, Hashable {
    /// The bits of the modes in it.
    public let rawValue: UInt16

    /// The set of those bits.
    public init(rawValue: UInt16) { self.rawValue = rawValue }

    /// The set of one.
    public init(_ mode: BackgroundMode) { rawValue = mode.bit }

    /// The set of these.
    public init(_ modes: [BackgroundMode]) { self.init(modes.map(BackgroundModes.init)) }

    /// Whether the mode is in it.
    public func contains(_ mode: BackgroundMode) -> Bool { contains(BackgroundModes(mode)) }

    /// Those in it, in the order of the specification.
    public var modes: [BackgroundMode] { BackgroundMode.allCases.filter(contains) }

    /// How many there are.
    public var count: Int { rawValue.nonzeroBitCount }
}

extension AppMachine {
    /// The background modes whose condition is true: they hold it in the background.
    public var modes: BackgroundModes { backgroundTime?.value.modes ?? [] }

    /// The condition of a mode began or ended. It is an incarnation's: of an app that has none nothing is held.
    mutating func setMode(_ mode: BackgroundMode, isTrue: Bool, into actions: inout [Action], now: Duration) {
        guard modes.contains(mode) != isTrue else { return }
        guard isTrue else {
            changeBackgroundTime { $0.modes.remove(BackgroundModes(mode)) }
            actions.append(.report(.modeEnded(mode)))
            return released(into: &actions, now: now)
        }
        switch phase {
        case .notRunning, .terminating: return
        case .launching, .running: break
        }
        changeBackgroundTime { $0.modes.insert(BackgroundModes(mode)) }
        actions.append(.report(.modeBegan(mode)))
        // It may be about to be stopped.
        walk(into: &actions, now: now)
    }
}
