// SPDX-License-Identifier: Apache-2.0

import CommandLinePages
import EverydayVerbs
import Linux
import TorporAPI
import Varlink

/// Implements ‘torpor events --record’, which writes the supervisor's policy trace to a file.
final class TraceRecording {
    private let path: String
    /// The output file. It is opened only when the first line arrives, so that an unreachable supervisor does not
    /// destroy an older recording.
    private var output: Descriptor?
    private let every: Int64?
    private let limit: Duration?
    private let progress: Progress
    private let began = Clock.monotonic()
    private var written: UInt64 = 0
    private var rounds = 0
    private var events = 0
    private var headers = 0

    /// Signals that end the recording. They are handled only between two lines, so that the file contains no partial
    /// line.
    private static let endings = [Signal.interrupt, Signal.terminate, Signal.hangup]

    init(path: String, every: TimeLimit?, limit: TimeLimit?, isQuiet: Bool) {
        self.path = path
        self.every = every?.milliseconds
        self.limit = limit.map { .milliseconds(min($0.milliseconds, 1 << 40)) }
        progress = Progress(isShown: !isQuiet)
    }

    package func run(_ options: GlobalOptions) throws(Failure) {
        let manager = try Manager(options)
        if path == "-" { Output.endWithReader() }
        // If the supervisor is replaced, the repeated request asks the new supervisor for the remaining time.
        try manager.call(.recordPolicies(request)) { reply in
            if let line = reply["line"], !line.isNull { take(line) }
        }
        progress.clear()
        report(json: options.json)
    }

    private var request: RecordRequest {
        var request = RecordRequest()
        request.everyMilliseconds = every
        if let limit { request.forMilliseconds = max(0, (began + limit - Clock.monotonic()).microseconds / 1000) }
        return request
    }

    private func take(_ line: JSON) {
        if line["torpor_policy_trace"] != nil {
            headers += 1
            if headers > 1 {
                progress.clear()
                Complaint.say("the recording was interrupted and continues with the present state", .warning)
            }
        } else {
            rounds += 1
            events += line["events"]?.arrayValue?.count ?? 0
        }
        var bytes = line.serialised()
        bytes.append(UInt8(ascii: "\n"))
        write(bytes)
        progress.show(
            "recorded \(events) events in \(Times.duration(seconds: (Clock.monotonic() - began).inSeconds)), "
                + "\(Times.memory(bytes: Int64(clamping: written))); Ctrl-C ends it"
        )
    }

    /// Writes a whole line, or nothing on an error.
    private func write(_ bytes: [UInt8]) {
        for signal in Self.endings { try? Signal.block(signal) }
        do throws(Errno) {
            if output == nil { output = try open() }
            guard let output else { return }
            if let failure = bytes.withUnsafeBytes({ Descriptor.writeAll(output.raw, $0).failure }) {
                // Remove a partial line, which would look like a damaged file. If the output is a pipe, this is not
                // possible.
                try? File.truncate(output.raw, to: written)
                throw failure
            }
        } catch {
            progress.clear()
            let before = written > 0 ? "; it has what was recorded before" : ""
            Complaint.say("\(path) cannot be written: \(error)\(before)", status: .failed)
            ThisProcess.exit(Outcome.failed.rawValue)
        }
        written += UInt64(bytes.count)
        for signal in Self.endings { try? Signal.block(signal, false) }
    }

    private func open() throws(Errno) -> Descriptor {
        guard path != "-" else { return try Descriptor.duplicate(1) }
        return try File.open(path, [.write, .create, .truncate])
    }

    private func report(json: Bool) {
        guard !json else {
            return Output.document([
                "file": .string(path), "rounds": .int(Int64(rounds)), "events": .int(Int64(events)),
                "bytes": .int(Int64(clamping: written)), "interruptions": .int(Int64(max(0, headers - 1))),
            ])
        }
        let time = Times.duration(seconds: (Clock.monotonic() - began).inSeconds)
        Complaint.say(
            "recorded \(events) \(events == 1 ? "event" : "events") in \(time) into \(path): "
                + "‘torpor policy simulate --trace \(path) --policy LIB’ replays them",
            .warning
        )
    }
}
