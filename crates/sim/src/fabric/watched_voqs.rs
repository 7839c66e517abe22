//! Watched VOQs: how long packets wait in them, and how long they are over time.

use super::core::Core;
use super::racks::RackPair;
use super::watched_queue::WatchedQueue;
use crate::config::{BuildError, WatchConfig};
use crate::report::QueueReport;
use firstlight_net::Packet;
use firstlight_units::{Span, Time};
use std::collections::BTreeMap;

/// A VOQ: its pair, and whether it is that of the pair's mice.
pub(super) type VoqPlace = (usize, bool);

/// All watched VOQs.
pub(super) struct WatchedVoqs {
    queues: Vec<WatchedQueue>,
    /// The number in `queues` of each VOQ that is watched.
    at: BTreeMap<VoqPlace, usize>,
    every: Span,
    /// When the next sample is taken.
    pub(super) due: Option<Time>,
}

impl WatchedVoqs {
    /// Watches the VOQs that `config` names, of those at `places`.
    pub(super) fn new(
        config: &WatchConfig,
        places: BTreeMap<String, VoqPlace>,
        scale: u32,
    ) -> Result<WatchedVoqs, BuildError> {
        let mut watched = WatchedVoqs {
            queues: vec![],
            at: BTreeMap::new(),
            every: Span::ZERO,
            due: config.every.map(|_| Time::ZERO),
        };
        for name in &config.ports {
            let Some(&place) = places.get(name) else {
                return Err(BuildError::field("watch.ports", format!("there is no VOQ '{name}'")));
            };
            if watched.at.insert(place, watched.queues.len()).is_some() {
                return Err(BuildError::field("watch.ports", format!("'{name}' is there twice")));
            }
            watched.queues.push(WatchedQueue::new(name.clone(), place.0, None));
        }
        if let Some(every) = config.every {
            if every.is_zero() {
                return Err(BuildError::field("watch.every", "samples need a time between them"));
            }
            watched.every = every * u64::from(scale);
        }
        Ok(watched)
    }

    /// A packet leaves a VOQ.
    #[cold]
    pub(super) fn on_taken(&mut self, pair: usize, is_mice: bool, packet: &Packet, core: &Core) {
        if let Some(&queue) = self.at.get(&(pair, is_mice)) {
            let wait = (core.now - packet.queued_at()) / u64::from(core.scale);
            self.queues[queue].on_packet(packet, wait);
        }
    }

    /// Takes a sample if one is due.
    pub(super) fn sample(&mut self, pairs: &[RackPair], now: Time, scale: u32) {
        if self.due != Some(now) {
            return;
        }
        for (&(pair, is_mice), &queue) in &self.at {
            let pair = &pairs[pair];
            let voq = if is_mice { pair.packet_queue() } else { &pair.voq };
            self.queues[queue].sample(voq.len(), voq.bytes(), now, scale);
        }
        self.due = Some(now + self.every);
    }

    /// The report of each VOQ, in the order of their configuration.
    pub(super) fn reports(&self, now: Time, scale: u32) -> Vec<QueueReport> {
        self.queues.iter().map(|queue| queue.report(now, scale)).collect()
    }

    /// Forgets what was recorded.
    pub(super) fn reset(&mut self, now: Time) {
        self.queues.iter_mut().for_each(|queue| queue.reset(now));
    }
}
