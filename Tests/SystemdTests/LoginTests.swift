// SPDX-License-Identifier: Apache-2.0

import TestMachine
import Testing

extension Booted {
    @Suite("With a logind", .serialized) struct LoginTests {
        @Test("The machine's supervisor keeps the machine from sleeping at once, as long as it runs and is told to")
        func inhibitor() throws {
            let machine = try service(app("web"))
            try machine.waitFor("web", in: "active")
            func expect(_ there: Bool, _ location: SourceLocation = #_sourceLocation) throws {
                try machine.eventually("the inhibitor is \(there ? "" : "not ")there", at: location) {
                    let lines = try machine.run("systemd-inhibit --list --no-legend").lines
                    return lines.contains { $0.contains("Torpor") && $0.contains("delay") } == there
                }
            }
            try expect(true)
            #expect(try machine.done("torpor doctor").contains("ok      logind: reports sleep"))
            // A new logind waits as well, and so does one that is reached by a new bus.
            try machine.done("systemctl restart systemd-logind")
            try expect(true)
            try machine.done("systemctl restart dbus")
            try expect(true)
            try machine.done("systemctl restart torpord")
            try expect(true)
            let own = try machine.read("/etc/torpor/torpor.toml")
            defer { try? machine.write("/etc/torpor/torpor.toml", own) }
            try machine.done("sed -i 's/^\\[supervisor\\]/&\\nsleep = false/' /etc/torpor/torpor.toml && torpor apply")
            try expect(false)
        }

        @Test("A user's apps leave the foreground when the user's session is locked, and come back")
        func session() throws {
            let machine = try service(app("web"))
            defer {
                _ = try? machine.run(
                    "systemctl stop eve-session; loginctl disable-linger eve; loginctl terminate-user eve; userdel -r eve"
                )
            }
            try machine.done("useradd --create-home --shell /bin/sh eve && loginctl enable-linger eve")
            try machine.eventually("eve has a service manager") {
                try machine.run("systemctl is-active user@$(id -u eve)").text == "active"
            }
            try machine.write("/home/eve/.config/torpor/torpor.toml", app("notes"))
            try machine.done("chown -R eve: /home/eve")
            let uid = try machine.done("id -u eve")
            let asAnn =
                "setpriv --reuid eve --regid eve --init-groups env HOME=/home/eve USER=eve "
                + "XDG_RUNTIME_DIR=/run/user/\(uid) "
            try machine.done("cd /home/eve; \(asAnn) systemctl --user start torpord")
            let socket = "--socket /run/user/\(uid)/torpor/io.torpor"
            func wait(for state: String, at location: SourceLocation = #_sourceLocation) throws {
                try machine.waitFor("notes", "is \(state)", socket, at: location) {
                    $0.state == state && $0.transition == nil
                }
            }
            try wait(for: "active")

            // A session as a display manager makes one.
            try machine.done(
                "systemd-run --unit=eve-session --uid=eve -p PAMName=login -E XDG_SESSION_TYPE=x11 "
                    + "-E XDG_SESSION_CLASS=user -E XDG_SEAT=seat0 sleep 1000"
            )
            var id = ""
            try machine.eventually("eve has a session, and it is followed") {
                id = try machine.run("loginctl show-user eve -p Display --value").text
                let doctor = try machine.run("torpor \(socket) doctor").text
                return !id.isEmpty && doctor.contains("session \(id), not locked")
            }
            try machine.done("loginctl lock-session \(id)")
            try wait(for: "background")
            try machine.done("loginctl unlock-session \(id)")
            try wait(for: "active")
            // What a program says that draws a lock.
            let path = try machine.done(
                "busctl call org.freedesktop.login1 /org/freedesktop/login1 org.freedesktop.login1.Manager GetSession s \(id)"
            ).split(separator: "\"")[1]
            func hint(_ isLocked: Bool) throws {
                try machine.done(
                    "\(asAnn) busctl call org.freedesktop.login1 \(path) org.freedesktop.login1.Session SetLockedHint b "
                        + "\(isLocked)"
                )
            }
            try hint(true)
            try wait(for: "background")
            try hint(false)
            try wait(for: "active")
            try hint(true)
            try wait(for: "background")
            // With its session gone nothing of it is locked.
            try machine.done("systemctl stop eve-session")
            try wait(for: "active")
            // The machine's own supervisor is in nobody's session.
            try machine.waitFor("web", in: "active")
        }
    }
}
