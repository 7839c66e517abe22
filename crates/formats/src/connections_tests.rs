//! Connection matrices as csg-htsim publishes them, and wrong ones.

use super::*;
use firstlight_net::HostId;

fn hosts(hosts: u32) -> Vec<u32> {
    (0..hosts).collect()
}

fn error(text: &str) -> String {
    read(text, "x.cm", &hosts(16)).map(|_| ()).unwrap_err().to_string()
}

/// The error of a file with these lines after its header.
fn matrix(connections: usize, lines: &str) -> String {
    error(&format!("Nodes 16\nConnections {connections}\n{lines}\n"))
}

#[test]
fn published_matrices_are_read() {
    let text = "Nodes 16\nConnections 4\nTriggers 1\n# bulk\n1->0 id 1 start 0 size 2000000\n\
                2->15 id 2 start 1500000 size 2000000 send_done_trigger 7\n13->0 start 0.000000 size 0\n3->4 start 7\n\
                trigger id 7 barrier count 2\n";
    let flows = read(text, "x.cm", &hosts(16)).unwrap();
    let ends: Vec<_> = flows.iter().map(|flow| (flow.src, flow.dst)).collect();
    let host = HostId;
    assert_eq!(ends, [(host(1), host(0)), (host(2), host(15)), (host(13), host(0)), (host(3), host(4))]);
    let sizes: Vec<_> = flows.iter().map(|flow| flow.size.map(Bytes::get)).collect();
    assert_eq!(sizes, [Some(2_000_000), Some(2_000_000), None, None]);
    assert_eq!(flows[1].start, Span::from_ps(1_500_000));
    assert_eq!(flows[1].place, (6, 18));
}

/// Connections 3 and 4 wait for a barrier of 1 and 2, those of a multishot for its first and second shot.
#[test]
fn triggers_name_the_connections_that_fire_them() {
    let text = "Nodes 16\nConnections 6\nTriggers 2\n0->1 start 0 size 1 recv_done_trigger 1 send_done_trigger 2\n\
                0->2 start 9 size 1 recv_done_trigger 1 send_done_trigger 2\n3->1 trigger 1 size 1\n\
                3->2 trigger 1 size 1\n4->1 trigger 2 size 1\n4->2 trigger 2 size 1\n\
                trigger id 1 barrier count 2\ntrigger id 2 multishot\n";
    let flows = read(text, "x.cm", &hosts(16)).unwrap();
    let triggers: Vec<_> = flows.into_iter().map(|flow| flow.trigger).collect();
    let fired = |enough| Some(FlowTrigger { flows: [0, 1].into(), enough });
    assert_eq!(triggers, [None, None, fired(2), fired(2), fired(1), fired(2)]);
}

#[test]
fn wrong_headers_are_named() {
    assert_eq!(error(""), "x.cm:1:1: Nodes is missing: write for example Nodes 16");
    assert_eq!(error("Nodes 16\n"), "x.cm:1:1: Connections is missing: write for example Connections 16");
    assert_eq!(error("Nodes\n"), "x.cm:1:6: count is missing: a line has name, count");
    assert_eq!(error("Nodes 17\n"), "x.cm:1:7: 17 nodes are more than the fabric's 16 hosts: use a larger one");
    assert_eq!(error("Nodes 4\nNodes 4\n"), "x.cm:2:1: Nodes is given twice: keep one");
    assert_eq!(
        error("Node 4\n"),
        "x.cm:1:1: 'Node' cannot begin a line: write Nodes, Connections, Triggers, trigger, or a connection like 0->1"
    );
    assert_eq!(
        error("Nodes 4\nFailures 1\n"),
        "x.cm:2:1: failed links are not modelled: take the line out, and the failures"
    );
    assert_eq!(matrix(2, "0->1 start 0"), "x.cm:2:1: 2 connections are announced, and 1 follow: count them anew");
    assert_eq!(
        matrix(1, "0->1 start 0\ntrigger id 1 oneshot"),
        "x.cm:1:1: 1 triggers follow, and none is announced: write Triggers 1"
    );
    assert_eq!(
        matrix(1, "Triggers 1\n0->1 start 0"),
        "x.cm:3:1: 1 triggers are announced, and 0 follow: count them anew"
    );
}

#[test]
fn wrong_connections_are_named() {
    assert_eq!(
        matrix(1, "0->16 start 0"),
        "x.cm:3:4: expected the receiving node, found '16': write a whole number from 0 to 15"
    );
    assert_eq!(
        matrix(1, "x->1 start 0"),
        "x.cm:3:1: expected the sending node, found 'x': write a whole number from 0 to 15"
    );
    assert_eq!(
        matrix(1, "0-> 1 start 0"),
        "x.cm:3:4: expected the receiving node, found '': write a whole number from 0 to 15"
    );
    assert_eq!(matrix(1, "3->3 start 0"), "x.cm:3:4: node 3 sends to itself: write another one");
    assert_eq!(matrix(1, "0->1 size 5"), "x.cm:3:12: start is missing: write for example start 0");
    assert_eq!(
        matrix(1, "0->1 start"),
        "x.cm:3:11: expected its start in picoseconds, found '': write a whole number from 0 to 18446744073709551615"
    );
    assert_eq!(
        matrix(1, "0->1 start 0.5"),
        "x.cm:3:12: expected its start in picoseconds, found '0.5': write a whole number from 0 to 18446744073709551615"
    );
    assert_eq!(matrix(1, "0->1 start 0 start 1"), "x.cm:3:14: start is given twice: keep one");
    assert_eq!(
        matrix(1, "0->1 start 0 size -1"),
        "x.cm:3:19: expected its bytes, found '-1': write a whole number from 0 to 1152921504606846976"
    );
    assert_eq!(
        matrix(1, "0->1 id 0 start 0"),
        "x.cm:3:9: expected a connection's id, found '0': write a whole number from 1 to 4294967295"
    );
    assert_eq!(
        matrix(2, "0->1 id 1 start 0\n1->2 id 1 start 0"),
        "x.cm:4:9: there are two connections of id 1: number each"
    );
    assert_eq!(
        matrix(1, "0->1 starts 0"),
        "x.cm:3:6: a connection has no 'starts': write id, start, size, trigger, send_done_trigger, recv_done_trigger"
    );
    assert_eq!(matrix(1, "0->1 start 0 prio 3"), "x.cm:3:14: priorities of connections are not modelled: take it out");
}

#[test]
fn wrong_triggers_are_named() {
    let trigger = |line: &str| matrix(1, &format!("Triggers 1\n0->1 start 0\n{line}"));
    assert_eq!(trigger("trigger oneshot"), "x.cm:5:16: id is missing: write for example trigger id 1 oneshot");
    assert_eq!(trigger("trigger id 1"), "x.cm:5:13: its kind is missing: write for example trigger id 1 oneshot");
    assert_eq!(
        trigger("trigger id 0 oneshot"),
        "x.cm:5:12: expected a trigger's id, found '0': write a whole number from 1 to 4294967295"
    );
    assert_eq!(
        trigger("trigger id 1 twoshot"),
        "x.cm:5:14: a trigger has no 'twoshot': write id, count, oneshot, multishot, barrier"
    );
    assert_eq!(trigger("trigger id 1 oneshot barrier"), "x.cm:5:22: a trigger is of one kind: keep one");
    assert_eq!(trigger("trigger id 1 barrier"), "x.cm:5:21: count is missing: write for example count 2");
    assert_eq!(trigger("trigger id 1 oneshot count 2"), "x.cm:5:22: only a barrier has a count: take it out");
    assert_eq!(
        trigger("trigger id 1 oneshot\ntrigger id 1 oneshot"),
        "x.cm:6:9: there are two triggers of id 1: number each"
    );
    assert_eq!(
        trigger("failure switch_type TOR"),
        "x.cm:5:1: failed links are not modelled: take the line out, and Failures"
    );
    assert_eq!(
        matrix(1, "0->1 start 0 send_done_trigger 9"),
        "x.cm:3:32: there is no trigger 9: write a line like trigger id 9 oneshot"
    );
    let fired = |kind: &str, fires: &str, more: &str| {
        matrix(2, &format!("Triggers 1\n0->1 size 5 start 0 {fires}\n1->2 trigger 1 {more}\ntrigger id 1 {kind}"))
    };
    assert_eq!(
        fired("oneshot", "", "size 5"),
        "x.cm:6:9: a oneshot is fired once, but connections fire it 0 times: change either"
    );
    let twice = "send_done_trigger 1 recv_done_trigger 1";
    assert_eq!(
        fired("oneshot", twice, "size 5"),
        "x.cm:6:9: a oneshot is fired once, but connections fire it 2 times: change either"
    );
    assert_eq!(
        fired("barrier count 3", twice, "size 5"),
        "x.cm:6:9: this barrier is fired 3 times, but connections fire it 2 times: change either"
    );
    assert_eq!(
        fired("multishot", "", "size 5"),
        "x.cm:6:9: a multishot with 1 waiting connections needs at least 1 firings, but connections fire it 0 times: \
         change either"
    );
    let endless = "a connection that fires a trigger or waits for one has an end: give it a size";
    assert_eq!(fired("oneshot", "send_done_trigger 1", ""), format!("x.cm:5:14: {endless}"));
    assert_eq!(
        matrix(1, "Triggers 1\n0->1 start 0 trigger 1\ntrigger id 1 oneshot"),
        "x.cm:4:14: a connection has a start or waits for a trigger: keep one"
    );
}
