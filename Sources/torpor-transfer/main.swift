// SPDX-License-Identifier: Apache-2.0

import CCurl
import Linux
import TorporAPI

func fail(_ sentence: String, _ code: Int32) -> Never {
    ThisProcess.complain("torpor-transfer: \(sentence)")
    ThisProcess.exit(code)
}

if CommandLine.arguments.contains("--help") {
    print(Options.usage)
    ThisProcess.exit(0)
}
if CommandLine.arguments.contains("--version") {
    print("torpor-transfer \(TorporVersion.text)")
    ThisProcess.exit(0)
}

let options: Options
do throws(Options.Mistake) {
    options = try Options(CommandLine.arguments.dropFirst())
} catch {
    fail(error.sentence, 2)
}
guard Descriptor.isOpen(TransferService.socket) else {
    fail("descriptor \(TransferService.socket) must be a socket: torpord starts this program", 2)
}
do throws(Errno) {
    try Signal.ignore(Signal.pipe)
    try Descriptor.setCloseOnExec(TransferService.socket)
    try Confinement.keepMemoryPrivate()
    do throws(Errno) {
        try File.makeDirectory(options.parts, mode: 0o700)
    } catch  where error == .fileExists {}
    // Confine the process before libcurl starts threads, because Landlock would not apply to them.
    if !options.isUnconfined {
        _ = try Confinement.confine(
            readable: Confinement.networkFiles + options.readable,
            writable: options.roots + [options.parts]
        )
    }
    guard curl_global_init(Int(CURL_GLOBAL_ALL)) == CURLE_OK else { fail("libcurl cannot be started", 1) }
    try TransferService(options).run()
} catch {
    fail("\(error)", 1)
}
