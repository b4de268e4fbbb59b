# SPDX-License-Identifier: Apache-2.0
"""The chart of the app reports, as a PNG on standard output: the orders of a month. Uses the standard library only."""
import struct
import sys
import zlib

WIDTH, HEIGHT = 640, 360
GROUND, LINE, BAR, BEST = (248, 249, 251), (224, 228, 234), (0, 114, 178), (230, 159, 0)
ORDERS = [31, 38, 42, 35, 29, 52, 61, 34, 40, 44, 39, 33, 57, 66, 37, 43, 49, 41, 36, 62, 78, 40, 46, 51, 45, 38, 69, 88, 47, 53]


def picture():
    rows = [[GROUND] * WIDTH for _ in range(HEIGHT)]
    for value in range(0, 101, 25):
        y = HEIGHT - 30 - value * 3
        for x in range(30, WIDTH - 30):
            rows[y][x] = LINE
    step = (WIDTH - 60) // len(ORDERS)
    for number, value in enumerate(ORDERS):
        colour = BEST if value == max(ORDERS) else BAR
        for x in range(34 + number * step, 34 + number * step + step - 5):
            for y in range(HEIGHT - 30 - value * 3, HEIGHT - 30):
                rows[y][x] = colour
    return b"".join(b"\0" + b"".join(bytes(pixel) for pixel in row) for row in rows)


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


head = struct.pack(">IIBBBBB", WIDTH, HEIGHT, 8, 2, 0, 0, 0)
png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(picture(), 9)) + chunk(b"IEND", b"")
sys.stdout.buffer.write(png)
