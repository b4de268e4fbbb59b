// SPDX-License-Identifier: Apache-2.0

import KeeperProtocol

extension Part {
    static let launchPlan = Part(
        name: "launch-plan",
        what: "a launch with forty variables of environment becomes the message that the keeper gets"
    ) {
        var request = LaunchRequest()
        request.app = "worker@1"
        request.incarnation = 1
        request.executable = "/usr/lib/torpor/worker"
        request.arguments = ["/usr/lib/torpor/worker", "1", "wait"]
        request.environment = (0..<40).map { "VARIABLE_\($0)=the value of the variable \($0)" }
        request.directory = "/"
        request.standard = (3, 4, 5)
        request.cgroup = 6
        request.setWatchdogPid = true
        return { count in
            var bytes = 0
            for number in 0..<count { bytes += try request.encoded(id: UInt32(number)).count }
            guard bytes > count * 1_000 else { throw WentWrong("\(count) messages have \(bytes) bytes") }
        }
    }
}
