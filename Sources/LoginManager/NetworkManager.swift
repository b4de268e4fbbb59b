// SPDX-License-Identifier: Apache-2.0

public import EventLoop
import SystemBus

/// Whether what goes over the network costs money, as NetworkManager knows or guesses it (its property `Metered`).
///
/// As with ``LoginManager`` nothing here waits, and nothing is needed: where there is no bus or no NetworkManager, no link is
/// taken for metered, and either may come and go at any time.
public final class MeteredLink {
    private let property: BusProperty<Bool>

    /// Whether it is; nil as long as nobody could have said.
    public var isMetered: Bool? { property.isKnown ? property.value ?? false : nil }
    /// ``isMetered`` is otherwise than before.
    public var onChange: (() -> Void)? {
        get { property.onChange }
        set { property.onChange = newValue }
    }

    /// Begins to follow.
    ///
    /// - Parameter address: a D-Bus address; the system's bus where nothing is said.
    public init(_ loop: EventLoop, address: String? = nil) {
        let name = "org.freedesktop.NetworkManager"
        let place = BusProperty<Bool>.Place(name: name, path: "/org/freedesktop/NetworkManager", interface: name)
        property = BusProperty(loop, address: address, "Metered", of: [place], keeps: .seconds(10)) { answer in
            // NMMetered: 1 is yes, 3 a guess that it is.
            answer.variant("u") { $0.smallNumber() }.map { $0 == 1 || $0 == 3 }
        }
    }
}
