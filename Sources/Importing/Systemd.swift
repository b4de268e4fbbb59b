// SPDX-License-Identifier: Apache-2.0

import WireText

/// Imports systemd units: services, with the sockets, timers and paths that start them.
enum Systemd {
    static func read(
        _ paths: [String],
        _ tree: SourceTree,
        into result: inout ImportedConfiguration
    ) throws(ImportError) {
        var units: [SystemdUnit] = []
        for path in paths {
            guard let unit = SystemdUnit(path: path, tree: tree) else { continue }
            for place in unit.strays {
                result.doubt(
                    "line \(place.number) of \(place.file ?? unit.name) is neither a section nor KEY=VALUE, and is left out",
                    at: place
                )
            }
            units.append(unit)
        }
        let services = units.filter { $0.suffix == ".service" }
        if services.isEmpty, let other = units.first {
            // If the import contains a socket, timer or path, but not the service that it starts, read the service from
            // the same folder.
            let folder = SourceTree.folder(paths.first ?? result.source)
            let target = other.target
            guard let service = SystemdUnit(path: folder + "/" + target, tree: tree) else {
                throw ImportError("\(result.source): its service \(target) is not in the same folder")
            }
            units.append(service)
        } else if paths.count == 1, let service = services.first, let path = paths.first {
            for suffix in SourceKind.unitSuffixes where suffix != ".service" {
                let beside = SourceTree.folder(path) + "/" + service.name + suffix
                if let unit = SystemdUnit(path: beside, tree: tree) { units.append(unit) }
            }
        }
        let all = SystemdUnits(units)
        var wanted: Set<WireText> = []
        var folders = SystemdFolders(tree)
        for unit in all.services {
            var program = ImportedProgram(unit.title)
            let reader = SystemdService(unit: unit, units: all, tree: tree)
            reader.read(into: &program)
            folders.add(unit, to: &program)
            wanted.formUnion(reader.wanted.map(WireText.init))
            try result.append(program)
        }
        order(all, wanted, &result)
        for (index, unit) in all.services.enumerated() where unit.isDynamic && result.programs[index].isTranslated {
            result.programs[index].withhold()
        }
        let names = Set(all.services.map { WireText($0.name + ".service") })
        for unit in units where unit.suffix != ".service" && !names.contains(WireText(unit.target)) {
            result.remark("\(unit.name)\(unit.suffix) is left out: its service \(unit.target) is not here.")
        }
    }

    /// Translates `Before=` of a unit to `after` of the other unit.
    ///
    /// Also removes `launch` (`on-demand`) from each service that another service wants, because both must start
    /// together. Services that a timer, socket or path starts keep it.
    ///
    /// - Parameter wanted: the names of services that other services want.
    static func order(_ units: SystemdUnits, _ wanted: Set<WireText>, _ result: inout ImportedConfiguration) {
        var places: [WireText: Int] = [:]
        for (index, program) in result.programs.enumerated() { places[WireText(program.name)] = index }
        for unit in units.services {
            for name in unit.lists("Unit", "Before") {
                guard let other = service(name).flatMap({ units.names[WireText($0)] }),
                    let index = places[WireText(other)]
                else { continue }
                result.programs[index].after.append(unit.title)
            }
        }
        for name in wanted {
            guard let index = units.names[name].flatMap({ places[WireText($0)] }) else { continue }
            if !["timers", "sockets", "paths"].contains(where: { result.programs[index][$0] != nil }) {
                result.programs[index]["launch"] = nil
            }
        }
    }

    /// The name of a service or container without its suffix; nil for other units.
    static func service(_ name: String) -> String? {
        for suffix in [".service", ".container"] where name.hasSuffix(suffix) {
            return String(name.dropLast(suffix.count))
        }
        return nil
    }
}
