// SPDX-License-Identifier: Apache-2.0

import Configuration
import TransferProtocol

/// The proxies that the transfers of an app go by: what the variables say by which other programs find theirs (curl(1)). Where
/// the app's own variables say anything of servers of one scheme, those of the supervisor do not count for it.
struct TransferProxies {
    let plain: String?
    let secure: String?
    let none: String?

    init(of specification: AppSpecification) {
        func find(_ names: [String]) -> String? {
            let own = names.lazy.compactMap { specification.environment[$0] }.first
            let value = own ?? names.lazy.compactMap { LaunchEnvironment.inherited[$0] }.first
            return value.flatMap { $0.isEmpty ? nil : $0 }
        }
        // HTTP_PROXY is none of them: in a CGI program it is a header field of whoever asks.
        plain = find(["http_proxy", "all_proxy", "ALL_PROXY"])
        secure = find(["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"])
        none = find(["no_proxy", "NO_PROXY"])
    }
}
