// SPDX-License-Identifier: Apache-2.0

import Configuration
import Engine
import EventLoop
import EventSources
import Linux
import Supervisor
import SystemPackage
import TorporAPI
import VarlinkServer

/// Compares the files of the configuration on disk with those in force, on a background thread. If no file has changed
/// since the last comparison, a comparison takes only one stat(2) for each file.
final class ConfigurationComparison {
    /// The result of a comparison, which the next comparison can use.
    private struct Finding: Sendable {
        /// The sources (configuration files) that were in force at the comparison.
        var sources: ConfigurationSources
        var isDifferent: Bool
        /// The files and folders on which the result depends, each with the stamp (``FileStamp``) that it had at the
        /// comparison; nil if it did not exist.
        var stamps: [String: FileStamp?]
        /// Whether the stamps would show every later change. They do not if a file was written just before: it may
        /// change again within the resolution of its timestamp.
        var isSettled: Bool
    }

    private struct Question: Sendable {
        var sources: ConfigurationSources
        var last: Finding?
    }

    private let loop: EventLoop
    private let reader: CoalescingReader<Question, Finding>
    private var last: Finding?
    /// How many callers wait for a comparison.
    private var waiting = 0

    /// The maximum number of callers that wait. Further callers get the last result at once.
    private static let most = 256
    /// How long to wait for a comparison. If it takes longer, because the disk is slow, the last result is used.
    private static let patience = Duration.milliseconds(250)

    init(_ loop: EventLoop) {
        self.loop = loop
        reader = CoalescingReader(
            loop,
            named: "comparison",
            joining: { question, other in question = other },
            Self.compare
        )
    }

    /// Calls `then` once, with whether the files on disk differ from the sources in force; false if the
    /// configuration's main file cannot be read.
    func ask(_ sources: ConfigurationSources, _ then: @escaping (Bool) -> Void) {
        // Use the last result only if it was for the same sources.
        let known = { [weak self] in self?.last.map { $0.sources == sources && $0.isDifferent } ?? false }
        guard waiting < Self.most else { return then(known()) }
        waiting += 1
        // Gives the result or, if the comparison takes too long, the last known result.
        let answer = Once(then)
        reader.ask(Question(sources: sources, last: last)) { [weak self] finding in
            self?.waiting -= 1
            self?.last = finding
            answer.give(finding.isDifferent)
        }
        answer.timer = try? loop.timer { answer.give(known()) }
        answer.timer?.arm(after: Self.patience)
    }

    private static func compare(_ question: Question) -> Finding {
        let sources = question.sources
        if let last = question.last, last.isSettled, last.sources == sources,
            last.stamps.allSatisfy({ FileStamp(of: $0.key) == $0.value })
        {
            return last
        }
        var system = ConfigurationSystem.live
        system.workingDirectory = sources.workingDirectory
        let now = Clock.realtimeMicroseconds()
        let survey = ConfigurationSurvey(path: sources.path, environment: ThisProcess.variables, system: system)
        let stamps = Dictionary(uniqueKeysWithValues: survey.paths.map { ($0, FileStamp(of: $0)) })
        return Finding(
            sources: sources,
            isDifferent: !survey.files.isEmpty && survey.files != sources.files,
            stamps: stamps,
            isSettled: stamps.values.allSatisfy { $0.map { $0.modified < now - 1_000_000 } ?? true }
        )
    }
}

/// The parts of stat(2) that show whether the content of a file or folder has changed.
private struct FileStamp: Sendable, Hashable {
    var device: UInt64
    var inode: UInt64
    var size: UInt64
    /// The time of the last modification, in microseconds since 1970.
    var modified: Int64

    /// Reads the stamp of a file or folder; nil if it does not exist.
    init?(of path: String) {
        guard let status = try? File.status(path) else { return nil }
        (device, inode, size) = (status.device, status.inode, status.size)
        modified = status.modifiedMicroseconds
    }
}

extension ControlService {
    /// Replies with a description of this torpord, once the configuration on disk was compared.
    func describe(_ reply: Reply) {
        // `torpor health` asks for the apps next.
        supervisor.wakes.sockets.seekLostFiles()
        configurationComparison.ask(supervisor.configuration.sources) { [weak self] isDifferent in
            self?.whenLossesAreKnown { [weak self] in
                guard let self else { return }
                var info = self.info
                info.configurationDiffers = isDifferent
                reply.send(info.json)
            }
        }
    }
}
