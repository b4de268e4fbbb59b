// SPDX-License-Identifier: Apache-2.0

import Foundation

/// podman alone, for the measurement of containers only: a container sleeps by `pause`, or does not run (`stop`). A proxy that
/// starts containers on demand does one of both when a request arrives.
struct Podman: Peer {
    let putsToSleep: String
    let wakes: String

    static let all = [
        Podman(putsToSleep: "pause", wakes: "unpause"), Podman(putsToSleep: "stop", wakes: "start"),
    ]

    var name: String { "podman-\(putsToSleep)" }
    var title: String { ((try? Child.output(["podman", "--version"])) ?? "").trimmingCharacters(in: .newlines) }
    var conditions: String { "containers sleep by podman \(putsToSleep), and are woken by podman \(wakes)" }
    var missing: String? { Self.missing }

    func prepare(_ bench: Bench, _ load: Workload) throws -> Session { throw Trouble("\(name) supervises nothing") }

    static var missing: String? {
        guard geteuid() == 0 else { return "containers are measured as root" }
        for program in ["podman", "crun"] where access("/usr/bin/" + program, X_OK) != 0 {
            return "\(program) is not installed"
        }
        guard access("/sys/fs/cgroup/cgroup.controllers", F_OK) == 0 else {
            return "/sys/fs/cgroup is not cgroup v2 alone: crun runs nothing where both versions are mounted"
        }
        return nil
    }
}

/// podman with a storage of its own, an image with `contained` in it, and its API.
final class PodmanStore {
    static let image = "localhost/contained"

    private let folder: String
    private let socket: String
    /// podman's API service.
    let service: Child
    private let api: HTTPConnection
    let environment: [String: String]

    init(_ bench: Bench) throws {
        folder = bench.disk + "/podman"
        socket = bench.memory + "/podman.sock"
        let files = FileManager.default
        try files.createDirectory(atPath: folder + "/root", withIntermediateDirectories: true)
        let storage = "[storage]\ndriver = \"overlay\"\ngraphroot = \"\(folder)/graph\"\nrunroot = \"\(folder)/run\"\n"
        try storage.write(toFile: folder + "/storage.conf", atomically: false, encoding: .utf8)
        try """
        [containers]
        pids_limit = 0
        [engine]
        cgroup_manager = "cgroupfs"
        events_logger = "none"
        lock_type = "file"
        runtime = "crun"
        tmp_dir = "\(folder)/tmp"
        [network]
        network_backend = "netavark"

        """.write(toFile: folder + "/containers.conf", atomically: false, encoding: .utf8)
        environment = [
            "CONTAINERS_STORAGE_CONF": folder + "/storage.conf", "CONTAINERS_CONF": folder + "/containers.conf",
        ]
        _ = try Child.output(
            ["cc", "-static", "-O2", "-o", folder + "/root/contained", bench.root + "/Benchmarks/Programs/contained.c"]
        )
        _ = try Child.output(["tar", "-C", folder + "/root", "-cf", folder + "/image.tar", "."])
        _ = try Child.output(Self.words(environment, ["import", folder + "/image.tar", Self.image]))
        service = try Child(
            Self.words(environment, ["system", "service", "--time=0", "unix://" + socket]),
            errors: folder + "/service"
        )
        let path = socket
        guard try waitUntil(20, { access(path, F_OK) == 0 }) else {
            service.end()
            throw Trouble("podman system service does not answer")
        }
        api = try HTTPConnection(path: path)
    }

    func end() {
        removeContainers()
        service.end()
    }

    /// Also after Ctrl-C, when nothing waits any longer.
    func removeContainers() {
        guard let child = try? Child(command(["rm", "--all", "--force", "--time=0"])) else { return }
        let limit = now() + 120
        while child.isRunning, now() < limit { pause(0.01) }
        child.end()
    }

    private static func words(_ environment: [String: String], _ words: [String]) -> [String] {
        ["env"] + environment.map { "\($0)=\($1)" } + ["podman"] + words
    }

    /// Limits that the harness has itself: podman would raise them, which needs CAP_SYS_RESOURCE.
    static var limits: [String] {
        [("Max open files", "nofile"), ("Max processes", "nproc")].map { title, name in
            let line = (Processes.read("/proc/self/limits") ?? "").split(separator: "\n").first { $0.hasPrefix(title) }
            let hard = line.flatMap { Int($0.dropFirst(title.count).split(separator: " ").dropFirst().first ?? "") }
            // podman lowers its own to 32768 processes.
            let most = min(hard ?? .max, 32_768)
            return "--ulimit=\(name)=\(most):\(most)"
        }
    }

    /// A command line of podman with this storage.
    func command(_ words: [String]) -> [String] { Self.words(environment, words) }

    /// Starts, stops, pauses or unpauses a container by the API, on a connection that is open already.
    func ask(_ verb: String, _ container: String) throws {
        _ = try api.post("/v4.0.0/libpod/containers/\(container)/\(verb)", "")
    }

    /// The first process in a container, and its conmon.
    func processes(_ container: String) throws -> (first: pid_t, conmon: pid_t) {
        let format = "{{.State.Pid}} {{.State.ConmonPid}}"
        let text = try Child.output(command(["container", "inspect", "--format", format, container]))
        let pids = text.split { $0 == " " || $0 == "\n" }.compactMap { pid_t($0) }
        guard pids.count == 2, pids[0] > 0 else { throw Trouble("\(container) does not run: \(text)") }
        return (pids[0], pids[1])
    }
}
