// SPDX-License-Identifier: Apache-2.0

import CLinux
import Glibc
import WireText

/// The machine's kernel (uname(2)).
public enum KernelRelease {
    private static let names = {
        var names = utsname()
        _ = uname(&names)
        func text(_ field: some Any) -> String {
            withUnsafeBytes(of: field) { String(wire: Array($0.prefix { $0 != 0 })) }
        }
        return (release: text(names.release), machine: text(names.machine))
    }()

    /// The kernel's version, such as `6.12.9-amd64`.
    public static var version: String { names.release }

    /// The processor's architecture, such as `x86_64`.
    public static var architecture: String { names.machine }

    /// The version of the kernel's Landlock ABI; 0 if the kernel has no Landlock.
    public static var landlock: Int { max(0, tlx_landlock_version()) }

    /// Why this process cannot use Landlock, and how a user can enable it, as a sentence without a full stop.
    public static var landlockObstacle: String {
        // EPERM comes from a seccomp filter, such as that of systemd-nspawn or of a systemd unit.
        tlx_landlock_version() < 0 && errno == EPERM
            ? "Landlock is forbidden here, by the container or by SystemCallFilter= of the unit: allow landlock_create_ruleset"
            : "this kernel has no Landlock: boot one with CONFIG_SECURITY_LANDLOCK and landlock in its list of security "
                + "modules (lsm=)"
    }
}
