// SPDX-License-Identifier: Apache-2.0

import Engine
package import EventLoop
import Linux
package import Store

/// Which files of the store were set aside in the last days. The files themselves are the record, so that a torpord
/// that is started later says it too: until somebody removes or moves them, or for a week.
package final class StoreLosses {
    private let database: String
    private let disk: BackgroundWorker
    private var known: [SetAsideFile] = []
    /// Files that were set aside since the look that is under way began, which it may have missed.
    private var added: [SetAsideFile] = []
    private var isLooking = false

    private static let days: Int64 = 7

    package init(_ loop: EventLoop, store database: String) {
        self.database = database
        disk = BackgroundWorker(loop, named: "losses")
    }

    package func add(_ file: SetAsideFile) {
        known.append(file)
        if isLooking { added.append(file) }
    }

    /// Looks for the files in the background, then calls `then`: at once if another look is under way.
    package func look(_ then: @escaping () -> Void) {
        guard !isLooking else { return then() }
        isLooking = true
        let (database, earliest) = (database, Self.earliest)
        disk.ask({ SetAsideFile.list(of: database, since: earliest) }) { [weak self] (found: [SetAsideFile]?) in
            if let self {
                if let found { self.known = found + self.added.filter { !found.contains($0) } }
                (self.isLooking, self.added) = (false, [])
            }
            then()
        }
    }

    /// What may be lost, and where the file is; nil if there is nothing to say.
    package var sentence: String? {
        guard let file = known.last(where: { $0.at >= Self.earliest }) else { return nil }
        let cause =
            switch file.cause {
            case .damaged: "was damaged"
            case .foreign: "was another program's"
            case .newer: "was written by a later torpord"
            }
        let end = file.at + Self.days * 86_400_000_000
        return
            "\(database) \(cause), and a new one was begun at \(Self.minute(file.at)): what people had asked of apps, "
            + "their answers, mail, timers and history may be lost: look through ‘torpor list’ and ‘torpor permissions’ "
            + "(‘torpor events’ says what could be read); the old one is \(file.path): remove it, or restore a copy, "
            + "and this is no longer said (at the latest after \(Self.minute(end)))"
    }

    private static var earliest: Int64 { Clock.realtimeMicroseconds() - days * 86_400_000_000 }

    private static func minute(_ microseconds: Int64) -> String {
        let text = TimeStamp.string(microseconds: microseconds)
        return "\(text.prefix(10)) \(text.dropFirst(11).prefix(5)) UTC"
    }
}
