//! The communication of NAS parallel benchmarks BT, CG, FT, IS and MG, from their published decompositions.
//!
//! Sources: Bailey et al., "The NAS Parallel Benchmarks", RNR-94-007, 1994 (problems, classes S, W and A); Bailey et
//! al., "The NAS Parallel Benchmarks 2.0", NAS-95-020, 1995 (decompositions); Naik, "A scalable implementation of the
//! NAS parallel benchmark BT on distributed memory systems", IBM Systems Journal 34(2), 1995 (multipartition). Message
//! sizes follow from the problem's size and its decomposition. They agree with those that the public sources of NPB 2
//! and 3 (MPI) compute. Set-up, verification and timers are left out, and of CG the first and the last norm of an
//! iteration (9 messages of 184 in a chain on 16 ranks).

use super::grid::{Grid, power_of_two, side_of, sides_of};
use super::schedule::ScheduleWriter;
use super::{ApplicationParameters, WrongRequest};

/// Bytes of a floating-point number.
const ELEMENT: u64 = 8;
/// Bytes of a complex number.
const COMPLEX: u64 = 16;
/// Bytes of a key of IS.
const KEY: u64 = 4;
// Sizes of the problems, one for each class of [`super::CLASSES`].
/// Points along a side of BT's cube.
const BT_POINTS: [u64; 3] = [12, 24, 64];
/// Rows of CG's matrix.
const CG_ROWS: [u64; 3] = [1_400, 7_000, 14_000];
/// Points of FT's grid.
const FT_POINTS: [u64; 3] = [64 * 64 * 64, 128 * 128 * 32, 256 * 256 * 128];
/// Keys that IS sorts.
const IS_KEYS: [u64; 3] = [1 << 16, 1 << 20, 1 << 23];
/// Buckets of IS.
const IS_BUCKETS: [u64; 3] = [1 << 9, 1 << 10, 1 << 10];
/// Points along a side of MG's cube.
const MG_POINTS: [u64; 3] = [32, 64, 256];
/// Steps of conjugate gradients in an iteration of CG.
const CG_STEPS: usize = 25;
/// Keys whose ranks IS checks in each iteration; their counts are summed with the buckets' sizes.
const IS_TEST_KEYS: u64 = 5;

/// Writes a benchmark of [`super::BENCHMARKS`]; `class` is an index of [`super::CLASSES`].
pub fn run(
    name: &str,
    class: usize,
    parameters: &ApplicationParameters,
    schedule: &mut ScheduleWriter,
) -> Result<(), WrongRequest> {
    let (ranks, compute) = (parameters.ranks, parameters.compute_ns);
    if name == "bt" {
        let bt = Bt::new(BT_POINTS[class], side_of(name, ranks)?);
        for _ in 0..parameters.iterations {
            if schedule.is_full() {
                break;
            }
            bt.iterate(schedule, compute);
        }
        return Ok(());
    }
    power_of_two(name, ranks)?;
    for _ in 0..parameters.iterations {
        if schedule.is_full() {
            break;
        }
        match name {
            "cg" => cg(schedule, CG_ROWS[class], compute),
            "ft" => ft(schedule, FT_POINTS[class], compute),
            "is" => is(schedule, IS_KEYS[class], IS_BUCKETS[class], compute),
            _ => mg(schedule, MG_POINTS[class], compute),
        }
    }
    Ok(())
}

/// Multipartition on a square of q x q ranks, each with q cells along a diagonal of the cube.
struct Bt {
    q: u32,
    /// Bytes of the faces of cells that a rank exchanges with a neighbour.
    faces: u64,
    /// Points of a buffer of a sweep.
    buffer: u64,
    /// Each rank's successor along each of three directions.
    ahead: [Vec<u32>; 3],
}

impl Bt {
    fn new(points: u64, q: u32) -> Self {
        let side = u64::from(q);
        let grid = Grid { sides: vec![q, q] };
        let ahead = |next: &dyn Fn(u32) -> u32| (0..q * q).map(next).collect();
        Bt {
            q,
            // Two points deep, 5 values each; of all cells but one, which is at the boundary there.
            faces: (side - 1) * points.div_ceil(side).pow(2) * 2 * 5 * ELEMENT,
            buffer: (points / side + 1).pow(2),
            // The third direction leads along both: cells of a rank lie on diagonals.
            ahead: [
                ahead(&|rank| grid.neighbour(rank, 0, 1)),
                ahead(&|rank| grid.neighbour(rank, 1, 1)),
                ahead(&|rank| grid.neighbour(grid.neighbour(rank, 0, -1), 1, -1)),
            ],
        }
    }

    /// Writes an iteration: ranks exchange faces of cells with six neighbours, then sweep each dimension over q cells,
    /// forth and back. For each point of a face, a sweep forth sends the block tridiagonal's 5 x 5 matrix and 5 values,
    /// a sweep back 5 values. A sweep's buffer has room for one point more along each side, and is sent whole.
    fn iterate(&self, schedule: &mut ScheduleWriter, compute: u64) {
        let pairs = |to: &'_ [u32]| to.iter().enumerate().map(|(rank, to)| (rank as u32, *to)).collect::<Vec<_>>();
        let forth: Vec<(u32, u32)> = self.ahead.iter().flat_map(|to| pairs(to)).collect();
        let back = forth.iter().map(|&(src, dst)| (dst, src));
        schedule.exchange(forth.iter().copied().chain(back).map(|(src, dst)| (src, dst, self.faces)));
        for to in &self.ahead {
            schedule.compute(compute);
            for _ in 1..self.q {
                schedule.exchange(pairs(to).iter().map(|&(src, dst)| (src, dst, self.buffer * 30 * ELEMENT)));
            }
            for _ in 1..self.q {
                schedule.exchange(pairs(to).iter().map(|&(dst, src)| (src, dst, self.buffer * 5 * ELEMENT)));
            }
        }
    }
}

/// Writes an iteration of conjugate gradients. The sparse matrix lies on a grid of ranks with as many columns as rows,
/// or twice as many. A step multiplies by the matrix, sums the pieces along each row of ranks, exchanges the result
/// with the transposed rank, and has two inner products.
fn cg(schedule: &mut ScheduleWriter, rows: u64, compute: u64) {
    let ranks = schedule.ranks();
    let sides = sides_of(ranks, 2);
    let (columns, half) = (sides[0], sides[0] / sides[1]);
    let piece = rows.div_ceil(columns.into()) * ELEMENT;
    // The rank that has the transposed block: with twice as many columns, blocks of a row go two by two.
    let transposed = |rank: u32| {
        let (row, column) = (rank / columns, rank % columns);
        (column / half) * columns + row * half + column % half
    };
    for _ in 0..CG_STEPS {
        schedule.compute(compute);
        schedule.sum_within(columns, piece);
        schedule.exchange((0..ranks).map(|rank| (rank, transposed(rank), piece)));
        for _ in 0..2 {
            schedule.sum_within(columns, ELEMENT);
        }
    }
}

/// Writes an iteration of a Fourier transform in three dimensions, cut into slabs: ranks transpose all of it, and sum a
/// checksum, here for all ranks and not for the first alone.
fn ft(schedule: &mut ScheduleWriter, points: u64, compute: u64) {
    schedule.compute(compute);
    schedule.all_to_all(points * COMPLEX / u64::from(schedule.ranks()).pow(2));
    schedule.all_reduce_doubling(COMPLEX);
}

/// Writes an iteration of the integer sort: ranks sum the buckets' sizes, exchange how many keys they will send, and
/// then the keys. Keys are spread evenly over the ranks.
fn is(schedule: &mut ScheduleWriter, keys: u64, buckets: u64, compute: u64) {
    schedule.compute(compute);
    schedule.all_reduce_doubling((buckets + IS_TEST_KEYS) * KEY);
    schedule.all_to_all(KEY);
    schedule.all_to_all(keys * KEY / u64::from(schedule.ranks()).pow(2));
}

/// Writes an iteration of multigrid on a cube of blocks. An exchange is of the faces of a level, dimension after
/// dimension; a face includes the points that the exchanges of earlier dimensions brought.
///
/// A V-cycle exchanges each coarser level on its way down, the coarsest once more after smoothing, and each other level
/// twice on its way up, after its residual and after smoothing; then comes the residual of the whole. On coarse levels,
/// where there are fewer points than ranks along a side, ranks have a point each: the benchmark would let some idle.
fn mg(schedule: &mut ScheduleWriter, points: u64, compute: u64) {
    let grid = Grid { sides: sides_of(schedule.ranks(), 3) };
    let levels: Vec<u64> = (0..points.ilog2()).map(|level| points >> level).collect();
    let (whole, coarser) = levels.split_first().expect("there is a level");
    let coarsest = levels[levels.len() - 1];
    let up = levels.iter().rev().skip(1).flat_map(|level| [*level; 2]);
    for points in coarser.iter().copied().chain([coarsest]).chain(up).chain([*whole]) {
        schedule.compute(compute);
        let block: Vec<u64> = grid.sides.iter().map(|side| (points / u64::from(*side)).max(1)).collect();
        for axis in 0..3 {
            let across = (0..3).filter(|other| *other != axis).map(|other| block[other] + 2 * u64::from(other < axis));
            let face = across.product::<u64>() * ELEMENT;
            schedule.exchange(grid.shifts(axis, 1, face).chain(grid.shifts(axis, -1, face)));
        }
    }
}
