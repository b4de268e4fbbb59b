// SPDX-License-Identifier: Apache-2.0

public import TorporAPI
import Varlink

/// A download or upload that is over.
public struct FinishedTransfer: Hashable, Sendable {
    let parameters: JSON

    /// The number that it was begun with.
    public var id: Int64 { parameters["transfer"]?.intValue ?? 0 }
    /// The name of those that it belongs with.
    public var session: String { parameters["session"]?.stringValue ?? "" }
    /// Where from, or where to.
    public var url: String { parameters["url"]?.stringValue ?? "" }
    /// The file, as a path from the root of the file system.
    public var path: String { parameters["path"]?.stringValue ?? "" }
    /// Bytes of the file that are there, or were sent.
    public var bytes: Int64 { parameters["bytes"]?.intValue ?? 0 }
    /// The status of the server's last answer.
    public var status: Int? { parameters["status"]?.intValue.map { Int($0) } }
    /// SHA-256 of the file of a download, 64 hexadecimal digits.
    public var sha256: String? { parameters["sha256"]?.stringValue }
    /// Why it failed, a sentence; nil where the file is there.
    public var error: String? { parameters["error"]?.stringValue }
}

/// A server that asks for a login.
public struct TransferLogin: Hashable, Sendable {
    let parameters: JSON

    /// The number of the transfer that waits for it.
    public var id: Int64 { parameters["transfer"]?.intValue ?? 0 }
    /// Where from, or where to.
    public var url: String { parameters["url"]?.stringValue ?? "" }
    /// What of the server it is for.
    public var realm: String? { parameters["realm"]?.stringValue }
    /// How it wants it, such as `basic`.
    public var scheme: String? { parameters["scheme"]?.stringValue }
}

/// What goes on while the app sleeps.
extension TorporApp {
    private static let nobody = AppError(code: .failed, "there is no supervisor that could transfer files")

    /// Has a file downloaded; the app is told by `transferDidFinish`, whatever becomes of it meanwhile. Returns its number
    /// once the supervisor has written it down.
    ///
    /// - Parameters:
    ///   - url: of http or https.
    ///   - file: a name below the app's state directory, or a path there or in one of its data folders.
    ///   - session: what belongs together; the app is brought back when all of it is over.
    ///   - sha256: what the file must have, 64 hexadecimal digits.
    ///   - isDiscretionary: it waits for a good moment.
    /// - Throws: ``AppError``: without a supervisor, or with the sentence of a refusal.
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

    /// Has a file uploaded by PUT, otherwise as ``download(_:to:session:sha256:isDiscretionary:)``.
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

    /// Has a file transferred as `request` says, with header fields, a POST or a priority, otherwise as
    /// ``download(_:to:session:sha256:isDiscretionary:)``. Without a token of its own it gets one.
    public func startTransfer(_ request: StartTransferRequest) async throws(AppError) -> Int64 {
        guard isSupervised else { throw Self.nobody }
        var request = request
        request.token = request.token ?? .random()
        return try await call(.startTransfer(request))["id"]?.intValue ?? 0
    }

    /// The app's transfers, those included that are over and that it has not answered for; none without a supervisor.
    public func transfers(session: String? = nil) async throws(AppError) -> [TransferInfo] {
        guard isSupervised else { return [] }
        let reply = try await call(.transfers(session: session))
        return (reply["transfers"]?.arrayValue ?? []).compactMap { try? TransferInfo(json: $0) }
    }

    /// Ends a transfer; the app is not told of its end.
    public func cancelTransfer(_ id: Int64) async throws(AppError) {
        guard isSupervised else { throw Self.nobody }
        _ = try await call(.cancelTransfer(id: id))
    }

    /// Answers `transferNeedsLogin` by user and password; nil for the user has the transfer fail.
    public func answerLogin(_ id: Int64, user: String?, password: String?) async throws(AppError) {
        var request = AnswerLoginRequest(id: id)
        if let user {
            (request.user, request.password) = (user, password ?? "")
        } else {
            request.cancel = true
        }
        try await answerLogin(request)
    }

    /// Answers `transferNeedsLogin` by the value of an Authorization field, such as `Bearer …`.
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
