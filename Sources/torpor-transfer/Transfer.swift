// SPDX-License-Identifier: Apache-2.0

import Linux
import TransferProtocol
import TransferRules

/// One attempt of a transfer.
///
/// A download goes through these stages: preparing (the part, its partial file) → asking (a server) → waiting (for
/// `go` from torpord) → opening (the part at the body's offset) → moving (bytes) → finishing (digest, fsync, rename)
/// → ended. An upload: preparing (its file) → waiting → moving → finishing → ended. Each stage may end early.
/// `preparing`, `opening` and `finishing` are jobs on other threads: commands for the transfer wait until such a job
/// is done.
final class Transfer {
    enum Stage: Hashable {
        case preparing, asking, waiting, opening, moving, finishing, ended
    }

    /// What happens to the partial file of a transfer that is forgotten.
    enum Removal: Hashable {
        case keepsPart, removesPart
    }

    let order: TransferOrder
    var stage = Stage.preparing
    /// How the transfer ended; nil until then.
    var end: TransferEnd?
    /// Set if torpord stops the transfer while a job is running for it.
    var removal: Removal?
    /// A new order with the same number, which arrived before this transfer was forgotten.
    var successor: TransferOrder?

    /// The server that the order names. Credentials and secret headers are sent only to this server.
    let origin: WebAddress
    /// The URL of the next request. `address` contains its parts.
    var url: String
    var address: WebAddress
    var method: String
    var sendsFile: Bool
    var redirects = 0
    var login: Login?
    var proxyLogin: Login?

    var part: PartFile?
    var source: SourceFile?
    /// The length of the partial file in bytes when this attempt began.
    var lengthBefore: Int64 = 0
    /// The offset in the file from which on the next request asks for bytes.
    var offset: Int64 = 0
    /// The offset in the file at which the body begins.
    var bodyOffset: Int64 = 0
    /// The size of the whole file in bytes; nil if unknown.
    var total: Int64?
    /// How many bytes of the file were passed to libcurl.
    var sent: Int64 = 0
    /// The report that torpord must store durably before it sends `go`.
    var pending: TransferReport?
    /// Whether the whole body has arrived, while `go` (for an empty body) or the digest is still missing.
    var isBodyOver = false
    var request: Request?
    /// How the transfer's request failed while a job was running; nil if it did not.
    var failure: TransferEnd?
    /// The status of the last response; 0 before the first response.
    var status = 0
    /// The number of bytes in the last progress report.
    var reported: Int64 = -1

    init(_ order: TransferOrder, _ origin: WebAddress) {
        self.order = order
        self.origin = origin
        url = order.url
        address = origin
        method = order.method
        sendsFile = order.direction == .upload
    }

    var id: Int64 { order.id }

    /// The proxy for the scheme of the next request. It is not used if `noProxy` names the server.
    var proxy: TransferProxy? { address.isSecure ? order.secureProxy : order.proxy }

    /// Whether a job is running for the transfer.
    var isBusy: Bool { [.preparing, .opening, .finishing].contains(stage) }

    /// How many bytes of the file have arrived or were sent.
    var bytes: Int64 { order.direction == .download ? part?.length ?? 0 : sent }

    /// Whether this attempt has moved any bytes.
    var hasGained: Bool { order.direction == .download ? bytes > lengthBefore : sent > 0 }

    /// The size of the whole file in bytes; nil if unknown.
    var size: Int64? { order.direction == .download ? total : source?.source.size }
}

/// How to authenticate to a server or proxy that demands it.
struct Login {
    /// libcurl's constant for basic or digest authentication; 0 if the credentials are a complete header field.
    var scheme: UInt
    /// Whether the proxy demands the login, not the server.
    var isForProxy: Bool
}
