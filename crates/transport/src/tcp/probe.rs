//! Probes: of the tail of what is in flight (RFC 8985, section 7), and of the peer's closed window (RFC 9293, section
//! 3.8.6.1).

use super::queue::Attempt;
use super::sender::{Outgoing, Sender};
use super::terms::Terms;
use super::timer::{Purpose, Timer};
use firstlight_net::TcpFlags;
use firstlight_units::Time;

impl Sender {
    /// A probe is due. What it was due for may have been acknowledged while it had to wait.
    pub(crate) fn send_probe(&mut self, now: Time, terms: &Terms) -> Option<Outgoing> {
        if self.board.is_empty() { self.send_window_probe(now, terms) } else { self.send_tail_probe(now, terms) }
    }

    /// RFC 8985, section 7.3: new data if there are any, else the last segment again. Measured: Linux sends a burst
    /// where the window has room for one that waited for more, and one segment where it is full.
    fn send_tail_probe(&mut self, now: Time, terms: &Terms) -> Option<Outgoing> {
        if self.probe_end.is_some() {
            self.resume_timeout(now, terms);
            return None;
        }
        self.stats.probes += 1;
        let attempt = std::mem::replace(&mut self.queue.attempt, Attempt::One);
        let room = self.window.cwnd.saturating_sub(self.board.in_flight()).max(1);
        let new = self.send_new(room, now, terms);
        self.queue.attempt = attempt;
        self.probe_was_copy = new.is_none();
        let sent = new.unwrap_or_else(|| self.retransmit(self.board.len() as usize - 1, now, terms));
        self.probe_end = Some(if self.probe_was_copy { self.next } else { self.burst_end });
        self.arm_retransmit(now, terms);
        Some(sent)
    }

    /// Arms the timer of window probes where data wait though nothing is in flight.
    pub(crate) fn arm_window_probe(&mut self, now: Time, terms: &Terms) {
        self.timer = Timer::IDLE;
        if self.next < self.written && self.wakes_at() == Time::MAX {
            let timeout = self.timeout(terms);
            self.timer = Timer { purpose: Purpose::WindowProbe, at: self.ticks.after(now, timeout) };
        }
    }

    /// Sends what the window has room for, or else an old sequence number, which the peer must acknowledge.
    fn send_window_probe(&mut self, now: Time, terms: &Terms) -> Option<Outgoing> {
        if self.next >= self.written {
            return None;
        }
        let room = self.send_end() - self.next;
        if room > 0 {
            // A burst that has begun goes on: its interface may have been full.
            if self.next >= self.burst_end {
                let data = self.queue.end.max(self.next + 1) - self.next;
                self.begin_burst(room.min(u64::from(terms.mss)).min(data), now);
                self.burst_pushes = true;
            }
            return self.send_new(1, now, terms);
        }
        self.window_probes += 1;
        self.backoff += 1;
        self.arm_window_probe(now, terms);
        Some(Outgoing { start: self.una - 1, len: 0, retransmission: true, flags: TcpFlags::default() })
    }

    /// An ACK arrived while the window was being probed.
    pub(crate) fn on_probe_reply(&mut self, now: Time) {
        self.window_probes = 0;
        if self.send_end() > self.next {
            self.backoff = 0;
            self.arm_from = now;
        }
    }
}
