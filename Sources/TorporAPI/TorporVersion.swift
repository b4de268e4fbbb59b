// SPDX-License-Identifier: Apache-2.0

/// Torpor's version; the programs and all packages use it too (`packaging/version`).
public enum TorporVersion {
    /// As `torpord --version` and `torpor --version` print it.
    public static let text = "0.2.0"
}
