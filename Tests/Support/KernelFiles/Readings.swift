// SPDX-License-Identifier: Apache-2.0

import Foundation
import Linux

/// How often a file is read, from the moment on in which this is made.
public final class Readings {
    private let inotify: Inotify
    private let name: String
    private var seen = 0

    init(of name: String, in folder: String) throws {
        inotify = try Inotify()
        self.name = name
        // IN_CLOSE_NOWRITE. Of the folder, since the file is replaced by another one at each change.
        _ = try Inotify.watch(inotify.descriptor.raw, folder, Inotify.Events(rawValue: 0x10))
    }

    /// So often by now.
    public var count: Int {
        while true {
            let news = inotify.read()
            if news.isEmpty { return seen }
            seen += news.count { $0.name == name }
        }
    }

    /// Waits until it was read so often.
    ///
    /// - Throws: `timedOut` when that takes too long.
    public func wait(for count: Int, within bound: Duration = .seconds(60)) throws {
        let end = Clock.monotonic() + bound
        while self.count < count {
            let left = max(.zero, end - Clock.monotonic())
            guard try Descriptor.wait(inotify.descriptor.raw, timeout: left) else { throw Errno.timedOut }
        }
    }
}
