//! What a control loop asks of a hybrid fabric, and has it do. The loop is kept going by whoever drives the hosts.

use super::announced::Announced;
use super::core::Core;
use super::hybrid::Hybrid;
use super::{Fabric, Kind};
use crate::config::HybridConfig;
use crate::report::CircuitReport;
use firstlight_circuits::{Demand, Week};
use firstlight_net::{FlowTuple, HostId};

impl Fabric {
    fn racks(&mut self) -> (&mut Core, &mut Hybrid) {
        match &mut self.kind {
            Kind::Hybrid(hybrid) => (&mut self.core, hybrid),
            Kind::Graph(_) | Kind::Classes(_) | Kind::Lossless(_) => {
                unreachable!("only a fabric with circuits is controlled")
            }
        }
    }

    /// What it was built of, when its weeks are made by a control loop, which the hosts' driver keeps going.
    pub fn controlled(&self) -> Option<&HybridConfig> {
        match &self.kind {
            Kind::Hybrid(hybrid) => hybrid.controlled.as_deref(),
            Kind::Graph(_) | Kind::Classes(_) | Kind::Lossless(_) => None,
        }
    }

    /// Plans the next week of a control loop, which was made for this demand.
    ///
    /// # Panics
    /// On a fabric without a control loop; so do the other calls of one.
    pub fn plan(&mut self, week: &Week, demand: Demand) {
        let (core, hybrid) = self.racks();
        hybrid.plan(core, week, demand);
    }

    /// What waits in the VOQs.
    pub fn voq_demand(&mut self) -> Demand {
        let (core, hybrid) = self.racks();
        hybrid.voq_demand(core)
    }

    /// From now on it is known what hosts have to send, by what they write ([`Fabric::on_write`]). `first` are the places of
    /// the hosts' flows.
    pub fn hear_writes(&mut self, first: Vec<u32>) {
        let (_, hybrid) = self.racks();
        hybrid.announced = Some(Box::new(Announced::new(first, hybrid.pairs.len())));
    }

    /// What hosts have written and has not passed their VOQs.
    pub fn announced_demand(&mut self) -> Demand {
        self.racks().1.announced_demand()
    }

    /// Something is written to the flow whose sender has this place; `None` when it never ends.
    pub fn on_write(&mut self, place: usize, ends: [HostId; 2], bytes: Option<u64>) {
        self.racks().1.on_write(place, ends, bytes);
    }

    /// Whether it is asked what hosts write.
    pub fn hears_writes(&self) -> bool {
        matches!(&self.kind, Kind::Hybrid(hybrid) if hybrid.announced.is_some())
    }

    /// A program outside begins to write so many bytes to its connection, the next of which will have this sequence
    /// number; or it ends having written fewer than it began to, by so many below 0. Ignored where no writes are heard.
    pub fn on_program_write(&mut self, connection: FlowTuple, sequence: u32, bytes: i64) {
        self.racks().1.on_program_write(connection, sequence, bytes);
    }

    /// A program's connection is over: what it has not sent will not pass.
    pub fn on_program_close(&mut self, connection: FlowTuple) {
        self.racks().1.on_program_close(connection);
    }

    /// A flow between these hosts that was to go on for ever has ended.
    pub fn on_end(&mut self, ends: [HostId; 2]) {
        self.racks().1.on_end(ends);
    }

    /// The circuits that a control loop has made, in the order in which they went down.
    pub fn circuits(&self) -> &[CircuitReport] {
        match &self.kind {
            Kind::Hybrid(hybrid) => hybrid.schedule.record.as_ref().map_or(&[], |record| &record.circuits),
            Kind::Graph(_) | Kind::Classes(_) | Kind::Lossless(_) => &[],
        }
    }
}
