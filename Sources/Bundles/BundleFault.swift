// SPDX-License-Identifier: Apache-2.0

/// Why a bundle is refused, as a sentence about it.
public struct BundleFault: Error, Hashable, Sendable, CustomStringConvertible {
    /// The sentence, without a full stop.
    public let description: String

    /// Whether it says nothing about the bundle: another try may find that all is well.
    public let isPassing: Bool

    /// Creates one of a sentence.
    public init(_ description: String, isPassing: Bool = false) {
        (self.description, self.isPassing) = (description, isPassing)
    }
}

/// How much a bundle may hold: docs/bundles.md.
public enum BundleLimit {
    /// Files and symlinks.
    public static let entries = 100_000
    /// Bytes of all files together: 10 GiB.
    public static let bytes: UInt64 = 10 << 30
    /// Bytes of `manifest.toml`: 100,000 files with paths of 200 bytes.
    public static let manifest = 32 << 20
    /// Bytes of what the author wrote in it, before `[files]`: torpord reads that much.
    public static let head = 256 << 10
    /// Bytes of `manifest.toml.minisig`: four lines.
    public static let signature = 4096
    /// Bytes of a path inside the bundle.
    public static let path = 1024
    /// Bytes of a file name: NAME_MAX.
    public static let name = 255
    /// Names on a path: a program that checks a bundle has a descriptor open for each.
    public static let depth = 64
    /// Bytes of the name or of the version of a bundle.
    public static let word = 64
}
