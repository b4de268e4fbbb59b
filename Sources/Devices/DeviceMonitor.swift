// SPDX-License-Identifier: Apache-2.0

import CSystemd
public import EventLoop
public import Linux

/// Reports devices that are added, changed or removed, after udev has applied its rules, so that nodes and symlinks
/// exist (sd-device(3), udev(7)). The kernel filters by subsystem: devices of other subsystems do not wake the loop.
public final class DeviceMonitor {
    /// The kind of event.
    public enum Action: Sendable {
        /// The device was added, or announced again (`udevadm trigger`).
        case add
        /// The device was removed.
        case remove
        /// The device was changed.
        case change
    }

    private let loop: EventLoop
    private let monitor: OpaquePointer
    private let handler: (Device, Action) -> Void

    /// The size of the socket's receive buffer in bytes: enough for a large machine to announce all its devices at
    /// once.
    private static let bufferBytes = 4 << 20

    /// Starts to listen. Throws if no descriptor or memory is left.
    ///
    /// - Parameter subsystems: the subsystems to report; nil for all.
    public init(
        _ loop: EventLoop,
        of subsystems: Set<String>?,
        _ handler: @escaping (Device, Action) -> Void
    ) throws(Errno) {
        self.loop = loop
        self.handler = handler
        var made: OpaquePointer?
        try Self.check(sd_device_monitor_new(&made))
        guard let made else { throw .noMemory }
        monitor = made
        // If this process may not raise the size, the kernel's default remains.
        _ = sd_device_monitor_set_receive_buffer_size(monitor, Self.bufferBytes)
        for subsystem in subsystems ?? [] {
            try Self.check(sd_device_monitor_filter_add_match_subsystem_devtype(monitor, subsystem, nil))
        }
        try Self.check(sd_device_monitor_attach_event(monitor, loop.event))
        try Self.check(
            sd_device_monitor_start(
                monitor,
                { _, device, me in
                    guard let device, let me else { return 0 }
                    Unmanaged<DeviceMonitor>.fromOpaque(me).takeUnretainedValue().heard(device)
                    return 0
                },
                Unmanaged.passUnretained(self).toOpaque()
            )
        )
    }

    deinit {
        sd_device_monitor_stop(monitor)
        sd_device_monitor_detach_event(monitor)
        sd_device_monitor_unref(monitor)
    }

    private func heard(_ raw: OpaquePointer) {
        var code = SD_DEVICE_ADD
        guard sd_device_get_action(raw, &code) >= 0, let device = Device(raw) else { return }
        switch code {
        case SD_DEVICE_ADD, SD_DEVICE_ONLINE: handler(device, .add)
        case SD_DEVICE_REMOVE, SD_DEVICE_OFFLINE: handler(device, .remove)
        case SD_DEVICE_CHANGE, SD_DEVICE_BIND, SD_DEVICE_UNBIND: handler(device, .change)
        default: break
        }
    }

    private static func check(_ result: Int32) throws(Errno) {
        if result < 0 { throw Errno(rawValue: -result) }
    }
}
