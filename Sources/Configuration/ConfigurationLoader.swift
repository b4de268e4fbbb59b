/// Reads configurations.
public enum ConfigurationLoader {
    /// Reads a file and all that it includes; a failure names everything that is wrong at once.
    ///
    /// - Parameters:
    ///   - path: the file; diagnostics name it as it is written here. `nil` reads the default place.
    ///   - environment: the supervisor's own, for the default directories.
    ///   - userID: the user that the supervisor will run as; `nil` for the user of this process.
    ///   - system: the machine.
    public static func load(
        path: String? = nil,
        environment: [String: String],
        userID: UInt32? = nil,
        system: ConfigurationSystem = .live
    ) -> Result<TorporConfiguration, DiagnosticList> {
        let userID = userID ?? system.effectiveUserID
        let path = path ?? DefaultPaths(environment: environment, userID: userID).configuration
        let sink = DiagnosticSink()
        var reader = FileReader(
            system: system,
            sink: sink,
            supervisor: SupervisorSpecification(environment: environment, userID: userID)
        )
        reader.read(path)
        checkPolicies(reader)
        let apps = Resolver(system: system, userID: userID, drafts: reader.drafts).apps()
        guard !sink.hasErrors else { return .failure(DiagnosticList(diagnostics: sink.sorted)) }
        return .success(
            TorporConfiguration(
                supervisor: reader.supervisor,
                apps: apps,
                policies: reader.policies.values.map(\.policy).sorted { $0.name < $1.name },
                files: reader.files,
                warnings: sink.sorted
            )
        )
    }

    private static func checkPolicies(_ reader: FileReader) {
        for name in reader.supervisor.policies where reader.policies[name] == nil {
            let hint = Nearest.hint(name, among: reader.policies.keys.sorted())
            reader.supervisorOrigins["policies"]?.error(
                "no [policies.\(name)] says where the policy \(quoted(name)) is\(hint)"
            )
        }
        for (name, entry) in reader.policies where !reader.supervisor.policies.contains(name) {
            entry.origin.warning("is not used: [supervisor] policies does not name \(quoted(name))")
        }
    }
}
