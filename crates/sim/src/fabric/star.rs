//! A star: hosts around one output-queued switch with tail drop and threshold marking.

use super::core::{Core, Shape};
use crate::config::{ConfigError, StarConfig};
use crate::events::{Event, Kind};
use firstlight_net::FifoLimits;

/// The switch. It has nothing of its own: a packet goes from the interface it came by to the port it wants.
pub(super) struct Star;

impl Star {
    pub(super) fn build(config: &StarConfig) -> Result<(Core, Star), ConfigError> {
        if config.queue == Some(0) {
            return Err(ConfigError::Value {
                key: "switch.queue",
                problem: "a queue of 0 packets drops all that wait".into(),
            });
        }
        let limits = FifoLimits { queue: config.queue, ecn: config.ecn };
        Ok((Core::new(config.hosts, &config.links, limits, config.time_scale, config.seed, 0)?, Star))
    }
}

impl Shape for Star {
    #[inline]
    fn on_event(&mut self, core: &mut Core, event: Event) {
        match event.kind() {
            Kind::Nic => {
                let id = core.on_nic_arrival(event.index());
                core.forward_to_host(id);
            }
            Kind::HostPort => core.on_exit(event.index()),
            other => unreachable!("a star has no event {other:?}"),
        }
    }
}
