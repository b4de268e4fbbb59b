// SPDX-License-Identifier: Apache-2.0

/// Paths of the files of a process, on the stack: torpord reads several of these files for each change of an app's
/// state, and to make a `String` of the path takes as long as to parse the file.
enum ProcPath {
    /// Calls `body` with the path `/proc/PID` or `/proc/PID/task/TASK`, followed by `file`, such as `/stat`.
    @inline(__always)
    static func with<T>(
        _ pid: Int32,
        task: Int32? = nil,
        _ file: StaticString,
        _ body: (UnsafePointer<CChar>) throws(Errno) -> T
    ) throws(Errno) -> T {
        // Two numbers of up to 11 characters, 12 characters between them, and the file's name.
        try withUnsafeTemporaryAllocation(byteCount: 96, alignment: 8) { buffer throws(Errno) -> T in
            let start = buffer.baseAddress!.assumingMemoryBound(to: UInt8.self)
            var end = append("/proc/", to: start)
            end = append(pid, to: end)
            if let task {
                end = append("/task/", to: end)
                end = append(task, to: end)
            }
            end = append(file, to: end)
            end.pointee = 0
            return try body(UnsafeRawPointer(start).assumingMemoryBound(to: CChar.self))
        }
    }

    private static func append(
        _ text: StaticString,
        to place: UnsafeMutablePointer<UInt8>
    ) -> UnsafeMutablePointer<UInt8> {
        place.update(from: text.utf8Start, count: text.utf8CodeUnitCount)
        return place + text.utf8CodeUnitCount
    }

    private static func append(_ number: Int32, to place: UnsafeMutablePointer<UInt8>) -> UnsafeMutablePointer<UInt8> {
        var place = place
        if number < 0 {
            place.pointee = UInt8(ascii: "-")
            place += 1
        }
        let magnitude = number.magnitude
        var power: UInt32 = 1
        while magnitude / power >= 10 { power *= 10 }
        while power > 0 {
            place.pointee = UInt8(ascii: "0") &+ UInt8(truncatingIfNeeded: magnitude / power % 10)
            place += 1
            power /= 10
        }
        return place
    }
}
