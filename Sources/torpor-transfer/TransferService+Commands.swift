// SPDX-License-Identifier: Apache-2.0

import Linux
import TransferProtocol
import TransferRules

extension TransferService {
    /// Executes a command of torpord.
    func handle(_ command: TransferCommand) {
        switch command {
        case .hello: greet()
        case .start(let order): start(order)
        case .go(let id): go(id)
        case .stop(let id): remove(id, .keepsPart)
        case .discard(let id): remove(id, .removesPart)
        case .acknowledge(let id): acknowledge(id)
        case .rate(let rate): limit(rate)
        }
    }

    private func greet() {
        let all = transfers.values.filter { $0.removal == nil }.sorted { $0.id < $1.id }
        channel.say(.here(ids: all.map(\.id)))
        for transfer in all {
            if let end = transfer.end {
                channel.say(.ended(id: transfer.id, end))
            } else if let pending = transfer.pending {
                channel.say(pending)
            }
        }
    }

    private func start(_ order: TransferOrder) {
        if let transfer = transfers[order.id] {
            if transfer.removal != nil {
                transfer.successor = order
            } else if let end = transfer.end {
                // Repeat the report, because torpord may have missed the first one.
                channel.say(.ended(id: transfer.id, end))
            } else if let pending = transfer.pending {
                channel.say(pending)
            }
            return
        }
        do throws(TransferRefusal) {
            let transfer = Transfer(order, try TransferRefusal.check(order))
            transfers[order.id] = transfer
            run(transfer, .preparing) {
                $0.prepare()
            } then: { service, transfer in
                service.begin(transfer)
            }
        } catch {
            let transfer = Transfer(order, WebAddress("http://invalid")!)
            transfers[order.id] = transfer
            end(transfer, DiskError(.failed, error.reason, error.description).end)
        }
    }

    /// Starts the first request, once the job that prepares the files is done.
    private func begin(_ transfer: Transfer) {
        transfer.stage = .asking
        if let source = transfer.source {
            wait(transfer, for: .source(id: transfer.id, source.source))
            return
        }
        let length = transfer.part?.length ?? 0
        transfer.lengthBefore = length
        let validator = transfer.order.validator
        let isResumable = validator?.condition?.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7f } ?? false
        // A part that is longer than the file must be of another file.
        transfer.offset = isResumable && length <= validator?.total ?? .max ? length : 0
        ask(transfer)
    }

    private func go(_ id: Int64) {
        guard let transfer = transfers[id], transfer.stage == .waiting else { return }
        transfer.pending = nil
        guard let part = transfer.part else {
            transfer.stage = .moving
            ask(transfer)
            return
        }
        let (offset, total) = (transfer.bodyOffset, transfer.total)
        run(transfer, .opening) {
            $0.begin(part, at: offset, total: total)
        } then: { service, transfer in
            transfer.stage = .moving
            if let failure = transfer.failure {
                service.end(transfer, failure)
            } else if transfer.isBodyOver {
                service.complete(transfer)
            } else {
                service.resume(transfer)
            }
        }
    }

    /// Called when the whole body has arrived.
    func complete(_ transfer: Transfer) {
        guard let part = transfer.part else { return }
        // The job of the digest calls this function again when it is done.
        guard !part.isBeingDigested else {
            transfer.isBodyOver = true
            return
        }
        if let total = transfer.total, part.length != total {
            var end = DiskError(.retry, "length", "the server sent \(part.length) of \(total) bytes").end
            end.status = Int64(transfer.status)
            self.end(transfer, end)
            return
        }
        let (wasResumed, status) = (transfer.bodyOffset > 0, transfer.status)
        run(transfer, .finishing) {
            $0.complete(part, wasResumed: wasResumed, status: status)
        } then: { _, _ in
        }
    }

    /// Updates the digest, in a job, with the bytes that have arrived.
    func digest(_ transfer: Transfer) {
        guard digesting < Self.mostDigesting, let part = transfer.part, let end = part.nextDigest else { return }
        part.isBeingDigested = true
        digesting += 1
        jobs.run {
            // If the part cannot be read, the final digest fails too, and the error is reported then.
            try? part.digest(to: end)
            return .nothing
        } then: { [unowned self] _ in
            part.isBeingDigested = false
            digesting -= 1
            if transfer.part === part, transfer.stage == .moving, transfer.isBodyOver { complete(transfer) }
        }
    }

    /// Called when the server has accepted the uploaded file.
    func taken(_ transfer: Transfer) {
        guard let source = transfer.source else { return }
        let (size, status) = (source.source.size, transfer.status)
        let changed = Request.changed(transfer.order)
        run(transfer, .finishing) { work in
            source.isUnchanged ? work.sent(size, status: status) : .ended(changed)
        } then: { _, _ in
        }
    }

    /// Runs a job for a transfer, then calls `then`, unless the job ends the transfer or the transfer is to be
    /// forgotten.
    private func run(
        _ transfer: Transfer,
        _ stage: Transfer.Stage,
        _ work: @escaping @Sendable (DiskWork) -> DiskResult,
        then: @escaping (TransferService, Transfer) -> Void
    ) {
        transfer.stage = stage
        let disk = DiskWork(places: places, order: transfer.order)
        jobs.run {
            work(disk)
        } then: { [unowned self] result in
            // The job is over. Unless `then` sets the next stage, the transfer stays in the stage `ended`.
            transfer.stage = .ended
            if let removal = transfer.removal {
                forget(transfer, removal)
                return
            }
            switch result {
            case .ended(let end): self.end(transfer, end)
            case .part(let part):
                transfer.part = part
                then(self, transfer)
            case .source(let source):
                transfer.source = source
                then(self, transfer)
            case .begun, .nothing: then(self, transfer)
            }
        }
    }

    /// Ends a transfer. Its end is reported to each torpord until one acknowledges it.
    func end(_ transfer: Transfer, _ end: TransferEnd) {
        drop(transfer)
        var end = end
        if end.outcome != .done {
            end.bytes = transfer.bytes
            end.hasGained = transfer.hasGained
            if end.status == nil, transfer.status != 0 { end.status = Int64(transfer.status) }
        } else {
            end.hasGained = true
        }
        transfer.stage = .ended
        transfer.pending = nil
        transfer.part = nil
        transfer.source = nil
        transfer.end = end
        channel.say(.ended(id: transfer.id, end))
    }

    private func acknowledge(_ id: Int64) {
        var keepsPart = true
        if let transfer = transfers[id] {
            guard let end = transfer.end, transfer.removal == nil else { return }
            transfers[id] = nil
            switch end.outcome {
            case .done: break
            // A transfer that failed for good is never resumed, so its part is not needed.
            case .failed: keepsPart = false
            case .retry, .space, .login: return
            }
        }
        let (places, keepingPart) = (places, keepsPart)
        jobs.run {
            places.remove(id, keepingPart: keepingPart)
            return .nothing
        } then: { _ in
        }
    }

    private func remove(_ id: Int64, _ removal: Transfer.Removal) {
        guard let transfer = transfers[id] else {
            // The transfer may be from an earlier process: remove its files too.
            if removal == .removesPart {
                let places = places
                jobs.run {
                    places.remove(id, keepingPart: false)
                    return .nothing
                } then: { _ in
                }
            }
            return
        }
        transfer.successor = nil
        transfer.pending = nil
        drop(transfer)
        if transfer.removal != .removesPart { transfer.removal = removal }
        if !transfer.isBusy { forget(transfer, transfer.removal ?? removal) }
    }

    /// Forgets a transfer for which no job is running. If a new order has the same number, it starts once the files
    /// are gone.
    private func forget(_ transfer: Transfer, _ removal: Transfer.Removal) {
        let (id, places) = (transfer.id, places)
        transfer.stage = .finishing
        transfer.part = nil
        transfer.source = nil
        jobs.run {
            if removal == .removesPart { places.remove(id, keepingPart: false) }
            return .nothing
        } then: { [unowned self] _ in
            if transfer.removal != removal {
                forget(transfer, transfer.removal ?? removal)
                return
            }
            transfers[id] = nil
            if let successor = transfer.successor { start(successor) }
        }
    }

    /// Called once a second: reports progress, and ends transfers whose disk is full or whose file has changed.
    func tick() {
        if jobs.isShortOfThreads { jobs.start() }
        for transfer in transfers.values where transfer.stage == .moving && !transfer.isBodyOver {
            if transfer.bytes != transfer.reported {
                transfer.reported = transfer.bytes
                channel.say(.progress(id: transfer.id, bytes: transfer.bytes, total: transfer.size))
            }
            if let part = transfer.part, transfer.order.minimumFree > 0, let free = try? part.free(),
                free < transfer.order.minimumFree
            {
                end(transfer, DiskError(.space, "space", "only \(free) bytes are free").end)
            } else if let source = transfer.source, !source.isUnchanged {
                end(transfer, Request.changed(transfer.order))
            }
        }
    }
}
