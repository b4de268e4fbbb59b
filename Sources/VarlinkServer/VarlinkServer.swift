// VarlinkServer
