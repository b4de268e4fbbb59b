// SPDX-License-Identifier: Apache-2.0

import Engine
import EventLoop
import Linux
import SystemBus

/// Follows the networks that the machine is connected to, through NetworkManager if it runs, otherwise through the
/// kernel (rtnetlink).
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
    private let question: BusQuestion
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
        question = BusQuestion(
            service,
            "/org/freedesktop",
            "org.freedesktop.DBus.ObjectManager",
            "GetManagedObjects"
        )
        question.onAnswer = { [weak self] in self?.answered($0?.dictionary) }
        service.onConnect = { [weak self] _ in self?.subscribe() }
        service.onAppear = { [weak self] _ in
            self?.links = nil
            self?.question.ask()
        }
        service.onDisappear = { [weak self] in self?.question.forget() }
        service.onChange = { [weak self] in
            guard let self, self.service.owner == nil else { return }
            self.followLinks()
        }
        // Begin with the kernel: if there is no bus, none of these callbacks is ever called.
        followLinks()
    }

    // MARK: NetworkManager

    private func subscribe() {
        let changes = [Self.manager, Self.manager + ".Connection.Active", Self.manager + ".Device"].map {
            "interface='org.freedesktop.DBus.Properties',member='PropertiesChanged',arg0='\($0)'"
        }
        // Do not subscribe to changes of access points: they report their signal strength all the time.
        slots = (changes + ["interface='\(Self.manager)'"]).map { rule in
            service.subscribe(rule) { [weak self] _ in self?.question.ask() }
        }
        slots.append(
            service.subscribe("interface='org.freedesktop.DBus.ObjectManager'") { [weak self] message in
                guard message.path()?.hasPrefix("/org/freedesktop/NetworkManager/ActiveConnection/") ?? false else {
                    return
                }
                self?.question.ask()
            }
        )
    }

    private func answered(_ objects: [String: BusValue]?) {
        guard let objects else { return followLinks() }
        // NetworkManager answers again: stop following the kernel, which began when an earlier request failed.
        links = nil
        found(Networks(objects: objects))
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
            // Drop the kernel's networks if NetworkManager has appeared while the worker read them.
            if let self, self.links != nil { self.found(networks) }
        }
    }

    private func found(_ now: Networks) {
        guard now != networks else { return }
        networks = now
        onChange(now)
    }
}
