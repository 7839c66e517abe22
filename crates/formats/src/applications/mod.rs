//! The communication of message-passing applications, as schedules in GOAL's text form ([`crate::goal`]).
//!
//! An application is a NAS parallel benchmark with its problem class, named as the benchmarks' own programs are
//! (`cg.A`), or a communication pattern (`halo`). A schedule lists what ranks send and how long they compute, iteration
//! by iteration.

mod grid;
mod nas;
mod patterns;
mod schedule;

use schedule::ScheduleWriter;

/// Names of the NAS parallel benchmarks.
pub const BENCHMARKS: [&str; 5] = ["bt", "cg", "ft", "is", "mg"];
/// Names of the communication patterns.
pub const PATTERNS: [&str; 4] = ["halo", "all-to-all", "all-reduce", "wavefront"];
/// Problem classes of the benchmarks; the first one is that of a benchmark without a class.
pub const CLASSES: [&str; 3] = ["S", "W", "A"];
/// Bytes of a pattern's messages, unless they are given.
pub const SIZE: u64 = 65_536;
/// The most operations of a schedule.
pub const MOST_OPERATIONS: usize = 20_000_000;

/// How an application runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ApplicationParameters {
    /// How many ranks, at least 1.
    pub ranks: u32,
    /// Bytes of a pattern's messages, at least 1; benchmarks have sizes of their own.
    pub size: Option<u64>,
    /// How many iterations, at least 1.
    pub iterations: u32,
    /// Nanoseconds that every rank computes between exchanges.
    pub compute_ns: u64,
}

/// The part of a request that is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestPart {
    /// The application's name.
    Name,
    /// [`ApplicationParameters::ranks`].
    Ranks,
    /// [`ApplicationParameters::size`].
    Size,
}

/// Why a request for a schedule is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct WrongRequest {
    /// The part that is wrong.
    pub part: RequestPart,
    /// The problem, and what to write instead.
    pub problem: String,
}

impl WrongRequest {
    fn new(part: RequestPart, problem: String) -> Self {
        WrongRequest { part, problem }
    }
}

/// The schedule of the application `name` as a file in GOAL's text form has it.
///
/// # Errors
/// When there is no such application or class, it does not run on so many ranks, it would be larger than
/// [`MOST_OPERATIONS`], or a benchmark is given a size.
pub fn generate(name: &str, parameters: &ApplicationParameters) -> Result<String, WrongRequest> {
    let (base, class) = name.split_once('.').map_or((name, None), |(base, class)| (base, Some(class)));
    let too_large = || {
        let problem = format!("it would have more than {MOST_OPERATIONS} operations: use fewer ranks or iterations");
        WrongRequest::new(RequestPart::Ranks, problem)
    };
    if parameters.ranks as usize > MOST_OPERATIONS {
        return Err(too_large());
    }
    let mut schedule = ScheduleWriter::new(parameters.ranks);
    if BENCHMARKS.contains(&base) {
        if parameters.size.is_some() {
            let problem = format!("{base} has its messages' sizes from its class: take the size out");
            return Err(WrongRequest::new(RequestPart::Size, problem));
        }
        let class = class.unwrap_or(CLASSES[0]);
        let problem = CLASSES.iter().position(|known| *known == class).ok_or_else(|| {
            let problem = format!("{base} has no class '{class}': write one of {}", CLASSES.join(", "));
            WrongRequest::new(RequestPart::Name, problem)
        })?;
        nas::run(base, problem, parameters, &mut schedule)?;
    } else if PATTERNS.contains(&base) {
        if class.is_some() {
            return Err(WrongRequest::new(RequestPart::Name, format!("{base} has no classes: write {base}")));
        }
        if parameters.ranks < 2 {
            let problem = format!("{base} on one rank sends nothing: write 2 or more");
            return Err(WrongRequest::new(RequestPart::Ranks, problem));
        }
        patterns::run(base, parameters, &mut schedule);
    } else {
        let known = [&BENCHMARKS[..], &PATTERNS[..]].concat().join(", ");
        let problem = format!("there is no application '{name}': write one of {known}");
        return Err(WrongRequest::new(RequestPart::Name, problem));
    }
    if schedule.is_full() { Err(too_large()) } else { Ok(schedule.text()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(name: &str, ranks: u32) -> Result<String, WrongRequest> {
        generate(name, &ApplicationParameters { ranks, size: None, iterations: 1, compute_ns: 0 })
    }

    #[test]
    fn every_schedule_can_be_read() {
        for name in BENCHMARKS.iter().chain(&PATTERNS) {
            let schedule = crate::goal::read(&request(name, 16).unwrap(), name).unwrap();
            assert_eq!(schedule.ranks, 16);
        }
        assert_eq!(request("cg", 8), request("cg.S", 8));
        assert_ne!(request("cg.A", 8), request("cg.S", 8));
    }

    #[test]
    fn wrong_requests_say_what_to_write() {
        let problem = |name, ranks| request(name, ranks).unwrap_err().to_string();
        assert_eq!(problem("cg", 12), "cg runs on a power of two ranks, not on 12: write 2, 4, 8 or so");
        assert_eq!(problem("bt", 8), "bt runs on a square of ranks, not on 8: write 4, 9, 16 or so");
        assert_eq!(
            problem("lu", 8),
            "there is no application 'lu': write one of bt, cg, ft, is, mg, halo, all-to-all, all-reduce, wavefront"
        );
        assert_eq!(problem("ft.D", 4), "ft has no class 'D': write one of S, W, A");
        assert_eq!(problem("halo.A", 4), "halo has no classes: write halo");
        assert_eq!(
            problem("all-to-all", 10_000),
            "it would have more than 20000000 operations: use fewer ranks or iterations"
        );
        assert!(problem("halo", u32::MAX).starts_with("it would have more than"));
        assert_eq!(problem("halo", 1), "halo on one rank sends nothing: write 2 or more");
        let sized = ApplicationParameters { ranks: 4, size: Some(8), iterations: 1, compute_ns: 0 };
        let wrong = generate("ft", &sized).unwrap_err();
        assert_eq!(wrong.part, RequestPart::Size);
        assert_eq!(wrong.to_string(), "ft has its messages' sizes from its class: take the size out");
    }
}
