// SPDX-License-Identifier: Apache-2.0

import Configuration
import Foundation
import Testing

@testable import GatewayConfiguration

/// torpor-gateway(8), whose source is `docs/gateway.md`: a key is a term of a definition.
@Suite("The manual page torpor-gateway(8)") struct ManualTests {
    private static let page: String = {
        let path = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../docs/gateway.md")
        return (try? String(contentsOf: path.standardized, encoding: .utf8)) ?? ""
    }()

    private func terms(_ section: String) -> Set<String> {
        let text =
            Self.page.components(separatedBy: "## \(section)\n").last?.components(separatedBy: "\n## ").first ?? ""
        let lines = text.components(separatedBy: "\n")
        return Set(
            zip(lines, lines.dropFirst()).compactMap { term, next in
                next.hasPrefix(": ") && term.hasPrefix("`") ? term.split(separator: "`").first.map(String.init) : nil
            }
        )
    }

    @Test("has every key, and none that there is not")
    func keys() {
        #expect(terms("Keys of the gateway") == Set(GatewayKeys.all.map(\.name)))
        #expect(terms("Keys of states") == Set(GatewayKeys.state.map(\.name)))
        #expect(terms("Keys of HTTP") == Set(GatewayKeys.http.map(\.name)))
        #expect(terms("Keys of a token") == Set(GatewayKeys.token.map(\.name)))
        let brokers = (GatewayKeys.broker(.nats) + GatewayKeys.broker(.mqtt)).map(\.name)
        #expect(terms("Keys of a broker") == Set(brokers))
        let subscriptions = (GatewayKeys.subscription(.nats) + GatewayKeys.subscription(.mqtt)).map(\.name)
        #expect(terms("Keys of a subscription") == Set(subscriptions))
    }

    @Test("has an example that is valid, and so is the one that the package brings when its comments are taken away")
    func examples() throws {
        let folder = NSTemporaryDirectory() + "gateway-manual-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let example = try #require(
            Self.page.components(separatedBy: "## Configuration\n\n```toml\n").last?.components(separatedBy: "```")
                .first
        )
        let packaged = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../../packaging/deb/gateway/gateway.toml").standardized
        let lines = try String(contentsOf: packaged, encoding: .utf8).components(separatedBy: "\n")
        // What is meant to be taken in begins behind the introduction.
        let keys = lines.drop { $0 != "# [gateway]" }.map { line in
            let text = line.hasPrefix("# ") ? String(line.dropFirst(2)) : line == "#" ? "" : line
            return text.hasPrefix("[") || text.contains(" = ") ? text : ""
        }
        for (name, text) in [("example", example), ("packaged", keys.joined(separator: "\n"))] {
            let path = folder + "/" + name
            try text.write(toFile: path, atomically: true, encoding: .utf8)
            switch GatewayLoader.load(path: path, environment: [:]) {
            case .success(let gateway): #expect(gateway.http?.tokens.count == 1 && gateway.nats.count == 1)
            case .failure(let problems): Issue.record("\(problems)")
            }
        }
    }
}
