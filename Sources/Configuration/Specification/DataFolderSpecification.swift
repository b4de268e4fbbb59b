// SPDX-License-Identifier: Apache-2.0

/// The folders for an app's data: `data_folders`, `first_launch` and `version`.
public struct DataFolderSpecification: Sendable, Hashable {
    /// Whether the app has data folders.
    public var isWanted = false
    /// The absolute path of a folder whose content torpord copies into the app's folder `library`; `nil` if nothing is
    /// copied. torpord copies it before the app's first launch, and before the first launch of each new version.
    public var firstLaunch: String?
    /// The app's version; `nil` if the configuration has none.
    public var version: String?
    /// The app's protected folder, which cannot be read while data is locked.
    public var protection = ProtectionSpecification()

    /// Creates the specification of an app without data folders.
    public init() {}

    /// Reads the app's version. Characters that are not safe on one line are an error.
    static func version(_ context: Context, _ node: Node) -> String? {
        guard let text = Read.text(context, node) else { return nil }
        let others = Array(".-_+~:".utf8)
        guard text.utf8.count <= 64, text.utf8.allSatisfy({ $0.isNameByte || others.contains($0) }) else {
            context.error("a version has up to 64 letters, digits, ., -, _, +, ~ and :", at: node.position)
            return nil
        }
        return text
    }
}

/// The values of `min_free`: how much space of a filesystem should stay free.
public enum FreeSpaceRule: Sendable, Hashable {
    case none
    case bytes(UInt64)
    /// This fraction of the filesystem, 0 to 1.
    case part(Double)

    /// The space in bytes that should stay free. `total`: the size of the filesystem in bytes.
    public func bytes(of total: UInt64) -> UInt64 {
        switch self {
        case .none: 0
        case .bytes(let bytes): bytes
        case .part(let part): UInt64(Double(total) * part)
        }
    }

    static func read(_ context: Context, _ node: Node) -> FreeSpaceRule? {
        guard case .string(let text) = node.value, text.hasSuffix("%") else {
            guard let limit = Read.size(context, node) else { return nil }
            return limit.map { .bytes($0) } ?? FreeSpaceRule.none
        }
        guard let percent = Double(text.dropLast()), (0...50).contains(percent) else {
            context.error(
                "\(quoted(text)) is not a share of a filesystem: write \"0%\" to \"50%\", or a size",
                at: node.position
            )
            return nil
        }
        return .part(percent / 100)
    }

    var written: [String: String] {
        switch self {
        case .none: [:]
        case .bytes(let bytes): ["": Write.size(bytes)]
        case .part(let part): ["": MemorySpecification.percent(part)]
        }
    }
}
