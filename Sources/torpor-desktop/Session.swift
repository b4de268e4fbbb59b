// SPDX-License-Identifier: Apache-2.0

import Linux

/// Where the session's programs are found.
struct Session {
    /// The folder of the user's sockets.
    let folder: String
    /// The address of the session's bus.
    let bus: String
    /// The sockets that the environment names.
    let sway = Session.path("SWAYSOCK")
    let i3 = Session.path("I3SOCK")
    /// The X server, for i3.
    let display = ThisProcess.environment("DISPLAY") ?? ":0"
    /// The file of the X server's cookies.
    let cookies = Session.path("XAUTHORITY") ?? (Session.path("HOME") ?? "") + "/.Xauthority"

    init() {
        folder = Self.path("XDG_RUNTIME_DIR") ?? "/run/user/\(Users.effectiveUID)"
        bus = ThisProcess.environment("DBUS_SESSION_BUS_ADDRESS") ?? "unix:path=\(folder)/bus"
    }

    private static func path(_ variable: String) -> String? {
        ThisProcess.environment(variable).flatMap { $0.hasPrefix("/") ? $0 : nil }
    }

    /// What is read.
    var readable: [String] { [folder, cookies] }
}
