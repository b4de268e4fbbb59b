// SPDX-License-Identifier: Apache-2.0

import Testing
import TransferRules

@Suite struct WholeHeadTests {
    @Test func `a head is whole after the empty line of a final answer`() {
        #expect(!ResponseHead().isComplete)
        var answer = head("HTTP/1.1 103 Early Hints", "ETag: \"none\"", "")
        #expect(!answer.isComplete)
        answer.take(Array("HTTP/1.1 200 OK\r\n".utf8))
        answer.take(Array("ETag: \"one\"\r\n".utf8))
        #expect(!answer.isComplete)
        answer.take(Array("\r\n".utf8))
        #expect(answer.isComplete && answer["etag"] == "\"one\"")
    }

    @Test func `trailers are none of the head, and the next answer begins anew`() {
        var answer = head(
            "HTTP/1.1 200 OK",
            "Transfer-Encoding: chunked",
            "",
            "ETag: \"late\"",
            "Content-Encoding: gzip",
            ""
        )
        #expect(answer.isComplete && answer["etag"] == nil && answer.encoding == nil)
        answer.take(Array("HTTP/1.1 401 Unauthorized\r\n".utf8))
        #expect(!answer.isComplete && answer.status == 401)
    }
}
