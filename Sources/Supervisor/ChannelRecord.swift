import EventLoop
import Lifecycle
import Linux
import SystemPackage
import TorporAPI
import Varlink

/// Where the messages of an app are, as the recovery file has it at the end of a record.
struct ChannelRecord {
    static let bytes = 12

    var lastID: UInt32 = 0
    var answeredID: UInt32 = 0
    var awaitedID: UInt32 = 0

    init(of app: AppRuntime) {
        guard let channel = app.channel else { return }
        lastID = channel.lastID
        answeredID = channel.answeredID
        awaitedID = channel.awaitedID
    }

    init(from record: inout RecordReader) {
        lastID = record.take(UInt32.self)
        answeredID = record.take(UInt32.self)
        awaitedID = record.take(UInt32.self)
    }

    func encode(into record: inout RecordWriter) {
        record.put(lastID)
        record.put(answeredID)
        record.put(awaitedID)
    }
}

/// What has no room in a record, since it has names: tasks, holds and messages that no edge waits for. It is a file in
/// the app's runtime directory, written before the record that goes with it, and only of apps that have any.
extension Supervisor {
    private func ledgerPath(of app: AppRuntime) -> String { runtime.directory(of: app) + "/ledger" }

    /// Writes it when it is another one than before.
    func keepLedger(of app: AppRuntime) {
        let machine = coordinator.machine(app.id)
        let messages = app.channel?.queue.filter { !$0.isAwaited || $0.url != nil } ?? []
        let isEmpty = !machine.isHeld && messages.isEmpty && app.url == nil
        guard !isEmpty || app.ledger != nil else { return }
        if isEmpty {
            app.ledger = nil
            try? File.remove(ledgerPath(of: app))
            return
        }
        let bytes = ledger(of: app, machine, messages).serialised()
        guard bytes != app.ledger else { return }
        do throws(Errno) {
            try File.makeDirectories(runtime.directory(of: app))
            try File.replace(ledgerPath(of: app), bytes, mode: 0o600)
            app.ledger = bytes
        } catch {
            log.warning(
                "the tasks and holds of \(app.name) cannot be kept (\(error)): a torpord that follows forgets them"
            )
        }
    }

    private func ledger(of app: AppRuntime, _ machine: AppMachine, _ messages: [AppChannel.Outgoing]) -> JSON {
        [
            "incarnation": .int(Int64(machine.incarnation)),
            "tasks": .array(
                machine.tasks.map { task in
                    [
                        "token": .int(Int64(task.token)), "name": .string(task.name), "warned": .bool(task.isWarned),
                        "notify": .bool(app.channel?.owners[task.token] == .notify),
                    ]
                }
            ),
            "holds": .array(
                machine.holds.map { ["reason": .string($0.reason), "until_us": .optional($0.until?.microseconds)] }
            ),
            "messages": .array(
                messages.map { message in
                    [
                        "id": .int(Int64(message.id)), "name": .string(message.message.rawValue),
                        "task": .optional(message.task.map(Int64.init)), "url": .optional(message.url),
                        "mail": .optional(message.mail),
                    ]
                }
            ),
            "url": .optional(app.url),
        ]
    }

    /// Of an app of which no record tells: what is there is from another life.
    func forgetLedger(of app: AppRuntime) { try? File.remove(ledgerPath(of: app)) }

    /// Goes on with what a torpord before this one has told the app, and with what holds it.
    func restoreChannel(of app: AppRuntime, _ record: ChannelRecord) {
        let bytes = (try? File.read(ledgerPath(of: app))) ?? []
        let json = bytes.isEmpty ? nil : try? JSON.parse(bytes[...])
        app.ledger = bytes.isEmpty ? nil : bytes
        let machine = coordinator.machine(app.id)
        let isSame = json?["incarnation"]?.intValue == Int64(machine.incarnation) && machine.isAlive
        let holds = (json?["holds"]?.arrayValue ?? []).map { hold in
            Hold(
                reason: hold["reason"]?.stringValue ?? "",
                until: hold["until_us"]?.intValue.map { .microseconds($0) }
            )
        }
        app.url = json?["url"]?.stringValue
        let kept = isSame ? json?["tasks"]?.arrayValue ?? [] : []
        let tasks = kept.compactMap { task -> (BackgroundTask, Bool)? in
            guard let token = task["token"]?.intValue.flatMap({ UInt32(exactly: $0) }),
                let name = task["name"]?.stringValue
            else { return nil }
            let isWarned = task["warned"]?.boolValue ?? false
            return (BackgroundTask(token: token, name: name, isWarned: isWarned), task["notify"]?.boolValue ?? false)
        }
        coordinator.restore(app.id, tasks: tasks.map(\.0), holds: holds)
        guard machine.isAlive, record.lastID > 0 || !tasks.isEmpty || machine.hasDelegate else { return }
        let channel = channel(of: app)
        channel.lastID = record.lastID
        channel.answeredID = record.answeredID
        for (task, isNotify) in tasks { channel.owners[task.token] = isNotify ? .notify : .lost }
        // They belong to connections that are gone: until they are claimed or not, none is judged.
        if channel.owners.values.contains(.lost) {
            coordinator.grantTasks(app.id, Self.returnTime + machine.rules.expiryWarning, now: loop.now)
        }
        var urlOfAwaited: String?
        for message in isSame ? json?["messages"]?.arrayValue ?? [] : [] {
            guard let id = message["id"]?.intValue.flatMap({ UInt32(exactly: $0) }), id > record.answeredID,
                let name = message["name"]?.stringValue.flatMap({ Message(rawValue: $0) })
            else { continue }
            if id == record.awaitedID {
                urlOfAwaited = message["url"]?.stringValue
                continue
            }
            channel.queue.append(
                AppChannel.Outgoing(
                    id: id,
                    message: name,
                    isAwaited: false,
                    task: message["task"]?.intValue.flatMap { UInt32(exactly: $0) },
                    url: message["url"]?.stringValue,
                    mail: message["mail"]?.intValue
                )
            )
            if let mail = message["mail"]?.intValue { mailboxes.isUnderWay(mail, to: app) }
        }
        if let awaited = machine.awaitedMessage, record.awaitedID > record.answeredID {
            channel.queue.append(
                AppChannel.Outgoing(id: record.awaitedID, message: awaited, isAwaited: true, url: urlOfAwaited)
            )
        }
        channel.queue.sort { $0.id < $1.id }
        channel.lastID = max(channel.lastID, channel.queue.last?.id ?? 0)
    }
}
