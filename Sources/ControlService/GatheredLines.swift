// SPDX-License-Identifier: Apache-2.0

import TorporAPI
import Varlink

/// The lines of a log for a client that takes a single reply: the newest ones that fit. Each page is turned into JSON
/// when it is added, so that the event loop is never busy for long, and so that the bytes of the reply are counted: an
/// app may write control characters, each of which takes six bytes.
struct GatheredLines {
    private struct Page {
        /// The lines as JSON objects, each with a comma behind it.
        var text: [UInt8]
        /// For each line, the offset in `text` behind it.
        var ends: [Int]
        /// The offset of the first line that is sent.
        var start = 0

        var size: Int { text.count - start }
    }

    private let most: Int
    private var pages: [Page] = []
    /// The size of all lines, in bytes.
    private var size = 0
    /// Whether older lines were left out.
    var isCut = false

    /// - Parameter most: the maximum size of the lines, in bytes of their JSON.
    init(most: Int) { self.most = most }

    /// Appends newer lines, and leaves out the oldest lines that no longer fit.
    mutating func append(_ lines: [LogLine]) {
        guard !lines.isEmpty else { return }
        var writer = JSONWriter()
        var ends: [Int] = []
        ends.reserveCapacity(lines.count)
        for line in lines {
            line.append(to: &writer)
            writer.append(UInt8(ascii: ","))
            ends.append(writer.count)
        }
        pages.append(Page(text: writer.withBytes { [UInt8]($0) }, ends: ends))
        size += writer.count
        while size > most { leaveOut(size - most) }
    }

    /// Leaves out the first lines of the first page: at least `excess` bytes, or the whole page.
    private mutating func leaveOut(_ excess: Int) {
        isCut = true
        let page = pages[0]
        guard page.size > excess, let end = page.ends.first(where: { $0 - page.start >= excess }),
            end < page.text.count
        else {
            size -= pages.removeFirst().size
            return
        }
        size -= end - page.start
        pages[0].start = end
    }

    /// Appends the results of the call.
    func append(to writer: inout JSONWriter, cursor: String) {
        writer.append("{\"lines\":[" as StaticString)
        for (index, page) in pages.enumerated() {
            let end = index < pages.count - 1 ? page.text.count : page.text.count - 1
            page.text.withUnsafeBytes { text in
                writer.append(written: UnsafeRawBufferPointer(rebasing: text[page.start..<end]))
            }
        }
        writer.append("],\"cursor\":" as StaticString)
        writer.append(cursor)
        writer.append(",\"more\":false,\"truncated\":" as StaticString)
        writer.append(isCut)
        writer.append("}" as StaticString)
    }
}
