// SPDX-License-Identifier: Apache-2.0

import Engine
import Lifecycle
import Linux
import TransferProtocol
import Transfers

/// What is on the disk of transfers that are not over: `STATE/transfers/APP`, which belongs to the app's user.
extension AppTransfers {
    /// Where those of all apps are.
    var root: String { supervisor.runtime.state + "/transfers" }

    /// Where those of an app are.
    func parts(of app: String) -> DataPlace { DataPlace(root: root, app: app) }

    /// Removes what is there of its file.
    func discardPart(of transfer: Transfer) {
        if let helper = helpers[transfer.app] { return helper.send(.discard(id: transfer.id)) }
        let place = parts(of: transfer.app)
        let names = ["\(transfer.id).part", "\(transfer.id).done"].map { FileName($0) }
        disk.ask(
            { _ = try? place.acting { folder throws(Errno) in for name in names { try? folder.remove(name) } } },
            { _ in }
        )
    }

    /// Removes what belongs to no transfer: a process or a torpord was killed before it could.
    ///
    /// Not while a process of the app has transfers that this one does not know of yet.
    func sweepParts(of app: String) {
        guard helpers[app] == nil, !starting.contains(app) else { return }
        let (place, known) = (parts(of: app), queue.ids(of: app))
        disk.ask({ place.removeParts { !known.contains($0) } }, { _ in })
    }

    /// The same for all apps, before any process is there. What is of apps that the configuration does not have stays, as
    /// their other files do.
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
    /// Names that are looked at: an app may have made others in its folder.
    private static let mostNames = 1 << 16

    /// Removes the files of some transfers, by their numbers.
    func removeParts(where isOver: (Int64) -> Bool) {
        guard File.exists(path) else { return }
        _ = try? acting { folder throws(Errno) in
            for name in try folder.names(atMost: Self.mostNames) {
                if let id = Self.transfer(ofFile: name.text), isOver(id) { try? folder.remove(name) }
            }
        }
    }

    /// The transfer that a file is of: `ID.part`, or `ID.done`, which says how it ended; nil for other files.
    static func transfer(ofFile name: String) -> Int64? {
        guard name.hasSuffix(".part") || name.hasSuffix(".done") else { return nil }
        let digits = name.utf8.dropLast(5)
        guard digits.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        return Int64(Substring(digits))
    }
}
