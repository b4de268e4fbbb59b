// SPDX-License-Identifier: Apache-2.0

import Engine
import EventLoop
import Linux
import SystemBus

/// Follows the networks that the machine is connected to: by NetworkManager where it runs, otherwise by the kernel.
///
/// Both may come and go. Nothing blocks.
final class NetworkWatch {
    /// Nil while nothing is known.
    private(set) var networks: Networks?
    var onChange: (Networks) -> Void = { _ in }

    private let loop: EventLoop
    private let root: String
    private let service: BusService
    private let work: BackgroundWorker
    private var slots: [BusSlot?] = []
    private var question: BusSlot?
    /// Something has changed since NetworkManager was asked.
    private var isUnsure = false
    private var links: LinkSocket?

    private static let manager = "org.freedesktop.NetworkManager"

    /// rtnetlink on the loop.
    private final class LinkSocket {
        let watch: LinkWatch
        private var source: IOSource?

        init(_ loop: EventLoop, _ changed: @escaping () -> Void) throws(Errno) {
            watch = try LinkWatch()
            source = try loop.watch(watch.descriptor.raw, .readable) { [weak self] _ in
                guard let self else { return }
                if (try? self.watch.hasNews()) ?? true { changed() }
            }
        }

        deinit { source?.cancel() }
    }

    /// - Parameters:
    ///   - root: prefix of `/sys`.
    ///   - address: the address of NetworkManager's bus; nil: the system bus.
    init(_ loop: EventLoop, root: String, address: String? = nil) {
        self.loop = loop
        self.root = root
        work = BackgroundWorker(loop, named: "networks")
        service = BusService(loop, Self.manager, address: address)
        service.onConnect = { [weak self] in self?.subscribe($0) }
        service.onAppear = { [weak self] _ in
            self?.links = nil
            self?.ask()
        }
        service.onDisappear = { [weak self] in self?.question = nil }
        service.onChange = { [weak self] in
            guard let self, self.service.owner == nil else { return }
            self.followLinks()
        }
        // A bus that is not there does not say so.
        followLinks()
    }

    // MARK: NetworkManager

    private func subscribe(_ connection: BusConnection) {
        let start = "type='signal',sender='\(Self.manager)'"
        let changes = [Self.manager, Self.manager + ".Connection.Active", Self.manager + ".Device"].map {
            "\(start),interface='org.freedesktop.DBus.Properties',member='PropertiesChanged',arg0='\($0)'"
        }
        // Access points report their strength all the time: of them nothing is heard.
        slots = (changes + ["\(start),interface='\(Self.manager)'"]).map { rule in
            connection.subscribe(rule) { [weak self] message in
                guard let self, self.service.isSender(of: message) else { return }
                self.ask()
            }
        }
        slots.append(
            connection.subscribe("\(start),interface='org.freedesktop.DBus.ObjectManager'") { [weak self] message in
                guard let self, self.service.isSender(of: message),
                    message.path()?.hasPrefix("/org/freedesktop/NetworkManager/ActiveConnection/") ?? false
                else { return }
                self.ask()
            }
        )
    }

    private func ask() {
        guard let owner = service.owner, let connection = service.connection else { return }
        guard question == nil else {
            isUnsure = true
            return
        }
        isUnsure = false
        question = connection.call(
            owner,
            "/org/freedesktop",
            "org.freedesktop.DBus.ObjectManager",
            "GetManagedObjects",
            []
        ) { [weak self] answer in
            guard let self, self.service.owner == owner else { return }
            self.question = nil
            if self.isUnsure { return self.ask() }
            guard let objects = (try? answer.get())?.values().first?.dictionary else { return self.followLinks() }
            // After a failed question the kernel was followed.
            self.links = nil
            self.found(Networks(objects: objects))
        }
    }

    // MARK: The kernel

    private func followLinks() {
        guard links == nil else { return }
        links = try? LinkSocket(loop) { [weak self] in self?.readLinks() }
        readLinks()
    }

    private func readLinks() {
        let root = root
        work.ask({ Networks.ofKernel(root: root) }) { [weak self] (networks: Networks) in
            // NetworkManager may have appeared.
            if let self, self.links != nil { self.found(networks) }
        }
    }

    private func found(_ now: Networks) {
        guard now != networks else { return }
        networks = now
        onChange(now)
    }
}
