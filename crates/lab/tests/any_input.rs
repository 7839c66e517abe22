//! No input panics: a file or an override is either refused with a message or runs to a result.

use firstlight_lab::{Files, LabError, Spec, plan, run};
use firstlight_spec::model::{Key, KeyPath, Shape, Variant, Without, keys};
use firstlight_spec::{Class, Kind, OverrideValue};
use firstlight_transport::CcConfig;
use proptest::prelude::*;
use std::ops::ControlFlow;

const PAIR: &str = include_str!("specs/pair.toml");
const INCAST: &str = include_str!("specs/incast.toml");
const WORKLOADS: &str = include_str!("specs/workloads.toml");
/// Workloads that need racks, or a matrix of three.
const RACKS: &str = concat!(
    include_str!("specs/hdfs.toml"),
    "[[workload]]\nkind = \"ring\"\nbig = \"10kB\"\nsmall = \"1kB\"\n",
    "[[workload]]\nkind = \"demand\"\nfile = \"tests/specs/demand.csv\"\nrate = \"1Mbps\"\nsize = \"1kB\"\n",
    "[[workload]]\nkind = \"shuffle\"\nsize = \"1kB\"\n",
);

/// Values as users write them, right and wrong, for any key.
fn value() -> impl Strategy<Value = OverrideValue> {
    let texts = [
        "0s",
        "1ps",
        "900ns",
        "180us",
        "4800us",
        "10ms",
        "1s",
        "213days",
        "18446744073709551615ps",
        "1bps",
        "1Mbps",
        "10Gbps",
        "100Tbps",
        "0B",
        "100B",
        "1500B",
        "9000B",
        "65535B",
        "1GB",
        "1152921504606846976B",
        "cubic",
        "retcp",
        "dctcp",
        "newreno",
        "dx",
        "vegas",
        "timely",
        "swift",
        "strobe",
        "etalon",
        "list",
        "star",
        "hybrid",
        "rack0",
        "rack2",
        "host0",
        "rack1.host3",
        "all",
        "[0, 1]",
        "[[0, 1], [1, 2]]",
        "[]",
        "true",
        "",
        "x",
        "\u{1F4A1}",
    ];
    prop_oneof![
        6 => proptest::sample::select(texts.to_vec()).prop_map(|text| OverrideValue::Text(text.into())),
        2 => (-2i64..200).prop_map(OverrideValue::Integer),
        1 => any::<i64>().prop_map(OverrideValue::Integer),
        1 => any::<f64>().prop_map(OverrideValue::Float),
        1 => (0.0..1.5).prop_map(OverrideValue::Float),
        1 => any::<bool>().prop_map(OverrideValue::Flag),
        1 => Just(OverrideValue::Remove),
        1 => Just(OverrideValue::List(vec![OverrideValue::Integer(0), OverrideValue::Integer(2)])),
        1 => Just(OverrideValue::Table(vec![("small".into(), OverrideValue::Integer(3))])),
    ]
}

/// Values of a kind, mostly sensible ones.
fn value_of(kind: &Kind) -> BoxedStrategy<OverrideValue> {
    let texts = |texts: &[&str]| {
        let texts: Vec<String> = texts.iter().map(ToString::to_string).collect();
        proptest::sample::select(texts).prop_map(OverrideValue::Text).boxed()
    };
    let sensible = match &kind.class {
        Class::Name(names) => texts(&names.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>()),
        Class::Count { .. } => (0i64..70).prop_map(OverrideValue::Integer).boxed(),
        Class::Number { .. } => (0.0..3.0).prop_map(OverrideValue::Float).boxed(),
        Class::Flag => any::<bool>().prop_map(OverrideValue::Flag).boxed(),
        Class::Either(kinds) => prop_oneof![value_of(&kinds[0]), value_of(&kinds[1])].boxed(),
        Class::List { .. } => texts(&[
            &kind.example,
            "[]",
            "[1]",
            "[[0, 1], [0, 2]]",
            "[2, 0]",
            "[1, 1]",
            "[\"left->right\", \"nowhere\"]",
            "[\"1MB\", \"1MB\"]",
        ]),
        Class::Text(form) => match form.as_ref().map(|form| form.format.name) {
            Some("time") => texts(&["0s", "1ps", "333ns", "40us", "600us", "1ms", "1s"]),
            Some("rate") => texts(&["1bps", "7Mbps", "10Gbps", "33333333333bps", "400Gbps", "100Tbps"]),
            Some("size") => texts(&["0B", "100B", "1447B", "9kB", "65535B", "3MB", "1GiB"]),
            Some("hosts") => texts(&["rack0", "rack1", "host0", "host17", "rack2.host1", "all"]),
            Some(_) => texts(&[kind.example.trim_matches('"'), "", "7."]),
            None => texts(&[
                "x",
                "",
                "ping -c 1 host3",
                "web-search",
                "tests/specs/flows.txt",
                "tests/specs/sizes.txt",
                "tests/specs/demand.csv",
            ]),
        },
    };
    prop_oneof![4 => sensible, 1 => proptest::sample::select(edges(kind))].boxed()
}

/// The smallest and the largest value of a kind, those next to them that are allowed, and its example.
fn edges(kind: &Kind) -> Vec<OverrideValue> {
    let text = |text: &str| OverrideValue::Text(text.into());
    match &kind.class {
        Class::Flag => vec![OverrideValue::Flag(false), OverrideValue::Flag(true)],
        Class::Name(names) => names.iter().map(|(name, _)| text(name)).collect(),
        Class::Count { least, most, .. } => {
            [*least, least + 1, *most].map(|n| OverrideValue::Integer(i64::try_from(n).unwrap_or(i64::MAX))).to_vec()
        }
        Class::Number { least, above, most } => {
            let least = if *above { least + 1e-12 } else { *least };
            [least, (least + most) / 2.0, *most].map(OverrideValue::Float).to_vec()
        }
        Class::List { .. } => vec![text(&kind.example)],
        Class::Either(kinds) => kinds.iter().flat_map(edges).collect(),
        Class::Text(form) => {
            let mut all = vec![text(kind.example.trim_matches('"'))];
            let quantity = form.iter().filter_map(|form| Some((form, smallest(form.format.name)?)));
            for (form, smallest) in quantity {
                let least = form
                    .least
                    .clone()
                    .unwrap_or_else(|| if form.above.is_some() { smallest.into() } else { smallest.replace('1', "0") });
                all.extend([Some(least), form.most.clone()].into_iter().flatten().map(OverrideValue::Text));
            }
            all
        }
    }
}

/// The smallest quantity of a form.
fn smallest(format: &str) -> Option<&'static str> {
    [("time", "1ps"), ("rate", "1bps"), ("size", "1B")]
        .into_iter()
        .find(|(name, _)| *name == format)
        .map(|(_, least)| least)
}

/// Keys that begin so, each with a value of its kind.
fn overrides_of(table: &'static str) -> impl Strategy<Value = Vec<(String, OverrideValue)>> {
    let mine: Vec<KeyPath> = keys().into_iter().filter(|key| key.path.starts_with(table)).collect();
    let one = proptest::sample::select(mine);
    let one = one.prop_flat_map(|key| (Just(key.path.replace('*', "0")), value_of(kind(&key))));
    proptest::collection::vec(one, 1..4)
}

fn kind(key: &KeyPath) -> &'static Kind {
    match &key.key.shape {
        Shape::Value(kind) => kind,
        other => panic!("{} has values, and not {other:?}", key.path),
    }
}

/// Keys of experiments, with a value that may or may not be of their kind.
fn overrides() -> impl Strategy<Value = Vec<(String, OverrideValue)>> {
    let key = proptest::sample::select(keys());
    let fitting = key.prop_flat_map(|key| (Just(key.path.replace('*', "0")), value_of(kind(&key))));
    let path = proptest::sample::select(keys().iter().map(|key| key.path.replace('*', "0")).collect::<Vec<_>>());
    let table = proptest::sample::select(
        ["voq", "marks", "flows", "flows.0", "tcp", "schedule", "linux", "program"].map(String::from).to_vec(),
    );
    let one = prop_oneof![12 => fitting, 1 => (path, value()), 1 => (table, value())];
    proptest::collection::vec(one, 0..5)
}

/// Small enough to run in a test.
fn is_small(spec: &Spec) -> bool {
    spec.hosts() <= 200 && spec.flows.len() <= 200 && spec.messages.list().len() <= 100_000
}

fn reads_and_runs(text: &str, overrides: &[(String, OverrideValue)]) -> Result<(), TestCaseError> {
    let spec = match Spec::read(text, "x.toml", overrides) {
        Ok(spec) => spec,
        Err(error) => {
            prop_assert!(!error.problems.is_empty());
            let placed = |text: String| text.starts_with("x.toml") || text.starts_with("tests/specs/");
            prop_assert!(error.problems.iter().all(|problem| placed(problem.to_string())), "{error}");
            return Ok(());
        }
    };
    if !is_small(&spec) {
        return Ok(());
    }
    if spec.linux.is_some() {
        return plan(&spec).map(|_| ()).map_err(|error| TestCaseError::fail(format!("accepted, but: {error}")));
    }
    let mut slices = 0;
    let result = run(&spec, overrides, &Files::default(), &mut |_| {
        slices += 1;
        if slices > 20 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    match result {
        Ok(_) | Err(LabError::Cancelled | LabError::NoCaptureFile) => Ok(()),
        Err(error) => Err(TestCaseError::fail(format!("accepted, but: {error}"))),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_override_of_any_key(mut set in overrides(), text in 0usize..3, linux in any::<bool>()) {
        let text = [PAIR, INCAST, WORKLOADS][text];
        if linux {
            set.push(("hosts.kind".into(), OverrideValue::Text("linux".into())));
        }
        set.push(("duration".into(), OverrideValue::Text("3ms".into())));
        set.push(("warmup".into(), OverrideValue::Text("1ms".into())));
        reads_and_runs(text, &set)?;
    }

    #[test]
    fn any_override_of_any_workload(set in overrides_of("workload."), entry in 0usize..11, kind in any::<bool>()) {
        let (text, entry) = if entry < 7 { (WORKLOADS, entry) } else { (RACKS, entry - 7) };
        let own = |path: &str| kind || !path.ends_with(".kind");
        let mut set: Vec<_> = set.into_iter().filter(|(path, _)| own(path)).collect();
        set.iter_mut().for_each(|(path, _)| *path = path.replacen(".0.", &format!(".{entry}."), 1));
        set.push(("duration".into(), OverrideValue::Text("1ms".into())));
        reads_and_runs(text, &set)?;
    }

    #[test]
    fn any_damage_to_the_text(at in 0usize..900, length in 0usize..20, put in "[ -~\n\u{e9}]{0,6}") {
        let mut text: Vec<char> = PAIR.chars().collect();
        let (from, to) = (at.min(text.len()), (at + length).min(text.len()));
        text.splice(from..to, put.chars());
        let text: String = text.into_iter().collect();
        let short = [("duration", "100us"), ("warmup", "0s")];
        reads_and_runs(&text, &short.map(|(key, value)| (key.into(), OverrideValue::Text(value.into()))))?;
    }
}

/// The table of a key, of the key's own kind and with all that the kind needs; and what gives its table an effect.
fn setting(key: &KeyPath) -> Vec<(String, OverrideValue)> {
    let (table, _) = key.path.rsplit_once('.').unwrap_or(("", &key.path));
    let own_controller = CcConfig::NAMES.contains(&table).then(|| ("tcp.cc".into(), OverrideValue::Text(table.into())));
    let Some(Variant { kind: Some(name), keys, .. }) = key.variant else { return own_controller.into_iter().collect() };
    let required = keys.iter().filter(|key| key.without == Without::Required);
    let example = |key: &Key| (key.name.clone(), OverrideValue::Text(key.example().trim_matches('"').into()));
    let mut entries: Vec<_> = required.map(example).collect();
    entries.push(("kind".into(), OverrideValue::Text(name.clone())));
    let entries = OverrideValue::Table(entries);
    match table.strip_suffix(".*") {
        Some(list) => vec![(list.into(), OverrideValue::List(vec![entries]))],
        None => vec![(table.into(), entries)],
    }
}

/// Every key at the edges of its range is refused with a place, or the experiment runs: what reading accepts, the
/// engine takes.
#[test]
fn every_edge_of_every_range_is_refused_or_runs() {
    for key in keys() {
        for value in edges(kind(&key)) {
            for text in [PAIR, INCAST, RACKS] {
                let mut set = setting(&key);
                set.push(("duration".into(), OverrideValue::Text("3ms".into())));
                set.push(("warmup".into(), OverrideValue::Text("0s".into())));
                set.push((key.path.replace('*', "0"), value.clone()));
                reads_and_runs(text, &set).unwrap_or_else(|error| panic!("{} = {value:?}: {error}", key.path));
            }
        }
    }
}

#[test]
fn every_example_of_a_key_is_a_value_that_it_takes() {
    for key in keys().into_iter().filter(|key| key.key.name != "kind") {
        let text = key.key.example().trim_matches('"').to_string();
        let path = key.path.replace('*', "0");
        let error = Spec::read(PAIR, "x.toml", &[(path.clone(), OverrideValue::Text(text))]).err();
        let own = error.iter().flat_map(|error| &error.problems).find(|problem| problem.key == path);
        let type_error =
            own.filter(|problem| problem.problem.contains("expected") || problem.problem.contains("range"));
        assert!(type_error.is_none(), "{type_error:?}");
    }
}
