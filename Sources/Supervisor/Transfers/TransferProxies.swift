// SPDX-License-Identifier: Apache-2.0

import Configuration
import TransferProtocol

/// The proxies for the transfers of an app, from the environment variables that other programs use too (curl(1)). If
/// the app's own variables set a proxy for a URL scheme, the supervisor's variables for that scheme are ignored.
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
        // HTTP_PROXY is not used, because in a CGI program a client can set this variable by a header field.
        plain = find(["http_proxy", "all_proxy", "ALL_PROXY"])
        secure = find(["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"])
        none = find(["no_proxy", "NO_PROXY"])
    }
}
