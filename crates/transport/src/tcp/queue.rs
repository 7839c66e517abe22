//! What the program has handed over and the stack has not sent yet, and the memory that it takes.
//!
//! The stack keeps unsent data in chunks of whole segments, up to 64 KiB or half of the largest window that the peer
//! has offered. A chunk is what goes out as a burst, where nothing holds back a part of it; the first chunk takes from
//! the second what a burst has still room for. A program's write fills the last chunk up before it begins another,
//! pushes what it can whenever a chunk is full, and waits when the buffer is full. Programs write as `sendfile` does,
//! in pieces of 16 pages; all but the last one of a write say that more follows.
//!
//! As in Linux the buffer counts the memory of the chunks, and a write may begin a chunk as long as there is any memory
//! left. It starts small and is tuned to twice the congestion window whenever it is what holds the connection back
//! (`tcp_wmem` in Linux's ip-sysctl); a write that waits goes on when a third of the buffer is free. What the rules
//! come to is measured: docs/models/tcp.md. With `tcp.send_buffer` the buffer counts payload alone, holds whole
//! segments, and a write goes on as soon as one fits (BSD's socket buffers).

use super::info::Limited;
use super::sender::Sender;
use super::terms::{Terms, share_of};
use super::timer::Purpose;
use crate::cc::CongestionControl;
use crate::config::{Memory, TcpConfig};
use firstlight_units::{Bytes, Time};
use std::collections::VecDeque;

/// The most payload of a chunk, and of a burst: 64 KiB less the 192 bytes that the stack reserves for headers, and one.
pub(crate) const LARGEST: u64 = 65_343;
/// A program that sends a file hands over so many pages of it at once.
const PAGES: u64 = 16;
/// What describes a segment in memory.
const DESCRIPTION: u64 = 256;
/// The least congestion window for which the buffer has room.
const LEAST_WINDOW: u32 = 10;

/// Unsent data in the order of the stream. A chunk begins where the one before it ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Chunk {
    /// The stream offset after the chunk's last byte.
    pub(crate) end: u64,
    /// The receiver is to hand over what it has when it has all of the chunk.
    pub(crate) push: bool,
    /// The chunk ends a record (`MSG_EOR`): nothing may be added.
    pub(crate) closed: bool,
}

/// How a program hands over data.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Send {
    /// More will follow at once: part of a segment is held back for it (`MSG_MORE`).
    pub more: bool,
    /// Nothing that follows goes out in one segment with these data (`MSG_EOR`).
    pub end_of_record: bool,
}

/// A write that is not over.
#[derive(Clone, Copy, Debug)]
struct Write {
    left: u64,
    how: Send,
    /// The most that one call hands over; a call ends at a multiple of it in the stream, and hands over in pieces.
    /// `None` for one call of one piece.
    call: Option<u64>,
    /// The stream offset after its present piece, of which some was handed over.
    piece_end: Option<u64>,
}

/// What the next attempt to send may do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Attempt {
    /// The attempt sends whatever the rules allow.
    Usual,
    /// The attempt sends one burst, which waits for no more room.
    One,
    /// Whatever the rules allow, but no part of a segment at the end.
    Corked,
    /// Whatever the rules allow, with a part of a segment at the end.
    Pushed,
    /// The attempt sends nothing: the program is still writing.
    None,
}

/// How the memory is limited.
#[derive(Clone, Copy, Debug)]
enum Limit {
    /// A limit of memory, tuned up to the second number.
    Tuned(u64, u64),
    /// A limit of memory that the program has set.
    Said(u64),
    /// A limit of payload.
    Payload(u64),
}

/// The unsent data of a connection, and its writer.
#[derive(Clone, Debug)]
pub(crate) struct SendQueue {
    chunks: VecDeque<Chunk>,
    /// Stream offset at which the first chunk begins.
    start: u64,
    /// Stream offset at which the last chunk ends.
    pub(crate) end: u64,
    /// Bytes that the program has still to hand over.
    backlog: u64,
    /// The program's writes that are not over, which it makes one after another.
    pending: VecDeque<Write>,
    limit: Limit,
    /// Memory of a chunk besides its payload.
    beside_payload: u64,
    /// Memory of what is unsent or unacknowledged.
    memory: u64,
    /// The program can go on handing over.
    writes: bool,
    /// An ACK has arrived since a program that waits was last looked after.
    news: bool,
    /// What was written up to here is pushed.
    pushed: u64,
    /// The unsent data that the program wants to have at most (`TCP_NOTSENT_LOWAT`).
    pub(crate) unsent_limit: Option<u64>,
    pub(crate) attempt: Attempt,
}

impl SendQueue {
    pub(crate) fn new(config: &TcpConfig) -> Self {
        let tuned = Limit::Tuned(config.stack.send_buffer.get(), config.stack.send_buffer_max.get());
        SendQueue {
            chunks: VecDeque::new(),
            start: 1,
            end: 1,
            backlog: 0,
            pending: VecDeque::new(),
            limit: config.send_buffer.map_or(tuned, |bytes| Limit::Payload(bytes.get())),
            beside_payload: if config.send_buffer.is_some() { 0 } else { config.stack.memory.beside_chunk() },
            memory: 0,
            writes: false,
            news: false,
            pushed: 1,
            unsent_limit: None,
            attempt: Attempt::Usual,
        }
    }

    /// The chunk that is next to be sent, and whether it is the last.
    pub(crate) fn head(&self) -> Option<(Chunk, bool)> {
        self.chunks.front().map(|chunk| (*chunk, self.chunks.len() == 1))
    }

    /// Whether the program can hand over more at once.
    #[inline]
    pub(crate) const fn writes(&self) -> bool {
        self.writes
    }

    /// Whether the program may hand over more: at once, or because an ACK has freed memory.
    #[inline]
    pub(crate) const fn may_write(&self) -> bool {
        self.writes || self.news
    }

    /// Whether the program waits for room.
    pub(crate) const fn waits(&self) -> bool {
        self.backlog > 0 && !self.writes
    }

    /// Whether the program waits for room and an ACK may have brought some. Unlike [`SendQueue::has_news`] it changes
    /// nothing.
    pub(crate) const fn looks_for_room(&self) -> bool {
        self.news && self.waits()
    }

    /// Whether an ACK has arrived since this was last asked.
    pub(crate) fn has_news(&mut self) -> bool {
        std::mem::take(&mut self.news)
    }

    /// Bytes that the program has still to hand over.
    pub(crate) const fn backlog(&self) -> u64 {
        self.backlog
    }

    /// The program takes back what it has not handed over; returns how much that was.
    pub(crate) fn take_back(&mut self) -> u64 {
        self.writes = false;
        self.news = false;
        self.pending.clear();
        std::mem::take(&mut self.backlog)
    }

    /// Memory limit of the buffer.
    pub(crate) const fn limit(&self) -> u64 {
        let (Limit::Tuned(limit, _) | Limit::Said(limit) | Limit::Payload(limit)) = self.limit;
        limit
    }

    /// A program says how much memory there is.
    pub(crate) fn set_limit(&mut self, bytes: Bytes) {
        self.limit = Limit::Said(bytes.get());
    }

    /// How much a new chunk may hold.
    fn room(&self, goal: u64, mss: u64) -> u64 {
        match self.limit {
            Limit::Payload(limit) => {
                let left = ((limit / mss).max(1) * mss).saturating_sub(self.memory);
                goal.min(left / mss * mss)
            }
            _ if self.memory < self.limit() => goal,
            _ => 0,
        }
    }

    /// Whether a write that waits may go on.
    fn has_room_again(&self, mss: u64) -> bool {
        match self.limit {
            Limit::Payload(_) => self.room(mss, mss) > 0,
            _ => self.memory + self.memory / 2 <= self.limit(),
        }
    }

    /// `bytes` of a segment were acknowledged; with `burst` the burst that it ended.
    #[inline]
    pub(crate) fn release(&mut self, bytes: u64, burst: bool) {
        self.memory -= bytes;
        if burst {
            self.memory -= self.beside_payload;
        }
    }

    /// What was sent as one burst is kept as two from now on.
    pub(crate) fn divide(&mut self) {
        self.memory += self.beside_payload;
    }

    /// What was sent as two bursts is kept as one from now on.
    pub(crate) fn join(&mut self) {
        self.memory -= self.beside_payload;
    }

    /// A burst up to `end` goes out of the first chunk. Returns whether the chunk's push is at its end.
    pub(crate) fn on_burst(&mut self, end: u64) -> bool {
        let Some(head) = self.chunks.front().copied() else { return false };
        self.start = end;
        if end < head.end {
            // What is left is a chunk of its own.
            self.memory += self.beside_payload;
            return false;
        }
        self.chunks.pop_front();
        head.push
    }

    /// The burst up to `end` that could not go out is a chunk of its own, and so is what is left.
    pub(crate) fn split_head(&mut self, end: u64) {
        if self.chunks.front().is_some_and(|head| end < head.end) {
            self.chunks.push_front(Chunk { end, push: false, closed: false });
            self.memory += self.beside_payload;
        }
    }

    /// The first chunk takes over what the second holds, up to stream offset `end`: what is left of a chunk does not go
    /// out by itself where a larger burst may.
    #[inline]
    pub(crate) fn fill_head(&mut self, end: u64) {
        if self.chunks.len() > 1 && self.chunks[0].end < end {
            self.take_from_second(end);
        }
    }

    fn take_from_second(&mut self, end: u64) {
        let second = self.chunks[1];
        if self.chunks[0].closed {
            return;
        }
        if second.end > end {
            self.chunks[0].end = end;
            return;
        }
        self.chunks[1].push |= self.chunks[0].push;
        self.chunks.pop_front();
        self.memory -= self.beside_payload;
    }

    /// What was not sent is forgotten.
    pub(crate) fn abandon(&mut self, next: u64) {
        self.chunks.clear();
        self.start = next;
        self.end = next;
        self.take_back();
    }
}

/// The stream offset after the piece of a file that is handed over from offset `next` on, in calls of `call` bytes.
fn piece_end(next: u64, call: u64) -> u64 {
    let sent = next - 1;
    1 + ((sent / Memory::PAGE + PAGES) * Memory::PAGE).min((sent / call + 1) * call)
}

impl Sender {
    /// The program hands over bytes, with calls of `call` bytes in pieces or as one.
    pub(crate) fn write(&mut self, bytes: u64, how: Send, call: Option<u64>, now: Time, terms: &Terms) {
        if bytes == 0 {
            return;
        }
        self.restart_after_idle(now, terms);
        self.arm_if_idle(now);
        let queue = &mut self.queue;
        let call = call.filter(|_| !matches!(queue.limit, Limit::Payload(_)));
        queue.writes |= queue.backlog == 0;
        queue.backlog = queue.backlog.saturating_add(bytes);
        queue.pending.push_back(Write { left: bytes, how, call, piece_end: None });
    }

    /// The program closes: a FIN follows the data.
    pub(crate) fn end_stream(&mut self, now: Time) {
        self.closes = true;
        self.arm_if_idle(now);
        self.append_fin();
    }

    /// The FIN follows when the program has handed over everything.
    fn append_fin(&mut self) {
        self.fin = self.closes && self.queue.backlog == 0;
        self.written = self.queue.end + u64::from(self.fin);
    }

    /// The program has nothing more to hand over. Returns how many bytes it has handed over.
    pub(crate) fn end_write(&mut self) -> u64 {
        self.queue.take_back();
        self.append_fin();
        self.queue.end - 1
    }

    /// The program takes back what it has not handed over; returns how much that was.
    pub(crate) fn take_back(&mut self) -> u64 {
        self.queue.take_back()
    }

    /// There is something to send, and it may have to wait: a probe of the window is to be due then.
    fn arm_if_idle(&mut self, now: Time) {
        if self.timer.purpose == Purpose::Idle && self.next > 0 {
            self.arm_from = now;
        }
    }

    /// Payload of a whole chunk.
    fn chunk_goal(&self, terms: &Terms) -> u64 {
        let mss = u64::from(terms.mss);
        if !terms.bursts {
            return mss;
        }
        (LARGEST.min(share_of(self.peer_window)) / mss).max(1) * mss
    }

    /// The program goes on handing over, until something is to be sent. False when it cannot go on.
    #[inline(never)]
    pub(crate) fn fill(&mut self, now: Time, terms: &Terms) -> bool {
        if self.limits.current() != Limited::ByWindow {
            self.limits.set(Limited::Busy, now);
        }
        let (goal, mss) = (self.chunk_goal(terms), u64::from(terms.mss));
        while self.queue.writes {
            let attempt = self.fill_chunk(goal, mss);
            self.append_fin();
            if self.flushes && self.nodelay && self.queue.backlog == 0 {
                // What the write has held back goes out when it is over.
                self.queue.attempt = Attempt::Pushed;
                return true;
            }
            if matches!(attempt, Attempt::Usual | Attempt::Corked) && self.corks(goal, now) {
                self.queue.attempt = Attempt::None;
            } else if attempt != Attempt::None {
                self.queue.attempt = attempt;
                return true;
            }
        }
        false
    }

    /// The program hands over as much as one chunk takes. Returns what may be sent at once.
    fn fill_chunk(&mut self, goal: u64, mss: u64) -> Attempt {
        let peer_window = self.peer_window;
        let queue = &mut self.queue;
        let left = queue.left_in_tail(goal);
        let open = left > 0;
        let room = if open { left } else { queue.room(goal, mss) };
        if room == 0 || (!open && queue.unsent_limit.is_some_and(|limit| queue.end - self.next >= limit)) {
            queue.writes = false;
            // Of a piece that has not begun nothing has to go out.
            return if queue.begins_piece() { Attempt::None } else { queue.push_tail() };
        }
        if open && queue.begins_piece() {
            // More follows what was pushed.
            queue.chunks.back_mut().expect("the last chunk is open").push = false;
        }
        let (bytes, is_over) = queue.take(room);
        if !open {
            queue.memory += queue.beside_payload;
            queue.chunks.push_back(Chunk { end: queue.end, push: false, closed: false });
        }
        queue.add(bytes);
        if let Some(how) = is_over {
            return queue.end_write(how, peer_window);
        }
        if bytes < room {
            return Attempt::None;
        }
        if queue.end - queue.pushed > peer_window / 2 {
            return queue.push_tail();
        }
        if queue.chunks.len() == 1 { Attempt::One } else { Attempt::None }
    }

    /// An ACK has freed memory: a write that waits may go on, when what there is has been sent.
    #[inline]
    pub(crate) fn wake_writer(&mut self) {
        self.queue.news = self.queue.waits();
    }

    #[cold]
    pub(crate) fn try_to_wake(&mut self, terms: &Terms) {
        let unsent = self.queue.end - self.next;
        let unsent_fits = self.queue.unsent_limit.is_none_or(|limit| 2 * unsent < limit);
        self.queue.writes = unsent_fits && self.queue.has_room_again(u64::from(terms.mss));
    }

    /// The buffer is what holds the connection back: all is sent, and the window has room. It is made larger.
    pub(crate) fn enlarge_buffer(&mut self, terms: &Terms) {
        let Limit::Tuned(limit, most) = self.queue.limit else { return };
        let segment = (u64::from(terms.segment) + terms.stack.memory.headroom()).next_power_of_two() + DESCRIPTION;
        let window = u64::from(self.window.cwnd.max(LEAST_WINDOW).max(self.rack.reordering + 1));
        let wanted = (self.cc.windows_buffered() * window * segment).min(most);
        self.queue.limit = Limit::Tuned(limit.max(wanted), most);
    }
}

impl SendQueue {
    /// Memory of the last chunk, and whether it takes more.
    pub(crate) fn tail(&self, goal: u64) -> (u64, bool) {
        let left = self.left_in_tail(goal);
        (goal - left + self.beside_payload, left > 0)
    }

    /// How much the last chunk has still room for.
    fn left_in_tail(&self, goal: u64) -> u64 {
        let start = self.chunks.len().checked_sub(2).map_or(self.start, |before| self.chunks[before].end);
        let open = self.chunks.back().is_some_and(|tail| !tail.closed);
        if open { goal.saturating_sub(self.end - start) } else { 0 }
    }

    fn add(&mut self, bytes: u64) {
        self.memory += bytes;
        self.end += bytes;
        self.chunks.back_mut().expect("there is a chunk to add to").end = self.end;
    }

    /// The receiver is to have everything that was written. What is sent already can carry no push any more; with a
    /// buffer of payload alone, which is not Linux's, it counts all the same.
    fn push_tail(&mut self) -> Attempt {
        let tail = self.chunks.back_mut();
        if tail.is_some() || matches!(self.limit, Limit::Payload(_)) {
            self.pushed = self.end;
        }
        if let Some(tail) = tail {
            tail.push = true;
        }
        Attempt::Pushed
    }

    /// Whether nothing of the present piece of a write was handed over yet.
    fn begins_piece(&self) -> bool {
        self.pending.front().is_some_and(|write| write.piece_end.is_none())
    }

    /// The program hands over `most` bytes of the present piece of its write, or what is left of it. This returns how
    /// many bytes that are and, if the piece is over, what the program says of it.
    fn take(&mut self, most: u64) -> (u64, Option<Send>) {
        let next = self.end;
        let write = self.pending.front_mut().expect("a program that writes has something to write");
        let piece_end =
            *write.piece_end.get_or_insert_with(|| write.call.map_or(u64::MAX, |call| piece_end(next, call)));
        let bytes = most.min(write.left).min(piece_end - next);
        write.left -= bytes;
        self.backlog -= bytes;
        let (how, ends) = (write.how, next + bytes == piece_end);
        if write.left == 0 {
            self.pending.pop_front();
            return (bytes, Some(how));
        }
        if ends {
            write.piece_end = None;
        }
        let call_ends = write.call.is_some_and(|call| (piece_end - 1).is_multiple_of(call));
        (bytes, ends.then_some(Send { more: !call_ends, ..how }))
    }

    fn end_write(&mut self, how: Send, peer_window: u64) -> Attempt {
        self.writes = self.backlog > 0;
        if let Some(tail) = self.chunks.back_mut() {
            tail.closed |= how.end_of_record;
        }
        if how.more {
            if self.end - self.pushed > peer_window / 2 {
                self.push_tail();
            }
            return Attempt::Corked;
        }
        self.push_tail();
        Attempt::Usual
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A piece has 16 pages, of which the first may be begun, and does not exceed its call.
    #[test]
    fn pieces_end_with_pages_and_calls() {
        let ends = [1, 2, 4097, 65_537].map(|next| piece_end(next, 1 << 24));
        assert_eq!(ends, [65_537, 65_537, 69_633, 131_073]);
        assert_eq!([1, 4097, 65_537].map(|next| piece_end(next, 1 << 16)), [65_537, 65_537, 131_073]);
    }
}
