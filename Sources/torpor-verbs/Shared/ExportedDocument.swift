// SPDX-License-Identifier: Apache-2.0

import CommandLinePages
import EverydayVerbs
import Linux

/// Writes files whose paths users have given.
enum UserFile {
    /// Writes the file. A regular file is replaced as a whole, so that it is never partly written. If the path names
    /// something else, such as /dev/null or a pipe, writes the bytes into it: a replacement by root would remove the
    /// device.
    static func write(_ path: String, _ bytes: [UInt8], mode: UInt32 = 0o644) throws(Errno) {
        guard let kind = try? File.status(path).kind, kind != .regular else {
            return try File.replace(path, bytes, mode: mode)
        }
        try File.open(path, [.write]).withRaw { raw throws(Errno) in try Descriptor.writeAll(raw, bytes) }
    }
}

/// Writes a document that is meant for another machine.
enum ExportedDocument {
    /// Writes the document to a file, readable by its owner only, or to standard output.
    ///
    /// - Parameters:
    ///   - output: the file; nil or `-` for standard output.
    ///   - refusal: the beginning of the error message for a user whose standard output is a terminal.
    /// - Returns: whether the document was written to a file.
    static func write(_ bytes: [UInt8], to output: String?, orRefuse refusal: String) throws(Failure) -> Bool {
        guard let output, output != "-" else {
            if ThisProcess.isTerminal(1) {
                throw Failure(status: .usage, message: "\(refusal): write it to a file with -o FILE")
            }
            Output.write(bytes)
            return false
        }
        do throws(Errno) {
            try UserFile.write(output, bytes, mode: 0o600)
        } catch {
            throw Failure(status: .failed, message: "\(output) cannot be written: \(error)")
        }
        return true
    }
}
