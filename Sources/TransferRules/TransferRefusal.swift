// SPDX-License-Identifier: Apache-2.0

public import TransferProtocol
import WireText

/// Why a requested transfer is refused before it starts.
public struct TransferRefusal: Error, Hashable, Sendable, CustomStringConvertible {
    /// A word for programs: `url`, `scheme`, `method`, `headers`, `file`, `sha256`.
    public let reason: String
    /// A sentence for people, without values of headers.
    public let description: String

    init(_ reason: String, _ description: String) {
        self.reason = reason
        self.description = description
    }

    /// The longest URL, in bytes.
    public static let longestURL = 8 << 10
    /// The most header fields of a request.
    public static let mostHeaders = 32
    /// The most bytes that names and values of header fields may have together.
    public static let mostHeaderBytes = 16 << 10
    /// The longest name of a file in bytes: PATH_MAX without its NUL.
    public static let longestFile = 4095

    /// Header fields that the transfer itself sets.
    public static let reserved: Set = [
        "accept-encoding", "content-length", "host", "if-range", "range", "transfer-encoding",
    ]

    /// Checks a URL and returns its parts.
    public static func address(_ url: String) throws(TransferRefusal) -> WebAddress {
        guard url.utf8.count <= longestURL else {
            throw TransferRefusal("url", "the URL has more than \(longestURL) bytes")
        }
        guard url.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7f }) else {
            throw TransferRefusal("url", "the URL has a space or a control character in it: write it as %XX")
        }
        if let address = WebAddress(url) { return address }
        let scheme = Bytes.lowercased(Substring(url.utf8.prefix { $0 != UInt8(ascii: ":") }))
        if scheme != "http" && scheme != "https" {
            throw TransferRefusal("scheme", "the URL must begin with http:// or https://")
        }
        let authority = url.utf8.dropFirst(scheme.utf8.count + 3).prefix { !"/?#".utf8.contains($0) }
        if authority.contains(UInt8(ascii: "@")) {
            throw TransferRefusal("url", "the URL must not name a user: give credentials in the configuration")
        }
        throw TransferRefusal("url", "the URL has no valid host or port")
    }

    /// Checks header fields.
    public static func check(headers: [TransferHeader]) throws(TransferRefusal) {
        guard headers.count <= mostHeaders else {
            throw TransferRefusal("headers", "there are more than \(mostHeaders) header fields")
        }
        let size = headers.reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count }
        guard size <= mostHeaderBytes else {
            throw TransferRefusal("headers", "the header fields have more than \(mostHeaderBytes) bytes together")
        }
        for header in headers {
            guard !header.name.isEmpty, header.name.utf8.allSatisfy(Bytes.isOfToken) else {
                throw TransferRefusal("headers", "a header field's name is not valid")
            }
            guard !reserved.contains(Bytes.lowercased(header.name)) else {
                throw TransferRefusal("headers", "the header field \(header.name) is set by the transfer itself")
            }
            guard header.value.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7f || $0 == 0x09 }) else {
                throw TransferRefusal("headers", "the header field \(header.name) has a control character in its value")
            }
        }
    }

    /// Checks a method.
    public static func check(method: String, of direction: TransferDirection) throws(TransferRefusal) {
        switch direction {
        case .download where method == "GET", .upload where method == "PUT" || method == "POST": return
        case .download: throw TransferRefusal("method", "the method of a download must be GET")
        case .upload: throw TransferRefusal("method", "the method of an upload must be PUT or POST")
        }
    }

    /// Checks the name of a file below one of the app's folders.
    public static func check(file: String) throws(TransferRefusal) {
        let names = file.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        let isValid = names.allSatisfy { name in
            (1...255).contains(name.count) && !name.elementsEqual(".".utf8) && !name.elementsEqual("..".utf8)
        }
        guard isValid, file.utf8.count <= longestFile, !file.utf8.contains(0) else {
            throw TransferRefusal("file", "the file must be a name below the folder, without . and .. and empty parts")
        }
    }

    /// Checks a SHA-256.
    public static func check(sha256: String) throws(TransferRefusal) {
        let isDigest =
            sha256.utf8.count == 64
            && sha256.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
        guard isDigest else {
            throw TransferRefusal("sha256", "the SHA-256 must be 64 lower-case hexadecimal digits")
        }
    }

    /// Checks that the app's sandbox allows the port of a URL.
    public static func check(port: UInt16, _ ports: [UInt16]) throws(TransferRefusal) {
        guard !ports.isEmpty, !ports.contains(port) else { return }
        let list = ports.map { "\($0)" }.joined(separator: ", ")
        throw TransferRefusal(
            "not-allowed",
            "the app's sandbox does not permit the port \(port): its permission network is for \(list)"
        )
    }

    /// Checks a whole order, and returns the parts of its URL.
    @discardableResult
    public static func check(_ order: TransferOrder) throws(TransferRefusal) -> WebAddress {
        let address = try address(order.url)
        try check(port: address.port, order.ports)
        try check(method: order.method, of: order.direction)
        try check(headers: order.headers)
        try check(file: order.file)
        if let digest = order.sha256 { try check(sha256: digest) }
        guard order.unless?.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7f }) ?? true else {
            throw TransferRefusal("headers", "the version of the file that the app has contains a control character")
        }
        let secrets = [order.credentials?.user, order.credentials?.password, order.credentials?.header]
        guard secrets.allSatisfy({ $0?.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7f } ?? true }) else {
            throw TransferRefusal("headers", "the credentials have a control character in them")
        }
        return address
    }
}
