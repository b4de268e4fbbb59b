// SPDX-License-Identifier: Apache-2.0

import Linux

// Re-export types that public members use, so that an app needs no second import.
@_exported public import enum Varlink.JSON
@_exported public import struct Varlink.JSONObject

/// Why the app was launched.
public struct LaunchOptions: Sendable {
    /// All options, as in TORPOR_LAUNCH_OPTIONS: an object.
    public let json: JSON

    init(_ json: JSON) { self.json = json }

    /// The options if there is no supervisor: as if a user had launched the app into the foreground.
    static let unsupervised = LaunchOptions(["reason": "user", "foreground": true])

    /// Why the app was launched: `user`, `boot`, `restart`, `dependency`, `event` or `policy`.
    public var reason: String { json["reason"]?.stringValue ?? "user" }
    /// Whether the app is launched into the foreground. If not, the app gets didEnterBackground next.
    public var isForeground: Bool { json["foreground"]?.boolValue ?? true }
    /// The name of the event that the app was launched for: the name of a timer, a socket or a topic.
    public var event: String? { json["event"]?["name"]?.stringValue }
    /// The source of the event that the app was launched for: `timer`, `socket`, `message` and so on.
    public var eventSource: String? { json["event"]?["source"]?.stringValue }
    /// The data of the event that the app was launched for.
    public var payload: JSON? { json["payload"].flatMap { $0.isNull ? nil : $0 } }
    /// The URL that the app was launched for, and which it is asked to open next.
    public var url: String? { json["url"]?.stringValue }
    /// How the previous run ended, such as `evicted`.
    public var previousTermination: String? { json["previous_termination"]?.stringValue }
    /// The state that can be restored, if there is one.
    public var restoredState: SavedState? {
        json["restored_state"]?.stringValue.map { SavedState(path: $0) }
    }
    /// Whether no run of the app has launched successfully before, according to its data folders (`data_folders`).
    public var isFirstLaunch: Bool { json["first_launch"]?.boolValue ?? false }
    /// If this is the first launch of a new version, the app's previous version; otherwise nil. Empty if the
    /// configuration named no version before.
    public var updatedFrom: String? { json["updated_from"]?.stringValue }
    /// The scene that this app is, such as `alice` of `code@alice`; nil for an app that is not a scene.
    public var scene: String? { json["scene"]?.stringValue }
    /// The object that this scene was opened with; nil if there was none.
    public var session: JSON? { json["session"].flatMap { $0.isNull ? JSON?.none : $0 } }
}

/// What the app saved in an earlier run.
public struct SavedState: Hashable, Sendable {
    /// The path of a file that the app can read.
    public let path: String

    /// Reads the file, at most `limit` bytes; throws errors of the file system.
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
    /// Opening the URL that the app was launched for.
    public static let url = Declined(name: "url")
    /// Restoring the state, of the app or of one of its scenes; the state is kept for the next time.
    public static let restoration = Declined(name: "restoration")
    /// Keeping a snapshot of the app or of one of its scenes: none is taken, and the existing one is removed.
    public static let snapshot = Declined(name: "snapshot")
}

/// What a check for new content found.
public struct FetchResult: Hashable, Sendable {
    let name: String
    /// New content: the delay before the next check becomes shorter.
    public static let newData = FetchResult(name: "new-data")
    /// No new content: the delay before the next check becomes longer.
    public static let noData = FetchResult(name: "no-data")
    /// The check failed. Each failure makes the delay before the next check longer.
    public static let failed = FetchResult(name: "failed")
}
