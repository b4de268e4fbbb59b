// SPDX-License-Identifier: Apache-2.0

import WireText

/// The texts of all files of a configuration, from which the configuration can be read again without the disk.
///
/// The files that `environment_file` names are not included, because they are read at each launch.
public struct ConfigurationSources: Sendable, Hashable {
    /// A configuration file and its text at the time when it was read.
    public struct File: Sendable, Hashable {
        /// The file's path, in the form in which diagnostics show it. A relative path is resolved against the working
        /// directory.
        public var path: String
        /// The content of the file when it was read.
        public var text: [UInt8]

        /// Creates a file in memory. It need not exist on disk.
        public init(path: String, text: [UInt8]) {
            self.path = path
            self.text = text
        }
    }

    /// The absolute path of the directory against which relative paths are resolved.
    public var workingDirectory: String
    /// All files, in the order in which they were read. The first file includes the others.
    public var files: [File]

    /// Directories that a running supervisor uses, by their keys in `[supervisor]`. They override the directories in
    /// the texts, because a running supervisor cannot move to other directories.
    public var directories: [String: String] = [:]

    /// Creates sources from texts in memory. The first file includes the others.
    public init(workingDirectory: String, files: [File]) {
        self.workingDirectory = workingDirectory
        self.files = files
    }

    /// The path of the first file, from which the configuration can be read again; empty if there are no files.
    public var path: String { files.first?.path ?? "" }
}

extension ConfigurationSources {
    /// The first 8 bytes of the encoded form: the letters `TORPCONF` as a little-endian number.
    private static let magic: UInt64 = 0x464e_4f43_5052_4f54
    /// The version of the encoded form. Version 1 consists of: magic, version, working directory, number of files, path
    /// and text of each file, number of directories, key and path of each directory, checksum. Numbers are
    /// little-endian. The magic and the checksum have 8 bytes, all other numbers 4. A text is its length in bytes,
    /// followed by its bytes.
    private static let version: UInt32 = 1

    /// Encodes the sources. ``init(decoding:)`` decodes them.
    public func encoded() -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(64 + files.reduce(0) { $0 + $1.path.utf8.count + $1.text.count + 8 })
        bytes.append(number: Self.magic)
        bytes.append(number: Self.version)
        bytes.append(text: workingDirectory.utf8)
        bytes.append(number: UInt32(files.count))
        for file in files {
            bytes.append(text: file.path.utf8)
            bytes.append(text: file.text)
        }
        bytes.append(number: UInt32(directories.count))
        for (key, path) in directories.sorted(by: { $0.key < $1.key }) {
            bytes.append(text: key.utf8)
            bytes.append(text: path.utf8)
        }
        bytes.append(number: Self.checksum(bytes[...]))
        return bytes
    }

    /// Decodes the result of ``encoded()``; `nil` if the version is unknown, or if bytes are missing or damaged.
    public init?(decoding bytes: [UInt8]) {
        guard bytes.count >= 8 else { return nil }
        var reader = ByteReader(rest: bytes.dropLast(8))
        var end = ByteReader(rest: bytes.suffix(8))
        guard end.number(as: UInt64.self) == Self.checksum(bytes.dropLast(8)),
            reader.number(as: UInt64.self) == Self.magic,
            reader.number(as: UInt32.self) == Self.version,
            let workingDirectory = reader.text(),
            let count = reader.number(as: UInt32.self), count > 0, count <= UInt32(FileReader.countLimit)
        else { return nil }
        var files: [File] = []
        for _ in 0..<count {
            guard let path = reader.text(), let text = reader.text() else { return nil }
            files.append(File(path: String(wire: path), text: Array(text)))
        }
        var directories: [String: String] = [:]
        for _ in 0..<(reader.number(as: UInt32.self) ?? 0) {
            guard let key = reader.text(), let path = reader.text() else { return nil }
            directories[String(wire: key)] = String(wire: path)
        }
        guard reader.rest.isEmpty else { return nil }
        self.init(workingDirectory: String(wire: workingDirectory), files: files)
        self.directories = directories
    }

    /// The checksum of the bytes: 64-bit FNV-1a.
    private static func checksum(_ bytes: ArraySlice<UInt8>) -> UInt64 {
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        for byte in bytes { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
        return hash
    }
}

extension ConfigurationSources {
    /// Returns the sources after reading the manifest of a bundle again from the disk, which may block.
    public func rereading(bundle name: String) -> ConfigurationSources {
        let end = InstalledManifest.end(of: name)
        var sources = self
        for index in files.indices where files[index].path.hasSuffix(end) {
            let state = String(files[index].path.dropLast(end.count))
            guard case .success(let manifest) = InstalledManifest.read(name, in: state) else { continue }
            sources.files[index].text = manifest.kept
        }
        return sources
    }
}

extension ConfigurationSystem {
    /// A replacement for the real machine that has no files except the sources.
    ///
    /// It reports that every user and group exists. They were already looked up when the files were read from the disk,
    /// and are looked up again at each launch.
    init(_ sources: ConfigurationSources, userID: UInt32, groupID: UInt32) {
        let working = Path.join("/", sources.workingDirectory)
        var texts: [String: [UInt8]] = [:]
        var folders: [String: Set<String>] = [:]
        for file in sources.files {
            let path = Path.join(working, file.path)
            texts[path] = file.text
            var rest = path
            while rest != "/" {
                let folder = Path.folder(rest)
                let name = String(rest.dropFirst(folder == "/" ? 1 : folder.count + 1))
                folders[folder, default: []].insert(name)
                rest = folder
            }
        }
        let (files, names) = (texts, folders.mapValues { $0.sorted() })
        self.init(
            read: { files[$0].map(Result.success) ?? .failure(.missing) },
            names: { names[$0] },
            userID: { _ in userID },
            groupID: { _ in groupID },
            effectiveUserID: userID,
            effectiveGroupID: groupID,
            workingDirectory: working
        )
        bundle = { name, _ in
            let end = InstalledManifest.end(of: name)
            let file = sources.files.first { $0.path.hasSuffix(end) }
            guard let file else { return .failure(.missing) }
            guard !file.text.isEmpty else { return .failure(.passing("\(file.path) could not be read before")) }
            return .success(InstalledManifest(path: file.path, kept: file.text))
        }
    }
}

/// Reads numbers and texts from untrusted bytes, from the first byte to the last.
private struct ByteReader {
    var rest: ArraySlice<UInt8>

    mutating func number<Number: FixedWidthInteger>(as type: Number.Type) -> Number? {
        let size = MemoryLayout<Number>.size
        guard rest.count >= size else { return nil }
        defer { rest = rest.dropFirst(size) }
        return rest.prefix(size).reversed().reduce(0) { $0 << 8 | Number($1) }
    }

    package mutating func text() -> ArraySlice<UInt8>? {
        guard let length = number(as: UInt32.self), rest.count >= Int(length) else { return nil }
        defer { rest = rest.dropFirst(Int(length)) }
        return rest.prefix(Int(length))
    }
}

extension [UInt8] {
    fileprivate mutating func append(number: some FixedWidthInteger) {
        Swift.withUnsafeBytes(of: number.littleEndian) { append(contentsOf: $0) }
    }

    fileprivate mutating func append(text: some Collection<UInt8>) {
        append(number: UInt32(text.count))
        append(contentsOf: text)
    }
}
