// SPDX-License-Identifier: Apache-2.0

public import TransferProtocol

/// What to do with the body of a download's response.
public enum BodyUse: Hashable, Sendable {
    /// Append the body to the partial file.
    case append(total: Int64?)
    /// Truncate the partial file, then write the body.
    case restart(total: Int64?)
    /// The partial file is the whole file already.
    case complete
    /// The response is unusable: request the whole file instead.
    case askForAll
    /// The response is unusable. Its status decides how the transfer ends.
    case status

    /// Decides what to do with a response's body, by RFC 9110.
    ///
    /// - Parameters:
    ///   - offset: the size of the partial file, after which the rest was requested; 0 if the whole file was requested.
    ///   - validator: the validator that was stored for the partial file.
    public static func of(_ head: ResponseHead, offset: Int64, validator: TransferValidator?) -> BodyUse {
        switch head.status {
        case 200, 203: return .restart(total: head.length)
        case 206:
            guard let text = head["content-range"],
                case .part(let first, let last, let total) = ContentRange(text), first == offset
            else { return offset > 0 ? .askForAll : .status }
            if offset == 0 { return total == last + 1 ? .restart(total: total) : .status }
            if let total, let known = validator?.total, total != known { return .askForAll }
            // The server ignored If-Range: another ETag means another file.
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
