// SPDX-License-Identifier: Apache-2.0

public import Configuration

/// Reads torpor-gateway's configuration.
public enum GatewayLoader {
    /// The default path of the configuration.
    public static let defaultPath = "/etc/torpor/gateway.toml"

    /// Reads a file; a failure lists everything that is wrong.
    ///
    /// - Parameters:
    ///   - path: the file; diagnostics name it as it is written here.
    ///   - environment: the gateway's own environment. If the gateway is an app, `TORPOR_MANAGER_SOCKET` is the default
    ///  socket. - system: access to this machine's files, users and groups.
    public static func load(
        path: String = defaultPath,
        environment: [String: String],
        system: ConfigurationSystem = .live
    ) -> Result<GatewaySpecification, DiagnosticList> {
        let sink = DiagnosticSink()
        let absolute = Path.join(system.workingDirectory, path)
        let context = Context(sink: sink, file: path, folder: Path.folder(absolute))
        var gateway = GatewaySpecification(
            socket: environment["TORPOR_MANAGER_SOCKET"] ?? "/run/torpor/io.torpor",
            secrets: Path.join(context.folder, "gateway-secrets")
        )
        switch system.read(absolute) {
        case .success(let bytes): read(context, bytes, into: &gateway)
        case .failure(.missing): context.error("there is no such file", at: .unknown)
        case .failure(.unusable(let reason)), .failure(.passing(let reason)): context.error(reason, at: .unknown)
        }
        gateway.warnings = sink.sorted
        return sink.hasErrors ? .failure(DiagnosticList(diagnostics: sink.sorted)) : .success(gateway)
    }

    /// The content of the file; nil if it cannot be read, for a reason that ``load(path:environment:system:)`` gives.
    public static func text(path: String = defaultPath, system: ConfigurationSystem = .live) -> [UInt8]? {
        try? system.read(Path.join(system.workingDirectory, path)).get()
    }

    /// Reads a configuration from its content; `path` is the file that the content comes from.
    public static func load(
        path: String,
        text: [UInt8],
        environment: [String: String]
    ) -> Result<GatewaySpecification, DiagnosticList> {
        var system = ConfigurationSystem.live
        system.read = { _ in .success(text) }
        return load(path: path, environment: environment, system: system)
    }

    private static func read(_ context: Context, _ bytes: [UInt8], into gateway: inout GatewaySpecification) {
        let root: Node
        do throws(DocumentError) {
            root = try Document.parse(bytes)
        } catch {
            context.error(error.message, at: error.position)
            return
        }
        guard case .table(let members) = root.value else { return }
        for member in members {
            let inner = context.at(member.key)
            guard member.key == "gateway" else {
                Read.unknown(inner, member, among: ["gateway"])
                continue
            }
            Read.table(inner, member.node, GatewayKeys.all, into: &gateway)
        }
        if gateway.http == nil, gateway.nats.isEmpty, gateway.mqtt.isEmpty, gateway.state == nil,
            !context.sink.hasErrors
        {
            context.error(
                "no messages would arrive: write [gateway.http], [[gateway.nats]] or [[gateway.mqtt]]",
                at: .unknown
            )
        }
    }
}
