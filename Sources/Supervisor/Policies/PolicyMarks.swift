// SPDX-License-Identifier: Apache-2.0

import Engine
import Linux
import PolicyHost
import WireText

/// A file in the runtime directory with the name of the policy that is running in torpord's own process. If torpord
/// dies while a policy is running, that policy counts as the cause. The next torpord counts these deaths, and does not
/// load a policy that has caused several.
///
/// Layout: 64 bytes with the name of the policy that is running, ended by NUL. Then a record of 72 bytes for each of
/// the last eight deaths, newest first: the policy's name, and the time in microseconds (CLOCK_MONOTONIC).
final class PolicyMarks {
    /// A policy is not loaded if it has caused this many deaths of torpord within ``window``.
    private static let limit = 3
    private static let window = Duration.seconds(600)
    private static let nameBytes = 64
    private static let deathBytes = 72
    private static let deathCount = 8
    private static let size = nameBytes + deathCount * deathBytes

    private let mapping: Mapping

    /// Opens or creates the file. Nil if this fails: then no deaths are counted.
    init?(path: String) {
        do throws(Errno) {
            let file = try File.open(path, [.readWrite, .create], mode: 0o600)
            try File.truncate(file.raw, to: UInt64(Self.size))
            mapping = try Mapping(descriptor: file.raw, size: Self.size, writable: true)
        } catch {
            return nil
        }
        let name = self.name(at: 0)
        guard !name.isEmpty else { return }
        let bytes = mapping.bytes
        for place in (1..<Self.deathCount).reversed() {
            let from = Self.nameBytes + (place - 1) * Self.deathBytes
            let death = Array(bytes[from..<from + Self.deathBytes])
            bytes[(from + Self.deathBytes)..<(from + 2 * Self.deathBytes)].copyBytes(from: death)
        }
        write(name, at: Self.nameBytes)
        bytes.storeBytes(of: Clock.monotonic().microseconds, toByteOffset: 2 * Self.nameBytes, as: Int64.self)
        mark("")
    }

    /// Records that the policy with this name is running. An empty name records that no policy is running any longer.
    func mark(_ name: String) { write(name, at: 0) }

    /// The policies that must not be loaded, each with the reason.
    func quarantined(among policies: [PolicySettings]) -> [String: String] {
        var result: [String: String] = [:]
        let now = Clock.monotonic().microseconds
        for policy in policies where !policy.isIsolated {
            let deaths = (0..<Self.deathCount).count { place in
                let start = Self.nameBytes + place * Self.deathBytes
                let at = mapping.bytes.load(fromByteOffset: start + Self.nameBytes, as: Int64.self)
                return name(at: start) == policy.name && now - at < Self.window.microseconds
            }
            guard deaths >= Self.limit else { continue }
            result[policy.name] =
                "torpord has died \(deaths) times while it was answering: set isolation = \"process\" for it, or fix it"
        }
        return result
    }

    /// Removes the recorded deaths of torpord that the policy with this name has caused.
    func forget(_ name: String) {
        for place in 0..<Self.deathCount {
            let start = Self.nameBytes + place * Self.deathBytes
            if self.name(at: start) == name { write("", at: start) }
        }
    }

    private func name(at offset: Int) -> String {
        String(wire: mapping.bytes[offset..<offset + Self.nameBytes].prefix { $0 != 0 })
    }

    private func write(_ name: String, at offset: Int) {
        var name = name
        name.withUTF8 { text in
            let count = min(text.count, Self.nameBytes - 1)
            // Write the first byte last: it says whether there is a name, so the name is never read half-written.
            for index in stride(from: count, through: 0, by: -1) {
                mapping.bytes[offset + index] = index < count ? text[index] : 0
            }
        }
    }
}
