//! Table `latency`: how many packets of the measured pair took how long, for each network.
//!
//! Latency runs from arrival at the ToR's VOQ to arrival at the destination's ToR (queueing, serialization and
//! propagation, no host), data packets only, in bins of three significant digits.

use super::numbers;
use crate::table::{Column, Table};
use firstlight_sim::MeterReport;

/// One row for each occupied bin.
pub(super) fn table(meter: &MeterReport) -> Table {
    let (mut network, mut latency, mut packets) = (vec![], vec![], vec![]);
    for (name, report) in [("circuit", &meter.circuit), ("packet", &meter.packet)] {
        for bin in report.latency.iter_recorded() {
            network.push(name.into());
            latency.push(bin.value_iterated_to() as f64 * 1e-3);
            packets.push(i64::try_from(bin.count_at_value()).unwrap_or(i64::MAX));
        }
    }
    Table::new(
        "latency",
        "the measured pair's data packets by latency, from arrival at the VOQ to arrival at the destination's ToR",
    )
    .with("network", "circuit or packet", Column::Text(network))
    .with("latency_us", "upper edge of the bin", numbers(latency))
    .with("packets", "data packets in the bin", Column::Integer(packets))
}
