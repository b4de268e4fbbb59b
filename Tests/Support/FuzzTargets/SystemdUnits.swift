// SPDX-License-Identifier: Apache-2.0

import Importing

/// A service of systemd, and what stands beside it.
enum SystemdUnits: FuzzedParser {
    static let nanosecondsPerByte = 40_000

    static func run(_ bytes: [UInt8]) throws(Finding) {
        try Imports.run(
            bytes,
            as: .systemd,
            named: ["app.service", "app.socket", "app.timer", "app.service.d/10.conf", "environment"]
        )
    }
}
