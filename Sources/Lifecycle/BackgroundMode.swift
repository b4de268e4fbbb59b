// SPDX-License-Identifier: Apache-2.0

/// Why an app runs or is woken while no user uses it. The raw values are those of `background_modes`.
public enum BackgroundMode: String, Sendable, Hashable, CaseIterable {
    /// Plays or records sound.
    case audio
    /// Follows the machine's location.
    case location
    /// Keeps connections open to receive calls.
    case voip
    /// Gets time now and then to fetch new content.
    case fetch
    /// Communicates with an accessory.
    case externalAccessory = "external-accessory"
    /// Uses Bluetooth devices.
    case bluetoothCentral = "bluetooth-central"
    /// Acts as a Bluetooth device that other devices use.
    case bluetoothPeripheral = "bluetooth-peripheral"
    /// Receives messages pushed from outside the machine.
    case remoteNotification = "remote-notification"

    /// The bit of this mode in ``BackgroundModes``.
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

/// A set of background modes. Records store the bits, so a bit never changes its meaning.
public struct BackgroundModes: OptionSet, Sendable, Hashable {
    /// The bits of the modes in the set.
    public let rawValue: UInt16

    /// A set from the bits of its modes.
    public init(rawValue: UInt16) { self.rawValue = rawValue }

    /// A set of one mode.
    public init(_ mode: BackgroundMode) { rawValue = mode.bit }

    /// A set of these modes.
    public init(_ modes: [BackgroundMode]) { self.init(modes.map(BackgroundModes.init)) }

    /// Whether the set contains the mode.
    public func contains(_ mode: BackgroundMode) -> Bool { contains(BackgroundModes(mode)) }

    /// The modes in the set, in the order of docs/lifecycle.md.
    public var modes: [BackgroundMode] { BackgroundMode.allCases.filter(contains) }

    /// The number of modes in the set.
    public var count: Int { rawValue.nonzeroBitCount }
}

extension AppMachine {
    /// The background modes whose condition is true. While there is at least one, the app stays in the background.
    public var modes: BackgroundModes { backgroundTime?.value.modes ?? [] }

    /// Called when the condition of a mode has become true or false. Ignored if the app is not running.
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
        repeatBackgroundTimeUsed()
        actions.append(.report(.modeBegan(mode)))
        // torpord may be about to suspend the app, which this mode now prevents.
        walk(into: &actions, now: now)
    }
}
