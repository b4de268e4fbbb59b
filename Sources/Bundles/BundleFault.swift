// SPDX-License-Identifier: Apache-2.0

/// Why a bundle is refused, as a sentence.
public struct BundleFault: Error, Hashable, Sendable, CustomStringConvertible {
    /// The sentence, without a full stop.
    public let description: String

    /// Whether the reason lies outside the bundle, such as a lack of memory, so that a retry may succeed.
    public let isPassing: Bool

    /// Creates a fault with a sentence.
    public init(_ description: String, isPassing: Bool = false) {
        (self.description, self.isPassing) = (description, isPassing)
    }
}

/// The largest sizes and numbers that a bundle may have (docs/bundles.md).
public enum BundleLimit {
    /// The most files and symlinks.
    public static let entries = 100_000
    /// The most bytes of all files together: 10 GiB.
    public static let bytes: UInt64 = 10 << 30
    /// The largest `manifest.toml` in bytes: enough for 100,000 files with paths of 200 bytes.
    public static let manifest = 32 << 20
    /// The largest part of the manifest before `[files]`, in bytes. torpord reads only that part.
    public static let head = 256 << 10
    /// The largest `manifest.toml.minisig` in bytes; it has four lines.
    public static let signature = 4096
    /// The longest path inside the bundle, in bytes.
    public static let path = 1024
    /// The longest file name in bytes (NAME_MAX).
    public static let name = 255
    /// The most names on a path. While torpor-verify checks a bundle, each level of folders costs it a file
    /// descriptor.
    public static let depth = 64
    /// The longest name and the longest version of a bundle, in bytes.
    public static let word = 64
}
