//! The interface between a control loop and a hybrid fabric. The driver of the hosts runs the loop.

use super::Fabric;
use super::racks::Racks;
use crate::config::HybridConfig;
use crate::report::CircuitReport;
use firstlight_circuits::{Demand, Week};
use firstlight_net::{FlowTuple, HostId};

const CONTROLLED: &str = "only a fabric with circuits is controlled";

impl Fabric {
    fn racks_mut(&mut self) -> &mut Racks {
        self.kind.racks_mut().expect(CONTROLLED)
    }

    /// The fabric's configuration, if a control loop makes its weeks. The hosts' driver runs the loop.
    pub fn controlled(&self) -> Option<&HybridConfig> {
        self.kind.racks()?.controlled.as_deref()
    }

    /// Plans the next week of a control loop, which was made for this demand.
    ///
    /// # Panics
    /// On a fabric without a control loop; so do the other calls of a control loop.
    pub fn plan(&mut self, week: &Week, demand: Demand) {
        self.kind.racks_mut().expect(CONTROLLED).plan(&mut self.core, week, demand);
    }

    /// Bytes that wait in the VOQs.
    pub fn voq_demand(&self) -> Demand {
        self.kind.racks().expect(CONTROLLED).voq_demand()
    }

    /// Records writes of hosts ([`Fabric::on_write`]) from now on. `first` has the first endpoint of each host, and the
    /// number of endpoints at its end.
    pub fn record_writes(&mut self, first: Vec<u32>) {
        self.racks_mut().record_writes(first);
    }

    /// Bytes that hosts have written and that have not passed their VOQs.
    pub fn adu_demand(&self) -> Demand {
        self.kind.racks().expect(CONTROLLED).adu_demand()
    }

    /// Bytes are written to the flow whose sender is this endpoint; `None` when the flow never ends.
    pub fn on_write(&mut self, endpoint: usize, hosts: [HostId; 2], bytes: Option<u64>) {
        self.racks_mut().on_write(endpoint, hosts, bytes);
    }

    /// Whether writes of hosts are recorded.
    pub fn records_writes(&self) -> bool {
        self.kind.racks().is_some_and(|racks| racks.backlog.is_some())
    }

    /// A program on an external host begins to write `bytes` to its connection, the next of which will have this
    /// sequence number. A negative number ends a write that was shorter than announced, by that number of bytes.
    /// Ignored where no writes are recorded.
    pub fn on_program_write(&mut self, connection: FlowTuple, sequence: u32, bytes: i64) {
        self.racks_mut().on_program_write(connection, sequence, bytes);
    }

    /// A program's connection is over: the bytes that it has not sent will not pass.
    pub fn on_program_close(&mut self, connection: FlowTuple) {
        self.racks_mut().on_program_close(connection);
    }

    /// Notifies that a flow without a size between these hosts has ended.
    pub fn on_end(&mut self, hosts: [HostId; 2]) {
        self.racks_mut().on_end(hosts);
    }

    /// The circuits that a control loop has made, in the order in which they went down.
    pub fn circuits(&self) -> &[CircuitReport] {
        self.kind.racks().map_or(&[], |racks| racks.schedule.circuits())
    }
}
