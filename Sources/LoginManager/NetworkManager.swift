// SPDX-License-Identifier: Apache-2.0

public import EventLoop
import SystemBus

/// Whether the network connection is metered, as NetworkManager knows or guesses (its property `Metered`).
///
/// As with ``LoginManager``, nothing blocks and nothing is required: without a bus or NetworkManager no connection
/// counts as metered, and either may come and go at any time.
public final class MeteredLink {
    private let property: BusProperty<Bool>

    /// Whether the network connection is metered; nil until a service has answered or is known to be missing.
    public var isMetered: Bool? { property.isKnown ? property.value ?? false : nil }
    /// Called when ``isMetered`` has changed.
    public var onChange: (() -> Void)? {
        get { property.onChange }
        set { property.onChange = newValue }
    }

    /// Starts to follow NetworkManager.
    ///
    /// - Parameter address: a D-Bus address; nil: the system bus.
    public init(_ loop: EventLoop, address: String? = nil) {
        let name = "org.freedesktop.NetworkManager"
        let place = BusProperty<Bool>.Place(name: name, path: "/org/freedesktop/NetworkManager", interface: name)
        property = BusProperty(loop, address: address, "Metered", of: [place], keeps: .seconds(10)) { answer in
            // NMMetered: 1 is yes, 3 is a guessed yes.
            answer.variant("u") { $0.smallNumber() }.map { $0 == 1 || $0 == 3 }
        }
    }
}
