// SPDX-License-Identifier: Apache-2.0

package import Linux

/// Writes files whose paths users have given.
package enum UserFile {
    /// Writes the file. A regular file is replaced as a whole, so that it is never partly written. If the path names
    /// something else, such as /dev/null or a pipe, writes the bytes into it: a replacement by root would remove the
    /// device.
    package static func write(_ path: String, _ bytes: [UInt8], mode: UInt32 = 0o644) throws(Errno) {
        guard let kind = try? File.status(path).kind, kind != .regular else {
            return try File.replace(path, bytes, mode: mode)
        }
        try File.open(path, [.write]).withRaw { raw throws(Errno) in try Descriptor.writeAll(raw, bytes) }
    }
}
