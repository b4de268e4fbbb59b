// SPDX-License-Identifier: Apache-2.0

import CCurl
import Linux
import TransferProtocol
import TransferRules

/// The event loop of torpor-transfer: one thread that waits for servers, torpord and its own jobs.
final class TransferService {
    /// The descriptor of the socket to torpord.
    static let socket: Int32 = 3

    let options: Options
    let places: Places
    let channel = Channel(TransferService.socket)
    let jobs: Jobs
    private let multi: UnsafeMutableRawPointer
    var transfers: [Int64: Transfer] = [:]
    /// The requests that libcurl is working on, by handle.
    private var requests: [UnsafeMutableRawPointer: Request] = [:]
    private var pace: Pace?
    /// The numbers of transfers that the rate limit has paused.
    private var paced: Set<Int64> = []
    /// How many jobs for digests are running. Their number is limited, so that threads stay free for jobs that
    /// transfers wait for.
    var digesting = 0
    static let mostDigesting = 2
    private var nextTick = Clock.monotonic()

    init(_ options: Options) throws(Errno) {
        self.options = options
        places = Places(parts: options.parts, roots: options.roots)
        jobs = try Jobs()
        guard let multi = curl_multi_init() else { throw .noMemory }
        self.multi = multi
        ccurl_multi_set_long(multi, CURLMOPT_MAXCONNECTS, 16)
    }

    /// Runs until torpord closes its end of the socket.
    func run() throws(Errno) {
        while true {
            let now = Clock.monotonic()
            if now >= nextTick {
                nextTick = now + .seconds(1)
                tick()
            }
            var running: Int32 = 0
            curl_multi_perform(multi, &running)
            var handle: UnsafeMutableRawPointer?
            while case let code = ccurl_next_done(multi, &handle), code >= 0 {
                if let handle { done(handle, Int(code)) }
            }
            var descriptors = [
                curl_waitfd(
                    fd: channel.raw,
                    events: Int16(CURL_WAIT_POLLIN | (channel.wantsToWrite ? CURL_WAIT_POLLOUT : 0)),
                    revents: 0
                ),
                curl_waitfd(fd: jobs.news.raw, events: Int16(CURL_WAIT_POLLIN), revents: 0),
            ]
            curl_multi_poll(multi, &descriptors, 2, Int32(longestWait), nil)
            if descriptors[1].revents != 0 { jobs.drain() }
            if descriptors[0].revents != 0 {
                channel.flush()
                guard let commands = try channel.read() else { return }
                for command in commands { self.handle(command) }
            }
            resumePaced()
        }
    }

    /// How long the event loop may wait, in milliseconds.
    private var longestWait: Int {
        if let pace, !paced.isEmpty { return pace.wait }
        return requests.isEmpty && !jobs.isShortOfThreads ? 600_000 : 1000
    }

    private func resumePaced() {
        pace?.refill(now: Clock.monotonic())
        guard !paced.isEmpty, pace?.isOpen ?? true else { return }
        // In random order, so that no transfer is always the first.
        let waiting = paced.shuffled()
        paced = []
        for id in waiting {
            if let transfer = transfers[id], transfer.stage == .moving { resume(transfer) }
        }
    }

    /// Called in libcurl's callback: whether the rate limit allows these bytes now. If not, the transfer is resumed
    /// later.
    func mayMove(_ bytes: Int, of transfer: Transfer) -> Bool {
        guard pace != nil else { return true }
        guard pace?.isOpen ?? true else {
            paced.insert(transfer.id)
            return false
        }
        pace?.take(bytes)
        return true
    }

    // MARK: Requests

    /// Sends the transfer's next request.
    func ask(_ transfer: Transfer) {
        transfer.isBodyOver = false
        transfer.sent = 0
        guard let request = Request(transfer, self) else {
            end(transfer, DiskError(.retry, "memory", "out of memory").end)
            return
        }
        transfer.request = request
        requests[request.handle] = request
        curl_multi_add_handle(multi, request.handle)
    }

    /// Removes the transfer's request.
    func drop(_ transfer: Transfer) {
        guard let request = transfer.request else { return }
        transfer.request = nil
        curl_multi_remove_handle(multi, request.handle)
        requests[request.handle] = nil
        paced.remove(transfer.id)
    }

    /// Limits the rate of all transfers together, in bytes per second; nil for no limit.
    func limit(_ rate: Int64?) { pace = rate.map { Pace($0, now: Clock.monotonic()) } }

    /// Called in libcurl's callback when the response contains the file. Its body is paused until torpord sends `go`.
    func answered(_ transfer: Transfer, _ offset: Int64, _ validator: TransferValidator) {
        transfer.bodyOffset = offset
        transfer.total = validator.total
        wait(transfer, for: .head(id: transfer.id, validator: validator, offset: offset))
    }

    /// Sends a report that torpord must store durably, and waits for `go`.
    func wait(_ transfer: Transfer, for report: TransferReport) {
        transfer.stage = .waiting
        transfer.pending = report
        channel.say(report)
    }

    private func done(_ handle: UnsafeMutableRawPointer, _ code: Int) {
        guard let request = requests[handle] else { return }
        let transfer = request.transfer
        // A server that refuses a request may close the connection before everything was sent or read. 401 and 407
        // are excluded, since libcurl may have been about to answer them.
        let status = request.head.status
        let isRefused = request.head.isComplete && status >= 400 && status != 401 && status != 407
        let verdict = request.failure == nil && (code == 0 || isRefused) ? request.judge() : request.verdict
        let wasJudged = request.verdict != nil
        defer { withExtendedLifetime(request) {} }
        if let failure = request.failure {
            drop(transfer)
            end(transfer, failure)
            return
        }
        if code == 0 && !request.head.isComplete {
            drop(transfer)
            end(transfer, DiskError(.retry, "connection", "the connection was closed in the head of the response").end)
            return
        }
        guard let verdict, wasJudged else {
            let isLogin = request.wasRefusedByProxy
            drop(transfer)
            if isLogin {
                guard transfer.proxyLogin == nil, transfer.proxy?.credentials?.user != nil else {
                    end(transfer, transfer.refusedByProxy)
                    return
                }
                transfer.proxyLogin = Login(scheme: ccurl_auth_basic | ccurl_auth_digest, isForProxy: true)
                ask(transfer)
                return
            }
            let failure = TransferEnd.of(
                curl: code,
                request.text(code),
                errno: request.connectionError,
                hasConnected: request.hasConnected,
                bytes: transfer.bytes
            )
            end(transfer, failure)
            return
        }
        drop(transfer)
        transfer.status = status
        follow(verdict, request, code, transfer)
    }

    private func follow(_ verdict: Verdict, _ request: Request, _ code: Int, _ transfer: Transfer) {
        switch verdict {
        case .redirect(let next, let url):
            transfer.redirects += 1
            // Forget the login for the proxy, because a URL with another scheme may use another proxy.
            if next.address.isSecure != transfer.address.isSecure { transfer.proxyLogin = nil }
            transfer.address = next.address
            transfer.url = url
            transfer.method = next.method
            transfer.sendsFile = next.sendsFile
            ask(transfer)
        case .login(let login):
            if login.isForProxy { transfer.proxyLogin = login } else { transfer.login = login }
            ask(transfer)
        case .askForAll:
            transfer.offset = 0
            ask(transfer)
        case .ended(let end): self.end(transfer, end)
        case .complete:
            transfer.total = transfer.offset
            transfer.bodyOffset = transfer.offset
            complete(transfer)
        case .taken:
            // The server has accepted the file, even if the connection broke during the response's body.
            taken(transfer)
        case .body(let offset, let validator):
            if code != 0 {
                let failure = TransferEnd.of(
                    curl: code,
                    request.text(code),
                    errno: 0,
                    hasConnected: true,
                    bytes: transfer.bytes
                )
                // While a job is running, keep the failure until the job is done.
                if transfer.isBusy { transfer.failure = failure } else { end(transfer, failure) }
            } else if transfer.stage == .asking {
                // The response's body is empty.
                transfer.isBodyOver = true
                answered(transfer, offset, validator)
            } else if transfer.stage == .moving {
                complete(transfer)
            }
        }
    }

    /// Resumes a paused body. Must not be called in a callback of libcurl.
    func resume(_ transfer: Transfer) {
        guard let request = transfer.request else { return }
        // curl_easy_pause delivers held data at once. If that fails, only the result of this call shows it.
        let code = curl_easy_pause(request.handle, CURLPAUSE_CONT)
        if code != CURLE_OK { done(request.handle, Int(code.rawValue)) }
    }
}
