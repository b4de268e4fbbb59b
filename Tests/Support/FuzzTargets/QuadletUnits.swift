// SPDX-License-Identifier: Apache-2.0

import Importing

/// A container of Quadlet, and what stands beside it.
enum QuadletUnits: FuzzedParser {
    static let nanosecondsPerByte = 40_000

    static func run(_ bytes: [UInt8]) throws(Finding) {
        try Imports.run(
            bytes,
            as: .quadlet,
            named: ["app.container", "a.pod", "a.network", "a.volume", "a.build", "app.container.d/10.conf"]
        )
    }
}
