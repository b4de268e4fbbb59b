// SPDX-License-Identifier: Apache-2.0

import HTTPServing
import Telemetry
import TorporAPI
import Varlink

extension HTTPResponse {
    /// The response for `/metrics`, in a format that the client accepts.
    init(metrics link: Link, accepting header: String?) {
        do throws(VarlinkClientError) {
            var replies: [JSON] = []
            for request in MetricSnapshot.requests { replies.append(try link.call(request)) }
            self.init(metrics: replies, MetricText(accepting: header))
        } catch {
            self.init(error)
        }
    }

    private init(metrics replies: [JSON], _ format: MetricText) {
        do throws(FieldError) {
            let text = format.text(try MetricSnapshot(replies: replies).families)
            let headers = [("Content-Type", format.contentType), ("Cache-Control", "no-store")]
            self.init(status: 200, headers: headers, body: .bytes(Array(text.utf8)))
        } catch {
            self.init(502, "torpord's answer cannot be read (\(error)): is it of another version?")
        }
    }
}
