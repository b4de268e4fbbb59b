// SPDX-License-Identifier: Apache-2.0

public import EventLoop
import SystemBus

/// Whether the machine saves power: the profile that power-profiles-daemon, or what stands in for it, has in force
/// (`ActiveProfile` is `power-saver`).
///
/// As with ``LoginManager`` nothing here waits, and nothing is needed: where there is no bus or no such service, nobody
/// says, and either may come and go at any time.
public final class PowerProfiles {
    private let property: BusProperty<Bool>

    /// Whether the machine saves power; nil: nobody says.
    public var savesPower: Bool? { property.value }
    /// ``savesPower`` is otherwise than before.
    public var onChange: (() -> Void)? {
        get { property.onChange }
        set { property.onChange = newValue }
    }

    /// Begins to follow.
    ///
    /// - Parameter address: a D-Bus address; the system's bus where nothing is said.
    public init(_ loop: EventLoop, address: String? = nil) {
        // Its name since version 0.20, and the one before.
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
