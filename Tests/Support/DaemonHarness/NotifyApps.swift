// SPDX-License-Identifier: Apache-2.0

import Linux
import Testing
import TorporAPI

/// Programs that speak sd_notify.
package enum NotifyApps {
    package static let head = """
        [apps.web]
        exec = ["/usr/bin/python3", "-S", "@D/app.py"]
        launch = "on-demand"
        ready = "notify"
        restart = "never"

        """

    /// Does what files in its folder tell it: `do.<anything>` is Python, run once in the order of names.
    package static let obedient = """
        import glob, tp
        from tp import *
        tp.on("SIGTERM", lambda: tp.os._exit(0))
        tp.record("up")
        done = set()
        while True:
            for name in sorted(glob.glob(tp.HERE + "/do.*")):
                if name not in done and not name.endswith(".tmp"):
                    done.add(name)
                    exec(open(name).read())
                    tp.record("did " + name[len(tp.HERE) + 4:])
            tp.time.sleep(0.003)
        """
}

extension Daemon {
    /// Has the obedient app run this Python, and waits until it has.
    package func tell(_ name: String, _ python: String, app: String = "web") throws {
        try order(name, python)
        try waitForRecord(app, "did \(name)")
    }

    /// Has the obedient app run this Python, and does not wait: the app may be stopped before it can record that it has.
    package func order(_ name: String, _ python: String) throws {
        let path = directory + "/do." + name
        try File.write(path + ".tmp", python)
        try File.rename(path + ".tmp", path)
    }

    /// Starts the app without waiting until it is ready.
    package func launch(_ app: String = "web") throws {
        _ = try verb(.start, app) { $0.wait = false }
        try waitForRecord(app, "up")
    }
}
