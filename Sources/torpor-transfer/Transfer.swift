// SPDX-License-Identifier: Apache-2.0

import Linux
import TransferProtocol
import TransferRules

/// One attempt of a transfer.
///
/// A download: preparing (the part) → asking (a server) → waiting (for `go`) → opening (the part at the body's
/// offset) → moving (bytes) → finishing (digest, fsync, rename) → ended. An upload: preparing (its file) → waiting →
/// moving → finishing → ended. Each stage may end early. `preparing`, `opening` and `finishing` are jobs on other
/// threads: commands for the transfer wait until the job is done.
final class Transfer {
    enum Stage: Hashable {
        case preparing, asking, waiting, opening, moving, finishing, ended
    }

    /// What happens to the part of a transfer that is forgotten.
    enum Removal: Hashable {
        case keepsPart, removesPart
    }

    let order: TransferOrder
    var stage = Stage.preparing
    /// Nil until it has ended.
    var end: TransferEnd?
    /// Set if torpord stops the transfer while a job is running.
    var removal: Removal?
    /// An order with the same number that arrived before this transfer was forgotten.
    var successor: TransferOrder?

    /// The server in the order: only it gets the credentials and secret headers.
    let origin: WebAddress
    /// The URL of the next request, and its parts.
    var url: String
    var address: WebAddress
    var method: String
    var sendsFile: Bool
    var redirects = 0
    var login: Login?
    var proxyLogin: Login?

    var part: PartFile?
    var source: SourceFile?
    /// Bytes in the part when this attempt began.
    var lengthBefore: Int64 = 0
    /// The next request asks for the file from this byte on.
    var offset: Int64 = 0
    /// The offset in the file at which the body begins.
    var bodyOffset: Int64 = 0
    /// Bytes of the whole file, if known.
    var total: Int64?
    /// Bytes of the file that were passed to libcurl.
    var sent: Int64 = 0
    /// The report that torpord makes durable before it sends `go`.
    var pending: TransferReport?
    /// Whether the whole body has arrived, but `go` (for an empty body) or the digest is still missing.
    var isBodyOver = false
    var request: Request?
    /// The failure of its request during a job.
    var failure: TransferEnd?
    /// The status of the last response; 0 before.
    var status = 0
    /// The bytes in the last progress report.
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

    /// The proxy for the next request's scheme; `noProxy` may still exempt its server.
    var proxy: TransferProxy? { address.isSecure ? order.secureProxy : order.proxy }

    /// Whether a job is running for it.
    var isBusy: Bool { [.preparing, .opening, .finishing].contains(stage) }

    /// Bytes of the file that have arrived or were sent.
    var bytes: Int64 { order.direction == .download ? part?.length ?? 0 : sent }

    /// Whether this attempt has moved bytes.
    var hasGained: Bool { order.direction == .download ? bytes > lengthBefore : sent > 0 }

    /// Bytes of the whole file, if known.
    var size: Int64? { order.direction == .download ? total : source?.source.size }
}

/// How to authenticate to a server that has asked for it.
struct Login {
    /// libcurl's constant for basic or digest; 0 if the credentials are a whole header field.
    var scheme: UInt
    /// Whether a proxy asked for it.
    var isForProxy: Bool
}
