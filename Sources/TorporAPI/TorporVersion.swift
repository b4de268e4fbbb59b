// SPDX-License-Identifier: Apache-2.0

/// Torpor's version, from which the programs and all packages take theirs (`packaging/version`).
public enum TorporVersion {
    /// As `torpord --version` and `torpor --version` have it.
    public static let text = "0.2.0"
}
