// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import CommandLinePages

/// Which scene inside the app a verb of the app's own processes is about.
struct SceneOption: ParsableArguments {
    @Option(help: ArgumentHelp("Scene inside the app, instead of the app itself.", valueName: "name"))
    var scene: String?
}
