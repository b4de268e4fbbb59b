// swift-tools-version: 6.2
// SPDX-License-Identifier: Apache-2.0

import PackageDescription

let package = Package(
    name: "swift-notes",
    dependencies: [
        // Of a checkout elsewhere: its path.
        .package(name: "torpor", path: "../..")
    ],
    targets: [
        .executableTarget(name: "swift-notes", dependencies: [.product(name: "TorporApp", package: "torpor")])
    ],
    swiftLanguageModes: [.v6]
)
