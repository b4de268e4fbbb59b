// SPDX-License-Identifier: Apache-2.0

import Foundation
import Linux
import Policies
import PolicyLibraries
import Testing

/// A library is loaded only when nobody but root and the supervisor's user can have put it there or changed it.
struct LibraryTrustTests {
    private let folder: String
    private let library: String

    init() throws {
        folder = try File.realPath(try Libraries.makeFolder("trust"))
        try File.makeDirectories(folder + "/a/b")
        library = folder + "/a/b/lib.so"
        try File.write(library, "content", mode: 0o644)
    }

    private func refusal(_ path: String, users: Set<UInt32>? = nil) throws -> String {
        let failure = try #require(throws: PolicyFailure.self) {
            if let users { _ = try LibraryTrust.open(path, users: users) } else { _ = try LibraryTrust.open(path) }
        }
        guard case .refused(let sentence) = failure else { return "" }
        #expect(sentence.hasPrefix(path + " "))
        return String(sentence.dropFirst(path.count + 1))
    }

    @Test func whatWasLookedAtIsWhatIsOpen() throws {
        let trusted = try LibraryTrust.open(library)
        #expect(trusted.path == library)
        // Whatever comes there later.
        try File.rename(library, library + ".old")
        try File.write(library, "other")
        #expect(try File.read(descriptor: trusted.library.raw) == Array("content".utf8))
        #expect(try File.status(descriptor: trusted.directory.raw).inode == File.status(folder + "/a/b").inode)
        // A place only: it cannot be listed.
        #expect(throws: Errno.badFileDescriptor) { try Descriptor.read(trusted.directory.raw, maximum: 1) }
    }

    @Test func pathsMayWander() throws {
        #expect(try LibraryTrust.open(folder + "//a/./b/../../a/b/lib.so").path == library)
        // Above the root is the root.
        #expect(try LibraryTrust.open("/../.." + library).path == library)
        let steps = ThisProcess.directory.split(separator: "/").map { _ in "../" }.joined()
        #expect(try LibraryTrust.open(steps + library.dropFirst()).path == library)
    }

    @Test func symbolicLinksAreFollowedAndLookedAt() throws {
        try File.link(folder + "/absolute", to: folder + "/a")
        try File.link(folder + "/a/relative.so", to: "../absolute/b/./lib.so")
        try File.link(folder + "/a/b/again.so", to: folder + "/a/relative.so")
        #expect(try LibraryTrust.open(folder + "/a/b/again.so").path == library)
        #expect(try LibraryTrust.open(folder + "/absolute/b/lib.so").path == library)
        try File.link(folder + "/circle", to: "circle")
        #expect(try refusal(folder + "/circle") == "cannot be opened: more than 40 symbolic links lead to it")
        try File.link(folder + "/lost", to: "nowhere/lib.so")
        #expect(try refusal(folder + "/lost") == "is not there: there is no \(folder)/nowhere")
    }

    @Test func aFolderThatALinkLeadsThroughIsLookedAt() throws {
        try File.link(folder + "/link.so", to: folder + "/a/b/lib.so")
        try File.setMode(folder + "/a", 0o777)
        #expect(
            try refusal(folder + "/link.so")
                == "is not loaded: \(folder)/a can be written to by everybody, who could change what is loaded; "
                + "chmod go-w \(folder)/a"
        )
    }

    @Test func whatOthersCanWriteToIsRefused() throws {
        try File.setMode(library, 0o664)
        let group = try File.status(library).gid
        #expect(
            try refusal(library)
                == "is not loaded: can be written to by group \(group), who could change what is loaded; "
                + "chmod go-w \(library)"
        )
        try File.setMode(library, 0o646)
        #expect(try refusal(library).hasPrefix("is not loaded: can be written to by everybody, "))
        try File.setMode(library, 0o644)
        try File.setMode(folder + "/a", 0o775)
        #expect(try refusal(library).hasSuffix("; chmod go-w \(folder)/a"))
        try File.setMode(folder + "/a", 0o755)
        #expect(try LibraryTrust.open(library).path == library)
    }

    @Test func aStickyFolderIsFineWhenWhatIsInItIs() throws {
        try File.setMode(folder + "/a", 0o1777)
        #expect(try LibraryTrust.open(library).path == library)
        try File.setMode(folder + "/a/b", 0o777)
        #expect(try refusal(library).hasSuffix("; chmod go-w \(folder)/a/b"))
    }

    @Test(.enabled(if: Users.isRoot, "only root can give files away")) func whatBelongsToOthersIsRefused() throws {
        func expect(_ place: String) throws {
            #expect(
                try refusal(library)
                    == "is not loaded: \(place == library ? "" : place + " ")belongs to user 4242, who could change what is "
                    + "loaded; chown root \(place), or put the policy into a folder that root owns"
            )
        }
        for place in [library, folder + "/a/b", folder + "/a"] {
            try File.setOwner(place, uid: 4242, gid: nil)
            try expect(place)
            // A sticky bit does not help its owner.
            if place != library {
                try File.setMode(place, 0o1755)
                try expect(place)
            }
            #expect(try LibraryTrust.open(library, users: [0, 4242]).path == library)
            try File.setOwner(place, uid: 0, gid: nil)
        }
        try File.link(folder + "/a/theirs.so", to: library)
        try File.setOwner(folder + "/a/theirs.so", uid: 4242, gid: nil)
        #expect(try refusal(folder + "/a/theirs.so").hasPrefix("is not loaded: belongs to user 4242, "))
    }

    @Test func whatIsNoFileIsNoLibrary() throws {
        #expect(try refusal(folder + "/a/b") == "is not a library: it is a folder; name the library in it")
        try File.makeFIFO(folder + "/fifo")
        #expect(try refusal(folder + "/fifo") == "is not a library: \(folder)/fifo is not a file")
        #expect(try refusal(library + "/deeper.so") == "is not a library: \(library) is not a folder")
        #expect(try refusal(folder + "/none.so") == "is not there")
        #expect(try refusal(folder + "/none/lib.so") == "is not there: there is no \(folder)/none")
        #expect(try refusal("/").hasPrefix("is not a library"))
        #expect(try refusal("/dev/null").hasPrefix("is not "))
    }
}
