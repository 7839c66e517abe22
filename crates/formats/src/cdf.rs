//! Flow-size distributions as the ns-3 forks for datacenters read them (HPCC's `traffic_gen`, github.com/alibaba-edu/
//! High-Precision-Congestion-Control; the same form in HKUST-SING/TrafficGenerator): on each line a size and the part
//! of the flows that are not larger, in percent (the last line says 100) or as a probability (the last line says 1).
//! Between two lines sizes are spread evenly; two lines of one size make that part of the flows exactly so large.
//! Distributions of packets' delays have the same form.

use super::ImportError;
use super::reader::{FilePlace, TextLine, lines};
use crate::sizes::{Cdf, Point, WHOLE};
use firstlight_net::interface::ALL_PACKETS;
use firstlight_units::{Bytes, Span};

/// Largest size, in the file's unit.
const LARGEST: u64 = 1 << 50;
/// The longest delay that a file may have.
const LONGEST: Span = Span::from_secs(1);
/// Parts of one percent.
const PERCENT: u64 = WHOLE / 100;
/// Decimals of a probability that count.
const DECIMALS: usize = 12;

/// Reads a distribution whose sizes count `unit`; `file` is its name for errors.
///
/// # Errors
/// When a line is wrong: with its place, and what would be right.
pub fn read(text: &str, file: &str, unit: Bytes) -> Result<Cdf, ImportError> {
    const SIZES: CdfTerms = CdfTerms { value: "size", items: "flows", compared: "larger", shrinks: "smaller" };
    let rows = rows(text, file, &SIZES)?;
    let (last, most, _) = &rows[rows.len() - 1];
    if *most == 0 {
        return Err(last.words[0].error("all flows would be empty: write a larger size"));
    }
    let point = |&(_, size, below): &(_, u64, _)| Point { size: Bytes::new(size.saturating_mul(unit.get())), below };
    Ok(Cdf::new(rows.iter().map(point).collect()).expect("it was checked line by line"))
}

/// Reads a distribution of delays that count `unit`: each with how many of [`WHOLE`] packets have one that is not
/// longer.
///
/// # Errors
/// When a line is wrong: with its place, and what would be right.
pub fn read_delays(text: &str, file: &str, unit: Span) -> Result<Vec<(Span, u64)>, ImportError> {
    const DELAYS: CdfTerms = CdfTerms { value: "delay", items: "packets", compared: "longer", shrinks: "shorter" };
    const _: () = assert!(WHOLE == ALL_PACKETS);
    let point = |(line, delay, below): (TextLine<'_>, u64, u64)| match delay.checked_mul(unit.as_ps()) {
        Some(ps) if ps <= LONGEST.as_ps() => Ok((Span::from_ps(ps), below)),
        _ => Err(line.words[0].error(format!("{delay} times {unit} is longer than {LONGEST}"))),
    };
    rows(text, file, &DELAYS)?.into_iter().map(point).collect()
}

/// The name of the distributed quantity in messages.
struct CdfTerms {
    value: &'static str,
    items: &'static str,
    compared: &'static str,
    shrinks: &'static str,
}

/// The lines with their values and the parts of [`WHOLE`] up to them: at least one line, ascending, up to the whole.
fn rows<'a>(text: &'a str, file: &'a str, terms: &CdfTerms) -> Result<Vec<(TextLine<'a>, u64, u64)>, ImportError> {
    let CdfTerms { value, items, compared, shrinks } = terms;
    let mut rows = vec![];
    for line in lines(file, text, Some('#')) {
        let words = line.columns([value, "cumulative fraction"])?;
        let number = words[0].whole(&format!("a {value}"), 0, LARGEST)?;
        let part = millionths(words[1].text).ok_or_else(|| {
            let found = words[1].text;
            words[1].error(format!("expected a fraction of the {items}, found '{found}': write a number like 97.5"))
        })?;
        rows.push((line, number, part));
    }
    let Some((last, _, whole)) = rows.last() else {
        let problem =
            format!("there is no line: write a {value} and the fraction of the {items} that are not {compared}");
        return Err(FilePlace::start(file).error(problem));
    };
    let percent = match u128::from(WHOLE) {
        one if *whole == one => 1,
        one if *whole == one * 100 => 100,
        _ => return Err(last.words[1].error(format!("the last line has all {items}: write 100 (percent) or 1"))),
    };
    for pair in rows.windows(2) {
        let ((_, before, part_before), (line, number, part)) = (&pair[0], &pair[1]);
        if number < before {
            let problem =
                format!("{number} is {shrinks} than the {value} before, {before}: {value}s must not decrease");
            return Err(line.words[0].error(problem));
        }
        if part < part_before {
            let problem = "this fraction is below the previous line's: fractions must not decrease";
            return Err(line.words[1].error(problem));
        }
    }
    let below = |part: u128| u64::try_from(part / percent).expect("parts grow up to the whole");
    Ok(rows.into_iter().map(|(line, number, part)| (line, number, below(part))).collect())
}

/// A decimal number in parts of 1 / [`WHOLE`], truncated after twelve decimals; at most ten digits before the point.
fn millionths(text: &str) -> Option<u128> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || whole.len() > 10 || !digits(whole) || !digits(fraction) {
        return None;
    }
    let fraction: String = fraction.chars().chain(std::iter::repeat('0')).take(DECIMALS).collect();
    Some(whole.parse::<u128>().ok()? * u128::from(WHOLE) + fraction.parse::<u128>().ok()?)
}

const _: () = assert!(PERCENT * 100 == WHOLE && WHOLE == 10u64.pow(DECIMALS as u32));

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        read(text, "x.txt", Bytes::new(1)).map(|_| ()).unwrap_err().to_string()
    }

    #[test]
    fn percent_and_probability_are_one_distribution() {
        let percent = read("0 0\n1000 37.5 # most\n\n\t2000\t 100\n", "x.txt", Bytes::new(1)).unwrap();
        let part = read("0 0\n1000 0.375\n2000 1.0\n", "x.txt", Bytes::new(1)).unwrap();
        assert_eq!(percent, part);
        assert_eq!(percent.mean(), 0.375 * 500.0 + 0.625 * 1500.0);
        assert_eq!(read("0 0\n2 1\n", "x.txt", Bytes::new(1460)).unwrap().mean(), 1460.0);
    }

    #[test]
    fn wrong_lines_are_named() {
        let part = "the last line has all flows: write 100 (percent) or 1";
        assert_eq!(
            error(""),
            "x.txt:1:1: there is no line: write a size and the fraction of the flows that are not larger"
        );
        assert_eq!(
            error("0 0\n10\n"),
            "x.txt:2:3: cumulative fraction is missing: a line has size, cumulative fraction"
        );
        assert_eq!(error("0 0\n10 1 1\n"), "x.txt:2:6: '1' is one word too many: a line has size, cumulative fraction");
        assert_eq!(
            error("0 0\n 1.5 1\n"),
            "x.txt:2:2: expected a size, found '1.5': write a whole number from 0 to 1125899906842624"
        );
        assert_eq!(
            error("0 0\n10 x\n"),
            "x.txt:2:4: expected a fraction of the flows, found 'x': write a number like 97.5"
        );
        assert_eq!(
            error("0 0\n10 -1\n"),
            "x.txt:2:4: expected a fraction of the flows, found '-1': write a number like 97.5"
        );
        assert_eq!(error("0 0\n10 99\n"), format!("x.txt:2:4: {part}"));
        assert_eq!(error("20 0\n10 1\n"), "x.txt:2:1: 10 is smaller than the size before, 20: sizes must not decrease");
        assert_eq!(
            error("0 0\n10 50\n20 40\n30 100"),
            "x.txt:3:4: this fraction is below the previous line's: fractions must not decrease"
        );
        assert_eq!(error("0 1\n"), "x.txt:1:1: all flows would be empty: write a larger size");
    }
}
