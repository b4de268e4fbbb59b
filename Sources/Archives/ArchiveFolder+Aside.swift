// SPDX-License-Identifier: Apache-2.0

import Glibc
import Linux
package import SystemPackage

/// The archives that were set aside: `set-aside`, then `set-aside.2`, `set-aside.3` and so on. While any is left, no
/// number is given twice, so that a path in an old event leads to the archive that the event is about, or to none.
extension ArchiveFolder {
    /// The most archives that were set aside.
    static let mostAside = 4
    /// The most bytes of all archives that were set aside. The first and the newest may have more.
    static let mostBytesAside: UInt64 = 64 << 20
    /// How long the first of them is kept if there are too many, in microseconds: 30 days.
    static let timeAside: Int64 = 30 * 24 * 3600 * 1_000_000

    /// What became of an archive that was set aside.
    package struct Aside: Hashable, Sendable {
        /// Its path now.
        package let path: String
        /// Paths of earlier ones that were removed because there were too many.
        package let removed: [String]
    }

    /// An archive that was set aside.
    private struct Kept {
        let number: Int
        let found: Found
        /// When it was set aside, in microseconds since 1970: the time of the renaming, which no program can set.
        let since: Int64
    }

    /// The archives that were set aside, the first one first. Reads only the directory, so it does not block on a disk
    /// that hangs.
    package var foundAside: [Found] { keptAside.map(\.found) }

    private var numbersAside: [Int] { ((try? File.list(path)) ?? []).compactMap(Self.numberAside).sorted() }

    private var keptAside: [Kept] {
        numbersAside.compactMap { number in
            let file = path + "/" + Self.nameAside(number)
            guard let found = Self.found(file), let status = try? File.status(file, followLinks: false) else {
                return nil
            }
            return Kept(number: number, found: found, since: status.changedNanoseconds / 1000)
        }
    }

    private static func nameAside(_ number: Int) -> String { number == 1 ? "set-aside" : "set-aside.\(number)" }

    private static func numberAside(_ name: String) -> Int? {
        if name == nameAside(1) { return 1 }
        guard let text = name.split(separator: ".", maxSplits: 1).last, let number = UInt32(text), number > 1,
            name == nameAside(Int(number))
        else { return nil }
        return Int(number)
    }

    // MARK: What waits for the disk

    /// Renames the current archive, so that no launch gets it. In place of an equal one that was set aside before it is
    /// kept once. Returns nil if there is no current archive, which is no error.
    ///
    /// If there are too many then, one after the other is removed: the first, if it was set aside long before `now`, or
    /// else the second. The first of a trouble is the one that an app wrote before the trouble began.
    @discardableResult
    package func setAside(now: Int64 = Clock.realtimeMicroseconds()) throws(Errno) -> Aside? {
        removeMirror()
        guard let new = found else { return nil }
        let number = keptAside.first { Self.areEqual(new, $0.found) }?.number ?? (numbersAside.last ?? 0) + 1
        let target = path + "/" + Self.nameAside(number)
        do throws(Errno) {
            try File.rename(current, target)
        } catch {
            if error == .noSuchFileOrDirectory || error == .notDirectory { return nil }
            throw error
        }
        try Self.synchronise(path)
        return Aside(path: target, removed: removeSurplus(beside: number, now: now))
    }

    private func removeSurplus(beside number: Int, now: Int64) -> [String] {
        var kept = keptAside
        var removed: [String] = []
        while kept.count > Self.mostAside
            || kept.count > 2 && kept.reduce(0, { $0 + $1.found.bytes }) > Self.mostBytesAside
        {
            let isOld = kept[0].number != number && now - kept[0].since > Self.timeAside
            let index = isOld ? 0 : kept[1].number == number ? 2 : 1
            let surplus = kept.remove(at: index).found.path
            // One that cannot be removed is tried again when the next one is set aside.
            if (try? File.remove(surplus)) != nil { removed.append(surplus) }
        }
        return removed
    }

    /// Whether two archives have the same bytes; no if one of them cannot be read. Opening with O_NONBLOCK does not wait
    /// for a lease of the app's user, who owns them.
    private static func areEqual(_ one: Found, _ other: Found) -> Bool {
        guard one.bytes == other.bytes, let first = try? File.open(one.path, [.read, .noFollow, .nonBlocking]),
            let second = try? File.open(other.path, [.read, .noFollow, .nonBlocking])
        else { return false }
        let size = 64 << 10
        return withUnsafeTemporaryAllocation(byteCount: 2 * size, alignment: 16) { buffer in
            let left = UnsafeMutableRawBufferPointer(rebasing: buffer[..<size])
            let right = UnsafeMutableRawBufferPointer(rebasing: buffer[size...])
            var offset: UInt64 = 0
            while true {
                guard let count = try? File.read(first.raw, at: offset, into: left),
                    let same = try? File.read(second.raw, at: offset, into: right), count == same,
                    memcmp(left.baseAddress!, right.baseAddress!, count) == 0
                else { return false }
                if count < size { return true }
                offset += UInt64(count)
            }
        }
    }
}
