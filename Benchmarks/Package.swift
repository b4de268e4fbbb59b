// swift-tools-version: 6.2

import PackageDescription

/// Measurements, apart from the product so that nothing of them is ever linked into it.
/// `make bench`, or `swift run -c release --package-path Benchmarks micro`
let package = Package(
    name: "torpor-benchmarks",
    dependencies: [.package(name: "torpor", path: "..")],
    targets: [
        .executableTarget(name: "bench", dependencies: [.product(name: "TorporAPI", package: "torpor")]),
        .executableTarget(name: "micro", dependencies: [.product(name: "Lifecycle", package: "torpor")]),
    ],
    swiftLanguageModes: [.v6]
)
