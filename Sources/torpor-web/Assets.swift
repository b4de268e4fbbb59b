// SPDX-License-Identifier: Apache-2.0

import CWebAssets
import HTTPServing
import Linux
import Web

/// The files of the dashboard's page: built in, or from a folder for development.
struct Assets: Sendable {
    private struct File: Sendable {
        let type: String
        let bytes: [UInt8]
        let tag: String
    }

    private let files: [String: File]
    private let folder: String?

    init(folder: String?) {
        self.folder = folder
        var files: [String: File] = [:]
        for asset in UnsafeBufferPointer(start: torpor_web_assets(), count: torpor_web_asset_count()) {
            let bytes = Array(UnsafeBufferPointer(start: asset.bytes, count: asset.size))
            files[String(cString: asset.name)] = File(
                type: String(cString: asset.type),
                bytes: bytes,
                tag: "\"\(SHA256.hexadecimal(Array(SHA256.hash(bytes).prefix(12))))\""
            )
        }
        self.files = files
    }

    /// Returns the response with a file; nil if there is no file of that name.
    func answer(_ name: String, knownTag: String?) -> HTTPResponse? {
        guard let file = files[name] else { return nil }
        if let folder {
            // The name is a key of `files`, so it cannot lead out of the folder.
            guard let bytes = try? Linux.File.read(folder + "/" + name, limit: 4 << 20) else { return nil }
            let headers = [("Content-Type", file.type), ("Cache-Control", "no-store")]
            return HTTPResponse(status: 200, headers: headers, body: .bytes(bytes))
        }
        let headers = [("Content-Type", file.type), ("Cache-Control", "no-cache"), ("ETag", file.tag)]
        if knownTag == file.tag { return HTTPResponse(status: 304, headers: headers, body: .bytes([])) }
        return HTTPResponse(status: 200, headers: headers, body: .bytes(file.bytes))
    }
}
