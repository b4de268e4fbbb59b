// SPDX-License-Identifier: Apache-2.0

import Linux
import TransferProtocol
import TransferRules

/// One try of one transfer.
///
/// A download: preparing (the part) → asking (a server) → waiting (for `go`) → opening (the part, as long as the answer wants
/// it) → moving (bytes) → finishing (digest, fsync, rename) → ended. An upload: preparing (its file) → waiting → moving →
/// finishing → ended. Any of them may end early. `preparing`, `opening` and `finishing` are jobs beside the loop: what is told
/// to a transfer meanwhile waits until its job is done.
final class Transfer {
    enum Stage: Hashable {
        case preparing, asking, waiting, opening, moving, finishing, ended
    }

    /// What is to happen with one that is forgotten.
    enum Removal: Hashable {
        case keepsPart, removesPart
    }

    let order: TransferOrder
    var stage = Stage.preparing
    /// Why it ended; nil until then.
    var end: TransferEnd?
    /// Set when it was told to stop while a job works for it.
    var removal: Removal?
    /// What was told to begin under its number meanwhile.
    var successor: TransferOrder?

    /// The server that the order names: what is secret is for that alone.
    let origin: WebAddress
    /// The URL of the next request, and what it is.
    var url: String
    var address: WebAddress
    var method: String
    var sendsFile: Bool
    var redirects = 0
    var login: Login?
    var proxyLogin: Login?

    var part: PartFile?
    var source: SourceFile?
    /// Bytes in the part when this try began.
    var lengthBefore: Int64 = 0
    /// From which byte on the next request wants it.
    var offset: Int64 = 0
    /// Where the body of the answer begins in the file.
    var bodyOffset: Int64 = 0
    /// Bytes of the whole, where they are known.
    var total: Int64?
    /// Bytes of the file that were given to the connection.
    var sent: Int64 = 0
    /// What torpord has to make durable before `go`.
    var pending: TransferReport?
    /// Whether the whole body came and something is waited for: `go`, of one that has no bytes, or the digest.
    var isBodyOver = false
    var request: Request?
    /// What ended its request while a job worked for it.
    var failure: TransferEnd?
    /// Of the last answer; 0 before.
    var status = 0
    /// What was reported last.
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

    /// By which the server of the next request is reached, unless it is one that is reached without.
    var proxy: TransferProxy? { address.isSecure ? order.secureProxy : order.proxy }

    /// Whether a job works for it.
    var isBusy: Bool { [.preparing, .opening, .finishing].contains(stage) }

    /// Bytes of the file that are there, or were sent.
    var bytes: Int64 { order.direction == .download ? part?.length ?? 0 : sent }

    /// Whether bytes came that were not there before.
    var hasGained: Bool { order.direction == .download ? bytes > lengthBefore : sent > 0 }

    /// Bytes of the whole, where they are known.
    var size: Int64? { order.direction == .download ? total : source?.source.size }
}

/// How a server is told who asks, once it wanted to know.
struct Login {
    /// Of libcurl: basic or digest; 0 where a whole field is given.
    var scheme: UInt
    /// Whether a proxy wanted it.
    var isForProxy: Bool
}
