// SPDX-License-Identifier: Apache-2.0

import EventLoop
import Linux
import Policies
import TorporPolicyABI

/// Opening libraries.
extension PolicyChain {
    func load(_ seat: PolicySeat) {
        seat.state = .loading
        seat.generation += 1
        seat.retryTimer = nil
        seat.retryAt = nil
        let generation = seat.generation
        do throws(PolicyFailure) {
            let library = try LibraryTrust.open(seat.settings.path)
            if seat.settings.isIsolated {
                try loadIsolated(seat, library, generation)
            } else {
                try loadHere(seat, library)
            }
        } catch {
            // Always later: whoever configures the chain finds its policies loading.
            loop.later { [weak self, weak seat] in
                guard let self, let seat, seat.generation == generation else { return }
                self.failed(seat, error)
            }
        }
    }

    private func loadHere(_ seat: PolicySeat, _ library: TrustedLibrary) throws(PolicyFailure) {
        let name = seat.settings.name
        let status = try? File.status(descriptor: library.library.raw)
        if let earlier = openedHere[library.path], let status, earlier != (status.device, status.inode) {
            // The loader would give the same again, and say nothing.
            throw .refused(
                "\(library.path) is another file now than the one that torpord has opened, and a process opens no library "
                    + "anew: ‘torpor upgrade’ begins with the new one, and isolation = \"process\" needs no such thing"
            )
        }
        if let status { openedHere[library.path] = (status.device, status.inode) }
        guarding(name, true)
        defer { guarding(name, false) }
        let opened = try PolicyLibrary(path: library.path, options: seat.settings.options)
        let guarding = guarding
        let runtime = LibraryRuntime(opened, view) { guarding(name, $0) }
        let generation = seat.generation
        loop.later { [weak self, weak seat] in
            guard let self, let seat, seat.generation == generation else { return }
            self.loaded(seat, runtime, opened.description)
        }
    }

    private func loadIsolated(_ seat: PolicySeat, _ library: TrustedLibrary, _ generation: Int) throws(PolicyFailure) {
        var runtime: HostRuntime?
        runtime = try HostRuntime(
            seat.settings,
            library: library,
            view: view,
            loop: loop,
            hosts: hosts,
            machineStalls: machineStalls
        ) {
            [weak self, weak seat] result in
            guard let self, let seat, seat.generation == generation else { return }
            switch result {
            case .success(let description):
                if let loaded = seat.runtime { self.loaded(seat, loaded, description) }
            case .failure(let failure): self.failed(seat, failure)
            }
        }
        runtime?.onFailure = { [weak self, weak seat] failure in
            guard let self, let seat, seat.generation == generation else { return }
            self.failed(seat, failure)
        }
        // Also while it is loading, so that it is closed with its seat; nobody asks it before it is ready.
        seat.runtime = runtime
    }

    func loaded(_ seat: PolicySeat, _ runtime: any PolicyRuntime, _ description: PolicyDescription) {
        seat.runtime = runtime
        seat.description = description
        seat.state = .ready
        let place = runtime.pid.map { "in process \($0)" } ?? "in this process"
        delegate?.policy(
            seat,
            changed: "is loaded \(place): \(description.name) \(description.version), \(description.summary)",
            isTrouble: false
        )
        delegate?.policiesChanged()
        postAlone(TORPOR_EVENT_STARTED, to: seat)
    }
}
