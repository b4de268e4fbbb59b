// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import CommandLinePages

/// The option that names the scene inside the app that a verb acts on.
struct SceneOption: ParsableArguments {
    @Option(help: ArgumentHelp("Scene inside the app, instead of the app itself.", valueName: "name"))
    var scene: String?
}
