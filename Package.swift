// swift-tools-version: 6.2
// SPDX-License-Identifier: Apache-2.0

import PackageDescription

// What release builds link in Swift: all load one library with Swift's runtime, which their linker makes beside them
// (packaging/link). C++'s runtime is in each that needs it: to load it would be a third of what a command takes. Only for
// release: the flags would reach the test bundle too.
let sharedRuntime: [LinkerSetting] = [
    .unsafeFlags(
        [
            "-use-ld=lld", "-Xclang-linker", "-B\(Context.packageDirectory)/packaging/link",
            "-L\(Context.packageDirectory)/packaging/link", "-Xclang-linker", "-static-libgcc",
        ],
        .when(configuration: .release)
    )
]

/// Where a module stands, what it may use and what it may not: docs/architecture.md.
let package = Package(
    name: "torpor",
    products: [
        .executable(name: "torpor", targets: ["torpor"]),
        .executable(name: "torpor-gateway", targets: ["torpor-gateway"]),
        .executable(name: "torpor-keeper", targets: ["torpor-keeper"]),
        .executable(name: "torpor-policy-host", targets: ["torpor-policy-host"]),
        .executable(name: "torpor-container", targets: ["torpor-container"]),
        .executable(name: "torpor-desktop", targets: ["torpor-desktop"]),
        .executable(name: "torpor-holding", targets: ["torpor-holding"]),
        .executable(name: "torpor-transfer", targets: ["torpor-transfer"]),
        .executable(name: "torpor-protect", targets: ["torpor-protect"]),
        .executable(name: "torpor-verbs", targets: ["torpor-verbs"]),
        .executable(name: "torpor-verify", targets: ["torpor-verify"]),
        .executable(name: "torpor-web", targets: ["torpor-web"]),
        .executable(name: "torpord", targets: ["torpord"]),
        // The policies that ship, as supervisors load them: lib…Policy.so.
        .library(name: "JetsamPolicy", type: .dynamic, targets: ["JetsamPolicy"]),
        .library(name: "MobilePolicy", type: .dynamic, targets: ["MobilePolicy"]),
        .library(name: "SchedulePolicy", type: .dynamic, targets: ["SchedulePolicy"]),
        .library(name: "ServerPolicy", type: .dynamic, targets: ["ServerPolicy"]),
        // For Benchmarks/, which counts the instructions of the inner parts; nothing else may rely on them.
        .library(name: "EventLoop", targets: ["EventLoop"]),
        .library(name: "FuzzTargets", targets: ["FuzzTargets"]),
        .library(name: "KeeperProtocol", targets: ["KeeperProtocol"]),
        .library(name: "Lifecycle", targets: ["Lifecycle"]),
        .library(name: "Linux", targets: ["Linux"]),
        .library(name: "Notify", targets: ["Notify"]),
        .library(name: "PolicyHost", targets: ["Policies", "PolicyHost", "TorporPolicyABI"]),
        .library(name: "Recovery", targets: ["Recovery"]),
        // For programs that want to know their lifecycle: docs/apps.md.
        .library(name: "TorporApp", targets: ["TorporApp"]),
        .library(name: "TorporAPI", targets: ["TorporAPI", "Varlink"]),
        .library(name: "Varlink", targets: ["Varlink"]),
        .library(name: "VarlinkServer", targets: ["VarlinkServer"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(url: "https://github.com/apple/swift-system", from: "1.8.1"),
    ],
    targets: [
        .target(name: "Alerts", dependencies: ["CalendarTime", "Permissions", "TorporAPI", "Varlink", "WireText"]),
        .target(name: "AppConnection", dependencies: ["Linux", "TorporAPI", "Varlink"]),
        .target(
            name: "Archives",
            dependencies: [
                "Configuration", "Engine", "EventLoop", "HTTPAsking", "Lifecycle", "Linux", "Processes", "TorporAPI",
                "Varlink", "VarlinkServer", "WireText",
            ]
        ),
        .target(name: "Bearer"),
        .target(name: "Bluetooth", dependencies: ["EventLoop", "Linux", "SystemBus"]),
        .target(name: "BundleSeals", dependencies: ["Bundles", "CSodium", "Linux", "WireText"]),
        .target(name: "Bundles", dependencies: ["WireText"]),
        // The parsers of torpor-keeper, torpor-policy-host and the C library, for FuzzTargets.
        .target(
            name: "CFuzzTargets",
            dependencies: ["CKeeperProtocol", "CPolicyWire"],
            path: "Tests/Support/CFuzzTargets"
        ),
        .target(name: "CKeeperProtocol"),
        .target(name: "CLinux"),
        // For torpor-transfer alone.
        .target(name: "CCurl", linkerSettings: [.linkedLibrary("curl"), .linkedLibrary("crypto")]),
        // For torpor-gateway and torpor-web alone.
        .systemLibrary(
            name: "CMicrohttpd",
            pkgConfig: "libmicrohttpd",
            providers: [.apt(["libmicrohttpd-dev"])]
        ),
        // These two are for torpor-gateway alone.
        .systemLibrary(name: "CMosquitto", pkgConfig: "libmosquitto", providers: [.apt(["libmosquitto-dev"])]),
        .systemLibrary(name: "CNATS", pkgConfig: "libnats", providers: [.apt(["libnats-dev"])]),
        // For `torpor top` alone. Not by pkg-config, whose flags for it SwiftPM refuses.
        .systemLibrary(name: "CNCurses", providers: [.apt(["libncurses-dev"])]),
        .target(name: "CPolicyWire", dependencies: ["TorporPolicyABI"]),
        // For torpor-verbs and torpor-verify alone.
        .systemLibrary(name: "CSodium", pkgConfig: "libsodium", providers: [.apt(["libsodium-dev"])]),
        .systemLibrary(name: "CSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"])]),
        .systemLibrary(name: "CSystemd", pkgConfig: "libsystemd", providers: [.apt(["libsystemd-dev"])]),
        // NDEBUG: otherwise toml++ asserts on some invalid keys instead of reporting them.
        .target(name: "CTOML", cxxSettings: [.define("NDEBUG"), .unsafeFlags(["-fno-exceptions"])]),
        // For torpor-verbs alone.
        .systemLibrary(name: "CYAML", providers: [.apt(["libyaml-dev"])]),
        // The files of the dashboard, which the compiler reads (#embed): what assets.c includes is built anew when it changes.
        .target(name: "CWebAssets", exclude: ["assets"]),
        .target(name: "CalendarTime", dependencies: ["WireText"]),
        .target(name: "CommandLinePages", dependencies: ["CalendarTime", "Linux", "TorporAPI", "WireText"]),
        .target(
            name: "Configuration",
            dependencies: [
                "Bundles", "CTOML", "CalendarTime", "Lifecycle", "Linux", "Mailbox", "Permissions", "TorporAPI",
                "TransferProtocol", "WireText",
            ]
        ),
        .target(
            name: "ControlService",
            dependencies: [
                "Archives", "Configuration", "DesktopEntries", "Engine", "EventLoop", "EventSources", "Lifecycle",
                "Linux",
                "MemoryPressure", "Notify", "Output", "Permissions", "Policies", "PolicyHost", "Processes", "Store",
                "Supervisor",
                "TorporAPI", "TorporPolicyABI", "Varlink", "VarlinkServer",
            ]
        ),
        // Whole daemons for tests, and what the kernel says of them.
        .target(
            name: "DaemonHarness",
            dependencies: [
                "Linux", "PolicyLibraries", "TorporAPI", "Varlink", "torpor", "torpor-container", "torpor-holding",
                "torpor-keeper",
                "torpor-policy-host",
                "torpor-desktop", "torpor-protect", "torpor-transfer", "torpor-verbs", "torpor-verify", "torpord",
            ],
            path: "Tests/Support/DaemonHarness"
        ),
        .target(name: "DataProtection", dependencies: ["Varlink"]),
        .target(name: "ProtectionKeys", dependencies: ["CSodium", "DataProtection", "Linux", "WireText"]),
        .target(
            name: "DesktopEntries",
            dependencies: ["Configuration", "Lifecycle", "Linux", "TorporAPI", "WireText"]
        ),
        .target(name: "DesktopProtocol", dependencies: ["Varlink"]),
        .target(name: "DesktopRules", dependencies: ["DesktopProtocol", "Varlink", "WireText"]),
        .target(name: "Devices", dependencies: ["CSystemd", "EventLoop", "Linux", "WireText"]),
        .target(
            name: "Engine",
            dependencies: [
                "Configuration", "EventLoop", "Lifecycle", "Linux", "Notify", "Output", "Permissions", "Processes",
                "Recovery", "Store", "TorporAPI", "Varlink", "VarlinkServer", "WireText",
            ]
        ),
        // Apps without processes, for tests of what follows them.
        .target(
            name: "EngineHarness",
            dependencies: [
                "Configuration", "Engine", "EventLoop", "Lifecycle", "Linux", "Output", "Processes", "Store",
                "TorporAPI",
            ],
            path: "Tests/Support/EngineHarness"
        ),
        .target(name: "EventLoop", dependencies: ["CSystemd", "Linux"]),
        .target(
            name: "EventSources",
            dependencies: [
                "Bluetooth", "CalendarTime", "Configuration", "Devices", "Engine", "EventLoop", "Lifecycle",
                "Linux", "Location", "LoginManager", "Mailbox", "PathWatch", "Permissions", "Processes", "Schedules",
                "Store", "SystemBus", "TorporAPI", "Varlink", "WireText",
            ]
        ),
        // What torpor and torpor-verbs share: the everyday verbs, and how all verbs ask and speak.
        .target(
            name: "EverydayVerbs",
            dependencies: ["CommandLinePages", "Linux", "TorporAPI", "Varlink", "WireText"]
        ),
        // Every parser as a function of bytes, with what must hold of it: for Fuzz/ and for the tests.
        .target(
            name: "FuzzTargets",
            dependencies: [
                "BundleSeals", "Bundles", "CFuzzTargets", "CalendarTime", "Configuration", "DesktopEntries",
                "DesktopProtocol", "DesktopRules",
                "EventSources", "Gateway", "GatewayConfiguration", "Importing", "KeeperProtocol", "Lifecycle", "Linux",
                "Location", "Mailbox", "Notify", "Permissions", "Policies", "Recovery", "Schedules", "StateDocuments",
                "Store", "Supervisor",
                "TorporAPI", "TorporPolicyABI", "TransferProtocol", "TransferRules", "Transfers", "Varlink", "Web",
                "WireText",
            ],
            path: "Tests/Support/FuzzTargets"
        ),
        .target(
            name: "Gateway",
            dependencies: [
                "Bearer", "Configuration", "GatewayConfiguration", "Linux", "TorporAPI", "Varlink", "WireText",
            ]
        ),
        .target(
            name: "GatewayConfiguration",
            dependencies: ["Configuration", "WireText"]
        ),
        .target(name: "HTTPAsking", dependencies: ["EventLoop", "Linux", "TransferRules"]),
        .target(name: "HTTPServing", dependencies: ["CMicrohttpd", "Linux", "Varlink", "WireText"]),
        .target(name: "Importing", dependencies: ["CYAML", "CalendarTime", "Configuration", "Varlink", "WireText"]),
        .target(name: "JetsamPolicy", dependencies: ["TorporPolicyKit"], path: "Plugins/Jetsam"),
        .target(name: "KeeperProtocol", dependencies: ["CKeeperProtocol", "Linux", "WireText"]),
        .target(name: "KernelFiles", dependencies: ["Linux"], path: "Tests/Support/KernelFiles"),
        .target(name: "Lifecycle", dependencies: ["WireText"]),
        .target(
            name: "Linux",
            dependencies: ["CLinux", "WireText", .product(name: "SystemPackage", package: "swift-system")]
        ),
        .target(name: "Location", dependencies: ["EventLoop", "Linux", "Varlink"]),
        .target(name: "LoginManager", dependencies: ["EventLoop", "Linux", "SystemBus"]),
        .target(name: "Mailbox", dependencies: ["Varlink", "WireText"]),
        .target(
            name: "MeasuredProgram",
            dependencies: ["Linux", "Processes"],
            path: "Tests/Support/MeasuredProgram"
        ),
        .target(
            name: "MemoryPressure",
            dependencies: [
                "Configuration", "Engine", "EventLoop", "Lifecycle", "Linux", "Notify", "Processes", "TorporAPI",
                "TorporPolicyABI",
            ]
        ),
        .target(name: "MobilePolicy", dependencies: ["TorporPolicyKit"], path: "Plugins/Mobile"),
        .target(name: "MockBlueZ", dependencies: ["MockLogind"], path: "Tests/Support/MockBlueZ"),
        .target(name: "MockDevices", path: "Tests/Support/MockDevices"),
        .target(name: "MockLogind", path: "Tests/Support/MockLogind"),
        .target(name: "Notify", dependencies: ["Linux", "WireText"]),
        .target(name: "Output", dependencies: ["EventLoop", "Linux", "WireText"]),
        .target(name: "PathWatch", dependencies: ["EventLoop", "Linux", "WireText"]),
        .target(name: "Permissions", dependencies: ["WireText"]),
        .target(name: "Policies", dependencies: ["CPolicyWire", "Linux", "TorporPolicyABI", "WireText"]),
        .target(name: "PolicyHost", dependencies: ["EventLoop", "Linux", "Policies", "TorporPolicyABI"]),
        .target(
            name: "PolicyLibraries",
            dependencies: ["Linux"],
            path: "Tests/Support/PolicyLibraries"
        ),
        .target(
            name: "PolicyTools",
            dependencies: [
                "CommandLinePages", "Configuration", "Linux", "Policies", "TorporAPI", "TorporPolicyABI", "Varlink",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ]
        ),
        .target(name: "Processes", dependencies: ["EventLoop", "KeeperProtocol", "Lifecycle", "Linux", "WireText"]),
        .target(name: "Recovery", dependencies: ["Linux", "WireText"]),
        .target(
            name: "SchedulePolicy",
            dependencies: ["CalendarTime", "TorporPolicyKit"],
            path: "Plugins/Schedule"
        ),
        .target(name: "Schedules", dependencies: ["CalendarTime"]),
        .target(name: "ScriptedServer", dependencies: ["Linux", "Varlink"], path: "Tests/Support/ScriptedServer"),
        .target(name: "ServerPolicy", dependencies: ["CalendarTime", "TorporPolicyKit"], path: "Plugins/Server"),
        .target(name: "ServiceManager", dependencies: ["CSystemd", "Linux", "WireText"]),
        .target(name: "StateDocuments", dependencies: ["BundleSeals", "Bundles", "TorporAPI", "Varlink", "WireText"]),
        .target(name: "Store", dependencies: ["CSQLite", "EventLoop", "Linux", "WireText"]),
        .target(
            name: "Supervisor",
            dependencies: [
                "Alerts", "Archives", "CalendarTime", "Configuration", "DataProtection", "DesktopEntries",
                "DesktopProtocol", "Engine",
                "EventLoop", "EventSources", "HTTPAsking", "KeeperProtocol", "Lifecycle", "Linux", "LoginManager",
                "Mailbox", "MemoryPressure", "Notify", "Output", "Permissions", "Policies", "PolicyHost", "Processes",
                "Recovery", "Schedules", "ServiceManager", "Store", "TorporAPI", "TorporPolicyABI", "TransferProtocol",
                "TransferRules", "Transfers", "Varlink", "VarlinkServer", "WireText",
            ]
        ),
        .target(name: "SystemBus", dependencies: ["CSystemd", "EventLoop", "Linux", "WireText"]),
        .target(name: "Telemetry", dependencies: ["TorporAPI", "Varlink"]),
        .target(name: "TestAddresses", dependencies: ["Linux"], path: "Tests/Support/TestAddresses"),
        .target(name: "TestMachine", path: "Tests/Support/TestMachine"),
        .target(name: "TopView", dependencies: ["Linux", "TorporAPI", "Varlink", "WireText"]),
        .target(name: "TorporAPI", dependencies: ["Linux", "Varlink", "WireText"]),
        .target(name: "TorporApp", dependencies: ["AppConnection", "Linux", "TorporAPI", "Varlink"]),
        .target(name: "TorporPolicyABI"),
        .target(name: "TorporPolicyKit", dependencies: ["TorporPolicyABI"]),
        .target(name: "TransferProtocol", dependencies: ["Varlink", "WireText"]),
        .target(name: "TransferRules", dependencies: ["TransferProtocol", "WireText"]),
        .target(name: "Transfers", dependencies: ["Schedules", "TransferProtocol", "Varlink"]),
        .target(name: "Varlink", dependencies: ["Linux", "WireText"]),
        .target(name: "VarlinkServer", dependencies: ["EventLoop", "Linux", "Varlink", "WireText"]),
        .target(name: "Web", dependencies: ["Bearer", "TorporAPI", "Varlink", "WireText"]),
        // What comes from outside as text.
        .target(name: "WireText"),
        // For tests: the app of the conformance scenario in Swift.
        .executableTarget(
            name: "conformance-app",
            dependencies: ["Linux", "TorporApp"],
            path: "Tests/Integration/Clients/Conformance/swift"
        ),
        // For tests: writes until it is killed.
        .executableTarget(
            name: "store-writer",
            dependencies: ["EventLoop", "Linux", "Store"],
            path: "Tests/StoreWriter"
        ),
        // An example, which is a package of its own too: here for the tests.
        .executableTarget(
            name: "swift-notes",
            dependencies: ["TorporApp"],
            path: "Examples/swift-notes/Sources/swift-notes"
        ),
        // The everyday verbs: what else it links, each of them would load.
        .executableTarget(
            name: "torpor",
            dependencies: ["CommandLinePages", "EverydayVerbs", "Linux", "TorporAPI"],
            linkerSettings: sharedRuntime
        ),
        .executableTarget(
            name: "torpor-gateway",
            dependencies: [
                "AppConnection", "CMosquitto", "CNATS", "Configuration", "Gateway", "GatewayConfiguration",
                "HTTPServing", "Linux", "StateDocuments", "TorporAPI",
                "Varlink", "WireText",
            ],
            linkerSettings: sharedRuntime
        ),
        .executableTarget(
            name: "torpor-keeper",
            dependencies: ["CKeeperProtocol"],
            linkerSettings: [
                // Plain C, wholly static, at a random address: no Swift start files. Swift's own choice of linker, gold,
                // cannot link that; lld is called by packaging/link/ld.lld.
                .unsafeFlags(
                    [
                        "-static-stdlib", "-nostartfiles", "-use-ld=lld", "-Xclang-linker", "-static-pie",
                        "-Xclang-linker", "-B\(Context.packageDirectory)/packaging/link",
                        // Swift asks for -pie too.
                        "-Xclang-linker", "-Wno-unused-command-line-argument",
                    ],
                    .when(configuration: .release)
                )
            ]
        ),
        // Plain C: what of Swift a policy needs, it brings.
        .executableTarget(
            name: "torpor-policy-host",
            dependencies: ["CPolicyWire"],
            linkerSettings: [
                // No Swift start files, and, as archives of which nothing is taken, no runtimes.
                .unsafeFlags(
                    [
                        "-static-stdlib", "-nostartfiles", "-L\(Context.packageDirectory)/packaging/link",
                        "-Xclang-linker", "-static-libgcc",
                    ],
                    .when(configuration: .release)
                )
            ]
        ),
        // Plain C, so that it is there in a moment, and for as little as it does.
        .executableTarget(
            name: "torpor-holding",
            linkerSettings: [
                // No Swift start files, and, as archives of which nothing is taken, no runtimes.
                .unsafeFlags(
                    [
                        "-static-stdlib", "-nostartfiles", "-L\(Context.packageDirectory)/packaging/link",
                        "-Xclang-linker", "-static-libgcc",
                    ],
                    .when(configuration: .release)
                )
            ]
        ),
        // Plain C too: it starts podman, and waits beside each container.
        .executableTarget(
            name: "torpor-container",
            linkerSettings: [
                // No Swift start files, and, as archives of which nothing is taken, no runtimes.
                .unsafeFlags(
                    [
                        "-static-stdlib", "-nostartfiles", "-L\(Context.packageDirectory)/packaging/link",
                        "-Xclang-linker", "-static-libgcc",
                    ],
                    .when(configuration: .release)
                )
            ]
        ),
        // For tests only: an app that starts in a millisecond and does what apps do. No target may depend on it, since
        // its linker settings would reach the test bundle.
        .executableTarget(
            name: "torpor-test-app",
            path: "Tests/Support/torpor-test-app",
            // A sanitizer's runtime must be linked dynamically.
            linkerSettings: Context.environment["TORPOR_SANITIZE"] == nil
                ? [.unsafeFlags(["-static-stdlib", "-nostartfiles", "-Xclang-linker", "-static"])] : []
        ),
        // For tests: tries what a sandbox should withhold.
        .executableTarget(
            name: "sandbox-probe",
            path: "Tests/Support/sandbox-probe",
            linkerSettings: Context.environment["TORPOR_SANITIZE"] == nil
                ? [.unsafeFlags(["-static-stdlib", "-nostartfiles", "-Xclang-linker", "-static"])] : []
        ),
        .executableTarget(
            name: "torpor-desktop",
            dependencies: [
                "DesktopProtocol", "DesktopRules", "EventLoop", "Linux", "SystemBus", "TorporAPI", "Varlink",
            ],
            linkerSettings: sharedRuntime
        ),
        .executableTarget(
            name: "torpor-transfer",
            dependencies: [
                "CCurl", "Linux", "TorporAPI", "TransferProtocol", "TransferRules", "Varlink", "WireText",
            ],
            linkerSettings: sharedRuntime
        ),
        .executableTarget(
            name: "torpor-protect",
            dependencies: ["DataProtection", "Linux", "Varlink", "WireText"],
            linkerSettings: sharedRuntime
        ),
        // All other verbs.
        .executableTarget(
            name: "torpor-verbs",
            dependencies: [
                "AppConnection", "BundleSeals", "Bundles", "CNCurses", "CommandLinePages", "Configuration",
                "DesktopEntries", "EverydayVerbs", "Importing",
                "DataProtection", "Lifecycle", "Linux", "Policies", "PolicyTools", "ProtectionKeys", "StateDocuments",
                "Telemetry",
                "TopView", "TorporAPI",
                "TransferProtocol", "Varlink",
                "WireText",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            swiftSettings: [
                // This pass of Swift 6.3 takes more than ten minutes for each loop of torpor top that asks the supervisor,
                // and nothing here needs it.
                .unsafeFlags(
                    ["-Xllvm", "-sil-disable-pass=loop-invariant-code-motion"],
                    .when(configuration: .release)
                )
            ],
            linkerSettings: sharedRuntime
        ),
        // In release without what nothing calls: it is started before each launch of an app of a bundle.
        .executableTarget(
            name: "torpor-verify",
            dependencies: ["BundleSeals", "Bundles", "Linux", "WireText"],
            linkerSettings: sharedRuntime
        ),
        .executableTarget(
            name: "torpor-web",
            dependencies: [
                "AppConnection", "Bearer", "CWebAssets", "Configuration", "GatewayConfiguration",
                "HTTPServing", "Linux", "Telemetry",
                "TorporAPI", "Varlink", "Web", "WireText",
            ],
            linkerSettings: sharedRuntime
        ),
        .executableTarget(
            name: "torpord",
            dependencies: ["ControlService", "Supervisor"],
            linkerSettings: sharedRuntime
        ),
        .testTarget(
            name: "AlertsTests",
            dependencies: ["Alerts", "CalendarTime", "Permissions", "TorporAPI", "Varlink"]
        ),
        .testTarget(
            name: "ArchivesTests",
            dependencies: [
                "Archives", "Configuration", "Engine", "EngineHarness", "EventLoop", "Lifecycle", "Linux", "Processes",
                "TorporAPI", "Varlink", "VarlinkServer", "WireText",
            ]
        ),
        .testTarget(
            name: "EngineTests",
            dependencies: [
                "Engine", "EngineHarness", "EventLoop", "Lifecycle", "Linux", "TorporAPI",
            ]
        ),
        .testTarget(
            name: "EventSourcesTests",
            dependencies: [
                "Bluetooth", "CalendarTime", "Configuration", "Engine", "EngineHarness", "EventLoop", "EventSources",
                "KernelFiles", "Lifecycle", "Linux", "Location", "Mailbox", "MockLogind", "Processes", "Schedules",
                "Store",
                "SystemBus", "TestAddresses", "TorporAPI", "Varlink",
            ]
        ),
        .testTarget(
            name: "MemoryPressureTests",
            dependencies: [
                "Configuration", "Engine", "EngineHarness", "EventLoop", "KernelFiles", "Lifecycle", "Linux",
                "MeasuredProgram", "MemoryPressure", "Notify", "Processes", "TorporAPI",
            ]
        ),
        .testTarget(
            name: "DataProtectionTests",
            dependencies: ["DataProtection", "Linux", "ProtectionKeys", "Varlink"]
        ),
        .testTarget(name: "CalendarTimeTests", dependencies: ["CalendarTime", "Linux"]),
        .testTarget(
            name: "BundlesTests",
            dependencies: [
                "BundleSeals", "Bundles", "Configuration", "DaemonHarness", "Linux", "torpor", "torpor-verbs",
            ],
            exclude: ["hostile.py", "killer.c"]
        ),
        .testTarget(
            name: "ClientsIntegrationTests",
            dependencies: [
                "Configuration", "DaemonHarness", "DesktopEntries", "KernelFiles", "Linux", "MockLogind",
                "PolicyLibraries", "ScriptedServer", "TestAddresses", "TorporAPI", "Varlink", "conformance-app",
                "swift-notes",
            ],
            path: "Tests/Integration/Clients",
            exclude: [
                "Conformance/README.md", "Conformance/c", "Conformance/python", "Conformance/shell",
                "Conformance/swift",
            ]
        ),
        .testTarget(
            name: "ConfigurationTests",
            dependencies: ["Configuration", "Lifecycle", "Linux", "Mailbox", "Permissions"]
        ),
        .testTarget(
            name: "DesktopEntriesTests",
            dependencies: ["Configuration", "DesktopEntries", "Lifecycle", "Linux", "TorporAPI", "Varlink"]
        ),
        .testTarget(
            name: "DesktopProgramTests",
            dependencies: ["DesktopProtocol", "Linux", "Varlink", "torpor-desktop"],
            exclude: ["late.py", "manager.py", "server.py"]
        ),
        .testTarget(name: "DesktopProtocolTests", dependencies: ["DesktopProtocol", "Varlink"]),
        .testTarget(name: "DesktopRulesTests", dependencies: ["DesktopProtocol", "DesktopRules", "Varlink"]),
        .testTarget(name: "EventLoopTests", dependencies: ["EventLoop", "Linux"]),
        .testTarget(
            name: "EventsIntegrationTests",
            dependencies: [
                "DaemonHarness", "KernelFiles", "Linux", "MockBlueZ", "MockDevices", "MockLogind", "TestAddresses",
                "TorporAPI", "Varlink",
            ],
            path: "Tests/Integration/Events"
        ),
        .testTarget(name: "FuzzTargetsTests", dependencies: ["FuzzTargets", "Linux"]),
        .testTarget(
            name: "GatewayTests",
            dependencies: ["Configuration", "Gateway", "GatewayConfiguration", "Linux", "ScriptedServer", "Varlink"]
        ),
        .testTarget(
            name: "ImportingTests",
            dependencies: ["Configuration", "Importing", "Lifecycle", "Linux", "Supervisor", "WireText"],
            exclude: ["ComposeServices"]
        ),
        .testTarget(
            name: "KeeperTests",
            dependencies: ["EventLoop", "KeeperProtocol", "Linux", "Processes", "torpor-keeper"]
        ),
        .testTarget(
            name: "LifecycleIntegrationTests",
            dependencies: [
                "DaemonHarness", "KernelFiles", "Linux", "MockLogind", "TestAddresses", "TorporAPI", "Varlink",
            ],
            path: "Tests/Integration/Lifecycle"
        ),
        .testTarget(name: "LifecycleTests", dependencies: ["Lifecycle"]),
        .testTarget(name: "LinuxTests", dependencies: ["KernelFiles", "Linux", "TestAddresses"]),
        .testTarget(name: "LocationTests", dependencies: ["EventLoop", "Linux", "Location"]),
        .testTarget(name: "LoginManagerTests", dependencies: ["EventLoop", "Linux", "LoginManager", "MockLogind"]),
        .testTarget(name: "MailboxTests", dependencies: ["Mailbox", "Varlink"]),
        .testTarget(
            name: "MeasurementTests",
            dependencies: [
                "DaemonHarness", "KernelFiles", "Linux", "TestAddresses", "TorporAPI", "Varlink", "torpor-gateway",
            ],
            path: "Tests/Integration/Measurements"
        ),
        .testTarget(
            name: "MemoryIntegrationTests",
            dependencies: [
                "DaemonHarness", "KernelFiles", "Linux", "PolicyLibraries", "ScriptedServer", "TestAddresses",
                "TorporAPI", "Varlink",
            ],
            path: "Tests/Integration/Memory"
        ),
        .testTarget(name: "NotifyTests", dependencies: ["Linux", "Notify"]),
        .testTarget(
            name: "OperationsIntegrationTests",
            dependencies: [
                "DaemonHarness", "KernelFiles", "Linux", "PolicyLibraries", "TestAddresses", "TorporAPI", "Varlink",
            ],
            path: "Tests/Integration/Operations"
        ),
        .testTarget(name: "OutputTests", dependencies: ["EventLoop", "Linux", "Output"]),
        .testTarget(name: "PathWatchTests", dependencies: ["EventLoop", "Linux", "PathWatch"]),
        .testTarget(name: "PermissionsTests", dependencies: ["Permissions"]),
        .testTarget(
            name: "PluginTests",
            dependencies: ["Linux", "Policies", "TorporPolicyABI", "torpor-policy-host"]
        ),
        .testTarget(
            name: "PoliciesTests",
            dependencies: [
                "CPolicyWire", "Linux", "Policies", "PolicyLibraries", "TorporPolicyABI", "torpor-policy-host",
            ]
        ),
        .testTarget(
            name: "PolicyHostTests",
            dependencies: [
                "EventLoop", "Linux", "Policies", "PolicyHost", "PolicyLibraries", "TorporPolicyABI",
                "torpor-policy-host",
            ]
        ),
        .testTarget(name: "PolicyKitTests", dependencies: ["TorporPolicyABI", "TorporPolicyKit"]),
        .testTarget(
            name: "ProcessesTests",
            dependencies: ["EventLoop", "KernelFiles", "Linux", "Processes", "torpor-keeper"]
        ),
        .testTarget(name: "StoreTests", dependencies: ["CSQLite", "EventLoop", "Linux", "Store", "store-writer"]),
        .testTarget(name: "RecoveryTests", dependencies: ["Linux", "Recovery"]),
        .testTarget(name: "SchedulesTests", dependencies: ["CalendarTime", "Schedules"]),
        .testTarget(
            name: "SupervisorTests",
            dependencies: [
                "Alerts", "CalendarTime", "Configuration", "ControlService", "DesktopProtocol", "Engine",
                "EngineHarness", "EventLoop", "EventSources", "KernelFiles", "Lifecycle", "Linux", "Mailbox",
                "MeasuredProgram", "Permissions", "Policies", "Processes", "Store", "Supervisor",
                "TestAddresses", "TorporAPI", "TorporPolicyABI", "Varlink", "VarlinkServer",
            ]
        ),
        .testTarget(name: "SystemdTests", dependencies: ["TestMachine"]),
        .testTarget(name: "TelemetryTests", dependencies: ["Linux", "Telemetry", "TorporAPI", "Varlink"]),
        .testTarget(name: "TopViewTests", dependencies: ["TopView", "TorporAPI", "Varlink"]),
        .testTarget(
            name: "TorporAppTests",
            dependencies: ["AppConnection", "Linux", "TorporAPI", "TorporApp", "Varlink"]
        ),
        .testTarget(
            name: "TransferProgramTests",
            dependencies: ["Linux", "TestAddresses", "TransferProtocol", "Varlink", "torpor-transfer"],
            exclude: ["lying-server.py", "proxy.py"]
        ),
        .testTarget(name: "TransferProtocolTests", dependencies: ["TransferProtocol", "Varlink"]),
        .testTarget(name: "TransfersTests", dependencies: ["Schedules", "TransferProtocol", "Transfers", "Varlink"]),
        .testTarget(name: "TransferRulesTests", dependencies: ["TransferProtocol", "TransferRules"]),
        .testTarget(name: "VMTests", dependencies: ["TestMachine"]),
        .testTarget(
            name: "VarlinkTests",
            dependencies: ["EventLoop", "Linux", "ScriptedServer", "TorporAPI", "Varlink", "VarlinkServer"]
        ),
        .testTarget(
            name: "WebIntegrationTests",
            dependencies: [
                "DaemonHarness", "Linux", "TestAddresses", "TorporAPI", "Varlink", "torpor-gateway", "torpor-web",
            ],
            path: "Tests/Integration/Web",
            exclude: ["Dashboard/browser"]
        ),
        .testTarget(name: "WebTests", dependencies: ["TorporAPI", "Varlink", "Web"]),
        .testTarget(name: "WireTextTests", dependencies: ["WireText"]),
    ],
    swiftLanguageModes: [.v6],
    cLanguageStandard: .gnu11,
    cxxLanguageStandard: .cxx17
)

// `make simulate` alone builds this: no other build has anything of it.
if Context.environment["TORPOR_SIMULATION"] != nil {
    package.targets += [
        .target(
            name: "CSimulatedKernel",
            dependencies: ["CKeeperProtocol"],
            path: "Tests/Simulation/CSimulatedKernel"
        ),
        .executableTarget(
            name: "torpor-simulate",
            dependencies: [
                "CSimulatedKernel", "Configuration", "ControlService", "Linux", "Processes", "Supervisor", "Varlink",
            ],
            path: "Tests/Simulation/torpor-simulate"
        ),
    ]
}

let withoutSwift: Set = [
    "CCurl", "CFuzzTargets", "CKeeperProtocol", "CLinux", "CMicrohttpd", "CMosquitto", "CNATS", "CNCurses",
    "CPolicyWire",
    "CSQLite", "CSimulatedKernel", "CSodium", "CSystemd", "CTOML", "CWebAssets", "CYAML", "TorporPolicyABI",
    "torpor-keeper",
    "torpor-container", "torpor-holding", "torpor-policy-host",
    "sandbox-probe", "torpor-test-app",
]
/// The modules of the shell, and its core: one program, of which a fact and what comes of it go through all. In release the
/// compiler may look into the others for each, as it would if they were one module.
let shell: Set = [
    "Archives", "ControlService", "Engine", "EventSources", "Lifecycle", "MemoryPressure", "Supervisor",
]
/// What only the commands and helpers use, or torpord only at a start and at a change of the configuration: made small
/// rather than quick.
let commands: Set = [
    "Alerts", "AppConnection", "Bluetooth", "BundleSeals", "Bundles", "CalendarTime", "CommandLinePages",
    "Configuration", "DataProtection", "DesktopEntries", "DesktopProtocol", "DesktopRules", "Devices", "EverydayVerbs",
    "Importing",
    "Location", "LoginManager", "PathWatch", "Permissions", "PolicyTools", "ProtectionKeys", "Schedules",
    "ServiceManager", "StateDocuments", "SystemBus", "Telemetry", "TopView", "TransferProtocol", "TransferRules",
    "Transfers", "torpor", "torpor-desktop", "torpor-protect", "torpor-verbs", "torpor-verify",
]
/// Without these, the linker keeps each public function, though no other module of the program calls it.
let droppable = ["-Xfrontend", "-internalize-at-link", "-Xfrontend", "-function-sections"]
for target in package.targets where !withoutSwift.contains(target.name) {
    var settings = target.swiftSettings ?? []
    settings.append(.unsafeFlags(droppable, .when(configuration: .release)))
    if commands.contains(target.name) { settings.append(.unsafeFlags(["-Osize"], .when(configuration: .release))) }
    if shell.contains(target.name) {
        settings.append(.unsafeFlags(["-cross-module-optimization"], .when(configuration: .release)))
    }
    // https://github.com/swiftlang/swift-evolution/blob/main/proposals/0335-existential-any.md
    settings.append(.enableUpcomingFeature("ExistentialAny"))
    // https://github.com/swiftlang/swift-evolution/blob/main/proposals/0444-member-import-visibility.md
    settings.append(.enableUpcomingFeature("MemberImportVisibility"))
    // https://github.com/swiftlang/swift-evolution/blob/main/proposals/0409-access-level-on-imports.md
    settings.append(.enableUpcomingFeature("InternalImportsByDefault"))
    // Without a name of its own a library contains the path at which it was linked.
    if target.path?.hasPrefix("Plugins/") ?? false {
        target.linkerSettings =
            sharedRuntime
            + [.unsafeFlags(["-Xlinker", "-soname=lib\(target.name).so"], .when(configuration: .release))]
    }
    // Our own targets only: -Xswiftc -warnings-as-errors would reach the dependencies too.
    if Context.environment["TORPOR_CI"] != nil { settings.append(.treatAllWarnings(as: .error)) }
    target.swiftSettings = settings
}

// Release builds are hardened: docs/security.md says how, scripts/check-hardening looks at what came of it. Packages that
// use TorporApp, of which CLinux is a part, may have flags of this kind among their dependencies: SwiftPM refuses them only
// below tools version 6.2.
#if arch(x86_64)
let controlFlow = "-fcf-protection"
#else
let controlFlow = "-mbranch-protection=standard"
#endif
let hardened = [
    "-fstack-protector-strong", "-fstack-clash-protection", controlFlow, "-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=3",
]
for target in package.targets {
    if withoutSwift.contains(target.name), target.type != .system {
        target.cSettings = (target.cSettings ?? []) + [.unsafeFlags(hardened, .when(configuration: .release))]
        target.cxxSettings = (target.cxxSettings ?? []) + [.unsafeFlags(hardened, .when(configuration: .release))]
    }
    // All programs and policies: the table of addresses that calls go through is read-only before main() begins.
    if target.type == .executable || target.path?.hasPrefix("Plugins/") ?? false {
        target.linkerSettings =
            (target.linkerSettings ?? [])
            + [.unsafeFlags(["-Xlinker", "-z", "-Xlinker", "now"], .when(configuration: .release))]
    }
}
