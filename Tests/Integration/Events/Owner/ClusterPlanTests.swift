// SPDX-License-Identifier: Apache-2.0

import DaemonHarness
import Foundation
import Linux
import Testing
import TorporAPI

/// `torpor-cluster` with what stands for Pacemaker and for ssh, and with a supervisor for each node.
@Suite("torpor-cluster") struct ClusterPlanTests {
    private static func toml(_ keys: String = "") -> String {
        ["a", "b", "c", "d"].map { name in
            """
            [apps.\(name)]
            exec = ["/bin/sleep", "1000"]
            owner = "external"
            tags = ["ha"]
            restart_backoff = { limit = 1 }
            topics = { handover = "latest" }
            environment = { SECRET = "xyzzy" }
            \(name == "b" ? keys : "")

            """
        }.joined()
    }

    /// What Pacemaker says of itself.
    private static func cib(properties: [String: String] = [:], devices: String? = nil, more: String = "") -> String {
        let device = """
            <primitive id="power" class="stonith" type="fence_x"><instance_attributes id="power-a">
            <nvpair id="power-h" name="pcmk_host_list" value="north south"/></instance_attributes></primitive>
            """
        let set = properties.map { #"<nvpair id="p-\#($0.key)" name="\#($0.key)" value="\#($0.value)"/>"# }.joined()
        return """
            <cib have-watchdog="false"><configuration>
            <crm_config><cluster_property_set id="p">\(set)</cluster_property_set></crm_config>
            <nodes><node id="1" uname="north"/><node id="2" uname="south"/></nodes>
            <resources>\(devices ?? device)\(more)</resources><constraints/>
            </configuration><status/></cib>
            """
    }

    private struct Nodes {
        let north: Daemon
        let south: Daemon

        private var bin: String { north.directory + "/bin" }

        /// What is called besides is written down: a plan changes nothing.
        func prepare(cib: String) throws {
            try File.makeDirectories(bin)
            try File.write(bin + "/cib", cib)
            try put("cibadmin", #"[ "$*" = --query ] || echo "cibadmin $*" >>"$0.called"; cat "${0%/*}/cib""#)
            for name in ["crm", "pcs", "crm_resource", "crm_attribute"] {
                try put(name, #"echo "$0 $*" >>"${0%/*}/cibadmin.called""#)
            }
            let report = Sources.root + "/packaging/pacemaker/torpor-cluster report"
            // Its words: the node, and a line of which the apps are the second word and those that follow.
            let calls = [("north", north), ("south", south)].map { name, daemon in
                "\(name)) exec \(report) 'tag:ha' --config \(daemon.directory)/torpor.toml --socket \(daemon.socket) "
                    + "--torpor \(Built.path("torpor")) ;;"
            }
            try put("ssh", "case $1 in\n\(calls.joined(separator: "\n"))\nesac\necho no route to it >&2; exit 255")
        }

        private func put(_ name: String, _ script: String) throws {
            try File.write(bin + "/" + name, "#!/bin/sh\n\(script)\n")
            chmod(bin + "/" + name, 0o755)
        }

        func plan(_ words: String...) throws -> (code: Int32, output: String) {
            let program = Sources.root + "/packaging/pacemaker/torpor-cluster"
            let told = try Spawn.run(
                [program, "plan", "tag:ha", "--ssh", bin + "/ssh"] + words,
                environment: ["PATH": "\(bin):/usr/bin:/bin"]
            )
            #expect(!FileManager.default.fileExists(atPath: bin + "/cibadmin.called"))
            return told
        }
    }

    private static func withNodes(
        south keys: String = "",
        cib: String = cib(),
        _ body: (Nodes) throws -> Void
    ) throws {
        try withDaemon(toml()) { north in
            try withDaemon(toml(keys)) { south in
                let nodes = Nodes(north: north, south: south)
                try nodes.prepare(cib: cib)
                try body(nodes)
            }
        }
    }

    @Test("it prints commands for crm and for pcs, spreads the apps over the nodes, and calls none of them")
    func planned() throws {
        let there = """
            <primitive id="web" class="ocf" provider="torpor" type="app"><instance_attributes id="web-a">
            <nvpair id="web-n" name="app" value="d"/></instance_attributes></primitive>
            """
        try Self.withNodes(cib: Self.cib(more: there)) { nodes in
            let (code, output) = try nodes.plan()
            #expect(code == 0, "\(output)")
            #expect(output.contains("# d is in the cluster already, as web"))
            for app in ["a", "b", "c"] {
                #expect(output.contains("primitive \(app) ocf:torpor:app \\\n    params app=\(app) kind=hot"))
                #expect(output.contains("clone \(app)-clone \(app) meta promotable=true"))
                #expect(output.contains("location \(app)-north \(app)-clone rule $role=Promoted 100: #uname eq north"))
            }
            #expect(!output.contains("primitive d "))
            // The one that is there has had its turn.
            let moves = output.split(separator: "\n").filter { $0.contains("--move") }
            let firsts = moves.map { $0.split(separator: " ").last }
            #expect(firsts == ["south", "north", "south"])
            let pcs = try nodes.plan("--format", "pcs", "--kind", "cold", "--lease", "90s")
            #expect(pcs.code == 0, "\(pcs)")
            #expect(pcs.output.contains("resource create a ocf:torpor:app app=a kind=cold lease=90s"))
            let rule = "location a-clone rule id=a-south-rule role=Promoted score=100 '#uname' eq south"
            #expect(pcs.output.contains(rule))
            let kept = try nodes.plan("--kind", "cold", "--state", "nats")
            #expect(kept.code == 0 && kept.output.contains("params app=a kind=cold state=nats"), "\(kept)")
            let hot = try nodes.plan("--state", "nats")
            #expect(hot.code == 2 && hot.output.contains("needs --kind cold"), "\(hot)")
        }
    }

    @Test("without fencing there is no plan")
    func fencing() throws {
        try Self.withNodes { nodes in
            let ofNorth = Self.cib().replacingOccurrences(of: "north south", with: "north")
            let cases = [
                (Self.cib(properties: ["stonith-enabled": "false"]), "fencing is off"),
                (Self.cib(devices: ""), "there is no fence device"),
                (ofNorth, "no fence device is for south"),
                (Self.cib(properties: ["no-quorum-policy": "ignore"]), "no-quorum-policy is ignore"),
                ("", "is no XML"),
            ]
            for (cib, sentence) in cases {
                try nodes.prepare(cib: cib)
                let (code, output) = try nodes.plan()
                #expect(code == 1 && output.contains(sentence) && !output.contains("primitive"), "\(output)")
            }
            try nodes.prepare(cib: Self.cib(properties: ["stonith-enabled": "true"]))
            #expect(try nodes.plan().code == 0)
        }
    }

    @Test("nodes that do not have the same apps are told, by key and never by value")
    func differing() throws {
        try Self.withNodes(south: #"background_time = "7s""#) { nodes in
            let differing = try nodes.plan()
            #expect(differing.code == 1)
            #expect(differing.output.contains("b is not the same on north and south: background_time"))
            #expect(try nodes.plan("--allow", "background_time").code == 0)
            let path = nodes.south.directory + "/torpor.toml"
            let cases = [
                ("xyzzy", "plugh", "a is not the same on north and south: environment"),
                ("[apps.c]", "[apps.e]", "c is not in the configuration of south"),
                (#"owner = "external""#, "", "would run on south whatever"),
                ("[apps.c]", "[", "south: \(path) is no TOML"),
            ]
            for (old, new, sentence) in cases {
                try File.write(path, Self.toml().replacingOccurrences(of: old, with: new))
                let (code, output) = try nodes.plan()
                #expect(code == 1 && output.contains(sentence), "\(output)")
                #expect(!output.contains("plugh") && !output.contains("xyzzy") && !output.contains("primitive"))
            }
            // torpord has not read what is in the file.
            let added = Self.toml() + "[apps.f]\nexec = [\"/bin/true\"]\nowner = \"external\"\ntags = [\"ha\"]\n"
            for node in [nodes.north, nodes.south] { try File.write(node.directory + "/torpor.toml", added) }
            let (code, output) = try nodes.plan()
            #expect(code == 1)
            #expect(output.contains("torpord on south does not run f as its configuration says"), "\(output)")
        }
    }

    private static func installNotes(_ version: String, on node: Daemon) throws {
        let (folder, keys) = (node.directory + "/made", node.directory + "/keys")
        for each in [folder, keys] { try File.makeDirectories(each) }
        let manifest = "name = \"notes\"\nversion = \"\(version)\"\n[app]\nexec = [\"/bin/sleep\", \"1000\"]\n"
        try File.write(folder + "/manifest.toml", manifest)
        let file = folder + ".torpor"
        let steps = [
            ["bundle", "keygen", keys + "/maker"], ["bundle", "build", folder, "--output", file],
            ["bundle", "sign", file, "--key", keys + "/maker.key"],
            ["install", file, "--bundles", node.directory + "/s/bundles", "--keys", keys],
        ]
        for step in steps {
            let (code, output) = try Spawn.run(
                [Built.path("torpor")] + step,
                environment: ["HOME": node.directory]
            )
            #expect(code == 0, "\(step): \(output)")
        }
    }

    @Test("an app of a bundle is planned, if all nodes have the same version of it")
    func bundled() throws {
        let app = "[apps.notes]\nbundle = \"notes\"\nowner = \"external\"\ntags = [\"ha\"]\n"
        try Self.withNodes { nodes in
            for node in [nodes.north, nodes.south] {
                // After the keys that say where this supervisor has its folders.
                let path = node.directory + "/torpor.toml"
                try File.write(path, try File.readString(path) + app)
                _ = try node.call(.apply(ApplyRequest()))
            }
            let missing = try nodes.plan()
            #expect(missing.code == 1)
            for node in ["north", "south"] {
                #expect(missing.output.contains("the bundle of notes is not installed on \(node)"), "\(missing)")
            }
            for (node, version) in [(nodes.north, "1.0"), (nodes.south, "1.1")] {
                try Self.installNotes(version, on: node)
                let applied = try node.call(.apply(ApplyRequest()))
                #expect("\(applied)".contains("notes \(version)"), "\(applied)")
            }
            let different = try nodes.plan()
            let sentence = "different versions of its bundle, notes 1.0 on north, notes 1.1 on south"
            #expect(different.code == 1 && different.output.contains(sentence), "\(different)")
            let allowed = try nodes.plan("--allow", "bundle")
            #expect(allowed.code == 0 && allowed.output.contains("primitive notes ocf:torpor:app"), "\(allowed)")
        }
    }

    @Test("remote nodes are left out, and a note says so")
    func remote() throws {
        let remote = Self.cib().replacingOccurrences(
            of: "</nodes>",
            with: #"<node id="far" type="remote" uname="far"/></nodes>"#
        )
        try Self.withNodes(cib: remote) { nodes in
            let (code, output) = try nodes.plan()
            #expect(code == 0 && output.contains("nothing is planned for remote nodes: far"), "\(output)")
            #expect(!output.contains("#uname eq far"))
            let named = try nodes.plan("--nodes", "north,far")
            #expect(named.code == 1 && named.output.contains("far is a remote node"), "\(named)")
        }
    }

    @Test("a node that cannot be asked, or whose torpord does not run, is named")
    func unreachable() throws {
        try Self.withNodes { nodes in
            let third = Self.cib(devices: #"<primitive id="power" class="stonith" type="fence_x"/>"#)
                .replacingOccurrences(of: "</nodes>", with: #"<node id="3" uname="east"/></nodes>"#)
            try nodes.prepare(cib: third)
            let (code, output) = try nodes.plan()
            #expect(code == 1 && output.contains("east: no route to it"), "\(output)")
            #expect(try nodes.plan("--nodes", "north,south").code == 0)
            #expect(try nodes.plan("--nodes", "north,west").output.contains("the cluster has no node west"))
            try nodes.south.stop()
            let stopped = try nodes.plan("--nodes", "north,south")
            #expect(stopped.code == 1 && stopped.output.contains("south: no torpord answers"), "\(stopped)")
        }
    }
}
