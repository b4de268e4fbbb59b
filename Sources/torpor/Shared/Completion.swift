// SPDX-License-Identifier: Apache-2.0

import TorporAPI
import Varlink

/// What a shell offers for APP. Without a supervisor nothing, at once and without a word.
enum Completion {
    /// The names of all apps.
    static func apps(_ words: [String]) -> [String] {
        var socket: String?
        for (word, next) in zip(words, words.dropFirst()) where word == "--socket" { socket = next }
        for word in words where word.hasPrefix("--socket=") { socket = String(word.dropFirst(9)) }
        guard let client = try? VarlinkClient(path: socket ?? Manager.defaultSocket),
            let reply = try? client.call(ManagerRequest.list.call, timeoutMilliseconds: 500)
        else { return [] }
        return (reply["apps"]?.arrayValue ?? []).compactMap { $0["name"]?.stringValue }
    }

    /// The same, and what begins a tag.
    static func appsAndTags(_ words: [String]) -> [String] {
        let apps = apps(words)
        return apps.isEmpty ? [] : apps + ["tag:"]
    }
}
