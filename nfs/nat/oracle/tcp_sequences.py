# SPDX-License-Identifier: Apache-2.0
"""Random TCP traffic of one inside port with several peers, in rounds.

A step is (direction, peer, flags, sequence number, acknowledgement, window, window scale or -1, data bytes); direction
">" leaves the inside. Each end follows TCP, with losses and repetitions; in between come segments that no end sends:
RSTs, FINs and data inside and outside the window. Left out is what NAT and kernel treat differently on purpose:

- after a valid RST the inside starts no other segment than a SYN: for the NAT a connection continues if its inside host
  does (RFC 7857 section 2.2)
- a half-closed connection is not reset at another number than the next one: the kernel accepts any, against RFC 5961
- no side repeats its FIN before the other side has sent one: the kernel counts the second one as of the other side
- initial sequence numbers increase: else the kernel ignores a second SYN
- after a RST that was not believed nothing acknowledges more than was sent: for the kernel the RST has advanced the sender
- a SYN after a FIN of the inside is answered: the kernel keeps the half-closed connection until then
"""
FAR = 0x50000000  # beyond the largest window
SYN, ACK, FIN, RST, PSH = "S", "A", "F", "R", "P"


class Connection:
    """Both ends of a connection with one peer."""

    def __init__(self, random, peer):
        self.random = random
        self.peer = peer
        self.steps = []
        self.is_open = False  # the inside may go on
        self.edge = None  # side of a FIN at the edge of a window: only the NATs know whether it counts
        self.next = {">": random.getrandbits(32), "<": random.getrandbits(32)}
        self.reset()

    def reset(self):
        self.next = {side: (number + 1 + self.random.getrandbits(30)) % 2**32 for side, number in self.next.items()}
        self.window = {">": 0, "<": 0}  # offered, in bytes
        self.scale = {">": 0, "<": 0}
        self.fins = set()
        self.was_asked = False  # a RST was not believed

    def send(self, direction, flags, sequence=None, ack=None, data=0, scale=-1, moves=True):
        other = "<" if direction == ">" else ">"
        sequence = self.next[direction] if sequence is None else sequence % 2**32
        if ACK in flags:
            ack = self.next[other] if ack is None else ack % 2**32
        raw = self.random.choice([0xFFFF, 64240, 8192, 1000, 502]) if not self.scale[direction] else \
            self.random.choice([502, 2000, 0xFFFF])
        raw = 0 if RST in flags else raw
        self.steps.append((direction, self.peer, flags, sequence, ack or 0, raw, scale, data))
        if moves:
            shift = 0 if SYN in flags else self.scale[direction]
            self.window[direction] = raw << shift
            self.next[direction] = (sequence + data + (SYN in flags) + (FIN in flags)) % 2**32

    def connect(self, is_answered=False):
        self.reset()
        offered = self.random.choice([-1, 0, 2, 7, 14])
        answered = self.random.choice([-1, 1, 7])
        kind = self.random.randrange(12)
        self.send(">", SYN, scale=offered)
        if kind == 0 and not is_answered:
            return  # nobody answers
        if kind == 1:
            self.send("<", RST + ACK, sequence=0)
            return
        if kind == 2:
            self.send(">", SYN, sequence=self.next[">"] - 1, scale=offered)
        scales = offered >= 0 and answered >= 0
        self.send("<", SYN + ACK, scale=answered if scales else -1)
        if kind == 3:
            self.send("<", SYN + ACK, sequence=self.next["<"] - 1, scale=answered if scales else -1)
        if scales:
            self.scale = {">": offered, "<": answered}
        if kind == 4:
            self.send(">", RST)  # the inside has given up
            return
        self.send(">", ACK)
        self.is_open = True

    def talk(self):
        direction, other = self.random.choice([(">", "<"), ("<", ">")])
        if direction in self.fins:
            direction, other = other, direction
        if direction in self.fins:
            return
        data = self.random.choice([0, 1, 100, 1000])
        before = self.next[direction]
        for _ in range(self.random.randrange(1, 4)):
            if (self.next[direction] - before) % 2**32 + data <= self.window[other]:
                self.send(direction, PSH + ACK, data=data)
        kind = self.random.randrange(6)
        if kind == 0 and self.next[direction] != before:
            self.send(direction, PSH + ACK, sequence=before, data=data, moves=False)  # sent again
        if kind == 1:
            self.send(direction, ACK, sequence=before - 1, moves=False)  # keep-alive
        self.send(other, ACK)
        if other == "<":
            self.send(">", ACK)

    def junk(self):
        """A segment that neither end sends; the connection goes on."""
        direction = self.random.choice(["<", "<", "<", ">"])
        other = "<" if direction == ">" else ">"
        far = self.random.choice([FAR, -FAR])
        kind = self.random.randrange(6)
        number = self.next[direction]
        is_half_closed = self.fins or self.edge
        if kind == 0 and not is_half_closed:
            self.send(direction, RST, sequence=number + far, moves=False)
        elif kind == 1 and not is_half_closed:
            self.send(direction, RST, sequence=number + self.random.choice([1, 5, 400, -1, -300]), moves=False)
            if self.random.randrange(3) == 0:
                self.steps.append(self.steps[-1])
            self.send(other, ACK)  # asks back; the kernel waits for that
            self.was_asked = True
        elif kind == 2 and not is_half_closed:
            self.send(direction, FIN + ACK, sequence=number + far, moves=False)
        elif kind == 3 and not is_half_closed and not self.was_asked:
            self.send(direction, FIN + ACK, ack=self.next[other] + self.random.choice([1, 100, FAR, -FAR]), moves=False)
        elif kind == 4:
            self.send(direction, PSH + ACK, sequence=number + far, data=10, moves=False)
        elif not is_half_closed:
            # at the edge of the window, where both NATs have to draw the line alike
            self.send(direction, FIN + ACK, sequence=number + self.window[other] + self.random.choice([-1, 0, 1, 2]),
                      moves=False)
            self.edge = direction

    def end(self):
        kind = self.random.randrange(8)
        direction, other = self.random.choice([(">", "<"), ("<", ">")])
        if self.edge:
            other = self.edge
            direction = "<" if other == ">" else ">"
        elif kind < 2:
            if self.random.randrange(2) and direction not in self.fins:
                self.send(direction, PSH + ACK, data=7)
            self.send(direction, RST + self.random.choice(["", ACK]))
            self.is_open = False
            return
        if direction in self.fins:
            direction, other = other, direction
        if direction in self.fins:
            return
        self.send(direction, FIN + ACK)
        self.fins.add(direction)
        if kind == 2 and other not in self.fins and not self.edge:  # both at once: the other has not seen it
            self.send(other, FIN + ACK, ack=self.next[direction] - 1)
            self.fins.add(other)
            self.send(direction, ACK)
        if kind == 3 and len(self.fins) == 2:
            self.send(direction, FIN + ACK, sequence=self.next[direction] - 1)  # sent again
        self.send(other, ACK)
        if len(self.fins) == 2:
            self.send(direction, ACK)
            self.is_open = False

    def reuse(self):
        """The inside has forgotten a connection that it has half closed, and so has the peer."""
        if self.is_open and self.fins == {">"} and not self.edge:
            self.is_open = False
            self.connect(is_answered=True)


def sequence(random, rounds, peers):
    """The steps of each round, for one inside port."""
    connections = [Connection(random, peer) for peer in range(random.choice([1, 1, 2, peers]))]
    for number in range(rounds):
        steps = []
        for _ in range(random.randrange(1, 7)):
            connection = random.choice(connections)
            connection.steps = steps
            if connection.edge and connection.fins:
                continue  # open for one NAT, perhaps, and closed for the other
            if connection.is_open:
                random.choice([connection.talk, connection.junk, connection.end, connection.end, connection.reuse])()
            elif random.randrange(3) == 0 or not connection.window[">"]:
                connection.connect()
            else:
                connection.send("<", random.choice([RST, ACK, FIN + ACK, PSH + ACK]), moves=False)
        yield steps
