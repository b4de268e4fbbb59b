// SPDX-License-Identifier: Apache-2.0

import Foundation
import Linux
import Testing
import Varlink

@testable import Supervisor

@Suite("Sessions of scenes on the disk") struct SceneFolderTests {
    private let state: String
    private let folder: SceneFolder

    init() throws {
        state = FileManager.default.temporaryDirectory.path + "/torpor-scenes-\(UUID().uuidString)"
        folder = SceneFolder(state: state)
    }

    private func names() throws -> [String] { try File.list(folder.path).sorted() }

    @Test("What is written is read, and what is no session is left alone")
    func written() throws {
        defer { try? File.removeTree(state) }
        #expect(folder.read().sessions.isEmpty)
        var session = SceneSession(app: "code@alice", template: "code", name: "alice", openedAt: 7)
        session.options = ["course": 3]
        try folder.write(session)
        try File.write(folder.path + "/notes", "")
        try File.makeDirectory(folder.path + "/code@directory")
        try File.link(folder.path + "/code@link", to: "/etc/passwd")
        let (found, troubles) = folder.read()
        #expect(found.map(\.app) == ["code@alice"] && troubles.isEmpty)
        #expect(found.first?.options == ["course": 3] && found.first?.openedAt == 7)
        try folder.remove("code@alice")
        try folder.remove("code@alice")
        #expect(folder.read().sessions.isEmpty)
        #expect(try names() == ["code@directory", "code@link", "notes"])
    }

    @Test("What was being written when a torpord died is no scene, and goes")
    func drafts() throws {
        defer { try? File.removeTree(state) }
        try folder.write(SceneSession(app: "code@alice", template: "code", name: "alice", openedAt: 7))
        try File.write(folder.path + "/.code@bob", "{\"op")
        #expect(folder.read().sessions.map(\.app) == ["code@alice"])
        #expect(try names() == ["code@alice"])
    }

    @Test("Of a session that cannot be written nothing is there")
    func unwritten() throws {
        defer { try? File.removeTree(state) }
        try File.makeDirectories(folder.path + "/code@alice")
        let session = SceneSession(app: "code@alice", template: "code", name: "alice", openedAt: 7)
        #expect(throws: Errno.self) { try folder.write(session) }
        #expect(try names() == ["code@alice"] && folder.read().sessions.isEmpty)
    }

    @Test("A session whose file is damaged comes back without what it was opened with, and is told of")
    func damaged() throws {
        defer { try? File.removeTree(state) }
        try File.makeDirectories(folder.path)
        for (index, text) in ["", "{", "[]", "{\"options\":"].enumerated() {
            try File.write(folder.path + "/code@s\(index)", text)
        }
        let (found, troubles) = folder.read()
        #expect(found.count == 4 && found.allSatisfy { $0.options == .null && !$0.isDiscarded })
        #expect(troubles.count == 3, "\(troubles)")
    }
}
