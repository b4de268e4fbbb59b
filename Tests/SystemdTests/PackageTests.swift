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
            let walled = "user = \"nobody\"\nsandbox = \"agent\"\nlimits = { nofile = 512 }\nnice = 5"
            let keys =
                walled + "\n[apps.walled.permissions]\n\"files:/var/tmp/t\" = "
                + "{ purpose = \"Writes down what it hears\", default = \"allow\" }"
            let machine = try service(app("web") + app("walled", nil, keys), start: false)
            try machine.done(
                """
                mkdir -p /etc/systemd/system/torpord.service.d
                cp /usr/share/torpor/systemd/hardened.conf /etc/systemd/system/torpord.service.d/
                systemctl daemon-reload && systemctl start torpord
                """
            )
            try machine.waitFor("web", in: "active")
            try machine.done("torpor suspend web && torpor foreground web && torpor restart web")
            // A sandbox needs Landlock, seccomp and, for its IPC namespace, unshare(2) with RestrictNamespaces=ipc.
            try machine.waitFor("walled", in: "active")
            let pid = try #require(try machine.app("walled").pid)
            let fields = "^(Uid|Seccomp|NoNewPrivs|CapEff):"
            let status = try machine.done("grep -E '\(fields)' /proc/\(pid)/status | tr -s '\\t ' ' '")
            #expect(status.contains("Seccomp: 2") && status.contains("NoNewPrivs: 1"), "\(status)")
            #expect(status.contains("Uid: 65534 ") && status.contains("CapEff: 0000000000000000"), "\(status)")
            let torpord = try #require(try machine.torpord(below: try machine.mainPid("torpord")))
            let spaces = try machine.done("readlink /proc/\(torpord)/ns/ipc /proc/\(pid)/ns/ipc | sort -u | wc -l")
            #expect(spaces == "2", "the app has no IPC namespace of its own")
            #expect(try machine.read("/proc/\(pid)/limits").contains("Max open files            512"))
            #expect(try !machine.done("torpor status walled").contains("System V"))
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

        /// What packages in general leave behind, and what a machine that runs writes.
        static let changesAnyway = [
            "/dev", "/etc/.pwd.lock", "/etc/group-", "/etc/gshadow-", "/etc/passwd-", "/etc/shadow-", "/run/", "/sys",
            "/tmp/", "/var/cache", "/var/lib/dpkg/", "/var/lib/systemd/", "/var/log/dpkg.log", "/var/log/journal/",
        ]
    }
}
