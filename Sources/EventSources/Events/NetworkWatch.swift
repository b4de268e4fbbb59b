// SPDX-License-Identifier: Apache-2.0

import Engine
import EventLoop
import Linux
import SystemBus

/// Follows the networks that the machine is connected to, by NetworkManager if it runs, otherwise by the kernel
/// (rtnetlink).
///
/// If NetworkManager or the bus ends or returns, this object switches to the other source. No call here blocks.
final class NetworkWatch {
    /// The current networks; nil until they are known.
    private(set) var networks: Networks?
    var onChange: (Networks) -> Void = { _ in }

    private let loop: EventLoop
    private let root: String
    private let service: BusService
    private let work: BackgroundWorker
    private var slots: [BusSlot?] = []
    private var question: BusSlot?
    /// Whether networks changed after the pending request to NetworkManager was sent, so that another request must
    /// follow.
    private var isUnsure = false
    private var links: LinkSocket?

    private static let manager = "org.freedesktop.NetworkManager"

    /// A socket that reports changes of network interfaces (rtnetlink(7)), watched by the event loop.
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
    ///   - root: a prefix for the path `/sys`; empty except in tests.
    ///   - address: the address of NetworkManager's bus; nil for the system bus.
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
        // Begin with the kernel: if there is no bus, none of these callbacks is ever called.
        followLinks()
    }

    // MARK: NetworkManager

    private func subscribe(_ connection: BusConnection) {
        let start = "type='signal',sender='\(Self.manager)'"
        let changes = [Self.manager, Self.manager + ".Connection.Active", Self.manager + ".Device"].map {
            "\(start),interface='org.freedesktop.DBus.Properties',member='PropertiesChanged',arg0='\($0)'"
        }
        // Do not subscribe to changes of access points: they report their signal strength all the time.
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
            // NetworkManager answers again: stop following the kernel, which began when an earlier request failed.
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
            // NetworkManager may have appeared while the worker read the kernel's networks: then drop them.
            if let self, self.links != nil { self.found(networks) }
        }
    }

    private func found(_ now: Networks) {
        guard now != networks else { return }
        networks = now
        onChange(now)
    }
}
