// swift-tools-version: 6.2
// SPDX-License-Identifier: Apache-2.0

import PackageDescription

/// What a package with a policy depends on, by path: docs/policies.md. `torpor policy new` writes such a package.
let package = Package(
    name: "policy-kit",
    products: [
        .library(name: "TorporPolicyABI", targets: ["TorporPolicyABI"]),
        .library(name: "TorporPolicyKit", targets: ["TorporPolicyKit"]),
    ],
    targets: [
        .target(name: "TorporPolicyABI"),
        .target(name: "TorporPolicyKit", dependencies: ["TorporPolicyABI"]),
    ],
    swiftLanguageModes: [.v6]
)
