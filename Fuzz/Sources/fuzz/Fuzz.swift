// SPDX-License-Identifier: Apache-2.0

import FuzzTargets
import Glibc

/// The target that this process runs: `fuzz TARGET [options and folders of libFuzzer]`, `fuzz --list`.
nonisolated(unsafe) private var target = FuzzTarget.json

/// libFuzzer calls it first; it takes the name of the target out of the arguments.
@_cdecl("LLVMFuzzerInitialize")
public func initialise(
    _ count: UnsafeMutablePointer<Int32>,
    _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>>
) -> Int32 {
    let words = arguments.pointee
    let word = count.pointee > 1 ? words[1].map { String(cString: $0) } : nil
    if word == "--list" {
        for target in FuzzTarget.allCases { print(target.rawValue) }
        exit(0)
    }
    guard let word, let chosen = FuzzTarget(rawValue: word) else {
        let names = FuzzTarget.allCases.map(\.rawValue).joined(separator: ", ")
        say("name a target: fuzz TARGET [options of libFuzzer] [folders], where TARGET is one of \(names)")
        exit(2)
    }
    target = chosen
    for index in 1..<Int(count.pointee) { words[index] = words[index + 1] }
    count.pointee -= 1
    return 0
}

/// libFuzzer calls it with each input. What is found ends the process, after which libFuzzer keeps the input.
@_cdecl("LLVMFuzzerTestOneInput")
public func test(_ bytes: UnsafePointer<UInt8>?, _ count: Int) -> Int32 {
    do throws(Finding) {
        try target.run(Array(UnsafeBufferPointer(start: bytes, count: count)))
    } catch {
        say("FOUND in \(target.rawValue): \(error)")
        abort()
    }
    return 0
}

private func say(_ sentence: String) {
    let line = sentence + "\n"
    _ = write(STDERR_FILENO, line, line.utf8.count)
}
