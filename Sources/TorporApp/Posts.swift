// SPDX-License-Identifier: Apache-2.0

public import TorporAPI
public import Varlink

extension TorporApp {
    /// Posts a message to another app, which must accept the topic, and must accept it from this app (`accepts_from`).
    /// Returns when the message is on disk, with its number in the other app's mailbox; nil if it cancelled out another
    /// one there.
    ///
    /// - Throws: ``AppError``: `notPermitted` if the other app does not accept messages from this one, `failed` if it
    ///   does not accept the topic or its mailbox is full, and without a supervisor.
    @discardableResult
    public func post(_ request: PostRequest) async throws(AppError) -> Int64? {
        guard isSupervised else {
            throw AppError(code: .failed, "there is no supervisor that could post to \(request.app)")
        }
        var request = request
        // If the connection is lost, the request is repeated, and must be carried out once.
        if request.token == nil { request.token = .random() }
        return try await call(.post(request))["id"]?.intValue
    }

    /// Posts a message to another app, with what that app's configuration says of the topic.
    @discardableResult
    public func post(_ topic: String, to app: String, payload: JSON = .null) async throws(AppError) -> Int64? {
        var request = PostRequest(app: app, topic: topic)
        request.payload = payload
        return try await post(request)
    }

    /// Subscribes the app to messages of a topic, as an entry of `topics` in its configuration does. Does nothing
    /// without a supervisor.
    public func subscribe(_ request: SubscribeRequest) async throws(AppError) {
        guard isSupervised else { return }
        _ = try await call(.subscribe(request))
    }

    /// Subscribes the app to messages of a topic, which may be a pattern of `*` and `?`. The subscription survives
    /// restarts of the app, the supervisor and the machine.
    public func subscribe(to topic: String) async throws(AppError) {
        try await subscribe(SubscribeRequest(topic: topic))
    }

    /// Ends a subscription that ``subscribe(to:)`` has made.
    public func unsubscribe(from topic: String) async throws(AppError) {
        var request = SubscribeRequest(topic: topic)
        request.end = true
        try await subscribe(request)
    }

    /// Takes messages from the app's mailbox, the first ones first: for programs that handle them in their own order
    /// instead of having the delegate get them. Empty if none waits, and without a supervisor.
    ///
    /// Without `keep` in the request, the messages are removed at once: if the program ends before it has handled them,
    /// they are lost. With `keep`, a message stays until a later request has its number in `done`.
    public func take(_ request: TakeRequest = TakeRequest()) async throws(AppError) -> [MailInfo] {
        guard isSupervised else { return [] }
        let reply = try await call(.take(request))
        do throws(FieldError) {
            var mail: [MailInfo] = []
            for json in reply["mail"]?.arrayValue ?? [] { mail.append(try MailInfo(json: json)) }
            return mail
        } catch {
            throw AppError(code: .failed, "the supervisor's reply cannot be read: \(error)")
        }
    }
}
