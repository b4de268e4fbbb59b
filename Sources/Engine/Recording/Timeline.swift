// SPDX-License-Identifier: Apache-2.0

package import Lifecycle
import Linux

/// A moment in a run of an app, for the termination report.
package enum Moment: Hashable {
    /// torpord asks torpor-keeper to launch the app, after the commands that run before the launch.
    case planned
    /// The keeper reports that the app's program runs.
    case executed
    /// The app's first sign of life: a connection to its own socket, or a datagram.
    case contact
    case ready
    case entered(AppState)
    case began(Transition)
    case told(Message)
    case answered(Message, Answer)
    case missed(DeadlineKind)
    case signalled(Int32)
    case taskBegan(UInt8)
    case taskEnded(UInt8)
    case saidStopping
    case supervisorReplaced
    case mainChanged
    case exited

    /// The app's answer to a message.
    package enum Answer: UInt8, CaseIterable { case done, failed, pending }

    /// Whether the moment is a milestone of the launch. Of each kind of milestone, only the first is stored.
    var isMilestone: Bool {
        switch self {
        case .planned, .executed, .contact, .ready: true
        case .entered, .began, .told, .answered, .missed, .signalled, .taskBegan, .taskEnded, .saidStopping,
            .supervisorReplaced, .mainChanged, .exited:
            false
        }
    }
}

/// What happened to an incarnation, one run of an app, since its launch, for the termination report.
///
/// A moment takes eight bytes, and their number is limited: only the milestones of the launch and the newest of the
/// other moments are kept. Every app has a timeline, so to save memory the limit is lower while the app is in no
/// transition. `torpor history` has all moments.
package struct Timeline {
    /// The entries, oldest first. The upper 48 bits of an entry are microseconds since the launch began, enough for
    /// nine years; the lower 16 bits are the code of the moment. In the entry of a gap, the upper bits are the number
    /// of moments that were dropped.
    private var entries: [UInt64] = []

    /// The maximum number of entries during a transition; `mostAtRest` is the maximum at other times.
    package static let most = 48
    static let mostAtRest = 18

    /// One entry of the timeline, as the termination report contains it.
    package enum Entry: Hashable {
        /// A moment and its time since the launch began.
        case moment(Moment, Duration)
        /// The number of moments that were dropped at this place.
        case gap(Int)
    }

    package init() {}

    /// The number of entries for which memory is allocated.
    package var capacity: Int { entries.capacity }

    /// Adds a moment, unless it is a milestone of the launch (such as the exec) that the timeline contains already.
    package mutating func add(_ moment: Moment, at time: Duration) {
        let code = UInt64(MomentCode.encode(moment))
        // Milestones are never dropped, so an earlier one with the same code is found here.
        if moment.isMilestone, entries.contains(where: { $0 & 0xffff == code }) { return }
        let bits: UInt64 = 0xffff_ffff_ffff
        entries.append(min(UInt64(clamping: time.microseconds), bits) << 16 | code)
        if entries.count > Self.most { trim(to: Self.most * 2 / 3) }
    }

    /// Drops moments beyond `mostAtRest`. Called when the app is in no transition.
    package mutating func rest() {
        if entries.count > Self.mostAtRest { trim(to: Self.mostAtRest) }
    }

    /// When the incarnation reached a milestone, as time since the start of the launch; nil if it has not.
    package func time(of milestone: Moment) -> Duration? {
        let code = UInt64(MomentCode.encode(milestone))
        return entries.first { $0 & 0xffff == code }.map { .microseconds(Int64($0 >> 16)) }
    }

    /// Calls `body` with each milestone that the incarnation has reached, and its time since the start of the launch.
    func eachMilestone(_ body: (Moment, Duration) -> Void) {
        for entry in entries where entry & 0xff <= UInt64(MomentCode.lastMilestone) {
            guard let moment = MomentCode.decode(UInt16(entry & 0xffff)) else { continue }
            body(moment, .microseconds(Int64(entry >> 16)))
        }
    }

    /// When the app was sent its first message, measured from the start of the launch; nil if it was sent none.
    package var firstMessage: Duration? {
        entries.first { $0 & 0xff == UInt64(MomentCode.told) }.map { .microseconds(Int64($0 >> 16)) }
    }

    /// All entries, oldest first.
    package var all: [Entry] {
        entries.compactMap { entry in
            if entry & 0xff == UInt64(MomentCode.gap) { return .gap(Int(entry >> 16)) }
            return MomentCode.decode(UInt16(entry & 0xffff)).map { .moment($0, .microseconds(Int64(entry >> 16))) }
        }
    }

    private mutating func trim(to limit: Int) {
        // Six entries are reserved for the milestones, the first message, and the gap after them.
        let cut = entries.count - (limit - 6)
        var kept: [UInt64] = []
        kept.reserveCapacity(limit)
        var gap: UInt64 = 0
        var hasMessage = false
        for entry in entries[..<cut] {
            let kind = UInt8(entry & 0xff)
            if kind == MomentCode.gap {
                gap += entry >> 16
            } else if kind <= MomentCode.lastMilestone || (kind == MomentCode.told && !hasMessage) {
                hasMessage = hasMessage || kind == MomentCode.told
                kept.append(entry)
            } else {
                gap += 1
            }
        }
        if gap > 0 { kept.append(gap << 16 | UInt64(MomentCode.gap)) }
        kept += entries[cut...]
        entries = kept
    }
}

/// Encodes moments as numbers: the kind in the low byte, its value in the high byte. The numbers may change between
/// versions, because they are never stored longer than torpord runs.
private enum MomentCode {
    static let lastMilestone: UInt8 = 3
    static let told: UInt8 = 6
    static let gap: UInt8 = 255

    static func encode(_ moment: Moment) -> UInt16 {
        switch moment {
        case .planned: pair(0)
        case .executed: pair(1)
        case .contact: pair(2)
        case .ready: pair(3)
        case .entered(let state): pair(4, place(of: state, in: states))
        case .began(let transition): pair(5, place(of: transition, in: transitions))
        case .told(let message): pair(told, message.number)
        case .answered(let message, let answer): pair(7 + answer.rawValue, message.number)
        case .missed(let deadline): pair(10, place(of: deadline, in: deadlines))
        case .signalled(let number): pair(11, UInt8(clamping: number))
        case .taskBegan(let token): pair(12, token)
        case .taskEnded(let token): pair(13, token)
        case .saidStopping: pair(14)
        case .supervisorReplaced: pair(15)
        case .mainChanged: pair(16)
        case .exited: pair(17)
        }
    }

    static func decode(_ code: UInt16) -> Moment? {
        let value = UInt8(code >> 8)
        let kind = UInt8(code & 0xff)
        switch kind {
        case 0: return .planned
        case 1: return .executed
        case 2: return .contact
        case 3: return .ready
        case 4: return member(value, of: states).map { .entered($0) }
        case 5: return member(value, of: transitions).map { .began($0) }
        case told: return Message(number: value).map { .told($0) }
        case 7, 8, 9:
            guard let message = Message(number: value), let answer = Moment.Answer(rawValue: kind - 7) else {
                return nil
            }
            return .answered(message, answer)
        case 10: return member(value, of: deadlines).map { .missed($0) }
        case 11: return .signalled(Int32(value))
        case 12: return .taskBegan(value)
        case 13: return .taskEnded(value)
        case 14: return .saidStopping
        case 15: return .supervisorReplaced
        case 16: return .mainChanged
        case 17: return .exited
        default: return nil
        }
    }

    private static let states = AppState.allCases
    private static let transitions = Transition.allCases
    private static let deadlines = DeadlineKind.allCases

    private static func pair(_ kind: UInt8, _ value: UInt8 = 0) -> UInt16 { UInt16(value) << 8 | UInt16(kind) }

    private static func place<Value: Equatable>(of value: Value, in all: [Value]) -> UInt8 {
        UInt8(clamping: all.firstIndex(of: value) ?? 255)
    }

    private static func member<Value>(_ place: UInt8, of all: [Value]) -> Value? {
        Int(place) < all.count ? all[Int(place)] : nil
    }
}
