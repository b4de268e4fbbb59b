// SPDX-License-Identifier: Apache-2.0

import Engine
import Lifecycle
import Linux
import TransferProtocol
import Transfers

/// The partial files of transfers that have not ended. They are in `STATE/transfers/APP`, which belongs to the app's
/// user.
extension AppTransfers {
    /// The folder that contains the transfer folders of all apps.
    var root: String { supervisor.runtime.state + "/transfers" }

    /// The folder for partial files of one app.
    func parts(of app: String) -> DataPlace { DataPlace(root: root, app: app) }

    /// Removes the partial files of a transfer that has not ended.
    func discardPart(of transfer: Transfer) {
        if let helper = helpers[transfer.app] { return helper.send(.discard(id: transfer.id)) }
        let place = parts(of: transfer.app)
        let names = ["\(transfer.id).part", "\(transfer.id).done"].map { FileName($0) }
        disk.ask(
            { _ = try? place.acting { folder throws(Errno) in for name in names { try? folder.remove(name) } } },
            { _ in }
        )
    }

    /// Removes files that belong to no transfer. They were left by a helper or a torpord that was killed.
    ///
    /// Does nothing while the app has a helper, which may have transfers that torpord does not know of yet.
    func sweepParts(of app: String) {
        guard helpers[app] == nil, !starting.contains(app) else { return }
        let (place, known) = (parts(of: app), queue.ids(of: app))
        disk.ask({ place.removeParts { !known.contains($0) } }, { _ in })
    }

    /// Removes files that belong to no transfer, for all apps, before any helper is started. Files of apps that are no
    /// longer in the configuration are kept, like the other data of these apps.
    func sweepAllParts() {
        let known = Dictionary(apps.map { ($0.name, queue.ids(of: $0.name)) }, uniquingKeysWith: { $1 })
        let root = root
        disk.ask {
            for app in DataPlace.apps(in: root) {
                guard let known = known[app] else { continue }
                DataPlace(root: root, app: app).removeParts { !known.contains($0) }
            }
        } _: { _ in
        }
    }
}

extension DataPlace {
    /// The most file names that are read from a folder. There is a limit because an app may have made any number of
    /// other files in its folder.
    private static let mostNames = 1 << 16

    /// Removes the files of each transfer for whose number `isOver` returns true.
    func removeParts(where isOver: (Int64) -> Bool) {
        guard File.exists(path) else { return }
        _ = try? acting { folder throws(Errno) in
            for name in try folder.names(atMost: Self.mostNames) {
                if let id = Self.transfer(ofFile: name.text), isOver(id) { try? folder.remove(name) }
            }
        }
    }

    /// The number of the transfer that a file belongs to, by the file's name: `ID.part`, or `ID.done`, which records
    /// how the transfer has ended. Nil for other files.
    static func transfer(ofFile name: String) -> Int64? {
        guard name.hasSuffix(".part") || name.hasSuffix(".done") else { return nil }
        let digits = name.utf8.dropLast(5)
        guard digits.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        return Int64(Substring(digits))
    }
}
