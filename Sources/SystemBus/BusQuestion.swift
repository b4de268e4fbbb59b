// SPDX-License-Identifier: Apache-2.0

extension BusService {
    /// Subscribes to signals of the service until the returned handle is released. Signals of other senders are
    /// dropped.
    ///
    /// - Parameter rule: a match rule without type and sender.
    package func subscribe(_ rule: String, _ handler: @escaping (BusMessage) -> Void) -> BusSlot? {
        connection?.subscribe("type='signal',sender='\(name)',\(rule)") { [weak self] message in
            if let self, self.isSender(of: message) { handler(message) }
        }
    }

    /// Calls a method of the service; nil if the service is not on the bus. An answer that comes after the service has
    /// gone is dropped.
    package func call(
        _ path: String,
        _ interface: String,
        _ member: String,
        _ arguments: [BusArgument] = [],
        _ answer: @escaping (Result<BusMessage, BusError>) -> Void
    ) -> BusSlot? {
        guard let owner, let connection else { return nil }
        return connection.call(owner, path, interface, member, arguments) { [weak self] result in
            if self?.owner == owner { answer(result) }
        }
    }
}

/// A question to a service about its state, asked again whenever the state changes. Only one call is pending at a time.
/// If the state may have changed during a call, one more call follows.
package final class BusQuestion {
    /// Called with the first value of the answer; nil after an error.
    package var onAnswer: (BusValue?) -> Void = { _ in }

    private let service: BusService
    private let path: String
    private let interface: String
    private let member: String
    private let arguments: [BusArgument]
    private var pending: BusSlot?
    private var isUnsure = false

    package init(
        _ service: BusService,
        _ path: String,
        _ interface: String,
        _ member: String,
        _ arguments: [BusArgument] = []
    ) {
        (self.service, self.path, self.interface) = (service, path, interface)
        (self.member, self.arguments) = (member, arguments)
    }

    /// Asks the service. Does nothing while the service is not on the bus.
    package func ask() {
        guard pending == nil else {
            isUnsure = true
            return
        }
        isUnsure = false
        pending = service.call(path, interface, member, arguments) { [weak self] answer in
            guard let self else { return }
            self.pending = nil
            if self.isUnsure { return self.ask() }
            self.onAnswer((try? answer.get())?.values().first)
        }
    }

    /// Drops the pending call: the service has gone.
    package func forget() { (pending, isUnsure) = (nil, false) }
}
