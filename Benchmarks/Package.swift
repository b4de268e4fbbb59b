// swift-tools-version: 6.2
// SPDX-License-Identifier: Apache-2.0

import PackageDescription

let innerModules = [
    "EventLoop", "KeeperProtocol", "Lifecycle", "Linux", "Notify", "PolicyHost", "Recovery", "TorporAPI", "Varlink",
    "VarlinkServer",
]

/// Benchmarks, in a package of their own so that the product never links them.
/// `make bench`, `make bench-micro`
let package = Package(
    name: "torpor-benchmarks",
    dependencies: [.package(name: "torpor", path: "..")],
    targets: [
        .executableTarget(
            name: "bench",
            dependencies: [.product(name: "Linux", package: "torpor"), .product(name: "TorporAPI", package: "torpor")]
        ),
        // The least cost of a command in Swift, linked like torpor.
        .executableTarget(name: "hello", linkerSettings: [.unsafeFlags(["-static-stdlib"])]),
        .executableTarget(name: "micro", dependencies: innerModules.map { .product(name: $0, package: "torpor") }),
    ],
    swiftLanguageModes: [.v6]
)
