//! Our own list of hosts, switches and links.

use crate::{broken, counts, good};
use firstlight_formats::topology::{Imported, graph};
use firstlight_net::HostId;
use firstlight_net::topology::Routes;
use firstlight_units::{Bytes, Rate, Span};

pub const GRAPH: &str = "\
# two ToR switches below one
switch tor0
switch tor1
switch big aggregation
host h0 tor0 10Gbps 500ns
host h1 tor0 10Gbps 500ns   # the second
host h2 tor1 10Gbps 500ns
link tor0 big 40Gbps 1us
link tor1 big 40Gbps 1us 1Gbps 2us
";

#[test]
fn a_plain_list_of_hosts_switches_and_links() {
    let Imported { topology, host_numbers, notes } = good(graph, GRAPH);
    assert_eq!((counts(&topology), host_numbers, notes), ((3, 3, 5), vec![0, 1, 2], vec![]));
    let tiers: Vec<_> = topology.switches().iter().map(|switch| switch.tier.as_str()).collect();
    assert_eq!(tiers, ["tor", "tor", "aggregation"]);
    let routes = Routes::new(&topology, 0);
    let path = |from, to| routes.path(&topology, HostId(from), HostId(to), 0);
    assert_eq!(path(0, 2).names(&topology), ["h0.nic", "tor0->big", "big->tor1", "tor1->h2"]);
    // 1000 bytes: 800 ns at 10 Gb/s, 200 ns at 40, 8 us at 1.
    assert_eq!(path(0, 2).latency(Bytes::new(1000)), Span::from_ns(800 + 500 + 200 + 1000 + 8000 + 2000 + 800 + 500));
    assert_eq!(path(2, 0).latency(Bytes::new(1000)), Span::from_ns(800 + 500 + 200 + 1000 + 200 + 1000 + 800 + 500));
}

#[test]
fn broken_plain_lists() {
    broken(
        graph,
        GRAPH,
        &[
            ("switch tor1\n", "swich tor1\n", "3:1: 'swich' cannot begin a line: write switch, host or link"),
            (
                "switch tor1\n",
                "switch\n",
                "3:7: the line ends too early: write \"switch NAME\" or \"switch NAME TIER\"",
            ),
            ("switch tor1\n", "switch tor0\n", "3:8: tor0 is already the node of line 2: use another name"),
            ("switch tor1\n", "switch a->b\n", "3:8: 'a->b' is not a name: use letters, digits, '_', '-' and '.'"),
            (
                "link tor0 big",
                "link tor9 big",
                "8:6: there is no switch tor9 above: add a line \"switch tor9\" before or did you mean tor1?",
            ),
            ("link tor0 big", "link h0 h1", "8:9: h1 is a host: name a switch"),
            ("link tor0 big", "link big big", "8:10: the link joins big with itself: name two nodes"),
            ("h2 tor1 10Gbps", "h2 tor1 10", &format!("7:14: {}", "10".parse::<Rate>().unwrap_err())),
            ("h2 tor1 10Gbps", "h2 tor1 0Gbps", "7:14: a link of zero rate never sends: write for example 10Gbps"),
            (
                "link tor0 big 40Gbps 1us",
                "link tor0 big 40Gbps 2000s",
                "8:6: the link of tor0 and big has a delay of 2000s: use at most 1000s",
            ),
            ("h2 tor1 10Gbps 500ns", "h2 tor1 10Gbps 5x", &format!("7:21: {}", "5x".parse::<Span>().unwrap_err())),
            (
                "1Gbps 2us",
                "1Gbps",
                "9:31: the line ends too early: write \"link NODE NODE RATE DELAY\", and RATE DELAY of the reverse \
                 direction where they differ",
            ),
            (
                "1Gbps 2us",
                "1Gbps 2us 3us",
                "9:36: '3us' is one word too many: write \"link NODE NODE RATE DELAY\", and RATE DELAY of the \
                 reverse direction where they differ",
            ),
            (
                "link tor1 big 40Gbps 1us 1Gbps 2us",
                "",
                "7:6: h2 cannot be reached from h0: every node must be connected",
            ),
        ],
    );
    let lone = graph("net", "switch s\nhost h s 1Gbps 1us\n").unwrap_err().to_string();
    assert_eq!(lone, "net:1:1: a network needs at least 2 hosts, and this one has 1");
    assert_eq!(graph("net", "").unwrap_err().line, 1);
}
