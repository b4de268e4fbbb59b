// SPDX-License-Identifier: Apache-2.0

import Configuration
import Devices
import Engine
import EventLoop
import Lifecycle
import Linux
import LoginManager
import Mailbox
import Varlink

/// Notifies apps of changes of the machine, such as its power source, screens, accessories and orientation. Such a
/// change wakes no app, and each topic is watched only while an app subscribes to it.
///
/// A suspended app gets one message per topic when it wakes. The message about the battery contains the latest charge.
/// The other messages contain the difference from before the suspension, and are omitted if there is none.
final class MachineNotices: EventRoom, EventSource {
    unowned(unsafe) let wakes: Wakes
    private let work: BackgroundWorker
    private var topics: Set<NotificationTopic> = []
    private var monitor: DeviceMonitor?
    private var profiles: PowerProfiles?
    private var sensors: SensorProxy?
    /// The machine's orientation as last read, to detect changes; nil if it was not read. `isNear` is the same for the
    /// proximity sensor.
    private var side: String?
    private var isNear: Bool?
    /// The state of the power supply as last read, to detect changes; nil if it was not read. `screens` and
    /// `savesPower` are the same for displays and for power saving.
    private var power: Power?
    private var screens: [String: [String]]?
    private var savesPower: Bool?
    /// Connected accessories, by their path below `/sys`. An app that returns to the foreground is notified of them,
    /// and an accessory that udev reports twice is recognized.
    private var accessories: [String: Accessory] = [:]
    /// Apps with the background mode `external-accessory` that are in the foreground (active or inactive).
    private var inFront: Set<AppID> = []
    /// Apps with the background mode `external-accessory` that are in the background. They have been notified that
    /// all accessories are gone.
    private var away: Set<AppID> = []

    init(_ wakes: Wakes) {
        self.wakes = wakes
        work = BackgroundWorker(wakes.loop, named: "machine")
    }

    func added(_ app: AppRuntime) {
        if !topics.isSuperset(of: app.specification.notifications) { configure() }
    }

    func concerns(_ app: AppRuntime) -> Bool {
        usesAccessories(app) || away.contains(app.id) || inFront.contains(app.id)
    }

    func touched(_ app: AppRuntime) {
        let id = app.id
        guard usesAccessories(app), machine(app).isAlive else { return forget(app) }
        switch machine(app).state {
        case .active, .inactive:
            inFront.insert(id)
            if away.remove(id) != nil { tellAccessories(app, areThere: true) }
        case .background, .suspended:
            if inFront.remove(id) != nil { leave(app) } else if host.isSuccessor { away.insert(id) }
        case .notRunning: break
        }
    }

    func ended(_ app: AppRuntime, _ ending: Ending) { forget(app) }

    func appsLeft() { configure() }

    func forget(_ app: AppRuntime) {
        inFront.remove(app.id)
        away.remove(app.id)
    }

    private func usesAccessories(_ app: AppRuntime) -> Bool {
        app.specification.backgroundModes.contains(.externalAccessory)
            && app.specification.notifications.contains(.accessories)
    }

    // MARK: What is followed

    func configure() {
        let before = topics
        topics = Set(apps.flatMap { ($0.next ?? $0.specification).notifications })
        guard topics != before else { return }
        if topics.subsystems != before.subsystems { follow(topics.subsystems) }
        if topics.contains(.lowPower) {
            if profiles == nil {
                let made = PowerProfiles(loop, address: wakes.busAddress)
                made.onChange = { [weak self] in self?.profileChanged() }
                profiles = made
            }
        } else {
            (profiles, savesPower) = (nil, nil)
        }
        followSensors()
        lookAtPower()
        lookAtScreens()
        if !topics.contains(.accessories) { accessories = [:] }
        if topics.contains(.accessories), !before.contains(.accessories) {
            work.ask(
                { Device.all(of: ["input", "usb"]).compactMap { Accessory($0) } },
                { [weak self] (found: [Accessory]) in self?.found(found) }
            )
        }
    }

    private func follow(_ subsystems: Set<String>) {
        monitor = nil
        guard !subsystems.isEmpty else { return }
        do throws(Errno) {
            monitor = try DeviceMonitor(loop, of: subsystems) { [weak self] in self?.heard($0, $1) }
        } catch {
            log.warning("power, screens and accessories cannot be followed: \(error)")
        }
    }

    private func heard(_ device: Device, _ action: DeviceMonitor.Action) {
        switch device.subsystem {
        case "power_supply": lookAtPower()
        case "drm": lookAtScreens()
        case "input", "usb": if action != .change, topics.contains(.accessories) { plugged(device, action == .add) }
        default: break
        }
    }

    // MARK: Sensors

    private func followSensors() {
        var wanted: Set<SensorProxy.Sensor> = []
        if topics.contains(.orientation) { wanted.insert(.accelerometer) } else { side = nil }
        if topics.contains(.proximity) { wanted.insert(.proximity) } else { isNear = nil }
        guard wanted != sensors?.sensors ?? [] else { return }
        sensors = nil
        guard !wanted.isEmpty else { return }
        let made = SensorProxy(loop, wanted, address: wakes.busAddress)
        made.onOrientation = { [weak self] in self?.found(side: $0) }
        made.onProximity = { [weak self] in self?.found(isNear: $0) }
        sensors = made
    }

    func found(side now: String) {
        guard topics.contains(.orientation) else { return }
        let before = side
        side = now
        guard let before, before != now else { return }
        let payload: JSON = ["before": .string(before), "after": .string(now)]
        tell(.orientation, payload, .net, "a turn of the machine to \(now)")
    }

    func found(isNear now: Bool) {
        guard topics.contains(.proximity) else { return }
        let before = isNear
        isNear = now
        guard let before, before != now else { return }
        let payload: JSON = ["before": .bool(before), "after": .bool(now)]
        tell(.proximity, payload, .net, now ? "something that came near" : "something that went away")
    }

    // MARK: Power

    private func lookAtPower() {
        guard topics.contains(.power) || topics.contains(.battery) else {
            power = nil
            return
        }
        work.ask({ Power() }, { [weak self] (now: Power) in self?.found(now) })
    }

    func found(_ now: Power) {
        // This read began while an app was subscribed to power or the battery. If no app is subscribed now, drop the
        // result.
        guard topics.contains(.power) || topics.contains(.battery) else { return }
        let before = power
        power = now
        guard let before else { return }
        if now.source != before.source {
            let payload: JSON = ["before": .string(before.source.name), "after": .string(now.source.name)]
            tell(.power, payload, .net, "a change of the power source to \(now.source.name)")
        }
        if let percent = now.percent, percent != before.percent || now.source != before.source {
            let payload: JSON = ["percent": .int(Int64(percent)), "source": .string(now.source.name)]
            tell(.battery, payload, .latest, "a change of the battery charge to \(percent) %")
        }
    }

    private func profileChanged() {
        guard let now = profiles?.savesPower else { return }
        defer { savesPower = now }
        // If the previous value is unknown, assume that power saving was off.
        guard now != savesPower ?? false else { return }
        let payload: JSON = ["before": .bool(!now), "after": .bool(now)]
        tell(.lowPower, payload, .net, now ? "the start of power saving" : "the end of power saving")
    }

    // MARK: Screens

    private func lookAtScreens() {
        guard topics.contains(.screens) else {
            screens = nil
            return
        }
        work.ask({ Screens.connected() }, { [weak self] (now: [String: [String]]) in self?.found(now) })
    }

    /// Called with the connected screens and the modes of each. Notifies apps of what has changed since the last call.
    func found(_ now: [String: [String]]) {
        guard topics.contains(.screens) else { return }
        let before = screens ?? now
        screens = now
        for name in Set(now.keys).symmetricDifference(before.keys).sorted() {
            tellScreen(name, isThere: now[name] != nil)
        }
        for (name, modes) in now.sorted(by: { $0.key < $1.key }) {
            guard let earlier = before[name], earlier != modes else { continue }
            let payload: JSON = ["screen": .string(name), "before": .strings(earlier), "after": .strings(modes)]
            tell(.screens, payload, .net, key: name + " modes", "other modes of the screen at \(name)")
        }
    }

    private func tellScreen(_ name: String, isThere: Bool) {
        let payload: JSON = ["screen": .string(name), "before": .bool(!isThere), "after": .bool(isThere)]
        let text = "the \(isThere ? "connection" : "removal") of the screen at \(name)"
        tell(.screens, payload, .net, key: name, text)
    }

    // MARK: Accessories

    /// A device that users plug in.
    struct Accessory: Hashable, Sendable {
        let path: String
        let name: String
        /// The device's udev subsystem.
        let kind: String
        /// Identifies the accessory, so that messages about its removal and its return merge. The path is not part of
        /// it: the path contains a number that changes each time the device is plugged in.
        let key: String

        func payload(isThere: Bool) -> JSON {
            [
                "accessory": .string(name), "kind": .string(kind), "path": .string(path), "before": .bool(!isThere),
                "after": .bool(isThere),
            ]
        }
    }

    /// Adds accessories that were connected before torpord watched for them.
    func found(_ found: [Accessory]) { for accessory in found { accessories[accessory.path] = accessory } }

    private func plugged(_ device: Device, _ isThere: Bool) {
        if let accessory = Accessory(device) { plugged(accessory, isThere) }
    }

    func plugged(_ accessory: Accessory, _ isThere: Bool) {
        if isThere {
            guard accessories.updateValue(accessory, forKey: accessory.path) == nil else { return }
        } else {
            accessories[accessory.path] = nil
        }
        // Skip apps in the background: for them, all accessories count as removed. When such an app returns to the
        // foreground, it is notified of the connected accessories.
        for app in apps where !away.contains(app.id) { tell(accessory, isThere, app) }
    }

    private func tell(_ accessory: Accessory, _ isThere: Bool, _ app: AppRuntime) {
        let mail = mail(.accessories, accessory.payload(isThere: isThere), .net, key: accessory.key)
        let text = "the \(isThere ? "connection" : "removal") of \(accessory.name)"
        wakes.notifications.tell(.accessories, mail, to: app, text)
    }

    /// Called when an app leaves the foreground: notifies the app that its accessories are gone.
    private func leave(_ app: AppRuntime) {
        away.insert(app.id)
        tellAccessories(app, areThere: false)
    }

    private func tellAccessories(_ app: AppRuntime, areThere: Bool) {
        for accessory in accessories.values.sorted(by: { $0.path < $1.path }) { tell(accessory, areThere, app) }
    }

    private func tell(
        _ topic: NotificationTopic,
        _ payload: JSON,
        _ coalescing: Coalescing,
        key: String? = nil,
        _ text: String
    ) {
        wakes.notifications.tell(topic, mail(topic, payload, coalescing, key: key), text)
    }

    private func mail(
        _ topic: NotificationTopic,
        _ payload: JSON,
        _ coalescing: Coalescing,
        key: String?
    ) -> MailDraft {
        MailDraft(
            topic: topic.rawValue,
            message: Message.didReceiveNotification.rawValue,
            payload: payload,
            coalescing: coalescing,
            key: key,
            sender: "torpord"
        )
    }
}

/// The displays that are connected to the machine's graphics cards.
enum Screens {
    /// The maximum number of modes that are read for a display. The kernel lists the preferred mode first.
    static let mostModes = 64

    /// The names of the connectors that have a display, such as `card0-HDMI-A-1`, and the modes of each, such as
    /// `1920x1080`, the preferred one first.
    static func connected(_ folder: String = "/sys/class/drm") -> [String: [String]] {
        var found: [String: [String]] = [:]
        for name in (try? File.list(folder)) ?? [] where name.contains("-") {
            guard (try? File.readString("\(folder)/\(name)/status"))?.hasPrefix("connected") ?? false else { continue }
            let text = (try? File.readString("\(folder)/\(name)/modes", limit: 64 << 10)) ?? ""
            var modes: [String] = []
            // The kernel lists a mode once for each refresh rate: skip duplicates.
            for mode in text.split(separator: "\n").map(String.init) where !modes.contains(mode) {
                if modes.count < mostModes { modes.append(mode) }
            }
            found[name] = modes
        }
        return found
    }
}

extension Set<NotificationTopic> {
    /// The udev subsystems to watch for these topics.
    fileprivate var subsystems: Set<String> {
        var names: Set<String> = []
        if contains(.power) || contains(.battery) { names.insert("power_supply") }
        if contains(.screens) { names.insert("drm") }
        if contains(.accessories) { names.formUnion(["input", "usb"]) }
        return names
    }
}

extension Power.Source {
    /// The name of the power source in messages to apps.
    fileprivate var name: String {
        switch self {
        case .unknown: "unknown"
        case .mains: "mains"
        case .battery: "battery"
        }
    }
}

extension Device {
    /// Whether the device is an accessory that a user plugs in, not a part of another device.
    fileprivate var isAccessory: Bool {
        if subsystem == "usb" {
            // Leave out USB hubs (class 9), which only connect other devices.
            return type == "usb_device" && properties["TYPE"]?.hasPrefix("9/") != true
        }
        let kinds = ["KEYBOARD", "MOUSE", "TOUCHPAD", "TOUCHSCREEN", "TABLET", "JOYSTICK", "POINTINGSTICK"]
        return name.hasPrefix("input") && kinds.contains { properties["ID_INPUT_" + $0] == "1" }
    }
}

extension MachineNotices.Accessory {
    /// Describes an accessory; nil if the device is not an accessory.
    fileprivate init?(_ device: Device) {
        guard device.isAccessory else { return nil }
        let name = device.model ?? device.name
        self.init(
            path: device.path,
            name: name,
            kind: device.subsystem,
            key: device.subsystem + ":" + (device.properties["ID_PATH"] ?? device.properties["PHYS"] ?? "") + name
        )
    }
}
