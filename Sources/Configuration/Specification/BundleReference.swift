// SPDX-License-Identifier: Apache-2.0

/// The bundle of an app (key `bundle`).
public struct BundleReference: Sendable, Hashable {
    /// The bundle's name.
    public var name: String
    /// The folder that contains the bundle's versions.
    public var folder: String
    /// The version from which the app is launched; nil if the bundle is not installed or cannot be used.
    public var version: String?
    /// Whether the manifest could not be read for a temporary reason, such as a lack of memory. A launch then tries to
    /// read the manifest again.
    public var isUnread = false
    /// The names of the environment variables whose values come from the manifest, because the machine's owner does
    /// not set them.
    public var variables: Set<String> = []
    /// The part of the manifest before `[files]` with which the app was configured.
    public var text: [UInt8] = []

    init(name: String, folder: String, version: String? = nil) {
        (self.name, self.folder, self.version) = (name, folder, version)
    }

    /// The folder of the version; nil without a version.
    public var path: String? { version.map { folder + "/" + $0 } }
}
