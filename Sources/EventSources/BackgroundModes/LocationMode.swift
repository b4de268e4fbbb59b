// SPDX-License-Identifier: Apache-2.0

package import Configuration
package import Engine
import EventLoop
import Lifecycle
import Linux
import Location
import Mailbox
import Permissions
package import TorporAPI
import Varlink

/// The background mode `location`: sends positions from gpsd to apps, and wakes suspended apps for this.
///
/// torpord is connected to gpsd only while an app needs positions. Apps with regions or `updates = "significant"`
/// always need them, other apps only while they run. Each position wakes the event loop, usually once a second.
package final class LocationMode: EventRoom, EventSource {
    package unowned(unsafe) let wakes: Wakes
    private var client: GPSClient?
    private var followed: [AppID: Followed] = [:]
    /// For each region, whether the machine was last inside, as recorded by this or an earlier torpord. Nil until the
    /// file with this record was read.
    private var ledger: LocationLedger?

    /// The state of one app with the background mode `location`.
    private struct Followed {
        var specification: LocationSpecification
        var change = ChangeTracker()
        var regions: [String: RegionTracker] = [:]
    }

    package init(_ wakes: Wakes) { self.wakes = wakes }

    private func machine(_ id: AppID) -> AppMachine { coordinator.machine(id) }

    // MARK: Who wants to know

    package func configure() {
        let known = ledger ?? LocationLedger(host.runtimeDirectory)
        ledger = known
        var next: [AppID: Followed] = [:]
        for app in apps where wantsPositions(app) && app.allows(.location) {
            let specification = app.specification.location
            var one = Followed(specification: specification)
            let before = followed[app.id]
            if before?.specification.updates == specification.updates { one.change = before?.change ?? one.change }
            // Without the background mode, the app gets only positions in the foreground, so its regions do not
            // count.
            if !app.specification.backgroundModes.contains(.location) { one.specification.regions = [] }
            for region in one.specification.regions {
                let same = before?.specification.regions.first { $0.name == region.name }
                if let before, let same {
                    if same.isSamePlace(as: region) { one.regions[region.name] = before.regions[region.name] }
                } else if let isInside = known.isInside(app.name, region) {
                    one.regions[region.name] = RegionTracker(isInside: isInside)
                }
            }
            next[app.id] = one
        }
        let gone = Set(followed.keys).subtracting(next.keys)
        followed = next
        for app in apps where next[app.id] == nil { end(app.id) }
        if !gone.isEmpty || !next.isEmpty { log.debug("positions are wanted by \(next.count) apps") }
        let place = host.gpsd
        if let client, client.address != place.address || client.port != place.port || client.trusted != trusted {
            self.client = nil
        }
        arrange()
    }

    package func added(_ app: AppRuntime) { if wantsPositions(app) { configure() } }

    /// Whether the app wants positions. Positions in the foreground need no background mode.
    private func wantsPositions(_ app: AppRuntime) -> Bool {
        app.specification.backgroundModes.contains(.location) || app.specification.location.updates == .foreground
    }

    package func concerns(_ app: AppRuntime) -> Bool { followed[app.id] != nil }

    package func touched(_ app: AppRuntime) {
        guard followed[app.id] != nil else { return }
        arrange()
    }

    package func forget(_ app: AppRuntime) {
        guard followed.removeValue(forKey: app.id) != nil else { return }
        arrange()
    }

    private func isWanted(_ id: AppID, _ one: Followed) -> Bool {
        if !one.specification.regions.isEmpty { return true }
        switch one.specification.updates {
        case .none: return false
        case .significant: return true
        case .continuous: return machine(id).isAlive
        case .foreground: return machine(id).state == .active
        }
    }

    /// The users whose gpsd torpord trusts: root, torpord's own user, and the user that the configuration names.
    private var trusted: Set<UInt32> {
        Set([0, Users.effectiveUID] + [host.gpsdUser].compactMap { $0 })
    }

    /// Connects to gpsd if an app needs positions now, and disconnects if none does.
    private func arrange() {
        guard followed.contains(where: { isWanted($0.key, $0.value) }) else {
            client = nil
            for id in followed.keys { end(id) }
            return
        }
        guard client == nil else { return }
        let place = host.gpsd
        let made = GPSClient(loop, address: place.address, port: place.port, trusted: trusted)
        made.onDistrust = { [weak self] reason in
            let text = "the server at \(place.text) is not trusted as gpsd: \(reason)"
            self?.note(.gpsdNotBelieved, text: text, reason: BackgroundMode.location.rawValue)
        }
        made.onFix = { [weak self] in self?.found($0) }
        made.onSilence = { [weak self] in self?.isSilent() }
        client = made
    }

    // MARK: Positions

    /// Called when none of gpsd's receivers has a position. Without positions, the mode no longer keeps apps awake in
    /// the background.
    func isSilent() { for id in followed.keys.sorted() { end(id) } }

    private func end(_ id: AppID) {
        guard machine(id).modes.contains(.location) else { return }
        try? request(.mode(.location, isTrue: false), of: id)
    }

    func found(_ position: Position) {
        for id in followed.keys.sorted() {
            guard let one = followed[id] else { continue }
            let app = apps[id]
            for region in one.specification.regions { take(position, app, region) }
            switch one.specification.updates {
            case .none: break
            case .significant: takeSignificant(position, app, one.specification)
            case .continuous: takeContinuous(position, app, one.specification)
            case .foreground: takeInForeground(position, app, one.specification)
            }
        }
    }

    private func take(_ position: Position, _ app: AppRuntime, _ region: RegionSpecification) {
        let before = followed[app.id]?.regions[region.name]?.isInside
        let crossed = followed[app.id]?.regions[region.name, default: RegionTracker()]
            .take(position, in: region.region, now: now)
        let isInside = followed[app.id]?.regions[region.name]?.isInside
        if isInside != before { ledger?.note(app.name, region, isInside: isInside) }
        guard let entered = crossed.flatMap({ $0 }), region.tells(entered: entered) else { return }
        let change = entered ? "entered" : "left"
        let mail = MailDraft(
            topic: "region:\(region.name)",
            message: Message.didReceiveEvent.rawValue,
            payload: position.json.with("region", .string(region.name)).with("change", .string(change)),
            coalescing: .latest,
            sender: "gpsd"
        )
        let text = "\(entered ? "entering" : "leaving") the region \(region.name)"
        tell(app, WakeEvent(.location, region.name, text, wake: wake(app, region.wake), mail: mail, at: now))
    }

    private func takeSignificant(_ position: Position, _ app: AppRuntime, _ specification: LocationSpecification) {
        let moved = followed[app.id]?.change.take(
            position,
            distance: specification.distance ?? LocationSpecification.significantDistance,
            interval: specification.interval ?? LocationSpecification.significantInterval,
            now: now
        )
        guard let moved = moved.flatMap({ $0 }) else { return }
        let text = "a change of position by \(Int(moved.rounded())) m"
        let event = WakeEvent(
            .location,
            "significant",
            text,
            wake: wake(app, specification.wake),
            mail: mail(position, to: app),
            at: now
        )
        tell(app, event)
    }

    private func takeContinuous(_ position: Position, _ app: AppRuntime, _ specification: LocationSpecification) {
        let machine = machine(app.id)
        // An app without a process needs no positions. Forget its last position. Otherwise its next run would not get a
        // first position that is near the last one.
        guard machine.isAlive, machine.transition != .terminating else {
            followed[app.id]?.change = ChangeTracker()
            return
        }
        let isTold = followed[app.id]?.change.take(
            position,
            distance: specification.distance ?? 0,
            interval: specification.interval ?? .zero,
            tellsFirst: true,
            now: now
        )
        let begins = !machine.modes.contains(.location)
        guard begins || isTold.flatMap({ $0 }) != nil else { return }
        let event = WakeEvent(
            .location,
            "continuous",
            "the start of positions",
            wake: begins ? wake(app, specification.wake) : nil,
            mail: mail(position, to: app),
            at: now
        )
        let outcome = tell(app, event)
        guard begins else { return }
        // If the app may not be woken now, try again at the next position.
        if case .heldBack = outcome { return }
        try? request(.mode(.location, isTrue: true), of: app.id)
    }

    private func takeInForeground(_ position: Position, _ app: AppRuntime, _ specification: LocationSpecification) {
        let machine = machine(app.id)
        // Only an active app gets positions here. Forget the last position of any other app, so that it gets the next
        // position once it is active again, even if the machine has not moved.
        guard machine.state == .active, machine.transition != .terminating else {
            followed[app.id]?.change = ChangeTracker()
            return
        }
        let isTold = followed[app.id]?.change.take(
            position,
            distance: specification.distance ?? 0,
            interval: specification.interval ?? .zero,
            tellsFirst: true,
            now: now
        )
        guard isTold.flatMap({ $0 }) != nil else { return }
        let text = "a position in the foreground"
        tell(app, WakeEvent(.location, "foreground", text, wake: nil, mail: mail(position, to: app), at: now))
    }

    private func mail(_ position: Position, to app: AppRuntime) -> MailDraft? {
        let machine = machine(app.id)
        // Send no message to a running app that has neither a delegate nor a signal for it, because the message would
        // stay in the queue for ever.
        if machine.isAlive, machine.transition != .launching, !hears(app, .didReceiveEvent) { return nil }
        return MailDraft(
            topic: "location",
            message: Message.didReceiveEvent.rawValue,
            payload: position.json,
            coalescing: .latest,
            sender: "gpsd"
        )
    }

    private func wake(_ app: AppRuntime, _ manner: WakeManner) -> Wake? {
        var wake = manner.wake()
        wake?.overridesForceQuit = app.specification.wakeAfterForceQuit.contains(BackgroundMode.location.rawValue)
        return wake
    }

    @discardableResult
    private func tell(_ app: AppRuntime, _ event: WakeEvent) -> WakeOutcome {
        do throws(Mailbox.Refusal) {
            return try wakes.happened(event, for: app)
        } catch {
            let text = "is not notified of \(event.text): it \(error)"
            note(app, .notWoken, text: text, reason: event.source.rawValue)
            return .heldBack("\(error)", until: nil)
        }
    }

    // MARK: For persons

    /// The check of gpsd for `torpor doctor`; nil if no app uses positions.
    package var check: DoctorCheck? {
        guard !followed.isEmpty else { return nil }
        let place = host.gpsd.text
        guard let client else {
            return DoctorCheck(name: "gpsd", ok: true, value: "not in use at \(place): no app wants positions now")
        }
        let known = client.lastFix == nil ? "no position" : "a position"
        let release = client.release.map {
            "\($0) at \(place), \(Readable.count(client.receivers, "receiver")), \(known)"
        }
        return DoctorCheck(
            name: "gpsd",
            ok: client.trouble == nil,
            value: release ?? place,
            message: client.trouble.map {
                "gpsd at \(place) does not answer as it should (\($0)): apps get no positions until a retry "
                    + "succeeds"
            }
        )
    }
}

extension Position {
    /// The position, in the form in which messages to apps contain it.
    var json: JSON {
        [
            "latitude": .double(latitude), "longitude": .double(longitude), "accuracy": .double(accuracy),
            "altitude": .optional(altitude), "speed": .optional(speed), "course": .optional(course),
            "time": .optional(time),
        ]
    }
}

extension JSON {
    /// A copy of the JSON object, with one more member at the front.
    fileprivate func with(_ name: String, _ value: JSON) -> JSON {
        var members = [JSONObject.Member(name: name, value: value)]
        members += objectValue?.members ?? []
        return .object(JSONObject(members: members))
    }
}

extension RegionSpecification {
    /// The circle of the region.
    var region: Region {
        Region(centre: Position(latitude: latitude, longitude: longitude), radius: radius, settle: settle)
    }

    func isSamePlace(as other: RegionSpecification) -> Bool {
        latitude == other.latitude && longitude == other.longitude && radius == other.radius
    }

    package func tells(entered: Bool) -> Bool { crossing == .both || (crossing == .enter) == entered }
}
