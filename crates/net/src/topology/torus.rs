//! A torus of two dimensions: a grid of switches whose rows and columns are rings (Dally and Seitz, "The Torus Routing
//! Chip", 1986; the networks of many supercomputers and of accelerators).

use super::error::at_least_one;
use super::graph::check_size;
use super::{Graph, Node, Topology, TopologyError, TreeCables};

/// Switches `switch0.0` (row and column), ..., each with its hosts. One row is a ring.
///
/// # Errors
/// When a number is zero, or as [`Graph::build`].
pub fn torus(rows: u32, columns: u32, hosts_per_switch: u32, cables: TreeCables) -> Result<Topology, TopologyError> {
    at_least_one(rows, "rows")?;
    at_least_one(columns, "columns")?;
    at_least_one(hosts_per_switch, "hosts of a switch")?;
    let switches = u64::from(rows) * u64::from(columns);
    let hosts = switches * u64::from(hosts_per_switch);
    check_size(hosts, switches, hosts + 2 * switches)?;
    let mut graph = Graph::default();
    let names = (0..rows).flat_map(|row| (0..columns).map(move |column| format!("switch{row}.{column}")));
    let switches: Vec<Node> = names.map(|name| graph.switch(name, "switch")).collect();
    for (rack, switch) in (0u32..).zip(&switches) {
        for host in 0..hosts_per_switch {
            let host = graph.host(format!("host{}", rack * hosts_per_switch + host));
            graph.link(host, *switch, cables.host);
        }
    }
    let at = |row: u32, column: u32| switches[(row % rows * columns + column % columns) as usize];
    for (row, column) in (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column))) {
        // The last switch of a row or column closes the ring; two switches are joined by one link.
        if column + 1 < columns || columns > 2 {
            graph.link(at(row, column), at(row, column + 1), cables.aggregation);
        }
        if row + 1 < rows || rows > 2 {
            graph.link(at(row, column), at(row + 1, column), cables.aggregation);
        }
    }
    graph.build()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HostId;
    use crate::topology::{Cable, Routes};
    use firstlight_units::{Rate, Span};

    fn of(rows: u32, columns: u32) -> Topology {
        let cable = Cable::new(Rate::from_gbps(10), Span::from_us(1));
        torus(rows, columns, 2, TreeCables { host: cable, aggregation: cable, core: cable }).unwrap()
    }

    #[test]
    fn each_switch_has_four_neighbours_and_its_hosts() {
        let torus = of(4, 5);
        assert_eq!((torus.hosts(), torus.switches().len()), (40, 20));
        assert_eq!(torus.ports().len(), 40 + 20 * 4);
        // Two links of each dimension at the most: the way round is no longer than half of a ring.
        let routes = Routes::new(&torus, 0);
        let links = |to| routes.path(&torus, HostId(0), HostId(to), 0).links();
        assert_eq!([1, 2, 8, 10, 30, 24].map(links), [2, 3, 3, 3, 3, 2 + 2 + 2]);
        // Two steps in each dimension, in any order: six paths; over two rows there are as many both ways.
        assert_eq!(routes.count_paths(&torus, HostId(0), HostId(24)), 2 * 6);
    }

    #[test]
    fn small_ones_have_no_link_twice() {
        assert_eq!(of(1, 2).ports().len(), 4 + 2);
        assert_eq!(of(2, 2).ports().len(), 8 + 4 * 2);
        assert_eq!(of(1, 6).ports().len(), 12 + 6 * 2);
    }
}
