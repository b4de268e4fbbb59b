// SPDX-License-Identifier: Apache-2.0

/// What a user or an app wants an app to open.
public enum OpenTarget: Sendable, Hashable {
    case url(String)
    /// The absolute path of a file, and its media type if known.
    case file(String, type: String?)

    /// The URL that the app gets; for a file, a `file:` URL.
    public var url: String {
        switch self {
        case .url(let url): url
        case .file(let path, _): OpenedURL.ofFile(path)
        }
    }

    /// Why the app cannot be asked to open the target, as the rest of a sentence; nil if it can be asked.
    public var problem: String? {
        switch self {
        case .url(let url): OpenedURL.problem(url)
        case .file(let path, _):
            path.utf8.first == UInt8(ascii: "/") ? OpenedURL.problem(url, isFile: true) : "must be an absolute path"
        }
    }
}
