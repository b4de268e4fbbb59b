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

    /// PipeWire's tool that lists streams of sound.
    let pwDump: String
    /// `/dev/null`, which cannot be opened later.
    let none = try? File.open("/dev/null", .readWrite)

    init() {
        folder = Self.path("XDG_RUNTIME_DIR") ?? "/run/user/\(Users.effectiveUID)"
        bus = ThisProcess.environment("DBUS_SESSION_BUS_ADDRESS") ?? "unix:path=\(folder)/bus"
        pwDump =
            Self.path("TORPOR_PW_DUMP")
            ?? ["/usr/bin/pw-dump", "/usr/local/bin/pw-dump"].first(where: File.isExecutable) ?? "/usr/bin/pw-dump"
    }

    private static func path(_ variable: String) -> String? {
        ThisProcess.environment(variable).flatMap { $0.hasPrefix("/") ? $0 : nil }
    }

    /// What is read: also libraries and the configuration of pw-dump.
    var readable: [String] {
        let own = (Self.path("XDG_CONFIG_HOME") ?? (Self.path("HOME") ?? "") + "/.config") + "/pipewire"
        return [
            folder, cookies, own, "/etc/ld.so.cache", "/etc/nsswitch.conf", "/etc/passwd", "/etc/pipewire", "/usr/lib",
            "/usr/lib64", "/usr/local/lib", "/usr/share/pipewire",
        ]
    }

    /// What is executed: pw-dump, and what loads it.
    var executable: [String] {
        [pwDump] + ["/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1", "/lib/ld-linux-riscv64-lp64d.so.1"]
    }
}
