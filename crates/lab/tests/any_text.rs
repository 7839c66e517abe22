//! No text panics, hangs or takes memory without bound: every reader takes arbitrary bytes and damaged good files, and
//! either reads them or says in one short line what is wrong at a place in the file.
//!
//! `PROPTEST_CASES` sets how many texts each reader gets; `make soak` sets many.

use firstlight_formats::chakra::collectives::CollectiveAlgorithm;
use firstlight_formats::chakra::{self, RankTrace};
use firstlight_formats::{ImportError, cdf, connections, flows, goal, matrix, placement, topology};
use firstlight_spec::Request;
use firstlight_units::Bytes;
use proptest::prelude::*;

const SPECS: [&str; 7] = [
    include_str!("specs/pair.toml"),
    include_str!("specs/incast.toml"),
    include_str!("specs/workloads.toml"),
    include_str!("specs/hdfs.toml"),
    include_str!("specs/linux.toml"),
    include_str!("specs/lossless.toml"),
    include_str!("specs/qcn.toml"),
];
const FILES: [&str; 8] = [
    include_str!("specs/flows.txt"),
    include_str!("specs/matrix.cm"),
    include_str!("specs/pair.goal"),
    include_str!("specs/sizes.txt"),
    include_str!("specs/demand.csv"),
    include_str!("specs/topology.txt"),
    include_str!("specs/circle.txt"),
    "Nodes 8\nTiers 2\nPodsize 8\nTier 0\nDownlink_speed_Gbps 100\nRadix_Down 4\nRadix_Up 4\n\
     Downlink_Latency_ns 1000\nTier 1\nDownlink_speed_Gbps 100\nRadix_Down 2\nDownlink_Latency_ns 500\n",
];
const NASTY: [&str; 24] = [
    "",
    "0",
    "-1",
    "1e999",
    "nan",
    "inf",
    "4294967296",
    "18446744073709551616",
    "1073741824",
    "0.0000000000001",
    "\u{feff}",
    "\0",
    "\r",
    "\n",
    "\t",
    "\u{85}",
    "\u{2028}",
    "é",
    "[",
    "{",
    "\"",
    "#",
    "//",
    "->",
];

/// Characters of a message at most: no message repeats what it found at length.
const LONGEST: usize = 6000;

type ReadText = fn(&str) -> Result<(), ImportError>;

const HOSTS: [u32; 6] = [0, 1, 2, 3, 5, 9];
const READERS: [(&str, ReadText); 9] = [
    ("flows", |text| flows::read(text, "f", &HOSTS).map(drop)),
    ("connections", |text| connections::read(text, "f", &HOSTS).map(drop)),
    ("goal", |text| goal::read(text, "f").map(drop)),
    ("sizes", |text| cdf::read(text, "f", Bytes::new(1460)).map(drop)),
    ("matrix", |text| matrix::read(text, "f", 3).map(drop)),
    ("ns3", |text| topology::ns3("f", text).map(drop)),
    ("htsim", |text| topology::htsim("f", text).map(drop)),
    ("graph", |text| topology::graph("f", text).map(drop)),
    ("placement", |text| placement::read(text, "f", |name| name.parse().map_err(|_| "no host".into())).map(drop)),
];

type BinaryReader = fn(&[u8]) -> Result<(), ImportError>;

const BINARIES: [(&str, &[u8], BinaryReader); 2] = [
    ("binary goal", include_bytes!("specs/pair.bin"), |bytes| goal::read_binary(bytes, "f").map(drop)),
    ("chakra", include_bytes!("specs/trace.0.et"), |bytes| {
        let other = include_bytes!("specs/trace.1.et").as_slice();
        let traces = [bytes, other].map(|bytes| RankTrace { name: "f".into(), bytes: bytes.to_vec() });
        chakra::read(&traces, CollectiveAlgorithm::Ring).map(drop)
    }),
];

/// The place of damaged bytes, how many are lost, and the bytes that replace them.
type BinaryDamage = (prop::sample::Index, usize, Vec<u8>);

fn damaged_bytes(good: &[u8], damages: &[BinaryDamage]) -> Vec<u8> {
    let mut bytes = good.to_vec();
    for (at, length, instead) in damages {
        let from = at.index(bytes.len() + 1);
        let to = (from + length).min(bytes.len());
        bytes.splice(from..to, instead.iter().copied());
    }
    bytes
}

fn binary_damages() -> impl Strategy<Value = Vec<BinaryDamage>> {
    let instead = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..9),
        prop::collection::vec(Just(255u8), 0..9),
        prop::collection::vec(Just(0u8), 0..9),
    ];
    prop::collection::vec((any::<prop::sample::Index>(), 0usize..9, instead), 1..5)
}

/// Whether bytes are read, or refused at one of them.
fn is_read_or_refused_at_a_byte(name: &str, bytes: &[u8], read: BinaryReader) -> Result<(), TestCaseError> {
    if let Err(error) = read(bytes) {
        prop_assert!(error.line == 1 && !error.problem.is_empty(), "{name}: {error}");
        prop_assert!(error.problem.len() < LONGEST && !error.problem.contains(char::is_control), "{name}: {error}");
    }
    Ok(())
}

/// The place of a text's damage, how much of it is lost, and the text that replaces it.
type Damage = (prop::sample::Index, usize, String);

fn damages() -> impl Strategy<Value = Vec<Damage>> {
    let instead = prop_oneof![
        4 => prop::sample::select(NASTY.to_vec()).prop_map(String::from),
        1 => "[ -~]{0,12}",
        1 => Just("1 ".repeat(400)),
    ];
    prop::collection::vec((any::<prop::sample::Index>(), 0usize..12, instead), 1..6)
}

fn damaged(good: &str, damages: &[Damage]) -> String {
    let mut text: Vec<char> = good.chars().collect();
    for (at, length, instead) in damages {
        let from = at.index(text.len() + 1);
        let to = (from + length).min(text.len());
        text.splice(from..to, instead.chars());
    }
    text.into_iter().collect()
}

fn any_bytes() -> impl Strategy<Value = String> {
    prop::collection::vec(any::<u8>(), 0..300).prop_map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// Whether an error names a place in the text, on a line that can be read.
fn is_told_well(name: &str, text: &str, error: &ImportError) -> Result<(), TestCaseError> {
    let lines = text.lines().count().max(1);
    prop_assert!((1..=lines).contains(&error.line), "{name}: line {} of {lines}: {error}", error.line);
    prop_assert!(error.column >= 1 && !error.problem.is_empty(), "{name}: {error}");
    Ok(())
}

fn every_reader_takes(text: &str) -> Result<(), TestCaseError> {
    for (name, read) in READERS {
        if let Err(error) = read(text) {
            is_told_well(name, text, &error)?;
        }
    }
    Ok(())
}

fn is_read_or_refused(text: &str) -> Result<(), TestCaseError> {
    if let Err(error) = Request::read(text, "x.toml", &[], true) {
        let problems = error.problems.len();
        prop_assert!(problems > 0);
        for line in error.problems.iter().map(ToString::to_string) {
            prop_assert!(!line.contains(char::is_control), "{line:?}");
            prop_assert!(line.chars().count() < LONGEST, "{} characters", line.chars().count());
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn readers_of_files_take_any_bytes(text in any_bytes()) {
        every_reader_takes(&text)?;
    }

    #[test]
    fn readers_of_files_take_damaged_files(file in prop::sample::select(FILES.to_vec()), how in damages()) {
        every_reader_takes(&damaged(file, &how))?;
    }

    #[test]
    fn binary_readers_take_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        for (name, good, read) in BINARIES {
            is_read_or_refused_at_a_byte(name, &bytes, read)?;
            let behind_the_beginning = [&good[..9], bytes.as_slice()].concat();
            is_read_or_refused_at_a_byte(name, &behind_the_beginning, read)?;
        }
    }

    #[test]
    fn binary_readers_take_damaged_files(which in 0..BINARIES.len(), how in binary_damages()) {
        let (name, good, read) = BINARIES[which];
        read(good).expect("a good file");
        is_read_or_refused_at_a_byte(name, &damaged_bytes(good, &how), read)?;
    }

    #[test]
    fn experiments_of_any_bytes_are_refused_or_read(text in any_bytes()) {
        is_read_or_refused(&text)?;
    }

    #[test]
    fn damaged_experiments_are_refused_or_read(file in prop::sample::select(SPECS.to_vec()), how in damages()) {
        is_read_or_refused(&damaged(file, &how))?;
    }
}

#[test]
fn long_words_and_deep_tables_are_refused_in_a_short_line() {
    let word = "x".repeat(2 << 20);
    let deep = 20_000;
    for text in [
        word.clone(),
        format!("name = \"{word}\"\n"),
        format!("{word} = 1\n"),
        format!("[hosts]\nrate = \"{word}\"\n"),
        format!("[{}]\n", vec!["a"; deep].join(".")),
        format!("{} = 1\n", vec!["a"; deep].join(".")),
        format!("a = {}1{}\n", "[".repeat(deep), "]".repeat(deep)),
        format!("a = {}1{}\n", "{a=".repeat(deep), "}".repeat(deep)),
    ] {
        let error = Request::read(&text, "x.toml", &[], false).expect_err("no experiment");
        let message = error.to_string();
        assert!(message.len() < LONGEST * 3 * error.problems.len(), "{} bytes", message.len());
        assert!(error.problems.len() < 20, "{message}");
    }
}

#[test]
fn names_that_no_directory_can_have_are_refused() {
    let long = "n".repeat(5000);
    for name in ["../../x", "/abs/x", "a/b", "a\0b", "a\nb", ".hidden", " blank", "", &long] {
        let text = format!("name = {name:?}\n{}", SPECS[0].replace("name = \"pair\"\n", "")).replace("\\0", "\\u0000");
        let error = Request::read(&text, "x.toml", &[], false).expect_err(name).to_string();
        assert!(error.contains("name: ") && error.len() < 1000, "{error}");
    }
    let error = Request::read(SPECS[0].trim_start_matches("name = \"pair\"\n"), ".toml", &[], false);
    assert!(error.err().is_none_or(|error| error.to_string().contains("name")));
}
