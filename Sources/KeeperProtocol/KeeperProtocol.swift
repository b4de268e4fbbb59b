// KeeperProtocol
