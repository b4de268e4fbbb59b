// SPDX-License-Identifier: Apache-2.0

import Foundation
import Linux
import Synchronization

/// The policies of the tests, each built when it is first asked for, into a folder that goes with the run.
public enum Libraries {
    /// The repository.
    public static let root = String(#filePath.split(separator: "Tests/Support")[0])
    /// Where the sources of the policies are.
    public static let sources = root + "Tests/Support/Policies/"

    private static let built = Mutex<[String: String]>([:])

    /// A folder that nobody else can write to, removed at the end of the run.
    public static let folder: String = {
        var template = Array((NSTemporaryDirectory() + "policies-XXXXXX").utf8CString)
        precondition(mkdtemp(&template) != nil, "no folder in \(NSTemporaryDirectory())")
        // Whoever policies run as may look into it.
        chmod(template, 0o755)
        atexit { try? File.removeTree(Libraries.folder) }
        return template.withUnsafeBufferPointer { String(cString: $0.baseAddress!) }
    }()

    /// A library from a source file, with what the compiler is told besides.
    public static func path(_ source: String, _ flags: [String] = []) throws -> String {
        let key = ([source] + flags).joined(separator: " ")
        return try built.withLock { built in
            if let path = built[key] { return path }
            let name = source.split(separator: ".")[0]
            let path = folder + "/lib\(name)-\(built.count).so"
            try build(source, flags, path)
            built[key] = path
            return path
        }
    }

    private static func build(_ source: String, _ flags: [String], _ path: String) throws {
        let include = ["-I", root + "Sources/TorporPolicyABI/include"]
        let file = sources + source
        if source.hasSuffix(".swift") {
            let module = ["-module-name", "Policy", "-emit-library", "-parse-as-library", "-O"]
            try compile("swiftc", module + include + flags + [file, "-o", path])
        } else {
            let common = ["-Wall", "-Wextra", "-O1", "-fPIC", "-shared"]
            try compile(source.hasSuffix(".cpp") ? "g++" : "gcc", common + include + flags + [file, "-o", path])
        }
    }

    /// Runs a compiler, which must succeed.
    public static func compile(_ program: String, _ arguments: [String]) throws {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = [program] + arguments
        let output = Pipe()
        process.standardError = output
        process.standardOutput = output
        try process.run()
        let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        if process.terminationStatus != 0 {
            throw CompilerFailure(description: "\(program) \(arguments.joined(separator: " ")): \(text)")
        }
    }

    /// A folder of the test's own below the run's.
    public static func makeFolder(_ name: String) throws -> String {
        let path = folder + "/\(name)-\(UUID().uuidString.prefix(8))"
        try File.makeDirectory(path)
        return path
    }
}

/// What a compiler said when it failed.
public struct CompilerFailure: Error, CustomStringConvertible {
    /// Its output, behind its command.
    public let description: String
}
