// SPDX-License-Identifier: Apache-2.0

/// Torpor's version. The build of the packages reads it from here too (`packaging/version`).
public enum TorporVersion {
    /// The version as `torpord --version` and `torpor --version` print it.
    public static let text = "0.2.0"
}
