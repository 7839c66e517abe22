//! Why there is no such network.

use super::Node;
use firstlight_units::Span;

/// Why a network is invalid, and what would be valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TopologyError {
    /// Fewer than two hosts.
    #[error("a network needs at least 2 hosts, and this one has {hosts}")]
    TooFewHosts {
        /// How many there are.
        hosts: u64,
    },
    /// There are more items than can be numbered.
    #[error("{count} {of} are too many: use at most {most}")]
    TooMany {
        /// How many there are.
        count: u64,
        /// What is counted.
        of: String,
        /// How many there may be.
        most: u64,
    },
    /// A count is zero that must be at least one.
    #[error("the number of {of} is 0: use at least 1")]
    Missing {
        /// What is counted.
        of: &'static str,
    },
    /// Things cannot be divided evenly over groups.
    #[error("{count} {of} cannot be spread evenly over {groups} {over}: use a multiple of {groups}")]
    Uneven {
        /// How many there are.
        count: u64,
        /// What is counted.
        of: &'static str,
        /// How many groups there are.
        groups: u64,
        /// What is counted.
        over: &'static str,
    },
    /// A fat tree's switches have as many ports upward as downward.
    #[error("a fat tree of {k}-port switches does not exist: k must be even and at least 2")]
    OddFatTree {
        /// Ports per switch.
        k: u32,
    },
    /// Counts that leave open how many uplinks there are.
    #[error(
        "{servers} servers, {tors} ToR, {aggregations} aggregation and {cores} core switches cannot all have the same \
         number of ports, so the number of uplinks must be given: set that of a ToR switch and, where it is not one \
         link to each core switch of its share, that of an aggregation switch"
    )]
    UnknownUplinks {
        /// The number of servers.
        servers: u32,
        /// ToR switches in all.
        tors: u32,
        /// Aggregation switches in all.
        aggregations: u32,
        /// Core switches in all.
        cores: u32,
    },
    /// Two nodes are called the same.
    #[error("there are two nodes called {name}: give each its own name")]
    DuplicateName {
        /// The name that is used twice.
        name: String,
    },
    /// A link's end is not among the nodes.
    #[error("link {link} ends at {node:?}, which does not exist")]
    UnknownNode {
        /// The link, counted from 0.
        link: usize,
        /// The end of the link.
        node: Node,
    },
    /// A link with both ends at one node.
    #[error("a link joins {name} with itself: the ends of a link must be two nodes")]
    SelfLoop {
        /// The link, counted from 0.
        link: usize,
        /// The node.
        name: String,
    },
    /// A link that never sends.
    #[error("the link of {a} and {b} has a rate of zero and never sends: use more")]
    ZeroRate {
        /// The link, counted from 0.
        link: usize,
        /// The link's first end.
        a: String,
        /// The link's second end.
        b: String,
    },
    /// A link on which a bit is under way for longer than any run lasts.
    #[error("the link of {a} and {b} has a delay of {delay}: use at most {most}")]
    LongDelay {
        /// The link, counted from 0.
        link: usize,
        /// The link's first end.
        a: String,
        /// The link's second end.
        b: String,
        /// The link's delay.
        delay: Span,
        /// What it may be.
        most: Span,
    },
    /// A host that nothing is joined with.
    #[error("{name} has no link: a host needs one")]
    HostWithoutLink {
        /// The host.
        node: Node,
        /// The host's name.
        name: String,
    },
    /// A link between hosts, which forward nothing.
    #[error("the link of {a} and {b} joins two hosts: beside other links, one end must be a switch")]
    HostPair {
        /// The link, counted from 0.
        link: usize,
        /// The link's first end.
        a: String,
        /// The link's second end.
        b: String,
    },
    /// Some nodes have no path to the others.
    #[error("{name} cannot be reached from {from}: every node must be connected")]
    Unconnected {
        /// The node that cannot be reached.
        node: Node,
        /// The node's name.
        name: String,
        /// A node on the other island.
        from: String,
    },
}

/// Refuses more than there may be.
pub(super) fn at_most(count: u64, most: u64, of: &str) -> Result<(), TopologyError> {
    if count <= most { Ok(()) } else { Err(TopologyError::TooMany { count, of: of.into(), most }) }
}

/// An error if `count` is zero.
pub(super) fn at_least_one(count: u32, of: &'static str) -> Result<(), TopologyError> {
    if count > 0 { Ok(()) } else { Err(TopologyError::Missing { of }) }
}

/// How many each group gets; refuses what does not divide.
pub(super) fn evenly(count: u32, of: &'static str, groups: u32, over: &'static str) -> Result<u32, TopologyError> {
    at_least_one(groups, over)?;
    if count.is_multiple_of(groups) {
        Ok(count / groups)
    } else {
        Err(TopologyError::Uneven { count: count.into(), of, groups: groups.into(), over })
    }
}
