//! Reading of valid experiments.

use firstlight_circuits::RackId;
use firstlight_net::fabric::{HybridConfig, Resize, SegregationConfig, VoqConfig};
use firstlight_net::{Band, Drops, RedConfig};
use firstlight_spec::{CaptureSide, ConnectionControl, Flow, Network, OverrideValue, Spec};
use firstlight_transport::cc::{Drain, RoundTrip, SlowStart, SwiftConfig, TimelyConfig, VegasConfig};
use firstlight_transport::{CcConfig, StackConfig, TcpConfig};
use firstlight_units::{Bytes, Rate, Span};

const PAIR: &str = include_str!("../../lab/tests/specs/pair.toml");
const INCAST: &str = include_str!("../../lab/tests/specs/incast.toml");

fn read(text: &str, set: &[(&str, &str)]) -> Spec {
    let overrides: Vec<_> = set.iter().map(|(k, v)| (k.to_string(), OverrideValue::Text(v.to_string()))).collect();
    Spec::read(text, "folder/my-test.toml", &overrides).unwrap_or_else(|error| panic!("{error}"))
}

fn hybrid(spec: &Spec) -> &HybridConfig {
    match &spec.network {
        Network::Hybrid(hybrid) => hybrid,
        Network::Graph(_) => panic!("a hybrid fabric"),
    }
}

fn ends(spec: &Spec) -> Vec<(u16, u16)> {
    spec.flows.iter().map(|flow| (flow.src.0, flow.dst.0)).collect()
}

#[test]
fn every_value_comes_to_its_place() {
    let set = [
        ("seed", "7"),
        ("time_scale", "20"),
        ("hosts.delay", "3us"),
        ("hosts.loss", "0.25"),
        ("hosts.receive_rate", "100Gbps"),
        ("packet.switch_queue", "5"),
        ("circuit.delay", "31us"),
        ("voq.large", "50"),
        ("voq.advance", "600us"),
        ("voq.ecn_small", "10"),
        ("voq.ecn_large", "31"),
        ("marks.advance", "500us"),
        ("segregation.elephant", "90kB"),
        ("measure.fold", "2"),
        ("measure.capture_side", "both"),
    ];
    let spec = read(PAIR, &set);
    assert_eq!((spec.name.as_str(), spec.tables.seed, spec.tables.time_scale), ("pair", 7, 20));
    assert_eq!(
        (spec.tables.duration, spec.tables.warmup, spec.measured()),
        (Span::from_ms(144), Span::from_ms(48), Span::from_ms(96))
    );
    let fabric = hybrid(&spec);
    assert_eq!((fabric.racks(), fabric.hosts_per_rack, fabric.seed, fabric.time_scale), (3, 16, 7, 20));
    assert_eq!(
        (fabric.links.rate, fabric.links.delay, fabric.interface.loss),
        (Rate::from_gbps(40), Span::from_us(3), 0.25)
    );
    assert_eq!(fabric.links.receive_rate, Rate::from_gbps(100));
    assert_eq!((fabric.packet.rate, fabric.packet.delay), (Rate::from_gbps(10), Span::from_us(5)));
    assert_eq!((fabric.packet.switch_queue, fabric.packet.switched), (5, true));
    assert_eq!((fabric.circuit.rate, fabric.circuit.delay), (Rate::from_gbps(80), Span::from_us(31)));
    let resize = Some(Resize::packets(50, Some(31), Span::from_us(600)));
    assert_eq!(fabric.voq, VoqConfig { resize, ..VoqConfig::packets(16, Some(10)) });
    assert_eq!(fabric.marks, Some(Span::from_us(500)));
    assert_eq!(fabric.tables.segregation, Some(SegregationConfig { elephant: Bytes::new(90_000) }));
    assert_eq!(fabric.week.length(), Span::from_us(4800));
    assert_eq!(spec.pair, Some((RackId(0), RackId(1))));
    assert_eq!((spec.tables.measure.series, spec.tables.measure.fold), (Some(Span::from_us(20)), 2));
    assert_eq!((spec.tables.measure.capture, spec.tables.measure.capture_side), (false, CaptureSide::Both));
}

#[test]
fn red_of_voqs_comes_to_its_place() {
    let set = |key, value| [("voq.red.min", "27kB"), ("voq.red.max", "81kB"), ("voq.red.weight", "0.01"), (key, value)];
    let band = Band::bytes(27_000, 81_000);
    let red = RedConfig { weight: 0.01, typical_packet: Bytes::new(9000), ..RedConfig::new(band) };
    let found = |key, value| hybrid(&read(PAIR, &set(key, value))).voq.discipline.red;
    assert_eq!(found("voq.red.gentle", "true"), Some(RedConfig { gentle: true, ..red }));
    assert_eq!(found("voq.red.probability", "0.1"), Some(RedConfig { max_probability: 0.1, ..red }));
    assert_eq!(found("voq.red.drop_beyond", "false"), Some(RedConfig { drops: Drops::Unmarkable, ..red }));
    assert_eq!(hybrid(&read(PAIR, &[])).voq.discipline.red, None);
}

/// But for the receive buffer, which takes no more memory than a kernel's does.
#[test]
fn without_settings_hosts_are_as_the_endpoint_has_them() {
    let spec = read(PAIR, &[]);
    let stack = StackConfig { receive_memory: Some(Bytes::new(6 << 20)), ..StackConfig::default() };
    assert_eq!(spec.tables.tcp.tcp, TcpConfig { stack, ..TcpConfig::default() });
    assert!(spec.flows.iter().all(|flow| flow.cc.simulated() == CcConfig::from_name("cubic").as_ref()));
    assert_eq!(hybrid(&spec).links.receive_rate, Rate::from_gbps(40));
    assert_eq!((hybrid(&spec).marks, &hybrid(&spec).tables.segregation), (None, &None));
    assert_eq!(hybrid(&spec).voq.resize, None);
    let star = read(INCAST, &[]);
    assert_eq!(star.tables.tcp.tcp, TcpConfig { mtu: 1500, stack, ..TcpConfig::default() });
    assert_eq!(star.name, "my-test");
}

#[test]
fn controllers_take_their_tables() {
    let of = |set: &[(&str, &str)]| match read(PAIR, set).flows[0].cc.clone() {
        ConnectionControl::Simulated(config) => config,
        ConnectionControl::Linux(name) => panic!("{name}"),
    };
    let retcp = of(&[("tcp.cc", "retcp"), ("retcp.alpha", "4"), ("retcp.beta", "0.25")]);
    let CcConfig::ReTcp(config) = retcp else { panic!("{retcp:?}") };
    assert_eq!((config.alpha, config.beta), (4.0, 0.25));
    let dctcp = of(&[("tcp.cc", "dctcp"), ("dctcp.g", "0.5"), ("dctcp.initial_alpha", "0")]);
    let CcConfig::Dctcp(config) = dctcp else { panic!("{dctcp:?}") };
    assert_eq!((config.g, config.initial_alpha), (0.5, 0.0));
    let span = |text: &str| text.parse::<Span>().unwrap();
    let CcConfig::Dx(dx) = of(&[("tcp.cc", "dx"), ("dx.headroom", "3us")]) else { panic!() };
    assert_eq!(dx.headroom, Some(span("3us")));
    assert_eq!((dx.round_trip, dx.drain), (RoundTrip::Interface, Drain::Queue));
    let CcConfig::Dx(dx) = of(&[("tcp.cc", "dx"), ("dx.round_trip", "host"), ("dx.drain", "excess")]) else { panic!() };
    assert_eq!((dx.round_trip, dx.drain), (RoundTrip::Host, Drain::Excess));
    assert_eq!(dx.slow_start, SlowStart::Round);
    let CcConfig::Dx(dx) = of(&[("tcp.cc", "dx"), ("dx.slow_start", "sample")]) else { panic!() };
    assert_eq!(dx.slow_start, SlowStart::Sample);
    // 9000 B at 40 Gb/s, and by the clock of hosts that are stretched against the fabric.
    for (scale, headroom, line) in [("1", "1800ns", 40_000_000_000), ("20", "36us", 2_000_000_000)] {
        let scale = ("time_scale", scale);
        let CcConfig::Dx(dx) = of(&[("tcp.cc", "dx"), scale]) else { panic!() };
        let CcConfig::Timely(timely) = of(&[("tcp.cc", "timely"), scale]) else { panic!() };
        assert_eq!((dx.headroom, timely.line_rate), (Some(span(headroom)), Some(Rate::from_bps(line))));
    }
    let vegas = of(&[("tcp.cc", "vegas"), ("vegas.alpha", "3"), ("vegas.beta", "5"), ("vegas.gamma", "2")]);
    assert_eq!(vegas, CcConfig::Vegas(VegasConfig { alpha: 3, beta: 5, gamma: 2 }));
    let timely = of(&[
        ("tcp.cc", "timely"),
        ("timely.line_rate", "1Gbps"),
        ("timely.step", "5Mbps"),
        ("timely.beta", "0.5"),
        ("timely.alpha", "0.25"),
        ("timely.t_low", "10us"),
        ("timely.t_high", "100us"),
        ("timely.min_rtt", "9us"),
        ("timely.segment", "64000B"),
    ]);
    let expected = TimelyConfig {
        line_rate: Some(Rate::from_gbps(1)),
        step: "5Mbps".parse().unwrap(),
        beta: 0.5,
        alpha: 0.25,
        t_low: span("10us"),
        t_high: span("100us"),
        min_rtt: span("9us"),
        segment: Bytes::new(64_000),
    };
    assert_eq!(timely, CcConfig::Timely(expected));
    let swift = of(&[
        ("tcp.cc", "swift"),
        ("swift.base_target", "40us"),
        ("swift.fs_range", "80us"),
        ("swift.fs_min_cwnd", "0.2"),
        ("swift.fs_max_cwnd", "50"),
        ("swift.ai", "2"),
        ("swift.beta", "0.4"),
        ("swift.max_mdf", "0.3"),
    ]);
    let expected = SwiftConfig {
        base_target: span("40us"),
        fs_range: span("80us"),
        fs_min_cwnd: 0.2,
        fs_max_cwnd: 50.0,
        ai: 2.0,
        beta: 0.4,
        max_mdf: 0.3,
    };
    assert_eq!(swift, CcConfig::Swift(expected));
    assert_eq!(of(&[("tcp.cc", "swift")]), CcConfig::Swift(SwiftConfig::default()));
    let cubic = of(&[
        ("cubic.beta", "0.5"),
        ("cubic.fast_convergence", "false"),
        ("cubic.hystart", "false"),
        ("cubic.coarse", "false"),
    ]);
    let CcConfig::Cubic(config) = cubic else { panic!("{cubic:?}") };
    assert_eq!((config.beta, config.fast_convergence, config.hystart, config.coarse), (0.5, false, false, false));
}

#[test]
fn who_sends_to_whom() {
    let pairs = |from: &str, to: &str, count: &str| {
        let set =
            [("fabric.hosts_per_rack", "2"), ("flows.0.from", from), ("flows.0.to", to), ("flows.0.count", count)];
        ends(&read(PAIR, &set))
    };
    assert_eq!(pairs("rack0", "rack1", "1"), [(0, 2), (1, 3)]);
    assert_eq!(pairs("rack2", "rack0", "2"), [(4, 0), (4, 0), (5, 1), (5, 1)]);
    assert_eq!(pairs("rack1.host1", "host0", "1"), [(3, 0)]);
    assert_eq!(pairs("rack0", "rack0.host1", "1"), [(0, 1)]);
    assert_eq!(pairs("all", "rack1.host0", "1"), [(0, 2), (1, 2), (3, 2), (4, 2), (5, 2)]);
    assert_eq!(pairs("host4", "rack0", "1"), [(4, 0), (4, 1)]);
}

#[test]
fn sizes_and_starts() {
    let shared = read(PAIR, &[("flows.0.total", "100B"), ("flows.0.start", "2us"), ("flows.0.jitter", "1us")]);
    let sizes: Vec<u64> = shared.flows.iter().map(|flow| flow.size.map_or(0, Bytes::get)).collect();
    assert_eq!(sizes, [[7; 4].as_slice(), &[6; 12]].concat());
    let (start, jitter) = (Span::from_us(2), Span::from_us(1));
    assert!(shared.flows.iter().all(|flow: &Flow| (flow.start, flow.jitter) == (start, jitter)));
    assert_eq!(read(PAIR, &[("flows.0.size", "1MB")]).flows[15].size, Some(Bytes::new(1_000_000)));
    assert_eq!(read(PAIR, &[]).flows[0].size, None);
}

#[test]
fn the_measured_pair_is_that_of_the_first_flow_between_racks() {
    let unmeasured = PAIR.replace("pair = [0, 1]", "");
    assert_eq!(read(&unmeasured, &[]).pair, Some((RackId(0), RackId(1))));
    let second = [("flows.0.from", "rack2"), ("flows.0.to", "rack0")];
    assert_eq!(read(&unmeasured, &second).pair, Some((RackId(2), RackId(0))));
    let within = [("flows.0.from", "host0"), ("flows.0.to", "host1")];
    assert_eq!(read(&unmeasured, &within).pair, None);
}

#[test]
fn a_listed_week_has_its_own_days() {
    let days = "kind = \"list\"\nday = \"512us\"\nnight = \"1us\"\n[[schedule.days]]\nmatching = [[0, 1], [1, 0]]\n\
                [[schedule.days]]\nmatching = []\nday = \"100us\"\n";
    let start = PAIR.find("kind = \"etalon\"").expect("a schedule");
    let end = PAIR.find("[voq]").expect("a VOQ");
    let spec = read(&format!("{}{days}{}", &PAIR[..start], &PAIR[end..]), &[]);
    let week = &hybrid(&spec).week;
    let found: Vec<_> = week.days().iter().map(|day| (day.night, day.day, day.matching.pairs().count())).collect();
    assert_eq!(found, [(Span::from_us(1), Span::from_us(512), 2), (Span::from_us(1), Span::from_us(100), 0)]);
}

/// A resolved experiment, written as overrides, is itself again.
#[test]
fn the_resolved_experiment_is_whole() {
    let set = [("voq.large", "50"), ("voq.advance", "600us"), ("tcp.cc", "retcp"), ("marks.advance", "0s")];
    let spec = read(PAIR, &set);
    assert_eq!(spec.resolved["voq"]["large"], 50);
    assert_eq!(spec.resolved["marks"]["advance"], "0s");
    assert_eq!(spec.resolved["retcp"]["alpha"], 2.0);
    assert_eq!(spec.resolved["flows"][0]["from"], "rack0");
    assert!(spec.resolved.get("cubic").is_none() && spec.resolved.get("switch").is_none());
    assert!(read(PAIR, &[]).resolved.get("marks").is_none());
    let text = toml_of(&spec.resolved);
    let again = Spec::read(&text, "again.toml", &[]).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(again.resolved, spec.resolved);
    assert_eq!((again.network, again.flows, again.tables.tcp.tcp), (spec.network, spec.flows, spec.tables.tcp.tcp));
}

/// Tables that turn something on by being there are there only if they were.
#[test]
fn the_resolved_fabric_is_whole() {
    let classes = "[[switch.classes]]\nqueue = 9\n[switch.classes.red]\nmin = 2\nmax = 5\n[[switch.classes]]\n\
                   [switch.classes.phantom]\n[[switch.classes]]\n";
    let plain = INCAST.replace("[switch]\nqueue = 200\necn = 65\n", "");
    for switch in [
        "",
        "[switch.phantom]\n",
        "[switch.red]\nmin = \"3kB\"\nmax = \"9kB\"\n",
        classes,
        "[pacer]\n",
        "[qcn]\n",
        "[qcn]\nqeq = \"66kB\"\n[measure]\nrate_limiters = true\n",
        "[switch]\nbuffer = \"1MB\"\n",
    ] {
        let spec = read(&format!("{plain}{switch}"), &[]);
        let text = toml_of(&spec.resolved);
        let again = Spec::read(&text, "again.toml", &[]).unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!((&again.resolved, &again.network), (&spec.resolved, &spec.network), "{switch}");
    }
}

/// JSON's values are TOML's; only tables are written in another way.
fn toml_of(resolved: &serde_json::Value) -> String {
    let mut text = String::new();
    for (name, value) in resolved.as_object().expect("a table") {
        match value {
            serde_json::Value::Object(_) | serde_json::Value::Array(_) => {
                text += &format!("{name} = {}\n", inline(value))
            }
            _ => text = format!("{name} = {value}\n{text}"),
        }
    }
    text
}

fn inline(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::Object(table) => {
            let entries: Vec<String> =
                table.iter().map(|(name, value)| format!("{name} = {}", inline(value))).collect();
            format!("{{{}}}", entries.join(", "))
        }
        serde_json::Value::Array(items) => format!("[{}]", items.iter().map(inline).collect::<Vec<_>>().join(", ")),
        other => other.to_string(),
    }
}
