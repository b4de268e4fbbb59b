// SPDX-License-Identifier: Apache-2.0

import Foundation
import Permissions
import Testing

@testable import Linux
@testable import Supervisor

@Suite("torpord's own files, under other names") struct GuardedPlacesTests {
    /// A folder with torpord's folder `state`, its file `conf/torpor.toml`, and `other`.
    private static func with(_ body: (String) throws -> Void) throws {
        var template = Array((NSTemporaryDirectory() + "guarded-XXXXXX").utf8CString)
        _ = try #require(mkdtemp(&template))
        let made = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        defer { try? FileManager.default.removeItem(atPath: made) }
        let folder = URL(filePath: made).resolvingSymlinksInPath().path
        for name in ["state/bundles/notes", "conf", "other"] {
            try FileManager.default.createDirectory(atPath: "\(folder)/\(name)", withIntermediateDirectories: true)
        }
        for name in ["state/store", "conf/torpor.toml", "other/file"] {
            #expect(FileManager.default.createFile(atPath: "\(folder)/\(name)", contents: nil))
        }
        try body(folder)
    }

    private static func found(_ path: String) throws -> SteadyPath.Found {
        let file = try File.open(path, .path)
        let kind = try File.status(descriptor: file.raw).kind
        return SteadyPath.Found(path: path, descriptor: file, isFolder: kind == .directory)
    }

    @Test("are known by what they are: themselves, what is in them, and for writing what they are in")
    func places() throws {
        try Self.with { folder in
            let (state, file, link) = (folder + "/state", folder + "/conf/torpor.toml", folder + "/link")
            try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: state + "/bundles")
            try FileManager.default.linkItem(atPath: file, toPath: folder + "/other/hard")
            let own = GuardedPlaces([state, file, folder + "/absent"])
            for path in [state, state + "/bundles/notes", state + "/store", link, link + "/notes"] {
                for name in [path, "/proc/self/root" + path, "/proc/thread-self/root" + path] {
                    let found = try Self.found(name)
                    #expect(own.place(openedBy: found, forWriting: true) == state, "\(name)")
                    #expect(own.place(openedBy: found, forWriting: false) == state, "\(name)")
                }
            }
            for path in [file, folder + "/other/hard"] {
                let found = try Self.found(path)
                #expect(own.place(openedBy: found, forWriting: false) == file, "\(path)")
            }
            for path in ["/", folder, folder + "/conf", "/proc/self/root" + folder] {
                let found = try Self.found(path)
                #expect(own.place(openedBy: found, forWriting: true) != nil, "\(path)")
                #expect(own.place(openedBy: found, forWriting: false) == nil, "\(path)")
            }
            for path in [folder + "/other", folder + "/other/file", "/dev/null"] {
                let found = try Self.found(path)
                #expect(own.place(openedBy: found, forWriting: true) == nil, "\(path)")
            }
        }
    }

    @Test(
        "are withheld from what only a bundle's manifest asks for, and the app is told",
        .enabled(if: Confinement.isAvailable() && Users.isRoot, "needs root, and a kernel with Landlock")
    )
    func launch() throws {
        try Self.with { folder in
            let state = folder + "/state"
            try FileManager.default.createSymbolicLink(atPath: folder + "/link", withDestinationPath: state)
            var grants = PermissionGrants()
            var order = SandboxOrder(mode: .permissions, grants: grants, places: SandboxPlaces(executable: "/bin/sh"))
            order.ownPaths = [state]
            /// What the app is told when it asks for a path.
            func told(_ path: String, isOfBundle: Bool) throws -> [String] {
                grants.files = [PermissionGrants.Files(path: folder + path, isReadOnly: true, isOfBundle: isOfBundle)]
                order.grants = grants
                return try order.make().skipped.filter { $0.hasPrefix(folder + path) }
            }
            for path in ["/link", "/li[n]k", "/link/bundles", "/state/b*/notes"] {
                let withheld = try told(path, isOfBundle: true)
                #expect(withheld.count == 1 && withheld[0].contains("leads to \(state),"), "\(withheld)")
                let owned = try told(path, isOfBundle: false)
                #expect(owned.isEmpty, "\(owned)")
            }
            let other = try told("/other", isOfBundle: true)
            #expect(other.isEmpty, "\(other)")
        }
    }
}
