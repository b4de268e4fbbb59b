// swift-tools-version: 6.2
// SPDX-License-Identifier: Apache-2.0

import PackageDescription

/// libFuzzer around the targets of Tests/Support/FuzzTargets, apart from the product so that nothing of it is ever linked
/// into it.
/// `make fuzz`
let package = Package(
    name: "torpor-fuzz",
    dependencies: [.package(name: "torpor", path: "..")],
    targets: [
        .executableTarget(name: "fuzz", dependencies: [.product(name: "FuzzTargets", package: "torpor")])
    ],
    swiftLanguageModes: [.v6]
)
