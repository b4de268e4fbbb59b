// SPDX-License-Identifier: Apache-2.0

import Linux
import WireText

/// Text that contains `{settings.NAME}`, for which the value of a setting is inserted.
public enum SettingTemplate {
    private static let opening = Array("{settings.".utf8)

    /// A part of a text: literal bytes, or the name of a setting.
    private enum Part {
        case bytes(ArraySlice<UInt8>)
        case name(String)
    }

    private static func parts(_ text: String) -> [Part] {
        let bytes = Array(text.utf8)
        guard bytes.contains(opening[0]) else { return [.bytes(bytes[...])] }
        var parts: [Part] = []
        var start = 0
        var index = 0
        while index < bytes.count {
            guard bytes[index...].starts(with: opening),
                let end = bytes[(index + opening.count)...].firstIndex(of: UInt8(ascii: "}"))
            else {
                index += 1
                continue
            }
            if start < index { parts.append(.bytes(bytes[start..<index])) }
            parts.append(.name(String(wire: bytes[(index + opening.count)..<end])))
            index = end + 1
            start = index
        }
        if start < bytes.count { parts.append(.bytes(bytes[start...])) }
        return parts
    }

    /// The names of the settings that a text contains.
    public static func names(in text: String) -> [String] {
        guard text.utf8.contains(opening[0]) else { return [] }
        return parts(text).compactMap { if case .name(let name) = $0 { name } else { nil } }
    }

    /// The text, with the value of each setting inserted.
    ///
    /// - Throws: ``MissingSetting`` for the first setting that has no value.
    public static func fill(_ text: String, _ value: (String) -> String?) throws(MissingSetting) -> String {
        guard text.utf8.contains(opening[0]) else { return text }
        var result: [UInt8] = []
        for part in parts(text) {
            switch part {
            case .bytes(let bytes): result += bytes
            case .name(let name):
                guard let value = value(name) else { throw MissingSetting(name: name) }
                result += value.utf8
            }
        }
        return String(wire: result)
    }
}

/// The error that a setting has no value.
public struct MissingSetting: Error, Sendable, Hashable {
    /// The name of the setting.
    public let name: String
}

/// A socket address that contains settings.
public struct AddressTemplate: Sendable, Hashable {
    /// The address as it is written in the configuration.
    public var text: String
    /// The folder against which relative paths are resolved.
    var folder: String
}

extension SocketSpecification {
    /// The socket with the values of settings inserted into its address; nil if the resulting address is not valid.
    public func filled(_ value: (String) -> String?) -> SocketSpecification? {
        guard let template else { return self }
        guard let text = try? SettingTemplate.fill(template.text, value),
            let address = AddressReader.address(text, folder: template.folder),
            SocketReader.problem(address, plan.kind) == nil
        else { return nil }
        var socket = self
        socket.plan.address = address
        return socket
    }
}

extension Probe {
    /// The probe with the values of settings inserted into its address; nil if the resulting address is not valid.
    public func filled(_ value: (String) -> String?) -> Probe? {
        guard let template else { return self }
        guard let text = try? SettingTemplate.fill(template, value), let kind = ReadyReader.kind(text, like: kind)
        else {
            return nil
        }
        var probe = self
        probe.kind = kind
        return probe
    }
}

extension AppSpecification {
    /// The probe of `ready`, if its address contains settings; otherwise `nil`.
    public var templateProbe: Probe? {
        if case .probe(let probe) = self.ready, probe.template != nil { probe } else { nil }
    }

    /// Whether any of the app's socket addresses contains settings.
    public var hasSocketTemplates: Bool { sockets.contains { $0.template != nil } }

    /// The names of the settings whose values are inserted when the app is launched or its sockets are bound. Those of
    /// `on_failure` are not among them: see ``settingsAtFailure``.
    public var settingsAtLaunch: Set<String> {
        guard !self.declaredSettings.isEmpty else { return [] }
        let addresses = sockets.compactMap { $0.template?.text } + [templateProbe?.template].compactMap(\.self)
        let hooks = (self.beforeStart + self.afterStop).flatMap(\.command)
        let language = [presentation.language].compactMap(\.self)
        return Set((exec + hooks + language + self.environment.values + addresses).flatMap(SettingTemplate.names))
    }

    /// The names of the settings whose values are inserted when a command of `on_failure` runs.
    public var settingsAtFailure: Set<String> {
        guard !self.declaredSettings.isEmpty else { return [] }
        return Set(self.onFailure.flatMap(\.command).flatMap(SettingTemplate.names))
    }

    /// The declaration of the setting with this name; `nil` if there is none.
    public func setting(_ name: String) -> SettingDeclaration? {
        self.declaredSettings.first { $0.name.utf8.elementsEqual(name.utf8) }
    }
}
