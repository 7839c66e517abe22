//! The k-ary fat tree: Al-Fares, Loukissas and Vahdat, "A Scalable, Commodity Data Center Network Architecture",
//! SIGCOMM'08, section 3.
//!
//! All switches have k ports. There are k pods of k/2 ToR ("edge") and k/2 aggregation switches, (k/2)^2 core switches
//! and k^3/4 hosts. The i-th port of every core switch leads to pod i; the aggregation switch at place j of its pod
//! has the core switches from j k/2 on.
//!
//! Routing deviates from the paper's two-level tables: next hops are chosen per flow among all shortest paths
//! ([`super::Routes`]), as switches of today do.

use super::{Topology, TopologyError, Tree, TreeCables};

/// The fat tree of `k`-port switches: `tor0`, ..., `agg0`, ..., `core0`, ...
///
/// # Errors
/// When `k` is odd or zero, or as [`Tree::build`].
pub fn fat_tree(k: u32, cables: TreeCables) -> Result<Topology, TopologyError> {
    let half = k / 2;
    if half == 0 || !k.is_multiple_of(2) {
        return Err(TopologyError::OddFatTree { k });
    }
    let tree = Tree {
        pods: k,
        tors: half,
        hosts: half,
        aggregations: half,
        cores: half.saturating_mul(half),
        uplinks: half,
        bundles: [1, 1],
        cables,
        names: ["tor", "agg", "core"],
    };
    tree.build()
}
