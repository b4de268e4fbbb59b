// SPDX-License-Identifier: Apache-2.0

import CCurl
import Linux
import TransferProtocol
import TransferRules
import WireText

/// What to do after the head of a response was read.
enum Verdict {
    /// The body contains the file, from byte `offset` on.
    case body(offset: Int64, validator: TransferValidator)
    /// The partial file is already the whole file.
    case complete
    /// The server accepted the uploaded file.
    case taken
    /// Send another request: to another URL, with a login, or for the whole file.
    case redirect(Redirect, url: String)
    case login(Login)
    case askForAll
    /// Send no further request.
    case ended(TransferEnd)
}

extension Transfer {
    /// Judges the final response. libcurl itself handles earlier ones (100, and the first 401 of digest
    /// authentication).
    func judge(_ head: ResponseHead) -> Verdict {
        if Redirect.isRedirect(head.status), let location = head["location"], !location.isEmpty {
            return redirect(head.status, location)
        }
        // Only a proxy for plain http can send a 407 here. Within a tunnel, or without a proxy, the status has no
        // meaning.
        let isOfProxy = head.status == 407 && !address.isSecure && proxy != nil
        if head.status == 401 || isOfProxy, let login = answer(to: head) { return .login(login) }
        if isOfProxy { return .ended(refusedByProxy) }
        let isSuccess = (200...299).contains(head.status)
        if head.status == 401, login != nil {
            var end = TransferEnd.of(head, bytes: bytes, now: Self.now)
            end.message = "the server rejects the login (status 401)"
            return .ended(end)
        }
        guard order.direction == .download else {
            return isSuccess ? .taken : .ended(.of(head, bytes: bytes, now: Self.now))
        }
        if head.status == 304, order.unless != nil {
            var end = TransferEnd(.done, bytes: 0)
            end.status = 304
            return .ended(end)
        }
        let use = BodyUse.of(head, offset: offset, validator: order.validator)
        switch use {
        case .status: return .ended(.of(head, bytes: bytes, now: Self.now))
        case .complete: return .complete
        case .askForAll: return .askForAll
        case .append, .restart: break
        }
        if let encoding = head.encoding {
            return .ended(
                DiskError(
                    .failed,
                    "encoding",
                    "the server sends the file encoded (\(encoding)), which was not requested"
                ).end
            )
        }
        let validator: TransferValidator
        let start: Int64
        switch use {
        case .append(let total):
            start = offset
            validator = TransferValidator(
                condition: order.validator?.condition,
                total: total,
                version: order.validator?.version
            )
        case .restart(let total):
            start = 0
            validator = TransferValidator(condition: head.condition, total: total, version: head.version)
        case .complete, .askForAll, .status: return .askForAll
        }
        if let limit = order.sizeLimit, let total = validator.total, total > limit {
            return .ended(Self.tooLarge(limit))
        }
        return .body(offset: start, validator: validator)
    }

    /// A refusal by a proxy is retried, because the user who configured the proxy must act, not the app.
    var refusedByProxy: TransferEnd {
        let name = proxy?.host ?? "a proxy"
        var end = DiskError(
            .retry,
            "proxy-login",
            "\(name) requires a login: give it an entry in transfers.credentials, or a login in its URL"
        ).end
        end.status = 407
        return end
    }

    static func tooLarge(_ limit: Int64) -> TransferEnd {
        DiskError(.failed, "too-large", "the file has more than \(limit) bytes").end
    }

    private static var now: Int64 { Clock.realtimeMicroseconds() / 1_000_000 }

    private func redirect(_ status: Int, _ location: String) -> Verdict {
        guard let target = Self.resolve(location, from: url) else {
            return .ended(DiskError(.failed, "redirects", "the server redirects to something that is not a URL").end)
        }
        let allow = order.allow.compactMap(WebPattern.init)
        guard allow.count == order.allow.count else {
            return .ended(DiskError(.failed, "not-allowed", "the patterns of transfers.allow cannot be read").end)
        }
        do throws(TransferRefusal) {
            let next = try Redirect.follow(
                status,
                from: address,
                to: target,
                method: method,
                sendsFile: sendsFile,
                count: redirects,
                allow: allow,
                ports: order.ports
            )
            return .redirect(next, url: target)
        } catch {
            return .ended(DiskError(.failed, error.reason, error.description).end)
        }
    }

    /// Resolves the value of a Location header against the request's URL.
    private static func resolve(_ location: String, from base: String) -> String? {
        guard let handle = curl_url() else { return nil }
        defer { curl_url_cleanup(handle) }
        let flags = UInt32(CURLU_NON_SUPPORT_SCHEME | CURLU_URLENCODE)
        guard curl_url_set(handle, CURLUPART_URL, base, 0) == CURLUE_OK,
            curl_url_set(handle, CURLUPART_URL, location, flags) == CURLUE_OK
        else { return nil }
        var text: UnsafeMutablePointer<CChar>?
        guard curl_url_get(handle, CURLUPART_URL, &text, 0) == CURLUE_OK, let text else { return nil }
        defer { curl_free(text) }
        return String(terminatedWire: text)
    }

    /// The login for a 401 or 407; nil if there are no credentials for it, or if they were already rejected.
    private func answer(to head: ResponseHead) -> Login? {
        let isForProxy = head.status == 407
        guard (isForProxy ? proxyLogin : login) == nil,
            let credentials = isForProxy ? proxy?.credentials : order.credentials,
            isForProxy || address.isSameServer(as: origin)
        else { return nil }
        if credentials.header != nil && !isForProxy { return Login(scheme: 0, isForProxy: false) }
        guard credentials.user != nil else { return nil }
        let schemes = Set(head.challenges.map(\.scheme))
        if schemes.contains("digest") { return Login(scheme: ccurl_auth_digest, isForProxy: isForProxy) }
        if schemes.contains("basic") { return Login(scheme: ccurl_auth_basic, isForProxy: isForProxy) }
        return nil
    }
}
