//! Tables `queues`, `queue_waits` and `queue_samples`: the ports or VOQs that `measure.queues` names, over the measured
//! time.
//!
//! A packet waits from its arrival at the port until its first bit is sent, so that the rest of the packet in service
//! counts. Utilization is the bytes that the port accepted divided by those that its link could carry, headers, ACKs
//! and Ethernet framing (`hosts.framing`) included.

use super::numbers;
use crate::quantile::histogram_quantile_us;
use crate::table::{Column, Table};
use firstlight_sim::QueueReport;

/// The part of its link's capacity that a port used; NaN of a VOQ.
pub(super) fn utilization(queue: &QueueReport) -> f64 {
    let Some(rate) = queue.rate else { return f64::NAN };
    let capacity = rate.as_bps() as f64 * queue.elapsed.as_secs_f64();
    let framing = queue.packets * u64::from(queue.framing.overhead());
    if capacity > 0.0 { (queue.bytes.get() + framing) as f64 * 8.0 / capacity } else { 0.0 }
}

/// The mean of the waits in us; NaN without packets.
pub(super) fn mean_wait_us(queue: &QueueReport) -> f64 {
    if queue.waits.is_empty() { f64::NAN } else { queue.waits.mean() * 1e-3 }
}

/// One row for each port.
pub(super) fn table(queues: &[QueueReport]) -> Table {
    let wait = |part| move |queue: &QueueReport| histogram_quantile_us(&queue.waits, part);
    Table::new("queues", "one row for each watched port or VOQ: its packets' waits in the measured time")
        .text("name", "as in table ports", queues, |queue| queue.name.clone())
        .count("packets", "packets that it accepted; of a VOQ those that left it", queues, |queue| queue.packets)
        .count("bytes", "their bytes, without Ethernet framing", queues, |queue| queue.bytes.get())
        .number(
            "utilization",
            "share of its link's capacity that these bytes took with their framing; NaN of a VOQ, which has two",
            queues,
            utilization,
        )
        .number("wait_mean_us", "mean time until a packet's first bit was sent; NaN without any", queues, mean_wait_us)
        .number("wait_p50_us", "time that half of them did not exceed", queues, wait(0.5))
        .number("wait_p99_us", "time that 99% did not exceed", queues, wait(0.99))
        .number("wait_max_us", "the longest", queues, wait(1.0))
}

/// One row for each occupied bin of each port.
pub(super) fn waits(queues: &[QueueReport]) -> Table {
    let (mut name, mut wait, mut packets) = (vec![], vec![], vec![]);
    for queue in queues {
        for bin in queue.waits.iter_recorded() {
            name.push(queue.name.clone().into());
            wait.push(bin.value_iterated_to() as f64 * 1e-3);
            packets.push(i64::try_from(bin.count_at_value()).unwrap_or(i64::MAX));
        }
    }
    Table::new("queue_waits", "packets of watched ports and VOQs by how long they waited")
        .with("name", "the port or VOQ", Column::Text(name))
        .with("wait_us", "upper edge of the bin", numbers(wait))
        .with("packets", "packets in the bin", Column::Integer(packets))
}

/// One row for each sample of each port.
pub(super) fn samples(queues: &[QueueReport]) -> Table {
    let rows: Vec<_> =
        queues.iter().flat_map(|queue| queue.samples.iter().map(move |sample| (queue, sample))).collect();
    Table::new("queue_samples", "the watched queues over time")
        .text("name", "the port or VOQ", &rows, |(queue, _)| queue.name.clone())
        .number("time_us", "when, from the start of the run", &rows, |(_, sample)| sample.at.as_us_f64())
        .count("packets", "packets that wait, the one in service not counted", &rows, |(_, sample)| {
            sample.packets.into()
        })
        .count(
            "bytes",
            "bytes not yet sent, the rest of the packet in service and Ethernet framing counted",
            &rows,
            |(_, sample)| sample.bytes.get(),
        )
}
