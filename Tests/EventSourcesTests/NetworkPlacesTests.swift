// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import EngineHarness
import EventLoop
import KernelFiles
import Lifecycle
import Linux
import Mailbox
import MockLogind
import SystemBus
import Testing
import Varlink

@testable import EventSources

@Suite("Networks as places") struct NetworkPlacesTests {
    private static func toml(_ networks: String, _ rest: String = "") -> String {
        """
        [apps.guide]
        exec = ["/bin/true"]
        launch = "on-demand"
        restart = "never"
        background_modes = ["location"]
        location = { updates = "none" }
        signals = { didReceiveEvent = "SIGUSR1" }
        networks = [\(networks)]
        \(rest)

        """
    }

    private static let home = #"{ name = "home", ssid = "home" }"#

    private func network(_ interface: String, ssid: String? = nil, metered: Bool? = false, vpn: Bool = false) -> Network
    {
        Network(interface: interface, ssid: ssid, isMetered: metered, isVPN: vpn)
    }

    private func places(_ events: FakeEvents) throws -> NetworkPlaces {
        try #require(events.wakes.sources.compactMap { $0 as? NetworkPlaces }.first)
    }

    /// From now on tests say which networks there are.
    private func begin(_ toml: String) throws -> (FakeEvents, NetworkPlaces) {
        let events = try FakeEvents(toml)
        let places = try places(events)
        try events.wait("the kernel's are known") { places.networks != nil }
        return (events, places)
    }

    /// The machine has these networks, and keeps them.
    private func connect(_ events: FakeEvents, _ places: NetworkPlaces, _ networks: Network...) throws {
        places.found(Networks(all: Set(networks), isComplete: true))
        try events.pass(NetworkPlaces.settles)
    }

    private func told(_ events: FakeEvents) -> [String] {
        (events.host.drafts[events.app("guide").id] ?? []).map { draft in
            "\(draft.payload["network"]?.stringValue ?? "") \(draft.payload["change"]?.stringValue ?? "")"
        }
    }

    @Test("An app is launched and woken where the machine joins or leaves a network, and not for the first one")
    func crossings() throws {
        let (events, places) = try begin(Self.toml(Self.home))
        try connect(events, places, network("eth0"))
        #expect(told(events) == [] && events.state("guide") == .notRunning)
        try connect(events, places, network("eth0"), network("wlan0", ssid: "home"))
        #expect(told(events) == ["home entered"] && events.state("guide") == .background)
        #expect(events.mail("guide") == ["network:home: didReceiveEvent"])
        let payload =
            #"{"network": "home", "change": "entered", "interface": "wlan0", "ssid": "home", "metered": false, "vpn": false}"#
        #expect(try events.payload("guide") == JSON.parse(payload))
        try events.shell.suspend("guide")
        try connect(events, places, network("eth0"))
        #expect(told(events) == ["home entered", "home left"] && events.state("guide") == .background)
    }

    @Test("What lasts less than five seconds is no change, and what changes all the time is looked at after thirty")
    func settles() throws {
        let (events, places) = try begin(Self.toml(Self.home))
        try connect(events, places, network("wlan0", ssid: "home"))
        places.found(Networks(isComplete: true))
        try events.pass(.milliseconds(4_900))
        #expect(told(events) == [])
        try connect(events, places, network("wlan0", ssid: "home"))
        #expect(told(events) == [])
        for second in 0..<15 {
            places.found(Networks(all: [network("eth\(second)")], isComplete: true))
            #expect(told(events) == [])
            try events.pass(.seconds(2))
        }
        #expect(told(events) == ["home left"])
    }

    @Test("All criteria must fit one network, and each side may be left out")
    func criteria() throws {
        let networks = [
            #"{ name = "cable", interface = "e*", on = "enter" }"#, #"{ name = "tunnel", vpn = true, on = "leave" }"#,
            #"{ name = "cheap", metered = false, interface = "wlan?" }"#,
        ]
        let (events, places) = try begin(Self.toml(networks.joined(separator: ", ")))
        try connect(events, places)
        try connect(events, places, network("enp3s0"), network("wg0", vpn: true), network("wlan0", metered: true))
        #expect(told(events) == ["cable entered"])
        try connect(events, places, network("wlan0", metered: false))
        #expect(told(events) == ["cable entered", "cheap entered", "tunnel left"])
    }

    @Test("What only NetworkManager knows stays as it was without it") func unknown() throws {
        let (events, places) = try begin(Self.toml(Self.home + #", { name = "cable", interface = "eth0" }"#))
        try connect(events, places, network("wlan0", ssid: "home"))
        places.found(Networks(all: [network("eth0", metered: nil)]))
        try events.pass(NetworkPlaces.settles)
        #expect(told(events) == ["cable entered"])
        try connect(events, places)
        #expect(told(events) == ["cable entered", "cable left", "home left"])
    }

    @Test("The next torpord finds what changed while none ran") func remembered() throws {
        let (events, places) = try begin(Self.toml(Self.home))
        try connect(events, places, network("wlan0", ssid: "home"))
        let memory = try #require(events.host.held["networks"]?.first)
        let copy = try Descriptor.duplicate(memory)
        let next = try FakeEvents(Self.toml(Self.home)) { host, _ in
            host.inheritance = InheritedDescriptors([(name: "networks", descriptors: [copy])])
        }
        let others = try self.places(next)
        try next.wait("the kernel's are known") { others.networks != nil }
        try connect(next, others, network("eth0"))
        #expect(told(next) == ["home left"])
    }

    @Test("Nothing is followed unless an app with the mode has such a place") func unwanted() throws {
        let events = try FakeEvents(
            Self.toml(Self.home).replacing("background_modes = [\"location\"]", with: "")
        )
        let places = try places(events)
        places.found(Networks(all: [network("wlan0", ssid: "home")], isComplete: true))
        try events.pass(NetworkPlaces.settles)
        #expect(told(events) == [] && places.networks == nil)
    }

    @Test("The kernel's networks are those with a carrier") func kernel() throws {
        let kernel = try KernelFiles()
        for (name, carrier) in [
            ("lo", "1"), ("eth0", "1"), ("eth1", "0"), ("wg0", "1"), ("tun0", "1"), ("tap0", "1"), ("docker0", "1"),
        ] {
            try kernel.write("/sys/class/net/\(name)/carrier", carrier + "\n")
        }
        try kernel.write("/sys/class/net/eth0/device/vendor", "0x8086\n")
        try kernel.write("/sys/class/net/wg0/uevent", "DEVTYPE=wireguard\nINTERFACE=wg0\nIFINDEX=5\n")
        try kernel.write("/sys/class/net/tun0/tun_flags", "0x1001\n")
        try kernel.write("/sys/class/net/tap0/tun_flags", "0x1002\n")
        let found = Networks.ofKernel(root: kernel.root)
        #expect(!found.isComplete)
        let words = found.all.map { "\($0.interface)\($0.isVPN ? " vpn" : "")\($0.isVirtual ? " virtual" : "")" }
            .sorted()
        #expect(words == ["docker0 virtual", "eth0", "tap0 virtual", "tun0 vpn", "wg0 vpn"])
        var place = NetworkSpecification()
        place.vpn = false
        #expect(found.find(place).network?.interface == "eth0")
        place.interface = "docker*"
        #expect(found.find(place).network?.interface == "docker0")
        #expect(Networks.ofKernel(root: "/nonexistent") == Networks())
    }

    @Test("What NetworkManager says may be anything") func odd() {
        let name = "org.freedesktop.NetworkManager"
        func objects(_ active: [String: BusValue], _ device: [String: BusValue] = [:]) -> [String: BusValue] {
            [
                "/a": .dictionary(["\(name).Connection.Active": .dictionary(active)]),
                "/d": .dictionary(["\(name).Device": .dictionary(device)]),
                Networks.path: .dictionary([name: .dictionary(["Metered": .integer(3)])]), "/x": .text("no"),
            ]
        }
        let devices = BusValue.list([.text("/d"), .text("/none"), .integer(3)])
        let wlan: [String: BusValue] = ["Interface": .text("wlan0")]
        #expect(Networks(objects: [:]).all == [] && Networks(objects: ["/": .integer(1)]).all == [])
        #expect(Networks(objects: objects([:], wlan)).all == [])
        #expect(Networks(objects: objects(["State": .integer(1), "Devices": devices], wlan)).all == [])
        #expect(Networks(objects: objects(["State": .text("2"), "Devices": devices], wlan)).all == [])
        #expect(Networks(objects: objects(["State": .integer(2), "Devices": .text("/d")], wlan)).all == [])
        #expect(Networks(objects: objects(["State": .integer(2), "Devices": devices])).all == [])
        let found = Networks(
            objects: objects(["State": .integer(2), "Devices": devices, "Type": .text("wireguard")], wlan)
        )
        #expect(found.all == [Network(interface: "wlan0", isMetered: true, isVPN: true)])
    }

    @Test(
        "NetworkManager may come, change, go and return",
        .enabled(if: MockLogind.obstacle == nil, "python3-dbusmock and dbus are needed: make deps")
    )
    func manager() throws {
        let mock = try MockLogind()
        try mock.run(MockLogind.networks)
        let kernel = try KernelFiles()
        try kernel.write("/sys/class/net/eth7/carrier", "1\n")
        let loop = try EventLoop()
        let watch = NetworkWatch(loop, root: kernel.root, address: mock.address)
        func wait(_ sentence: Comment, _ isSo: (Networks) -> Bool) throws {
            let end = Clock.monotonic() + .seconds(30)
            while !(watch.networks.map(isSo) ?? false) {
                try #require(Clock.monotonic() < end, "in 30 s it was not so: \(sentence)")
                _ = try loop.runOnce(timeout: .milliseconds(10))
            }
        }
        try wait("the kernel's are known") { !$0.isComplete && $0.all.map(\.interface) == ["eth7"] }
        try mock.run("start_manager()")
        try wait("it is there") { $0.isComplete && $0.all.isEmpty }
        try mock.run("join('home')")
        try wait("the network is joined") { $0.all == [Network(interface: "wlan0", ssid: "home")] }
        try mock.run("leave()")
        try wait("it is left") { $0.all.isEmpty }
        try mock.run("join('home')")
        try wait("it is joined again") { !$0.all.isEmpty }
        try mock.run("stop_manager()")
        try wait("the kernel's are back") { !$0.isComplete && $0.all.map(\.interface) == ["eth7"] }
        try mock.run("start_manager()")
        try wait("it is back") { $0.isComplete }
    }
}
