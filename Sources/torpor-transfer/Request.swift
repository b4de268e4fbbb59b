// SPDX-License-Identifier: Apache-2.0

import CCurl
import Linux
import TorporAPI
import TransferProtocol
import TransferRules
import WireText

/// One HTTP request of a transfer: a libcurl handle and its callbacks. It must exist as long as libcurl uses the
/// handle.
final class Request {
    /// The most bytes of an unwanted body that are read and discarded, so that the connection can be reused.
    private static let mostThrownAway = 16 << 10
    private static let version = "torpor-transfer/\(TorporVersion.text)"

    let handle: UnsafeMutableRawPointer
    unowned let transfer: Transfer
    private unowned let service: TransferService
    private var headers: UnsafeMutablePointer<curl_slist>?
    private let errorText = UnsafeMutablePointer<CChar>.allocate(capacity: Int(CURL_ERROR_SIZE))
    private(set) var head = ResponseHead()
    private(set) var verdict: Verdict?
    /// How the transfer ends, if a callback has aborted the request; nil otherwise.
    private(set) var failure: TransferEnd?
    private var thrownAway = 0

    /// Nil if the process is out of memory.
    init?(_ transfer: Transfer, _ service: TransferService) {
        guard let handle = curl_easy_init() else { return nil }
        self.handle = handle
        self.transfer = transfer
        self.service = service
        errorText.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
        setUp()
    }

    deinit {
        curl_easy_cleanup(handle)
        curl_slist_free_all(headers)
        errorText.deallocate()
    }

    private func set(_ option: CURLoption, _ value: String) { ccurl_set_string(handle, option, value) }
    private func set(_ option: CURLoption, _ value: Int) { ccurl_set_long(handle, option, value) }

    private func setUp() {
        let order = transfer.order
        ccurl_set_buffer(handle, CURLOPT_ERRORBUFFER, errorText)
        set(CURLOPT_URL, transfer.url)
        set(CURLOPT_PROTOCOLS_STR, "http,https")
        set(CURLOPT_FOLLOWLOCATION, 0)
        set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1)
        set(CURLOPT_NOSIGNAL, 1)
        set(CURLOPT_SSL_VERIFYPEER, 1)
        set(CURLOPT_SSL_VERIFYHOST, 2)
        // CURLOPT_CAINFO replaces the system's CA bundle, so also set the folder of the system's CA certificates.
        if let authority = order.authority, transfer.address.isSameServer(as: transfer.origin) {
            set(CURLOPT_CAINFO, authority)
            if File.exists("/etc/ssl/certs") { set(CURLOPT_CAPATH, "/etc/ssl/certs") }
        }
        set(CURLOPT_CONNECTTIMEOUT, service.options.stall)
        set(CURLOPT_LOW_SPEED_LIMIT, 1)
        if let limit = order.timeLimit { set(CURLOPT_TIMEOUT, Int(clamping: max(1, limit))) }
        set(CURLOPT_LOW_SPEED_TIME, service.options.stall)
        set(CURLOPT_BUFFERSIZE, 256 << 10)
        if order.isDiscretionary { ccurl_set_lower_effort(handle) }
        ccurl_set_callbacks(
            handle,
            Unmanaged.passUnretained(self).toOpaque(),
            { line, size, count, context in Request.of(context).take(header: line!, size * count) },
            { bytes, size, count, context in Request.of(context).take(body: bytes!, size * count) },
            transfer.sendsFile
                ? { buffer, size, count, context in Request.of(context).fill(buffer!, size * count) } : nil,
            { context, offset, origin in Request.of(context).seek(to: Int64(offset), from: origin) }
        )
        if transfer.sendsFile, let source = transfer.source {
            set(CURLOPT_UPLOAD, 1)
            set(CURLOPT_CUSTOMREQUEST, transfer.method)
            ccurl_set_offset(handle, CURLOPT_INFILESIZE_LARGE, source.source.size)
        }
        setUpLogin()
        setUpProxy()
        setUpHeaders()
    }

    private func setUpLogin() {
        let order = transfer.order
        if let login = transfer.login, let user = order.credentials?.user, login.scheme != 0,
            transfer.address.isSameServer(as: transfer.origin)
        {
            set(CURLOPT_HTTPAUTH, Int(bitPattern: login.scheme))
            set(CURLOPT_USERNAME, user)
            set(CURLOPT_PASSWORD, order.credentials?.password ?? "")
        }
    }

    private func setUpProxy() {
        // Set both options, so that libcurl ignores the proxies in this process's environment.
        set(CURLOPT_PROXY, transfer.proxy?.url ?? "")
        set(CURLOPT_NOPROXY, transfer.order.noProxy ?? "")
        guard let login = transfer.proxyLogin, let credentials = transfer.proxy?.credentials,
            let user = credentials.user
        else { return }
        set(CURLOPT_PROXYAUTH, Int(bitPattern: login.scheme))
        set(CURLOPT_PROXYUSERNAME, user)
        set(CURLOPT_PROXYPASSWORD, credentials.password ?? "")
    }

    private func setUpHeaders() {
        let order = transfer.order
        var fields = TransferHeader.fields(order.headers, for: transfer.address, origin: transfer.origin)
        if let login = transfer.login, transfer.address.isSameServer(as: transfer.origin) {
            fields.removeAll { $0.name.utf8.elementsEqual("authorization".utf8, by: { $0 | 0x20 == $1 }) }
            if login.scheme == 0, let value = order.credentials?.header {
                fields.append(TransferHeader(name: "Authorization", value: value))
            }
        }
        if !transfer.sendsFile {
            fields.removeAll { $0.name.utf8.elementsEqual("content-type".utf8, by: { $0 | 0x20 == $1 }) }
        }
        fields.append(TransferHeader(name: "Accept-Encoding", value: "identity"))
        if order.direction == .download, transfer.offset > 0, let condition = order.validator?.condition {
            fields.append(TransferHeader(name: "If-Range", value: condition))
            set(CURLOPT_RANGE, "\(transfer.offset)-")
        }
        if let version = order.unless, order.direction == .download {
            let name = ResponseHead.isTag(version) ? "If-None-Match" : "If-Modified-Since"
            fields.append(TransferHeader(name: name, value: version))
        }
        set(CURLOPT_USERAGENT, Self.version)
        for field in fields {
            // In libcurl's syntax, "Name:" removes a header, and "Name;" sends it with an empty value.
            let line = field.value.isEmpty ? "\(field.name);" : "\(field.name): \(field.value)"
            headers = curl_slist_append(headers, line) ?? headers
        }
        ccurl_set_list(handle, CURLOPT_HTTPHEADER, headers)
    }

    /// The error message of the request, or libcurl's text for the code if there is none.
    func text(_ code: Int) -> String {
        let own = String(terminatedWire: errorText)
        return own.isEmpty ? String(terminatedWire: curl_easy_strerror(CURLcode(UInt32(code)))) : own
    }

    /// Whether the request was sent to the server.
    var hasConnected: Bool { ccurl_get_offset(handle, CURLINFO_PRETRANSFER_TIME_T) > 0 }

    /// The errno of a failed attempt to connect; 0 if there was none.
    var connectionError: Int { ccurl_get_long(handle, CURLINFO_OS_ERRNO) }

    /// Whether the proxy demanded authentication (407) before opening a tunnel.
    var wasRefusedByProxy: Bool { ccurl_get_long(handle, CURLINFO_HTTP_CONNECTCODE) == 407 }

    /// Judges the response. Called once, at the first byte of the body or, if there is none, at its end.
    func judge() -> Verdict {
        if let verdict { return verdict }
        let made = transfer.judge(head)
        verdict = made
        return made
    }

    // MARK: Callbacks, in libcurl's calls only

    private static func of(_ context: UnsafeMutableRawPointer?) -> Request {
        Unmanaged<Request>.fromOpaque(context!).takeUnretainedValue()
    }

    private func take(header line: UnsafeMutablePointer<CChar>, _ count: Int) -> Int {
        // Ignore header lines after the response was judged: they are trailers of a chunked body.
        guard verdict == nil else { return count }
        head.take(UnsafeRawBufferPointer(start: line, count: count))
        guard head.size <= ResponseHead.most else {
            failure =
                DiskError(.retry, "connection", "the head of the response has more than \(ResponseHead.most) bytes").end
            return 0
        }
        return count
    }

    private func take(body bytes: UnsafeMutablePointer<CChar>, _ count: Int) -> Int {
        guard count > 0, failure == nil else { return 0 }
        if verdict == nil {
            if case .body(let offset, let validator) = judge() { service.answered(transfer, offset, validator) }
        }
        guard case .body = verdict else {
            thrownAway += count
            return thrownAway <= Self.mostThrownAway ? count : 0
        }
        guard transfer.stage == .moving, service.mayMove(count, of: transfer) else { return Int(CURL_WRITEFUNC_PAUSE) }
        return write(UnsafeRawBufferPointer(start: bytes, count: count)) ? count : 0
    }

    private func write(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard let part = transfer.part else { return false }
        let length = part.length + Int64(bytes.count)
        if let limit = transfer.order.sizeLimit, length > limit {
            failure = Transfer.tooLarge(limit)
            return false
        }
        if let total = transfer.total, length > total {
            failure = DiskError(.retry, "length", "the server sends more than the \(total) bytes that it announced").end
            return false
        }
        do throws(Errno) {
            try part.write(bytes)
            service.digest(transfer)
            return true
        } catch {
            failure = DiskError(error, "the partial file", reason: "destination").end
            return false
        }
    }

    private func fill(_ buffer: UnsafeMutablePointer<CChar>, _ count: Int) -> Int {
        guard let source = transfer.source else { return Int(CURL_READFUNC_ABORT) }
        let wanted = Int(min(Int64(count), source.source.size - transfer.sent))
        if wanted <= 0 { return 0 }
        guard service.mayMove(wanted, of: transfer) else { return Int(CURL_READFUNC_PAUSE) }
        let read = try? source.read(
            at: transfer.sent,
            into: UnsafeMutableRawBufferPointer(start: buffer, count: wanted)
        )
        guard let read, read == wanted else {
            failure =
                read == nil
                ? DiskError(.retry, "disk", "\(transfer.order.file) cannot be read").end : Self.changed(transfer.order)
            return Int(CURL_READFUNC_ABORT)
        }
        transfer.sent += Int64(read)
        return read
    }

    static func changed(_ order: TransferOrder) -> TransferEnd {
        DiskError(.failed, "file-changed", "\(order.file) changed while it was sent").end
    }

    private func seek(to offset: Int64, from origin: Int32) -> Int32 {
        guard origin == 0, offset >= 0 else { return CURL_SEEKFUNC_FAIL }
        transfer.sent = offset
        return CURL_SEEKFUNC_OK
    }
}
