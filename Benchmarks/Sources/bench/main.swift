// SPDX-License-Identifier: Apache-2.0

import Foundation

exit(Command.main(Array(CommandLine.arguments.dropFirst())))
