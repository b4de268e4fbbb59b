// SPDX-License-Identifier: Apache-2.0

import Importing

/// A file with command lines of docker run.
enum DockerRuns: FuzzedParser {
    static let nanosecondsPerByte = 40_000

    static func run(_ bytes: [UInt8]) throws(Finding) {
        try Imports.run(bytes, as: .dockerRun, named: ["run.sh"])
    }
}
