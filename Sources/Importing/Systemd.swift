/// Units of systemd: services, with the sockets and timers of the same name.
enum Systemd {
    static func read(
        _ paths: [String],
        _ tree: SourceTree,
        into result: inout ImportedConfiguration
    ) throws(ImportError) {
        var units: [SystemdUnit] = []
        for path in paths {
            guard let unit = SystemdUnit(path: path, tree: tree) else { continue }
            for line in unit.strays {
                result.remark(
                    "\(unit.name)\(unit.suffix): line \(line) is neither a section nor KEY=VALUE, and is left out."
                )
            }
            units.append(unit)
        }
        let services = units.filter { $0.suffix == ".service" }
        if services.isEmpty, let other = units.first {
            // A socket or timer alone: its service may be beside it.
            let folder = SourceTree.folder(paths.first ?? result.source)
            let target = other.value("Timer", "Unit") ?? other.value("Socket", "Service") ?? other.name + ".service"
            guard let service = SystemdUnit(path: folder + "/" + target, tree: tree) else {
                throw ImportError("\(result.source): its service \(target) is not beside it")
            }
            units.append(service)
        } else if paths.count == 1, let service = services.first, let path = paths.first {
            for suffix in [".socket", ".timer"] {
                let beside = SourceTree.folder(path) + "/" + service.name + suffix
                if let unit = SystemdUnit(path: beside, tree: tree) { units.append(unit) }
            }
        }
        var wanted: Set<String> = []
        for unit in units where unit.suffix == ".service" {
            var program = ImportedProgram(unit.title)
            let reader = SystemdService(unit: unit, units: units, tree: tree)
            reader.read(into: &program)
            wanted.formUnion(reader.wanted)
            result.programs.append(program)
        }
        before(units, &result)
        // Who wants a unit starts it.
        for index in result.programs.indices where wanted.contains(result.programs[index].name) {
            if result.programs[index]["timers"] == nil, result.programs[index]["sockets"] == nil {
                result.programs[index]["launch"] = nil
            }
        }
        let names = Set(units.filter { $0.suffix == ".service" }.map { $0.name + ".service" })
        for unit in units where unit.suffix != ".service" {
            let target = unit.value("Timer", "Unit") ?? unit.value("Socket", "Service") ?? unit.name + ".service"
            if !names.contains(target) {
                result.remark("\(unit.name)\(unit.suffix) is left out: its service \(target) is not here.")
            }
        }
    }

    /// `Before=` is the other's `After=`.
    private static func before(_ units: [SystemdUnit], _ result: inout ImportedConfiguration) {
        for unit in units where unit.suffix == ".service" {
            for name in unit.lists("Unit", "Before") where name.hasSuffix(".service") {
                let other = String(name.dropLast(8))
                guard let index = result.programs.firstIndex(where: { $0.name == other }) else { continue }
                result.programs[index].after.append(unit.title)
            }
        }
    }
}
