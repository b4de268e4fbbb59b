// SPDX-License-Identifier: Apache-2.0

import Configuration
import Devices
import Engine
import EventLoop
import Lifecycle
import Linux
import Mailbox
import Processes
import Varlink
import WireText

/// Devices that wake apps: udev reports that a device appears, is removed or changes, or a device has data to read.
///
/// When a trigger is new, or after a boot, the devices that exist count as having appeared. Changes while no torpord
/// ran are events too: torpor-keeper keeps the list of the devices that existed before.
final class DeviceSource: EventRoom, EventSource {
    /// A trigger in an app's configuration, and the devices that match it.
    fileprivate final class Entry {
        let app: AppID
        let trigger: DeviceTrigger
        /// The matching devices, by their path below `/sys`.
        var devices: [String: Device] = [:]
        /// The device nodes that are watched for data, by path.
        var nodes: [String: NodeWatch] = [:]
        /// Whether data arrived that may not wake the app. If so, the nodes are not watched until the app has run,
        /// because the unread data would be reported again and again.
        var isRefused = false
        /// Nodes whose data was reported since the app last ran. They are not watched until the app runs again, because
        /// their unread data would be reported again and again. Used only if the trigger does not wake the app.
        var told: Set<String> = []

        init(_ app: AppID, _ trigger: DeviceTrigger) {
            self.app = app
            self.trigger = trigger
        }
    }

    unowned(unsafe) let wakes: Wakes
    private var entries: [String: Entry] = [:]
    /// The triggers in the configuration of each app.
    private var ofApp: [AppID: [Entry]] = [:]
    private var monitor: DeviceMonitor?
    private var subsystems: Set<String>?
    private let work: BackgroundWorker
    /// Events that could not wake an app yet. They are retried when the app's state changes.
    private var heldBack: [AppID: [WakeEvent]] = [:]
    /// The list of the matching devices. torpor-keeper holds it for the next torpord.
    private let kept: PersistedBytes
    /// The devices that matched each trigger when the previous torpord ended; nil if there was no previous torpord.
    /// Compared with the present devices, to find changes that happened in between.
    private var remembered: [String: Set<String>]?

    /// The background time that an app gets for data of a device.
    private static let dataTime = Duration.seconds(10)
    /// Descriptors of device nodes that an earlier torpord had opened. A trigger that waits for data of such a node
    /// takes its descriptor over.
    private var inherited: [String: Descriptor] = [:]
    /// The number of searches for devices in progress. Until it is 0, it is unknown which inherited descriptors are
    /// needed.
    private var searches = 0

    init(_ wakes: Wakes) {
        self.wakes = wakes
        work = BackgroundWorker(wakes.loop, named: "devices")
        kept = PersistedBytes(wakes.host, wakes.log, named: DescriptorName.devices, most: 1 << 20)
        for name in host.inheritance.remaining {
            if let node = DescriptorName.node(of: name) { inherited[node] = host.inheritance.take(name).first }
        }
        guard let bytes = kept.bytes else { return }
        let fields = bytes.split(separator: 0).map { String(wire: $0) }
        var all: [String: Set<String>] = [:]
        for index in stride(from: 0, to: fields.count - 1, by: 2) {
            all[fields[index], default: []].insert(fields[index + 1])
        }
        remembered = all
    }

    var held: [(name: String, descriptors: [Int32])] {
        let nodes = entries.values.flatMap(\.nodes).compactMap { node, watch in
            watch.descriptor.map { (name: DescriptorName.node(node), descriptors: [$0.raw]) }
        }
        return kept.held + nodes
    }

    // MARK: What is followed

    func configure() {
        let before = entries
        entries = [:]
        ofApp = [:]
        for app in apps {
            for trigger in (app.next ?? app.specification).devices {
                let key = "\(app.name)/\(trigger.name)"
                var entry = Entry(app.id, trigger)
                if let old = before[key], old.trigger == trigger, old.app == app.id { entry = old }
                entries[key] = entry
                ofApp[app.id, default: []].append(entry)
            }
        }
        follow()
        for (key, entry) in before where entries[key] !== entry {
            if let next = entries[key], next.trigger.hearsDataLike(entry.trigger) { handOver(entry) }
            for node in entry.nodes.keys { letGo(node, by: entry) }
        }
        let fresh = entries.filter { before[$0.key] !== $0.value }
        guard !fresh.isEmpty else {
            closeUnwantedNodes()
            return remember()
        }
        searches += 1
        let subsystems = subsystems
        work.ask(
            { Device.all(of: subsystems) },
            { [weak self] (devices: [Device]) in
                self?.whenStarted {
                    self?.searches -= 1
                    self?.found(devices, Set(fresh.keys))
                    self?.closeUnwantedNodes()
                }
            }
        )
        for app in apps { touched(app) }
    }

    private func follow() {
        let triggers = entries.values.map(\.trigger)
        guard !triggers.isEmpty else {
            monitor = nil
            return
        }
        let named = triggers.compactMap(\.subsystem)
        let wanted = named.count == triggers.count ? Set(named) : nil
        guard monitor == nil || wanted != subsystems else { return }
        subsystems = wanted
        do throws(Errno) {
            monitor = try DeviceMonitor(loop, of: wanted) { [weak self] device, action in
                self?.whenStarted { self?.heard(device, action) }
            }
        } catch {
            log.warning("devices cannot be followed: \(error)")
        }
    }

    private func whenStarted(_ work: @escaping () -> Void) { engine.whenStarted(work) }

    /// Called once for new triggers, with all devices that exist. Compares these with the devices that the previous
    /// torpord has seen.
    private func found(_ devices: [Device], _ keys: Set<String>) {
        for key in keys.sorted() {
            guard let entry = entries[key] else { continue }
            let before = remembered.map { $0[key] ?? [] } ?? []
            remembered?[key] = nil
            for device in devices where entry.trigger.fits(device) && entry.devices[device.path] == nil {
                entry.devices[device.path] = device
                if !before.contains(device.path) { happened(entry, .appear, device) }
            }
            for path in before.subtracting(entry.devices.keys).sorted() { gone(entry, path) }
            waitForData(entry)
        }
        remember()
    }

    /// Closes device nodes that an earlier torpord had opened and that no trigger needs, also in torpor-keeper.
    private func closeUnwantedNodes() {
        guard searches == 0, !inherited.isEmpty else { return }
        let wanted = Set(entries.values.filter { $0.trigger.on.contains(.data) }.flatMap(\.dataNodes))
        for node in inherited.keys where !wanted.contains(node) {
            inherited[node] = nil
            host.release(DescriptorName.node(node))
        }
    }

    private func heard(_ device: Device, _ action: DeviceMonitor.Action) {
        var isOther = false
        for entry in entries.values {
            let before = entry.devices[device.path]
            let fits = action != .remove && entry.trigger.fits(device)
            guard before != nil || fits else { continue }
            entry.devices[device.path] = fits ? device : nil
            if let before, !fits {
                for node in before.nodes { letGo(node, by: entry) }
                isOther = true
                happened(entry, .remove, before)
            } else if before == nil {
                isOther = true
                happened(entry, .appear, device)
            } else if action == .change {
                happened(entry, .change, device)
            }
            waitForData(entry)
        }
        if isOther { remember() }
    }

    /// Reports that a device was removed while no torpord ran.
    private func gone(_ entry: Entry, _ path: String) {
        let name = path.split(separator: "/").last.map(String.init) ?? path
        tell(entry, .remove, "the removal of \(name)", ["name": .string(name), "path": .string(path)], key: path)
    }

    // MARK: What happens

    private func happened(_ entry: Entry, _ what: DeviceTrigger.Change, _ device: Device) {
        let name = device.node ?? device.name
        let model = device.model.map { " (\($0))" } ?? ""
        let text: String
        switch what {
        case .appear: text = "the appearance of \(name)\(model)"
        case .remove: text = "the removal of \(name)\(model)"
        case .change, .data: text = "a change of \(name)\(model)"
        }
        tell(entry, what, text, device.json, key: device.path)
    }

    private func tell(_ entry: Entry, _ what: DeviceTrigger.Change, _ text: String, _ device: JSON, key: String) {
        guard entry.trigger.on.contains(what) else { return }
        let app = apps[entry.app]
        var payload: JSON = ["action": .string(what.rawValue), "device": device]
        var coalescing = Coalescing.latest
        if what == .appear || what == .remove {
            // Messages about a device that is plugged in and removed again while the app is suspended cancel each
            // other out.
            let isThere = what == .appear
            payload = [
                "action": .string(what.rawValue), "before": .bool(!isThere), "after": .bool(isThere), "device": device,
            ]
            coalescing = .net
        }
        var mail: MailDraft?
        if hears(app, .didReceiveEvent) {
            mail = MailDraft(
                topic: "device:" + entry.trigger.name,
                message: Message.didReceiveEvent.rawValue,
                payload: payload,
                coalescing: coalescing,
                key: key,
                sender: "udev"
            )
        }
        var wake = entry.trigger.wake.wake(for: what == .data ? Self.dataTime : nil)
        let mode = BackgroundMode.externalAccessory
        wake?.overridesForceQuit =
            app.specification.backgroundModes.contains(mode)
            && app.specification.wakeAfterForceQuit.contains(mode.rawValue)
        var event = WakeEvent(.device, entry.trigger.name, text, wake: wake, mail: mail, at: now)
        let outcome = wakes.tell(event, for: app)
        if what == .data, wake == nil { entry.told.insert(key) }
        guard case .heldBack = outcome else { return }
        let isTriedAgain = wakes.isTriedAgain(outcome, app)
        if what == .data {
            // Do not store the event: the data is still readable when the app may be woken again.
            if !isTriedAgain { entry.isRefused = true }
        } else if isTriedAgain {
            event.mail = nil
            heldBack[app.id, default: []].append(event)
        }
    }

    // MARK: Data

    /// Watches a trigger's device nodes for data while the trigger's app is suspended or does not run.
    private func waitForData(_ entry: Entry) {
        guard entry.trigger.on.contains(.data) else { return }
        let sleeps = sleeps(apps[entry.app])
        if !sleeps {
            entry.isRefused = false
            entry.told = []
        }
        for node in entry.dataNodes {
            if entry.nodes[node] == nil, !sleeps { continue }
            let watch =
                entry.nodes[node]
                ?? NodeWatch(
                    loop,
                    work,
                    node,
                    taking: inherited.removeValue(forKey: node),
                    keep: { [weak self] in self?.host.hold(DescriptorName.node(node), $0) }
                ) { [weak self, weak entry] in
                    self?.whenStarted {
                        guard let self, let entry else { return }
                        self.tell(entry, .data, "data on \(node)", ["node": .string(node)], key: node)
                    }
                }
            entry.nodes[node] = watch
            if sleeps, !entry.isRefused, !entry.told.contains(node) { watch.wait() } else { watch.rest() }
        }
    }

    /// Keeps the open nodes of a removed trigger for the trigger that replaces it, because closing a node loses its
    /// pending data.
    private func handOver(_ entry: Entry) {
        for (node, watch) in entry.nodes {
            guard let descriptor = watch.handOver() else { continue }
            inherited[node] = descriptor
            entry.nodes[node] = nil
        }
    }

    /// Closes the trigger's descriptor of a device node, and torpor-keeper's copy unless another trigger watches the
    /// node.
    private func letGo(_ node: String, by entry: Entry) {
        guard entry.nodes.removeValue(forKey: node) != nil else { return }
        if entries.values.allSatisfy({ $0.nodes[node] == nil }) { host.release(DescriptorName.node(node)) }
    }

    private func sleeps(_ app: AppRuntime) -> Bool {
        let machine = machine(app)
        return machine.state == .suspended && machine.transition == nil || !machine.isAlive && machine.transition == nil
    }

    // MARK: What becomes of apps

    func added(_ app: AppRuntime) { if !app.specification.devices.isEmpty { configure() } }

    func concerns(_ app: AppRuntime) -> Bool { ofApp[app.id] != nil }

    func touched(_ app: AppRuntime) {
        guard let entries = ofApp[app.id] else { return }
        for entry in entries { waitForData(entry) }
        for event in heldBack.removeValue(forKey: app.id) ?? [] {
            guard wakes.isTriedAgain(wakes.tell(event, for: app), app) else { continue }
            heldBack[app.id, default: []].append(event)
        }
    }

    func appsLeft() { configure() }

    func forget(_ app: AppRuntime) {
        heldBack[app.id] = nil
        for entry in ofApp.removeValue(forKey: app.id) ?? [] {
            for node in entry.nodes.keys { letGo(node, by: entry) }
        }
        entries = entries.filter { $0.value.app != app.id }
    }

    // MARK: Over a restart

    private func remember() {
        var bytes: [UInt8] = []
        for (key, entry) in entries {
            for path in entry.devices.keys { bytes += Array(key.utf8) + [0] + Array(path.utf8) + [0] }
        }
        if kept.exists || !entries.isEmpty { kept.keep(bytes) }
    }
}

extension DeviceSource.Entry {
    /// The device nodes to watch for data: those of the matching devices, and the node that the trigger names, because
    /// udev may not report that node.
    fileprivate var dataNodes: [String] {
        var nodes = devices.values.compactMap(\.node)
        let known = devices.values.flatMap(\.nodes)
        if let node = trigger.node, !NamePattern.isPattern(node), !known.contains(node) { nodes.append(node) }
        return nodes.sorted()
    }
}

extension Device {
    /// The device's node in `/dev`, and the symlinks to the node.
    fileprivate var nodes: [String] { (node.map { [$0] } ?? []) + links }

    /// The device, in the form in which messages to apps contain it.
    fileprivate var json: JSON {
        [
            "name": .string(name), "path": .string(path), "subsystem": .string(subsystem), "node": .optional(node),
            "model": .optional(model), "serial": .optional(properties["ID_SERIAL_SHORT"]),
        ]
    }
}

extension DeviceTrigger {
    /// Whether both triggers wait for data of the same devices.
    fileprivate func hearsDataLike(_ other: DeviceTrigger) -> Bool {
        on.contains(.data) && other.on.contains(.data) && subsystem == other.subsystem && type == other.type
            && node == other.node && properties == other.properties
    }

    /// Whether the device matches the trigger.
    fileprivate func fits(_ device: Device) -> Bool {
        if let subsystem, subsystem != device.subsystem { return false }
        if let type, type != device.type { return false }
        if let node, !device.nodes.contains(where: { NamePattern.fits($0, path: node) }) { return false }
        return properties.allSatisfy { key, pattern in
            device.properties[key].map { NamePattern.fits($0, pattern) } ?? false
        }
    }
}
