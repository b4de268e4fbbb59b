// SPDX-License-Identifier: Apache-2.0

import Configuration
import TransferProtocol

/// The proxies that the transfers of an app go by: what the variables say by which other programs find theirs (curl(1)), the
/// app's own before the supervisor's.
struct TransferProxies: Hashable {
    /// Those of the app's own variables that are about proxies.
    let own: [String: String]

    // HTTP_PROXY is not one of them: in a CGI program it is a header field of whoever asks.
    private static let names = [
        "http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY",
    ]

    init(of specification: AppSpecification) {
        own = specification.environment.filter { variable in Self.names.contains { $0 == variable.key } }
    }

    /// The host of the one by which a server would be reached; nil where there is none, or it brings a login of its own. What
    /// `no_proxy` excepts does not count: a login for a proxy that is not asked is told nobody.
    func host(for address: WebAddress) -> String? {
        let names = address.isSecure ? ["https_proxy", "HTTPS_PROXY"] : ["http_proxy"]
        let value = (names + ["all_proxy", "ALL_PROXY"]).lazy
            .compactMap { self.own[$0] ?? LaunchEnvironment.inherited[$0] }.first { !$0.isEmpty }
        guard let value else { return nil }
        return WebAddress(value.utf8.contains(UInt8(ascii: "/")) ? value : "http://" + value)?.host
    }
}
