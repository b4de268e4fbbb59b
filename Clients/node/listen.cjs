// SPDX-License-Identifier: Apache-2.0
// listen(PORT) takes the socket of that name which the supervisor has opened: sd_listen_fds(3).
const net = require('node:net')

const first = 3
const isOurs = Number(process.env.LISTEN_PID) === process.pid
const names = isOurs ? (process.env.LISTEN_FDNAMES ?? '').split(':') : []
const taken = new Set()
const listen = net.Server.prototype.listen

// The options of listen({ port, host }) and of listen(port, host), without those for another kind of socket.
function wanted (words) {
  const [one, two] = words
  if (typeof one !== 'object' || one === null) return { port: one, host: typeof two === 'string' ? two : undefined }
  return one.fd >= 0 || one.path !== undefined ? {} : one
}

const all = (host) => ['0.0.0.0', '::'].includes(host)
const plain = (host) => String(host).toLowerCase().replace(/^\[(.*)\]$/, '$1').replace(/^::ffff:(?=\d+\.)/, '')

// Whether a program that asks for this host may get a socket at the address. Nobody must reach it who was not meant
// to; a socket for fewer than the program asks for is what sockets says.
function fits (host, address) {
  if (host === undefined || host === null || host === '' || all(plain(host))) return true
  if (plain(host) === 'localhost') return address === '::1' || address.startsWith('127.')
  if (net.isIP(plain(host)) === 0) return !all(address)
  return plain(host) === address
}

net.Server.prototype.listen = function (...words) {
  const { port, host, backlog, signal } = wanted(words)
  const index = names.findIndex((name, index) => name !== '' && name === String(port) && !taken.has(index))
  if (index < 0) {
    const others = names.filter((name, index) => name !== '' && Number(name) >= 0 && !taken.has(index))
    const other = others.find((name) => Number(name) > 0)
    if (others.length > 0 && Number(port) > 0) {
      process.emitWarning(`the program listens at port ${port}, but ` + (other === undefined
        ? `no socket has that name: write name = "${port}" in sockets of torpor.toml`
        : `its socket is for port ${other}`))
    }
    return listen.apply(this, words)
  }
  taken.add(index)
  const callback = words.at(-1)
  const options = { fd: first + index, backlog, signal }
  listen.call(this, options, ...(typeof callback === 'function' ? [callback] : []))
  const at = this.address()
  if (typeof at?.address !== 'string') return this
  if (at.port === Number(port) && fits(host, plain(at.address))) return this
  this.close()
  const place = (host, port) => (host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`)
  const asked = host === undefined || host === null ? String(port) : place(plain(host), port)
  const isKnown = asked === String(port) || net.isIP(plain(host)) > 0
  const stream = isKnown ? asked : place(plain(host) === 'localhost' ? '127.0.0.1' : 'ADDRESS', port)
  throw new Error(`the program listens at ${asked}, but its socket is at ${place(at.address, at.port)}: write ` +
    `stream = "${stream}" in sockets of torpor.toml, or change where the program listens`)
}
