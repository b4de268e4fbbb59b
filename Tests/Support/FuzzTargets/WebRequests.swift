// SPDX-License-Identifier: Apache-2.0

import Web
import WireText

/// A request to the dashboard: path, `Host`, `Origin`, `Sec-Fetch-Site`, `Authorization`, cookie and a word of its own
/// command line, with a newline between.
enum WebRequests: FuzzedParser {
    static func run(_ bytes: [UInt8]) throws(Finding) {
        let lines = bytes.split(separator: UInt8(ascii: "\n"), maxSplits: 6, omittingEmptySubsequences: false)
        guard lines.count == 7 else { return }
        let texts = lines.map { $0.isEmpty ? nil : String(wire: $0) }
        if let path = texts[0], let route = WebRoute(path: path) {
            try expect(!route.methods.isEmpty, "\(path) takes no method")
            if case .asset(let name) = route {
                let isHere = !name.utf8.contains(UInt8(ascii: "/")) && name.utf8.first != UInt8(ascii: ".")
                try expect(isHere, "a file elsewhere: \(name)")
            }
        }
        let local = ListenAddress.tcp(host: "127.0.0.1", port: 7_878)
        let host = texts[1]
        if HostRule(local, further: ["proxy.example"]).allows(host) {
            let name = host.map { $0.prefix { $0 != ":" }.lowercased() } ?? ""
            let isOurs = ["localhost", "127.0.0.1", "proxy.example"].contains(name) || name == "["
            try expect(isOurs, "\(host ?? "") is allowed")
        }
        _ = HostRule(.tcp(host: "0.0.0.0", port: 1), further: []).allows(host)
        let isAllowed = OriginRule.allows(origin: texts[2], fetchSite: texts[3], host: host, hasBearer: false)
        if isAllowed, texts[3] == nil {
            let ours = ["http://\(host ?? "")", "https://\(host ?? "")"]
            try expect(texts[2].map { ours.contains($0) } ?? false, "\(texts[2] ?? "") is our own page")
        }
        let token = Array("0123456789abcdef".utf8)
        let verdict = WebAccess(token: token, address: local).judge(authorization: texts[4], cookie: texts[5])
        if verdict == .bearer { try expect(lines[4].dropFirst(7).elementsEqual(token), "another token is taken") }
        guard let word = texts[6] else { return }
        if let address = ListenAddress(word) {
            try expect(ListenAddress(address.description) == address, "\(word) is another address when it is written")
        }
        _ = try? WebOptions(word.split(separator: " ").map(String.init))
    }
}
