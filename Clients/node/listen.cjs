// SPDX-License-Identifier: Apache-2.0
// listen(PORT) takes the socket of that name which the supervisor has opened: sd_listen_fds(3).
const net = require('node:net')

const first = 3
const isOurs = Number(process.env.LISTEN_PID) === process.pid
const names = isOurs ? (process.env.LISTEN_FDNAMES ?? '').split(':') : []
const listen = net.Server.prototype.listen

net.Server.prototype.listen = function (...words) {
  const port = words[0]?.port ?? words[0]
  const index = names.indexOf(String(port))
  if (index < 0) return listen.apply(this, words)
  const callback = words.at(-1)
  return listen.call(this, { fd: first + index }, ...(typeof callback === 'function' ? [callback] : []))
}
