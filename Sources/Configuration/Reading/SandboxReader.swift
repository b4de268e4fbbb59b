// SPDX-License-Identifier: Apache-2.0

import Lifecycle
import Permissions

/// Reads `sandbox` and `permissions`.
enum SandboxReader {
    /// The keys of an entry of `permissions`.
    static let keys = ["purpose", "default", "ports"]

    /// Reads `sandbox`. For `false` the result is `.some(nil)`; after an error it is nil.
    @Sendable static func mode(_ context: Context, _ node: Node) -> SandboxMode?? {
        switch node.value {
        case .boolean(let isWanted): return .some(isWanted ? .permissions : nil)
        case .string(let word) where word.utf8.elementsEqual(SandboxMode.agent.rawValue.utf8): return .some(.agent)
        case .string, .integer, .double, .table, .array, .date:
            context.error("must be true, false or \"agent\"", at: node.position)
            return nil
        }
    }

    static func permissions(_ context: Context, _ node: Node) -> [PermissionDeclaration] {
        guard let members = Read.members(context, node) else { return [] }
        guard members.count <= PermissionDeclaration.most else {
            context.error("an app has at most \(PermissionDeclaration.most) permissions", at: node.position)
            return []
        }
        let read = members.compactMap { permission(context.at($0.key), $0) }
        // The names are in normal form here, so different spellings of the same path are detected as duplicates.
        return Read.unique(context, node, read, by: \.name) ?? []
    }

    private static func permission(_ context: Context, _ member: Member) -> PermissionDeclaration? {
        let permission: Permission
        do throws(Permission.Problem) {
            permission = try Permission(member.key)
        } catch {
            let hint = context.hint(member.key, among: Permission.words)
            context.error("\(quoted(member.key)) \(error)" + hint, at: member.position)
            return nil
        }
        guard let members = Read.members(context, member.node) else { return nil }
        var declaration = PermissionDeclaration(permission, purpose: "")
        for member in members {
            let inner = context.at(member.key)
            switch member.key {
            case "purpose":
                guard let texts = TitleReader.read(inner, member.node, for: .summary) else { return nil }
                (declaration.purpose, declaration.purposes) = (texts.text ?? "", texts.byLanguage)
            case "default":
                if let initial: PermissionDeclaration.Default = Read.choice(inner, member.node) {
                    declaration.initial = initial
                }
            case "ports":
                guard permission == .network else {
                    inner.error("is only for network", at: member.position)
                    continue
                }
                declaration.ports = ports(inner, member.node)
            default: Read.unknown(inner, member, among: keys)
            }
        }
        guard !declaration.purpose.isEmpty else {
            context.error(
                "purpose is missing: write purpose = \"why the app needs this\", which is shown with the question",
                at: member.position
            )
            return nil
        }
        return declaration
    }

    private static func ports(_ context: Context, _ node: Node) -> [UInt16] {
        guard let ports = Read.elements(context, node, of: "ports", Read.integer(UInt16(1)...UInt16.max)) else {
            return []
        }
        guard (1...PermissionDeclaration.mostPorts).contains(ports.count) else {
            context.error(
                "has \(ports.count) ports: write 1 to \(PermissionDeclaration.mostPorts), or leave ports out for all",
                at: node.position
            )
            return []
        }
        return Set(ports).sorted()
    }

    // MARK: Checks

    /// Programs whose only purpose is to gain privileges. They would fail in a sandbox, in which no program can gain
    /// privileges.
    private static let gaining = ["sudo", "su", "doas", "pkexec", "runuser"]

    /// Makes the checks that compare `sandbox` and `permissions` with other keys of the app.
    static func check(_ draft: AppDraft) {
        let app = draft.specification
        guard app.sandbox.mode != nil else {
            if !app.sandbox.declarations.isEmpty {
                draft.warning("permissions", "does nothing without sandbox = true")
            }
            if app.sandbox.onDenied != .log { draft.warning("on_denied", "does nothing without sandbox = true") }
            return
        }
        if app.container != nil {
            draft.error(
                "sandbox",
                "does not go with container: podman confines what is inside, so write devices, networks and volumes there"
            )
        }
        if let program = app.exec.first?.split(separator: "/").last, gaining.contains(String(program)) {
            draft.warning("sandbox", "\(program) gains no privileges in a sandbox: write user instead")
        }
    }

    // MARK: Code of strangers

    /// The default of `memory_limit` for an app with `sandbox = "agent"`, in bytes.
    static let agentMemory: UInt64 = 1 << 30
    /// The default of `cpu_max` for an app with `sandbox = "agent"`, in thousandths of a percent of one processor.
    static let agentProcessor = 100_000
    /// The defaults of `limits` for an app with `sandbox = "agent"`, sorted by name: the size of a file in bytes, the
    /// number of open files, and the number of processes and threads.
    static let agentLimits: [(name: String, resource: Int32, value: UInt64)] = [
        ("fsize", 1, 1 << 30), ("nofile", 7, 1024), ("tasks", ResourceLimit.tasks, 256),
    ]

    /// Sets the defaults of `sandbox = "agent"` for those keys that are not written for the app.
    static func applyAgent(_ app: inout AppSpecification, _ isWritten: (String) -> Bool) {
        guard app.sandbox.mode == .agent else { return }
        if !isWritten("data_folders") { app.data.isWanted = true }
        if !isWritten("umask") { app.umask = 0o077 }
        if !isWritten("memory_limit") { app.memoryLimit = max(agentMemory, app.memoryNeeded ?? 0) }
        for limit in agentLimits where !app.limits.contains(where: { $0.name == limit.name }) {
            app.limits.append(
                ResourceLimit(name: limit.name, resource: limit.resource, soft: limit.value, hard: limit.value)
            )
        }
        app.limits.sort { $0.name < $1.name }
        for state in TableReader.states where state != .suspended {
            if app.resources[state]?.cpuMaximum == nil {
                app.resources[state, default: ResourceProfile()].cpuMaximum = agentProcessor
            }
        }
    }
}

extension Sandbox {
    /// Replaces a placeholder in the paths of the permissions.
    mutating func put(_ placeholder: Placeholder) {
        for index in declarations.indices {
            guard case .files(let path, let isReadOnly) = declarations[index].permission else { continue }
            declarations[index].permission = .files(path: placeholder.put(into: path), isReadOnly: isReadOnly)
        }
    }

    /// The declarations of permissions, without their purposes.
    var withoutPurposes: [PermissionDeclaration] {
        declarations.map { declaration in
            var bare = declaration
            (bare.purpose, bare.purposes) = ("", [:])
            return bare
        }
    }

    /// Adds declarations of permissions. A new declaration replaces an existing one with the same name.
    mutating func add(_ new: [PermissionDeclaration]) {
        for declaration in new {
            declarations.removeAll { $0.name.utf8.elementsEqual(declaration.name.utf8) }
            declarations.append(declaration)
        }
        declarations.sort { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }
    }
}

extension PermissionDeclaration {
    /// The declaration on one line, for diffs.
    var written: String {
        var parts = [initial.rawValue]
        if !ports.isEmpty { parts.append("ports " + ports.map(String.init).joined(separator: " ")) }
        parts.append(purpose)
        for (language, text) in purposes.sorted(by: { $0.key < $1.key }) { parts.append("\(language) \(text)") }
        return parts.joined(separator: ", ")
    }
}
