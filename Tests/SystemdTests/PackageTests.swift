// SPDX-License-Identifier: Apache-2.0

import TestMachine
import Testing

extension Booted {
    @Suite("The package", .serialized) struct PackageTests {
        @Test("Installed, the service is enabled and runs, and its units are in order") func installed() throws {
            let machine = try service(app("web"))
            #expect(try machine.done("systemctl is-enabled torpord") == "enabled")
            // The tree has no manual pages.
            try expectNothing(machine, "systemd-analyze verify --man=no torpord.service torpord@lab.service 2>&1")
            #expect(try machine.run("torpor doctor").ok)
            let exposure = try machine.done("systemd-analyze security --no-pager torpord | tail -n 1")
            print(exposure)
            #expect(exposure.contains("Overall exposure level"))
            try expectNothing(machine, "systemctl --failed --plain --no-legend")
        }

        @Test("The drop-in for machines whose apps need little leaves a service that works") func hardened() throws {
            let machine = try service(app("web"), start: false)
            try machine.done(
                """
                mkdir -p /etc/systemd/system/torpord.service.d
                cp /usr/share/torpor/systemd/hardened.conf /etc/systemd/system/torpord.service.d/
                systemctl daemon-reload && systemctl start torpord
                """
            )
            try machine.waitFor("web", in: "active")
            try machine.done("torpor suspend web && torpor foreground web && torpor restart web")
            print(try machine.done("systemd-analyze security --no-pager torpord | tail -n 1"))
            try expectSupervised(machine, restarts: "web", stops: "web")
        }

        @Test("A removal stops the service and its apps, a purge leaves nothing") func purge() throws {
            let machine = try Container()
            defer { machine.end() }
            try machine.write("/usr/local/bin/app", program, executable: true)
            let files = "find / -xdev -not -path '/proc/*' -not -path '/run/systemd/*' -not -path '/root/*' | sort"
            try machine.put(package, "/root/torpor.deb")
            let before = try machine.done(files)
            try machine.done("dpkg -i /root/torpor.deb")
            try machine.write("/etc/torpor/conf.d/apps.toml", app("web") + app("db"))
            try machine.write("/etc/torpor/lab.toml", app("lab"))
            try machine.done("mkdir -p /var/tmp/t; torpor apply; systemctl enable --now torpord@lab")
            try machine.waitFor("web", in: "active")
            try machine.waitFor("lab", "is up", "--socket /run/torpor-lab/io.torpor") { $0.state == "active" }

            try machine.done("dpkg -r torpor")
            try expectNothing(machine, "grep -l '[/]usr/local/bin/app' /proc/[0-9]*/cmdline")
            // Slices of templates are systemd's, and stay.
            try expectNothing(machine, "systemctl list-units --plain --no-legend '*torpor*' | grep -v '\\.slice'")
            try expectNothing(machine, "ls -d /run/torpor* 2>/dev/null")
            #expect(try machine.read("/etc/torpor/conf.d/apps.toml") != "", "a removal keeps the configuration")

            try machine.done("rm /etc/torpor/conf.d/apps.toml /etc/torpor/lab.toml; dpkg -P torpor")
            let ours = ["/var/tmp/t", "/usr/local/bin/app"]
            let left = Set(try machine.done(files).split(separator: "\n")).subtracting(before.split(separator: "\n"))
                .filter { line in !(Self.changesAnyway + ours).contains { line.hasPrefix($0) } }
            #expect(left.isEmpty, "\(left.sorted())")
            try expectNothing(machine, "getent passwd torpor-policy; getent group torpor torpor-policy")
            try expectNothing(machine, "find /sys/fs/cgroup -name '*torpor*' | grep -v '/system-torpord.slice$'")
        }

        @Test("Installed again after a removal, supervisors of users that it stopped run again, and no others")
        func users() throws {
            let machine = try Container()
            defer { machine.end() }
            try machine.write("/usr/local/bin/app", program, executable: true)
            try machine.put(package, "/root/torpor.deb")
            try machine.done("mkdir -p /var/tmp/t; dpkg -i /root/torpor.deb")
            for user in ["mia", "noah"] {
                try machine.done("useradd --create-home --shell /bin/sh \(user) && loginctl enable-linger \(user)")
                try machine.eventually("the manager of \(user) runs") {
                    try machine.run("systemctl is-active user@$(id -u \(user))").text == "active"
                }
            }
            try machine.write("/home/mia/.config/torpor/torpor.toml", app("notes"))
            try machine.done("chown -R mia: /home/mia; systemctl --user --machine mia@ start torpord")
            try machine.done("dpkg -r torpor")
            #expect(try machine.run("systemctl --user --machine mia@ is-active torpord").text != "active")
            try machine.done("dpkg -i /root/torpor.deb")
            #expect(try machine.run("systemctl --user --machine mia@ is-active torpord").text == "active")
            #expect(try machine.run("systemctl --user --machine noah@ is-active torpord").text != "active")
            try expectNothing(machine, "ls /var/lib/torpor/.users /var/lib/torpor/.removed 2>/dev/null")
        }

        /// What packages in general leave behind, and what a machine that runs writes.
        static let changesAnyway = [
            "/dev", "/etc/.pwd.lock", "/etc/group-", "/etc/gshadow-", "/etc/passwd-", "/etc/shadow-", "/run/", "/sys",
            "/tmp/", "/var/cache", "/var/lib/dpkg/", "/var/lib/systemd/", "/var/log/dpkg.log", "/var/log/journal/",
        ]
    }
}
