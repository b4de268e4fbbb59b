// SPDX-License-Identifier: Apache-2.0

import KeeperProtocol
import Testing

@Suite("A request to launch a process")
struct LaunchRequestTests {
    private func request() -> LaunchRequest {
        var request = LaunchRequest()
        request.app = "web"
        request.executable = "/bin/tool"
        request.arguments = ["tool", "", "ä"]
        request.environment = ["A=1", "B=" + String(repeating: "x", count: 100)]
        return request
    }

    @Test("ends with its texts, each with a NUL behind it, in the keeper's order")
    func texts() throws {
        func end(_ texts: [String]) -> [UInt8] { texts.flatMap { Array($0.utf8) + [0] } }
        var request = self.request()
        let bare = end(["web", "/bin/tool", ""] + request.arguments + request.environment)
        #expect(try request.encoded(id: 1).suffix(bare.count) == bare[...])
        request.directory = "/"
        request.inputFile = "/in"
        request.errorFile = "/err"
        let expected = end(["web", "/bin/tool", "/", "/in", "/err"] + request.arguments + request.environment)
        #expect(try request.encoded(id: 1).suffix(expected.count) == expected[...])
    }

    @Test("is refused if a text contains a NUL, wherever it is")
    func nul() throws {
        let changes: [(inout LaunchRequest) -> Void] = [
            { $0.app = "w\0b" }, { $0.executable = "/bin/tool\0" }, { $0.directory = "\0" }, { $0.inputFile = "/\0" },
            { $0.errorFile = "/\0x" }, { $0.arguments.append("\0") }, { $0.environment.append("C=\0d") },
            { $0.environment[1] += "\0" },
        ]
        for change in changes {
            var changed = request()
            change(&changed)
            let wrong = changed
            #expect(throws: LaunchRequest.Refusal.nul) { try wrong.encoded(id: 1) }
        }
    }
}
