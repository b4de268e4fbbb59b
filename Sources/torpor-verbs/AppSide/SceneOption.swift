// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import CommandLinePages

/// The option of verbs for scenes inside apps: the name of the scene that the verb acts on.
struct SceneOption: ParsableArguments {
    @Option(help: ArgumentHelp("Scene inside the app, instead of the app itself.", valueName: "name"))
    var scene: String?
}
