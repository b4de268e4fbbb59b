// SPDX-License-Identifier: Apache-2.0

/// A running ALSA stream (the kernel's Documentation/sound/designs/procfile.rst).
public struct SoundStream: Hashable, Sendable {
    /// The stream's path below `/proc/asound`, such as `card0/pcm0p/sub0`; `p` stands for playback, `c` for capture.
    public let place: String
    /// The process that opened the stream.
    public let owner: Int32

    /// Whether the stream records sound.
    public var isRecording: Bool { place.split(separator: "/").dropFirst().first?.hasSuffix("c") ?? false }

    /// Creates a stream from its parts.
    public init(place: String, owner: Int32) {
        self.place = place
        self.owner = owner
    }

    /// Returns the running streams. May block, because the kernel locks the state of a device while a process opens it.
    ///
    /// - Parameter root: a prefix for paths below `/proc`; empty except in tests.
    public static func running(root: String = "") -> [SoundStream] {
        let top = root + "/proc/asound"
        var streams: [SoundStream] = []
        for card in folders(top, "card") {
            for device in folders(top + "/" + card, "pcm") {
                for part in folders(top + "/" + card + "/" + device, "sub") {
                    let place = card + "/" + device + "/" + part
                    guard let text = try? File.readString(top + "/" + place + "/status", limit: 4096),
                        let owner = owner(text)
                    else { continue }
                    streams.append(SoundStream(place: place, owner: owner))
                }
            }
        }
        return streams
    }

    private static func folders(_ path: String, _ kind: String) -> [String] {
        let names = (try? File.list(path)) ?? []
        return names.filter { $0.hasPrefix(kind) && $0.dropFirst(kind.count).first?.isWholeNumber ?? false }.sorted()
    }

    /// Parses a stream's status file. Returns the process that has the stream open; nil if the stream is neither
    /// running nor draining. The file names a thread, so this function looks up the thread's process.
    static func owner(_ status: String) -> Int32? {
        var isRunning = false
        var thread: Int32?
        // The lines are `state: RUNNING`, `owner_pid   : 1234` and so on. If no process has the stream open, the only
        // line is `closed`.
        for line in status.split(separator: "\n") {
            let parts = line.split(separator: ":", maxSplits: 1).map { $0.filter { !$0.isWhitespace } }
            guard parts.count == 2 else { continue }
            if parts[0] == "state" { isRunning = parts[1] == "RUNNING" || parts[1] == "DRAINING" }
            if parts[0] == "owner_pid" { thread = Int32(parts[1]) }
        }
        guard isRunning, let thread, thread > 0 else { return nil }
        let process = (try? ProcFS.statusField(thread, "Tgid")).flatMap { $0 }.flatMap { Int32($0) }
        return process ?? thread
    }
}
