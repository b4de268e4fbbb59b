// SPDX-License-Identifier: Apache-2.0

/// `bundle`: where an app's program comes from.
public struct BundleReference: Sendable, Hashable {
    /// The bundle's name.
    public var name: String
    /// The folder of its versions.
    public var folder: String
    /// The version that the app is launched from; nil if the bundle was not installed, or is not usable.
    public var version: String?
    /// Whether the manifest could not be read for a reason that passes, such as a lack of memory: a launch tries again.
    public var isUnread = false
    /// The names of the variables that the manifest sets, and the machine's owner does not.
    public var variables: Set<String> = []
    /// What the manifest's author wrote, as the app was configured by it.
    public var text: [UInt8] = []

    init(name: String, folder: String, version: String? = nil) {
        (self.name, self.folder, self.version) = (name, folder, version)
    }

    /// The folder of that version.
    public var path: String? { version.map { folder + "/" + $0 } }
}
