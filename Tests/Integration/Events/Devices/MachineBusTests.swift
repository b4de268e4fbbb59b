// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import KernelFiles
import Linux
import MockLogind
import Testing
import TorporAPI
import Varlink

/// A whole torpord beside NetworkManager and iio-sensor-proxy, on a bus of their own.
@Suite(
    "Networks and sensors of a machine",
    .enabled(if: MockLogind.obstacle == nil, "python3-dbusmock and dbus are needed: make deps")
)
struct MachineBusTests {
    private func with(
        _ toml: String,
        _ body: (Daemon, MockLogind) throws -> Void
    ) throws {
        let mock = try MockLogind { body in try Spawn.lock.withLock { try body() } }
        let kernel = try KernelFiles()
        try withDaemon(
            toml,
            files: Delegates.files(),
            environment: [
                "DBUS_SYSTEM_BUS_ADDRESS": mock.address, "TORPOR_KERNEL_FILES": kernel.root,
                "TORPOR_RESTART_DELAY_CAP_MS": "0",
            ]
        ) { daemon in try body(daemon, mock) }
        withExtendedLifetime((mock, kernel)) {}
    }

    @Test("a network that is joined or left wakes an app, also after torpord was killed")
    func networks() throws {
        let toml =
            Delegates.head
                + """
                background_modes = ["location"]
                location = { updates = "none" }
                networks = [
                    { name = "home", ssid = "home", on = "enter" }, { name = "away", ssid = "home", on = "leave" },
                ]

                """
        try with(toml) { daemon, mock in
            try mock.run(MockLogind.networks)
            try mock.run("start_manager()")
            try daemon.done(.start, "web", { $0.background = true })
            func told() throws -> [String] {
                try daemon.heard().filter { $0.what == "message" && $0.name == "didReceiveEvent" }
                    .compactMap { $0.parameters["topic"]?.stringValue }
            }
            // Where the machine is at first is no news, and when that is known cannot be seen from here: the network is
            // joined and left until it is told.
            try daemon.done(.suspend, "web")
            var (isJoined, next) = (false, Clock.monotonic())
            try daemon.eventually("it is woken and told") {
                if Clock.monotonic() >= next {
                    try mock.run(isJoined ? "leave()" : "join('home')")
                    isJoined.toggle()
                    // Longer than a change must last before it counts.
                    next = Clock.monotonic() + .seconds(8)
                }
                return try !told().isEmpty
            }
            #expect(try told().last == (isJoined ? "network:home" : "network:away"))
            try daemon.replaceTorpord()
            let count = try told().count
            try mock.run(isJoined ? "leave()" : "join('home')")
            try daemon.eventually("the next torpord tells the other change") { try told().count > count }
            #expect(Set(try told()) == ["network:home", "network:away"])
        }
    }

    @Test(
        "a turn of the machine, and what comes near, is told to an app that runs, and the difference to one that slept"
    )
    func sensors() throws {
        let toml = Delegates.head + "notifications = [\"orientation\", \"proximity\"]\n"
        try with(toml) { daemon, mock in
            try mock.run(MockLogind.sensors)
            try mock.run("start_proxy('normal')")
            try daemon.done(.start, "web")
            func told(_ topic: String) throws -> [JSON] {
                try daemon.heard().filter {
                    $0.name == "didReceiveNotification" && $0.parameters["topic"]?.stringValue == topic
                }
                .map { $0.parameters["payload"] ?? .null }
            }
            let claims = "ret = [len(proxy.accelerometer_owners), len(proxy.proximity_owners)]"
            try daemon.eventually("both sensors are claimed") {
                try mock.run(claims).filter { !$0.isWhitespace } == "[1,1]"
            }
            // The first report is no news, and which one that is cannot be seen from here: it turns until that is told.
            try daemon.eventually("a turn is told") {
                try mock.run("turn('left-up' if proxy.accelerometer_orientation == 'normal' else 'normal')")
                return try !told("orientation").isEmpty
            }
            try daemon.eventually("what comes near is told") {
                try mock.run("near(not proxy.proximity_near)")
                return try !told("proximity").isEmpty
            }
            try daemon.done(.suspend, "web")
            try mock.run("turn('bottom-up')")
            try daemon.eventually("it waits") {
                try daemon.mailbox().mail.first { $0.topic == "orientation" }?.payload["after"]?.stringValue
                    == "bottom-up"
            }
            #expect(try daemon.summary("web").state == "suspended")
            try daemon.done(.resume, "web")
            try daemon.eventually("it is told") {
                try told("orientation").last?["after"]?.stringValue == "bottom-up"
            }
        }
    }
}
