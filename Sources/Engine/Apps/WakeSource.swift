// SPDX-License-Identifier: Apache-2.0

/// What caused an event that wakes an app, by the name that events and launch options use.
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
