// SPDX-License-Identifier: Apache-2.0

/// Something that an app is found for.
public enum OpenTarget: Sendable, Hashable {
    case url(String)
    /// Its absolute path, and its media type where that is known.
    case file(String, type: String?)

    /// What an app is told.
    public var url: String {
        switch self {
        case .url(let url): url
        case .file(let path, _): OpenedURL.ofFile(path)
        }
    }

    /// What is wrong with it, if anything: a sentence that goes on behind what it is called.
    public var problem: String? {
        switch self {
        case .url(let url): OpenedURL.problem(url)
        case .file(let path, _):
            path.utf8.first == UInt8(ascii: "/") ? OpenedURL.problem(url, isFile: true) : "must be an absolute path"
        }
    }
}
