// SPDX-License-Identifier: Apache-2.0

import Linux
import Testing

/// Reads from a folder that stands for `/`, with kernel files that say what a test wants.
func reading<Result>(_ files: [String: String], _ body: (_ root: String) throws -> Result) throws -> Result {
    let folder = try TemporaryFolder()
    defer { withExtendedLifetime(folder) {} }
    for (path, text) in files {
        let full = folder.path + path
        try File.makeDirectories(try #require(File.parent(of: full)))
        try File.write(full, text)
    }
    return try body(folder.path)
}

@Suite("What the kernel says of the machine") struct MachineTests {
    @Test("an app's room for tasks is a share of the smallest limit, but no less than small machines need")
    func taskRoom() {
        #expect(TaskRoom.share(of: ["32768\n", "192731\n", nil]) == 4915)
        #expect(TaskRoom.share(of: ["4194304\n", "192731\n", "max\n"]) == 28909)
        #expect(TaskRoom.share(of: ["4194304\n", "192731\n", "2048\n"]) == 512)
        #expect(TaskRoom.share(of: ["18446744073709551615\n"]) == 2_767_011_611_056_432_742)
        #expect(TaskRoom.share(of: [nil, "max\n", ""]) == nil)
    }

    @Test("pressure is read in hundredths of a percent, and there is none where the kernel keeps none")
    func pressure() throws {
        let files = [
            "/proc/pressure/memory":
                "some avg10=12.34 avg60=0.48 avg300=0.51 total=304559913\nfull avg10=0.05 avg60=0.00 avg300=0.11 total=9\n",
            "/proc/pressure/cpu": "some avg10=100.00 avg60=81.22 avg300=59.55 total=13106159947\n",
            "/proc/pressure/io": "",
        ]
        try reading(files) { root in
            let memory = try #require(Pressure(on: .memory, root: root))
            #expect(memory.some == 1234 && memory.full == 5)
            let cpu = try #require(Pressure(on: .cpu, root: root))
            #expect(cpu.some == 10_000 && cpu.full == nil)
            #expect(Pressure(on: .io, root: root) == nil)
        }
        #expect(Pressure(on: .memory, root: "/nonexistent") == nil)
    }

    @Test(
        "what is no pressure is none",
        arguments: [
            "some\n", "some avg10=\n", "some avg10=x\n", "some avg10=1.2.3\n", "some avg10=-1\n", "full avg10=1\n",
        ]
    )
    func strangePressure(text: String) throws {
        try reading(["/proc/pressure/io": text]) { #expect(Pressure(on: .io, root: $0) == nil) }
    }

    @Test("load averages are read in hundredths")
    func load() throws {
        let load = try #require(
            try reading(["/proc/loadavg": "5.62 15.05 0.30 3/205 18721\n"]) { LoadAverage(root: $0) }
        )
        #expect(load.minute == 562 && load.fiveMinutes == 1505 && load.quarterHour == 30)
        #expect(LoadAverage(root: "/nonexistent") == nil)
        try reading(["/proc/loadavg": "1 2"]) { #expect(LoadAverage(root: $0) == nil) }
    }

    @Test("memory is read in bytes, and what is missing is 0")
    func memory() throws {
        let files = [
            "/proc/meminfo": """
            MemTotal:        8043932 kB
            MemFree:          100000 kB
            MemAvailable:    4000000 kB
            SwapFree:            512 kB
            HugePages_Total:       7
            """
        ]
        let memory = try #require(try reading(files) { MachineMemory(root: $0) })
        #expect(memory.total == 8_043_932 * 1024 && memory.available == 4_000_000 * 1024)
        #expect(memory.swapTotal == 0 && memory.swapFree == 512 * 1024)
        #expect(MachineMemory(root: "/nonexistent") == nil)
        try reading(["/proc/meminfo": "MemFree: 1 kB\n"]) { #expect(MachineMemory(root: $0) == nil) }
    }

    @Test("this machine says something sensible")
    func here() throws {
        let memory = try #require(MachineMemory())
        #expect(memory.total >= memory.available && memory.available > 1 << 20)
        #expect(memory.swapTotal >= memory.swapFree)
        _ = try #require(LoadAverage())
        if let pressure = Pressure(on: .memory) { #expect(pressure.some <= 10_000) }
    }

    static func supply(_ name: String, _ files: [String: String]) -> [String: String] {
        Dictionary(uniqueKeysWithValues: files.map { ("/sys/class/power_supply/\(name)/\($0)", $1 + "\n") })
    }

    @Test("a laptop runs on its mains or on its battery")
    func laptop() throws {
        for (online, status, source) in [
            ("1", "Charging", Power.Source.mains), ("1", "Discharging", .mains), ("0", "Discharging", .battery),
        ] {
            var files = Self.supply("AC", ["type": "Mains", "online": online])
            files.merge(Self.supply("BAT0", ["type": "Battery", "status": status, "capacity": "73"])) { $1 }
            let power = try reading(files) { Power(root: $0) }
            #expect(power.source == source && power.percent == 73)
        }
    }

    @Test("a tablet without a mains entry tells by its battery")
    func tablet() throws {
        for (status, source) in [
            ("Discharging", Power.Source.battery), ("Full", .mains), ("Not charging", .mains), ("Unknown", .unknown),
        ] {
            let files = Self.supply("bq27", ["type": "Battery", "present": "1", "status": status, "capacity": "140"])
            let power = try reading(files) { Power(root: $0) }
            #expect(power.source == source && power.percent == 100, "\(status)")
        }
    }

    @Test("two batteries count by what they hold, and those of a mouse or that are not there do not count")
    func batteries() throws {
        var files = Self.supply("BAT0", ["type": "Battery", "status": "Not charging", "capacity": "100"])
        files.merge(Self.supply("BAT0", ["energy_now": "30000000", "energy_full": "30000000"])) { $1 }
        files.merge(Self.supply("BAT1", ["type": "Battery", "status": "Discharging", "capacity": "20"])) { $1 }
        files.merge(Self.supply("BAT1", ["energy_now": "14000000", "energy_full": "70000000"])) { $1 }
        files.merge(Self.supply("BAT2", ["type": "Battery", "present": "0", "capacity": "5"])) { $1 }
        files.merge(Self.supply("hid", ["type": "Battery", "scope": "Device", "capacity": "3"])) { $1 }
        let power = try reading(files) { Power(root: $0) }
        #expect(power.source == .battery && power.percent == 44)
        files["/sys/class/power_supply/BAT1/energy_full"] = nil
        #expect(try reading(files) { Power(root: $0) }.percent == 60, "the mean, where one does not say what it holds")
    }

    @Test("a machine that shows no supplies does not tell")
    func server() throws {
        #expect(Power(root: "/nonexistent").source == .unknown)
        #expect(Power(root: "/nonexistent").percent == nil)
        let desktop = try reading(Self.supply("AC", ["type": "Mains", "online": "1"])) { Power(root: $0) }
        #expect(desktop.source == .mains && desktop.percent == nil)
    }

    @Test("autogroups count where they are switched on and the cpu controller has not put the process elsewhere")
    func autogroups() throws {
        let on = ["/proc/sys/kernel/sched_autogroup_enabled": "1\n"]
        func obstacle(_ files: [String: String]) throws -> String? {
            try reading(files) { ProcFS.autogroupObstacle(7, root: $0, mount: $0 + "/cgroup") }
        }
        func with(_ cgroups: String, _ more: [String: String] = [:]) throws -> String? {
            try obstacle(on.merging(["/proc/7/cgroup": cgroups]) { $1 }.merging(more) { $1 })
        }
        #expect(try with("0::/\n") == nil)
        #expect(try with("0::/a/b\n") == nil, "a cgroup without the controller")
        #expect(try with("3:memory:/x\n1:cpu,cpuacct:/\n0::/\n") == nil)
        #expect(try with("1:cpu,cpuacct:/x\n0::/\n")?.hasSuffix("has put it in /x") == true)
        #expect(try with("0::/a/b\n", ["/cgroup/a/cpu.weight": "100\n"])?.hasSuffix("/cgroup/a") == true)
        #expect(try obstacle(["/proc/sys/kernel/sched_autogroup_enabled": "0\n"])?.hasSuffix("enabled is 0") == true)
        #expect(try obstacle([:]) == "the kernel has no autogroups")
    }

    @Test("a field is found by its whole name, without the white space around its value")
    func fields() {
        let text = Array("Name:\tcat: dog\nSig:\t1\nSigQ:\t2/9 \t\nEmpty:\n\nVmSwap:\t  12 kB".utf8)
        #expect(ProcFS.field("Name", of: text) == "cat: dog")
        #expect(ProcFS.field("SigQ", of: text) == "2/9")
        #expect(ProcFS.field("Sig", of: text) == "1")
        #expect(ProcFS.field("Empty", of: text) == "")
        #expect(ProcFS.field("VmSwap", of: text) == "12 kB", "the last line, without its end")
        #expect(ProcFS.field("Swap", of: text) == nil)
        #expect(ProcFS.field("VmSwap", of: []) == nil)
    }
}
