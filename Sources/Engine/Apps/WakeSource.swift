// SPDX-License-Identifier: Apache-2.0

/// The source of an event, as events and launch options name it.
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
