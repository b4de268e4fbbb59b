// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import EventLoop
import Lifecycle
import Mailbox
import Permissions
import Varlink
import WireText

/// Networks that stand for places (`networks`): notifies and wakes apps with the background mode `location` when the
/// machine joins or leaves such a network. Networks are watched only while an app has an entry in `networks`.
final class NetworkPlaces: EventRoom, EventSource {
    private final class Entry {
        let app: AppID
        let place: NetworkSpecification
        /// Whether the machine is connected to a network that fits the entry; nil while that is unknown.
        var isThere: Bool?

        init(_ app: AppID, _ place: NetworkSpecification) { (self.app, self.place) = (app, place) }
    }

    unowned(unsafe) let wakes: Wakes
    private var entries: [String: Entry] = [:]
    private var watch: NetworkWatch?
    private(set) var networks: Networks?
    private var timer: TimerSource?
    /// When the first change since the last evaluation of the networks happened; nil if nothing has changed since then.
    private var changedAt: Duration?
    /// For each entry of `networks`, whether the machine was connected to a network that fits it. torpor-keeper holds
    /// these bytes for the next torpord.
    private let kept: PersistedBytes
    private var remembered: [String: Bool] = [:]

    /// Networks must stay unchanged for this time before they are evaluated, so that a connection that is only renewed
    /// does not count as left.
    static let settles = Duration.seconds(5)
    /// Even if networks keep changing, they are evaluated this long after the first change.
    static let longest = Duration.seconds(30)

    init(_ wakes: Wakes) {
        self.wakes = wakes
        kept = PersistedBytes(wakes.host, wakes.log, named: DescriptorName.networks, most: 256 << 10)
        for field in (kept.bytes ?? []).split(separator: 0) where field.count > 1 {
            remembered[String(wire: field.dropFirst())] = field.first == UInt8(ascii: "+")
        }
    }

    var held: [(name: String, descriptors: [Int32])] { kept.held }

    func configure() {
        let before = entries
        entries = [:]
        for app in apps where app.specification.backgroundModes.contains(.location) && app.allows(.location) {
            for place in app.specification.location.networks {
                let key = "\(app.name)/\(place.name)"
                let entry = Entry(app.id, place)
                if let old = before[key] {
                    if old.app == app.id, old.place.isSamePlace(as: place) { entry.isThere = old.isThere }
                } else {
                    entry.isThere = remembered.removeValue(forKey: key)
                }
                entries[key] = entry
            }
        }
        guard !entries.isEmpty else {
            (watch, networks, changedAt) = (nil, nil, nil)
            timer?.disarm()
            return remember()
        }
        if watch == nil {
            let made = NetworkWatch(loop, root: wakes.kernelFiles, address: wakes.busAddress)
            made.onChange = { [weak self] in self?.found($0) }
            watch = made
        }
        if networks != nil, entries.values.contains(where: { $0.isThere == nil }) { changed() }
        remember()
    }

    func added(_ app: AppRuntime) { if !app.specification.location.networks.isEmpty { configure() } }
    func concerns(_ app: AppRuntime) -> Bool { false }
    func touched(_ app: AppRuntime) {}
    func appsLeft() { configure() }
    func forget(_ app: AppRuntime) { entries = entries.filter { $0.value.app != app.id } }

    func found(_ networks: Networks) {
        guard !entries.isEmpty else { return }
        self.networks = networks
        changed()
    }

    private func changed() {
        let first = changedAt ?? now
        changedAt = first
        if timer == nil { timer = try? loop.timer { [weak self] in self?.settled() } }
        timer?.arm(at: min(now + Self.settles, first + Self.longest))
    }

    private func settled() {
        timer?.disarm()
        changedAt = nil
        guard let networks else { return }
        for key in entries.keys.sorted() {
            guard let entry = entries[key] else { continue }
            let (network, isKnown) = networks.find(entry.place)
            guard isKnown else { continue }
            let (before, isThere) = (entry.isThere, network != nil)
            entry.isThere = isThere
            // The first evaluation only finds out where the machine is, so it causes no event.
            if let before, before != isThere { tell(entry, network) }
        }
        remember()
    }

    private func tell(_ entry: Entry, _ network: Network?) {
        let (app, place) = (apps[entry.app], entry.place)
        let entered = network != nil
        guard place.crossing == .both || (place.crossing == .enter) == entered else { return }
        var members: [JSONObject.Member] = [
            .init(name: "network", value: .string(place.name)),
            .init(name: "change", value: .string(entered ? "entered" : "left")),
        ]
        members += network?.json.objectValue?.members ?? []
        let mail = MailDraft(
            topic: "network:\(place.name)",
            message: Message.didReceiveEvent.rawValue,
            payload: .object(JSONObject(members: members)),
            coalescing: .latest,
            sender: "torpord"
        )
        var wake = place.wake.wake()
        wake?.overridesForceQuit = app.specification.wakeAfterForceQuit.contains(BackgroundMode.location.rawValue)
        let text =
            network.map { "joining the network \(place.name) (\($0.interface))" } ?? "leaving the network \(place.name)"
        wakes.tell(WakeEvent(.location, place.name, text, wake: wake, mail: mail, at: now), for: app)
    }

    private func remember() {
        guard kept.exists || !entries.isEmpty else { return }
        var bytes: [UInt8] = []
        for (key, entry) in entries.sorted(by: { $0.key < $1.key }) {
            guard let isThere = entry.isThere else { continue }
            bytes += [UInt8(ascii: isThere ? "+" : "-")] + Array(key.utf8) + [0]
        }
        kept.keep(bytes)
    }
}

extension NetworkSpecification {
    fileprivate func isSamePlace(as other: NetworkSpecification) -> Bool {
        interface == other.interface && ssid == other.ssid && metered == other.metered && vpn == other.vpn
    }
}
