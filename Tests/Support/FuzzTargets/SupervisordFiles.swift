// SPDX-License-Identifier: Apache-2.0

import Importing

/// supervisord's configuration, and files that it includes.
enum SupervisordFiles: FuzzedParser {
    static let nanosecondsPerByte = 40_000

    static func run(_ bytes: [UInt8]) throws(Finding) {
        try Imports.run(bytes, as: .supervisord, named: ["supervisord.conf", "conf.d/one.conf", "conf.d/two.conf"])
    }
}
