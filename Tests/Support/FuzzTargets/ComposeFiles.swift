// SPDX-License-Identifier: Apache-2.0

import Importing

/// A compose file, and .env.
enum ComposeFiles: FuzzedParser {
    static let nanosecondsPerByte = 40_000

    static func run(_ bytes: [UInt8]) throws(Finding) {
        try Imports.run(bytes, as: .compose, named: ["compose.yaml", ".env", "web.env"])
    }
}
