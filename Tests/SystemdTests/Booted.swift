// SPDX-License-Identifier: Apache-2.0

import Foundation
import TestMachine
import Testing

/// All that is tested on a booted systemd, one after the other: they share two processors and, mostly, a container.
@Suite(
    "On a booted systemd",
    .serialized,
    .enabled(if: Container.tree != nil, "a container with the package is needed: make test-systemd")
)
enum Booted {
    /// The package that is installed, and a later one.
    static var package: String { ProcessInfo.processInfo.environment["TORPOR_DEB"] ?? "" }
    static var laterPackage: String { ProcessInfo.processInfo.environment["TORPOR_DEB_LATER"] ?? "" }
    static var webPackage: String { ProcessInfo.processInfo.environment["TORPOR_WEB_DEB"] ?? "" }
    static var gatewayPackage: String { ProcessInfo.processInfo.environment["TORPOR_GATEWAY_DEB"] ?? "" }

    /// The container that most tests share, with the package installed. Only serialized tests come here.
    nonisolated(unsafe) private static let shared = Result { try install() }

    /// A container of one's own, with the package installed.
    static func install() throws -> Container {
        let machine = try Container()
        try machine.put(package, "/root/torpor.deb")
        try machine.done("dpkg -i /root/torpor.deb")
        try machine.write("/usr/local/bin/app", program, executable: true)
        return machine
    }

    /// Says what it hears in /var/tmp/t/record, with the time; with a number it takes so many seconds to end.
    static let program = """
        #!/bin/sh
        say() { echo "$TORPOR_APP $1 $(cut -d' ' -f1 /proc/uptime)" >>/var/tmp/t/record; }
        trap 'say SIGTERM; [ -z "$1" ] || sleep "$1"; say end; exit 0' TERM
        say up
        echo "hello from $TORPOR_APP"
        sleep infinity &
        while :; do wait; done

        """

    /// An app of that program.
    static func app(_ name: String, _ seconds: Int? = nil, _ keys: String = "") -> String {
        let argument = seconds.map { ", \"\($0)\"" } ?? ""
        return "[apps.\(name)]\nexec = [\"/usr/local/bin/app\"\(argument)]\n\(keys)\n"
    }

    /// The shared container with the service as it is after a boot with these apps, and nothing of an earlier test.
    static func service(
        _ apps: String,
        dropIn: String = "",
        start: Bool = true,
        at location: SourceLocation = #_sourceLocation
    ) throws -> Container {
        let machine = try shared.get()
        try clear(machine)
        try machine.write("/etc/torpor/conf.d/apps.toml", apps)
        if !dropIn.isEmpty {
            try machine.write("/etc/systemd/system/torpord.service.d/test.conf", dropIn)
            try machine.done("systemctl daemon-reload")
        }
        if start { try machine.done("systemctl start torpord", at: location) }
        return machine
    }

    static func clear(_ machine: Container) throws {
        try machine.run(
            """
            systemctl stop torpord; systemctl stop torpor-apps.scope; systemctl reset-failed
            rm -rf /etc/torpor/conf.d/* /etc/systemd/system/torpord.service.d /var/lib/torpor/* /var/log/torpor/* /var/tmp/t
            mkdir -m 777 /var/tmp/t
            systemctl daemon-reload
            """
        )
    }

    /// What apps wrote down: app, word, time in seconds.
    static func record(_ machine: Container) throws -> [(app: String, word: String, time: Double)] {
        try machine.read("/var/tmp/t/record").split(separator: "\n").compactMap { line in
            let words = line.split(separator: " ")
            guard words.count == 3, let time = Double(words[2]) else { return nil }
            return (String(words[0]), String(words[1]), time)
        }
    }

    /// A supervisor that has its apps in hand starts one again that dies, and stops one that it is told to.
    static func expectSupervised(
        _ machine: Container,
        restarts: String,
        stops: String,
        at location: SourceLocation = #_sourceLocation
    ) throws {
        let before = try machine.app(restarts)
        try machine.done("kill -KILL \(try #require(before.pid))", at: location)
        try machine.waitFor(restarts, "was started again", at: location) {
            $0.state == "active" && $0.pid != nil && $0.pid != before.pid
        }
        let stopped = try machine.app(stops).pid
        try machine.done("torpor stop \(stops)", at: location)
        #expect(try machine.letter(try #require(stopped)).isEmpty, sourceLocation: location)
    }

    /// Whether the apps go on as the same processes through what happens to the supervisor.
    static func expectUntouched(
        _ machine: Container,
        _ names: [String],
        at location: SourceLocation = #_sourceLocation,
        while body: () throws -> Void
    ) throws {
        let before = try machine.identities(names)
        try body()
        try machine.eventually("torpord answers, and knows all of \(names)", within: 30, at: location) {
            (try? machine.identities(names)) == before
        }
        for identity in before.values {
            #expect(try machine.identity(identity.pid) == identity, sourceLocation: location)
        }
        let words = try record(machine).map(\.word)
        #expect(!words.contains("SIGTERM"), "an app was told to end", sourceLocation: location)
        #expect(words.count { $0 == "up" } == names.count, "an app was started again", sourceLocation: location)
    }

    /// A script that has something to say only when something is wrong.
    static func expectNothing(
        _ machine: Container,
        _ script: String,
        at location: SourceLocation = #_sourceLocation
    ) throws {
        let output = try machine.run(script).text
        #expect(output.isEmpty, "\(script)", sourceLocation: location)
    }
}
