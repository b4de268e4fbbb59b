// SPDX-License-Identifier: Apache-2.0

import Linux

/// The addresses and paths of the session's programs.
struct Session {
    /// The folder of the user's sockets (XDG_RUNTIME_DIR).
    let folder: String
    /// The address of the session's D-Bus.
    let bus: String
    /// The window managers' sockets as the environment names them; nil if it names none.
    let sway = Session.path("SWAYSOCK")
    let i3 = Session.path("I3SOCK")
    /// The X server's display, used for i3.
    let display = ThisProcess.environment("DISPLAY") ?? ":0"
    /// The file with the X server's cookies.
    let cookies = Session.path("XAUTHORITY") ?? (Session.path("HOME") ?? "") + "/.Xauthority"

    /// The path of `pw-dump`, PipeWire's tool that lists its objects.
    let pwDump: String
    /// `/dev/null`, opened before this process confines itself: its sandbox does not allow that later. It becomes
    /// pw-dump's standard input and error.
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

    /// The paths that the sandbox allows to be read, including pw-dump's libraries and configuration.
    var readable: [String] {
        let own = (Self.path("XDG_CONFIG_HOME") ?? (Self.path("HOME") ?? "") + "/.config") + "/pipewire"
        return [
            folder, cookies, own, "/etc/ld.so.cache", "/etc/nsswitch.conf", "/etc/passwd", "/etc/pipewire", "/usr/lib",
            "/usr/lib64", "/usr/local/lib", "/usr/share/pipewire",
        ]
    }

    /// The files that the sandbox allows to be executed: pw-dump, and the dynamic loader.
    var executable: [String] {
        [pwDump] + ["/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1", "/lib/ld-linux-riscv64-lp64d.so.1"]
    }
}
