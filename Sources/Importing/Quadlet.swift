// SPDX-License-Identifier: Apache-2.0

import WireText

/// Imports units of Quadlet (podman-systemd.unit(5)): containers, with the networks, volumes, pods and images that
/// they name.
enum Quadlet {
    static let suffixes = [".container", ".pod", ".kube", ".build", ".image", ".network", ".volume"]
    static let sections = ["Container", "Pod", "Kube", "Build", "Image", "Network", "Volume"]
    /// The suffixes of units that run something. A folder with such a unit is recognised as Quadlet's; the other
    /// suffixes of Quadlet may belong to other programs.
    static let programs = [".container", ".pod", ".kube"]

    static func read(
        _ paths: [String],
        _ tree: SourceTree,
        into result: inout ImportedConfiguration
    ) throws(ImportError) {
        var given: [SystemdUnit] = []
        for path in paths {
            guard let unit = SystemdUnit(path: path, tree: tree) else { continue }
            for place in unit.strays {
                let sentence = "line \(place.number) of \(unit.name)\(unit.suffix) is neither a section nor KEY=VALUE"
                result.doubt(sentence + ", and is left out", at: place)
            }
            given.append(unit)
        }
        let folder = SourceTree.folder(paths.first ?? result.source)
        var files = QuadletFiles(given, folder: folder, tree: tree)
        var units = given.filter { $0.suffix == ".container" }
        // Pods come before their containers. If a container names a pod, the pod's file in the same folder is read
        // too, and if only a pod is imported, its containers.
        var pods = given.filter { $0.suffix == ".pod" }
        if paths.count == 1, let pod = pods.first { units = files.containers(of: pod.name + pod.suffix) }
        for unit in units {
            guard let name = unit.value("Container", "Pod"), name.hasSuffix(".pod"),
                !pods.contains(where: { ($0.name + $0.suffix).utf8.elementsEqual(name.utf8) }),
                let pod = files.unit(name)
            else { continue }
            pods.append(pod)
        }
        if paths.count == 1, let only = units.first {
            if let timer = files.unit(only.serviceName + ".timer") { given.append(timer) }
        }
        units = pods + units
        let all = SystemdUnits(units + given.filter { $0.suffix == ".timer" }, made: files.made)
        var wanted: Set<WireText> = []
        for unit in all.services {
            var program = ImportedProgram(unit.title)
            var service = SystemdService(unit: unit, units: all, tree: tree)
            service.own = ["Container", "Pod", "Quadlet"]
            QuadletOwner(path: unit.path, tree: tree).add(to: &program)
            var reader = QuadletContainer(service: service, folder: SourceTree.folder(unit.path))
            reader.read(&files, into: &program)
            wanted.formUnion(service.wanted.map(WireText.init))
            try result.append(program)
        }
        Systemd.order(all, wanted, &result)
        for unit in given where unit.suffix == ".kube" {
            var program = ImportedProgram(unit.name)
            program.cannot(
                "it is for ‘podman kube play’, whose containers Torpor cannot follow: write a .container, or an app, "
                    + "for each container of \(unit.value("Kube", "Yaml").map { quoted($0) } ?? "its file")"
            )
            try result.append(program)
        }
        for text in files.remarks { result.remark(text) }
        for unit in given where [".build", ".image", ".network", ".volume"].contains(unit.suffix) {
            files.tellUnused(unit, &result)
        }
        guard !result.programs.isEmpty else { return }
        ContainerNames.link(&result)
        ContainerValues.wake(&result)
    }
}

/// The imported units, and the units in their folder to which they refer.
struct QuadletFiles {
    private let folder: String
    private let tree: SourceTree
    private var units: [WireText: SystemdUnit] = [:]
    private var used: Set<WireText> = []
    /// Sentences that say what the user must do before the first start.
    private(set) var remarks: [String] = []

    init(_ given: [SystemdUnit], folder: String, tree: SourceTree) {
        self.folder = folder
        self.tree = tree
        for unit in given { units[WireText(unit.name + unit.suffix)] = unit }
    }

    /// The unit with this file name; nil if the folder has none, or if the name contains a slash.
    mutating func unit(_ name: String) -> SystemdUnit? {
        if let known = units[WireText(name)] { return known }
        guard !name.contains("/"), let unit = SystemdUnit(path: folder + "/" + name, tree: tree) else { return nil }
        units[WireText(name)] = unit
        return unit
    }

    /// The containers in the folder that are in this pod.
    mutating func containers(of pod: String) -> [SystemdUnit] {
        (tree.names(folder) ?? []).filter { $0.hasSuffix(".container") }.compactMap { unit($0) }
            .filter { $0.value("Container", "Pod")?.utf8.elementsEqual(pod.utf8) == true }
    }

    /// The names of units for networks, volumes and images, with their aliases. No app has to wait for these units,
    /// because podman creates networks, volumes and images when they are needed.
    var made: Set<WireText> {
        var names: Set<WireText> = []
        for name in tree.names(folder) ?? [] { insert(name, &names) }
        for unit in units.values { insert(unit.name + unit.suffix, &names) }
        return names
    }

    private func insert(_ name: String, _ names: inout Set<WireText>) {
        for suffix in [".network", ".volume", ".image", ".build"] where name.hasSuffix(suffix) {
            names.insert(WireText(name))
            names.insert(WireText("\(name.dropLast(suffix.count))-\(suffix.dropFirst()).service"))
        }
    }

    /// The name in podman of the network or volume to which a unit refers as `NAME.network` or `NAME.volume`. Other
    /// names are returned unchanged.
    mutating func resource(_ name: String, _ suffix: String, _ program: inout ImportedProgram) -> String {
        guard name.hasSuffix(suffix) else { return name }
        let usual = "systemd-" + name.dropLast(suffix.count)
        guard let unit = unit(name) else {
            program.remark("\(name) is not here: it is taken for \(usual)")
            return usual
        }
        let section = suffix == ".network" ? "Network" : "Volume"
        let own = unit.value(section, section + "Name") ?? usual
        if used.insert(WireText(name)).inserted { tellOptions(unit, section, own) }
        return own
    }

    /// The image to which a unit refers as `NAME.image` or `NAME.build`, and whether it must be built. Other names
    /// are returned unchanged.
    mutating func image(_ name: String, _ program: inout ImportedProgram) -> (name: String, isBuilt: Bool)? {
        guard name.hasSuffix(".image") || name.hasSuffix(".build") else { return (name, false) }
        guard let unit = unit(name) else {
            program.cannot("its image is that of \(name), which is not here")
            return nil
        }
        used.insert(WireText(name))
        if unit.suffix == ".image" {
            guard let image = unit.value("Image", "ImageTag") ?? unit.value("Image", "Image") else {
                program.cannot("its image is that of \(name), which has no Image")
                return nil
            }
            let others = unit.entries.filter { $0.section == "Image" && !["Image", "ImageTag"].contains($0.key) }
            if !others.isEmpty {
                let keys = LeftOutKeys.list(OrderedTable(others.map { ($0.key, ()) }).keys)
                program.remark("\(keys) of \(name) \(others.count > 1 ? "are" : "is") left out: podman pulls the image")
            }
            return (image, false)
        }
        guard let image = unit.value("Build", "ImageTag") else {
            program.cannot("its image is that of \(name), which has no ImageTag")
            return nil
        }
        guard !image.hasPrefix("-") else {
            program.cannot("its image \(quoted(image)) begins with “-”")
            return nil
        }
        program.remark("its image is built: run ‘\(Self.build(unit, image))’ before it starts, and after each change")
        return (image, true)
    }

    private static func build(_ unit: SystemdUnit, _ image: String) -> String {
        let folder = SourceTree.folder(unit.path)
        var words = ["podman", "build", "-t", image]
        let file = unit.value("Build", "File").map { $0.contains("://") ? $0 : SourceTree.join(folder, $0) }
        if let file { words += ["-f", file] }
        if let target = unit.value("Build", "Target") { words += ["--target", target] }
        for text in unit.values("Build", "BuildArg").flatMap({ SystemdText.words($0) ?? [] }) {
            words += ["--build-arg", text]
        }
        for text in unit.values("Build", "Environment").flatMap({ SystemdText.words($0) ?? [] }) {
            words += ["--env", text]
        }
        words += unit.values("Build", "PodmanArgs").flatMap { SystemdText.words($0) ?? [] }
        words.append("--")
        switch unit.value("Build", "SetWorkingDirectory") {
        case "unit"?, nil: words.append(folder)
        case "file"?: words.append(file.map(SourceTree.folder) ?? folder)
        case let context?: words.append(context.contains("://") ? context : SourceTree.join(folder, context))
        }
        return words.map(ShellWords.quote).joined(separator: " ")
    }

    // MARK: Networks and volumes with options

    private static let network = [
        "Driver": "driver", "Subnet": "subnet", "Gateway": "gateway", "IPRange": "ip-range", "DNS": "dns",
        "InterfaceName": "interface-name", "IPAMDriver": "ipam-driver", "Options": "opt", "Label": "label",
    ]
    private static let flags = ["IPv6": "ipv6", "Internal": "internal", "DisableDNS": "disable-dns"]

    private mutating func tellOptions(_ unit: SystemdUnit, _ section: String, _ name: String) {
        var words: [String] = []
        var others: [String] = []
        var mount: [String] = []
        let kind = section.lowercased()
        for entry in unit.entries where !entry.value.isEmpty {
            let (key, value) = (entry.key, entry.value)
            guard entry.section == section else {
                if entry.section != "Unit" || key != "Description" { others.append(key) }
                continue
            }
            switch key {
            case "NetworkName", "VolumeName", "ServiceName": break
            case "PodmanArgs": words += SystemdText.words(value) ?? []
            case "Label": for text in SystemdText.words(value) ?? [] { words += ["--label", text] }
            case "Device" where section == "Volume": words += ["--opt", "device=" + value]
            case "Type" where section == "Volume": words += ["--opt", "type=" + value]
            case "Image" where section == "Volume": words += ["--opt", "image=" + value]
            case "Copy" where section == "Volume": words += ["--opt", value.isTruth ? "copy" : "nocopy"]
            case "Driver" where section == "Volume": words += ["--driver", value]
            case "Options" where section == "Volume": mount.insert(value, at: 0)
            case "User" where section == "Volume", "UID": mount.append("uid=" + value)
            case "Group" where section == "Volume", "GID": mount.append("gid=" + value)
            case _ where section == "Network":
                if let option = Self.network[key] {
                    words += ["--" + option, value]
                } else if let flag = Self.flags[key] {
                    if value.isTruth { words.append("--" + flag) }
                } else {
                    others.append(key)
                }
            default: others.append(key)
            }
        }
        if !mount.isEmpty { words += ["--opt", "o=" + mount.joined(separator: ",")] }
        if !words.isEmpty {
            guard !name.hasPrefix("-") else {
                return remarks.append("The \(kind) \(quoted(name)) cannot be created: its name begins with “-”.")
            }
            let line = (["podman", kind, "create"] + words + ["--", name]).map(ShellWords.quote).joined(separator: " ")
            remarks.append("Create the \(kind) \(name) before the first start: ‘\(line)’.")
        }
        if !others.isEmpty {
            let keys = LeftOutKeys.list(OrderedTable(others.map { ($0, ()) }).keys)
            remarks.append("\(keys) of \(unit.name)\(unit.suffix) \(others.count > 1 ? "are" : "is") left out.")
        }
    }

    /// Adds a remark about a unit that no container refers to.
    func tellUnused(_ unit: SystemdUnit, _ result: inout ImportedConfiguration) {
        let name = unit.name + unit.suffix
        guard !used.contains(WireText(name)) else { return }
        if unit.suffix == ".build" {
            let image = unit.value("Build", "ImageTag") ?? "localhost/" + unit.name
            guard !image.hasPrefix("-") else { return result.doubt("\(name) is left out: its image begins with “-”") }
            return result.doubt("\(name) builds an image and is no app: run ‘\(Self.build(unit, image))’")
        }
        result.doubt("\(name) is left out: no container names it")
    }
}

extension String {
    /// Whether systemd reads the text as true.
    var isTruth: Bool { ["yes", "true", "1", "on"].contains(lowercased()) }
}
