// SPDX-License-Identifier: Apache-2.0

import Importing

/// A Procfile, and .env.
enum Procfiles: FuzzedParser {
    static let nanosecondsPerByte = 40_000

    static func run(_ bytes: [UInt8]) throws(Finding) {
        try Imports.run(bytes, as: .procfile, named: ["Procfile", ".env"])
    }
}
