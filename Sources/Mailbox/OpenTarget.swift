// SPDX-License-Identifier: Apache-2.0

/// What an app is to open.
public enum OpenTarget: Sendable, Hashable {
    case url(String)
    /// The absolute path, and the media type if known.
    case file(String, type: String?)

    /// The URL to send to the app.
    public var url: String {
        switch self {
        case .url(let url): url
        case .file(let path, _): OpenedURL.ofFile(path)
        }
    }

    /// What is wrong with it, as the rest of a sentence; nil if nothing.
    public var problem: String? {
        switch self {
        case .url(let url): OpenedURL.problem(url)
        case .file(let path, _):
            path.utf8.first == UInt8(ascii: "/") ? OpenedURL.problem(url, isFile: true) : "must be an absolute path"
        }
    }
}
