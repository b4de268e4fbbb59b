// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import EventLoop
import Lifecycle
import WireText

/// Services of apps that other machines find on the local network (`announce`). Services are announced and withdrawn as
/// the apps' states change. While no app has a service, torpord does not connect to the bus.
final class ServiceAnnouncements: EventRoom, EventSource {
    unowned(unsafe) let wakes: Wakes
    private var publisher: ServicePublisher?
    /// For each app, how many of its services the publisher knows. If a new configuration has fewer, this shows which
    /// ones to withdraw.
    private var counts: [AppID: Int] = [:]
    /// For each service that cannot be announced, the reason in the last log entry. The same reason is not logged twice
    /// in a row.
    private var logged: [String: String] = [:]

    init(_ wakes: Wakes) { self.wakes = wakes }

    func configure() {
        for app in apps { touched(app) }
        letGo()
    }

    func added(_ app: AppRuntime) { touched(app) }
    func concerns(_ app: AppRuntime) -> Bool { !app.specification.announcements.isEmpty || counts[app.id] != nil }

    func touched(_ app: AppRuntime) {
        let all = app.specification.announcements
        let before = counts[app.id] ?? 0
        guard !all.isEmpty || before > 0 else { return }
        counts[app.id] = all.isEmpty ? nil : all.count
        for index in 0..<max(all.count, before) {
            set(Self.key(app, index), index < all.count ? service(all[index], of: app) : nil)
        }
    }

    func forget(_ app: AppRuntime) {
        for index in 0..<(counts.removeValue(forKey: app.id) ?? 0) { set(Self.key(app, index), nil) }
    }

    func appsLeft() { letGo() }

    /// The app's services: the name under which each is announced, or why it cannot be announced. Both are nil while
    /// the app is in a state in which the service is not announced.
    func announcements(
        of app: AppRuntime
    ) -> [(announcement: AnnouncementSpecification, name: String?, problem: String?)] {
        app.specification.announcements.enumerated().map { index, announcement in
            let key = Self.key(app, index)
            guard let publisher, publisher.wanted[key] != nil else { return (announcement, nil, nil) }
            let state = publisher.state(of: key)
            return (announcement, state.name, state.problem)
        }
    }

    /// Closes the connection to the bus if no app has a service.
    private func letGo() {
        if counts.isEmpty { (publisher, logged) = (nil, [:]) }
    }

    private static func key(_ app: AppRuntime, _ index: Int) -> String { "\(app.name)/\(index)" }

    private func set(_ key: String, _ service: ServicePublisher.Service?) {
        if service == nil { logged[key] = nil }
        guard service != nil || publisher != nil else { return }
        let publisher = self.publisher ?? makePublisher()
        self.publisher = publisher
        publisher.set(key, service)
    }

    private func makePublisher() -> ServicePublisher {
        let made = ServicePublisher(loop, address: wakes.busAddress)
        made.onPublished = { [weak self] key, name in
            self?.logged[key] = nil
            self?.log.info("\(key.prefix { $0 != "/" }) is announced on the local network as \(name)")
        }
        made.onFailed = { [weak self] key, reason in
            guard let self, self.logged.updateValue(reason, forKey: key) != reason else { return }
            self.log.warning("\(key.prefix { $0 != "/" }) is not announced on the local network: \(reason)")
        }
        return made
    }

    /// The service to announce in the app's present state; nil if the service is not announced in this state, or has no
    /// port.
    private func service(_ announcement: AnnouncementSpecification, of app: AppRuntime) -> ServicePublisher.Service? {
        guard isTime(announcement.time, app), let port = announcement.port(of: app.specification), port > 0 else {
            return nil
        }
        let longest = AnnouncementSpecification.longestName
        let title = ServicePublisher.shortened(app.specification.presentation.title ?? "", to: longest)
        let usual = title.isEmpty ? ServicePublisher.shortened(app.name, to: longest) : title
        return ServicePublisher.Service(
            name: announcement.name ?? usual,
            type: announcement.type,
            port: port,
            text: announcement.text
        )
    }

    private func isTime(_ time: AnnouncementSpecification.Time, _ app: AppRuntime) -> Bool {
        let machine = machine(app)
        let isRunning = machine.isAlive && machine.transition != .launching && machine.transition != .terminating
        switch time {
        case .running: return isRunning
        case .awake: return isRunning && machine.state != .suspended
        case .always: return machine.isAlive || machine.blocksWaking == nil
        }
    }
}
