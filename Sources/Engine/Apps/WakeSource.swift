// SPDX-License-Identifier: Apache-2.0

/// The kinds of sources whose events wake apps. The raw values are the names in event records and launch options.
package enum WakeSource: String {
    case socket
    case connection
    case timer
    case fetch
    case path
    case settings
    case device
    case accessory
    case audio
    case location
    case bluetooth
    case message
    case notification
    case transfer
    case alert
}
