//! Victims of head-of-line blocking: paused time in which the first packet of the paused queue is bound, at the next
//! switch, for an egress that is idle. The packet waits for the congestion of others; without the pause it could be
//! forwarded.

use firstlight_units::{Span, Time};

/// The first packet of a paused queue.
#[derive(Clone, Copy, Debug)]
struct HeadPacket {
    /// The egress that the packet is bound for.
    egress: usize,
    /// The time from which the packet waits because of the pause.
    from: Time,
    /// When the egress became idle, if it is idle.
    idle: Option<Time>,
}

/// The first packets of all paused queues, and how long each queue has been a victim.
pub(super) struct Victims {
    /// The first packet of each paused transmitter and class.
    heads: Vec<Option<HeadPacket>>,
    time: Vec<Span>,
    /// The queues whose first packet is bound for each egress.
    waiting: Vec<Vec<u32>>,
    /// The egresses that a first packet is bound for.
    awaited: Vec<usize>,
}

impl Victims {
    pub(super) fn new(queues: usize, egresses: usize) -> Self {
        Victims {
            heads: vec![None; queues],
            time: vec![Span::ZERO; queues],
            waiting: vec![vec![]; egresses],
            awaited: vec![],
        }
    }

    /// The first packet of a paused queue is bound for an egress, and waits from `now` on, which may be still to come.
    /// Only the first call of each pause counts.
    pub(super) fn begin(&mut self, queue: usize, egress: usize, idle: bool, now: Time) {
        if self.heads[queue].is_none() {
            self.heads[queue] = Some(HeadPacket { egress, from: now, idle: idle.then_some(now) });
            self.waiting[egress].push(queue as u32);
            if self.waiting[egress].len() == 1 {
                self.awaited.push(egress);
            }
        }
    }

    /// An egress may have become idle or busy.
    #[inline]
    pub(super) fn update(&mut self, egress: usize, idle: bool, now: Time) {
        for queue in &self.waiting[egress] {
            let queue = *queue as usize;
            let head = self.heads[queue].as_mut().expect("a queue that waits has a first packet");
            match (head.idle, idle) {
                (None, true) => head.idle = Some(now.max(head.from)),
                (Some(since), false) => {
                    self.time[queue] += now.saturating_since(since);
                    head.idle = None;
                }
                _ => {}
            }
        }
    }

    /// One of the egresses that a first packet is bound for; none beyond the last.
    pub(super) fn awaited(&self, index: usize) -> Option<usize> {
        self.awaited.get(index).copied()
    }

    /// A queue's pause ends.
    pub(super) fn end(&mut self, queue: usize, now: Time) {
        let time = self.time(queue, now);
        if let Some(head) = self.heads[queue].take() {
            self.waiting[head.egress].retain(|other| *other as usize != queue);
            if self.waiting[head.egress].is_empty() {
                self.awaited.retain(|egress| *egress != head.egress);
            }
        }
        self.time[queue] = time;
    }

    /// How long the queue has been a victim, until `now`.
    pub(super) fn time(&self, queue: usize, now: Time) -> Span {
        let open = self.heads[queue].and_then(|head| head.idle);
        self.time[queue] + open.map_or(Span::ZERO, |since| now.saturating_since(since))
    }
}
