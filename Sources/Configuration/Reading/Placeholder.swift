// SPDX-License-Identifier: Apache-2.0

import Lifecycle
import Linux
import WireText

/// A placeholder in the values of an app: `%i` for an instance's number, or `%s` for a scene's name.
struct Placeholder {
    private let letter: UInt8
    private let text: String
    private let mayBeLonger: Bool

    /// The placeholder `%i` for the number of an instance. `%02i` pads the number with zeros to two digits.
    static func instance(_ number: Int) -> Placeholder {
        Placeholder(letter: UInt8(ascii: "i"), text: String(number), mayBeLonger: true)
    }

    /// The placeholder `%s` for the name of a scene.
    static func scene(_ name: String) -> Placeholder {
        Placeholder(letter: UInt8(ascii: "s"), text: name, mayBeLonger: false)
    }

    /// Whether a text contains `%s`, the placeholder for a scene's name.
    static func isForScene(_ text: String) -> Bool {
        let bytes = Array(text.utf8)
        return zip(bytes, bytes.dropFirst()).contains { $0 == UInt8(ascii: "%") && $1 == UInt8(ascii: "s") }
    }

    /// The text, with each placeholder replaced.
    func put(into text: String) -> String {
        let bytes = Array(text.utf8)
        guard bytes.contains(UInt8(ascii: "%")) else { return text }
        var result: [UInt8] = []
        var index = 0
        while index < bytes.count {
            if let (length, digits) = place(bytes[index...]) {
                result += [UInt8](repeating: UInt8(ascii: "0"), count: max(0, digits - self.text.utf8.count))
                result += self.text.utf8
                index += length
            } else {
                result.append(bytes[index])
                index += 1
            }
        }
        return String(wire: result)
    }

    /// If the bytes begin with the placeholder, such as `%i` or `%02i`, returns its length in bytes and the minimum
    /// number of digits; otherwise nil.
    private func place(_ bytes: ArraySlice<UInt8>) -> (length: Int, digits: Int)? {
        if bytes.starts(with: [UInt8(ascii: "%"), letter]) { return (2, 1) }
        guard mayBeLonger, bytes.starts(with: "%0".utf8), let digit = bytes.dropFirst(2).first,
            (UInt8(ascii: "1")...UInt8(ascii: "9")).contains(digit), bytes.dropFirst(3).first == letter
        else { return nil }
        return (4, Int(digit - UInt8(ascii: "0")))
    }
}

extension AppSpecification {
    /// The specification of the scene with this name. The app must be a template.
    public func scene(named name: String) -> AppSpecification {
        var app = self
        app.name = AppName.scene(self.name, name)
        app.scene = name
        let placeholder = Placeholder.scene(name)
        app.put(placeholder)
        app.environment["TORPOR_SCENE"] = name
        for index in app.sockets.indices { app.sockets[index].put(placeholder) }
        if case .probe(var probe) = app.ready {
            probe.put(placeholder)
            app.ready = .probe(probe)
        }
        app.health?.probe.put(placeholder)
        app.snapshot?.put(placeholder)
        return app
    }

    /// Why the address of one of the scene's sockets is not valid after the scene's name was inserted. Nil if all
    /// addresses are valid.
    public var addressProblem: String? {
        sockets.lazy.compactMap { SocketReader.problem($0.plan.address, $0.plan.kind) }.first
    }

    mutating func put(_ placeholder: Placeholder) {
        func put(_ text: String) -> String { placeholder.put(into: text) }
        exec = exec.map(put)
        presentation.title = presentation.title.map(put)
        presentation.titles = presentation.titles.mapValues(put)
        presentation.summary = presentation.summary.map(put)
        presentation.summaries = presentation.summaries.mapValues(put)
        presentation.icon = presentation.icon.map(put)
        presentation.icons = presentation.icons.mapValues(put)
        presentation.language = presentation.language.map(put)
        presentation.launchImage = presentation.launchImage.map(put)
        presentation.cover.command = presentation.cover.command.map(put)
        container?.put(placeholder)
        sandbox.put(placeholder)
        settings.value.put(placeholder)
    }
}

extension AppSettings {
    fileprivate mutating func put(_ placeholder: Placeholder) {
        func put(_ text: String) -> String { placeholder.put(into: text) }
        directory = directory.map(put)
        environment = environment.mapValues(put)
        for index in environmentFiles.indices { environmentFiles[index].path = put(environmentFiles[index].path) }
        for index in beforeStart.indices { beforeStart[index].command = beforeStart[index].command.map(put) }
        for index in afterStop.indices { afterStop[index].command = afterStop[index].command.map(put) }
        for index in onFailure.indices { onFailure[index].command = onFailure[index].command.map(put) }
        sharedResources = sharedResources.map(put)
        purgeable = purgeable.map(put)
        data.firstLaunch = data.firstLaunch.map(put)
        events.put(placeholder)
        if case .file(let path) = output.standardInput { output.standardInput = .file(put(path)) }
        if case .file(let path) = output.standardError { output.standardError = .file(put(path)) }
    }
}

extension AppEvents {
    fileprivate mutating func put(_ placeholder: Placeholder) {
        func put(_ text: String) -> String { placeholder.put(into: text) }
        opening.command = opening.command.map(put)
        settingsFiles = settingsFiles.map(put)
        identityFiles = identityFiles.map(put)
        for index in announcements.indices {
            announcements[index].name = announcements[index].name.map(put)
            announcements[index].text = announcements[index].text.map(put)
        }
        for index in paths.indices {
            paths[index].name = put(paths[index].name)
            paths[index].path = put(paths[index].path)
        }
        for index in devices.indices {
            devices[index].name = put(devices[index].name)
            devices[index].node = devices[index].node.map(put)
            devices[index].properties = devices[index].properties.mapValues(put)
        }
    }
}

extension SocketSpecification {
    fileprivate mutating func put(_ placeholder: Placeholder) {
        switch plan.address {
        case .path(let path): plan.address = .path(placeholder.put(into: path))
        case .abstract(let name): plan.address = .abstract(placeholder.put(into: name))
        case .port, .ipv4, .ipv6, .vsock: break
        }
        if let text = template?.text { template?.text = placeholder.put(into: text) }
        symlinks = symlinks.map { placeholder.put(into: $0) }
    }
}

extension Probe.Kind {
    /// The program and arguments, if the probe is a command; otherwise empty.
    var words: [String] {
        switch self {
        case .command(let words), .inside(let words): words
        case .tcp, .http, .file: []
        }
    }
}

extension Probe {
    mutating func put(_ placeholder: Placeholder) {
        template = template.map { placeholder.put(into: $0) }
        switch kind {
        case .tcp: break
        case .http(let host, let port, let path):
            kind = .http(host: host, port: port, path: placeholder.put(into: path))
        case .command(let words): kind = .command(words.map { placeholder.put(into: $0) })
        case .inside(let words): kind = .inside(words.map { placeholder.put(into: $0) })
        case .file(let path): kind = .file(placeholder.put(into: path))
        }
    }
}

extension SnapshotSpecification {
    fileprivate mutating func put(_ placeholder: Placeholder) {
        switch source {
        case .command(let words): source = .command(words.map { placeholder.put(into: $0) })
        case .http(let host, let port, let path):
            source = .http(host: host, port: port, path: placeholder.put(into: path))
        case .file(let path): source = .file(placeholder.put(into: path))
        }
    }
}

extension Node {
    /// The TOML value, with the placeholder replaced in all its texts.
    func putting(_ placeholder: Placeholder) -> Node {
        var result = self
        switch value {
        case .string(let text): result.value = .string(placeholder.put(into: text))
        case .array(let elements): result.value = .array(elements.map { $0.putting(placeholder) })
        case .table(let members):
            result.value = .table(
                members.map { Member(key: $0.key, position: $0.position, node: $0.node.putting(placeholder)) }
            )
        case .integer, .double, .boolean, .date: break
        }
        return result
    }
}
