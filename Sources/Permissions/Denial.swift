// SPDX-License-Identifier: Apache-2.0

import WireText

/// An access that Landlock denied to a process, as described by the kernel's audit record.
public struct Denial: Hashable, Sendable {
    /// The rights that the process lacked, in the kernel's words, such as `fs.read_file`, `net.connect_tcp` or
    /// `scope.signal`.
    public var blockers: [String]
    /// What the process tried to access.
    public var object: Object

    /// The kinds of objects to which access can be denied.
    public enum Object: Hashable, Sendable {
        /// A file by its path; if creating or removing a file was denied, the folder of that file. The path has at most
        /// ``longestPath`` characters.
        case path(String)
        /// A TCP port.
        case port(UInt16)
        /// A process by its pid.
        case process(Int32)
        /// An abstract Unix socket, by its name.
        case abstract(String)
        /// None, because the kernel's record names no object.
        case nothing
    }

    /// The maximum length of a stored path, in characters. Longer paths are cut.
    public static let longestPath = 1024

    /// Memberwise initializer.
    public init(_ blockers: [String], _ object: Object) { (self.blockers, self.object) = (blockers, object) }

    /// The denied access as text that follows "may not", such as `write /etc/passwd`.
    public var text: String {
        let verbs = blockers.map { Self.verbs[$0] ?? $0 }
        let verb = verbs.reduce("") { $0.isEmpty ? $1 : $0.contains($1) ? $0 : $0 + " or " + $1 }
        switch object {
        case .path(let path): return "\(verb) \(Self.shown(path))"
        case .port(let port): return "\(verb) TCP port \(port)"
        case .process(let pid): return "\(verb) process \(pid), which is outside"
        case .abstract(let name): return "\(verb) @\(Self.shown(name)), which is outside"
        case .nothing: return verb
        }
    }

    private static let verbs = [
        "fs.execute": "run", "fs.write_file": "write", "fs.read_file": "read", "fs.read_dir": "list",
        "fs.remove_dir": "remove a folder in", "fs.remove_file": "remove a file in",
        "fs.make_char": "make a device in", "fs.make_block": "make a device in", "fs.make_dir": "make a folder in",
        "fs.make_reg": "make a file in", "fs.make_sock": "make a socket in", "fs.make_fifo": "make a FIFO in",
        "fs.make_sym": "make a symlink in", "fs.refer": "move or link between folders:", "fs.truncate": "truncate",
        "fs.ioctl_dev": "control", "fs.change_topology": "change mounts", "net.bind_tcp": "listen at",
        "net.connect_tcp": "connect to", "scope.signal": "signal", "ptrace": "trace",
        "scope.abstract_unix_socket": "connect to the abstract socket",
    ]

    /// The name in a form that is safe to display: without terminal control characters, and with limited length.
    private static func shown(_ name: String) -> String {
        var result = ""
        var count = 0
        for scalar in name.unicodeScalars {
            guard count < 256 else { return result + "…" }
            let isPlain =
                scalar.properties.generalCategory != .control && scalar.properties.generalCategory != .format
                && scalar.properties.generalCategory != .lineSeparator
                && scalar.properties.generalCategory != .paragraphSeparator
            result.unicodeScalars.append(isPlain ? scalar : "\u{fffd}")
            count += 1
        }
        return result
    }

    /// Whether the denied rights are only those to read files, list folders or run programs.
    private var isReading: Bool {
        blockers.allSatisfy { ["fs.execute", "fs.read_file", "fs.read_dir"].contains($0) }
    }

    /// The name of the permission that would allow the access, such as `camera` or `files:/srv/media:ro`; nil if no
    /// permission would.
    public var permission: String? {
        switch object {
        case .path(let path):
            guard !blockers.contains("fs.change_topology"), path.utf8.first == UInt8(ascii: "/") else { return nil }
            if let device = Self.device(path) { return device.rawValue }
            return "files:" + Self.shown(path) + (isReading ? ":ro" : "")
        case .port: return "network"
        case .process, .abstract, .nothing: return nil
        }
    }

    /// The declared permissions that would allow the access if users granted them.
    public func covering(_ declarations: [PermissionDeclaration]) -> [PermissionDeclaration] {
        declarations.filter { declaration in
            switch (declaration.permission, object) {
            case (.files(let pattern, let isReadOnly), .path(let path)):
                (!isReadOnly || isReading) && Self.covers(pattern, path)
            case (.device(let device), .path(let path)): Self.device(path) == device
            case (.network, .port(let port)): declaration.ports.isEmpty || declaration.ports.contains(port)
            default: false
            }
        }
    }

    private static func device(_ path: String) -> Permission.Device? {
        guard path.utf8.starts(with: "/dev/".utf8) else { return nil }
        return Permission.Device.allCases.first { $0.nodes.contains { covers($0, path) } }
    }

    /// Whether a pattern matches the path or a folder above it. Here `*` matches slashes too, so the result may be true
    /// for some paths that the permission does not allow, but it is never false for a path that it allows.
    private static func covers(_ pattern: String, _ path: String) -> Bool {
        pattern == "/" || Glob.matches(pattern, path) || Glob.matches(pattern + "/*", path)
    }
}

/// A record of the kernel's audit about Landlock (Documentation/admin-guide/LSM/landlock.rst).
///
/// When a process restricts itself, the kernel creates a domain from the ruleset. All processes that it starts later
/// are in the domain too. The kernel describes each domain only once, after the domain's first denial.
public enum DenialRecord: Hashable, Sendable {
    /// An access was denied to a process in the domain.
    case denied(domain: UInt64, Denial)
    /// A process restricted itself and so created the domain: its pid, user and program.
    case made(domain: UInt64, process: Int32, user: UInt32, program: String)
    /// No process is in the domain any longer.
    case gone(domain: UInt64)

    /// AUDIT_LANDLOCK_ACCESS.
    public static let access: UInt16 = 1423
    /// AUDIT_LANDLOCK_DOMAIN.
    public static let domain: UInt16 = 1424

    /// Parses a record; nil if it is not about Landlock or is invalid.
    public init?(type: UInt16, _ text: [UInt8]) {
        guard type == Self.access || type == Self.domain else { return nil }
        let fields = Fields(text)
        guard let domain = fields.word("domain").flatMap({ UInt64($0, radix: 16) }) else { return nil }
        if type == Self.domain {
            switch fields.word("status") {
            case "allocated":
                guard let process = fields.word("pid").flatMap({ Int32($0) }), process > 0,
                    let user = fields.word("uid").flatMap({ UInt32($0) })
                else { return nil }
                self = .made(domain: domain, process: process, user: user, program: fields.text("exe") ?? "")
            case "deallocated": self = .gone(domain: domain)
            default: return nil
            }
            return
        }
        guard let words = fields.word("blockers") else { return nil }
        let blockers = words.split(separator: ",").map(String.init)
        let isPlain = blockers.allSatisfy { word in
            word.utf8.count <= Self.longestBlocker
                && word.utf8.allSatisfy {
                    (97...122).contains($0) || $0 == UInt8(ascii: "_") || $0 == UInt8(ascii: ".")
                }
        }
        guard !blockers.isEmpty, blockers.count <= Self.mostBlockers, isPlain else { return nil }
        self = .denied(domain: domain, Denial(blockers, Self.object(fields, blockers)))
    }

    private static let mostBlockers = 32
    private static let longestBlocker = 64

    private static func object(_ fields: Fields, _ blockers: [String]) -> Denial.Object {
        if let pid = fields.word("opid").flatMap({ Int32($0) }) { return .process(pid) }
        if let port = (fields.word("dest") ?? fields.word("src")).flatMap({ UInt16($0) }) { return .port(port) }
        if let path = fields.text("path") {
            let cut = String(path.unicodeScalars.prefix(Denial.longestPath))
            return blockers.contains("scope.abstract_unix_socket")
                ? .abstract(String(cut.unicodeScalars.drop { $0 == "\0" })) : .path(cut)
        }
        return .nothing
    }

    /// The fields of a record: `name=word`, `name="text"`, or hexadecimal digits (`name=6865…`) if the text contains
    /// other characters than printable ASCII. No value contains a space, so a hostile file name cannot forge another
    /// field.
    private struct Fields {
        private var values: [String: ArraySlice<UInt8>] = [:]

        init(_ bytes: [UInt8]) {
            // Skip the prefix `audit(TIME:NUMBER): `. The kernel ends some texts with a NUL.
            let text = bytes.prefix { $0 != 0 }
            guard text.starts(with: "audit(".utf8), let colon = text.firstIndex(of: UInt8(ascii: " ")) else { return }
            for part in text[(colon + 1)...].split(separator: UInt8(ascii: " ")).prefix(DenialRecord.mostFields) {
                guard let sign = part.firstIndex(of: UInt8(ascii: "=")) else { continue }
                let name = String(wire: part[..<sign])
                if values[name] == nil { values[name] = part[(sign + 1)...] }
            }
        }

        func word(_ name: String) -> String? { values[name].map { String(wire: $0) } }

        func text(_ name: String) -> String? {
            guard let value = values[name] else { return nil }
            if value.first == UInt8(ascii: "\"") {
                guard value.count >= 2, value.last == UInt8(ascii: "\"") else { return nil }
                return String(wire: value.dropFirst().dropLast())
            }
            guard !value.isEmpty, value.count % 2 == 0 else { return nil }
            var bytes: [UInt8] = []
            bytes.reserveCapacity(value.count / 2)
            var index = value.startIndex
            while index < value.endIndex {
                guard let high = Self.digit(value[index]), let low = Self.digit(value[index + 1]) else { return nil }
                bytes.append(high << 4 | low)
                index += 2
            }
            return String(wire: bytes)
        }

        private static func digit(_ byte: UInt8) -> UInt8? {
            switch byte {
            case 48...57: byte - 48
            case 65...70: byte - 55
            case 97...102: byte - 87
            default: nil
            }
        }
    }

    private static let mostFields = 64
}
