//! Leaf and spine: every leaf switch has a link to every spine switch.
//!
//! The folded Clos network of two stages, as in VL2 (Greenberg et al., SIGCOMM'09) and CONGA (Alizadeh et al.,
//! SIGCOMM'14, section 3).

use super::{Cable, Topology, TopologyError, Tree};

/// The shape of a leaf-spine fabric.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LeafSpine {
    /// Leaf switches.
    pub leaves: u32,
    /// Spine switches.
    pub spines: u32,
    /// Hosts of a leaf.
    pub hosts_per_leaf: u32,
    /// Hosts to leaves.
    pub host: Cable,
    /// Leaves to spines.
    pub uplink: Cable,
}

impl LeafSpine {
    /// The network, with switches `leaf0`, ... and `spine0`, ...
    ///
    /// # Errors
    /// As [`Tree::build`].
    pub fn build(&self) -> Result<Topology, TopologyError> {
        let tree = Tree::two_tiers(self.leaves, self.spines, self.hosts_per_leaf, self.host, self.uplink);
        Tree { names: ["leaf", "spine", ""], ..tree }.build()
    }
}
