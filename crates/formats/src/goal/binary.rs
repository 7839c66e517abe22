//! GOAL's binary form, as LogGOPSim maps it into memory. All numbers are little-endian and lie without gaps:
//!
//! | what | fields |
//! |---|---|
//! | file | u64 4223, u32 ranks, u8 processors, u8 interfaces; for each rank u64 begin, u64 end |
//! | rank | u32 operations, u32 roots, u32 of each root, the operations, the list of followers (u32 each) |
//! | operation | u32 how many it waits for, u8 kind, u32 peer, u64 size, u32 tag, u8 processor, u8 interface; u32 how \
//! many wait for its end, u32 where these are in the list, u32 how many wait for its start, u32 where |
//!
//! A rank's begin and end count from behind the number 4223. Kinds are 1 (send), 2 (receive) and 3 (computation); the
//! peer of a receive from any rank and the tag of one of any tag have all bits set. Roots, processors and interfaces
//! are not used here.

use super::{ANY_TAG, GoalAction, GoalEnds, GoalOperation, GoalRequirement, GoalSchedule, MOST, MOST_RANKS};
use crate::ImportError;
use crate::reader::FilePlace;

/// The first bytes of a file.
const COOKIE: [u8; 8] = 4223u64.to_le_bytes();
/// Any rank, or any tag.
const ANY: u32 = u32::MAX;
/// Bytes of an operation.
const OPERATION: usize = 39;

/// Whether these are the bytes of a binary schedule.
pub fn is_binary(bytes: &[u8]) -> bool {
    bytes.starts_with(&COOKIE)
}

/// Reads a binary schedule; `file` is its name for errors. Places are line 1 and the byte, counted from 1.
///
/// # Errors
/// When the file is cut off, an operation is of no kind, a follower does not exist, or a send or a receive has no
/// partner: with its place.
pub fn read_binary(bytes: &[u8], file: &str) -> Result<GoalSchedule, ImportError> {
    let mut cursor = BinaryCursor { bytes, at: COOKIE.len(), file };
    if !is_binary(bytes) {
        return Err(cursor.error(0, "a binary schedule begins with the number 4223 in 8 bytes: make it with txt2bin"));
    }
    let at = cursor.at;
    let ranks = cursor.u32()?;
    if !(1..=MOST_RANKS).contains(&ranks) {
        return Err(cursor.error(at, format!("{ranks} ranks are not from 1 to {MOST_RANKS}: make the file anew")));
    }
    cursor.take(2)?;
    let mut reading =
        BinaryReading { schedule: GoalSchedule { ranks, ..GoalSchedule::default() }, ends: GoalEnds::default() };
    for rank in 0..ranks {
        let at = cursor.at;
        let (begin, end) = (cursor.u64()?, cursor.u64()?);
        let base = COOKIE.len() as u64;
        let bounds = (begin.checked_add(base), end.checked_add(base));
        let (Some(begin), Some(end)) = bounds else { return Err(cursor.error(at, outside(rank))) };
        if begin > end || end > bytes.len() as u64 {
            return Err(cursor.error(at, outside(rank)));
        }
        let mut own = BinaryCursor { bytes: &bytes[..end as usize], at: begin as usize, file };
        reading.rank(rank, &mut own)?;
    }
    let BinaryReading { mut schedule, ends } = reading;
    ends.join(&mut schedule, |_| file)?;
    Ok(schedule)
}

fn outside(rank: u32) -> String {
    format!("rank {rank} lies outside of the file: it is cut off, make it anew")
}

/// A place in the file.
struct BinaryCursor<'a> {
    bytes: &'a [u8],
    at: usize,
    file: &'a str,
}

impl BinaryCursor<'_> {
    fn error(&self, at: usize, problem: impl Into<String>) -> ImportError {
        FilePlace { file: self.file, line: 1, column: at + 1 }.error(problem)
    }

    fn take(&mut self, count: usize) -> Result<&[u8], ImportError> {
        let end = self.at.checked_add(count).filter(|end| *end <= self.bytes.len());
        let Some(end) = end else {
            let end = self.bytes.len().saturating_sub(1);
            return Err(self.error(end, "the schedule is cut off here: make the file anew"));
        };
        let taken = &self.bytes[self.at..end];
        self.at = end;
        Ok(taken)
    }

    fn u8(&mut self) -> Result<u8, ImportError> {
        self.take(1).map(|bytes| bytes[0])
    }

    fn u32(&mut self) -> Result<u32, ImportError> {
        self.take(4).map(|bytes| u32::from_le_bytes(bytes.try_into().expect("four bytes")))
    }

    fn u64(&mut self) -> Result<u64, ImportError> {
        self.take(8).map(|bytes| u64::from_le_bytes(bytes.try_into().expect("eight bytes")))
    }
}

/// The part of the file that has been read.
struct BinaryReading {
    schedule: GoalSchedule,
    ends: GoalEnds,
}

/// Where the followers of an operation lie in their list.
struct Followers {
    earlier: u32,
    start: bool,
    count: u32,
    first: u32,
}

impl BinaryReading {
    fn rank(&mut self, rank: u32, cursor: &mut BinaryCursor<'_>) -> Result<(), ImportError> {
        let at = cursor.at;
        let (count, roots) = (cursor.u32()? as usize, cursor.u32()? as usize);
        cursor.take(roots.saturating_mul(4))?;
        let left = cursor.bytes.len() - cursor.at;
        if count > left / OPERATION {
            return Err(cursor.error(at, format!("rank {rank} has no room for {count} operations: make the file anew")));
        }
        let first = self.schedule.operations.len() as u32;
        let mut followers = vec![];
        for _ in 0..count {
            self.operation(rank, cursor, &mut followers)?;
        }
        let list = cursor.at;
        for Followers { earlier, start, count: of_these, first: from } in followers {
            for index in (from as usize)..(from as usize).saturating_add(of_these as usize) {
                cursor.at = list.saturating_add(index.saturating_mul(4));
                let at = cursor.at;
                let later = cursor.u32()?;
                if later as usize >= count {
                    let problem = format!("there is no operation {later} in rank {rank}, which has {count}");
                    return Err(cursor.error(at, problem));
                }
                self.schedule.requirements.push(GoalRequirement { later: first + later, earlier, start });
            }
        }
        Ok(())
    }

    fn operation(
        &mut self,
        rank: u32,
        cursor: &mut BinaryCursor<'_>,
        followers: &mut Vec<Followers>,
    ) -> Result<(), ImportError> {
        let (at, number) = (cursor.at, self.schedule.operations.len() as u32);
        cursor.u32()?;
        let (kind, peer, size, tag) = (cursor.u8()?, cursor.u32()?, cursor.u64()?, cursor.u32()?);
        cursor.take(2)?;
        if size > MOST {
            return Err(cursor.error(at, format!("{size} bytes or nanoseconds are too many: use at most {MOST}")));
        }
        let known = |any: bool| {
            if peer < self.schedule.ranks || (any && peer == ANY) {
                return Ok(());
            }
            Err(cursor.error(at, format!("there is no rank {peer}: the file has {}", self.schedule.ranks)))
        };
        if kind == 2 && tag == ANY {
            return Err(cursor.error(at, ANY_TAG));
        }
        let (end, tag) = ((number, size), u64::from(tag));
        let action = match kind {
            1 => known(false).map(|()| self.ends.send(rank, peer, tag, end))?,
            2 => known(true).map(|()| self.ends.receive(rank, (peer != ANY).then_some(peer), tag, end))?,
            3 => GoalAction::Compute(size),
            _ => {
                let problem = format!("operation of kind {kind}: 1 is a send, 2 a receive, 3 a computation");
                return Err(cursor.error(at, problem));
            }
        };
        for start in [false, true] {
            let (count, first) = (cursor.u32()?, cursor.u32()?);
            followers.push(Followers { earlier: number, start, count, first });
        }
        self.schedule.operations.push(GoalOperation { rank, action, place: (1, at + 1) });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An operation without followers but those given: kind, peer, size, tag; how many wait for its end, and where.
    fn operation(kind: u8, peer: u32, size: u64, tag: u32, end: [u32; 2], start: [u32; 2]) -> Vec<u8> {
        let mut bytes = 0u32.to_le_bytes().to_vec();
        bytes.push(kind);
        bytes.extend(peer.to_le_bytes());
        bytes.extend(size.to_le_bytes());
        bytes.extend(tag.to_le_bytes());
        bytes.extend([0, 0]);
        bytes.extend([end, start].concat().into_iter().flat_map(u32::to_le_bytes));
        bytes
    }

    fn rank(operations: &[Vec<u8>], roots: &[u32], followers: &[u32]) -> Vec<u8> {
        let counts = [operations.len() as u32, roots.len() as u32];
        let numbers = |list: &[u32]| list.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>();
        [numbers(&counts), numbers(roots), operations.concat(), numbers(followers)].concat()
    }

    fn file(ranks: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = COOKIE.to_vec();
        bytes.extend((ranks.len() as u32).to_le_bytes());
        bytes.extend([1, 1]);
        let mut begin = 6 + 16 * ranks.len() as u64;
        for rank in ranks {
            bytes.extend(begin.to_le_bytes());
            begin += rank.len() as u64;
            bytes.extend(begin.to_le_bytes());
        }
        bytes.extend(ranks.concat());
        bytes
    }

    /// The schedule of `PAIR` in the tests of the text form.
    fn pair() -> Vec<u8> {
        let none = [0, 0];
        let first = [operation(3, 0, 1000, 0, [1, 0], [0, 1]), operation(1, 1, 8, 7, [0, 1], [0, 1])];
        let second = [operation(2, 0, 8, 7, none, [1, 0]), operation(3, 0, 5, 0, [0, 1], [0, 1])];
        file(&[rank(&first, &[0], &[1]), rank(&second, &[0], &[1])])
    }

    #[test]
    fn both_forms_of_a_schedule_are_the_same() {
        let text = "num_ranks 2\nrank 0 {\nl1: calc 1000\nl2: send 8b to 1 tag 7\nl2 requires l1\n}\n\
                    rank 1 {\nl1: recv 8b from 0 tag 7\nl2: calc 5\nl2 irequires l1\n}\n";
        let [text, binary] = [super::super::read(text, "a.goal"), read_binary(&pair(), "a.bin")].map(Result::unwrap);
        assert_eq!((binary.ranks, &binary.requirements), (text.ranks, &text.requirements));
        let actions =
            |schedule: &GoalSchedule| schedule.operations.iter().map(|op| (op.rank, op.action)).collect::<Vec<_>>();
        assert_eq!(actions(&binary), actions(&text));
        assert_eq!((is_binary(&pair()), is_binary(b"num_ranks 2")), (true, false));
    }

    #[test]
    fn wrong_bytes_are_named() {
        let reported = |at: usize, to: &[u8]| {
            let mut bytes = pair();
            bytes[at..at + to.len()].copy_from_slice(to);
            read_binary(&bytes, "a.bin").map(drop).unwrap_err().to_string()
        };
        let last = pair().len();
        let cut = |end: usize| read_binary(&pair()[..end], "a.bin").map(drop).unwrap_err().to_string();
        assert_eq!(cut(4), "a.bin:1:1: a binary schedule begins with the number 4223 in 8 bytes: make it with txt2bin");
        assert_eq!(cut(10), "a.bin:1:10: the schedule is cut off here: make the file anew");
        assert_eq!(cut(last - 1), "a.bin:1:31: rank 1 lies outside of the file: it is cut off, make it anew");
        assert_eq!(reported(8, &[0; 4]), "a.bin:1:9: 0 ranks are not from 1 to 1048576: make the file anew");
        // The first rank begins at byte 46, its first operation 12 bytes later.
        assert_eq!(reported(46, &[9]), "a.bin:1:47: rank 0 has no room for 9 operations: make the file anew");
        assert_eq!(reported(62, &[4]), "a.bin:1:59: operation of kind 4: 1 is a send, 2 a receive, 3 a computation");
        assert_eq!(reported(62, &[1, 2]), "a.bin:1:59: there is no rank 2: the file has 2");
        assert_eq!(reported(136, &[5]), "a.bin:1:137: there is no operation 5 in rank 0, which has 2");
        let many = "18374686479671624680 bytes or nanoseconds are too many: use at most 1125899906842624";
        assert_eq!(reported(74, &[255]), format!("a.bin:1:59: {many}"));
        let small = "7 bytes do not hold the 8 that rank 0 sends at 1:98: receive as many";
        assert_eq!(reported(161, &[7]), format!("a.bin:1:153: {small}"));
    }
}
