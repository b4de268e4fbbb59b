// SPDX-License-Identifier: Apache-2.0

import WireText

/// What the services of a compose file have in common: the names of networks and volumes, and the files of secrets and
/// configs.
struct ComposeProject {
    /// The name of the project, which is also the name of its default network.
    let name: String
    private let networks: DataNode?
    private let volumes: DataNode?
    private let secrets: DataNode?
    private let configs: DataNode?

    init(_ root: DataNode, folder: String, variables: [String: String]) {
        func table(_ key: String) -> DataNode? {
            root[key].map { node in
                var interpolation = ComposeInterpolation(variables: variables)
                return node.mapTexts { interpolation.expand($0) }
            }
        }
        let written = variables["COMPOSE_PROJECT_NAME"] ?? root["name"]?.text ?? SourceTree.lastPart(folder)
        let bytes = written.lowercased().utf8.filter { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"): true
            case UInt8(ascii: "_"), UInt8(ascii: "-"): true
            default: false
            }
        }
        let valid = bytes.drop { $0 == UInt8(ascii: "_") || $0 == UInt8(ascii: "-") }
        name = valid.isEmpty ? "apps" : String(wire: Array(valid))
        networks = table("networks")
        volumes = table("volumes")
        secrets = table("secrets")
        configs = table("configs")
    }

    /// The name in podman of one of the project's networks. It begins with the project's name unless the compose file
    /// gives the network a name.
    func network(_ key: String) -> String {
        let node = networks?[key]
        if let name = node?["name"]?.text ?? node?["external"]?["name"]?.text { return name }
        return node?["external"]?.flag == true ? key : "\(name)_\(key)"
    }

    /// Remarks about networks that need options. At the first launch, torpord creates missing networks, but without
    /// options.
    var networkRemarks: [String] {
        (networks?.members ?? []).compactMap { key, node in
            var options: [String] = []
            if node["internal"]?.flag == true { options.append("--internal") }
            if node["enable_ipv6"]?.flag == true { options.append("--ipv6") }
            for rule in node["ipam"]?["config"]?.list ?? [] {
                for (key, option) in [("subnet", "--subnet"), ("gateway", "--gateway"), ("ip_range", "--ip-range")] {
                    if let text = rule[key]?.text { options += [option, text] }
                }
            }
            if let driver = node["driver"]?.text, driver != "bridge" { options += ["--driver", driver] }
            let others = ["driver_opts", "enable_ipv4"].filter { node[$0]?.isNull == false }
            let rest =
                others.isEmpty ? "" : " \(LeftOutKeys.list(others)) of it \(others.count > 1 ? "are" : "is") left out."
            guard !network(key).hasPrefix("-") else { return nil }
            guard !options.isEmpty else { return rest.isEmpty ? nil : "The network \(network(key)):" + rest }
            let words = ["podman", "network", "create"] + options + ["--", network(key)]
            return "Create the network \(network(key)) before the first start: "
                + "‘\(words.map(ShellWords.quote).joined(separator: " "))’." + rest
        }
    }

    /// The name in podman of the network for services that specify no network.
    var usualNetwork: String { networks?["default"] == nil ? name : network("default") }

    /// The name in podman of one of the project's volumes.
    func volume(_ key: String) -> String {
        let node = volumes?[key]
        if let name = node?["name"]?.text ?? node?["external"]?["name"]?.text { return name }
        return node?["external"]?.flag == true ? key : "\(name)_\(key)"
    }

    /// Why torpord cannot create a volume with the properties that the compose file specifies; nil if it can.
    func problem(ofVolume key: String) -> String? {
        if let driver = volumes?[key]?["driver"]?.text, driver != "local", !driver.isEmpty {
            return "create the volume \(volume(key)) yourself with ‘podman volume create --driver …’: its driver is "
                + quoted(driver)
        }
        guard let driver = volumes?[key]?["driver_opts"], !driver.isNull else { return nil }
        return "create the volume \(volume(key)) yourself with ‘podman volume create’: it has driver_opts"
    }

    /// The file of a secret or config, if the compose file names one. For an external secret, the secret's name in
    /// podman instead.
    func file(_ key: String, isSecret: Bool, _ folder: String) -> (path: String?, name: String?) {
        let node = (isSecret ? secrets : configs)?[key]
        if let file = node?["file"]?.text { return (SourceTree.join(folder, file), nil) }
        let isExternal = node?["external"]?.flag == true || node?["external"]?["name"] != nil
        guard isSecret, isExternal else { return (nil, nil) }
        return (nil, node?["name"]?.text ?? node?["external"]?["name"]?.text ?? key)
    }
}
