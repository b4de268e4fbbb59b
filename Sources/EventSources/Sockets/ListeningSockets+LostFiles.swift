// SPDX-License-Identifier: Apache-2.0

import Configuration
package import Engine
import Lifecycle
import Linux

/// Which of some socket files another program has removed or replaced.
struct LostFiles: Sendable {
    /// Those that no client reaches (``SocketFile/isGone``).
    let gone: Set<SocketFile>
    /// Those of them at whose path nothing is. If something else is there, the app itself may have put it there.
    let missing: Set<SocketFile>
}

extension LostFiles {
    /// Looks the paths up, which may block: never call this on the event loop.
    init(among files: Set<SocketFile>) {
        gone = files.filter(\.isGone)
        missing = gone.filter(\.isMissing)
    }
}

/// Finds Unix sockets whose files another program has removed: no client reaches them, and so none wakes the app.
extension ListeningSockets {
    /// Binds sockets of apps that do not run again if their files are gone. An app that runs has the old socket, and
    /// gets another one only when it has ended: its socket is marked. A background thread looks, because a lookup may
    /// block.
    package func seekLostFiles() { seekLostFiles { _ in true } }

    func seekLostFiles(where isSought: (SocketFile) -> Bool) {
        guard !isSeeking else {
            seeksAgain = true
            return
        }
        var files: Set<SocketFile> = []
        // A socket may be bound again during the lookup, and its new file may have the inode number of the old one.
        var bound: [ObjectIdentifier: Descriptor] = [:]
        for set in sets.values {
            for socket in set.sockets {
                guard let descriptor = socket.descriptor, let file = socket.file, isSought(file) else { continue }
                files.insert(file)
                bound[ObjectIdentifier(socket)] = descriptor
            }
        }
        guard !files.isEmpty else { return }
        isSeeking = true
        let (sought, findLost) = (files, findLost)
        fileLookups.ask {
            findLost(sought)
        } _: { [weak self, bound] lost in
            guard let self else { return }
            isSeeking = false
            obey(lost, bound)
            guard seeksAgain, !isEnding else { return }
            seeksAgain = false
            seekLostFiles()
        }
    }

    private func obey(_ lost: LostFiles, _ bound: [ObjectIdentifier: Descriptor]) {
        guard !isEnding else { return }
        for set in Array(sets.values) {
            let sought = set.sockets.filter { socket in
                socket.descriptor.map { bound[ObjectIdentifier(socket)] === $0 } ?? false
            }
            if machine(set.app).isAlive { mark(sought, of: set.app, lost) } else { bindAgain(sought, of: set, lost) }
        }
        if !lost.gone.isEmpty { arrangeRetry() }
    }

    private func bindAgain(_ sought: [ListeningSocket], of set: SocketSet, _ lost: LostFiles) {
        for socket in sought { socket.isUnreached = false }
        let unreached = sought.filter { $0.file.map(lost.gone.contains) ?? false }
        guard !unreached.isEmpty else { return }
        for socket in unreached {
            close(socket)
            bind(socket, of: set.app)
        }
        look(set)
    }

    private func mark(_ sought: [ListeningSocket], of app: AppRuntime, _ lost: LostFiles) {
        for socket in sought {
            let isUnreached = socket.file.map(lost.missing.contains) ?? false
            guard socket.isUnreached != isUnreached else { continue }
            socket.isUnreached = isUnreached
            tellPolicies(app)
            if isUnreached { note(app, .socketNotBound, text: lostFileTrouble(socket, of: app)) }
        }
    }

    /// Binds the sockets of an app again that has ended, if their files were gone while it ran.
    func bindUnreached(_ set: SocketSet, _ machine: AppMachine) {
        guard !machine.isAlive, set.sockets.contains(where: \.isUnreached) else { return }
        let own = Set(files(of: set.app))
        seekLostFiles { own.contains($0) }
    }

    func lostFileTrouble(_ socket: ListeningSocket, of app: AppRuntime) -> String {
        "is not reached by clients at \(socket.label), since the file of the socket is gone: ‘torpor restart "
            + "\(app.name)’ binds it again"
    }

    /// The sockets (``SocketSpecification/identity``) of the running app whose files were gone when torpord last
    /// looked.
    package func unreached(of app: AppRuntime) -> Set<String> {
        Set(sockets(of: app).filter(\.isUnreached).map(\.specification.identity))
    }
}
