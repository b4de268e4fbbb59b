// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

/// Copies a program by one of its own: a copy that this process writes is open for writing in every child that another
/// test forks meanwhile, and executing it fails then (ETXTBSY).
package func copyProgram(_ source: String, to place: String) throws {
    let copy = try Process.run(URL(fileURLWithPath: "/bin/cp"), arguments: [source, place])
    copy.waitUntilExit()
    try #require(copy.terminationStatus == 0, "cp \(source) \(place)")
}
