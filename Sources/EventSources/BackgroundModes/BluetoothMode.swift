// SPDX-License-Identifier: Apache-2.0

import Bluetooth
import Configuration
package import Engine
import EventLoop
import Lifecycle
import Linux
import Mailbox
import Permissions
import Processes
package import TorporAPI
import Varlink

/// The background modes `bluetooth-central` and `bluetooth-peripheral`. A Bluetooth device wakes an app when the device
/// connects, disconnects or sends a value, or when it uses a service that the app offers.
package final class BluetoothMode: EventRoom, EventSource {
    package unowned(unsafe) let wakes: Wakes
    private var blueZ: BlueZ?
    private var seesRequests = false
    private var centrals: Set<AppID> = []
    private var peripherals: Set<AppID> = []

    /// The background time that an app gets for an event of a Bluetooth device (docs/lifecycle.md).
    private static let time = Duration.seconds(10)

    package init(_ wakes: Wakes) { self.wakes = wakes }

    package func configure() {
        centrals = []
        peripherals = []
        for app in apps where app.allows(.bluetooth) {
            let modes = app.specification.backgroundModes
            if modes.contains(.bluetoothCentral), !app.specification.bluetooth.isEmpty { centrals.insert(app.id) }
            if modes.contains(.bluetoothPeripheral) { peripherals.insert(app.id) }
        }
        guard !centrals.isEmpty || !peripherals.isEmpty else {
            blueZ = nil
            return
        }
        guard blueZ == nil || seesRequests == peripherals.isEmpty else {
            blueZ?.wantsChanged()
            return
        }
        seesRequests = !peripherals.isEmpty
        let made = BlueZ(loop, seesRequests: seesRequests)
        made.wants = { [weak self] characteristic, device in self?.wants(characteristic, device) ?? false }
        made.onDevice = { [weak self] _, before, now, isNews in self?.changed(before, now, isNews) }
        made.onValue = { [weak self] in self?.said($0, $1, $2) }
        made.onRequest = { [weak self] in self?.asked($0, by: $1) }
        blueZ = made
    }

    // This source never retries events, so `concerns` and `touched` have nothing to do.
    package func added(_ app: AppRuntime) {
        let modes = app.specification.backgroundModes
        if modes.contains(.bluetoothCentral) || modes.contains(.bluetoothPeripheral) { configure() }
    }

    package func concerns(_ app: AppRuntime) -> Bool { false }

    package func touched(_ app: AppRuntime) {}

    package func appsLeft() { configure() }

    package func forget(_ app: AppRuntime) {
        centrals.remove(app.id)
        peripherals.remove(app.id)
        if centrals.isEmpty, peripherals.isEmpty { blueZ = nil }
    }

    private func triggers(_ id: AppID) -> [BluetoothTrigger] { apps[id].specification.bluetooth }

    // MARK: Devices

    func changed(_ before: BlueZ.Device?, _ now: BlueZ.Device?, _ isNews: Bool) {
        // If the device was connected before the watch began, its connection does not count as an event.
        guard isNews, let device = now ?? before else { return }
        for id in centrals.sorted() {
            for trigger in triggers(id) where trigger.characteristic == nil {
                let (was, isThere) = (isConnected(before, trigger), isConnected(now, trigger))
                guard was != isThere, trigger.occasions.contains(isThere ? .connect : .disconnect) else { continue }
                let payload: JSON = [
                    "device": .string(device.address), "name": .optional(device.name),
                    "change": .string(isThere ? "connected" : "disconnected"),
                ]
                let text = "\(isThere ? "the connection of" : "the loss of") the Bluetooth device \(Self.title(device))"
                tell(id, trigger, text, payload, coalescing: .latest, key: device.address)
            }
        }
        // If torpord cannot observe the requests of devices, an app that offers services is woken when a device
        // connects.
        guard now?.isConnected ?? false, !(before?.isConnected ?? false), blueZ?.isSeeingRequests == false else {
            return
        }
        for id in peripherals.sorted() where coordinator.machine(id).isAlive {
            wake(id, "peripheral", "the connection of the Bluetooth device \(Self.title(device))")
        }
    }

    private func isConnected(_ device: BlueZ.Device?, _ trigger: BluetoothTrigger) -> Bool {
        guard let device, device.isConnected else { return false }
        return trigger.fits(address: device.address, services: device.services)
    }

    private static func title(_ device: BlueZ.Device) -> String {
        device.name.map { "\($0) (\(device.address))" } ?? device.address
    }

    // MARK: What they say

    private func fits(
        _ trigger: BluetoothTrigger,
        _ characteristic: BlueZ.Characteristic,
        _ device: BlueZ.Device?
    ) -> Bool {
        guard trigger.occasions.contains(.notify) else { return false }
        if let wanted = trigger.device, wanted != device?.address { return false }
        if let wanted = trigger.service, wanted != characteristic.service { return false }
        return trigger.characteristic.map { $0 == characteristic.identifier } ?? true
    }

    private func wants(_ characteristic: BlueZ.Characteristic, _ device: BlueZ.Device) -> Bool {
        centrals.contains { triggers($0).contains { fits($0, characteristic, device) } }
    }

    func said(_ characteristic: BlueZ.Characteristic, _ device: BlueZ.Device?, _ value: [UInt8]) {
        for id in centrals.sorted() {
            for trigger in triggers(id) where fits(trigger, characteristic, device) {
                let payload: JSON = [
                    "device": .optional(device?.address), "name": .optional(device?.name), "change": "value",
                    "characteristic": .string(characteristic.identifier), "value": .string(Base64.encode(value)),
                ]
                let text = "a value of the Bluetooth device \(device.map(Self.title) ?? "of an unknown address")"
                tell(id, trigger, text, payload, coalescing: .all, key: nil)
            }
        }
    }

    private func tell(
        _ id: AppID,
        _ trigger: BluetoothTrigger,
        _ text: String,
        _ payload: JSON,
        coalescing: Coalescing,
        key: String?
    ) {
        let app = apps[id]
        let mail = MailDraft(
            topic: "bluetooth:\(trigger.name)",
            message: Message.didReceiveEvent.rawValue,
            payload: payload,
            coalescing: coalescing,
            key: key,
            sender: "bluetooth"
        )
        happened(app, trigger.name, text, trigger.wake.wake(for: Self.time), mail)
    }

    // MARK: What they ask

    /// Called when BlueZ sends a device's request to a process: wakes the app of that process. The device waits at
    /// most 30 s for its response (ATT transaction timeout).
    func asked(_ method: String, by process: Int32) {
        for id in peripherals.sorted() {
            guard let tree = apps[id].run.tree, tree.contains(process) else { continue }
            return wake(id, "peripheral", "a Bluetooth device that asks it to \(Self.words(method))")
        }
    }

    private static func words(_ method: String) -> String {
        switch method {
        case "ReadValue": "read a value"
        case "WriteValue", "AcquireWrite": "write a value"
        case "StartNotify", "AcquireNotify": "send its values"
        case "StopNotify": "send no more values"
        default: "continue"
        }
    }

    private func wake(_ id: AppID, _ name: String, _ text: String) {
        let state = coordinator.machine(id).state
        // A running app need not be woken: it gets the request from BlueZ directly.
        guard state == .suspended || coordinator.machine(id).transition == .suspending else { return }
        happened(apps[id], name, text, Wake(time: Self.time), nil)
    }

    private func happened(_ app: AppRuntime, _ name: String, _ text: String, _ wake: Wake?, _ mail: MailDraft?) {
        var wake = wake
        let modes = app.specification.wakeAfterForceQuit
        wake?.overridesForceQuit = modes.contains(BackgroundMode.bluetoothCentral.rawValue)
        let event = WakeEvent(.bluetooth, name, text, wake: wake, mail: mail, at: now)
        do throws(Mailbox.Refusal) {
            try wakes.happened(event, for: app)
        } catch {
            note(app, .notWoken, text: "is not notified of \(text): it \(error)", reason: event.source.rawValue)
        }
    }

    // MARK: For persons

    /// The check of Bluetooth for `torpor doctor`; nil if no app uses Bluetooth.
    package var check: DoctorCheck? {
        guard let blueZ else { return nil }
        var value = blueZ.isThere ? Readable.count(blueZ.devices.count, "device") + " known" : "not there"
        if blueZ.isSeeingRequests ?? false { value += ", and their requests are seen" }
        return DoctorCheck(
            name: "bluetooth",
            ok: blueZ.trouble == nil,
            value: value,
            message: blueZ.trouble.map { $0 + (blueZ.isThere ? "" : ": apps are not woken by Bluetooth devices") }
        )
    }
}
