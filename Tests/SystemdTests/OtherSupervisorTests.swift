// SPDX-License-Identifier: Apache-2.0

import TestMachine
import Testing

extension Booted {
    @Suite("Supervisors beside the machine's own", .serialized) struct OtherSupervisorTests {
        @Test("An instance of the template has a configuration, directories and a scope of its own") func lab() throws {
            let machine = try service(app("web"))
            let socket = "--socket /run/torpor-lab/io.torpor"
            defer { _ = try? machine.run("systemctl stop torpord@lab; rm -rf /etc/torpor/lab.toml /var/l*/torpor-lab") }
            try machine.write("/etc/torpor/lab.toml", app("web") + app("mouse"))
            try machine.done("systemctl start torpord@lab")
            let own = try machine.identities(["web"])
            let theirs = try machine.identities(["web", "mouse"], socket)
            #expect(own["web"] != theirs["web"])
            let place = try machine.done("grep ^0: /proc/\(theirs["mouse"]?.pid ?? 0)/cgroup")
            #expect(place.contains("torpor-apps-lab.scope/"), "\(place)")

            // Each is restarted and stopped by itself.
            try machine.done("systemctl restart torpord@lab")
            #expect(try machine.identities(["web", "mouse"], socket) == theirs)
            try machine.write("/etc/torpor/lab.toml", app("web") + app("mouse") + app("cheese"))
            try machine.done("systemctl reload torpord@lab")
            try machine.waitFor("cheese", "is up", socket) { $0.state == "active" }
            try machine.done("systemctl stop torpord@lab")
            #expect(try machine.identities(["web"]) == own)
            #expect(try machine.letter(theirs["mouse"]?.pid ?? 0).isEmpty)
        }

        @Test("A user who lingers has a supervisor of its own, whose apps outlive its restart") func user() throws {
            let machine = try service(app("web"))
            defer {
                _ = try? machine.run("loginctl disable-linger ann; loginctl terminate-user ann; userdel -r ann")
            }
            try machine.done("useradd --create-home --shell /bin/sh ann && loginctl enable-linger ann")
            try machine.eventually("ann has a service manager") {
                try machine.run("systemctl is-active user@$(id -u ann)").text == "active"
            }
            try machine.write("/home/ann/.config/torpor/torpor.toml", app("notes") + app("mail"))
            try machine.done("chown -R ann: /home/ann")
            try asAnn(machine, "systemctl --user enable --now torpord")
            let uid = try machine.done("id -u ann")
            let socket = "--socket /run/user/\(uid)/torpor/io.torpor"
            for name in ["notes", "mail"] {
                try machine.waitFor(name, "is up", socket) { $0.state == "active" && $0.transition == nil }
            }
            let before = try machine.identities(["notes", "mail"], socket)
            for identity in before.values {
                let place = try machine.done("grep ^0: /proc/\(identity.pid)/cgroup")
                #expect(place.contains("/user@\(uid).service/") && place.contains("torpor-apps.scope/"), "\(place)")
                #expect(try machine.done("stat -c %u /proc/\(identity.pid)") == uid)
            }
            try asAnn(machine, "systemctl --user restart torpord")
            #expect(try machine.identities(["notes", "mail"], socket) == before)
            try asAnn(machine, "systemd-analyze --user verify --man=no /usr/lib/systemd/user/torpord.service")
            try asAnn(machine, "torpor suspend notes && torpor foreground notes")
            try asAnn(machine, "systemctl --user stop torpord")
            for identity in before.values { #expect(try machine.letter(identity.pid).isEmpty) }
        }

        @discardableResult
        private func asAnn(_ machine: Container, _ command: String) throws -> String {
            try machine.done(
                "cd /home/ann; exec setpriv --reuid ann --regid ann --init-groups env HOME=/home/ann USER=ann "
                    + "XDG_RUNTIME_DIR=/run/user/$(id -u ann) sh -c '\(command)'"
            )
        }
    }
}
