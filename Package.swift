// swift-tools-version: 6.2
// SPDX-License-Identifier: Apache-2.0

import PackageDescription

let release = BuildSettingCondition.when(configuration: .release)

// What release builds link in Swift: all load one library with Swift's runtime, which their linker makes beside them
// (packaging/link). C++'s runtime is in each that needs it: to load it would be a third of what a command takes. Only for
// release: the flags would reach the test bundle too.
let sharedRuntime = LinkerSetting.unsafeFlags(
    [
        "-use-ld=lld", "-Xclang-linker", "-B\(Context.packageDirectory)/packaging/link",
        "-L\(Context.packageDirectory)/packaging/link", "-Xclang-linker", "-static-libgcc",
    ],
    release
)

// What release builds link in plain C: no Swift start files, and, as archives of which nothing is taken, no runtimes.
let plainC = LinkerSetting.unsafeFlags(
    [
        "-static-stdlib", "-nostartfiles", "-L\(Context.packageDirectory)/packaging/link",
        "-Xclang-linker", "-static-libgcc",
    ],
    release
)

// What programs for tests link that start in a millisecond. A sanitizer's runtime must be linked dynamically.
let wholeStatic: [LinkerSetting] =
    Context.environment["TORPOR_SANITIZE"] == nil
    ? [.unsafeFlags(["-static-stdlib", "-nostartfiles", "-Xclang-linker", "-static"])] : []

/// For each target its name, and what it uses.
typealias Table = KeyValuePairs<String, [Target.Dependency]>

/// The modules in Sources. Where a module stands, what it may use and what it may not: docs/architecture.md.
let modules: Table = [
    "Alerts": ["CalendarTime", "Permissions", "TorporAPI", "Varlink", "WireText"],
    "AppConnection": ["Linux", "TorporAPI", "Varlink"],
    "Archives": [
        "Configuration", "Engine", "EventLoop", "HTTPAsking", "Lifecycle", "Linux", "Processes", "TorporAPI", "Varlink",
        "VarlinkServer", "WireText",
    ],
    "Bearer": [],
    "Bluetooth": ["EventLoop", "Linux", "SystemBus"],
    "Bundles": ["WireText"],
    "BundleSeals": ["Bundles", "CSodium", "Linux", "WireText"],
    "CalendarTime": ["WireText"],
    "CKeeperProtocol": [],
    "CLinux": [],
    "CommandLinePages": ["CalendarTime", "Linux", "TorporAPI", "WireText"],
    "Configuration": [
        "Bundles", "CTOML", "CalendarTime", "Lifecycle", "Linux", "Mailbox", "Permissions", "TorporAPI",
        "TransferProtocol", "WireText",
    ],
    "ControlService": [
        "Archives", "Configuration", "DesktopEntries", "Engine", "EventLoop", "EventSources", "Lifecycle", "Linux",
        "MemoryPressure", "Notify", "Output", "Permissions", "Policies", "PolicyHost", "Processes", "Store",
        "Supervisor", "TorporAPI", "TorporPolicyABI", "Varlink", "VarlinkServer",
    ],
    "CPolicyWire": ["TorporPolicyABI"],
    "DataProtection": ["Varlink"],
    "DesktopEntries": ["Configuration", "Lifecycle", "Linux", "TorporAPI", "WireText"],
    "DesktopProtocol": ["Varlink"],
    "DesktopRules": ["DesktopProtocol", "Varlink", "WireText"],
    "Devices": ["CSystemd", "EventLoop", "Linux", "WireText"],
    "Engine": [
        "Configuration", "EventLoop", "Lifecycle", "Linux", "Notify", "Output", "Permissions", "Processes", "Recovery",
        "Store", "TorporAPI", "Varlink", "VarlinkServer", "WireText",
    ],
    "EventLoop": ["CSystemd", "Linux"],
    "EventSources": [
        "Bluetooth", "CalendarTime", "Configuration", "Devices", "Engine", "EventLoop", "Lifecycle", "Linux",
        "Location", "LoginManager", "Mailbox", "PathWatch", "Permissions", "Processes", "Schedules", "Store",
        "SystemBus", "TorporAPI", "Varlink", "WireText",
    ],
    // What torpor and torpor-verbs share: the everyday verbs, and how all verbs ask and speak.
    "EverydayVerbs": ["AppConnection", "CommandLinePages", "Linux", "TorporAPI", "Varlink", "WireText"],
    "Gateway": ["Bearer", "Configuration", "GatewayConfiguration", "Linux", "TorporAPI", "Varlink", "WireText"],
    "GatewayConfiguration": ["Configuration", "WireText"],
    "HTTPAsking": ["EventLoop", "Linux", "TransferRules"],
    "HTTPServing": ["CMicrohttpd", "Linux", "Varlink", "WireText"],
    "Importing": ["CYAML", "CalendarTime", "Configuration", "Varlink", "WireText"],
    "KeeperProtocol": ["CKeeperProtocol", "Linux", "WireText"],
    "Lifecycle": ["WireText"],
    "Linux": ["CLinux", "WireText", .product(name: "SystemPackage", package: "swift-system")],
    "Location": ["EventLoop", "Linux", "Varlink"],
    "LoginManager": ["EventLoop", "Linux", "SystemBus"],
    "Mailbox": ["Varlink", "WireText"],
    "MemoryPressure": [
        "Configuration", "Engine", "EventLoop", "Lifecycle", "Linux", "Notify", "Processes", "TorporAPI",
        "TorporPolicyABI",
    ],
    "Notify": ["Linux", "WireText"],
    "Output": ["EventLoop", "Linux", "WireText"],
    "PathWatch": ["EventLoop", "Linux", "WireText"],
    "Permissions": ["WireText"],
    "Policies": ["CPolicyWire", "Linux", "TorporPolicyABI", "WireText"],
    "PolicyHost": ["EventLoop", "Linux", "Policies", "TorporPolicyABI"],
    "PolicyTools": [
        "CommandLinePages", "Configuration", "Linux", "Policies", "TorporAPI", "TorporPolicyABI", "Varlink",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
    ],
    "Processes": ["EventLoop", "KeeperProtocol", "Lifecycle", "Linux", "WireText"],
    "ProtectionKeys": ["CSodium", "DataProtection", "Linux", "WireText"],
    "Recovery": ["Linux", "WireText"],
    "Schedules": ["CalendarTime"],
    "ServiceManager": ["CSystemd", "Linux", "WireText"],
    "StateDocuments": ["BundleSeals", "Bundles", "TorporAPI", "Varlink", "WireText"],
    "Store": ["CSQLite", "EventLoop", "Linux", "WireText"],
    "Supervisor": [
        "Alerts", "Archives", "CalendarTime", "Configuration", "DataProtection", "DesktopEntries", "DesktopProtocol",
        "Engine", "EventLoop", "EventSources", "HTTPAsking", "KeeperProtocol", "Lifecycle", "Linux", "LoginManager",
        "Mailbox", "MemoryPressure", "Notify", "Output", "Permissions", "Policies", "PolicyHost", "Processes",
        "Recovery", "Schedules", "ServiceManager", "Store", "TorporAPI", "TorporPolicyABI", "TransferProtocol",
        "TransferRules", "Transfers", "Varlink", "VarlinkServer", "WireText",
    ],
    "SystemBus": ["CSystemd", "EventLoop", "Linux", "WireText"],
    "Telemetry": ["TorporAPI", "Varlink"],
    "TopView": ["Linux", "TorporAPI", "Varlink", "WireText"],
    "TorporAPI": ["Linux", "Varlink", "WireText"],
    "TorporApp": ["AppConnection", "Linux", "TorporAPI", "Varlink"],
    "TorporPolicyABI": [],
    "TorporPolicyKit": ["TorporPolicyABI"],
    "TransferProtocol": ["Varlink", "WireText"],
    "TransferRules": ["TransferProtocol", "WireText"],
    "Transfers": ["Schedules", "TransferProtocol", "Varlink"],
    "Varlink": ["Linux", "WireText"],
    "VarlinkServer": ["EventLoop", "Linux", "Varlink", "WireText"],
    "Web": ["Bearer", "TorporAPI", "Varlink", "WireText"],
    // What comes from outside as text.
    "WireText": [],
]

/// The policies that ship, in Plugins.
let policies: Table = [
    "JetsamPolicy": ["TorporPolicyKit"],
    "MobilePolicy": ["TorporPolicyKit"],
    "SchedulePolicy": ["CalendarTime", "TorporPolicyKit"],
    "ServerPolicy": ["CalendarTime", "TorporPolicyKit"],
]

/// What tests share, in Tests/Support.
let testSupport: Table = [
    // The parsers of torpor-keeper, torpor-policy-host and the C library, for FuzzTargets.
    "CFuzzTargets": ["CKeeperProtocol", "CPolicyWire"],
    // Whole daemons for tests, and what the kernel says of them.
    "DaemonHarness": [
        "Linux", "PolicyLibraries", "TorporAPI", "Varlink", "torpor", "torpor-container", "torpor-holding",
        "torpor-keeper", "torpor-policy-host", "torpor-desktop", "torpor-protect", "torpor-transfer", "torpor-verbs",
        "torpor-verify", "torpord",
    ],
    // Apps without processes, for tests of what follows them.
    "EngineHarness": [
        "Configuration", "Engine", "EventLoop", "Lifecycle", "Linux", "Output", "Processes", "Store", "TorporAPI",
    ],
    // Every parser as a function of bytes, with what must hold of it: for Fuzz/ and for the tests.
    "FuzzTargets": [
        "BundleSeals", "Bundles", "CFuzzTargets", "CalendarTime", "Configuration", "DesktopEntries", "DesktopProtocol",
        "DesktopRules", "EventSources", "Gateway", "GatewayConfiguration", "Importing", "KeeperProtocol", "Lifecycle",
        "Linux", "Location", "Mailbox", "Notify", "Permissions", "Policies", "Recovery", "Schedules", "StateDocuments",
        "Store", "Supervisor", "TorporAPI", "TorporPolicyABI", "TransferProtocol", "TransferRules", "Transfers",
        "Varlink", "Web", "WireText",
    ],
    "KernelFiles": ["Linux"],
    "MeasuredProgram": ["Linux", "Processes"],
    "MockBlueZ": ["MockLogind"],
    "MockDevices": [],
    "MockLogind": [],
    "PolicyLibraries": ["Linux"],
    "ScriptedServer": ["Linux", "Varlink"],
    "TestAddresses": ["Linux"],
    "TestMachine": [],
]

/// The programs in Sources in Swift.
let programs: Table = [
    // The everyday verbs: what else it links, each of them would load.
    "torpor": ["CommandLinePages", "EverydayVerbs", "Linux", "TorporAPI"],
    "torpor-desktop": ["DesktopProtocol", "DesktopRules", "EventLoop", "Linux", "SystemBus", "TorporAPI", "Varlink"],
    "torpor-gateway": [
        "AppConnection", "CMosquitto", "CNATS", "Configuration", "Gateway", "GatewayConfiguration", "HTTPServing",
        "Linux", "StateDocuments", "TorporAPI", "Varlink", "WireText",
    ],
    "torpor-protect": ["DataProtection", "Linux", "Varlink", "WireText"],
    "torpor-transfer": ["CCurl", "Linux", "TorporAPI", "TransferProtocol", "TransferRules", "Varlink", "WireText"],
    // All other verbs.
    "torpor-verbs": [
        "AppConnection", "BundleSeals", "Bundles", "CNCurses", "CommandLinePages", "Configuration", "DesktopEntries",
        "EverydayVerbs", "Importing", "DataProtection", "Lifecycle", "Linux", "Policies", "PolicyTools",
        "ProtectionKeys", "StateDocuments", "Telemetry", "TopView", "TorporAPI", "TransferProtocol", "Varlink",
        "WireText",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
    ],
    // In release without what nothing calls: it is started before each launch of an app of a bundle.
    "torpor-verify": ["BundleSeals", "Bundles", "Linux", "WireText"],
    "torpor-web": [
        "AppConnection", "Bearer", "CWebAssets", "Configuration", "GatewayConfiguration", "HTTPServing", "Linux",
        "Telemetry", "TorporAPI", "Varlink", "Web", "WireText",
    ],
    "torpord": ["ControlService", "Supervisor"],
]

/// What the programs of the command line link besides: functions with the same instructions are one. Nothing there
/// compares functions, and no trace of a crash is read there.
func folded(_ program: String) -> [LinkerSetting] {
    ["torpor", "torpor-verbs"].contains(program) ? [.unsafeFlags(["-Xlinker", "--icf=all"], release)] : []
}

/// The programs in Sources in C.
let cPrograms = ["torpor-container", "torpor-holding", "torpor-keeper", "torpor-policy-host"]

/// The tests in Tests.
let tests: Table = [
    "AlertsTests": ["Alerts", "CalendarTime", "Permissions", "TorporAPI", "Varlink"],
    "ArchivesTests": [
        "Archives", "Configuration", "Engine", "EngineHarness", "EventLoop", "Lifecycle", "Linux", "Processes",
        "TorporAPI", "Varlink", "VarlinkServer", "WireText",
    ],
    "BundlesTests": ["BundleSeals", "Bundles", "Configuration", "DaemonHarness", "Linux", "torpor", "torpor-verbs"],
    "CalendarTimeTests": ["CalendarTime", "Linux"],
    "ConfigurationTests": ["Configuration", "Lifecycle", "Linux", "Mailbox", "Permissions"],
    "DataProtectionTests": ["DataProtection", "Linux", "ProtectionKeys", "Varlink"],
    "DesktopEntriesTests": ["Configuration", "DesktopEntries", "Lifecycle", "Linux", "TorporAPI", "Varlink"],
    "DesktopProgramTests": ["DesktopProtocol", "Linux", "Varlink", "torpor-desktop"],
    "DesktopProtocolTests": ["DesktopProtocol", "Varlink"],
    "DesktopRulesTests": ["DesktopProtocol", "DesktopRules", "Varlink"],
    "EngineTests": ["Engine", "EngineHarness", "EventLoop", "Lifecycle", "Linux", "TorporAPI"],
    "EventLoopTests": ["EventLoop", "Linux"],
    "EventSourcesTests": [
        "Bluetooth", "CalendarTime", "Configuration", "Engine", "EngineHarness", "EventLoop", "EventSources",
        "KernelFiles", "Lifecycle", "Linux", "Location", "Mailbox", "MockLogind", "Processes", "Schedules", "Store",
        "SystemBus", "TestAddresses", "TorporAPI", "Varlink",
    ],
    "FuzzTargetsTests": ["FuzzTargets", "Linux"],
    "GatewayTests": ["Configuration", "Gateway", "GatewayConfiguration", "Linux", "ScriptedServer", "Varlink"],
    "ImportingTests": ["Configuration", "Importing", "Lifecycle", "Linux", "Supervisor", "WireText"],
    "KeeperTests": ["EventLoop", "KeeperProtocol", "Linux", "Processes", "torpor-keeper"],
    "LifecycleTests": ["Lifecycle"],
    "LinuxTests": ["KernelFiles", "Linux", "TestAddresses"],
    "LocationTests": ["EventLoop", "Linux", "Location"],
    "LoginManagerTests": ["EventLoop", "Linux", "LoginManager", "MockLogind"],
    "MailboxTests": ["Mailbox", "Varlink"],
    "MemoryPressureTests": [
        "Configuration", "Engine", "EngineHarness", "EventLoop", "KernelFiles", "Lifecycle", "Linux", "MeasuredProgram",
        "MemoryPressure", "Notify", "Processes", "TorporAPI",
    ],
    "NotifyTests": ["Linux", "Notify"],
    "OutputTests": ["EventLoop", "Linux", "Output"],
    "PathWatchTests": ["EventLoop", "Linux", "PathWatch"],
    "PermissionsTests": ["Permissions"],
    "PluginTests": ["Linux", "Policies", "TorporPolicyABI", "torpor-policy-host"],
    "PoliciesTests": ["CPolicyWire", "Linux", "Policies", "PolicyLibraries", "TorporPolicyABI", "torpor-policy-host"],
    "PolicyHostTests": [
        "EventLoop", "Linux", "Policies", "PolicyHost", "PolicyLibraries", "TorporPolicyABI", "torpor-policy-host",
    ],
    "PolicyKitTests": ["TorporPolicyABI", "TorporPolicyKit"],
    "ProcessesTests": ["EventLoop", "KernelFiles", "Linux", "Processes", "torpor-keeper"],
    "RecoveryTests": ["Linux", "Recovery"],
    "SchedulesTests": ["CalendarTime", "Schedules"],
    "StoreTests": ["CSQLite", "EventLoop", "Linux", "Store", "store-writer"],
    "SupervisorTests": [
        "Alerts", "CalendarTime", "Configuration", "ControlService", "DesktopProtocol", "Engine", "EngineHarness",
        "EventLoop", "EventSources", "KernelFiles", "Lifecycle", "Linux", "Mailbox", "MeasuredProgram", "Permissions",
        "Policies", "Processes", "Store", "Supervisor", "TestAddresses", "TorporAPI", "TorporPolicyABI", "Varlink",
        "VarlinkServer",
    ],
    "SystemdTests": ["TestMachine"],
    "TelemetryTests": ["Linux", "Telemetry", "TorporAPI", "Varlink"],
    "TopViewTests": ["TopView", "TorporAPI", "Varlink"],
    "TorporAppTests": ["AppConnection", "Linux", "TorporAPI", "TorporApp", "Varlink"],
    "TransferProgramTests": ["Linux", "TestAddresses", "TransferProtocol", "Varlink", "torpor-transfer"],
    "TransferProtocolTests": ["TransferProtocol", "Varlink"],
    "TransferRulesTests": ["TransferProtocol", "TransferRules"],
    "TransfersTests": ["Schedules", "TransferProtocol", "Transfers", "Varlink"],
    "VarlinkTests": ["EventLoop", "Linux", "ScriptedServer", "TorporAPI", "Varlink", "VarlinkServer"],
    "VMTests": ["TestMachine"],
    "WebTests": ["TorporAPI", "Varlink", "Web"],
    "WireTextTests": ["WireText"],
]

/// The tests in Tests/Integration, by their folders.
let integrationTests: Table = [
    "Clients": [
        "Configuration", "DaemonHarness", "DesktopEntries", "KernelFiles", "Linux", "MockLogind", "PolicyLibraries",
        "ScriptedServer", "TestAddresses", "TorporAPI", "Varlink", "conformance-app", "swift-notes",
    ],
    "Events": [
        "DaemonHarness", "KernelFiles", "Linux", "MockBlueZ", "MockDevices", "MockLogind", "TestAddresses", "TorporAPI",
        "Varlink",
    ],
    "Lifecycle": ["DaemonHarness", "KernelFiles", "Linux", "MockLogind", "TestAddresses", "TorporAPI", "Varlink"],
    "Measurements": [
        "DaemonHarness", "KernelFiles", "Linux", "TestAddresses", "TorporAPI", "Varlink", "torpor-gateway",
    ],
    "Memory": [
        "DaemonHarness", "KernelFiles", "Linux", "PolicyLibraries", "ScriptedServer", "TestAddresses", "TorporAPI",
        "Varlink",
    ],
    "Operations": [
        "DaemonHarness", "KernelFiles", "Linux", "PolicyLibraries", "TestAddresses", "TorporAPI", "Varlink",
    ],
    "Web": ["DaemonHarness", "Linux", "TestAddresses", "TorporAPI", "Varlink", "torpor-gateway", "torpor-web"],
]

/// Files and folders in those of tests that are no sources of them.
let excluded = [
    "BundlesTests": ["hostile.py", "killer.c"],
    "Clients": [
        "Conformance/README.md", "Conformance/c", "Conformance/python", "Conformance/shell", "Conformance/swift",
    ],
    "DesktopProgramTests": ["late.py", "manager.py", "server.py"],
    "ImportingTests": ["ComposeServices"],
    "TransferProgramTests": ["lying-server.py", "proxy.py"],
    "Web": ["Dashboard/browser"],
]

/// For tests: the app of the conformance scenario in Swift, a program that writes until it is killed, and an example,
/// which is a package of its own too.
let testPrograms: [(String, [Target.Dependency], String)] = [
    ("conformance-app", ["Linux", "TorporApp"], "Tests/Integration/Clients/Conformance/swift"),
    ("store-writer", ["EventLoop", "Linux", "Store"], "Tests/StoreWriter"),
    ("swift-notes", ["TorporApp"], "Examples/swift-notes/Sources/swift-notes"),
]

let package = Package(
    name: "torpor",
    products: [
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
        // For torpor-transfer alone.
        .target(name: "CCurl", linkerSettings: [.linkedLibrary("curl"), .linkedLibrary("crypto")]),
        // NDEBUG: otherwise toml++ asserts on some invalid keys instead of reporting them.
        .target(name: "CTOML", cxxSettings: [.define("NDEBUG"), .unsafeFlags(["-fno-exceptions"])]),
        // The files of the dashboard, which the compiler reads (#embed): what assets.c includes is built anew when it changes.
        .target(name: "CWebAssets", exclude: ["assets"]),
        // For torpor-gateway and torpor-web alone.
        .systemLibrary(name: "CMicrohttpd", pkgConfig: "libmicrohttpd", providers: [.apt(["libmicrohttpd-dev"])]),
        // These two are for torpor-gateway alone.
        .systemLibrary(name: "CMosquitto", pkgConfig: "libmosquitto", providers: [.apt(["libmosquitto-dev"])]),
        .systemLibrary(name: "CNATS", pkgConfig: "libnats", providers: [.apt(["libnats-dev"])]),
        // For `torpor top` alone. Not by pkg-config, whose flags for it SwiftPM refuses.
        .systemLibrary(name: "CNCurses", providers: [.apt(["libncurses-dev"])]),
        // For torpor-verbs and torpor-verify alone.
        .systemLibrary(name: "CSodium", pkgConfig: "libsodium", providers: [.apt(["libsodium-dev"])]),
        .systemLibrary(name: "CSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"])]),
        .systemLibrary(name: "CSystemd", pkgConfig: "libsystemd", providers: [.apt(["libsystemd-dev"])]),
        // For torpor-verbs alone.
        .systemLibrary(name: "CYAML", providers: [.apt(["libyaml-dev"])]),
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
                    release
                )
            ]
        ),
        // Plain C: what of Swift a policy needs, it brings.
        .executableTarget(name: "torpor-policy-host", dependencies: ["CPolicyWire"], linkerSettings: [plainC]),
        // Plain C, so that it is there in a moment, and for as little as it does.
        .executableTarget(name: "torpor-holding", linkerSettings: [plainC]),
        // Plain C too: it starts podman, and waits beside each container.
        .executableTarget(name: "torpor-container", linkerSettings: [plainC]),
        // For tests only: an app that starts in a millisecond and does what apps do. No target may depend on it, since
        // its linker settings would reach the test bundle.
        .executableTarget(name: "torpor-test-app", path: "Tests/Support/torpor-test-app", linkerSettings: wholeStatic),
        // For tests: tries what a sandbox should withhold.
        .executableTarget(name: "sandbox-probe", path: "Tests/Support/sandbox-probe", linkerSettings: wholeStatic),
    ],
    swiftLanguageModes: [.v6],
    cLanguageStandard: .gnu11,
    cxxLanguageStandard: .cxx17
)

package.products += (programs.map(\.key) + cPrograms).map { .executable(name: $0, targets: [$0]) }
// As supervisors load them: lib…Policy.so.
package.products += policies.map { .library(name: $0.key, type: .dynamic, targets: [$0.key]) }
package.targets += modules.map { .target(name: $0, dependencies: $1) }
package.targets += policies.map { name, uses in
    .target(name: name, dependencies: uses, path: "Plugins/\(name.dropLast("Policy".count))")
}
package.targets += testPrograms.map { .executableTarget(name: $0, dependencies: $1, path: $2) }
package.targets += testSupport.map { .target(name: $0, dependencies: $1, path: "Tests/Support/\($0)") }
package.targets += programs.map { name, uses in
    .executableTarget(name: name, dependencies: uses, linkerSettings: [sharedRuntime] + folded(name))
}
package.targets += tests.map { .testTarget(name: $0, dependencies: $1, exclude: excluded[$0] ?? []) }
package.targets += integrationTests.map { folder, uses in
    .testTarget(
        name: folder == "Measurements" ? "MeasurementTests" : "\(folder)IntegrationTests",
        dependencies: uses,
        path: "Tests/Integration/\(folder)",
        exclude: excluded[folder] ?? []
    )
}

// `make simulate` alone builds this: no other build has anything of it.
if Context.environment["TORPOR_SIMULATION"] != nil {
    package.targets += [
        .target(name: "CSimulatedKernel", dependencies: ["CKeeperProtocol"], path: "Tests/Simulation/CSimulatedKernel"),
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
    "CPolicyWire", "CSimulatedKernel", "CSodium", "CSQLite", "CSystemd", "CTOML", "CWebAssets", "CYAML",
    "sandbox-probe", "torpor-container", "torpor-holding", "torpor-keeper", "torpor-policy-host", "torpor-test-app",
    "TorporPolicyABI",
]
/// The modules of the shell, and its core: one program, of which a fact and what comes of it go through all. In release the
/// compiler may look into the others for each, as it would if they were one module, and access is exclusive without a check,
/// which is a tenth of torpord's instructions: the debug build, which runs all tests and fuzzers, checks it.
let shell: Set = ["Archives", "ControlService", "Engine", "EventSources", "Lifecycle", "MemoryPressure", "Supervisor"]
/// What only the commands and helpers use, or torpord only at a start and at a change of the configuration: made small
/// rather than quick.
let commands: Set = [
    "Alerts", "AppConnection", "Bluetooth", "BundleSeals", "Bundles", "CalendarTime", "CommandLinePages",
    "Configuration", "DataProtection", "DesktopEntries", "DesktopProtocol", "DesktopRules", "Devices", "EverydayVerbs",
    "Importing", "Location", "LoginManager", "PathWatch", "Permissions", "PolicyTools", "ProtectionKeys", "Schedules",
    "ServiceManager", "StateDocuments", "SystemBus", "Telemetry", "TopView", "TransferProtocol", "TransferRules",
    "Transfers", "torpor", "torpor-desktop", "torpor-protect", "torpor-verbs", "torpor-verify",
]
/// Without these, the linker keeps each public function, though no other module of the program calls it.
let droppable = ["-Xfrontend", "-internalize-at-link", "-Xfrontend", "-function-sections"]
for target in package.targets where !withoutSwift.contains(target.name) {
    var flags = droppable
    // This pass of Swift 6.3 takes more than ten minutes for each loop of torpor top that asks the supervisor, and nothing
    // there needs it.
    if target.name == "torpor-verbs" { flags = ["-Xllvm", "-sil-disable-pass=loop-invariant-code-motion"] + flags }
    if commands.contains(target.name) { flags.append("-Osize") }
    if shell.contains(target.name) { flags += ["-cross-module-optimization", "-enforce-exclusivity=unchecked"] }
    var settings: [SwiftSetting] = [.unsafeFlags(flags, release)]
    // https://github.com/swiftlang/swift-evolution, proposals 335, 444 and 409
    for feature in ["ExistentialAny", "MemberImportVisibility", "InternalImportsByDefault"] {
        settings.append(.enableUpcomingFeature(feature))
    }
    // Without a name of its own a library contains the path at which it was linked.
    if target.path?.hasPrefix("Plugins/") ?? false {
        target.linkerSettings = [sharedRuntime, .unsafeFlags(["-Xlinker", "-soname=lib\(target.name).so"], release)]
    }
    // Our own targets only: -Xswiftc -warnings-as-errors would reach the dependencies too.
    if Context.environment["TORPOR_CI"] != nil { settings.append(.treatAllWarnings(as: .error)) }
    target.swiftSettings = settings
}

// Release builds are hardened: docs/security.md says how, scripts/check-hardening looks at what came of it. SwiftPM allows
// these flags in dependencies, such as CLinux for users of TorporApp, from tools version 6.2 on.
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
        target.cSettings = (target.cSettings ?? []) + [.unsafeFlags(hardened, release)]
        target.cxxSettings = (target.cxxSettings ?? []) + [.unsafeFlags(hardened, release)]
    }
    // All programs and policies: the table of addresses that calls go through is read-only before main() begins.
    if target.type == .executable || target.path?.hasPrefix("Plugins/") ?? false {
        let now = LinkerSetting.unsafeFlags(["-Xlinker", "-z", "-Xlinker", "now"], release)
        target.linkerSettings = (target.linkerSettings ?? []) + [now]
    }
}
