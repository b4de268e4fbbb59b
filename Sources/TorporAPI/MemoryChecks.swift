// SPDX-License-Identifier: Apache-2.0

package import Linux

/// The part of `torpor doctor` that checks what the machine can do when memory is short.
public struct MemoryChecks {
    private let root: String
    private let support: MemoryAdvice.Support
    private let swapSpace: SwapSpace
    private let total: UInt64

    /// Checks the machine.
    public init() { self.init(root: "", support: MemoryAdvice.support) }

    /// Creates checks that read the kernel's files below `root`. `support`: whether the supervisor may page out apps.
    package init(root: String, support: MemoryAdvice.Support) {
        self.root = root
        self.support = support
        swapSpace = SwapSpace(root: root)
        total = MachineMemory(root: root)?.total ?? 0
    }

    /// All checks.
    public var all: [DoctorCheck] { [pressure, swap, pagingOut, otherKillers] + bound }

    /// Checks whether the supervisor's own memory stays in RAM: how many bytes of it are locked (mlock(2)), and whether
    /// it may lock any. torpord locks its memory once it is idle after its start.
    public static func ownMemory(lockedBytes: UInt64, isAllowed: Bool) -> DoctorCheck {
        let ok = lockedBytes > 0 || isAllowed
        return DoctorCheck(
            name: "torpord in memory",
            ok: ok,
            value: !ok ? nil : lockedBytes > 0 ? "locked" : "not yet: once torpord is idle",
            message: ok
                ? nil
                : "torpord itself may be paged out, and is slow then when memory is short: give it CAP_IPC_LOCK, "
                    + "which root has (a container with --cap-add IPC_LOCK), or ulimit -l unlimited, which apps "
                    + "inherit"
        )
    }

    // MARK: Pressure

    private var pressure: DoctorCheck {
        let ok = Pressure(on: .memory, root: root) != nil
        return DoctorCheck(
            name: "pressure (PSI)",
            ok: ok,
            value: ok ? "/proc/pressure" : nil,
            message: ok
                ? nil
                : "the kernel does not report when tasks wait for memory, so torpord notices shortage late, when "
                    + "little is left, and has to check it every second or more often: boot with psi=1 (on Debian in "
                    + "GRUB_CMDLINE_LINUX of /etc/default/grub, then update-grub)"
        )
    }

    // MARK: Swap

    private var swap: DoctorCheck {
        guard !swapSpace.areas.isEmpty else {
            return DoctorCheck(
                name: "swap",
                ok: false,
                message:
                    "there is none, so suspended apps keep all their memory, and only terminating them frees it.\n"
                    + recipe
            )
        }
        let problem = slowSwap ?? fullSwap
        return DoctorCheck(
            name: "swap",
            ok: problem == nil,
            value: swapSpace.areas.map(Self.text).joined(separator: "; "),
            message: problem ?? advice
        )
    }

    /// Describes a swap area: `/dev/zram0, 2.0 GiB, 512.0 MiB in use (zstd, 3.1 : 1)`.
    private static func text(_ area: SwapSpace.Area) -> String {
        var text = "\(area.path), \(size(area.size))"
        if area.used > 0 { text += ", \(size(area.used)) in use" }
        guard let zram = area.zram else { return text }
        var words = [zram.algorithm.isEmpty ? "compressed" : zram.algorithm]
        // Below 1 MiB the compression ratio is not meaningful yet.
        if zram.compressed > 1 << 20 {
            words.append("\(tenths(Double(zram.original) / Double(zram.compressed))) : 1")
        }
        return text + " (\(words.joined(separator: ", ")))"
    }

    private var hasZram: Bool { swapSpace.areas.contains { $0.zram != nil } }

    /// Why the swap area that the kernel uses first is slow; nil if it is not. The kernel first fills the area with the
    /// highest priority (swapon(2)).
    private var slowSwap: String? {
        guard let first = swapSpace.areas.max(by: { $0.priority < $1.priority }), first.zram == nil,
            BlockDevice.isRotational(first.path, root: root) == true
        else { return nil }
        let cost =
            "\(first.path) is on a spinning disk: an app that was paged out comes back at a hundred pages a second"
        return hasZram
            ? "\(cost), since zram has a lower priority: swapoff \(first.path), or give zram the higher one"
            : "\(cost).\n\(recipe)"
    }

    private var fullSwap: String? {
        guard swapSpace.size > 0, swapSpace.free < swapSpace.size / 20 else { return nil }
        return "it is full: suspended apps keep their memory, and are terminated instead of paged out; make it larger"
    }

    /// Advice how to make swap faster, although it works; nil if there is none.
    private var advice: String? {
        if !hasZram {
            // Give no advice if zswap is in use: zswap keeps frequently used pages compressed in memory, as zram does
            // with all pages.
            return swapSpace.isCompressedBefore ? nil : "apps would come back faster from compressed memory.\n\(recipe)"
        }
        let file = root + "/proc/sys/vm/page-cluster"
        guard let text = try? File.readString(file), let cluster = Int(text.prefix { $0.isNumber }), cluster > 0,
            swapSpace.areas.allSatisfy({ $0.zram != nil })
        else { return nil }
        return "each page that is read back brings \((1 << min(cluster, 10)) - 1) neighbours with it, which helps only "
            + "on disks: sysctl vm.page-cluster=0 (a line in /etc/sysctl.d makes it permanent)"
    }

    /// Instructions to set up a zram device of a suitable size, with one line for each tool.
    private var recipe: String {
        let (percent, expression) = Self.zramSize(total)
        let amount = total == 0 ? "" : " of \(Self.size(total / 100 * percent))"
        return """
            A zram device\(amount) holds pages compressed, in about a third of the memory, and takes none while empty.
            On Debian: apt install zram-tools, write ALGO=zstd and PERCENT=\(percent) into /etc/default/zramswap, \
            systemctl restart zramswap.
            Or: apt install systemd-zram-generator, write [zram0], zram-size = \(expression) and \
            compression-algorithm = zstd into /etc/systemd/zram-generator.conf, systemctl daemon-reload, \
            systemctl start systemd-zram-setup@zram0.
            In a container, do this on the host.
            """
    }

    /// The size of a suitable zram device, as percent of memory and as a size for zram-generator.conf(5). With up to 8
    /// GiB of memory, the device is as large as the memory, because pages shrink to about a third. With 16 GiB or more,
    /// it is half as large as the memory; otherwise 8 GiB.
    package static func zramSize(_ total: UInt64) -> (percent: UInt64, expression: String) {
        let little: UInt64 = 8 << 30
        if total <= little { return (100, "ram") }
        if total >= 2 * little { return (50, "ram / 2") }
        return ((little * 100 + total / 2) / total, "8192")
    }

    // MARK: Paging out

    private var pagingOut: DoctorCheck {
        let problem: String?
        switch support {
        case .available: problem = nil
        case .missingInKernel: problem = "the kernel is older than Linux 5.10, or lacks CONFIG_ADVISE_SYSCALLS"
        case .notPermitted:
            problem =
                "this user may not page out other processes: run torpord as root, a container with "
                + "--cap-add SYS_NICE"
        }
        return DoctorCheck(
            name: "paging out",
            ok: problem == nil,
            value: problem == nil ? "process_madvise" : nil,
            message: problem.map {
                "\($0). Without it torpord pages out only suspended apps whose cgroups have the memory controller; "
                    + "others stay in memory until the kernel itself pages them out, or they are terminated"
            }
        )
    }

    // MARK: A bound on everything

    /// The check of the memory limit of a container, slice or service: apps may reach this limit while the machine
    /// has memory left.
    private var bound: [DoctorCheck] {
        guard let bound = MemoryBound(root: root) else { return [] }
        return [
            DoctorCheck(
                name: "memory of its own",
                ok: true,
                value: "\(Self.size(bound.limit)) of \(Self.size(total))",
                message:
                    "\(bound.file) is a limit for the supervisor and everything around it: settings and figures for "
                    + "the machine's memory, such as warning_available, refer to it"
            )
        ]
    }

    // MARK: Others that kill

    /// Programs that kill processes when memory is short, by their process name (comm), and how to exempt the
    /// supervisor's apps from them.
    private static let killers = [
        (
            "earlyoom",
            "let it act only after Torpor: EARLYOOM_ARGS=\"-m 3 -s 3\" in /etc/default/earlyoom, "
                + "below critical_available"
        ),
        (
            "nohang",
            "put @BADNESS_ADJ_RE_CGROUP_V2 -1000 /// /torpor-apps into /etc/nohang/nohang.conf, which spares apps that "
                + "have cgroups"
        ),
        (
            "systemd-oomd",
            "stop it from watching the slice of torpor-apps.scope (oomctl shows it): systemctl set-property SLICE "
                + "ManagedOOMSwap=auto ManagedOOMMemoryPressure=auto"
        ),
    ]

    private var otherKillers: DoctorCheck {
        let found = running
        return DoctorCheck(
            name: "other OOM killers",
            ok: found.isEmpty,
            value: found.isEmpty ? "none" : found.map { "\($0.name), process \($0.pid)" }.joined(separator: "; "),
            message: found.isEmpty
                ? nil
                : "\(found.count == 1 ? "it kills" : "they kill") by size and without notice, even apps that are in "
                    + "use or have not saved their state:\n"
                    + found.map { "\($0.name): \($0.remedy)" }.joined(separator: "\n")
        )
    }

    private var running: [(name: String, pid: Int32, remedy: String)] {
        let pids = ((try? File.list(root + "/proc")) ?? []).compactMap { Int32($0) }.sorted()
        var found: [(String, Int32, String)] = []
        for pid in pids {
            guard let comm = try? File.readString("\(root)/proc/\(pid)/comm", limit: 64) else { continue }
            let name = comm.split(separator: "\n").first.map(String.init) ?? ""
            guard let killer = Self.killers.first(where: { $0.0 == name }) else { continue }
            // Each of earlyoom and nohang is one process, so do not report a short-lived child as a second one.
            if !found.contains(where: { $0.0 == name }) { found.append((name, pid, killer.1)) }
        }
        return found
    }

    // MARK: Amounts

    private static func size(_ bytes: UInt64) -> String {
        let megabytes = Double(bytes) / 1_048_576
        return megabytes < 1024 ? "\(tenths(megabytes)) MiB" : "\(tenths(megabytes / 1024)) GiB"
    }

    private static func tenths(_ value: Double) -> String {
        guard value.isFinite, value < 1e12 else { return "-" }
        let scaled = Int((value * 10).rounded())
        return "\(scaled / 10).\(scaled % 10)"
    }
}
