// SPDX-License-Identifier: Apache-2.0

public import EventLoop
import SystemBus

/// Whether the machine saves power, by the active profile of power-profiles-daemon or a replacement (`ActiveProfile`
/// is `power-saver`).
///
/// As with ``LoginManager``, nothing blocks and nothing is required: without a bus or such a service the value is
/// unknown, and either may come and go at any time.
public final class PowerProfiles {
    private let property: BusProperty<Bool>

    /// Whether the machine saves power; nil: unknown.
    public var savesPower: Bool? { property.value }
    /// Called when ``savesPower`` has changed.
    public var onChange: (() -> Void)? {
        get { property.onChange }
        set { property.onChange = newValue }
    }

    /// Starts to follow the active profile.
    ///
    /// - Parameter address: a D-Bus address; nil: the system bus.
    public init(_ loop: EventLoop, address: String? = nil) {
        // The D-Bus name since version 0.20, and the older name.
        let names = [
            ("org.freedesktop.UPower.PowerProfiles", "/org/freedesktop/UPower/PowerProfiles"),
            ("net.hadess.PowerProfiles", "/net/hadess/PowerProfiles"),
        ]
        property = BusProperty(
            loop,
            address: address,
            "ActiveProfile",
            of: names.map { BusProperty.Place(name: $0.0, path: $0.1, interface: $0.0) }
        ) { answer in
            answer.variant("s") { $0.text() }.map { $0 == "power-saver" }
        }
    }
}
