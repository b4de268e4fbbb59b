// SPDX-License-Identifier: Apache-2.0

import EventLoop
import SystemBus
import WireText

/// Announces services on the local network (DNS-SD), through avahi-daemon on the system bus.
///
/// avahi-daemon and the bus may end and return: when both are back, all services are announced again. If torpord dies,
/// Avahi withdraws the services, because they belong to torpord's connection. No call blocks. From Avahi's messages,
/// torpord uses only numbers, error names and the paths of Avahi's own objects.
final class ServicePublisher {
    struct Service: Hashable {
        var name: String
        var type: String
        var port: UInt16
        /// The pairs of the TXT record.
        var text: [String]
    }

    /// Called when a service is announced, with its name. The name differs from the wanted name if another service has
    /// that.
    var onPublished: (_ key: String, _ name: String) -> Void = { _, _ in }
    /// Called when a service cannot be announced, with the reason.
    var onFailed: (_ key: String, _ reason: String) -> Void = { _, _ in }

    /// The services to announce, by keys of the caller.
    private(set) var wanted: [String: Service] = [:]

    /// A group of entries in Avahi, one for each service.
    private final class Group {
        let service: Service
        /// How many names were tried before this one; other services had those names.
        let attempt: Int
        var path: String?
        /// The pending call to Avahi about this group; nil if there is none.
        var slot: BusSlot?
        var isPublished = false

        init(_ service: Service, attempt: Int) { (self.service, self.attempt) = (service, attempt) }

        /// The name to announce. If other services have the service's name, a number is appended, as in `Printer #2`
        /// (RFC 6762, section 9).
        var name: String {
            guard attempt > 0 else { return service.name }
            let mark = " #\(attempt + 1)"
            return ServicePublisher.shortened(service.name, to: ServicePublisher.longestName - mark.utf8.count) + mark
        }
    }

    private let loop: EventLoop
    private let service: BusService
    private var groups: [String: Group] = [:]
    /// Groups whose service was withdrawn while Avahi was still creating the group. Each is freed once Avahi has
    /// created it.
    private var abandoned: [Group] = []
    /// Why services are not announced, by their keys.
    private var problems: [String: String] = [:]
    private var slots: [BusSlot?] = []
    /// Fires when it is time to announce failed services again.
    private var retry: TimerSource?

    private static let avahi = "org.freedesktop.Avahi"
    private static let server = avahi + ".Server"
    private static let entries = avahi + ".EntryGroup"
    /// The longest name of a service, in bytes (RFC 6763, 4.1.1).
    static let longestName = 63
    /// After this many names of a service were taken, the service counts as failed, and is tried again after ``pause``.
    private static let mostAttempts = 20
    private static let pause = Duration.seconds(30)

    /// - Parameter address: a D-Bus address; nil for the system bus.
    init(_ loop: EventLoop, address: String? = nil) {
        self.loop = loop
        service = BusService(loop, Self.avahi, address: address)
        service.onConnect = { [weak self] _ in self?.subscribe() }
        service.onAppear = { [weak self] _ in self?.publishAll() }
        service.onDisappear = { [weak self] in
            guard let self else { return }
            (self.groups, self.abandoned, self.problems) = ([:], [], [:])
        }
        retry = try? loop.timer { [weak self] in
            self?.retry?.disarm()
            self?.publishMissing()
        }
    }

    deinit { retry?.cancel() }

    /// The name, cut to at most `most` bytes.
    static func shortened(_ name: String, to most: Int) -> String {
        var name = name
        while name.utf8.count > most { name.removeLast() }
        return name
    }

    /// Announces this service in place of the one that was announced under the key before. If `new` is nil, only
    /// withdraws the old one.
    func set(_ key: String, _ new: Service?) {
        guard wanted[key] != new else { return }
        wanted[key] = new
        problems[key] = nil
        withdraw(key)
        if new != nil { publish(key) }
    }

    /// The name under which the service is announced, or why it is not announced; the other value is nil.
    func state(of key: String) -> (name: String?, problem: String?) {
        if let group = groups[key], group.isPublished { return (group.name, nil) }
        if let problem = problems[key] { return (nil, problem) }
        if service.owner != nil { return (nil, "Avahi has not announced it yet") }
        return (nil, service.trouble.map { "the system bus does not answer: \($0)" } ?? "avahi-daemon does not run")
    }

    private func subscribe() {
        slots = [
            service.subscribe("interface='\(Self.entries)',member='StateChanged'") { [weak self] in
                self?.groupChanged($0)
            },
            service.subscribe("interface='\(Self.server)',member='StateChanged'") { [weak self] message in
                // AVAHI_SERVER_RUNNING: the host has a name, perhaps a new one. All groups were reset, so announce
                // all again.
                if message.values().first == .integer(2) { self?.publishAll() }
            },
        ]
    }

    private func publishAll() {
        for key in Array(groups.keys) { withdraw(key) }
        publishMissing()
    }

    private func publishMissing() { for key in wanted.keys.sorted() where groups[key] == nil { publish(key) } }

    private func withdraw(_ key: String) {
        guard let group = groups.removeValue(forKey: key) else { return }
        if let path = group.path { free(path) } else { abandoned.append(group) }
    }

    private func free(_ path: String) {
        // Nothing depends on the answers to these calls, so drop the oldest ones when many are pending.
        if slots.count > 64 { slots.removeSubrange(2..<34) }
        slots.append(service.call(path, Self.entries, "Free") { _ in })
    }

    private func publish(_ key: String, attempt: Int = 0) {
        guard let wanted = wanted[key], service.owner != nil else { return }
        let group = Group(wanted, attempt: attempt)
        groups[key] = group
        group.slot = service.call("/", Self.server, "EntryGroupNew") { [weak self, weak group] answer in
            guard let self, let group else { return }
            let path = (try? answer.get())?.values().first?.text
            guard self.groups[key] === group else {
                self.abandoned.removeAll { $0 === group }
                if let path { self.free(path) }
                return
            }
            guard let path else {
                // Avahi has not created this group and will send nothing more about it, so drop the group.
                self.groups[key] = nil
                var reason = "it answers without a group"
                if case .failure(let error) = answer { reason = error.name ?? error.description }
                return self.failed(key, "Avahi takes no more services: \(reason)")
            }
            group.path = path
            self.add(key, group, path)
        }
    }

    private func add(_ key: String, _ group: Group, _ path: String) {
        let arguments: [BusArgument] = [
            // The arguments stand for all interfaces, all protocols and no flags. The empty strings stand for Avahi's
            // own domain and host.
            .signed(-1), .signed(-1), .number(0), .text(group.name), .text(group.service.type), .text(""), .text(""),
            .short(group.service.port), .byteStrings(group.service.text.map { Array($0.utf8) }),
        ]
        call(key, group, path, "AddService", arguments) { [weak self, weak group] in
            if let self, let group { self.call(key, group, path, "Commit") {} }
        }
    }

    private func call(
        _ key: String,
        _ group: Group,
        _ path: String,
        _ member: String,
        _ arguments: [BusArgument] = [],
        _ then: @escaping () -> Void
    ) {
        group.slot = service.call(path, Self.entries, member, arguments) { [weak self, weak group] answer in
            guard let self, let group, self.groups[key] === group else { return }
            guard case .failure(let error) = answer else { return then() }
            if error.name == Self.avahi + ".CollisionError" { return self.collided(key, group) }
            self.failed(key, "Avahi refuses it: \(error.name ?? error.description)")
        }
    }

    private func groupChanged(_ message: BusMessage) {
        guard let path = message.object, case .integer(let state)? = message.values().first,
            let (key, group) = groups.first(where: { $0.value.path == path })
        else { return }
        // AvahiEntryGroupState: 2 established, 3 collision, 4 failure.
        switch state {
        case 2:
            group.isPublished = true
            problems[key] = nil
            onPublished(key, group.name)
        case 3: collided(key, group)
        case 4: failed(key, "Avahi cannot announce it")
        default: break
        }
    }

    /// Called when another service has the group's name: tries the next name, or gives up after ``mostAttempts``.
    private func collided(_ key: String, _ group: Group) {
        guard group.attempt + 1 < Self.mostAttempts else { return failed(key, "its name is taken, and so are others") }
        withdraw(key)
        publish(key, attempt: group.attempt + 1)
    }

    private func failed(_ key: String, _ reason: String) {
        withdraw(key)
        problems[key] = reason
        onFailed(key, reason)
        if retry?.deadline == nil { retry?.arm(after: Self.pause) }
    }
}
