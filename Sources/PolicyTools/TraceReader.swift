// SPDX-License-Identifier: Apache-2.0

package import CommandLinePages
import Linux
import Policies
package import TorporAPI
import TorporPolicyABI
import Varlink

/// Reads a recording line by line, and builds the view that policies were shown.
package final class TraceReader {
    package let path: String
    /// The number of the last line that was read, from 1.
    package private(set) var line = 0
    /// The number of the line that the view shows; 0 before the first line.
    private(set) var shownLine = 0
    /// Called with the time of a round before the view is updated.
    var beforeRound: (Int64) throws(Failure) -> Void = { _ in }
    /// The view that the policies were shown.
    let view: PolicyView
    /// The header that applies to the current line.
    package private(set) var header: PolicyTraceHeader?
    /// Fields that this version does not know.
    package private(set) var unknownFields: Set<String> = []

    private let file: Descriptor
    private var buffer: [UInt8] = []
    private var start = 0
    private var isAtEnd = false
    private var lastTime = Int64.min

    /// The maximum length of a line in bytes. A supervisor with the most apps possible writes lines of about 20 MB.
    private static let longest = 128 << 20

    package init(path: String) throws(Failure) {
        self.path = path
        do throws(Errno) {
            file = try File.open(path, [.read])
            view = try PolicyView()
        } catch {
            throw Failure(status: .failed, message: "\(path) cannot be read: \(error)")
        }
    }

    /// An error at the current line.
    package func failure(_ problem: String) -> Failure {
        Failure(status: .failed, message: "\(path):\(line): \(problem)")
    }

    /// Reads the next line; returns nil at the end. A line with a round updates the view. After a header, the recording
    /// contains the whole view again.
    func next() throws(Failure) -> PolicyTraceLine? {
        guard let bytes = try nextLine() else {
            if line == 0 { throw Failure(status: .failed, message: "\(path) is empty: \(Self.hint)") }
            return nil
        }
        let read: PolicyTraceLine
        do {
            read = try PolicyTraceLine(json: JSON.parse(bytes))
        } catch let error as JSONError {
            if header == nil { throw failure("this is not a recording of policies: \(Self.hint)") }
            if isCut {
                throw failure("the line is cut off: remove it to simulate the lines before it")
            }
            throw failure("the line is damaged, \(error): remove it and all lines after it")
        } catch {
            if header == nil, (error as? FieldError)?.field != "torpor_policy_trace" {
                throw failure("this is not a recording of policies: \(Self.hint)")
            }
            throw failure("\(error)")
        }
        switch read {
        case .header(let header):
            self.header = header
            lastTime = Int64.min
            shownLine = 0
            for place in 0..<view.count { view.remove(place) }
        case .round(let round):
            guard header != nil else { throw failure("this is not a recording of policies: \(Self.hint)") }
            try show(round)
        }
        return read
    }

    private static let hint = "‘torpor events --record FILE’ makes one"

    // MARK: Showing

    private func show(_ round: PolicyTraceRound) throws(Failure) {
        guard round.at >= lastTime else { throw failure("the time goes back, from \(lastTime) to \(round.at)") }
        lastTime = round.at
        if shownLine > 0 { try beforeRound(round.at) }
        shownLine = line
        for app in round.apps { try show(app) }
        for member in round.system.members {
            guard let field = PolicyField.byNameOfSystem[member.name] else {
                unknownFields.insert(member.name)
                continue
            }
            guard let numbers = Self.numbers(member.value), view.putSystem(numbers, as: field) else {
                throw failure("system.\(member.name) cannot be \(member.value)")
            }
        }
        view.system.now = round.at
        view.system.realtime = round.realtime
    }

    private func show(_ app: PolicyTraceRound.App) throws(Failure) {
        let place = Int(app.place)
        if let name = app.name {
            guard view.put(place, name: name, tags: app.tags) else {
                throw failure("there is no room for an app in place \(place)")
            }
        }
        guard view.isPresent(place) else { throw failure("place \(place) has values, but no app") }
        for member in app.fields.members {
            guard let field = PolicyField.byNameOfApps[member.name] else {
                unknownFields.insert(member.name)
                continue
            }
            guard let numbers = Self.numbers(member.value), view.put(numbers, as: field, intoApp: place) else {
                throw failure("\(member.name) of the app in place \(place) cannot be \(member.value)")
            }
        }
        if view[place].flags & TORPOR_APP_PRESENT == 0 { view.remove(place) }
    }

    private static func numbers(_ value: JSON) -> [Int64?]? {
        guard let list = value.arrayValue else { return number(value).map { [$0] } }
        var numbers: [Int64?] = []
        for element in list {
            guard let number = number(element) else { return nil }
            numbers.append(number)
        }
        return numbers
    }

    /// Reads a number. The result is nil if the value is not a number, and `.some(nil)` for null, which means never or
    /// unknown.
    private static func number(_ value: JSON) -> Int64?? {
        if value.isNull { return .some(nil) }
        return value.intValue.map { .some($0) }
    }

    // MARK: Lines

    /// Whether the last line has no newline.
    private var isCut = false

    private func nextLine() throws(Failure) -> ArraySlice<UInt8>? {
        var searched = start
        while true {
            if let end = buffer[searched...].firstIndex(of: UInt8(ascii: "\n")) {
                line += 1
                defer { start = end + 1 }
                return buffer[start..<end]
            }
            searched = buffer.count
            if isAtEnd {
                guard start < buffer.count else { return nil }
                line += 1
                isCut = true
                defer { start = buffer.count }
                return buffer[start...]
            }
            guard buffer.count - start <= Self.longest else {
                line += 1
                throw failure("the line is longer than \(Self.longest >> 20) MiB: \(Self.hint)")
            }
            if start > 0 {
                buffer.removeFirst(start)
                searched -= start
                start = 0
            }
            do throws(Errno) {
                let more = try Descriptor.read(file.raw, maximum: 1 << 20) ?? []
                if more.isEmpty { isAtEnd = true }
                buffer += more
            } catch {
                throw Failure(status: .failed, message: "\(path) cannot be read: \(error)")
            }
        }
    }
}
