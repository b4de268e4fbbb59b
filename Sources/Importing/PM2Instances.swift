// SPDX-License-Identifier: Apache-2.0

/// Translates the number of processes of an app in an ecosystem file, and how they share a port.
struct PM2Instances {
    let node: DataNode
    let tree: SourceTree
    /// Whether node runs the app. PM2's cluster mode works only with node.
    let isNode: Bool
    /// Whether the app is a shell line, which PM2 runs in fork mode by default.
    let isLine: Bool

    func read(into program: inout ImportedProgram) {
        let count = count(&program)
        guard count > 1 else {
            var leftOut = LeftOutKeys()
            if node["increment_var"] != nil { leftOut.add("increment_var", because: "it has one instance") }
            // PM2 numbers a single process too, and programs do in the first one what must not be done in each
            // (`if (process.env.NODE_APP_INSTANCE === "0")`).
            let isCounted = isNode && (node["instances"] != nil || node["exec_mode"] != nil)
            if isCounted || node["instance_var"] != nil { program.setVariable(variable, "0") }
            if node["exec_mode"]?.text?.hasPrefix("cluster") == true, !hasSocket(&program) {
                leftOut.add("exec_mode", because: "it has one instance")
            }
            return program.remark(leftOut)
        }
        program["instances"] = .integer(Int64(count))
        var first = 0
        if let name = node["increment_var"]?.text {
            // PM2 increases the variable's value by one for each instance, and begins with 0 if there is none.
            let value = node["env"]?[name]
            let number = value == nil || value?.isNull == true ? 0 : value?.integer
            if let number, (0...1_000_000_000).contains(number) {
                first = number
                program.setVariable(name, String(Character(Late.number)))
            } else {
                program.remark("increment_var is left out: env has no number \(quoted(name))")
            }
        }
        program["instance_first"] = .integer(Int64(first))
        program.setVariable(variable, String(Character(Late.number)))
        if first > 0 { program.remark("\(variable) counts from \(first), not from 0") }
        if isCluster { cluster(&program) }
    }

    /// The variable with the number of the instance.
    private var variable: String { node["instance_var"]?.text ?? "NODE_APP_INSTANCE" }

    private func count(_ program: inout ImportedProgram) -> Int {
        guard let node = node["instances"], !node.isNull else { return 1 }
        var count = node.integer
        if node.text == "max" { count = 0 }
        guard var count else {
            program.remark("instances = \(quoted(node.text ?? node.kind)) is not a number, and is left out")
            return 1
        }
        if count <= 0 {
            let less = count < 0 ? ", less \(-max(count, -100_000))" : ""
            count = max(1, tree.processors + max(count, -100_000))
            program.remark("instances: as many as this machine has processors\(less), \(count)")
        }
        guard count <= 1000 else {
            program.remark("\(count) instances are more than the thousand that an app may have")
            return 1
        }
        return count
    }

    /// Whether PM2 runs the app in cluster mode, which is the default for several instances of a node program.
    private var isCluster: Bool {
        if let mode = node["exec_mode"]?.text { return mode.hasPrefix("cluster") }
        return isNode && !isLine
    }

    /// Translates the cluster mode, in which one process of PM2 opens the port for all instances. In Torpor, each
    /// instance has its own socket at the port, and the kernel distributes the connections.
    private func cluster(_ program: inout ImportedProgram) {
        guard node["increment_var"]?.text != "PORT" else { return }
        let howto =
            "Torpor's package has \(Self.helper) for it, which node loads with --require: howto/from-pm2.md"
        guard let port = port(program) else {
            return program.remark(
                "is in cluster mode (exec_mode, instances), in which PM2 opens ports for all instances; without PM2, "
                    + "the second one ends with EADDRINUSE: write "
                    + "sockets = [{ name = \"PORT\", stream = \"PORT\", reuse_port = true }] "
                    + "and let it listen on the socket that it is passed (\(howto))"
            )
        }
        listen(&program, port, isShared: true)
        let mode = "is in cluster mode (exec_mode, instances): each instance has its own socket on port \(port), "
        switch helper(&program) {
        case .added:
            program.remark(
                mode + "and \(Self.helper), which node loads first, has it listen on that one: without that file it "
                    + "ends with EADDRINUSE"
            )
        case .present:
            program.remark(
                mode + "and listens on that one by the file that node loads first: without it, it ends with EADDRINUSE"
            )
        case .none: program.remark(mode + "and ends with EADDRINUSE unless it listens on that one (\(howto))")
        }
    }

    /// Translates the cluster mode of a single process, whose port PM2 opens too. The app has a socket only if its
    /// program listens at it without a change, because otherwise it opens the port itself. Returns false if it has
    /// none.
    private func hasSocket(_ program: inout ImportedProgram) -> Bool {
        guard let port = port(program) else { return false }
        let loads: String
        switch helper(&program) {
        case .added: loads = Self.helper
        case .present: loads = "the file"
        case .none: return false
        }
        listen(&program, port, isShared: false)
        program.remark(
            "is in cluster mode (exec_mode): it has a socket on port \(port), and listens on that by \(loads) that "
                + "node loads first: without it, it ends with EADDRINUSE"
        )
        return true
    }

    /// The number in the variable PORT; nil if there is none.
    private func port(_ program: ImportedProgram) -> Int? {
        guard case .table(let variables)? = program["environment"], case .string(let text)? = variables["PORT"],
            let port = Int(text), (1...65_535).contains(port)
        else { return nil }
        return port
    }

    /// Adds a socket at the port. `isShared`: whether each instance has one there.
    private func listen(_ program: inout ImportedProgram, _ port: Int, isShared: Bool) {
        var variables = OrderedTable<TOMLValue>()
        if case .table(let table)? = program["environment"] { variables = table }
        let host = host(variables, program)
        var members: [(key: String, value: TOMLValue)] = [
            ("stream", .string(host.map { $0 == Self.all ? "\(port)" : "\($0):\(port)" } ?? "\(port)")),
            ("name", .string("\(port)")),
        ]
        if isShared { members.append((key: "reuse_port", value: .boolean(true))) }
        program.append(to: "sockets", .table(OrderedTable(members)))
        let sockets = isShared ? "its sockets listen" : "its socket listens"
        if let host {
            let place = host == Self.all ? "all addresses" : host
            program.remark("\(sockets) on \(place), as its variables or arguments say")
        } else {
            program.remark(
                "\(sockets) on all addresses, because the import cannot see where the program listens: write "
                    + "stream = \"127.0.0.1:\(port)\" if only this machine may reach it"
            )
        }
    }

    /// The variables and options that usually contain the address at which a program listens.
    private static let hosts = ["HOST", "HOSTNAME", "BIND", "BIND_ADDRESS", "ADDRESS", "LISTEN_ADDRESS"]
    private static let options = ["--host", "--hostname", "--bind", "--address", "-H"]

    /// Stands for all addresses of the machine, including its IPv6 addresses.
    private static let all = "0.0.0.0"

    /// The address at which the program listens, in brackets if it is an IPv6 address. Nil unless the variables and
    /// arguments contain exactly one address. Host names other than localhost do not count, because HOSTNAME is often
    /// just the machine's name.
    private func host(_ variables: OrderedTable<TOMLValue>, _ program: ImportedProgram) -> String? {
        var found: [String] = []
        for name in Self.hosts {
            if case .string(let value)? = variables[name], let host = Self.address(value) { found.append(host) }
        }
        if case .array(let values)? = program["exec"] {
            let words = values.compactMap { value -> String? in
                guard case .string(let word) = value else { return nil }
                return word
            }
            for (index, word) in words.enumerated() {
                if Self.options.contains(word), index + 1 < words.count, let host = Self.address(words[index + 1]) {
                    found.append(host)
                }
                for option in Self.options where word.hasPrefix(option + "=") {
                    if let host = Self.address(String(word.dropFirst(option.count + 1))) { found.append(host) }
                }
            }
        }
        guard let first = found.first, found.allSatisfy({ $0 == first }) else { return nil }
        return first
    }

    private static func address(_ text: String) -> String? {
        if text.lowercased() == "localhost" { return "127.0.0.1" }
        if text == "::" { return all }
        let numbers = text.split(separator: ".", omittingEmptySubsequences: false)
        if numbers.count == 4, numbers.allSatisfy({ UInt8($0) != nil && !$0.hasPrefix("+") }) { return text }
        let isVersion6 =
            text.utf8.count { $0 == UInt8(ascii: ":") } >= 2
            && text.unicodeScalars.allSatisfy {
                $0 == ":" || $0 == "." || ($0.isASCII && $0.properties.isASCIIHexDigit)
            }
        return isVersion6 ? "[\(text)]" : nil
    }

    /// A file of Torpor's package that node can load before a program. With it, a program that does not know socket
    /// activation listens at the sockets that it is passed.
    static let helper = "/usr/share/torpor/listen.cjs"

    private enum Helper { case added, present, none }

    /// Makes node load ``helper`` before the program, if this machine has the file and the command loads no other file.
    private func helper(_ program: inout ImportedProgram) -> Helper {
        guard isNode, case .array(var words)? = program["exec"], !words.isEmpty else { return .none }
        let name = SourceTree.lastPart(Self.helper)
        for case .string(let word) in words where SourceTree.lastPart(word) == name { return .present }
        guard tree.exists(Self.helper) else { return .none }
        words.insert(contentsOf: [.string("--require"), .string(Self.helper)], at: 1)
        program["exec"] = .array(words)
        return .added
    }
}
