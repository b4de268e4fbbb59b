// SPDX-License-Identifier: Apache-2.0

import WireText

/// Finds containers that only work for other containers, such as job queues, and do not listen at any port, so that no
/// connection can wake them.
///
/// Before an image is pulled, nothing shows whether its program listens at a port. A wrong guess does harm, because
/// nothing would wake a suspended container to which clients connect. So only two kinds of containers count: those
/// without a network; and those that run their own command in a server's image and are named by nothing else in the
/// configuration.
struct Workers {
    private let programs: [ImportedProgram]
    private let servers: Set<WireText>
    private let named: Set<WireText>

    init(_ result: ImportedConfiguration) {
        programs = result.programs.filter(\.isTranslated)
        named = Set(
            programs.flatMap { $0.requires + $0.after + $0.links.map(\.program) + ($0.joined.map { [$0] } ?? []) }
                .map(WireText.init)
        )
        servers = Set(programs.filter(Self.hasPorts).compactMap(Self.origin))
    }

    /// If a configuration has more programs than this, workers are not searched for, because each program is compared
    /// with all others.
    private static let most = 256

    func contains(_ program: ImportedProgram) -> Bool {
        guard case .table(let table) = program["container"], !Self.hasPorts(program) else { return false }
        let networks = Self.texts(table["networks"])
        if networks == ["none"] { return true }
        guard programs.count <= Self.most, !program.exposes, program.joined == nil,
            !networks.contains(where: { $0.hasPrefix("host") }),
            networks.allSatisfy({ !$0.contains(":") }), table["labels"] == nil, program["ready"] == nil,
            program["health"] == nil, program["exec"] != nil, let origin = Self.origin(program),
            servers.contains(origin)
        else { return false }
        var names = [program.name]
        if case .string(let name)? = table["name"] { names.append(name) }
        guard !names.contains(where: { named.contains(WireText($0)) }) else { return false }
        return !programs.contains { other in
            other.name.utf8.elementsEqual(program.name.utf8) ? false : names.contains { Self.mentions($0, other) }
        }
    }

    private static func hasPorts(_ program: ImportedProgram) -> Bool {
        guard case .table(let table) = program["container"] else { return false }
        return !texts(table["ports"]).isEmpty
    }

    /// Identifies where a container's image comes from, to compare it with other images.
    private static func origin(_ program: ImportedProgram) -> WireText? {
        if let origin = program.origin { return WireText(origin) }
        guard case .table(let table) = program["container"], case .string(let image)? = table["image"] else {
            return nil
        }
        return WireText(image)
    }

    /// Whether a program's command or variables contain a name, such as in a URL.
    private static func mentions(_ name: String, _ program: ImportedProgram) -> Bool {
        var all = texts(program["exec"])
        if case .table(let variables) = program["environment"] {
            for (_, value) in variables { if case .string(let text) = value { all.append(text) } }
        }
        return all.contains { $0.contains(name) }
    }

    private static func texts(_ value: TOMLValue?) -> [String] {
        guard case .array(let all)? = value else { return [] }
        return all.compactMap { if case .string(let text) = $0 { text } else { nil } }
    }
}
