// SPDX-License-Identifier: Apache-2.0

/// Why and how a scene inside the app connects.
public struct SceneConnectionOptions: Hashable, Sendable {
    /// All options: an object.
    public let json: JSON

    init(_ json: JSON) { self.json = json }

    /// The object that the scene was opened with; nil if there was none.
    public var session: JSON? { json["session"].flatMap { $0.isNull ? JSON?.none : $0 } }
    /// Whether the scene is about to enter the foreground. If not, it connects in the background.
    public var isForeground: Bool { json["foreground"]?.boolValue ?? true }
    /// Whether the scene connects for the first time.
    public var isNew: Bool { json["new"]?.boolValue ?? false }
    /// The directory of the scene's cgroup, for processes that work for the scene (`scenes.cgroups`); nil without a
    /// cgroup.
    public var cgroup: String? { json["cgroup"]?.stringValue }
}
