// SPDX-License-Identifier: Apache-2.0

/// A parser as a function of bytes: it may refuse them, and does nothing else with them.
protocol FuzzedParser {
    /// Parses the bytes, and throws what does not hold of the outcome. A trap is a finding too.
    static func run(_ bytes: [UInt8]) throws(Finding)

    /// Processor time that a byte may take, in nanoseconds: some hundred times of what it does take.
    static var nanosecondsPerByte: Int { get }
}

extension FuzzedParser {
    static var nanosecondsPerByte: Int { 2_000 }
}

/// All parsers of what comes from outside. Each has a folder of inputs in Fuzz/Corpora.
public enum FuzzTarget: String, CaseIterable, Sendable, CustomStringConvertible {
    case appRecord = "app-record"
    case bundleArchive = "bundle-archive"
    case calendar
    case clientJSON = "client-json"
    case configuration
    case configurationSources = "configuration-sources"
    case denialRecord = "denial-record"
    case desktopEntry = "desktop-entry"
    case desktopWire = "desktop-wire"
    case environmentFile = "environment-file"
    case exportedState = "exported-state"
    case gatewayConfiguration = "gateway-configuration"
    case gatewayHTTP = "gateway-http"
    case gatewayRules = "gateway-rules"
    case gpsd
    case importCompose = "import-compose"
    case importDockerRun = "import-docker-run"
    case importPM2 = "import-pm2"
    case importProcfile = "import-procfile"
    case importQuadlet = "import-quadlet"
    case importServices = "import-services"
    case importSupervisord = "import-supervisord"
    case importSystemd = "import-systemd"
    case json
    case jsonNames = "json-names"
    case keeperAnswers = "keeper-answers"
    case keeperLaunch = "keeper-launch"
    case keeperRequests = "keeper-requests"
    case notify
    case policyAnswers = "policy-answers"
    case policyLibrary = "policy-library"
    case policyLoad = "policy-load"
    case policyTrace = "policy-trace"
    case recoveryFile = "recovery-file"
    case responseHead = "response-head"
    case storeJournal = "store-journal"
    case supervisorRecords = "supervisor-records"
    case timeZone = "time-zone"
    case transferWire = "transfer-wire"
    case varlinkCalls = "varlink-calls"
    case varlinkFramer = "varlink-framer"
    case webRequests = "web-requests"
    case wireText = "wire-text"

    /// The name of its folder.
    public var description: String { rawValue }

    private var parser: any FuzzedParser.Type {
        switch self {
        case .appRecord: AppRecords.self
        case .bundleArchive: BundleArchives.self
        case .calendar: Calendars.self
        case .clientJSON: ClientJSON.self
        case .configuration: Configurations.self
        case .configurationSources: KeptSources.self
        case .denialRecord: DenialRecords.self
        case .desktopEntry: DesktopEntryFiles.self
        case .desktopWire: DesktopWires.self
        case .environmentFile: EnvironmentFiles.self
        case .exportedState: ExportedStates.self
        case .gatewayConfiguration: GatewayConfigurations.self
        case .gatewayHTTP: GatewayRequests.self
        case .gatewayRules: GatewayRules.self
        case .gpsd: GPSReports.self
        case .importCompose: ComposeFiles.self
        case .importDockerRun: DockerRuns.self
        case .importPM2: PM2Files.self
        case .importProcfile: Procfiles.self
        case .importQuadlet: QuadletUnits.self
        case .importServices: ServiceDirectories.self
        case .importSupervisord: SupervisordFiles.self
        case .importSystemd: SystemdUnits.self
        case .json: JSONTexts.self
        case .jsonNames: JSONNames.self
        case .keeperAnswers: KeeperAnswers.self
        case .keeperLaunch: KeeperLaunches.self
        case .keeperRequests: KeeperRequests.self
        case .notify: Notifications.self
        case .policyAnswers: PolicyAnswers.self
        case .policyLibrary: PolicyLibraryFiles.self
        case .policyLoad: PolicyLoads.self
        case .policyTrace: PolicyTraces.self
        case .recoveryFile: RecoveryFiles.self
        case .responseHead: ResponseHeads.self
        case .storeJournal: StoreJournals.self
        case .supervisorRecords: SupervisorRecords.self
        case .timeZone: TimeZoneFiles.self
        case .transferWire: TransferWires.self
        case .varlinkCalls: VarlinkCalls.self
        case .varlinkFramer: VarlinkFramers.self
        case .webRequests: WebRequests.self
        case .wireText: WireTexts.self
        }
    }

    /// Runs the parser on one input, and on a longer one made of it where `isGrown` says so.
    ///
    /// - Throws: what does not hold, of the outcome or of the time that it takes.
    public func run(_ bytes: [UInt8], isGrown: Bool) throws(Finding) {
        try TimeBound(perByte: parser.nanosecondsPerByte).run(bytes, parser.run)
        if isGrown {
            for longer in Growth.all(of: bytes) {
                try TimeBound(perByte: parser.nanosecondsPerByte).run(longer, parser.run)
            }
        }
    }

    /// The same for a fuzzer: one input of 256 is grown, always the same ones, so that what is found comes again.
    public func run(_ bytes: [UInt8]) throws(Finding) {
        try TimeBound(perByte: parser.nanosecondsPerByte).run(bytes, parser.run)
        if Growth.isChosen(bytes) {
            try TimeBound(perByte: parser.nanosecondsPerByte).run(Growth.one(of: bytes), parser.run)
        }
    }
}
