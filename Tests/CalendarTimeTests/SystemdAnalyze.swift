// SPDX-License-Identifier: Apache-2.0

import CalendarTime
import Glibc
import Linux
import Testing

/// What `systemd-analyze calendar` says of an expression.
struct Analysed: Equatable, CustomStringConvertible {
    var normal: String
    /// Seconds since 1970, as many as were asked for; fewer when no more come.
    var elapses: [Int64]

    var description: String { "\(normal) at \(elapses)" }
}

enum SystemdAnalyze {
    /// What it says of each, nil where it refuses it.
    ///
    /// - Parameters:
    ///   - zone: the machine's time zone.
    ///   - base: after which time the elapses are, in seconds since 1970.
    static func calendar(
        _ expressions: [String],
        zone: String,
        after base: Int64,
        iterations: Int
    ) throws -> [Analysed?] {
        let output = try run(
            [
                "timeout", "60", "systemd-analyze", "calendar", "--iterations=\(iterations)",
                "--base-time=\(civil(base)) UTC", "--",
            ] + expressions,
            environment: [
                "PATH=\(getenv("PATH").map { String(cString: $0) } ?? "/usr/bin:/bin")", "LC_ALL=C", "TZ=\(zone)",
            ]
        )
        // Blocks of lines, empty ones for what was refused, with an empty line between two.
        var blocks: [[Substring]] = [[]]
        for line in output.split(separator: "\n", omittingEmptySubsequences: false).dropLast() {
            if line.isEmpty { blocks.append([]) } else { blocks[blocks.count - 1].append(line) }
        }
        try #require(
            blocks.count == expressions.count,
            "systemd-analyze said something else than was expected: \(output)"
        )
        return try blocks.map { $0.isEmpty ? nil : try analysed($0) }
    }

    private static func analysed(_ lines: [Substring]) throws -> Analysed {
        var normal = ""
        var local: [Substring] = []
        var universal: [Substring] = []
        for line in lines {
            let colon = try #require(line.firstRange(of: ": "))
            let value = line[colon.upperBound...]
            switch line[..<colon.lowerBound].drop(while: { $0 == " " }) {
            case "Normalized form": normal = String(value)
            case "(in UTC)": universal.append(value)
            case "From now", "Original form": break
            // Next elapse, Iter. #2 or Iteration #2.
            default: local.append(value)
            }
        }
        // Times in UTC are shown beside the others where the zone is another one.
        let times = universal.isEmpty ? local : universal
        return Analysed(normal: normal, elapses: try times.filter { $0 != "never" }.map(seconds))
    }

    /// Reads `Mon 2024-04-01 02:30:00 UTC`.
    private static func seconds(_ text: Substring) throws -> Int64 {
        let words = text.split(separator: " ")
        try #require(words.count == 4 && words[3] == "UTC", "\(text) is not in UTC")
        let date = words[1].split(separator: "-").compactMap { Int32($0) }
        let time = words[2].split(separator: ":").compactMap { Int32($0) }
        try #require(date.count == 3 && time.count == 3, "\(text) is no time")
        var parts = tm()
        parts.tm_year = date[0] - 1900
        parts.tm_mon = date[1] - 1
        parts.tm_mday = date[2]
        parts.tm_hour = time[0]
        parts.tm_min = time[1]
        parts.tm_sec = time[2]
        return Int64(timegm(&parts))
    }

    /// As in `2024-04-01 02:30:00`.
    private static func civil(_ seconds: Int64) -> String {
        var time = time_t(seconds)
        var parts = tm()
        gmtime_r(&time, &parts)
        var text = [CChar](repeating: 0, count: 32)
        let length = strftime(&text, text.count, "%Y-%m-%d %H:%M:%S", &parts)
        return String(decoding: text[..<length].map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// Starts a program.
    private static func start(
        _ arguments: [String],
        _ environment: [String],
        output: Descriptor
    ) throws -> pid_t {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_adddup2(&actions, output.raw, 1)
        posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0)
        var argv: [UnsafeMutablePointer<CChar>?] = arguments.map { strdup($0) } + [nil]
        var envp: [UnsafeMutablePointer<CChar>?] = environment.map { strdup($0) } + [nil]
        defer { for text in argv + envp { free(text) } }
        var pid: pid_t = 0
        let code = posix_spawnp(&pid, arguments[0], &actions, nil, &argv, &envp)
        try #require(code == 0, "\(arguments[0]) cannot be started: \(String(cString: strerror(code)))")
        return pid
    }

    /// What a program writes to its standard output until it is done.
    private static func run(_ arguments: [String], environment: [String]) throws -> String {
        let (read, write) = try Descriptor.pipe()
        let pid = try start(arguments, environment, output: write)
        write.close()
        var output: [UInt8] = []
        while try Descriptor.wait(read.raw, timeout: .seconds(60)),
            let part = try Descriptor.read(read.raw, maximum: 65_536), !part.isEmpty
        {
            output += part
        }
        var status: Int32 = 0
        while waitpid(pid, &status, 0) < 0, errno == EINTR {}
        // It fails when it refuses an expression; 127 is env's: there is no such program.
        let exit = status >> 8 & 0xFF
        try #require(
            status & 0x7F == 0 && exit < 124,
            "systemd-analyze is missing or hangs: install the package systemd"
        )
        return String(decoding: output, as: UTF8.self)
    }
}

/// Zones where the machine's is another one.
struct ZonesElsewhere: TimeZones {
    let local: TimeZone

    init(_ name: String) throws {
        local = try #require(
            SystemTimeZones().zone(named: name),
            "there is no zone \(name): install the package tzdata"
        )
    }

    func zone(named name: String) -> TimeZone? { SystemTimeZones().zone(named: name) }
}
