// SPDX-License-Identifier: Apache-2.0

public import TorporAPI
import Varlink

/// A download or upload that has ended.
public struct FinishedTransfer: Hashable, Sendable {
    let parameters: JSON

    /// The transfer's number, which the call that started it returned.
    public var id: Int64 { parameters["transfer"]?.intValue ?? 0 }
    /// The name of the session: the group of transfers that this transfer belongs to.
    public var session: String { parameters["session"]?.stringValue ?? "" }
    /// The URL: the source of a download, the destination of an upload.
    public var url: String { parameters["url"]?.stringValue ?? "" }
    /// The absolute path of the file.
    public var path: String { parameters["path"]?.stringValue ?? "" }
    /// Bytes received or sent.
    public var bytes: Int64 { parameters["bytes"]?.intValue ?? 0 }
    /// The HTTP status of the server's last answer.
    public var status: Int? { parameters["status"]?.intValue.map { Int($0) } }
    /// The SHA-256 of a downloaded file, 64 hexadecimal digits.
    public var sha256: String? { parameters["sha256"]?.stringValue }
    /// Why the transfer failed, a sentence; nil if it succeeded.
    public var error: String? { parameters["error"]?.stringValue }
}

/// A server's request for a login.
public struct TransferLogin: Hashable, Sendable {
    let parameters: JSON

    /// The number of the transfer that waits for the login.
    public var id: Int64 { parameters["transfer"]?.intValue ?? 0 }
    /// The URL: the source of a download, the destination of an upload.
    public var url: String { parameters["url"]?.stringValue ?? "" }
    /// The realm of the server's challenge.
    public var realm: String? { parameters["realm"]?.stringValue }
    /// The scheme of the server's challenge, such as `basic`.
    public var scheme: String? { parameters["scheme"]?.stringValue }
}

/// Transfers that continue while the app is suspended.
extension TorporApp {
    private static let nobody = AppError(code: .failed, "there is no supervisor that could transfer files")

    /// Starts a download; `transferDidFinish` reports its end, even if the app was terminated in between. Returns the
    /// transfer's number once the request is durable.
    ///
    /// - Parameters:
    ///   - url: an http or https URL.
    ///   - file: a name below the app's state directory, or a path there or in one of its data folders.
    ///   - session: the transfer's group; the app is launched or woken when all transfers of a session have ended.
    ///   - sha256: the expected SHA-256, 64 hexadecimal digits.
    ///   - isDiscretionary: whether the transfer waits for good conditions of power, network and load.
    /// - Throws: ``AppError`` without a supervisor, or with the reason of a refusal.
    public func download(
        _ url: String,
        to file: String,
        session: String = "default",
        sha256: String? = nil,
        isDiscretionary: Bool = false
    ) async throws(AppError) -> Int64 {
        var request = StartTransferRequest(direction: "download", url: url, file: file)
        request.sha256 = sha256
        return try await startTransfer(request, session, isDiscretionary)
    }

    /// Starts an upload by PUT, otherwise like ``download(_:to:session:sha256:isDiscretionary:)``.
    public func upload(
        _ file: String,
        to url: String,
        session: String = "default",
        isDiscretionary: Bool = false
    ) async throws(AppError) -> Int64 {
        try await startTransfer(
            StartTransferRequest(direction: "upload", url: url, file: file),
            session,
            isDiscretionary
        )
    }

    private func startTransfer(
        _ request: StartTransferRequest,
        _ session: String,
        _ isDiscretionary: Bool
    ) async throws(AppError) -> Int64 {
        var request = request
        request.session = session
        request.isDiscretionary = isDiscretionary
        return try await startTransfer(request)
    }

    /// Starts a transfer with header fields, a POST or a priority, otherwise like
    /// ``download(_:to:session:sha256:isDiscretionary:)``. A request without a token gets one, so that a retry starts
    /// no second transfer.
    public func startTransfer(_ request: StartTransferRequest) async throws(AppError) -> Int64 {
        guard isSupervised else { throw Self.nobody }
        var request = request
        request.token = request.token ?? .random()
        return try await call(.startTransfer(request))["id"]?.intValue ?? 0
    }

    /// The app's transfers, including ended transfers whose message the app has not answered; empty without a
    /// supervisor.
    public func transfers(session: String? = nil) async throws(AppError) -> [TransferInfo] {
        guard isSupervised else { return [] }
        var infos: [TransferInfo] = []
        while true {
            let reply = try await call(.transfers(session: session, after: infos.last?.id))
            let part = (reply["transfers"]?.arrayValue ?? []).compactMap { try? TransferInfo(json: $0) }
            infos += part
            if part.isEmpty || reply["more"]?.boolValue != true { return infos }
        }
    }

    /// Cancels a transfer; the app gets no message about its end.
    public func cancelTransfer(_ id: Int64) async throws(AppError) {
        guard isSupervised else { throw Self.nobody }
        _ = try await call(.cancelTransfer(id: id))
    }

    /// Answers `transferNeedsLogin` with user and password; if `user` is nil, the transfer fails.
    public func answerLogin(_ id: Int64, user: String?, password: String?) async throws(AppError) {
        var request = AnswerLoginRequest(id: id)
        if let user {
            (request.user, request.password) = (user, password ?? "")
        } else {
            request.cancel = true
        }
        try await answerLogin(request)
    }

    /// Answers `transferNeedsLogin` with the value of an Authorization field, such as `Bearer …`.
    public func answerLogin(_ id: Int64, header: String) async throws(AppError) {
        var request = AnswerLoginRequest(id: id)
        request.header = header
        try await answerLogin(request)
    }

    private func answerLogin(_ request: AnswerLoginRequest) async throws(AppError) {
        guard isSupervised else { throw Self.nobody }
        _ = try await call(.answerLogin(request))
    }
}
