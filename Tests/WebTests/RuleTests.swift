// SPDX-License-Identifier: Apache-2.0

import Testing
import TorporAPI

@testable import Web

@Suite("What the dashboard lets in") struct RuleTests {
    @Test("an address to listen at is numeric, or a path")
    func addresses() {
        #expect(ListenAddress("127.0.0.1:7878") == .tcp(host: "127.0.0.1", port: 7878))
        #expect(ListenAddress("[::1]:80") == .tcp(host: "::1", port: 80))
        #expect(ListenAddress("80") == .tcp(host: "127.0.0.1", port: 80))
        #expect(ListenAddress("unix:/run/x") == .unix(path: "/run/x"))
        for text in ["", "localhost:80", "::1:80", "[1]:80", "127.0.0.1:99999", "unix:x", "1.2.3:4"] {
            #expect(ListenAddress(text) == nil, "\(text)")
        }
        #expect(ListenAddress("[::1]:80")?.description == "[::1]:80")
    }

    @Test("an address that others reach needs a token that was set")
    func remote() throws {
        #expect(throws: WebOptions.Problem.self) { try WebOptions(["--listen", "0.0.0.0:1"]) }
        #expect(throws: WebOptions.Problem.self) { try WebOptions(["--listen=[::]:1"]) }
        let options = try WebOptions(["--listen", "0.0.0.0:1", "--token-file", "/t", "--read-only", "--host=a.b"])
        #expect(options.tokenFile == "/t" && options.isReadOnly && options.hosts == ["a.b"])
        for words in [["--listen"], ["--listen", "x"], ["--what"]] {
            #expect(throws: WebOptions.Problem.self) { try WebOptions(words) }
        }
    }

    @Test("a page of another name is not ours, whatever address the name has")
    func hosts() {
        let local = HostRule(.tcp(host: "127.0.0.1", port: 7878), further: ["Torpor.example.org"])
        for host in ["127.0.0.1:7878", "localhost", "LOCALHOST:1", "[::1]:7878", "torpor.example.org"] {
            #expect(local.allows(host), "\(host)")
        }
        for host in [
            nil, "", "evil.example", "evil.example:7878", "127.0.0.1.evil.example", "localhost:x", "[::1", "10.0.0.1",
        ] {
            #expect(!local.allows(host), "\(host ?? "none")")
        }
        let everywhere = HostRule(.tcp(host: "0.0.0.0", port: 1), further: [])
        #expect(everywhere.allows("10.0.0.1:1") && everywhere.allows("[fe80::1]"))
        #expect(!everywhere.allows("evil.example") && !everywhere.allows("1.2.3.4.5"))
        #expect(HostRule(.unix(path: "/s"), further: []).allows("any.thing"))
        #expect(!HostRule(.unix(path: "/s"), further: ["a"]).allows("b"))
    }

    @Test("what changes something comes from our own page, or from a program that shows the token")
    func origins() {
        func allows(_ origin: String?, _ site: String?, _ bearer: Bool = false) -> Bool {
            OriginRule.allows(origin: origin, fetchSite: site, host: "127.0.0.1:7878", hasBearer: bearer)
        }
        #expect(allows("http://127.0.0.1:7878", "same-origin"))
        #expect(allows("http://127.0.0.1:7878", nil))
        #expect(allows("https://127.0.0.1:7878", nil))
        #expect(allows(nil, nil, true))
        #expect(!allows(nil, nil))
        #expect(!allows("http://127.0.0.1:7879", nil, true))
        #expect(!allows("null", nil, true))
        for site in ["cross-site", "same-site", "none"] { #expect(!allows("http://127.0.0.1:7878", site, true)) }
    }

    @Test("a token lets in as it is, a cookie that is made of it too, and nothing else")
    func tokens() {
        let token = Array("0123456789abcdef".utf8)
        let access = WebAccess(token: token, address: .tcp(host: "127.0.0.1", port: 7878))
        let cookie = String(decoding: WebAccess.cookie(of: token), as: UTF8.self)
        #expect(access.judge(authorization: "Bearer 0123456789abcdef", cookie: nil) == .bearer)
        #expect(access.judge(authorization: nil, cookie: cookie) == .cookie)
        #expect(access.judge(authorization: nil, cookie: nil) == .missing)
        #expect(access.judge(authorization: nil, cookie: "") == .missing)
        #expect(access.judge(authorization: nil, cookie: "0123456789abcdef") == .wrong)
        #expect(access.judge(authorization: "Bearer \(cookie)", cookie: cookie) == .wrong)
        #expect(access.judge(authorization: "Basic x", cookie: cookie) == .wrong)
        #expect(access.judge(authorization: "Bearer 0123456789abcde", cookie: nil) == .wrong)
        #expect(access.setCookie.hasPrefix("torpor-web-7878=\(cookie); Path=/; HttpOnly; SameSite=Strict"))
        #expect(!cookie.contains("0123456789abcdef"))
        let open = WebAccess(token: nil, address: .unix(path: "/s"))
        #expect(open.judge(authorization: nil, cookie: nil) == .socket && !open.needsToken)
    }

    @Test("wrong tokens are counted each second anew")
    func tries() {
        var limit = TryLimit(most: 2)
        for _ in 0..<2 {
            #expect(limit.allows(at: 7))
            limit.fail(at: 7)
        }
        #expect(!limit.allows(at: 7) && limit.allows(at: 8))
        limit.fail(at: 8)
        #expect(limit.allows(at: 8))
    }

    @Test("SHA-256 and HMAC give what the standards say")
    func hashes() {
        func hash(_ text: String) -> String { SHA256.hexadecimal(SHA256.hash(Array(text.utf8))) }
        #expect(hash("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
        #expect(hash("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
        let long = String(repeating: "a", count: 1_000)
        #expect(hash(long) == "41edece42d63e8d9bf515a9ba6932e1c20cbc9f5a5d134645adb5db1b9737ea3")
        // RFC 4231, test case 2.
        let code = SHA256.authenticate(Array("what do ya want for nothing?".utf8), key: Array("Jefe".utf8))
        let expected = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        #expect(SHA256.hexadecimal(code) == expected)
    }
}
