// SPDX-License-Identifier: Apache-2.0

import Configuration
import Testing

@testable import Supervisor

@Suite("The proxies of an app's transfers") struct TransferProxyTests {
    private func proxies(_ environment: [String: String]) -> TransferProxies {
        var app = AppSpecification(name: "a")
        app.environment = environment
        return TransferProxies(of: app)
    }

    @Test("Each scheme has its own, and else that of all; HTTP_PROXY is none") func names() {
        let all = proxies(["all_proxy": "http://a:1", "https_proxy": "b:2", "HTTPS_PROXY": "c", "no_proxy": "x"])
        #expect(all.plain == "http://a:1" && all.secure == "b:2" && all.none == "x")
        let upper = proxies(["HTTP_PROXY": "http://h", "HTTPS_PROXY": "http://s", "NO_PROXY": "y"])
        #expect(upper.plain != "http://h" && upper.secure == "http://s" && upper.none == "y")
    }

    @Test("An empty one is none, whatever the supervisor has") func empty() {
        let none = proxies(["http_proxy": "", "https_proxy": "", "no_proxy": ""])
        #expect(none.plain == nil && none.secure == nil && none.none == nil)
    }
}
