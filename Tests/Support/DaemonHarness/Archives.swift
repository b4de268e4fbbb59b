// SPDX-License-Identifier: Apache-2.0

import Linux

extension Daemon {
    /// Where an archive of an app is.
    package func archive(_ name: String = "current", of app: String = "web") -> String {
        directory + "/s/archives/\(app)/\(name)"
    }

    /// Puts an archive there as if the app had saved it.
    package func plant(_ text: String, as name: String = "current", of app: String = "web") throws {
        try File.makeDirectories(directory + "/s/archives/" + app)
        try File.replace(archive(name, of: app), Array(text.utf8))
    }
}
