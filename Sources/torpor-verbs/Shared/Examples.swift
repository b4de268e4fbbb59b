// SPDX-License-Identifier: Apache-2.0

import ArgumentParser

extension CommandConfiguration {
    /// Appends usage examples to the discussion in a command's help.
    func examples(_ lines: String...) -> Self {
        var configuration = self
        if !discussion.isEmpty { configuration.discussion += "\n\n" }
        configuration.discussion += "Examples:\n" + lines.map { "  " + $0 }.joined(separator: "\n")
        return configuration
    }
}
