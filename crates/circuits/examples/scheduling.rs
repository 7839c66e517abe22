//! Measures the time to compute a schedule: every scheduler on skewed demands of 8 to 256 racks.
//!
//! Each rack has up to 16 partners: four hold 70 % of its demand and twelve 30 %, as in the evaluation of Solstice
//! (CoNEXT'15, section 5). A rack's demand is what a circuit carries in the week, 3 ms at 80 Gb/s with nights of 20 us.
//!
//!     cargo run --release -p firstlight-circuits --example scheduling [runs of each, 7 unless given]
//!
//! prints a line of JSON for each scheduler and number of racks: median run time, how many days the week has, and
//! which part of the demand the circuits serve.

use firstlight_circuits::schedulers::served;
use firstlight_circuits::{Demand, Frame, RackId, Scheduler};
use firstlight_units::{Rate, Span};

#[expect(clippy::disallowed_types, reason = "an example that measures; nothing depends on the clock")]
type WallClock = std::time::Instant;

const LARGE: usize = 4;
const SMALL: usize = 12;

fn main() {
    let runs = std::env::args().nth(1).map_or(7, |text| text.parse().expect("the argument is how many runs"));
    assert!(runs > 0, "at least one run is needed");
    let frame = Frame {
        week: Span::from_ms(3),
        night: Span::from_us(20),
        least_day: Span::from_us(1),
        circuit: Rate::from_gbps(80),
        packet: Rate::from_gbps(10),
    };
    for racks in [8, 16, 32, 64, 128, 256] {
        let demand = skewed(racks, frame.circuit.bytes_in(frame.week).get());
        for scheduler in Scheduler::ALL {
            measure(*scheduler, &demand, &frame, runs);
        }
    }
}

/// The median of some runs. A strobe's nights may leave no room for days: it is then left out.
fn measure(scheduler: Scheduler, demand: &Demand, frame: &Frame, runs: usize) {
    let Ok(week) = scheduler.schedule(demand, frame) else { return };
    let mut times: Vec<f64> = (0..runs)
        .map(|_| {
            let start = WallClock::now();
            std::hint::black_box(scheduler.schedule(std::hint::black_box(demand), frame)).expect("it was, before");
            start.elapsed().as_secs_f64()
        })
        .collect();
    times.sort_by(f64::total_cmp);
    println!(
        "{{\"scheduler\": \"{}\", \"racks\": {}, \"seconds\": {:.7}, \"days\": {}, \"served\": {:.4}}}",
        scheduler.name(),
        demand.racks(),
        times[runs / 2],
        week.days().len(),
        served(demand, &week, frame.circuit).total() as f64 / demand.total() as f64,
    );
}

/// Each rack's `bytes` over its partners, who come from random permutations, so that all receive as much as they send.
fn skewed(racks: usize, bytes: u64) -> Demand {
    let mut random = Random(racks as u64);
    let mut demand = Demand::zero(racks);
    let partners = (LARGE + SMALL).min(racks - 1);
    for flow in 0..partners {
        let share = if flow < LARGE { bytes * 70 / 100 / LARGE as u64 } else { bytes * 30 / 100 / SMALL as u64 };
        let order = random.permutation(racks);
        for (at, src) in order.iter().enumerate() {
            demand.add(*src, order[(at + 1) % racks], share * (75 + random.below(51)) / 100);
        }
    }
    demand
}

/// The SplitMix64 generator (Steele, Lea and Flood, OOPSLA'14).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % limit
    }

    /// The racks in some order (Fisher and Yates).
    fn permutation(&mut self, racks: usize) -> Vec<RackId> {
        let mut order: Vec<_> = (0..racks as u16).map(RackId).collect();
        for last in (1..racks).rev() {
            order.swap(last, self.below(last as u64 + 1) as usize);
        }
        order
    }
}
