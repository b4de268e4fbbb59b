// SPDX-License-Identifier: Apache-2.0

import Glibc
import Testing

/// Takes a signal, on whatever thread it comes. A closure in `main` would belong to the main thread, and trap on others.
private func passOver(_ number: Int32) {}

/// Where the bundle of all tests begins. With an entry point of its own SwiftPM need not search the tests for XCTest's,
/// for which every module would be indexed: an eighth of the whole build.
@main struct TestBundle {
    static func main() async {
        // Without these words `swift test` asks for XCTest's tests, of which there are none.
        let arguments = CommandLine.arguments
        guard let option = arguments.firstIndex(of: "--testing-library"),
            arguments.dropFirst(option + 1).first == "swift-testing"
        else {
            let advice = "Run the tests with make test, or with swift test --enable-swift-testing --disable-xctest.\n"
            _ = write(STDERR_FILENO, advice, advice.utf8.count)
            exit(1)
        }
        // A test that writes to a program that has gone fails; by SIGPIPE all that follow it would be lost. Not ignored: that
        // would be inherited.
        signal(SIGPIPE, passOver)
        await Testing.__swiftPMEntryPoint() as Never
    }
}
