//! The description of an experiment by `inspect`.

use firstlight_lab::{Spec, inspect};
use firstlight_spec::OverrideValue;

const PAIR: &str = include_str!("specs/pair.toml");
const INCAST: &str = include_str!("specs/incast.toml");

fn read(text: &str, set: &[(&str, &str)]) -> Spec {
    let overrides: Vec<_> = set.iter().map(|(k, v)| (k.to_string(), OverrideValue::Text(v.to_string()))).collect();
    Spec::read(text, "folder/my-test.toml", &overrides).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn inspection_tells_what_would_be_built() {
    let reported = inspect(&read(PAIR, &[("voq.small", "8"), ("hosts.receive_rate", "100Gbps")]));
    assert_eq!(reported["rates"]["host"]["receive_rate"], "100Gbps");
    assert_eq!(reported["hosts"], 48);
    assert_eq!(reported["rates"]["circuit"]["rate"], "80Gbps");
    assert_eq!(reported["week"].as_array().map(Vec::len), Some(24));
    assert_eq!(reported["week"][23]["matching"], "0->1 1->2 2->0");
    assert_eq!(
        (reported["week"][23]["start_us"].as_f64(), reported["week"][23]["end_us"].as_f64()),
        (Some(4620.0), Some(4800.0))
    );
    // 10 us one way at 10 Gb/s: 25 kB; 30 us at 80 Gb/s: 600 kB. A day of 180 us holds 200 packets of 900 ns.
    assert_eq!(
        (reported["bdp"]["packet"]["bytes"].as_u64(), reported["bdp"]["circuit"]["bytes"].as_u64()),
        (Some(25_000), Some(600_000))
    );
    assert_eq!(reported["bdp"]["day_packets"], 200);
    assert_eq!(reported["bdp"]["circuit_share"], 0.0375);
    assert_eq!(reported["flows"].as_array().map(Vec::len), Some(16));
    assert_eq!(reported["spec"]["voq"]["small"], 8);
    let star = inspect(&read(INCAST, &[]));
    assert_eq!(star["bdp"]["host0->last"]["bytes"], 50_000);
    // 4 us of the hosts' stacks each way.
    let stacks = [("hosts.send_delay", "1us"), ("hosts.receive_delay", "3us")];
    let (pair, star) = (inspect(&read(PAIR, &stacks)), inspect(&read(INCAST, &stacks)));
    assert_eq!(
        (pair["bdp"]["packet"]["bytes"].as_u64(), pair["bdp"]["circuit"]["bytes"].as_u64()),
        (Some(35_000), Some(680_000))
    );
    assert_eq!(
        (star["bdp"]["host0->last"]["bytes"].as_u64(), star["bdp"]["host0->last"]["one_way_us"].as_f64()),
        (Some(60_000), Some(24.0))
    );
    assert_eq!(star["flow_count"], 20);
}
