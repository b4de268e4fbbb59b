// SPDX-License-Identifier: Apache-2.0

import CommandLinePages
import EverydayVerbs
import Linux

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
