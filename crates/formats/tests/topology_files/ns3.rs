//! The `topology.txt` of ns-3's datacenter forks.

use crate::{broken, counts, good};
use firstlight_formats::topology::{Imported, ns3};
use firstlight_net::HostId;
use firstlight_net::topology::Routes;
use firstlight_units::{Bytes, Rate, Span};

pub const NS3: &str = "\
6 2 5
4 5
0 4 100Gbps 0.001ms 0
1 4 100Gb/s 1us 0.000000
2 5 800Kbps 1000ns 0
5 3 25Gbps 1us 0
4 5 10000000000 0.000002 0
";

#[test]
fn a_topology_of_an_ns3_fork() {
    let Imported { topology, host_numbers, notes } = good(ns3, NS3);
    assert_eq!((counts(&topology), host_numbers, notes), ((4, 2, 5), vec![0, 1, 2, 3], vec![]));
    let routes = Routes::new(&topology, 0);
    let path = |from, to| routes.path(&topology, HostId(from), HostId(to), 0);
    assert_eq!(path(0, 3).names(&topology), ["host0.nic", "switch4->switch5", "switch5->host3"]);
    // 1000 bytes: 80 ns at 100 Gb/s, 800 at 10, 320 at 25.
    assert_eq!(path(0, 3).latency(Bytes::new(1000)), Span::from_ns(80 + 1000 + 800 + 2000 + 320 + 1000));
    assert_eq!(path(1, 2).bottleneck(), Rate::from_bps(800_000));
}

#[test]
fn hosts_keep_the_numbers_of_the_file() {
    let Imported { topology, host_numbers, notes } = good(
        ns3,
        "5 2 4\n0\n2\n0 1 1Gbps 1us 0\n0 3 1Gbps 1us 0.01\n2 4 1Gbps 1us 1e-3\n0 2 1Gbps 1us 0\n\nFirst line: \
         nodes\n0 9 x\n",
    );
    assert_eq!(host_numbers, [1, 3, 4]);
    let (from, to) = (HostId(0), HostId(2));
    let names = Routes::new(&topology, 0).path(&topology, from, to, 0).names(&topology);
    assert_eq!(names, ["host1.nic", "switch0->switch2", "switch2->host4"]);
    assert_eq!(
        notes,
        [
            "net:5: 2 links have an error rate above zero, which is ignored: links lose no packets",
            "net:9: 2 lines follow the 4 links of the first line; they are not read",
        ]
    );
}

#[test]
fn broken_topologies_of_ns3_forks() {
    let link = "write one end, the other end, rate, delay and error rate, as in \"0 4 100Gbps 1us 0\"";
    broken(
        ns3,
        NS3,
        &[
            ("6 2 5\n", "6 2\n", "1:4: the line ends too early: write the numbers of nodes, of switches and of links"),
            (
                "6 2 5\n",
                "6 8 2 5 H100\n",
                "1:7: '5' is one word too many: write the numbers of nodes, of switches and of links",
            ),
            (
                "6 2 5\n",
                "1 2 5\n",
                "1:1: expected the number of nodes, found '1': write a whole number from 2 to 100000",
            ),
            ("6 2 5\n", "6 5 5\n", "1:3: expected the number of switches, found '5': write a whole number from 0 to 4"),
            (
                "6 2 5\n",
                "6 2 x\n",
                "1:5: expected the number of links, found 'x': write a whole number from 1 to 4294967295",
            ),
            ("\n4 5\n", "\n4 6\n", "2:3: expected the number of a switch, found '6': write a whole number from 0 to 5"),
            ("\n4 5\n", "\n4 4\n", "2:3: switch 4 is named twice: name each once"),
            ("\n4 5\n", "\n4 5 3\n", "2:5: '3' is one switch too many: line 1 says 2"),
            ("\n4 5\n", "\n4\n", "3:3: '4' is one switch too many: line 1 says 2"),
            ("0 4 100Gbps 0.001ms 0\n", "0 4 100Gbps 0.001ms\n", &format!("3:20: the line ends too early: {link}")),
            (
                "0 4 100Gbps 0.001ms 0\n",
                "0 4 100Gbps 0.001ms 0 0\n",
                &format!("3:23: '0' is one word too many: {link}"),
            ),
            (
                "0 4 100Gbps",
                "0 6 100Gbps",
                "3:3: expected the number of a node, found '6': write a whole number from 0 to 5",
            ),
            ("0 4 100Gbps", "0 0 100Gbps", "3:3: the link joins node 0 with itself: name two nodes"),
            ("0 4 100Gbps", "0 4 100GB", &format!("3:5: {}", "100GB".parse::<Rate>().unwrap_err())),
            ("0 4 100Gbps", "0 4 0", "3:5: a link of zero rate never sends: write for example 10Gbps"),
            ("0.001ms", "soon", "3:13: 'soon' is not a time: write for example \"180us\""),
            ("0.001ms 0", "0.001ms 2", "3:21: '2' is not an error rate: write a share from 0 to 1"),
            (
                "2 5 800Kbps",
                "0 2 800Kbps",
                "5:1: the link of host0 and host2 joins two hosts: beside other links, one end must be a switch",
            ),
            ("6 2 5\n", "6 2 6\n", "7:27: the file ends after 5 links, and line 1 says 6"),
            ("6 2 5\n", "6 2 4\n", "5:1: host2 cannot be reached from host0: every node must be connected"),
            ("6 2 5\n", "7 2 5\n", "1:1: host6 has no link: a host needs one"),
        ],
    );
    let message = |text| ns3("net", text).unwrap_err().to_string();
    assert_eq!(message(""), "net:1:1: the file is empty: begin with the numbers of nodes, of switches and of links");
    assert_eq!(message("4 2 3\n2\n"), "net:2:2: the file ends, and 1 of 2 switch numbers are missing");
}
