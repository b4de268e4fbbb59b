/// Reads configurations.
public enum ConfigurationLoader {
    /// Reads a file and all that it includes.
    ///
    /// - Parameters:
    ///   - path: the file; diagnostics name it as it is written here.
    ///   - environment: the supervisor's own, for the default directories.
    ///   - userID: the effective user of the supervisor.
    public static func load(
        path: String,
        environment: [String: String],
        userID: UInt32
    ) -> Result<TorporConfiguration, DiagnosticList> {
        .failure(DiagnosticList(diagnostics: []))
    }
}
