// SPDX-License-Identifier: Apache-2.0

public import TransferProtocol

extension TransferEnd {
    /// The end of a transfer whose response has an error status: a retry, a demand for a login, or a final failure.
    ///
    /// - Parameters:
    ///   - bytes: bytes of the file that have arrived or were sent.
    ///   - now: seconds since 1970.
    public static func of(_ head: ResponseHead, bytes: Int64, now: Int64) -> TransferEnd {
        var end: TransferEnd
        switch head.status {
        case 408, 425, 429, 500, 502, 503, 504:
            end = TransferEnd(.retry, bytes: bytes)
            end.retryAfter = head.retryAfter(now: now)
        case 401:
            end = TransferEnd(.login, bytes: bytes)
            let challenges = head.challenges
            let challenge = challenges.first { $0.scheme == "digest" || $0.scheme == "basic" } ?? challenges.first
            end.realm = challenge?.realm
            end.scheme = challenge?.scheme
        default: end = TransferEnd(.failed, bytes: bytes)
        }
        end.reason = "http-status"
        end.message = "the server answered with status \(head.status)"
        end.status = Int64(head.status)
        return end
    }

    /// The end of a transfer after an error of libcurl (libcurl-errors(3)).
    ///
    /// - Parameters:
    ///   - code: the number of a CURLcode.
    ///   - text: libcurl's error message.
    ///   - errno: the errno of a failed connection; 0 for none.
    ///   - hasConnected: whether the request was sent, so that a timeout concerns the response.
    public static func of(curl code: Int, _ text: String, errno: Int, hasConnected: Bool, bytes: Int64) -> TransferEnd {
        let (outcome, reason): (Outcome, String) =
            switch code {
            case 3: (.failed, "url")
            case 1: (.failed, "scheme")
            case 5, 6: (.retry, "resolve")
            case 51, 58, 59, 60, 66, 77, 82, 83, 90, 91: (.failed, "certificate")
            case 61: (.failed, "encoding")
            // ENETDOWN, ENETUNREACH, EHOSTDOWN, EHOSTUNREACH, EADDRNOTAVAIL: the machine has no route to the server.
            case 7 where [99, 100, 101, 112, 113].contains(errno): (.retry, "unreachable")
            case 28: (.retry, hasConnected ? "stalled" : "timeout")
            default: (.retry, "connection")
            }
        var end = TransferEnd(outcome, bytes: bytes)
        end.reason = reason
        end.message = text
        return end
    }
}
