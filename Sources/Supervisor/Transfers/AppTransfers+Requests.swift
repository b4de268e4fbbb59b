// SPDX-License-Identifier: Apache-2.0

import Configuration
package import Engine
import EventLoop
import EventSources
import Lifecycle
import Linux
import Mailbox
import Permissions
import Store
package import TorporAPI
import TransferProtocol
import TransferRules
import Transfers
package import Varlink

/// Why a transfer is not started, or not changed.
package enum TransferProblem: Error {
    /// A parameter is invalid.
    case invalid(FieldError)
    /// The reason, as a sentence.
    case failed(String)
}

/// Requests of apps and operators about transfers.
extension AppTransfers {
    /// Queues a download or an upload. `completion` gets the transfer's number when the transfer is on disk.
    package func start(
        _ request: StartTransferRequest,
        of app: AppRuntime,
        _ completion: @escaping (Result<Int64, TransferProblem>) -> Void
    ) {
        guard isLoaded else {
            return supervisor.persistence.whenLoaded { [weak self, weak app] in
                if let self, let app { self.start(request, of: app, completion) }
            }
        }
        if let token = request.token, let id = tokens[token.value, app.name] {
            return supervisor.store.sync { problem in
                guard let problem else { return completion(.success(id)) }
                completion(.failure(.failed("it is not known whether the transfer is stored (\(problem))")))
            }
        }
        let transfer: Transfer
        do throws(TransferProblem) { transfer = try self.transfer(request, app) } catch {
            return completion(.failure(error))
        }
        queue.add(transfer)
        tokens.note(transfer.token, of: app.name, is: transfer.id)
        save(transfer.id)
        supervisor.store.sync { [weak self] problem in
            guard let self else { return }
            if let problem {
                if self.queue[transfer.id]?.state == .queued {
                    self.drop(transfer.id)
                    self.tokens.giveBack(transfer.token, of: app.name)
                }
                return completion(.failure(.failed("nothing is transferred: it cannot be stored (\(problem))")))
            }
            completion(.success(transfer.id))
            self.schedule()
        }
    }

    /// Why a sandboxed app may not start transfers; nil if it may. The app needs permission to use the network, because
    /// torpor-transfer would use the network on its behalf.
    static func permissionProblem(_ app: AppRuntime) -> String? {
        let sandbox = app.specification.sandbox
        guard sandbox.mode != nil, !app.allows(.transfers) || app.grants.network == .none else { return nil }
        return "\(app.name) is in a sandbox: it needs the permissions transfers and network"
    }

    /// The ports to which the transfers of a sandboxed app may connect; empty if all are allowed.
    static func ports(of app: AppRuntime) -> [UInt16] {
        guard app.specification.sandbox.mode != nil, case .ports(let ports) = app.grants.network else { return [] }
        return ports
    }

    private func transfer(_ request: StartTransferRequest, _ app: AppRuntime) throws(TransferProblem) -> Transfer {
        if let problem = Self.permissionProblem(app) { throw .failed(problem) }
        do throws(LaunchError) { _ = try Self.program() } catch { throw .failed("nothing is transferred: \(error)") }
        guard let direction = TransferDirection(rawValue: request.direction) else {
            throw .invalid(FieldError(field: "direction", problem: "must be download or upload"))
        }
        let isDownload = direction == .download
        if request.sha256 != nil, !isDownload {
            throw .invalid(FieldError(field: "sha256", problem: "is for downloads"))
        }
        let rules = app.specification.transfers
        let session = request.session
        guard (1...64).contains(session.utf8.count),
            Self.isName(session)
        else {
            throw .invalid(FieldError(field: "session", problem: "must have 1 to 64 letters, digits, -, _ and ."))
        }
        let (root, file) = try place(of: request.file, app)
        let ended = supervisor.mailboxes.transferMail(of: app).count {
            $0.draft.message == Message.transferDidFinish.rawValue
        }
        guard queue.countAsked(of: app.name) + ended < rules.limit else {
            throw .failed(
                "\(app.name) has \(rules.limit) transfers, the most that transfers.limit allows, counting those that "
                    + "ended and that it has not answered for (‘torpor app transfer wait’ answers, and ‘torpor "
                    + "transfers --cancel ID’ forgets one)"
            )
        }
        var order = TransferOrder(
            id: nextID(),
            direction: direction,
            url: request.url,
            root: root,
            file: file,
            method: request.method ?? (isDownload ? "GET" : "PUT")
        )
        order.headers = request.headers.map { TransferHeader(name: $0.name, value: $0.value) }
        order.sha256 = request.sha256?.lowercased()
        // As on iOS, a transfer that is started in the background waits for good conditions (it is discretionary).
        order.isDiscretionary = request.isDiscretionary || machine(app).state == .background
        order.ports = Self.ports(of: app)
        let address: WebAddress
        do throws(TransferRefusal) { address = try TransferRefusal.check(order) } catch {
            throw .failed("nothing is transferred: \(error)")
        }
        guard rules.allows(order.url) else {
            throw .failed(
                "\(app.name) may not transfer from or to \(address.named): name that in transfers.allow of \(app.name)"
            )
        }
        var transfer = Transfer(
            order: order,
            app: app.name,
            session: session,
            createdAt: Clock.realtimeMicroseconds()
        )
        transfer.events = request.events
        transfer.retriesPost = request.retry
        transfer.priority = min(max(request.priority, -1000), 1000)
        transfer.token = request.token?.value ?? 0
        transfer.expiresAt = rules.resourceTime.map { transfer.createdAt + $0.microseconds }
        return transfer
    }

    private static func isName(_ text: String) -> Bool {
        text.utf8.allSatisfy { byte in
            switch byte {
            case 0x30...0x39, 0x41...0x5a, 0x61...0x7a: true
            default: "-_.".utf8.contains(byte)
            }
        }
    }

    /// The index of the folder of the app that contains a file, and the file's name in that folder. Throws if the file
    /// is in none of the app's folders. Compares only the names, and does not access the disk.
    private func place(of file: String, _ app: AppRuntime) throws(TransferProblem) -> (root: Int, name: String) {
        func refusal(_ problem: String) -> TransferProblem { .invalid(FieldError(field: "file", problem: problem)) }
        guard (1...4096).contains(file.utf8.count), !file.utf8.contains(0) else {
            throw refusal("must be the name of a file, of 1 to 4096 bytes")
        }
        var (root, name) = (0, file)
        if file.utf8.first == UInt8(ascii: "/") {
            let folders = folders(of: app)
            guard let index = folders.firstIndex(where: { file.utf8.starts(with: ($0 + "/").utf8) }) else {
                throw refusal("must be below the app's state directory or one of its data folders")
            }
            root = index
            name = String(file.utf8.dropFirst(folders[index].utf8.count + 1)) ?? ""
        }
        return (root, name)
    }

    // MARK: What there is

    /// The number of transfers of an app that have not ended.
    package func count(of app: AppRuntime) -> Int { queue.countAsked(of: app.name) }

    /// The transfers of some apps, in the order in which they were requested: transfers that have not ended, and
    /// transfers whose end the app has not acknowledged yet. If `withFeeds`, also subscriptions.
    package func infos(of chosen: [AppRuntime], session: String?, withFeeds: Bool = true) -> [TransferInfo] {
        var infos: [TransferInfo] = []
        let weakness = supervisor.wakes.timers.weakness()
        let isMetered = network.isMetered ?? false
        for app in chosen {
            let obstacle = obstacle(app, weakness: weakness, isMetered: isMetered)
            let transfers = queue.transfers(of: app.name).filter { withFeeds || $0.feed == nil }
            infos += transfers.map { info($0, app, obstacle) }
            infos += supervisor.mailboxes.transferMail(of: app).compactMap { TransferInfo($0, app.name) }
        }
        if let session { infos.removeAll { !$0.session.utf8.elementsEqual(session.utf8) } }
        return infos.sorted { $0.id < $1.id }
    }

    /// The file that a transfer writes or reads.
    func path(_ transfer: Transfer, _ app: AppRuntime) -> String {
        if transfer.feed != nil { return feedsPlace(of: app.name).path + "/" + transfer.order.file }
        let folders = folders(of: app)
        let root = folders.indices.contains(transfer.order.root) ? folders[transfer.order.root] : folders[0]
        return root + "/" + transfer.order.file
    }

    private func info(_ transfer: Transfer, _ app: AppRuntime, _ obstacle: Transfer.Cause?) -> TransferInfo {
        var info = TransferInfo(
            id: transfer.id,
            app: app.name,
            session: transfer.session,
            direction: transfer.order.direction.rawValue,
            url: transfer.order.url,
            file: path(transfer, app),
            state: "queued",
            createdAt: transfer.createdAt
        )
        switch transfer.state {
        case .queued:
            guard transfer.kind != .prompt, let obstacle else { break }
            (info.state, info.cause) = ("waiting", obstacle.rawValue)
        case .running:
            info.state = "running"
            info.rate = transfer.rate
        case .waiting(let cause, let until): (info.state, info.cause, info.retryAt) = ("waiting", cause.rawValue, until)
        }
        info.bytes = transfer.bytes
        info.total = transfer.total
        info.priority = transfer.priority
        info.isDiscretionary = transfer.order.isDiscretionary
        info.events = transfer.events
        info.attempts = transfer.attempts
        (info.status, info.reason, info.error) = (transfer.status, transfer.reason, transfer.error)
        return info
    }

    // MARK: Cancelling and logins

    /// Cancels a transfer at the request of its app. The app gets no further messages about the transfer. If the
    /// transfer has ended already, removes the message about its end. `completion` gets nil when the cancellation is on
    /// disk, or the problem.
    package func cancel(_ id: Int64, of app: AppRuntime, _ completion: @escaping (TransferProblem?) -> Void) {
        let isOurs = queue[id].map { $0.app == app.name && $0.feed == nil } ?? false
        let isTold = supervisor.mailboxes.transferMail(of: app).contains { TransferMail.transfer(in: $0) == id }
        guard isOurs || isTold else {
            return completion(.invalid(FieldError(field: "id", problem: "\(id) is not a transfer of \(app.name)")))
        }
        if isOurs {
            app.transferCounters.count(.cancelled)
            drop(id)
        }
        supervisor.mailboxes.forgetTransfer(id, app)
        supervisor.store.sync { problem in
            completion(problem.map { .failed("it is cancelled, but that cannot be stored (\($0))") })
        }
        schedule()
    }

    /// Cancels transfers at the request of a user. The apps get messages that the transfers have failed. `completion`
    /// gets the numbers of the transfers.
    package func cancel(
        _ chosen: [AppRuntime],
        _ ids: [Int64],
        by person: String,
        _ completion: @escaping (Result<[Int64], TransferProblem>) -> Void
    ) {
        if let feed = ids.lazy.compactMap({ self.queue[$0]?.feed }).first {
            let problem = "\(feed.name) is a subscription: remove it from subscriptions in the configuration"
            return completion(.failure(.failed(problem)))
        }
        // Also remove transfers that have ended but whose end the app has not acknowledged yet.
        var over: [Int64: AppRuntime] = [:]
        if ids.contains(where: { queue[$0] == nil }) {
            for app in apps {
                for mail in supervisor.mailboxes.transferMail(of: app) {
                    if let id = TransferMail.transfer(in: mail), queue[id] == nil { over[id] = app }
                }
            }
        }
        if let missing = ids.first(where: { queue[$0] == nil && over[$0] == nil }) {
            let problem = "there is no transfer \(missing): ‘torpor transfers’ lists them"
            return completion(.failure(.failed(problem)))
        }
        for id in ids { if let app = over[id] { supervisor.mailboxes.forgetTransfer(id, app) } }
        let all =
            Set(ids).sorted()
            + chosen.flatMap { app in
                queue.transfers(of: app.name).filter { $0.feed == nil }.map(\.id)
            }
        // Those that run come last: until then, no other one takes their place.
        let running = all.filter { queue[$0]?.state == .running }
        let order = all.filter { queue[$0] != nil && queue[$0]?.state != .running } + running
        cancel(order[...], by: person) { [weak self] in
            guard let self else { return }
            supervisor.store.sync { problem in
                if let problem {
                    return completion(.failure(.failed("they are cancelled, but that cannot be stored (\(problem))")))
                }
                completion(.success(all))
            }
            schedule()
        }
    }

    /// The time for cancelling transfers in one turn of the event loop: an app may have very many.
    private static let cancelSlice = Duration.milliseconds(5)

    /// Cancels transfers, as many in one turn of the event loop as fit into a slice of time.
    private func cancel(_ ids: ArraySlice<Int64>, by person: String, _ completion: @escaping () -> Void) {
        var rest = ids
        let end = Clock.monotonic() + Self.cancelSlice
        while let id = rest.popFirst() {
            guard let transfer = queue[id] else { continue }
            finish(
                id,
                TransferResult(of: transfer, reason: TransferResult.cancelled, error: "it was cancelled by \(person)")
            )
            discardPart(of: transfer)
            restIfIdle(transfer.app)
            if Clock.monotonic() >= end { break }
        }
        guard !rest.isEmpty else { return completion() }
        loop.later { [weak self] in self?.cancel(rest, by: person, completion) }
    }

    /// Handles an app's answer to a server that asks for a login. Returns why the answer is refused; nil if it is
    /// accepted.
    package func answer(_ request: AnswerLoginRequest, of app: AppRuntime) -> TransferProblem? {
        guard let transfer = queue[request.id], transfer.app == app.name else {
            return .invalid(FieldError(field: "id", problem: "\(request.id) is not a transfer of \(app.name)"))
        }
        guard case .waiting(.login, _) = transfer.state else {
            return .failed("the transfer \(request.id) does not wait for a login")
        }
        for text in [request.user, request.password, request.header].compactMap({ $0 }) {
            guard text.utf8.count <= 4096, !text.utf8.contains(where: { $0 < 0x20 || $0 == 0x7f }) else {
                return .invalid(
                    FieldError(
                        field: "user",
                        problem: "and the like must have at most 4096 bytes, and no control characters"
                    )
                )
            }
        }
        supervisor.mailboxes.forgetTransfer(request.id, app)
        if request.cancel {
            finish(request.id, TransferResult(of: transfer, reason: "login", error: "the app gave no login"))
            discardPart(of: transfer)
        } else {
            logins[request.id] = TransferCredentials(
                user: request.user,
                password: request.password,
                header: request.header
            )
            queue.set(request.id, .queued)
            save(request.id)
        }
        schedule()
        return nil
    }
}

extension TransferInfo {
    /// Makes a transfer that has ended from the mail about its end; nil for other mail.
    fileprivate init?(_ mail: Mail, _ app: String) {
        guard mail.draft.message == Message.transferDidFinish.rawValue, let id = TransferMail.transfer(in: mail) else {
            return nil
        }
        let payload = mail.draft.payload
        let error = payload["error"]?.stringValue
        let reason = payload["reason"]?.stringValue
        self.init(
            id: id,
            app: app,
            session: payload["session"]?.stringValue ?? "",
            direction: payload["direction"]?.stringValue ?? "download",
            url: payload["url"]?.stringValue ?? "",
            file: payload["path"]?.stringValue ?? "",
            state: error == nil ? "done" : reason == TransferResult.cancelled ? "cancelled" : "failed",
            createdAt: id
        )
        bytes = payload["bytes"]?.intValue ?? 0
        total = payload["total"]?.intValue ?? (error == nil ? bytes : nil)
        (self.reason, attempts) = (reason, payload["attempts"]?.intValue ?? 0)
        (status, sha256, self.error) = (payload["status"]?.intValue, payload["sha256"]?.stringValue, error)
        endedAt = mail.lastAt
    }
}
