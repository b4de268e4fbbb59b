// SPDX-License-Identifier: Apache-2.0

import Testing
import TransferProtocol
import TransferRules

func head(_ lines: String...) -> ResponseHead {
    var head = ResponseHead()
    for line in lines { head.take(Array((line + "\r\n").utf8)) }
    return head
}

@Suite struct HeadTests {
    @Test(arguments: [
        ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777), ("Sunday, 06-Nov-94 08:49:37 GMT", 784_111_777),
        ("Sun Nov  6 08:49:37 1994", 784_111_777), ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
        ("Thu, 29 Feb 2024 23:59:59 GMT", 1_709_251_199), ("Fri, 01 Mar 2024 00:00:00 GMT", 1_709_251_200),
        ("Mon, 01-Jan-69 00:00:00 GMT", 3_124_224_000), ("Fri, 31 Dec 9999 23:59:59 GMT", 253_402_300_799),
    ])
    func `the three forms of dates`(text: String, seconds: Int64) {
        #expect(HTTPDate.seconds(text) == seconds)
    }

    @Test(arguments: [
        "", "now", "Sun, 06 Nov 1994 08:49:37", "Sun, 06 Nov 1994 08:49:37 CET", "Sun, 32 Nov 1994 08:49:37 GMT",
        "Sun, 06 Abc 1994 08:49:37 GMT", "Sun, 06 Nov 1994 24:00:00 GMT", "Sun, 06 Nov 1994 08:49 GMT",
        "Sun, 06 Nov 19940 08:49:37 GMT", "Sun, -6 Nov 1994 08:49:37 GMT", String(repeating: "Sun, ", count: 1000),
    ])
    func `what is no date`(text: String) {
        #expect(HTTPDate.seconds(text) == nil)
    }

    @Test func `ranges`() {
        #expect(ContentRange("bytes 0-9/10") == .part(first: 0, last: 9, total: 10))
        #expect(ContentRange("  Bytes  500-999/1234 ") == .part(first: 500, last: 999, total: 1234))
        #expect(ContentRange("bytes 5-5/*") == .part(first: 5, last: 5, total: nil))
        #expect(ContentRange("bytes */47") == .unsatisfied(total: 47))
        #expect(
            ContentRange("bytes 999999999999999998-999999999999999998/999999999999999999")
                == .part(first: 999_999_999_999_999_998, last: 999_999_999_999_999_998, total: 999_999_999_999_999_999)
        )
    }

    @Test(arguments: [
        "", "bytes", "bytes ", "bytes 0-9", "bytes 9-0/10", "bytes 0-10/10", "bytes 0-9/x", "bytes -9/10",
        "bytes 0-/10",
        "bytes */*", "bytes 0-9/10/11", "bytes 0-4-9/10", "items 0-9/10", "bytes=0-9/10", "bytes +1-9/10",
        "bytes 0-9/9999999999999999999", "bytes 0-99999999999999999999/*", "bytes 0 - 9/10",
    ])
    func `what is no range`(text: String) {
        #expect(ContentRange(text) == nil)
    }

    @Test func `a head is what came since the last status line`() {
        var answer = head("HTTP/1.1 401 Unauthorized", "ETag: \"one\"", "Content-Length: 3", "")
        #expect(answer.status == 401)
        #expect(answer["etag"] == "\"one\"")
        answer.take(Array("HTTP/2 200 \r\n".utf8))
        #expect(answer.status == 200)
        #expect(answer["etag"] == nil)
        #expect(answer.length == nil)
        answer.take(Array("etag:\"two\"".utf8))
        answer.take(Array("X-Other: 1".utf8))
        #expect(answer["etag"] == "\"two\"")
        #expect(answer["x-other"] == nil)
        #expect(answer.size > 60)
    }

    @Test func `status lines that are none have no status`() {
        for line in ["HTTP/1.1", "HTTP/1.1 20", "HTTP/1.1 2000", "HTTP/1.1 abc", "HTTP/1.1 099 x"] {
            #expect(head(line).status == 0, "\(line)")
        }
        #expect(head("HTTP/1.1  206  Partial").status == 206)
    }

    @Test func `two values that contradict each other count as none`() {
        #expect(head("HTTP/1.1 200", "Content-Length: 5", "Content-Length: 5").length == 5)
        #expect(head("HTTP/1.1 200", "Content-Length: 5", "Content-Length: 6").length == nil)
        let ranges = head("HTTP/1.1 206", "Content-Range: bytes 5-9/10", "Content-Range: bytes 0-9/10")
        #expect(BodyUse.of(ranges, offset: 5, validator: nil) == .askForAll)
    }

    @Test func `the length of chunks is not that of the body`() {
        #expect(head("HTTP/1.1 200", "Content-Length: 5", "Transfer-Encoding: chunked").length == nil)
        #expect(head("HTTP/1.1 200", "Content-Length: -5").length == nil)
        #expect(head("HTTP/1.1 200", "Content-Length: 9223372036854775808").length == nil)
    }

    @Test func `what a body is packed with`() {
        #expect(head("HTTP/1.1 200").encoding == nil)
        #expect(head("HTTP/1.1 200", "Content-Encoding: identity").encoding == nil)
        #expect(head("HTTP/1.1 200", "Content-Encoding: GZIP").encoding == "gzip")
        #expect(head("HTTP/1.1 200", "Content-Encoding: identity", "Content-Encoding: br").encoding == "br")
    }

    @Test func `by what a file is known again`() {
        let date = "Date: Sun, 06 Nov 1994 08:50:37 GMT"
        #expect(head("HTTP/1.1 200", "ETag: \"a\"").condition == "\"a\"")
        #expect(head("HTTP/1.1 200", "ETag: W/\"a\"").condition == nil)
        #expect(head("HTTP/1.1 200", "ETag: a").condition == nil)
        #expect(head("HTTP/1.1 200", "ETag: \"\"").condition == nil)
        #expect(head("HTTP/1.1 200", "ETag: \"a\"b\"").condition == nil)
        #expect(head("HTTP/1.1 200", "ETag: \"" + String(repeating: "a", count: 2000) + "\"").condition == nil)
        let old = "Sun, 06 Nov 1994 08:49:37 GMT"
        #expect(head("HTTP/1.1 200", "ETag: W/\"a\"").version == "W/\"a\"" && ResponseHead.isTag("W/\"a\""))
        #expect(head("HTTP/1.1 200", "ETag: \"a\"", "Last-Modified: \(old)").version == "\"a\"")
        #expect(head("HTTP/1.1 200", "ETag: a", "Last-Modified: \(old)").version == old && !ResponseHead.isTag(old))
        #expect(head("HTTP/1.1 200", "Last-Modified: yesterday").version == nil)
        #expect(head("HTTP/1.1 200", "ETag: W/\"a\"", "Last-Modified: \(old)", date).condition == old)
        #expect(head("HTTP/1.1 200", "Last-Modified: Sun, 06 Nov 1994 08:49:38 GMT", date).condition == nil)
        #expect(head("HTTP/1.1 200", "Last-Modified: \(old)").condition == nil)
        #expect(head("HTTP/1.1 200", "Last-Modified: yesterday", date).condition == nil)
    }

    @Test func `when a server wants to be asked again`() {
        func after(_ lines: String...) -> Int64? {
            var answer = head("HTTP/1.1 503")
            for line in lines { answer.take(Array(line.utf8)) }
            return answer.retryAfter(now: 784_111_777)
        }
        #expect(after() == nil)
        #expect(after("Retry-After: 0") == 0)
        #expect(after("Retry-After: 120") == 120)
        #expect(after("Retry-After: 86400") == 3600)
        #expect(after("Retry-After: -5") == nil)
        #expect(after("Retry-After: soon") == nil)
        #expect(after("Retry-After: Sun, 06 Nov 1994 08:50:37 GMT") == 60)
        #expect(after("Retry-After: Sun, 06 Nov 1994 08:00:00 GMT") == 0)
        #expect(after("Retry-After: Sun, 06 Nov 2094 08:00:00 GMT") == 3600)
        // Its own clock counts, not ours.
        #expect(after("Date: Sun, 06 Nov 1994 07:00:00 GMT", "Retry-After: Sun, 06 Nov 1994 07:00:30 GMT") == 30)
    }

    @Test func `what a login is wanted for`() {
        func challenges(_ text: String) -> [Challenge] { head("HTTP/1.1 401", "WWW-Authenticate: \(text)").challenges }
        #expect(
            challenges("Basic realm=\"files, of \\\"all\\\"\"") == [
                Challenge(scheme: "basic", realm: "files, of \"all\"")
            ]
        )
        #expect(
            challenges("Negotiate, Digest realm = x , nonce=\"a=b\", qop=auth,Basic realm=\"y\"")
                == [
                    Challenge(scheme: "negotiate"), Challenge(scheme: "digest", realm: "x"),
                    Challenge(scheme: "basic", realm: "y"),
                ]
        )
        #expect(challenges("") == [])
        #expect(challenges(",,\"x\", Basic") == [Challenge(scheme: "basic")])
        #expect(challenges("Basic realm=\"open").first?.realm == "open")
        #expect(challenges(String(repeating: "A, ", count: 2000)).count == 16)
        let proxy = head("HTTP/1.1 407", "Proxy-Authenticate: Basic realm=p", "WWW-Authenticate: Digest realm=w")
        #expect(proxy.challenges == [Challenge(scheme: "basic", realm: "p")])
        let two = head("HTTP/1.1 401", "WWW-Authenticate: Digest realm=a", "WWW-Authenticate: Basic realm=b")
        #expect(two.challenges.map(\.scheme) == ["digest", "basic"])
    }

    /// Bytes of any kind: nothing traps, and what is remembered is bounded.
    @Test func `no bytes are too strange`() {
        var generator = SystemRandomNumberGenerator()
        let names = [
            "etag", "content-range", "www-authenticate", "retry-after", "last-modified", "content-length", "date",
        ]
        for _ in 0..<3000 {
            var answer = head("HTTP/1.1 \([200, 206, 401, 416, 503].randomElement(using: &generator)!)")
            for _ in 0..<4 {
                let count = Int.random(in: 0..<40, using: &generator)
                var line = Array("\(names.randomElement(using: &generator)!): ".utf8)
                line += (0..<count).map { _ in
                    Bool.random(using: &generator)
                        ? "bytes */-0123456789\"\\=, GMT:".utf8.randomElement(using: &generator)!
                        : UInt8.random(in: 0...255, using: &generator)
                }
                answer.take(line)
            }
            _ = answer.challenges
            _ = answer.condition
            _ = answer.retryAfter(now: 0)
            _ = BodyUse.of(answer, offset: 5, validator: nil)
            _ = TransferEnd.of(answer, bytes: 0, now: 0)
        }
    }
}
