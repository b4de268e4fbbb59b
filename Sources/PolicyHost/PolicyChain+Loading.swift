// SPDX-License-Identifier: Apache-2.0

import EventLoop
import Linux
import Policies
import TorporPolicyABI

/// Opens the libraries of policies.
extension PolicyChain {
    func load(_ slot: PolicySlot) {
        slot.state = .loading
        slot.generation += 1
        slot.retryTimer = nil
        slot.retryAt = nil
        slot.file = nil
        let generation = slot.generation
        do throws(PolicyFailure) {
            let library = try LibraryTrust.open(slot.settings.path)
            slot.file = PolicyFile(library)
            if slot.settings.isIsolated {
                try loadIsolated(slot, library, generation)
            } else {
                try loadHere(slot, library)
            }
        } catch {
            // Report the failure later, never at once: the caller that configures the chain relies on its policies
            // being in the state `loading`.
            loop.later { [weak self, weak slot] in
                guard let self, let slot, slot.generation == generation else { return }
                self.failed(slot, error)
            }
        }
    }

    private func loadHere(_ slot: PolicySlot, _ library: TrustedLibrary) throws(PolicyFailure) {
        let name = slot.settings.name
        let opened = try openHere(library, slot.settings)
        let guarding = guarding
        let runtime = LibraryRuntime(opened, view) { guarding(name, $0) }
        let generation = slot.generation
        loop.later { [weak self, weak slot] in
            guard let self, let slot, slot.generation == generation else { return }
            self.loaded(slot, runtime, opened.description)
        }
    }

    private func openHere(
        _ library: TrustedLibrary,
        _ settings: PolicySettings
    ) throws(PolicyFailure) -> PolicyLibrary {
        let file = PolicyFile(library)
        let earlier = openedHere[library.path]
        var content = earlier?.content
        if let earlier, let file, earlier.file != file {
            // The file of a library that is loaded already was replaced. dlopen(3) would return the old library again,
            // without an error. A new modification time alone (touch, or the same written again) changes nothing.
            guard earlier.file.isSameFile(as: file), content != nil, content == PolicyFile.content(of: library) else {
                throw .refused(
                    "\(library.path) was replaced after torpord loaded it, and a process cannot reload a library: run "
                        + "‘torpor upgrade’, or set isolation = \"process\""
                )
            }
        }
        if earlier == nil { content = PolicyFile.content(of: library) }
        if let file { openedHere[library.path] = OpenedLibrary(file: file, content: content) }
        guarding(settings.name, true)
        defer { guarding(settings.name, false) }
        do throws(PolicyFailure) {
            return try PolicyLibrary(path: library.path, options: settings.options)
        } catch {
            // A file that could not be loaded, such as half of one, may be replaced.
            if !DynamicLibrary.isLoaded(library.path) { openedHere[library.path] = nil }
            throw error
        }
    }

    private func loadIsolated(_ slot: PolicySlot, _ library: TrustedLibrary, _ generation: Int) throws(PolicyFailure) {
        var runtime: HostRuntime?
        runtime = try HostRuntime(
            slot.settings,
            library: library,
            view: view,
            loop: loop,
            hosts: hosts,
            machineStalls: machineStalls
        ) {
            [weak self, weak slot] result in
            guard let self, let slot, slot.generation == generation else { return }
            switch result {
            case .success(let description):
                if let loaded = slot.runtime { self.loaded(slot, loaded, description) }
            case .failure(let failure): self.failed(slot, failure)
            }
        }
        runtime?.onFailure = { [weak self, weak slot] failure in
            guard let self, let slot, slot.generation == generation else { return }
            self.failed(slot, failure)
        }
        runtime?.onLine = { [weak self, weak slot] line in
            guard let self, let slot else { return }
            self.delegate?.policy(slot, wrote: line)
        }
        // Set the runtime even while it is loading, so that it is closed together with its slot. The runtime gets no
        // question before it is ready.
        slot.runtime = runtime
    }

    func loaded(_ slot: PolicySlot, _ runtime: any PolicyRuntime, _ description: PolicyDescription) {
        slot.runtime = runtime
        slot.description = description
        slot.state = .ready
        let place = runtime.pid.map { "in process \($0)" } ?? "in this process"
        delegate?.policy(
            slot,
            changed: "is loaded \(place): \(description.name) \(description.version), \(description.summary)",
            isTrouble: false
        )
        delegate?.policiesChanged()
        postAlone(TORPOR_EVENT_STARTED, to: slot)
    }
}
