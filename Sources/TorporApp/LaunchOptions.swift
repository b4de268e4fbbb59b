// SPDX-License-Identifier: Apache-2.0

import Linux

// What LaunchOptions and OtherMessage have: so that its members need no second import.
@_exported public import enum Varlink.JSON
@_exported public import struct Varlink.JSONObject

/// Why the app was launched.
public struct LaunchOptions: Sendable {
    /// All of it, as in TORPOR_LAUNCH_OPTIONS: an object.
    public let json: JSON

    init(_ json: JSON) { self.json = json }

    /// Without a supervisor: by a person, into the foreground.
    static let unsupervised = LaunchOptions(["reason": "user", "foreground": true])

    /// `user`, `boot`, `restart`, `dependency`, `event` or `policy`.
    public var reason: String { json["reason"]?.stringValue ?? "user" }
    /// Whether it is launched into the foreground; false: it gets didEnterBackground next.
    public var isForeground: Bool { json["foreground"]?.boolValue ?? true }
    /// The name of the event that it was launched for: of a timer, a socket, a topic.
    public var event: String? { json["event"]?["name"]?.stringValue }
    /// Where that event comes from: `timer`, `socket`, `message` and so on.
    public var eventSource: String? { json["event"]?["source"]?.stringValue }
    /// What belongs to the event.
    public var payload: JSON? { json["payload"].flatMap { $0.isNull ? nil : $0 } }
    /// The URL that it was launched for, and is asked to open next.
    public var url: String? { json["url"]?.stringValue }
    /// How the run before this one ended, such as `evicted`.
    public var previousTermination: String? { json["previous_termination"]?.stringValue }
    /// The file with the state that can be restored, if there is one.
    public var restoredState: SavedState? {
        json["restored_state"]?.stringValue.map { SavedState(path: $0) }
    }
    /// Whether no run of the app has come up before, as far as its data folders go (`data_folders`).
    public var isFirstLaunch: Bool { json["first_launch"]?.boolValue ?? false }
    /// The version whose first launch was before this one's; nil where this is no first launch of a version. It is empty
    /// where the configuration named none then.
    public var updatedFrom: String? { json["updated_from"]?.stringValue }
    /// The scene that this app is, such as `alice` of `code@alice`; nil for an app that is no scene.
    public var scene: String? { json["scene"]?.stringValue }
    /// The object that this scene was opened with; nil if it was opened without one.
    public var session: JSON? { json["session"].flatMap { $0.isNull ? JSON?.none : $0 } }
}

/// What the app saved in an earlier run.
public struct SavedState: Hashable, Sendable {
    /// A file that the app can read.
    public let path: String

    /// Its content. An error is one of the file system; `limit` in bytes.
    public func read(limit: Int = 1 << 30) throws(AppError) -> [UInt8] {
        do throws(Errno) {
            return try File.read(path, limit: limit)
        } catch {
            throw AppError(code: .failed, "the saved state \(path) cannot be read: \(error)")
        }
    }
}

/// What an app may decline.
public struct Declined: Hashable, Sendable {
    let name: String
    /// The URL that it would be asked to open.
    public static let url = Declined(name: "url")
    /// The state that it, or one of its scenes, would be asked to restore; it is kept for the next time.
    public static let restoration = Declined(name: "restoration")
    /// That a snapshot of it, or of one of its scenes, is kept: none is taken, and the one that there is goes.
    public static let snapshot = Declined(name: "snapshot")
}

/// What an app found that looked for new content.
public struct FetchResult: Hashable, Sendable {
    let name: String
    /// Something new: it looks sooner next time.
    public static let newData = FetchResult(name: "new-data")
    /// Nothing new: it looks later next time.
    public static let noData = FetchResult(name: "no-data")
    /// It could not look: the next time comes later with each of these.
    public static let failed = FetchResult(name: "failed")
}
