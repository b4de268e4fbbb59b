// SPDX-License-Identifier: Apache-2.0

import Importing

/// An ecosystem file of PM2, in JSON or YAML.
enum PM2Files: FuzzedParser {
    static let nanosecondsPerByte = 40_000

    static func run(_ bytes: [UInt8]) throws(Finding) {
        try Imports.run(bytes, as: .pm2, named: ["ecosystem.json"])
    }
}
