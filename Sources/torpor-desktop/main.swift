// SPDX-License-Identifier: Apache-2.0

import EventLoop
import Linux
import TorporAPI

let usage = """
    Usage: torpor-desktop [--version] [--help]

    Shows alerts of apps in a person's session, and follows which window has the focus and which processes play
    sound. torpord starts it, with a socket as descriptor 3.

      --version  print the version
    """

func fail(_ sentence: String, _ code: Int32) -> Never {
    ThisProcess.complain("torpor-desktop: \(sentence)")
    ThisProcess.exit(code)
}

if CommandLine.arguments.contains("--help") {
    print(usage)
    ThisProcess.exit(0)
}
if CommandLine.arguments.contains("--version") {
    print("torpor-desktop \(TorporVersion.text)")
    ThisProcess.exit(0)
}
if CommandLine.arguments.count > 1 {
    fail("there is no option \(CommandLine.arguments[1]): see torpor-desktop --help", 2)
}
guard Descriptor.isOpen(DesktopService.socket) else {
    fail("descriptor \(DesktopService.socket) must be a socket: torpord starts this program", 2)
}
do throws(Errno) {
    try Signal.ignore(Signal.pipe)
    try Descriptor.setCloseOnExec(DesktopService.socket)
    try Confinement.keepMemoryPrivate()
    let session = Session()
    // This process connects to sockets, some of them abstract, and looks for socket files in one folder. It executes
    // only pw-dump.
    _ = try Confinement.confine(
        readable: session.readable,
        writable: [],
        executable: session.executable,
        reachingAbstractSockets: true
    )
    let service = try DesktopService(EventLoop(), session)
    // The event loop's callbacks hold `service` weakly, so keep it alive here.
    defer { withExtendedLifetime(service) {} }
    try service.run()
} catch {
    fail("\(error)", 1)
}
