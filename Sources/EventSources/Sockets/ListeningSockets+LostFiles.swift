// SPDX-License-Identifier: Apache-2.0

import Configuration
package import Engine
import Lifecycle

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
    /// gets another one only at its next launch: its socket is marked. A background thread looks, because a lookup may
    /// block.
    package func seekLostFiles() { seekLostFiles { _ in true } }

    func seekLostFiles(where isSought: (SocketFile) -> Bool) {
        guard !isSeeking else {
            seeksAgain = true
            return
        }
        var sought: Set<SocketFile> = []
        for set in sets.values { sought.formUnion(files(of: set.app).filter(isSought)) }
        guard !sought.isEmpty else { return }
        isSeeking = true
        let (files, findLost) = (sought, findLost)
        fileLookups.ask {
            findLost(files)
        } _: { [weak self] lost in
            guard let self else { return }
            isSeeking = false
            obey(lost, among: files)
            guard seeksAgain, !isEnding else { return }
            seeksAgain = false
            seekLostFiles()
        }
    }

    private func obey(_ lost: LostFiles, among sought: Set<SocketFile>) {
        guard !isEnding else { return }
        for set in Array(sets.values) {
            if machine(set.app).isAlive { mark(set, lost, among: sought) } else { bindAgain(set, lost) }
        }
        if !lost.gone.isEmpty { arrangeRetry() }
    }

    private func bindAgain(_ set: SocketSet, _ lost: LostFiles) {
        let unreached = set.sockets.filter { $0.file.map(lost.gone.contains) ?? false }
        guard !unreached.isEmpty else { return }
        for socket in unreached {
            close(socket)
            bind(socket, of: set.app)
        }
        look(set)
    }

    private func mark(_ set: SocketSet, _ lost: LostFiles, among sought: Set<SocketFile>) {
        for socket in set.sockets {
            guard let file = socket.file, sought.contains(file) else { continue }
            let isUnreached = lost.missing.contains(file)
            guard socket.isUnreached != isUnreached else { continue }
            socket.isUnreached = isUnreached
            tellPolicies(set.app)
            if isUnreached { note(set.app, .socketNotBound, text: lostFileTrouble(socket, of: set.app)) }
        }
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
