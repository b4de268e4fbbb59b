// SPDX-License-Identifier: Apache-2.0

public import TransferProtocol

/// What is done with the body of an answer to a download.
public enum BodyUse: Hashable, Sendable {
    /// It is written behind what is in the part.
    case append(total: Int64?)
    /// The part is emptied, and this body written.
    case restart(total: Int64?)
    /// Nothing is missing: the part is the whole.
    case complete
    /// The answer is no use: the same request is made once more, for the whole.
    case askForAll
    /// None of a success.
    case status

    /// What RFC 9110 allows to be done.
    ///
    /// - Parameters:
    ///   - offset: bytes in the part, from which on the rest was asked for; 0 for the whole.
    ///   - validator: what is known of the file whose part that is.
    public static func of(_ head: ResponseHead, offset: Int64, validator: TransferValidator?) -> BodyUse {
        switch head.status {
        case 200, 203: return .restart(total: head.length)
        case 206:
            guard let text = head["content-range"],
                case .part(let first, let last, let total) = ContentRange(text), first == offset
            else { return offset > 0 ? .askForAll : .status }
            if offset == 0 { return total == last + 1 ? .restart(total: total) : .status }
            if let total, let known = validator?.total, total != known { return .askForAll }
            // It kept to If-Range, or so it says: another tag is another file.
            if let tag = head["etag"], let condition = validator?.condition, ResponseHead.isStrong(condition),
                tag != condition
            {
                return .askForAll
            }
            return .append(total: total ?? validator?.total)
        case 416 where offset > 0:
            guard let text = head["content-range"], case .unsatisfied(let total) = ContentRange(text), total == offset
            else { return .askForAll }
            return .complete
        default: return .status
        }
    }
}
