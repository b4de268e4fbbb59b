// SPDX-License-Identifier: Apache-2.0

package import Engine
import EventLoop
package import Lifecycle
import Linux
import Mailbox
import Processes
import SystemPackage
import TorporAPI
import Varlink
import VarlinkServer

/// The message numbers of an app's channel, stored at the end of its record in the recovery file.
package struct ChannelRecord {
    package static let bytes = 12

    var lastID: UInt32 = 0
    var answeredID: UInt32 = 0
    var awaitedID: UInt32 = 0

    package init(of app: AppRuntime) {
        guard let channel = app.channel else { return }
        lastID = channel.lastID
        answeredID = channel.answeredID
        awaitedID = channel.awaitedID
    }

    package init(from record: inout RecordReader) {
        lastID = record.take(UInt32.self)
        answeredID = record.take(UInt32.self)
        awaitedID = record.take(UInt32.self)
    }

    package func encode(into record: inout RecordWriter) {
        record.put(lastID)
        record.put(answeredID)
        record.put(awaitedID)
    }
}

/// Stores ``ChannelLedger`` in a file of the app's runtime directory. The file is written before the app's record in
/// the recovery file, and exists only while the ledger has entries.
extension AppSockets {
    private func ledgerPath(of app: AppRuntime) -> String { supervisor.runtime.directory(of: app) + "/ledger" }

    /// Writes the app's tasks and messages to the ledger file if they have changed. If there are none, removes the
    /// file.
    func keepLedger(of app: AppRuntime) {
        let messages = app.channel?.queue.filter { !$0.isAwaited || $0.url != nil } ?? []
        let isEmpty =
            !coordinator[app.id].isHeld && messages.isEmpty && coordinator[app.id].sceneMachines.isEmpty
        guard !isEmpty || app.ledger != nil else { return }
        if isEmpty {
            app.ledger = nil
            try? File.remove(ledgerPath(of: app))
            return
        }
        let bytes = ledger(of: app, coordinator.machine(app.id), messages).json.serialised()
        guard bytes != app.ledger else { return }
        do throws(Errno) {
            try File.makeDirectories(supervisor.runtime.directory(of: app))
            try File.replace(ledgerPath(of: app), bytes, mode: 0o600)
            app.ledger = bytes
        } catch {
            log.warning(
                "the tasks and holds of \(app.name) cannot be saved (\(error)): the next torpord will not know them"
            )
        }
    }

    private func ledger(
        of app: AppRuntime,
        _ machine: AppMachine,
        _ messages: [AppChannel.Outgoing]
    ) -> ChannelLedger {
        var ledger = ChannelLedger(incarnation: machine.incarnation)
        ledger.tasks = machine.tasks.map { task in
            ChannelLedger.Task(
                task: task,
                isNotify: app.channel?.owners[task.token] == .notify,
                process: process(of: task.token, app)
            )
        }
        ledger.holds = machine.holds
        ledger.messages = messages.map { message in
            ChannelLedger.Told(
                id: message.id,
                message: message.message,
                task: message.task,
                url: message.url,
                mail: message.mail,
                scene: message.scene,
                sceneName: message.scene.flatMap(supervisor.innerScenes.fullName)
            )
        }
        ledger.delegate = app.channel?.delegate?.pid ?? app.channel?.earlierDelegate
        ledger.scenes = supervisor.innerScenes.ledger(of: app)
        return ledger
    }

    /// The process that a task belongs to.
    private func process(of task: UInt32, _ app: AppRuntime) -> Int32? {
        switch app.channel?.owners[task] {
        case .connection(let connection): app.server?.process(of: connection)
        case .lost: app.channel?.lostOwners[task]
        case .notify, nil: nil
        }
    }

    /// Removes the ledger file of an app that has no record in the recovery file: its tasks and messages then belong to
    /// a launch that is over.
    func forgetLedger(of app: AppRuntime) { try? File.remove(ledgerPath(of: app)) }

    /// Reads the app's ledger file, which names the mail that was already sent to the app. Tries three times, in case
    /// descriptors or memory are short: without the file the app would get the same mail twice.
    private func readLedger(of app: AppRuntime) -> [UInt8] {
        var tries = 3
        while true {
            do throws(Errno) {
                return try File.read(ledgerPath(of: app))
            } catch {
                if error == .noSuchFileOrDirectory { return [] }
                tries -= 1
                if tries > 0 { continue }
                log.error(
                    "the tasks and holds of \(app.name) cannot be read (\(error)): they end, and some messages may be "
                        + "delivered again"
                )
                return []
            }
        }
    }

    /// Restores the messages, tasks and holds that an earlier torpord has saved.
    func restoreChannel(of app: AppRuntime, _ record: ChannelRecord) {
        let bytes = readLedger(of: app)
        let ledger = bytes.isEmpty ? nil : ChannelLedger(bytes)
        app.ledger = bytes.isEmpty ? nil : bytes
        let incarnation = coordinator[app.id].incarnation
        let isSame = ledger?.incarnation == incarnation && coordinator[app.id].isAlive
        // Earlier versions of torpord stored a URL in the ledger: put it into the mailbox.
        if let url = ledger?.url { _ = try? supervisor.mailboxes.open(.url(url), from: "", key: nil, app) }
        let tasks = isSame ? ledger?.tasks ?? [] : []
        coordinator.restore(app.id, tasks: tasks.map(\.task), holds: ledger?.holds ?? [])
        // The ledger is written before the record. So if the ledger is of a later launch than the record, torpord died
        // before it recorded that launch, and that launch is over.
        if let ledger, ledger.incarnation >= incarnation, !ledger.scenes.isEmpty {
            let isOver = ledger.incarnation > incarnation
            supervisor.innerScenes.restore(ledger.scenes, isOver: isOver, of: app)
        }
        guard coordinator[app.id].isAlive, record.lastID > 0 || !tasks.isEmpty || coordinator[app.id].hasDelegate else {
            return
        }
        let machine = coordinator.machine(app.id)
        let channel = channel(of: app)
        channel.lastID = record.lastID
        channel.answeredID = record.answeredID
        channel.earlierDelegate = isSame ? ledger?.delegate : nil
        for entry in tasks {
            channel.owners[entry.task.token] = entry.isNotify ? .notify : .lost
            channel.lostOwners[entry.task.token] = entry.process
        }
        // Some tasks have lost their connections. Give the tasks back the time in which no torpord ran, so that their
        // processes can claim them before they expire.
        if channel.owners.values.contains(.lost) {
            coordinator.grantTasks(
                app.id,
                Self.returnTime + machine.rules.expiryWarning,
                since: supervisor.keeper.earlierEnded,
                now: loop.now
            )
        }
        var urlOfAwaited: String?
        for told in isSame ? ledger?.messages ?? [] : [] where told.id > record.answeredID {
            if told.id == record.awaitedID {
                urlOfAwaited = told.url
                continue
            }
            if let scene = told.scene {
                // Skip a message without its scene's name: the scene's number may belong to another scene by now.
                guard let name = told.sceneName else { continue }
                supervisor.innerScenes.take(scene, for: name)
            }
            channel.queue.append(
                AppChannel.Outgoing(
                    id: told.id,
                    message: told.message,
                    isAwaited: false,
                    task: told.task,
                    url: told.url,
                    mail: told.mail,
                    scene: told.scene
                )
            )
            if let mail = told.mail { supervisor.mailboxes.isUnderWay(mail, to: app) }
        }
        if let awaited = machine.awaitedMessage, record.awaitedID > record.answeredID {
            channel.queue.append(
                AppChannel.Outgoing(id: record.awaitedID, message: awaited, isAwaited: true, url: urlOfAwaited)
            )
        }
        channel.queue.sort { $0.id < $1.id }
        // The first message was probably sent by the earlier torpord; the time of the others begins when they are sent.
        for index in channel.queue.indices.dropFirst() {
            channel.queue[index].hasWaited = true
            channel.queue[index].since = loop.now
        }
        channel.lastID = max(channel.lastID, channel.queue.last?.id ?? 0)
    }
}
