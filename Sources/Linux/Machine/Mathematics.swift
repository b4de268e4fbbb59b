// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Mathematical functions that the standard library lacks. Angles are in radians.
public enum Mathematics {
    /// The sine.
    public static func sine(_ angle: Double) -> Double { Glibc.sin(angle) }

    /// The cosine.
    public static func cosine(_ angle: Double) -> Double { Glibc.cos(angle) }

    /// The angle from −π/2 to π/2 with this sine.
    public static func arcsine(_ value: Double) -> Double { Glibc.asin(value) }
}
